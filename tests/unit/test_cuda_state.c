// What goes into the cuda backend and comes out of it beside steps, on the stand-in device: checkpoints, runs
// that go on from one, measured profiles, and messages that nobody has awaited when a state is closed.
//
// Each run has a seed of its own, which its failure names. ZB_LONG=1 runs more of them.
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

// Half of a run, written and read again, and the other half on another number of devices.
static void test_checkpoint(void **state) {
  (void)state;
  enum { HALF = 2, WHOLE = 4 };
  const char *scratch = getenv("SCRATCH");
  char directory[512], file[600];
  snprintf(directory, sizeof directory, "%s/checkpoint-XXXXXX", scratch ? scratch : ".");
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
      zb_standin_begin(&setup);
      expect(zb_crew_run(&trial.replay, &crew, &error) == ZB_OK, "%s: %s", what, error.text);
      const struct zb_profile *profile = trial.program->profile;
      const struct zb_rank_log *log =
          zb_rank_log(zb_crew_rank(&crew, profile->device_of[profile->stages - 1]));
      for (int64_t step = trial.replay.first_step; step < trial.training.steps; step++)
        expect(log->loss[step] == loss[step], "%s, step %lld: loss %.9g, expected %.9g", what,
               (long long)step, log->loss[step], loss[step]);
      zb_crew_free(&crew);
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

// The backend, but a wait for the device takes a millisecond more, and events are counted.
static struct { int64_t recorded, awaited; } events;
static const int64_t slower_ns = 1000000;

static enum zb_status slow_finish(void *state, int64_t deadline_ns, bool *done, struct zb_error *error) {
  const struct timespec slower = {0, slower_ns};
  nanosleep(&slower, NULL);
  return zb_compute_cuda.finish(state, deadline_ns, done, error);
}
static enum zb_status counted_record(void *state, void **event, struct zb_error *error) {
  __atomic_add_fetch(&events.recorded, 1, __ATOMIC_SEQ_CST);
  return zb_compute_cuda.record(state, event, error);
}
static enum zb_status counted_await(void *state, void *event, struct zb_error *error) {
  __atomic_add_fetch(&events.awaited, 1, __ATOMIC_SEQ_CST);
  return zb_compute_cuda.await(state, event, error);
}

static void test_measure(void **state) {
  (void)state;
  struct zb_compute slow = zb_compute_cuda;
  slow.finish = slow_finish;
  slow.record = counted_record;
  slow.await = counted_await;
  for (int64_t run = 0; run < scaled(6, 10); run++) {
    struct trial trial;
    struct zb_profile *profile = NULL;
    struct zb_error error = {0};
    struct zb_standin setup = setup_of(seed_of_all + (uint64_t)run, 2);
    open_one(&trial, "zb-h1", 2, 4, ZB_OPTIMIZER_BARRIER);
    memset(&events, 0, sizeof events);
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
    expect_equal(events.awaited, events.recorded, "events that were taken back");
    zb_profile_free(profile);
    expect_clean("measured");
    close_trial(&trial);
  }
}

// A message between two states, of which neither end is awaited: as after a failure.
static void test_messages_not_awaited(void **state) {
  (void)state;
  struct trial trial;
  open_one(&trial, "zb-h1", 2, 4, ZB_OPTIMIZER_BARRIER);
  for (int64_t run = 0; run < scaled(60, 10); run++) {
    struct zb_standin setup = setup_of(seed_of_all + (uint64_t)run, 2);
    struct zb_compute_setup half[2];
    void *of[2], *buffer[2], *event[2];
    struct zb_error error = {0};
    char what[64];
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)setup.seed);
    zb_standin_begin(&setup);
    for (int d = 0; d < 2; d++) {
      half[d] = zb_rank_setup(&trial.replay, d, d);
      expect(zb_compute_cuda.open(&half[d], &of[d], &error) == ZB_OK, "%s", error.text);
      expect(zb_compute_cuda.allocate(of[d], 1024, &buffer[d], &error) == ZB_OK, "%s", error.text);
      expect(zb_compute_cuda.record(of[d], &event[d], &error) == ZB_OK, "%s", error.text);
    }
    expect(zb_compute_cuda.copy(of[1], buffer[1], buffer[0], 1024, event[0], event[1], &error) == ZB_OK, "%s",
           error.text);
    expect(zb_compute_cuda.follow(of[0], event[0], event[1], &error) == ZB_OK, "%s", error.text);
    // The receiver first: then all that the sender still has is the news.
    for (int d = 1; d >= 0; d--)
      expect(zb_compute_finish(&zb_compute_cuda, of[d], zb_clock_ns() + INT64_C(10000000000), &error) ==
                 ZB_OK,
             "%s: %s", what, error.text);
    for (int d = 0; d < 2; d++) {
      zb_compute_cuda.release(of[d], buffer[d]);
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
      cmocka_unit_test(test_measure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
