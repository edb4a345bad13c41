// transport_threads.c - all devices in one process, a thread each: a message is one copy, of the machine's
// memory, or by the receiver's backend behind the events of both ends.
//
// From each device to each other leads a lane, a queue of what one end has posted and the other has not. Who
// posts second takes the first's entry out and copies; so an entry is in one lane, under its lock, until
// exactly one thread owns it. Tickets are marked done last, and the waiting device is woken under its own
// lock, so no wake-up is lost.
//
// A pretended delay runs from the moment when both ends are there; the sender is free at that moment, the
// receiver when the delay has passed.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/transport.h"
#include "solver/model/deadline.h"
#include "solver/model/number.h"

// How often a wait looks before it sleeps: about as long as waking up takes.
enum { LOOKS = 200 };

enum outcome { UNDER_WAY, DONE, DISAGREE, BROKEN };

struct posted {
  struct posted *next;
  struct device *owner;
  void *data;
  size_t bytes;
  struct zb_label label;
  void *event;
  int64_t ready_ns; // when the receiver may see it
  _Atomic int outcome;
  bool sends;
};
_Static_assert(sizeof(struct posted) <= sizeof((struct zb_ticket *)0)->room, "a ticket has room");

struct device {
  struct hub *hub;
  int number;
  struct zb_mover mover;
  pthread_mutex_t lock;
  pthread_cond_t woken;
};

struct lane {
  pthread_mutex_t lock;
  struct posted *first, *last; // all sends or all receives
};

struct hub {
  int devices;
  struct device *device; // [devices]
  struct lane *lane;     // [devices * devices] from, to
  atomic_bool abandoned;
  struct zb_error broken; // a copy that failed: written by the thread that set the first of the two
  atomic_bool breaks, is_broken;
};

static void free_hub(struct hub *hub) {
  if (!hub) return;
  for (int d = 0; hub->device && d < hub->devices; d++) {
    pthread_mutex_destroy(&hub->device[d].lock);
    pthread_cond_destroy(&hub->device[d].woken);
  }
  for (int k = 0; hub->lane && k < hub->devices * hub->devices; k++)
    pthread_mutex_destroy(&hub->lane[k].lock);
  free(hub->device);
  free(hub->lane);
  free(hub);
}

static void leave(void *shared, enum zb_status status) {
  (void)status;
  free_hub(shared);
}

static enum zb_status start(void **shared, struct zb_error *error) {
  struct hub *hub = calloc(1, sizeof *hub);
  if (!hub) return zb_fail_memory(error);
  *shared = hub;
  return ZB_OK;
}

static enum zb_status agree(void *shared, enum zb_status mine, int64_t deadline_ns, struct zb_error *error) {
  (void)shared, (void)deadline_ns, (void)error;
  return mine;
}

static enum zb_status join(void *shared, int devices, uint64_t digest, int64_t deadline_ns, int *first_device,
                           int *count, struct zb_error *error) {
  (void)digest, (void)deadline_ns;
  size_t n = (size_t)devices;
  struct hub *hub = shared;
  struct device *device = calloc(n, sizeof *device);
  struct lane *lane = calloc(n * n, sizeof *lane);
  if (!device || !lane) {
    free(device);
    free(lane);
    return zb_fail_memory(error);
  }
  *hub = (struct hub){.devices = devices, .device = device, .lane = lane};
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  for (int d = 0; d < devices; d++) {
    device[d].hub = hub;
    device[d].number = d;
    pthread_mutex_init(&device[d].lock, NULL);
    pthread_cond_init(&device[d].woken, &monotonic);
  }
  pthread_condattr_destroy(&monotonic);
  for (size_t k = 0; k < n * n; k++) pthread_mutex_init(&lane[k].lock, NULL);
  *first_device = 0;
  *count = devices;
  return ZB_OK;
}

static void table(void *shared, struct zb_text *out) { (void)shared, (void)out; }

static bool is_near(void *shared, int device) {
  (void)shared, (void)device;
  return true;
}

static int seat(void *shared, int device) {
  (void)shared;
  return device;
}

static enum zb_status open_endpoint(void *shared, int device, const struct zb_mover *mover, void **endpoint,
                                    struct zb_error *error) {
  (void)error;
  struct hub *hub = shared;
  assert(device >= 0 && device < hub->devices);
  if (mover) hub->device[device].mover = *mover;
  *endpoint = &hub->device[device];
  return ZB_OK;
}

static void close_endpoint(void *endpoint) { (void)endpoint; }

static void wake(struct device *device) {
  pthread_mutex_lock(&device->lock);
  pthread_cond_broadcast(&device->woken);
  pthread_mutex_unlock(&device->lock);
}

// Only enqueued; the events of both ends are behind it then.
static enum outcome move(struct hub *hub, const struct posted *from, const struct posted *to) {
  const struct zb_mover *receiver = &to->owner->mover, *sender = &from->owner->mover;
  struct zb_error error = {0};
  enum zb_status status =
      receiver->copy(receiver->state, to->data, from->data, from->bytes, from->event, to->event, &error);
  if (status == ZB_OK) status = sender->follow(sender->state, from->event, to->event, &error);
  if (status == ZB_OK) return DONE;
  if (!atomic_exchange(&hub->breaks, true)) {
    hub->broken = error;
    atomic_store(&hub->is_broken, true);
  }
  return BROKEN;
}

// Both ends are there, and no lane has them: this thread owns both.
static void transfer(struct posted *from, struct posted *to) {
  bool agree = from->bytes == to->bytes && from->label.kind == to->label.kind &&
               from->label.stage == to->label.stage && from->label.microbatch == to->label.microbatch;
  enum outcome outcome = agree ? DONE : DISAGREE;
  if (agree && to->event)
    outcome = move(to->owner->hub, from, to);
  else if (agree && from->bytes)
    memcpy(to->data, from->data, from->bytes);
  from->ready_ns = 0;
  to->ready_ns = to->label.delay_ns ? zb_clock_ns() + to->label.delay_ns : 0;
  // After its outcome is told, an entry is its owner's again.
  struct device *sender = from->owner, *receiver = to->owner;
  atomic_store(&from->outcome, outcome);
  atomic_store(&to->outcome, outcome);
  wake(sender);
  wake(receiver);
}

static void post(struct lane *lane, struct posted *entry) {
  pthread_mutex_lock(&lane->lock);
  struct posted *other = lane->first;
  if (other && other->sends != entry->sends) {
    lane->first = other->next;
  } else {
    if (lane->first)
      lane->last->next = entry;
    else
      lane->first = entry;
    lane->last = entry;
    other = NULL;
  }
  pthread_mutex_unlock(&lane->lock);
  if (other && entry->sends)
    transfer(entry, other);
  else if (other)
    transfer(other, entry);
}

static struct posted *fill(struct device *device, struct zb_label label, void *data, size_t bytes,
                           void *event, bool sends, struct zb_ticket *ticket) {
  assert(!ticket->posted);
  ticket->posted = true;
  struct posted *entry = (void *)ticket->room;
  *entry = (struct posted){
      .owner = device, .data = data, .bytes = bytes, .label = label, .event = event, .sends = sends};
  return entry;
}

static enum zb_status send_message(void *endpoint, int peer, struct zb_label label, const void *data,
                                   size_t bytes, void *after, struct zb_ticket *ticket,
                                   struct zb_error *error) {
  (void)error;
  struct device *device = endpoint;
  // The entry is of either direction, so it cannot promise const; a send's data is only read (transfer).
  union {
    const void *given;
    void *kept;
  } source = {.given = data};
  post(&device->hub->lane[device->number * device->hub->devices + peer],
       fill(device, label, source.kept, bytes, after, true, ticket));
  return ZB_OK;
}

static enum zb_status receive_message(void *endpoint, int peer, struct zb_label label, void *data,
                                      size_t bytes, void *after, struct zb_ticket *ticket,
                                      struct zb_error *error) {
  (void)error;
  struct device *device = endpoint;
  post(&device->hub->lane[peer * device->hub->devices + device->number],
       fill(device, label, data, bytes, after, false, ticket));
  return ZB_OK;
}

static struct timespec time_of(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

// UNDER_WAY when the deadline passed or the others gave up.
static int wait_outcome(struct device *device, struct posted *entry, int64_t deadline_ns) {
  int outcome = atomic_load(&entry->outcome);
  for (int look = 0; outcome == UNDER_WAY && look < LOOKS; look++) outcome = atomic_load(&entry->outcome);
  if (outcome != UNDER_WAY) return outcome;
  struct timespec until = time_of(deadline_ns);
  pthread_mutex_lock(&device->lock);
  int late = 0;
  while ((outcome = atomic_load(&entry->outcome)) == UNDER_WAY && !late &&
         !atomic_load(&device->hub->abandoned))
    late = pthread_cond_timedwait(&device->woken, &device->lock, &until) == ETIMEDOUT;
  pthread_mutex_unlock(&device->lock);
  return outcome;
}

static enum zb_status wait_message(void *endpoint, struct zb_ticket *ticket, int64_t deadline_ns,
                                   void **event, struct zb_error *error) {
  struct device *device = endpoint;
  struct posted *entry = (void *)ticket->room;
  *event = NULL;
  if (!ticket->posted) return ZB_OK;
  int outcome = wait_outcome(device, entry, deadline_ns);
  if (outcome == UNDER_WAY)
    return zb_fail(error, ZB_FAILED,
                   atomic_load(&device->hub->abandoned) ? ZB_GAVE_UP : "nothing came in time");
  if (outcome == BROKEN)
    return atomic_load(&device->hub->is_broken) ? zb_fail(error, ZB_FAILED, "%s", device->hub->broken.text)
                                                : zb_fail(error, ZB_FAILED, "a copy between devices failed");
  if (outcome == DISAGREE) return zb_fail(error, ZB_WRONG, "the other end has another message in this place");
  if (entry->ready_ns) {
    struct timespec until = time_of(zb_min(entry->ready_ns, deadline_ns));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    if (entry->ready_ns > deadline_ns) return zb_fail(error, ZB_FAILED, "nothing came in time");
  }
  ticket->posted = false;
  *event = entry->event;
  return ZB_OK;
}

static enum zb_status poll_messages(void *endpoint, struct zb_error *error) {
  const struct device *device = endpoint;
  return atomic_load(&device->hub->abandoned) ? zb_fail(error, ZB_FAILED, ZB_GAVE_UP) : ZB_OK;
}

static void abandon(void *shared) {
  struct hub *hub = shared;
  atomic_store(&hub->abandoned, true);
  for (int d = 0; d < hub->devices; d++) wake(&hub->device[d]);
}

const struct zb_transport zb_transport_threads = {
    .name = "threads",
    .help = "one process, a thread a device",
    .host_memory = true,
    .device_memory = true,
    .start = start,
    .leave = leave,
    .agree = agree,
    .join = join,
    .table = table,
    .is_near = is_near,
    .seat = seat,
    .open = open_endpoint,
    .close = close_endpoint,
    .send = send_message,
    .receive = receive_message,
    .wait = wait_message,
    .poll = poll_messages,
    .abandon = abandon,
};
