// cuda_trial.h - a small training on the cuda backend and the stand-in device, for its tests.
//
// Each run has a seed of its own, which its failure names; ZB_STANDIN is not read.
#ifndef CUDA_TRIAL_H
#define CUDA_TRIAL_H

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

// A program for p devices, for the tests that need only one.
static inline void open_one(struct trial *trial, const char *method, int p, int m,
                            enum zb_optimizer optimizer) {
  struct zb_profile *profile = even_profile(p, m), *placed = NULL;
  struct zb_schedule *schedule = method_schedule(method, profile, &placed);
  open_trial(trial, lowered(placed, schedule, optimizer), model(5));
  use_cuda(trial, ZB_FP32);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

static inline struct zb_standin_counts counts_of(struct trial *trial, int64_t steps, int64_t *instructions) {
  struct zb_standin setup = setup_of(seed_of_all, trial->program->devices);
  struct zb_crew crew;
  struct zb_error error = {0};
  trial->training.steps = steps;
  zb_standin_begin(&setup);
  expect(zb_crew_run(&trial->replay, &crew, &error) == ZB_OK, "%s", error.text);
  struct zb_standin_counts counts = zb_standin_counts();
  if (instructions) *instructions = zb_rank_log(crew.rank[0])->instructions;
  zb_crew_free(&crew);
  expect_clean("counts");
  return counts;
}

#endif
