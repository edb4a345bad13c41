// The cuda backend on the stand-in device when something goes wrong: every call that fails ends a run, a
// straight run and a measurement with its name and leaves nothing behind; a kernel that does not end is told
// from what waits for it; and nobody issues so much that a launch could wait for a device that is stuck.
//
// Each run has a seed of its own, which its failure names. ZB_LONG=1 fails every call in turn.
#include "runtime/measure.h"
#include "runtime/straight.h"
#include "solver/model/deadline.h"
#include "tests/standin/standin.h"
#include "tests/unit/cuda_trial.h"

// A device that does not end keeps its memory, because freeing it could block for ever: where leaks are
// looked for, those are none.
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_FOUND
#endif
#elif defined __SANITIZE_ADDRESS__
#define LEAKS_ARE_FOUND
#endif
#ifdef LEAKS_ARE_FOUND
#include <sanitizer/lsan_interface.h>
#else
static void __lsan_disable(void) {}
static void __lsan_enable(void) {}
#endif

static enum zb_status run_crew(struct trial *trial, struct zb_error *error) {
  struct zb_crew crew;
  enum zb_status status = zb_crew_run(&trial->replay, &crew, error);
  zb_crew_free(&crew);
  return status;
}

static enum zb_status run_straight(struct trial *trial, struct zb_error *error) {
  double loss[4];
  struct zb_checkpoint *trained = NULL;
  enum zb_status status = zb_straight_run(&trial->training, &zb_compute_cuda, 0, loss, &trained, error);
  zb_checkpoint_free(trained);
  return status;
}

static enum zb_status run_measure(struct trial *trial, struct zb_error *error) {
  struct zb_profile *profile = NULL;
  enum zb_status status = zb_measure_profile(&trial->training, &zb_compute_cuda, &zb_transport_threads,
                                             ZB_CHAIN, 2, 1, 1, &profile, error);
  zb_profile_free(profile);
  return status;
}

// One call after another fails, `stride` apart and then ever further: most of what can be left behind is made
// early.
static int64_t sweep(struct trial *trial, enum zb_status (*run)(struct trial *trial, struct zb_error *error),
                     size_t fault, int64_t stride) {
  int64_t failed = 0;
  for (int64_t n = 1; n < 1000000; n += stride + (stride > 1 ? n / 16 : 0)) {
    struct zb_standin setup = setup_of(seed_of_all + (uint64_t)n, trial->program->devices);
    struct zb_error error = {0};
    char what[64];
    memcpy((char *)&setup + fault, &n, sizeof n);
    snprintf(what, sizeof what, "fault %lld, seed %llu", (long long)n, (unsigned long long)setup.seed);
    bool breaks = fault == offsetof(struct zb_standin, fail_kernel);
    zb_standin_begin(&setup);
    if (breaks) __lsan_disable();
    enum zb_status status = run(trial, &error);
    if (breaks) __lsan_enable();
    bool happened = zb_standin_counts().faults > 0;
    // What a device that has failed was still to do, it never will.
    if (happened && breaks)
      zb_standin_end(NULL, 0);
    else
      expect_clean(what);
    if (!happened) {
      expect(status == ZB_OK, "%s: %s", what, error.text);
      return failed;
    }
    // Or in what is only released, or only asked.
    if (status == ZB_OK && !breaks) continue;
    expect(strstr(error.text, "cuda") || strstr(error.text, "cublas") || strstr(error.text, "out of memory"),
           "%s: \"%s\"", what, error.text);
    failed++;
  }
  fail_msg("no run without a fault");
  return failed;
}

static void sweep_all(enum zb_status (*run)(struct trial *trial, struct zb_error *error), const char *what) {
  struct trial trial;
  open_one(&trial, "zb-h1", 2, 2, ZB_OPTIMIZER_POST_VALIDATION);
  trial.training.steps = 2;
  trial.replay.timeout_ns = INT64_C(5000000000);
  int64_t stride = getenv("ZB_LONG") ? 1 : getenv("ZB_AGAIN") ? 26 : 13;
  int64_t calls = sweep(&trial, run, offsetof(struct zb_standin, fail_call), stride);
  int64_t allocations =
      sweep(&trial, run, offsetof(struct zb_standin, fail_allocation), getenv("ZB_LONG") ? 1 : 3);
  int64_t kernels = sweep(&trial, run, offsetof(struct zb_standin, fail_kernel), stride);
  printf("# %s: %lld calls, %lld allocations, %lld kernels failed, each with its name\n", what,
         (long long)calls, (long long)allocations, (long long)kernels);
  expect(calls > part_of(20) && allocations > 5 && kernels > part_of(10), "too few");
  close_trial(&trial);
}

static void test_every_call_of_a_run(void **state) {
  (void)state;
  sweep_all(run_crew, "a run");
}

static void test_every_call_of_a_straight_run(void **state) {
  (void)state;
  sweep_all(run_straight, "a straight run");
}

static void test_every_call_of_a_measurement(void **state) {
  (void)state;
  sweep_all(run_measure, "a measurement");
}

// The last kernel of a run is a step's: nothing is computed from it any more, and still the run has failed.
static void test_last_kernel(void **state) {
  (void)state;
  for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++) {
    struct trial trial;
    open_one(&trial, "zb-h1", 2, 2, (enum zb_optimizer)o);
    int64_t kernels = counts_of(&trial, 1, NULL).kernels;
    for (uint64_t run = 0; run < 12; run++) {
      struct zb_standin setup = setup_of(seed_of_all + run, 2);
      struct zb_error error = {0};
      setup.fail_kernel = kernels;
      zb_standin_begin(&setup);
      __lsan_disable();
      enum zb_status status = run_crew(&trial, &error);
      __lsan_enable();
      expect(status == ZB_FAILED && strstr(error.text, "illegal"), "seed %llu: \"%s\"",
             (unsigned long long)setup.seed, error.text);
      zb_standin_end(NULL, 0);
    }
    close_trial(&trial);
  }
}

// A kernel that does not end: the device that waits says where its GPU stands.
static void test_hang_is_reported(void **state) {
  (void)state;
  struct trial trial;
  struct zb_crew crew;
  struct zb_error error = {0};
  open_one(&trial, "zb-h1", 1, 4, ZB_OPTIMIZER_BARRIER);
  // One of the last ops: all kernels before the step, but for the norm's.
  int64_t kernels = counts_of(&trial, 1, NULL).kernels - 50;
  struct zb_standin setup = {.seed = seed_of_all, .devices = 1, .hang_kernel = kernels};
  trial.replay.timeout_ns = INT64_C(300000000);
  zb_standin_begin(&setup);
  __lsan_disable();
  enum zb_status status = zb_crew_run(&trial.replay, &crew, &error);
  __lsan_enable();
  const struct zb_progress *progress = zb_rank_progress(crew.rank[0]);
  expect(status == ZB_FAILED && strstr(error.text, "in time"), "%s", error.text);
  // NORM has been issued long ago.
  expect(zb_instruction_acts(progress->at.kind) == ZB_ACTS_OP &&
             zb_instruction_acts(progress->last.kind) == ZB_ACTS_OP && progress->finished,
         "%s", error.text);
  zb_crew_free(&crew);
  zb_standin_end(NULL, 0); // a kernel still runs
  close_trial(&trial);
}

// A kernel near the beginning does not end, and far more ops are to come than a device's queue may have room
// for: the thread stops issuing, and says in time what it waits for.
static void test_run_ahead_is_bounded(void **state) {
  (void)state;
  for (int p = 1; p <= 2; p++) {
    struct trial trial;
    struct zb_crew crew;
    struct zb_error error = {0};
    open_one(&trial, "zb-h1", p, 40, ZB_OPTIMIZER_BARRIER);
    trial.training.steps = 1;
    int64_t kernels = counts_of(&trial, 1, NULL).kernels;
    struct zb_standin setup = {.seed = seed_of_all, .devices = p, .hang_kernel = kernels / 4};
    trial.replay.timeout_ns = INT64_C(300000000);
    zb_standin_begin(&setup);
    __lsan_disable();
    enum zb_status status = zb_crew_run(&trial.replay, &crew, &error);
    __lsan_enable();
    // Or the other device has waited longer by then, for a message that is not posted.
    expect(status == ZB_FAILED &&
               (strstr(error.text, "has not ended") || (p == 2 && strstr(error.text, "waiting for"))),
           "p %d: %s", p, error.text);
    for (int d = 0; d < p; d++) {
      int64_t issued = zb_rank_log(crew.rank[d])->instructions;
      int64_t all = (int64_t)(trial.program->first[d + 1] - trial.program->first[d]);
      expect(issued > all / 16 && issued < all / 2, "p %d, device %d: %lld of %lld instructions", p, d,
             (long long)issued, (long long)all);
    }
    zb_crew_free(&crew);
    zb_standin_end(NULL, 0); // a kernel still runs
    close_trial(&trial);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_call_of_a_run),
      cmocka_unit_test(test_every_call_of_a_straight_run),
      cmocka_unit_test(test_every_call_of_a_measurement),
      cmocka_unit_test(test_last_kernel),
      cmocka_unit_test(test_hang_is_reported),
      cmocka_unit_test(test_run_ahead_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
