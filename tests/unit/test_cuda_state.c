// What goes into the cuda backend and comes out of it beside steps, on the stand-in device: checkpoints, runs
// that go on from one, measured profiles, and messages that nobody has awaited when a state is closed.
//
// Each run has a seed of its own, which its failure names. ZB_LONG=1 runs more of them.
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/measure.h"
#include "runtime/straight.h"
#include "solver/model/deadline.h"
#include "tests/standin/standin.h"
#include "tests/unit/cuda_trial.h"

// The training up to `steps`, without a pipeline.
static struct zb_checkpoint *trained(struct trial *trial, int64_t steps, double *loss) {
  struct zb_standin setup = setup_of(seed_of_all, 1);
  struct zb_checkpoint *made = NULL;
  struct zb_error error = {0};
  trial->training.steps = steps;
  zb_standin_begin(&setup);
  expect(zb_straight_run(&trial->training, &zb_compute_cuda, 0, loss, &made, &error) == ZB_OK, "%s",
         error.text);
  expect_clean("without a pipeline");
  return made;
}

static void expect_same(const struct zb_checkpoint *got, const struct zb_checkpoint *wanted,
                        const char *what) {
  assert_true(got && wanted && got->count == wanted->count);
  expect_equal(got->step, wanted->step, what);
  expect_equal(got->made, wanted->made, what);
  expect(memcmp(got->values, wanted->values, 3 * got->count * sizeof *got->values) == 0, "%s: other numbers",
         what);
}

// The backend, but a wait for the device takes a millisecond more; and the transport. Events and messages are
// counted until they have been taken back and waited for, and a state is not stored before.
static const int64_t slower_ns = 1000000;
static _Thread_local int64_t mine_under_way;
static _Atomic int64_t taken, under_way;
static atomic_bool stored_early;

static void forget_events(void) {
  mine_under_way = 0;
  taken = 0;
  under_way = 0;
  stored_early = false;
}

static void count_event(int change) {
  mine_under_way += change;
  under_way += change;
  taken += change > 0;
}

static void expect_all_awaited(void) {
  expect(taken > 0, "no events");
  expect_equal(under_way, 0, "events and messages that nobody waited for");
  expect(!stored_early, "a state was stored with messages under way");
}

static enum zb_status slow_finish(void *state, int64_t deadline_ns, bool *done, struct zb_error *error) {
  const struct timespec slower = {0, slower_ns};
  nanosleep(&slower, NULL);
  return zb_compute_cuda.finish(state, deadline_ns, done, error);
}
static enum zb_status counted_record(void *state, void **event, struct zb_error *error) {
  count_event(1);
  return zb_compute_cuda.record(state, event, error);
}
static enum zb_status counted_await(void *state, void *event, struct zb_error *error) {
  count_event(-1);
  return zb_compute_cuda.await(state, event, error);
}
static enum zb_status counted_store(void *state, int stage, zb_real *values, int64_t *steps_made,
                                    struct zb_error *error) {
  if (mine_under_way) stored_early = true;
  return zb_compute_cuda.store(state, stage, values, steps_made, error);
}

static enum zb_status counted_send(void *endpoint, int peer, struct zb_label label, const void *data,
                                   size_t bytes, void *after, struct zb_ticket *ticket,
                                   struct zb_error *error) {
  count_event(1);
  return zb_transport_threads.send(endpoint, peer, label, data, bytes, after, ticket, error);
}
static enum zb_status counted_receive(void *endpoint, int peer, struct zb_label label, void *data,
                                      size_t bytes, void *after, struct zb_ticket *ticket,
                                      struct zb_error *error) {
  count_event(1);
  return zb_transport_threads.receive(endpoint, peer, label, data, bytes, after, ticket, error);
}
static enum zb_status counted_wait(void *endpoint, struct zb_ticket *ticket, int64_t deadline_ns,
                                   void **event, struct zb_error *error) {
  if (ticket->posted) count_event(-1);
  return zb_transport_threads.wait(endpoint, ticket, deadline_ns, event, error);
}

static struct zb_transport counted_transport(void) {
  struct zb_transport counted = zb_transport_threads;
  counted.send = counted_send;
  counted.receive = counted_receive;
  counted.wait = counted_wait;
  return counted;
}

static struct zb_compute counted_compute(void) {
  struct zb_compute counted = zb_compute_cuda;
  counted.record = counted_record;
  counted.await = counted_await;
  counted.store = counted_store;
  return counted;
}

// Half of a run, written and read again, and the other half on another number of devices.
static void test_checkpoint(void **state) {
  (void)state;
  enum { HALF = 2, WHOLE = 4 };
  const char *scratch = getenv("SCRATCH");
  char directory[512], file[600];
  snprintf(directory, sizeof directory, "%s/checkpoint-XXXXXX", scratch ? scratch : ".");
  const struct zb_compute counted = counted_compute();
  const struct zb_transport messages = counted_transport();
  assert_non_null(mkdtemp(directory));
  snprintf(file, sizeof file, "%s/checkpoint", directory);
  for (int64_t run = 0; run < scaled(8, 10); run++) {
    struct trial trial;
    struct zb_error error = {0};
    struct zb_checkpoint *kept = NULL, *ended = NULL;
    double loss[WHOLE];
    char what[64];
    enum zb_optimizer optimizer = run % 2 ? ZB_OPTIMIZER_POST_VALIDATION : ZB_OPTIMIZER_BARRIER;
    open_one(&trial, "zb-h1", run % 4 < 2 ? 4 : 2, 4, optimizer);
    trial.gpt.adamw.clip = run % 3 == 2 ? 0.5 : 0;
    trial.training.dtype = run % 5 == 4 ? ZB_BF16 : ZB_FP32;
    struct zb_checkpoint *half = trained(&trial, HALF, loss), *whole = trained(&trial, WHOLE, loss);
    for (int part = 0; part < 2; part++) {
      struct zb_crew crew;
      struct zb_standin setup = setup_of(seed_of_all + (uint64_t)(2 * run + part), trial.program->devices);
      snprintf(what, sizeof what, "part %d, seed %llu", part, (unsigned long long)setup.seed);
      trial.training.steps = part ? WHOLE : HALF;
      trial.replay.first_step = part ? HALF : 0;
      trial.replay.resumed = part ? kept : NULL;
      trial.replay.checkpoint = directory;
      trial.replay.checkpoint_every = 1;
      trial.replay.compute = &counted;
      trial.replay.transport = &messages;
      forget_events();
      zb_standin_begin(&setup);
      expect(zb_crew_run(&trial.replay, &crew, &error) == ZB_OK, "%s: %s", what, error.text);
      const struct zb_profile *profile = trial.program->profile;
      const struct zb_rank_log *log =
          zb_rank_log(zb_crew_rank(&crew, profile->device_of[profile->stages - 1]));
      for (int64_t step = trial.replay.first_step; step < trial.training.steps; step++)
        expect(log->loss[step] == loss[step], "%s, step %lld: loss %.9g, expected %.9g", what,
               (long long)step, log->loss[step], loss[step]);
      zb_crew_free(&crew);
      expect_all_awaited();
      expect_clean(what);
      expect(zb_checkpoint_read(directory, &trial.training, part ? &ended : &kept, &error) == ZB_OK, "%s: %s",
             what, error.text);
      expect_same(part ? ended : kept, part ? whole : half, what);
    }
    zb_checkpoint_free(half);
    zb_checkpoint_free(whole);
    zb_checkpoint_free(kept);
    zb_checkpoint_free(ended);
    close_trial(&trial);
    remove(file);
  }
  rmdir(directory);
}

static void test_nothing_under_way_at_the_end(void **state) {
  (void)state;
  const struct zb_compute counted = counted_compute();
  const struct zb_transport messages = counted_transport();
  for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++) {
    struct trial trial;
    struct zb_error error = {0};
    struct zb_standin setup = setup_of(seed_of_all, 4);
    open_one(&trial, "zb-h1", 4, 4, (enum zb_optimizer)o);
    trial.replay.compute = &counted;
    trial.replay.transport = &messages;
    forget_events();
    zb_standin_begin(&setup);
    struct zb_crew crew;
    expect(zb_crew_run(&trial.replay, &crew, &error) == ZB_OK, "%s", error.text);
    expect_all_awaited();
    zb_crew_free(&crew);
    expect_clean("the end");
    close_trial(&trial);
  }
}

static void test_measure(void **state) {
  (void)state;
  struct zb_compute slow = counted_compute();
  slow.finish = slow_finish;
  for (int64_t run = 0; run < scaled(6, 10); run++) {
    struct trial trial;
    struct zb_profile *profile = NULL;
    struct zb_error error = {0};
    struct zb_standin setup = setup_of(seed_of_all + (uint64_t)run, 2);
    open_one(&trial, "zb-h1", 2, 4, ZB_OPTIMIZER_BARRIER);
    forget_events();
    zb_standin_begin(&setup);
    int64_t begin_ns = zb_clock_ns();
    expect(zb_measure_profile(&trial.training, &slow, &zb_transport_threads, ZB_CHAIN, 2, 1, 3, &profile,
                              &error) == ZB_OK,
           "%s", error.text);
    int64_t lasted_ns = zb_clock_ns() - begin_ns;
    for (int s = 0; s < 2; s++) {
      const int64_t ns[] = {profile->f_ns[s], profile->b_ns[s], profile->w_ns[s], profile->bw_ns[s]};
      for (int k = 0; k < 4; k++)
        expect(ns[k] > 0 && ns[k] < lasted_ns, "seed %llu, stage %d: %lld ns", (unsigned long long)setup.seed,
               s, (long long)ns[k]);
    }
    // A round trip is over when the device says so, and not when both messages are posted.
    expect(profile->comm_forward_ns[0] >= slower_ns / 2, "seed %llu: a transfer of %lld ns",
           (unsigned long long)setup.seed, (long long)profile->comm_forward_ns[0]);
    // The next one goes out behind the one that came in.
    expect_all_awaited();
    zb_profile_free(profile);
    expect_clean("measured");
    close_trial(&trial);
  }
}

static void end_all(void *of, const char *what) {
  struct zb_error error = {0};
  expect(zb_compute_finish(&zb_compute_cuda, of, zb_clock_ns() + INT64_C(10000000000), &error) == ZB_OK,
         "%s: %s", what, error.text);
}

// Messages between two states, of which neither end is awaited, and in some runs the sender is not even told:
// as after a failure. A state that has nothing else to do is finished when they are.
static void test_messages_not_awaited(void **state) {
  (void)state;
  enum { MESSAGES = 8, BYTES = 1024 };
  struct trial trial;
  open_one(&trial, "zb-h1", 2, 4, ZB_OPTIMIZER_BARRIER);
  for (int64_t run = 0; run < scaled(60, 10); run++) {
    struct zb_standin setup = setup_of(seed_of_all + (uint64_t)run, 2);
    struct zb_compute_setup half[2];
    void *of[2], *buffer[2][MESSAGES], *event[2];
    struct zb_error error = {0};
    char what[64];
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)setup.seed);
    zb_standin_begin(&setup);
    for (int d = 0; d < 2; d++) {
      half[d] = zb_rank_setup(&trial.replay, d, d);
      expect(zb_compute_cuda.open(&half[d], &of[d], &error) == ZB_OK, "%s", error.text);
      for (int k = 0; k < MESSAGES; k++)
        expect(zb_compute_cuda.allocate(of[d], BYTES, &buffer[d][k], &error) == ZB_OK, "%s", error.text);
      end_all(of[d], what);
    }
    for (int k = 0; k < MESSAGES; k++) {
      for (int d = 0; d < 2; d++)
        expect(zb_compute_cuda.record(of[d], &event[d], &error) == ZB_OK, "%s", error.text);
      enum zb_status status =
          zb_compute_cuda.copy(of[1], buffer[1][k], buffer[0][k], BYTES, event[0], event[1], &error);
      if (status == ZB_OK && run / 6 % 2) status = zb_compute_cuda.follow(of[0], event[0], event[1], &error);
      expect(status == ZB_OK, "%s", error.text);
    }
    // The receiver first: all that the sender still has then is the news.
    for (int d = 1; d >= 0; d--) end_all(of[d], what);
    for (int d = 0; d < 2; d++) {
      for (int k = 0; k < MESSAGES; k++) zb_compute_cuda.release(of[d], buffer[d][k]);
      zb_compute_cuda.close(of[d]);
    }
    expect_clean(what);
  }
  close_trial(&trial);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_messages_not_awaited),
      cmocka_unit_test(test_checkpoint),
      cmocka_unit_test(test_nothing_under_way_at_the_end),
      cmocka_unit_test(test_measure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
