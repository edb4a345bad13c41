// The nccl transport on the stand-in device: what arrives, in which order, whatever the device does first;
// what is refused before anything is connected; how it ends when a device gives up, a communicator fails or a
// peer is not seen any more; and that any call may fail.
//
// `test_nccl mpi NAME`, started by mpirun with that script's number of processes, plays it with a process a
// device (tests/nccl_test.sh); ZB_STANDIN sets the device up then.
#include <nccl.h> // a build without it leaves this test out
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/edges.h"
#include "runtime/random.h"
#include "runtime/transport.h"
#include "solver/model/deadline.h"
#include "tests/standin/standin.h"
#include "tests/unit/unit.h"

enum { DEVICES_MOST = 8, MESSAGES = 24, WINDOW = 3, LARGEST = 96 };

static int64_t after_ms(int64_t ms) { return zb_clock_ns() + ms * 1000000; }

struct actor {
  const struct zb_transport *transport;
  void *shared, *endpoint;
  int device, devices;
  cudaStream_t compute;
  void (*script)(struct actor *actor);
  void *memory[8 * DEVICES_MOST]; // of the device and pinned, freed at the end
  bool pinned[8 * DEVICES_MOST];
  int memories;
  cudaEvent_t event[2 * WINDOW * DEVICES_MOST];
  int events;
  char failed[1024]; // cmocka's own checks may only be used by its thread
};

#define require(condition, ...)                                                                              \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      snprintf(actor->failed, sizeof actor->failed, __VA_ARGS__);                                            \
      return;                                                                                                \
    }                                                                                                        \
  } while (0)
#define require_cuda(call)                                                                                   \
  do {                                                                                                       \
    cudaError_t code_ = (call);                                                                              \
    require(code_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(code_));                               \
  } while (0)

static void *act(void *argument) {
  struct actor *actor = argument;
  actor->script(actor);
  if (actor->failed[0]) actor->transport->abandon(actor->shared);
  return NULL;
}

static void *memory_of(struct actor *actor, size_t bytes, bool pinned) {
  void *got = NULL;
  cudaError_t code = pinned ? cudaMallocHost(&got, bytes) : cudaMalloc(&got, bytes);
  if (code != cudaSuccess) return NULL;
  actor->memory[actor->memories] = got;
  actor->pinned[actor->memories++] = pinned;
  return got;
}

static cudaEvent_t event_of(struct actor *actor) {
  cudaEvent_t event = NULL;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return NULL;
  actor->event[actor->events++] = event;
  return event;
}

static bool begin(struct actor *actor) {
  return cudaSetDevice(actor->device) == cudaSuccess &&
         cudaStreamCreateWithFlags(&actor->compute, cudaStreamNonBlocking) == cudaSuccess;
}

// What was on the device is over: its messages are cut, or done.
static void end(struct actor *actor) {
  if (actor->compute) {
    cudaStreamSynchronize(actor->compute);
    cudaStreamDestroy(actor->compute);
  }
  for (int k = 0; k < actor->events; k++) cudaEventDestroy(actor->event[k]);
  for (int k = 0; k < actor->memories; k++)
    if (actor->pinned[k])
      cudaFreeHost(actor->memory[k]);
    else
      cudaFree(actor->memory[k]);
}

// Until the device is done, another gives up, or the deadline.
static enum zb_status finish(struct actor *actor, int64_t deadline_ns, struct zb_error *error) {
  for (;;) {
    cudaError_t code = cudaStreamQuery(actor->compute);
    if (code == cudaSuccess) return ZB_OK;
    if (code != cudaErrorNotReady) return zb_fail(error, ZB_FAILED, "%s", cudaGetErrorString(code));
    enum zb_status status = actor->transport->poll(actor->endpoint, error);
    if (status != ZB_OK) return status;
    if (zb_clock_ns() >= deadline_ns) return zb_fail(error, ZB_FAILED, "in time");
    const struct timespec shortly = {0, 20000};
    nanosleep(&shortly, NULL);
  }
}

// Every device to every other.
static size_t all_edges(int devices, struct zb_edge *edge) {
  size_t edges = 0;
  for (int from = 0; from < devices; from++)
    for (int to = 0; to < devices; to++)
      if (from != to) edge[edges++] = (struct zb_edge){from, to};
  return edges;
}

struct play {
  const struct zb_transport *transport;
  int devices;
  void (*script)(struct actor *actor);
  int64_t timeout_ns;    // 0: 10 s
  bool quiet;            // it is to fail
  struct zb_error error; // of starting and connecting, else of a script
};

// What becomes of starting, joining and connecting; and where that is well, whether every device's script
// was. The words of what was not are on standard error.
static bool played(struct play *play) {
  const struct zb_transport *t = play->transport;
  struct actor *actors = calloc((size_t)play->devices, sizeof *actors);
  pthread_t threads[DEVICES_MOST];
  struct zb_edge edge[DEVICES_MOST * DEVICES_MOST];
  size_t edges = all_edges(play->devices, edge);
  void *shared = NULL;
  int first = 0, count = 0, started = 0;
  enum zb_status status = t->start(&shared, &play->error);
  if (status == ZB_OK)
    status = t->join(shared, play->devices, 1, after_ms(20000), &first, &count, &play->error);
  if (status == ZB_OK)
    status = t->connect(shared, edge, edges, play->timeout_ns ? play->timeout_ns : INT64_C(10000000000),
                        &play->error);
  if (status == ZB_OK || t->apart) {
    if (shared) status = t->agree(shared, status, after_ms(20000), &play->error);
  }
  bool well = status == ZB_OK;
  for (int k = 0; well && k < count; k++) {
    actors[k] = (struct actor){.transport = t,
                               .shared = shared,
                               .device = first + k,
                               .devices = play->devices,
                               .script = play->script};
    well = t->open(shared, first + k, NULL, &actors[k].endpoint, NULL) == ZB_OK &&
           pthread_create(&threads[k], NULL, act, &actors[k]) == 0;
    started += well;
  }
  for (int k = 0; k < started; k++) pthread_join(threads[k], NULL);
  for (int k = 0; k < started; k++) t->close(actors[k].endpoint);
  for (int k = 0; k < started; k++) {
    end(&actors[k]);
    if (!actors[k].failed[0]) continue;
    if (!play->quiet) fprintf(stderr, "device %d: %s\n", actors[k].device, actors[k].failed);
    // Whose reason is its own.
    if (!play->error.text[0] || strstr(play->error.text, ZB_GAVE_UP))
      zb_fail(&play->error, ZB_FAILED, "%s", actors[k].failed);
    well = false;
  }
  if (t->apart && shared) {
    // Before it leaves, and a moment before: a launcher may end the others then, and lose what they said.
    const struct timespec moment = {0, 500000000};
    if (play->error.text[0]) fprintf(stderr, "test_nccl: %s\n", play->error.text);
    printf("%s\n", well ? "passed" : "failed");
    fflush(stdout);
    nanosleep(&moment, NULL);
  }
  if (shared) t->leave(shared, ZB_OK);
  free(actors);
  return well;
}

static const char *when_word(enum zb_standin_when when) {
  return when == ZB_STANDIN_EAGER ? "eager" : when == ZB_STANDIN_LATE ? "late" : "random";
}

// With a stand-in device, which must have nothing to complain of at the end.
static bool played_on(const struct zb_standin *setup, struct play *play) {
  static char report[4096];
  zb_standin_begin(setup);
  bool well = played(play);
  bool clean = zb_standin_end(report, sizeof report);
  if (!well || !clean)
    fprintf(stderr, "seed %llu, %s: %s\n", (unsigned long long)setup->seed, when_word(setup->when),
            clean ? "" : report);
  return well && clean;
}

static uint64_t rounds(void) { return getenv("ZB_LONG") ? 300 : 6; }

static void play_all(int devices, void (*script)(struct actor *actor)) {
  for (uint64_t seed = 1; seed <= rounds(); seed++)
    for (int when = ZB_STANDIN_RANDOM; when <= ZB_STANDIN_LATE; when++) {
      struct zb_standin setup = {.seed = seed, .when = (enum zb_standin_when)when};
      struct play play = {.transport = &zb_transport_nccl, .devices = devices, .script = script};
      assert_true(played_on(&setup, &play));
    }
}

// Every device sends to every other, several messages under way on each edge; their buffers are filled and
// read by the device, and used again and again, with nothing but events in between. A host message goes
// beside each.
static size_t size_of(int from, int to, int k) {
  uint64_t random = zb_random_mix((uint64_t)(from * 16 + to), (uint64_t)k);
  return random % 8 == 0 ? 0 : random % LARGEST;
}

static unsigned char byte_of(int from, int to, int k, size_t at) {
  return (unsigned char)(zb_random_mix((uint64_t)(from * 16 + to), (uint64_t)k) + at);
}

struct way {
  unsigned char *filled, *seen; // pinned [MESSAGES][LARGEST]
  char *there[WINDOW];          // on the device
  cudaEvent_t event[WINDOW];
  struct zb_ticket ticket[WINDOW];
  double line[2];
  struct zb_ticket line_ticket;
};

static bool open_way(struct actor *actor, struct way *way) {
  way->filled = memory_of(actor, (size_t)MESSAGES * LARGEST, true);
  way->seen = way->filled;
  bool all = way->filled != NULL;
  char *there = memory_of(actor, (size_t)WINDOW * LARGEST, false);
  for (int k = 0; k < WINDOW; k++) {
    way->there[k] = there + (size_t)k * LARGEST;
    way->event[k] = event_of(actor);
    all = all && way->event[k];
  }
  return all && there;
}

// Hands the slot's event back to the compute stream.
static void settle_slot(struct actor *actor, struct way *way, int slot) {
  struct zb_error error = {0};
  void *event = NULL;
  require(actor->transport->wait(actor->endpoint, &way->ticket[slot], after_ms(20000), &event, &error) ==
              ZB_OK,
          "%s", error.text);
  require(event == way->event[slot], "another event came back");
  require_cuda(cudaStreamWaitEvent(actor->compute, event, 0));
}

static void post_message(struct actor *actor, struct way *way, int peer, int k, bool sends) {
  const struct zb_transport *t = actor->transport;
  int me = actor->device, slot = k % WINDOW;
  size_t size = sends ? size_of(me, peer, k) : size_of(peer, me, k);
  struct zb_label label = {.kind = 1, .microbatch = k};
  struct zb_error error = {0};
  if (sends && size > 0)
    require_cuda(cudaMemcpyAsync(way->there[slot], way->filled + (size_t)k * LARGEST, size,
                                 cudaMemcpyHostToDevice, actor->compute));
  require_cuda(cudaEventRecord(way->event[slot], actor->compute));
  enum zb_status status = sends ? t->send(actor->endpoint, peer, label, way->there[slot], size,
                                          way->event[slot], &way->ticket[slot], &error)
                                : t->receive(actor->endpoint, peer, label, way->there[slot], size,
                                             way->event[slot], &way->ticket[slot], &error);
  require(status == ZB_OK, "%s", error.text);
}

static void post_line(struct actor *actor, struct way *way, int peer, int k, bool sends) {
  const struct zb_transport *t = actor->transport;
  struct zb_label label = {.kind = 3, .microbatch = k};
  struct zb_error error = {0};
  void *event;
  require(t->wait(actor->endpoint, &way->line_ticket, after_ms(20000), &event, &error) == ZB_OK, "%s",
          error.text);
  require(!event, "a message in host memory has an event");
  if (!sends && k > 0)
    require(way->line[0] == peer && way->line[1] == k - 1, "line %d from %d is %g %g", k - 1, peer,
            way->line[0], way->line[1]);
  if (k == MESSAGES) return;
  if (sends) {
    way->line[0] = actor->device;
    way->line[1] = k;
  }
  enum zb_status status = sends ? t->send(actor->endpoint, peer, label, way->line, sizeof way->line, NULL,
                                          &way->line_ticket, &error)
                                : t->receive(actor->endpoint, peer, label, way->line, sizeof way->line, NULL,
                                             &way->line_ticket, &error);
  require(status == ZB_OK, "%s", error.text);
}

static void move_all(struct actor *actor, struct way *out, struct way *in) {
  int n = actor->devices, me = actor->device;
  for (int k = 0; k < MESSAGES + WINDOW; k++)
    for (int turn = 0; turn < 2 * n; turn++) {
      // Odd devices post their receives first.
      int peer = turn / 2, slot = k % WINDOW, old = k - WINDOW;
      bool sends = (turn % 2 == 0) == (me % 2 == 0);
      struct way *way = sends ? &out[peer] : &in[peer];
      if (peer == me) continue;
      if (old >= 0) settle_slot(actor, way, slot);
      if (old >= 0 && !sends && size_of(peer, me, old) > 0)
        require_cuda(cudaMemcpyAsync(way->seen + (size_t)old * LARGEST, way->there[slot],
                                     size_of(peer, me, old), cudaMemcpyDeviceToHost, actor->compute));
      if (k < MESSAGES && !actor->failed[0]) post_message(actor, way, peer, k, sends);
      if (k <= MESSAGES && !actor->failed[0]) post_line(actor, way, peer, k, sends);
      if (actor->failed[0]) return;
    }
}

static void check_order(struct actor *actor) {
  int n = actor->devices, me = actor->device;
  struct way out[DEVICES_MOST], in[DEVICES_MOST];
  memset(out, 0, sizeof out);
  memset(in, 0, sizeof in);
  require(begin(actor), "no stream");
  for (int peer = 0; peer < n; peer++) {
    if (peer == me) continue;
    require(open_way(actor, &out[peer]) && open_way(actor, &in[peer]), "no memory");
    for (int k = 0; k < MESSAGES; k++)
      for (size_t at = 0; at < LARGEST; at++)
        out[peer].filled[(size_t)k * LARGEST + at] = byte_of(me, peer, k, at);
  }
  move_all(actor, out, in);
  struct zb_error error = {0};
  if (!actor->failed[0]) require(finish(actor, after_ms(20000), &error) == ZB_OK, "%s", error.text);
  for (int peer = 0; !actor->failed[0] && peer < n; peer++)
    for (int k = 0; peer != me && k < MESSAGES; k++)
      for (size_t at = 0; at < size_of(peer, me, k); at++)
        require(in[peer].seen[(size_t)k * LARGEST + at] == byte_of(peer, me, k, at),
                "message %d from %d is wrong at %zu", k, peer, at);
}

static void test_order(void **state) {
  (void)state;
  for (int devices = 2; devices <= 4; devices++) play_all(devices, check_order);
}

// A receive, into memory that is read when it has come.
static void expect_something(struct actor *actor, int peer, struct zb_ticket *ticket) {
  struct zb_error error = {0};
  char *there = memory_of(actor, 64, false);
  cudaEvent_t event = event_of(actor);
  require(there && event, "no memory");
  require_cuda(cudaEventRecord(event, actor->compute));
  require(actor->transport->receive(actor->endpoint, peer, (struct zb_label){.kind = 1}, there, 64, event,
                                    ticket, &error) == ZB_OK,
          "%s", error.text);
  void *back = NULL;
  require(actor->transport->wait(actor->endpoint, ticket, after_ms(1000), &back, &error) == ZB_OK, "%s",
          error.text);
  require_cuda(cudaStreamWaitEvent(actor->compute, back, 0));
}

// Nobody sends: the wait for the device ends at its deadline, and giving up ends what was under way.
static void check_deadline(struct actor *actor) {
  struct zb_ticket ticket = {.posted = false};
  struct zb_error error = {0};
  require(begin(actor), "no stream");
  if (actor->device != 0) return;
  expect_something(actor, 1, &ticket);
  if (actor->failed[0]) return;
  for (int turn = 0; turn < 2; turn++) {
    int64_t start_ns = zb_clock_ns();
    enum zb_status status = finish(actor, after_ms(100), &error);
    int64_t took_ms = (zb_clock_ns() - start_ns) / 1000000;
    require(status == ZB_FAILED && strcmp(error.text, "in time") == 0, "status %d: %s", status, error.text);
    require(took_ms >= 99 && took_ms < 2000, "took %lld ms", (long long)took_ms);
  }
  actor->transport->abandon(actor->shared);
  require(actor->transport->poll(actor->endpoint, &error) == ZB_FAILED, "nobody gave up");
}

static void test_deadline(void **state) {
  (void)state;
  struct zb_standin setup = {.seed = 1};
  struct play play = {.transport = &zb_transport_nccl, .devices = 2, .script = check_deadline};
  assert_true(played_on(&setup, &play));
}

// Nobody waits for what is under way: taking leave does.
static void check_farewell(struct actor *actor) {
  struct zb_ticket ticket[2] = {{.posted = false}, {.posted = false}};
  struct zb_error error = {0};
  int peer = 1 - actor->device;
  require(begin(actor), "no stream");
  char *there = memory_of(actor, 64, false);
  cudaEvent_t event = event_of(actor);
  require(there && event, "no memory");
  require_cuda(cudaMemsetAsync(there, 7, 64, actor->compute));
  require_cuda(cudaEventRecord(event, actor->compute));
  require(actor->transport->send(actor->endpoint, peer, (struct zb_label){.kind = 1}, there, 64, event,
                                 &ticket[0], &error) == ZB_OK,
          "%s", error.text);
  expect_something(actor, peer, &ticket[1]);
}

static void test_farewell(void **state) {
  (void)state;
  play_all(2, check_farewell);
}

// One gives up: the others learn it while they wait for their devices, and those are free when they have
// taken leave (end).
static void check_abandon(struct actor *actor) {
  struct zb_ticket ticket = {.posted = false};
  struct zb_error error = {0};
  require(begin(actor), "no stream");
  if (actor->device == 0) {
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    actor->transport->abandon(actor->shared);
    return;
  }
  int64_t start_ns = zb_clock_ns();
  expect_something(actor, 0, &ticket);
  if (actor->failed[0]) return;
  enum zb_status status = finish(actor, after_ms(60000), &error);
  require(status == ZB_FAILED && strstr(error.text, ZB_GAVE_UP), "status %d: %s", status, error.text);
  require(zb_clock_ns() - start_ns < INT64_C(5000000000), "waited on");
  // What comes later is refused.
  struct zb_ticket late = {.posted = false};
  status = actor->transport->send(actor->endpoint, 0, (struct zb_label){.kind = 1}, actor->memory[0], 64,
                                  actor->event[0], &late, &error);
  require(status == ZB_FAILED, "a message was posted after that");
}

static void test_abandon(void **state) {
  (void)state;
  for (int when = ZB_STANDIN_RANDOM; when <= ZB_STANDIN_LATE; when++) {
    struct zb_standin setup = {.seed = 1, .when = (enum zb_standin_when)when};
    struct play play = {.transport = &zb_transport_nccl, .devices = 3, .script = check_abandon};
    assert_true(played_on(&setup, &play));
  }
}

// A communicator fails, or a peer is not seen any more, in the middle of it all: the one that notices says
// where, all end, and nothing is left.
static void check_faults(struct zb_standin setup, const char *words) {
  struct play play = {.transport = &zb_transport_nccl, .devices = 2, .script = check_order, .quiet = true};
  static char report[4096];
  zb_standin_begin(&setup);
  bool well = played(&play);
  bool happened = zb_standin_counts().faults > 0;
  bool clean = zb_standin_end(report, sizeof report);
  if (!clean) fprintf(stderr, "%s\n", report);
  assert_true(clean);
  assert_true(happened);
  assert_false(well);
  if (!strstr(play.error.text, words)) fprintf(stderr, "%s\n", play.error.text);
  assert_non_null(strstr(play.error.text, words));
}

static void test_asynchronous_error(void **state) {
  (void)state;
  // The first four are the edges' first messages.
  check_faults((struct zb_standin){.seed = 1, .fail_communicator = 3}, "the first message");
  check_faults((struct zb_standin){.seed = 1, .fail_communicator = 20}, " device ");
}

// The first message of an edge does not come: connecting ends in time, and says which.
static void test_no_first_message(void **state) {
  (void)state;
  struct zb_standin setup = {.seed = 1, .vanish = 1};
  struct play play = {.transport = &zb_transport_nccl,
                      .devices = 2,
                      .script = check_order,
                      .timeout_ns = INT64_C(300000000),
                      .quiet = true};
  static char report[4096];
  zb_standin_begin(&setup);
  assert_false(played(&play));
  assert_true(zb_standin_end(report, sizeof report));
  assert_int_equal(play.error.status, ZB_FAILED);
  assert_non_null(strstr(play.error.text, ": the first message "));
  assert_non_null(strstr(play.error.text, "in time"));
}

// Too few GPUs: one line, before anything is connected.
static void test_preflight(void **state) {
  (void)state;
  struct zb_standin setup = {.seed = 1, .devices = 2};
  struct play play = {.transport = &zb_transport_nccl, .devices = 4, .script = check_order, .quiet = true};
  static char report[4096];
  zb_standin_begin(&setup);
  assert_false(played(&play));
  assert_int_equal(play.error.status, ZB_BAD_INPUT);
  assert_non_null(strstr(play.error.text, "shows 2 GPUs to its 4 devices"));
  assert_non_null(strstr(play.error.text, "devices 0 and 2 would share"));
  assert_int_equal(zb_standin_counts().messages, 0);
  assert_true(zb_standin_end(report, sizeof report));

  setup.no_device = 1;
  play.error = (struct zb_error){.status = ZB_OK};
  zb_standin_begin(&setup);
  assert_false(played(&play));
  assert_int_equal(play.error.status, ZB_FAILED);
  assert_non_null(strstr(play.error.text, "cudaGetDeviceCount"));
  assert_true(zb_standin_end(report, sizeof report));
}

// Each call that can fail does, once: an error comes out, and nothing is left.
static void test_failing_calls(void **state) {
  (void)state;
  int64_t step = getenv("ZB_LONG") ? 1 : 7, failures = 0;
  for (int64_t n = 1;; n += step) {
    struct zb_standin setup = {.seed = (uint64_t)n, .fail_call = n};
    struct play play = {.transport = &zb_transport_nccl, .devices = 2, .script = check_order, .quiet = true};
    static char report[4096];
    zb_standin_begin(&setup);
    bool well = played(&play);
    bool happened = zb_standin_counts().faults > 0;
    bool clean = zb_standin_end(report, sizeof report);
    if (!clean) fprintf(stderr, "call %lld: %s\n", (long long)n, report);
    assert_true(clean);
    if (!happened) break;
    failures += !well;
  }
  assert_true(failures > 20);
}

// The edges of a program: each pair that a SEND_F or SEND_B names, once, in order.
static void test_edges(void **state) {
  (void)state;
  struct zb_instruction list[] = {
      {.kind = ZB_DO_SEND_F, .peer = 2}, {.kind = ZB_DO_SEND_F, .peer = 1},
      {.kind = ZB_DO_SEND_B, .peer = 2}, {.kind = ZB_DO_SEND_NORM, .peer = 1},
      {.kind = ZB_DO_RECV_F, .peer = 0}, {.kind = ZB_DO_SEND_B, .peer = 0},
  };
  size_t first[] = {0, 4, 5, 6};
  struct zb_program program = {.devices = 3, .first = first, .instructions = list};
  struct zb_edge *edge = NULL;
  size_t edges = 0;
  assert_int_equal(zb_edges_of(&program, &edge, &edges, NULL), ZB_OK);
  static const struct zb_edge wanted[] = {{0, 1}, {0, 2}, {2, 0}};
  assert_int_equal(edges, 3);
  for (size_t k = 0; k < 3; k++) {
    assert_int_equal(edge[k].from, wanted[k].from);
    assert_int_equal(edge[k].to, wanted[k].to);
  }
  free(edge);
}

static const struct {
  const char *name;
  int devices;
  void (*script)(struct actor *actor);
} scripts[] = {{"order", 4, check_order}, {"deadline", 2, check_deadline}, {"abandon", 3, check_abandon}};

static int play_mpi(const char *name) {
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++)
    if (strcmp(scripts[k].name, name) == 0) {
      struct play play = {
          .transport = &zb_transport_nccl_apart, .devices = scripts[k].devices, .script = scripts[k].script};
      return !played(&play);
    }
  return 2;
}

int main(int count, char **arguments) {
  if (count == 3 && strcmp(arguments[1], "mpi") == 0) return play_mpi(arguments[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_edges),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_abandon),
      cmocka_unit_test(test_preflight),
      cmocka_unit_test(test_farewell),
      cmocka_unit_test(test_no_first_message),
      cmocka_unit_test(test_asynchronous_error),
      cmocka_unit_test(test_failing_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
