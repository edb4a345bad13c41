// cuda_trial.h - a small training on the cuda backend and the stand-in device, for its tests.
//
// Each run has a seed of its own, which its failure names; ZB_STANDIN is not read.
#ifndef CUDA_TRIAL_H
#define CUDA_TRIAL_H

#include "runtime/checkpoint.h"
#include "tests/standin/standin.h"
#include "tests/unit/trial.h"

static const uint64_t seed_of_all = 20240;

// ZB_LONG=1: this many times as much.
static inline int64_t scaled(int64_t count, int64_t times) {
  return getenv("ZB_LONG") ? times * count : count;
}

// A device that is set up by a number: seed, when, how many GPUs.
static inline struct zb_standin setup_of(uint64_t seed, int devices) {
  return (struct zb_standin){
      .seed = seed,
      .when = (enum zb_standin_when)(seed % 3),
      .devices = seed / 3 % 2 ? devices : 1,
  };
}

static inline void expect_clean(const char *what) {
  char report[4096] = "";
  bool clean = zb_standin_end(report, sizeof report);
  expect(clean, "%s: %s", what, report);
}

static inline void use_cuda(struct trial *trial, enum zb_dtype dtype) {
  trial->replay.compute = &zb_compute_cuda;
  trial->replay.traces = false;
  trial->training.dtype = dtype;
  trial->training.steps = 3;
}

// Of the smallest model that has every kernel, so that many runs are affordable: most of what a vocabulary of
// bytes costs is rows of nothing. Takes the program over.
static inline void open_smallest(struct trial *trial, struct zb_program *program) {
  enum { LETTERS = 16 };
  struct zb_gpt gpt = model(2);
  gpt.vocabulary = LETTERS;
  open_trial(trial, program, gpt);
  for (size_t k = 0; k < trial->corpus.text.size; k++)
    trial->corpus.text.data[k] = (char)(trial->corpus.text.data[k] % LETTERS);
  use_cuda(trial, ZB_FP32);
}

// A program for p devices, for the tests that need only one.
static inline void open_one(struct trial *trial, const char *method, int p, int m,
                            enum zb_optimizer optimizer) {
  struct zb_profile *profile = even_profile(p, m), *placed = NULL;
  struct zb_schedule *schedule = method_schedule(method, profile, &placed);
  open_smallest(trial, lowered(placed, schedule, optimizer));
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// Of all parameters, stages in order: as they lie in the model.
static inline uint64_t digest_of_stages(const struct trial *trial, const struct zb_crew *crew) {
  const struct zb_profile *profile = trial->program->profile;
  uint64_t digest = ZB_DIGEST_START;
  for (int s = 0; s < profile->stages; s++) {
    void *state = zb_rank_state(zb_crew_rank(crew, profile->device_of[s]));
    size_t count = trial->replay.compute->parameters(state, s);
    zb_real *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    assert_int_equal(trial->replay.compute->fetch(state, s, values, NULL), ZB_OK);
    digest = zb_digest_add(digest, values, count * sizeof *values);
    free(values);
  }
  return digest;
}

// What the first run of a model ended in, and all others must.
struct ending {
  double loss[8];
  uint64_t parameters; // digest
  bool known;
};

// Of a run without a pipeline.
static inline void end_straight(const struct trial *trial, struct ending *ending) {
  struct zb_checkpoint *trained = NULL;
  struct zb_error error = {0};
  struct zb_standin setup = setup_of(seed_of_all, 1);
  zb_standin_begin(&setup);
  expect(zb_straight_run(&trial->training, &zb_compute_cuda, 0, ending->loss, &trained, &error) == ZB_OK,
         "%s", error.text);
  ending->parameters =
      zb_digest_add(ZB_DIGEST_START, trained->values, trained->count * sizeof *trained->values);
  ending->known = true;
  zb_checkpoint_free(trained);
  expect_clean("without a pipeline");
}

static inline struct zb_standin_counts counts_of(struct trial *trial, int64_t steps, int64_t *instructions) {
  struct zb_standin setup = setup_of(seed_of_all, trial->program->devices);
  struct zb_crew crew;
  struct zb_error error = {0};
  trial->training.steps = steps;
  zb_standin_begin(&setup);
  expect(zb_crew_run(&trial->replay, &crew, &error) == ZB_OK, "%s", error.text);
  if (instructions) *instructions = zb_rank_log(crew.rank[0])->instructions;
  zb_crew_free(&crew);
  // By now all kernels have run, whatever the run itself has waited for.
  struct zb_standin_counts counts = zb_standin_counts();
  expect_clean("counts");
  return counts;
}

#endif
