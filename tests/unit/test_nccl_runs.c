// Training with the cuda backend and the nccl transport on the stand-in device, a GPU a device: every
// schedule, optimizer and number of devices ends in the losses, parameters and peaks of a run without
// pipeline, to the bit, in whatever legal order the devices take what is queued; as one graph an iteration
// too.
//
// Each run has a seed of its own, which its failure names. ZB_LONG=1 makes a thousand of each number of
// devices.
#include <nccl.h> // a build without it leaves this test out

#include "tests/standin/standin.h"
#include "tests/unit/trial.h"

static const char *const methods[] = {"zb-h1", "zb-v", "1f1b", "zb-h2", "1f1b-interleaved", "v-half"};
enum { METHODS = sizeof methods / sizeof *methods, DEVICES_MOST = 8 };

static int64_t runs_of_each(void) { return getenv("ZB_LONG") ? 1000 / METHODS + 1 : 1; }

static void run_one(struct trial *trial, uint64_t seed, const char *what) {
  static char report[4096];
  struct zb_standin setup = {.seed = seed, .when = (enum zb_standin_when)(seed % 3), .devices = DEVICES_MOST};
  struct zb_crew crew;
  char name[160];
  snprintf(name, sizeof name, "%s, seed %llu", what, (unsigned long long)seed);
  trial->replay.compute = &zb_compute_cuda;
  trial->replay.transport = &zb_transport_nccl;
  trial->replay.traces = false;
  trial->training.steps = trial->replay.graph ? 4 : 2;
  zb_standin_begin(&setup);
  run_and_verify(trial, 0, &crew, name);
  zb_crew_free(&crew);
  expect(zb_standin_end(report, sizeof report), "%s: %s", name, report);
}

static void run_method(const char *method, int p, uint64_t seed) {
  struct zb_profile *profile = even_profile(p, 3), *placed = NULL;
  struct zb_schedule *schedule = method_schedule(method, profile, &placed);
  for (int64_t run = 0; schedule && run < runs_of_each(); run++) {
    for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++) {
      struct trial trial;
      char what[96];
      open_trial(&trial, lowered(placed, schedule, (enum zb_optimizer)o), model(placed->stages));
      trial.gpt.adamw.clip = run % 2 ? 0 : 0.5;
      // A graph is of an iteration with a barrier.
      trial.replay.graph = o == ZB_OPTIMIZER_BARRIER && (seed + (uint64_t)run) % 2;
      snprintf(what, sizeof what, "%s, p %d, %s%s", method, p, zb_optimizer_word((enum zb_optimizer)o),
               trial.replay.graph ? ", graph" : "");
      run_one(&trial, 1000 * seed + (uint64_t)(2 * run + o), what);
      close_trial(&trial);
    }
  }
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

static void run_devices(int p, int first, int methods_taken) {
  for (int k = 0; k < METHODS; k++)
    if (getenv("ZB_LONG") || (k >= first && k < first + methods_taken))
      run_method(methods[k], p, (uint64_t)(p * METHODS + k));
}

static void test_two(void **state) {
  (void)state;
  run_devices(2, 0, METHODS);
}

static void test_four(void **state) {
  (void)state;
  run_devices(4, 0, 2);
}

static void test_eight(void **state) {
  (void)state;
  run_devices(8, 0, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two),
      cmocka_unit_test(test_four),
      cmocka_unit_test(test_eight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
