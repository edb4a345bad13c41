// Training with the cuda backend on the stand-in device, over threads (on one GPU, or a GPU a device) and
// over nccl, with a barrier and with post-validation, on 1, 2, 4 and 8 devices: whatever legal order the
// devices take what is queued in, each run ends in the losses and parameters of one without a pipeline, to
// the bit.
//
// Each has a seed of its own, which its failure names, and a schedule in turn. ZB_RUNS=N makes N of each
// kind, ZB_LONG=1 a thousand; an argument is a pattern of the tests to run.
#include "runtime/straight.h"
#include "tests/standin/standin.h"
#include "tests/unit/cuda_trial.h"

enum { STEPS = 2, STEPS_OF_A_GRAPH = 3, MICROBATCHES = 3, DEVICES_MOST = 8 };

static const char *const methods[] = {"zb-h1", "zb-v", "1f1b", "zb-h2", "1f1b-interleaved", "v-half"};
enum { METHODS = sizeof methods / sizeof *methods };

static int64_t runs_of_each(void) {
  const char *asked = getenv("ZB_RUNS");
  return asked ? atoi(asked) : scaled(2, 500);
}

// What runs are compared with, by what decides it: the number of steps, and whether gradients are clipped.
static struct ending endings[2][2];

static const struct ending *ending_of(struct trial *trial) {
  struct ending *ending = &endings[trial->training.steps == STEPS_OF_A_GRAPH][trial->gpt.adamw.clip > 0];
  if (ending->known) return ending;
  end_straight(trial, ending);
  const struct ending *other =
      &endings[trial->training.steps == STEPS_OF_A_GRAPH][trial->gpt.adamw.clip <= 0];
  expect(!other->known || other->parameters != ending->parameters, "a clip that clips nothing");
  return ending;
}

static void run_one(struct trial *trial, const struct zb_standin *setup, const char *what) {
  const struct ending *ending = ending_of(trial);
  const struct zb_profile *profile = trial->program->profile;
  struct zb_error error = {0};
  struct zb_crew crew;
  zb_standin_begin(setup);
  expect(zb_crew_run(&trial->replay, &crew, &error) == ZB_OK, "%s: %s", what, error.text);
  const double *loss = zb_rank_log(zb_crew_rank(&crew, profile->device_of[profile->stages - 1]))->loss;
  expect(memcmp(ending->loss, loss, (size_t)trial->training.steps * sizeof *loss) == 0, "%s: other losses",
         what);
  expect(digest_of_stages(trial, &crew) == ending->parameters, "%s: other parameters", what);
  zb_crew_free(&crew);
  expect_clean(what);
}

// One program each: of a method, or none where it has no schedule for so few devices.
static bool open_program(struct trial *trial, const char *method, int p, enum zb_optimizer optimizer) {
  struct zb_profile *profile = even_profile(p, MICROBATCHES), *placed = NULL;
  struct zb_schedule *schedule = method_schedule(method, profile, &placed);
  if (schedule) {
    open_smallest(trial, lowered(placed, schedule, optimizer));
  }
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
  return schedule != NULL;
}

static void run_kind(int p, const struct zb_transport *transport, enum zb_optimizer optimizer) {
  struct trial trial[METHODS];
  int programs = 0;
  const int64_t runs = runs_of_each();
  for (int k = 0; k < METHODS; k++)
    programs += open_program(&trial[programs], methods[(p + k) % METHODS], p, optimizer);
  for (int64_t run = 0; run < runs; run++) {
    struct trial *taken = &trial[run % programs];
    bool nccl = transport == &zb_transport_nccl;
    uint64_t seed = seed_of_all + (uint64_t)run;
    struct zb_standin setup = setup_of(seed, p);
    if (nccl) setup.devices = DEVICES_MOST; // a GPU a device
    char what[128];
    taken->replay.transport = transport;
    taken->replay.graph = nccl && optimizer == ZB_OPTIMIZER_BARRIER && run % 4 == 1;
    taken->training.steps = taken->replay.graph ? STEPS_OF_A_GRAPH : STEPS;
    taken->gpt.adamw.clip = run / programs % 2 ? 0.5 : 0;
    snprintf(what, sizeof what, "p %d, %s, %s, %s, run %lld, seed %llu", p, transport->name,
             zb_optimizer_word(optimizer), taken->program->method, (long long)run, (unsigned long long)seed);
    run_one(taken, &setup, what);
  }
  printf("# p %d, %s, %s: %lld runs, all to the bit\n", p, transport->name, zb_optimizer_word(optimizer),
         (long long)runs);
  for (int k = 0; k < programs; k++) close_trial(&trial[k]);
}

static void run_transport(const struct zb_transport *transport) {
  static const int devices[] = {1, 2, 4, DEVICES_MOST};
  for (int k = 0; k < 4; k++)
    for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++)
      run_kind(devices[k], transport, (enum zb_optimizer)o);
}

static void test_threads(void **state) {
  (void)state;
  run_transport(&zb_transport_threads);
}

static void test_nccl(void **state) {
  (void)state;
  if (strcmp(zb_nccl_name, "none") == 0) skip();
  run_transport(&zb_transport_nccl);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_nccl),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
