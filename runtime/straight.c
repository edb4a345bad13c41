// straight.c - the plainest way to train the model.
#include "runtime/straight.h"

#include <math.h>
#include <stdlib.h>

double zb_training_loss(const struct zb_training *training, const double *microbatch_loss) {
  double sum = 0;
  for (int m = 0; m < training->microbatches; m++) sum += microbatch_loss[m];
  return sum / ((double)training->microbatches * zb_gpt_tokens(training->gpt));
}

enum zb_status zb_straight_run(const struct zb_training *training, double *loss, struct zb_stage **stage,
                               struct zb_error *error) {
  const struct zb_gpt *gpt = training->gpt;
  int units = zb_gpt_units(gpt);
  struct zb_workspace *workspace = NULL;
  struct zb_stage *whole = NULL;
  double *partial = malloc((size_t)units * sizeof *partial);
  enum zb_status status = partial ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = zb_workspace_create(gpt, &workspace, error);
  if (status == ZB_OK)
    status = zb_stage_create(gpt, training->corpus, 0, units, training->microbatches, training->seed, 0,
                             &whole, error);
  for (int64_t step = 0; status == ZB_OK && step < training->steps; step++) {
    zb_stage_begin(whole, &workspace->keep, step);
    for (int m = 0; status == ZB_OK && m < training->microbatches; m++) {
      status = zb_stage_forward(whole, workspace, m, NULL, NULL, error);
      if (status == ZB_OK) status = zb_stage_backward(whole, workspace, m, NULL, NULL, error);
      if (status == ZB_OK) zb_stage_weights(whole, workspace);
    }
    if (status != ZB_OK) break;
    if (step == training->nan_step) whole->gradient[whole->offset[training->nan_unit]] = (zb_real)NAN;
    zb_stage_norm(whole, partial);
    struct zb_judgement judgement = zb_adamw_judge(partial, units, gpt->adamw.clip);
    if (judgement.verdict != ZB_STEP_SKIPPED) zb_stage_step(whole, judgement.scale);
    loss[step] = zb_training_loss(training, whole->loss);
  }
  if (status == ZB_OK) {
    *stage = whole;
    whole = NULL;
  }
  zb_stage_free(whole, workspace ? &workspace->keep : NULL);
  zb_workspace_free(workspace);
  free(partial);
  return status;
}
