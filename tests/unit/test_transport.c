// What every transport must do, each device as a thread or wherever the transport puts it: order, sizes, many
// messages under way, and how waits end that no message ends.
//
// `test_transport mpi NAME`, started by mpirun with that script's number of processes, plays it over MPI
// (tests/mpi_test.sh).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "runtime/transport.h"
#include "solver/model/deadline.h"
#include "tests/unit/unit.h"

static int64_t after_ms(int64_t ms) { return zb_clock_ns() + ms * 1000000; }

struct actor {
  const struct zb_transport *transport;
  void *shared, *endpoint;
  int device, devices;
  void (*script)(struct actor *actor);
  char failed[1024]; // cmocka's own checks may only be used by its thread
};

#define require(condition, ...)                                                                              \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      snprintf(actor->failed, sizeof actor->failed, __VA_ARGS__);                                            \
      return;                                                                                                \
    }                                                                                                        \
  } while (0)

static void *act(void *argument) {
  struct actor *actor = argument;
  actor->script(actor);
  return NULL;
}

// False where a device failed; its words are on standard error.
static bool played(const struct zb_transport *transport, int devices, void (*script)(struct actor *actor)) {
  struct actor actors[16];
  pthread_t threads[16];
  void *shared = NULL;
  int first = 0, count = 0;
  struct zb_error error = {0};
  bool well = true;
  if (transport->start(&shared, &error) != ZB_OK ||
      transport->join(shared, devices, 1, after_ms(20000), &first, &count, &error) != ZB_OK) {
    fprintf(stderr, "%s\n", error.text);
    return false;
  }
  for (int k = 0; k < count; k++) {
    actors[k] = (struct actor){
        .transport = transport, .shared = shared, .device = first + k, .devices = devices, .script = script};
    well = transport->open(shared, first + k, NULL, &actors[k].endpoint, NULL) == ZB_OK && well;
    well = pthread_create(&threads[k], NULL, act, &actors[k]) == 0 && well;
  }
  for (int k = 0; k < count; k++) pthread_join(threads[k], NULL);
  for (int k = 0; k < count; k++) transport->close(actors[k].endpoint);
  for (int k = 0; k < count; k++) {
    if (!actors[k].failed[0]) continue;
    fprintf(stderr, "%s, device %d: %s\n", transport->name, actors[k].device, actors[k].failed);
    well = false;
  }
  // Before it leaves, and a moment before: a launcher may end the others then, and lose what they said.
  if (transport->apart) {
    const struct timespec moment = {0, 500000000};
    printf("%s\n", well ? "passed" : "failed");
    fflush(stdout);
    nanosleep(&moment, NULL);
  }
  transport->leave(shared, ZB_OK);
  return well;
}

static void play(int devices, void (*script)(struct actor *actor)) {
  assert_true(played(&zb_transport_threads, devices, script));
}

// Every device sends to every other, a few hundred messages of random sizes, several under way at once; each
// must arrive whole and in order.
enum { MESSAGES = 300, WINDOW = 4, LARGEST = 5000 };

static size_t size_of(int from, int to, int k) {
  uint64_t random = zb_random_mix((uint64_t)(from * 16 + to), (uint64_t)k);
  return random % 8 == 0 ? 0 : random % LARGEST;
}

static unsigned char byte_of(int from, int to, int k, size_t at) {
  return (unsigned char)(zb_random_mix((uint64_t)(from * 16 + to), (uint64_t)k) + at);
}

struct way {
  unsigned char data[WINDOW][LARGEST];
  struct zb_ticket ticket[WINDOW];
};

static void check_order(struct actor *actor) {
  const struct zb_transport *t = actor->transport;
  int n = actor->devices, me = actor->device;
  struct way *out = calloc((size_t)n, sizeof *out), *in = calloc((size_t)n, sizeof *in);
  require(out && in, "no memory");
  struct zb_error error = {0};
  void *event;
  for (int k = 0; k < MESSAGES + WINDOW; k++) {
    for (int peer = 0; peer < n; peer++) {
      int slot = k % WINDOW, old = k - WINDOW;
      if (peer == me) continue;
      if (old >= 0) {
        require(t->wait(actor->endpoint, &in[peer].ticket[slot], after_ms(20000), &event, &error) == ZB_OK,
                "%s", error.text);
        for (size_t at = 0; at < size_of(peer, me, old); at++)
          require(in[peer].data[slot][at] == byte_of(peer, me, old, at), "message %d from %d is wrong at %zu",
                  old, peer, at);
        require(t->wait(actor->endpoint, &out[peer].ticket[slot], after_ms(20000), &event, &error) == ZB_OK,
                "%s", error.text);
      }
      if (k >= MESSAGES) continue;
      for (size_t at = 0; at < size_of(me, peer, k); at++)
        out[peer].data[slot][at] = byte_of(me, peer, k, at);
      // Odd devices post their receives first.
      for (int turn = 0; turn < 2; turn++) {
        struct zb_label label = {.kind = 1, .microbatch = k};
        if ((turn == 0) == (me % 2 == 0))
          require(t->send(actor->endpoint, peer, label, out[peer].data[slot], size_of(me, peer, k), NULL,
                          &out[peer].ticket[slot], &error) == ZB_OK,
                  "%s", error.text);
        else
          require(t->receive(actor->endpoint, peer, label, in[peer].data[slot], size_of(peer, me, k), NULL,
                             &in[peer].ticket[slot], &error) == ZB_OK,
                  "%s", error.text);
      }
    }
  }
  free(out);
  free(in);
}

static void test_order(void **state) {
  (void)state;
  for (int devices = 2; devices <= 5; devices += 3) play(devices, check_order);
}

// Nobody sends: the wait ends at its deadline, not before and not long after, and can be had again.
static void check_deadline(struct actor *actor) {
  if (actor->device != 0) return;
  char data[8];
  struct zb_ticket ticket = {.posted = false};
  struct zb_error error = {0};
  void *event;
  actor->transport->receive(actor->endpoint, 1, (struct zb_label){0}, data, sizeof data, NULL, &ticket,
                            &error);
  for (int turn = 0; turn < 2; turn++) {
    int64_t start_ns = zb_clock_ns();
    enum zb_status status = actor->transport->wait(actor->endpoint, &ticket, after_ms(100), &event, &error);
    int64_t took_ms = (zb_clock_ns() - start_ns) / 1000000;
    require(status == ZB_FAILED && strstr(error.text, "in time"), "status %d: %s", status, error.text);
    require(took_ms >= 99 && took_ms < 2000, "took %lld ms", (long long)took_ms);
  }
}

static void test_deadline(void **state) {
  (void)state;
  play(2, check_deadline);
}

// One gives up: the others stop waiting long before their deadline.
static void check_abandon(struct actor *actor) {
  char data[8];
  struct zb_ticket ticket = {.posted = false};
  struct zb_error error = {0};
  void *event;
  if (actor->device == 0) {
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    actor->transport->abandon(actor->shared);
    return;
  }
  int64_t start_ns = zb_clock_ns();
  actor->transport->receive(actor->endpoint, 0, (struct zb_label){0}, data, sizeof data, NULL, &ticket,
                            &error);
  enum zb_status status = actor->transport->wait(actor->endpoint, &ticket, after_ms(60000), &event, &error);
  require(status == ZB_FAILED && strstr(error.text, ZB_GAVE_UP), "status %d: %s", status, error.text);
  require(zb_clock_ns() - start_ns < INT64_C(5000000000), "waited on");
}

static void test_abandon(void **state) {
  (void)state;
  play(3, check_abandon);
}

// The ends disagree about what comes, in label or in size: both are told, and neither takes it for the other.
static void check_disagreement(struct actor *actor) {
  for (int what = 0; what < 2; what++) {
    char data[16] = {0};
    struct zb_ticket ticket = {.posted = false};
    struct zb_error error = {0};
    struct zb_label label = {.kind = 1, .stage = 2, .microbatch = what == 0 ? actor->device : 3};
    size_t bytes = what == 1 && actor->device == 0 ? 8 : 16;
    void *event;
    if (actor->device == 0)
      actor->transport->send(actor->endpoint, 1, label, data, bytes, NULL, &ticket, &error);
    else
      actor->transport->receive(actor->endpoint, 0, label, data, bytes, NULL, &ticket, &error);
    enum zb_status status = actor->transport->wait(actor->endpoint, &ticket, after_ms(20000), &event, &error);
    require(status == ZB_WRONG, "status %d: %s", status, error.text);
  }
}

static void test_disagreement(void **state) {
  (void)state;
  play(2, check_disagreement);
}

// A pretended delay holds the receiver, for as long as it says, and not the sender.
static void check_delay(struct actor *actor) {
  char data[8] = {0};
  struct zb_ticket ticket = {.posted = false};
  struct zb_error error = {0};
  struct zb_label label = {.delay_ns = actor->device == 0 ? 0 : 100000000};
  void *event;
  int64_t start_ns = zb_clock_ns();
  if (actor->device == 0)
    actor->transport->send(actor->endpoint, 1, label, data, sizeof data, NULL, &ticket, &error);
  else
    actor->transport->receive(actor->endpoint, 0, label, data, sizeof data, NULL, &ticket, &error);
  enum zb_status status = actor->transport->wait(actor->endpoint, &ticket, after_ms(20000), &event, &error);
  require(status == ZB_OK, "%s", error.text);
  if (actor->device == 1) require(zb_clock_ns() - start_ns >= 99000000, "early");
}

static void test_delay(void **state) {
  (void)state;
  play(2, check_delay);
}

static const struct {
  const char *name;
  int devices;
  void (*script)(struct actor *actor);
} scripts[] = {
    {"order", 5, check_order},           {"deadline", 2, check_deadline}, {"abandon", 3, check_abandon},
    {"disagree", 2, check_disagreement}, {"delay", 2, check_delay},
};

static int play_mpi(const char *name) {
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++)
    if (strcmp(scripts[k].name, name) == 0) {
      return !played(&zb_transport_mpi, scripts[k].devices, scripts[k].script);
    }
  return 2;
}

int main(int count, char **arguments) {
  if (count == 3 && strcmp(arguments[1], "mpi") == 0) return play_mpi(arguments[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),        cmocka_unit_test(test_deadline), cmocka_unit_test(test_abandon),
      cmocka_unit_test(test_disagreement), cmocka_unit_test(test_delay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
