// trial.h - a small training under a program, for the tests of replay.
#ifndef TRIAL_H
#define TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "runtime/replay.h"
#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"
#include "tests/unit/unit.h"

enum { STAGES_MOST = 64 };

struct trial {
  struct zb_gpt gpt;
  struct zb_corpus corpus;
  struct zb_training training;
  int first_unit[STAGES_MOST + 1];
  struct zb_program *program;
  struct zb_replay replay;
};

static inline struct zb_program *lowered(struct zb_profile *profile, const struct zb_schedule *schedule,
                                         enum zb_optimizer optimizer) {
  struct zb_program *program = NULL;
  struct zb_error error = {0};
  struct zb_run run = {0};
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = ZB_NO_LIMIT;
  expect(zb_program_lower(profile, schedule, "test", optimizer, &program, &error) == ZB_OK, "%s", error.text);
  expect(zb_program_check(program, &run, &error) == ZB_OK, "%s", error.text);
  zb_run_free(&run);
  return program;
}

// Takes the program over.
static inline void open_trial(struct trial *trial, struct zb_program *program, struct zb_gpt gpt) {
  *trial = (struct trial){.gpt = gpt, .program = program};
  struct zb_error error = {0};
  expect(zb_gpt_cut(&trial->gpt, program->profile->stages, trial->first_unit, &error) == ZB_OK, "%s",
         error.text);
  for (uint64_t k = 0; k < 300; k++) {
    char byte = (char)('a' + zb_random_mix(3, k) % 26);
    zb_text_add(&trial->corpus.text, &byte, 1);
  }
  trial->training = (struct zb_training){
      .gpt = &trial->gpt,
      .corpus = &trial->corpus,
      .seed = 1,
      .microbatches = program->profile->microbatches,
      .steps = 4,
      .nan_step = -1,
  };
  trial->replay = (struct zb_replay){
      .program = program,
      .training = &trial->training,
      .first_unit = trial->first_unit,
      .compute = &zb_compute_cpu,
      .transport = &zb_transport_threads,
      .rollback = ZB_ROLLBACK_COPY,
      .timeout_ns = INT64_C(20000000000),
      .traces = true,
  };
}

static inline void close_trial(struct trial *trial) {
  zb_program_free(trial->program);
  zb_corpus_free(&trial->corpus);
}

static inline void run_and_verify(struct trial *trial, double tolerance, struct zb_crew *crew,
                                  const char *what) {
  struct zb_error error = {0};
  struct zb_text said = {0};
  expect(zb_crew_run(&trial->replay, crew, &error) == ZB_OK, "%s: %s", what, error.text);
  expect(zb_crew_verify(crew, tolerance, &said, &error) == ZB_OK, "%s: %s", what, error.text);
  zb_text_free(&said);
}

// The clipping norm that is between the norms of these steps, so that some steps are clipped.
static inline double middle_norm(const struct trial *trial, const struct zb_crew *crew) {
  double least = 1e300, most = 0;
  for (int64_t step = 0; step < trial->training.steps; step++) {
    double norm = zb_rank_log(crew->rank[0])->step[step].norm;
    if (norm < least) least = norm;
    if (norm > most) most = norm;
  }
  assert_true(most > least);
  return (least + most) / 2;
}

static inline struct zb_gpt model(int blocks) {
  struct zb_gpt gpt;
  zb_gpt_smallest(blocks, &gpt);
  gpt.hidden = 8;
  gpt.sequence = 4;
  return gpt;
}

static inline struct zb_profile *even_profile(int devices, int microbatches) {
  struct zb_profile *profile = NULL;
  assert_int_equal(zb_profile_create(devices, 1, microbatches, ZB_CHAIN, &profile, NULL), ZB_OK);
  for (int s = 0; s < devices; s++) {
    profile->f_ns[s] = profile->b_ns[s] = 1000;
    profile->w_ns[s] = 800;
    profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = s + 1 < devices ? 100 : 0;
    profile->f_bytes[s] = 100;
    profile->b_bytes[s] = -50;
    profile->w_bytes[s] = -50;
  }
  profile->has_memory = true;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  return profile;
}

// The schedule that a method makes of the profile, on the placement that it needs; both are the caller's.
static inline struct zb_schedule *method_schedule(const char *name, struct zb_profile *profile,
                                                  struct zb_profile **placed) {
  const struct zb_engine *engine = NULL;
  struct zb_error error = {0};
  struct zb_result result = {0};
  expect(zb_engine_find(name, strlen(name), &engine, &error) == ZB_OK, "%s", error.text);
  expect(zb_method_place(engine, profile, 0, placed, &error) == ZB_OK, "%s: %s", name, error.text);
  struct zb_problem problem = {.profile = *placed,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0.5),
                               .rounds = 1};
  expect(engine->solve(&problem, NULL, &result, &error) == ZB_OK, "%s: %s", name, error.text);
  struct zb_schedule *schedule = result.schedule;
  result.schedule = NULL;
  zb_result_free(&result);
  return schedule;
}

#endif
