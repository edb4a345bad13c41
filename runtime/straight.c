// straight.c - the plainest way to train the model.
#include "runtime/straight.h"

#include <stdlib.h>

#include "runtime/adamw.h"
#include "solver/model/deadline.h"

static const int64_t patience_ns = INT64_C(600000000000), moment_ns = INT64_C(1000000000);

struct straight {
  const struct zb_training *training;
  const struct zb_compute *compute;
  void *state;
  double *partial, *microbatch_loss; // [units], [microbatches]
  struct zb_interval (*when)[3];     // [microbatches]
};

static enum zb_status make_step(struct straight *run, int64_t step, double *loss, struct zb_error *error) {
  static const enum zb_kind kinds[] = {ZB_F, ZB_B, ZB_W};
  const struct zb_training *training = run->training;
  const struct zb_compute *compute = run->compute;
  enum zb_status status = compute->begin(run->state, step, error);
  for (int k = 0; status == ZB_OK && k < 3 * training->microbatches; k++)
    status = compute->op(run->state, (struct zb_op){0, k / 3, kinds[k % 3]}, NULL, NULL,
                         &run->when[k / 3][k % 3], error);
  if (status == ZB_OK && step == training->nan_step) status = compute->poison(run->state, 0, error);
  if (status == ZB_OK) status = compute->norm(run->state, error);
  if (status == ZB_OK) status = zb_compute_finish(compute, run->state, zb_clock_ns() + patience_ns, error);
  if (status != ZB_OK) return status;
  compute->partials(run->state, run->partial);
  compute->loss(run->state, run->microbatch_loss);
  *loss = zb_training_loss(training, run->microbatch_loss);
  struct zb_judgement judgement =
      zb_adamw_judge(run->partial, zb_gpt_units(training->gpt), training->gpt->adamw.clip);
  return judgement.verdict == ZB_STEP_SKIPPED ? ZB_OK
                                              : compute->step(run->state, judgement.scale, false, error);
}

enum zb_status zb_straight_run(const struct zb_training *training, const struct zb_compute *compute, int seat,
                               double *loss, struct zb_checkpoint **trained, struct zb_error *error) {
  const int units = zb_gpt_units(training->gpt), first_unit[] = {0, units};
  struct straight run = {.training = training, .compute = compute};
  struct zb_compute_setup setup = {.training = training, .first_unit = first_unit, .seat = seat};
  struct zb_profile *profile = NULL;
  struct zb_checkpoint *made = NULL;
  enum zb_status status = zb_profile_create(1, 1, training->microbatches, ZB_CHAIN, &profile, error);
  if (status != ZB_OK) return status;
  setup.profile = profile;
  run.partial = calloc((size_t)units, sizeof *run.partial);
  run.microbatch_loss = calloc((size_t)training->microbatches, sizeof *run.microbatch_loss);
  run.when = calloc((size_t)training->microbatches, sizeof *run.when);
  if (!run.partial || !run.microbatch_loss || !run.when) status = zb_fail_memory(error);
  if (status == ZB_OK) status = zb_checkpoint_create(training, &made, error);
  if (status == ZB_OK) status = compute->open(&setup, &run.state, error);
  for (int64_t step = 0; status == ZB_OK && step < training->steps; step++)
    status = make_step(&run, step, &loss[step], error);
  if (status == ZB_OK) status = compute->store(run.state, 0, made->values, &made->made, error);
  if (status == ZB_OK) made->step = training->steps;
  bool done;
  if (run.state) compute->finish(run.state, zb_clock_ns() + moment_ns, &done, NULL);
  if (run.state) compute->close(run.state);
  free(run.when);
  free(run.microbatch_loss);
  free(run.partial);
  zb_profile_free(profile);
  if (status == ZB_OK)
    *trained = made;
  else
    zb_checkpoint_free(made);
  return status;
}
