// transport_mpi.c - a process a device, wherever mpirun or srun puts them; the only file that sees mpi.h.
//
// A message is three: each end sends the other its label and size, and the sender the data. So both ends know
// whether they mean the same message, and a send is taken when its receive is there. MPI keeps order between
// two processes on one communicator, which makes the k-th send the k-th receive.
//
// Nothing here waits inside MPI. Requests are tested, again and again, with pauses so that more processes
// than cores get on, until the deadline; and with them an ear for the word of a process that gives up. So a
// process that has died or stands still costs the others no more than their deadline. Only MPI_Init and
// MPI_Finalize wait by themselves: the one comes before anything can be lost, the other has an alarm.
//
// Used by one thread at a time (MPI_THREAD_SERIALIZED): by the device's while it runs, else by the main one.
#include <mpi.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/transport.h"
#include "solver/model/deadline.h"
#include "solver/model/number.h"

#ifdef MPICH_VERSION
const char *const zb_mpi_name = "mpich";
#else
const char *const zb_mpi_name = "yes";
#endif

enum { GAVE_UP, SAID }; // tags between ears: ends its waits; has also said why

// How often a wait tests before it makes room for others, and before it sleeps.
enum { LOOKS = 50, YIELDS = 50 };

// What a process that gave up waits for the others' words at most, and a goodbye for its end.
static const int64_t moment_ns = INT64_C(250000000);
static const int64_t goodbye_ns = INT64_C(1000000000);

enum { HOST_LENGTH = 128 };

// What each process tells all others when it joins.
struct seat {
  char host[HOST_LENGTH];
  uint64_t digest;
  int64_t process;
};

struct hub {
  MPI_Comm labels, data, ears; // apart, so that none is taken for another
  int rank, size;
  struct seat *seat; // [size] after join
  MPI_Request ear;
  bool listens;
  bool abandoned, gave_up; // by any process; by this one, which has told the others
  int said;                // processes that have said why
};

// One end's view of a message.
struct claim {
  int32_t kind, stage, microbatch, unused;
  int64_t bytes, posted_ns;
};

struct posted {
  struct claim mine, theirs;
  int64_t delay_ns, ready_ns;
  MPI_Request request[3]; // mine out, theirs in, data
  bool receives, near;
};
_Static_assert(sizeof(struct posted) <= sizeof((struct zb_ticket *)0)->room, "a ticket has room");

static enum zb_status fail_mpi(struct zb_error *error, int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown";
  int length = 0;
  MPI_Error_string(code, text, &length);
  text[strcspn(text, "\n")] = '\0';
  return zb_fail(error, ZB_FAILED, "MPI: %.200s", text);
}

static void listen(struct hub *hub) {
  hub->listens =
      MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, hub->ears, &hub->ear) == MPI_SUCCESS;
}

// Takes in what has been called out.
static void hear(struct hub *hub) {
  int there = 1;
  while (hub->listens && there) {
    MPI_Status status;
    if (MPI_Test(&hub->ear, &there, &status) != MPI_SUCCESS) hub->listens = false;
    if (!hub->listens || !there) return;
    hub->abandoned = true;
    hub->said += status.MPI_TAG == SAID;
    listen(hub);
  }
}

// To all others; they need not be there to take it.
static void call_out(struct hub *hub, int tag) {
  for (int peer = 0; peer < hub->size; peer++) {
    MPI_Request request;
    if (peer != hub->rank && MPI_Isend(NULL, 0, MPI_BYTE, peer, tag, hub->ears, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

static void pause_between(int look) {
  if (look < LOOKS) return;
  struct timespec shortly = {0, 20000};
  if (look < LOOKS + YIELDS)
    sched_yield();
  else
    nanosleep(&shortly, NULL);
}

// Until all requests are done, the deadline has come, or another process gives up. Done ones become
// MPI_REQUEST_NULL, so that a later call goes on where this one ended.
static enum zb_status wait_requests(struct hub *hub, int count, MPI_Request *request, int64_t deadline_ns,
                                    struct zb_error *error) {
  for (int look = 0;; look++) {
    int done = 0;
    for (int k = 0; k < count; k++) {
      int ended = 0;
      int code = MPI_Test(&request[k], &ended, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) return fail_mpi(error, code);
      done += ended != 0;
    }
    if (done == count) return ZB_OK;
    if (look % 16 == 0) hear(hub);
    if (hub->abandoned) return zb_fail(error, ZB_FAILED, ZB_GAVE_UP);
    if (zb_clock_ns() >= deadline_ns) return zb_fail(error, ZB_FAILED, "nothing came in time");
    pause_between(look);
  }
}

static enum zb_status poll_messages(void *endpoint, struct zb_error *error) {
  struct hub *hub = endpoint;
  hear(hub);
  return hub->abandoned ? zb_fail(error, ZB_FAILED, ZB_GAVE_UP) : ZB_OK;
}

static void abandon(void *shared) {
  struct hub *hub = shared;
  if (!hub->gave_up) call_out(hub, GAVE_UP);
  hub->gave_up = hub->abandoned = true;
}

// MPI_Finalize waits for others without a deadline: for one that has died since the last agreement, and over
// TCP, in MPICH 4.0, now and then for nothing. By then nothing is left to do, so the process ends without it.
struct goodbye {
  pthread_mutex_t lock;
  pthread_cond_t over;
  bool finalized;
  int exit_code;
};

static void *limit_goodbye(void *argument) {
  struct goodbye *goodbye = argument;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(goodbye_ns / 1000000000);
  pthread_mutex_lock(&goodbye->lock);
  while (!goodbye->finalized)
    if (pthread_cond_timedwait(&goodbye->over, &goodbye->lock, &until) == ETIMEDOUT && !goodbye->finalized)
      _exit(goodbye->exit_code);
  pthread_mutex_unlock(&goodbye->lock);
  return NULL;
}

static void finalize(struct hub *hub, enum zb_status status) {
  struct goodbye goodbye = {.exit_code = zb_status_exit_code(status)};
  pthread_mutex_init(&goodbye.lock, NULL);
  pthread_cond_init(&goodbye.over, NULL);
  pthread_t limit;
  bool limited = pthread_create(&limit, NULL, limit_goodbye, &goodbye) == 0;
  if (hub->listens) {
    MPI_Cancel(&hub->ear);
    MPI_Wait(&hub->ear, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&hub->labels);
  MPI_Comm_free(&hub->data);
  MPI_Comm_free(&hub->ears);
  MPI_Finalize();
  pthread_mutex_lock(&goodbye.lock);
  goodbye.finalized = true;
  pthread_cond_signal(&goodbye.over);
  pthread_mutex_unlock(&goodbye.lock);
  if (limited) pthread_join(limit, NULL);
  pthread_cond_destroy(&goodbye.over);
  pthread_mutex_destroy(&goodbye.lock);
}

static void leave(void *shared, enum zb_status status) {
  struct hub *hub = shared;
  if (!hub) return;
  if (hub->abandoned) {
    // Their messages may still be under way into memory of this process, and MPI_Finalize might wait for a
    // dead one: the process just ends.
    call_out(hub, SAID);
    int64_t until_ns = zb_clock_ns() + moment_ns;
    for (int look = 0; hub->said < hub->size - 1 && zb_clock_ns() < until_ns; look++) {
      hear(hub);
      pause_between(look);
    }
  } else {
    finalize(hub, status);
  }
  free(hub->seat);
  free(hub);
}

static enum zb_status start(void **shared, struct zb_error *error) {
  struct hub *hub = calloc(1, sizeof *hub);
  if (!hub) return zb_fail_memory(error);
  int level = MPI_THREAD_SINGLE;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
  if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &hub->labels);
  if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &hub->data);
  if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &hub->ears);
  if (code != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED) {
    free(hub);
    return code == MPI_SUCCESS ? zb_fail(error, ZB_FAILED, "this MPI allows no second thread")
                               : zb_fail(error, ZB_FAILED, "MPI_Init failed");
  }
  MPI_Comm_set_errhandler(hub->labels, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(hub->data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(hub->ears, MPI_ERRORS_RETURN);
  MPI_Comm_rank(hub->ears, &hub->rank);
  MPI_Comm_size(hub->ears, &hub->size);
  listen(hub);
  *shared = hub;
  return ZB_OK;
}

// all[size * bytes] of what every process gives.
static enum zb_status gather_all(struct hub *hub, const void *mine, int bytes, void *all, int64_t deadline_ns,
                                 struct zb_error *error) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, hub->labels, &request);
  if (code != MPI_SUCCESS) return fail_mpi(error, code);
  enum zb_status status = wait_requests(hub, 1, &request, deadline_ns, error);
  // It may still be written to: this process ends soon, and the memory with it.
  if (status != ZB_OK) abandon(hub);
  return status;
}

static enum zb_status agree(void *shared, enum zb_status mine, int64_t deadline_ns, struct zb_error *error) {
  struct hub *hub = shared;
  if (hub->abandoned) return mine != ZB_OK ? mine : zb_fail(error, ZB_FAILED, ZB_GAVE_UP);
  int32_t *all = calloc((size_t)hub->size + 1, sizeof *all);
  if (!all) return zb_fail_memory(error);
  struct zb_error unheard = {0};
  all[hub->size] = (int32_t)mine;
  enum zb_status status =
      gather_all(hub, &all[hub->size], (int)sizeof *all, all, deadline_ns, mine == ZB_OK ? error : &unheard);
  if (status != ZB_OK) return mine != ZB_OK ? mine : status;
  int first = 0;
  while (first < hub->size && all[first] == ZB_OK) first++;
  status = first < hub->size ? (enum zb_status)all[first] : ZB_OK;
  if (error && first < hub->size && first != hub->rank) *error = (struct zb_error){.status = status};
  free(all);
  return status;
}

static enum zb_status join(void *shared, int devices, uint64_t digest, int64_t deadline_ns, int *first_device,
                           int *count, struct zb_error *error) {
  struct hub *hub = shared;
  struct seat *seats = calloc((size_t)hub->size + 1, sizeof *seats);
  if (!seats) return zb_fail_memory(error);
  struct seat *mine = &seats[hub->size];
  mine->digest = digest;
  mine->process = (int64_t)getpid();
  gethostname(mine->host, sizeof mine->host - 1);
  enum zb_status status = gather_all(hub, mine, (int)sizeof *mine, seats, deadline_ns, error);
  if (status != ZB_OK) return status;
  free(hub->seat);
  hub->seat = seats;
  int other = 0;
  while (other < hub->size && seats[other].digest == seats[0].digest) other++;
  if (hub->size != devices)
    status =
        zb_fail(error, ZB_BAD_INPUT, "the launcher started %d processes, the program is for %d: mpirun -n %d",
                hub->size, devices, devices);
  else if (other < hub->size)
    status = zb_fail(error, ZB_BAD_INPUT,
                     "device %d on %s has another program, model, data, option or build than device 0 on %s",
                     other, seats[other].host, seats[0].host);
  if (status != ZB_OK) {
    if (error && hub->rank) *error = (struct zb_error){.status = status};
    return status;
  }
  *first_device = hub->rank;
  *count = 1;
  return ZB_OK;
}

static void table(void *shared, struct zb_text *out) {
  const struct hub *hub = shared;
  for (int d = 0; d < hub->size; d++)
    zb_text_print(out, "device %d: rank %d of %d, process %lld on %s\n", d, d, hub->size,
                  (long long)hub->seat[d].process, hub->seat[d].host);
}

static bool is_near(void *shared, int device) {
  const struct hub *hub = shared;
  return strcmp(hub->seat[device].host, hub->seat[hub->rank].host) == 0;
}

static int seat(void *shared, int device) {
  const struct hub *hub = shared;
  int before = 0;
  for (int d = 0; d < device; d++) before += strcmp(hub->seat[d].host, hub->seat[device].host) == 0;
  return before;
}

static enum zb_status open_endpoint(void *shared, int device, const struct zb_mover *mover, void **endpoint,
                                    struct zb_error *error) {
  (void)device, (void)mover, (void)error;
  *endpoint = shared;
  return ZB_OK;
}

static void close_endpoint(void *endpoint) { (void)endpoint; }

static enum zb_status post(struct hub *hub, int peer, struct zb_label label, void *data, size_t bytes,
                           bool receives, struct zb_ticket *ticket, struct zb_error *error) {
  assert(!ticket->posted);
  if (bytes > INT_MAX)
    return zb_fail(error, ZB_BAD_INPUT, "%zu bytes are more than a message may have", bytes);
  struct posted *entry = (void *)ticket->room;
  *entry = (struct posted){
      .mine = {label.kind, label.stage, label.microbatch, 0, (int64_t)bytes, zb_clock_ns()},
      .delay_ns = receives ? label.delay_ns : 0,
      .request = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL},
      .receives = receives,
      .near = is_near(hub, peer),
  };
  ticket->posted = true;
  int size = (int)sizeof entry->mine;
  int code = MPI_Irecv(&entry->theirs, size, MPI_BYTE, peer, receives, hub->labels, &entry->request[1]);
  if (code == MPI_SUCCESS)
    code = MPI_Isend(&entry->mine, size, MPI_BYTE, peer, !receives, hub->labels, &entry->request[0]);
  if (code == MPI_SUCCESS)
    code = receives ? MPI_Irecv(data, (int)bytes, MPI_BYTE, peer, 0, hub->data, &entry->request[2])
                    : MPI_Isend(data, (int)bytes, MPI_BYTE, peer, 0, hub->data, &entry->request[2]);
  return code == MPI_SUCCESS ? ZB_OK : fail_mpi(error, code);
}

static enum zb_status send_message(void *endpoint, int peer, struct zb_label label, const void *data,
                                   size_t bytes, void *after, struct zb_ticket *ticket,
                                   struct zb_error *error) {
  (void)after;
  // post is for either direction, so it cannot promise const; a send's data is only read.
  union {
    const void *given;
    void *kept;
  } source = {.given = data};
  return post(endpoint, peer, label, source.kept, bytes, false, ticket, error);
}

static enum zb_status receive_message(void *endpoint, int peer, struct zb_label label, void *data,
                                      size_t bytes, void *after, struct zb_ticket *ticket,
                                      struct zb_error *error) {
  (void)after;
  return post(endpoint, peer, label, data, bytes, true, ticket, error);
}

static bool agrees(const struct claim *a, const struct claim *b) {
  return a->kind == b->kind && a->stage == b->stage && a->microbatch == b->microbatch && a->bytes == b->bytes;
}

static enum zb_status wait_message(void *endpoint, struct zb_ticket *ticket, int64_t deadline_ns,
                                   void **event, struct zb_error *error) {
  struct hub *hub = endpoint;
  struct posted *entry = (void *)ticket->room;
  *event = NULL;
  if (!ticket->posted) return ZB_OK;
  // The labels first: of data that is longer than its place MPI makes an error.
  enum zb_status status = wait_requests(hub, 2, entry->request, deadline_ns, error);
  bool differs = status == ZB_OK && !agrees(&entry->mine, &entry->theirs);
  if (status == ZB_OK) status = wait_requests(hub, 1, &entry->request[2], deadline_ns, error);
  if (differs) return zb_fail(error, ZB_WRONG, "the other end has another message in this place");
  if (status != ZB_OK) return status;
  if (entry->delay_ns) {
    // Clocks of different machines have nothing to do with each other.
    int64_t both_ns = entry->near ? zb_max(entry->mine.posted_ns, entry->theirs.posted_ns) : zb_clock_ns();
    if (!entry->ready_ns) entry->ready_ns = both_ns + entry->delay_ns;
    struct timespec until = {.tv_sec = (time_t)(zb_min(entry->ready_ns, deadline_ns) / 1000000000),
                             .tv_nsec = (long)(zb_min(entry->ready_ns, deadline_ns) % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
    if (entry->ready_ns > deadline_ns) return zb_fail(error, ZB_FAILED, "nothing came in time");
  }
  ticket->posted = false;
  return ZB_OK;
}

const struct zb_transport zb_transport_mpi = {
    .name = "mpi",
    .help = "a process a device, started by mpirun or srun",
    .apart = true,
    .host_memory = true,
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
