// straight.h - training without a pipeline: what every pipelined run must equal, to the bit.
#ifndef ZB_STRAIGHT_H
#define ZB_STRAIGHT_H

#include <stdint.h>

#include "runtime/corpus.h"
#include "runtime/gpt.h"
#include "runtime/stage.h"
#include "solver/model/status.h"

// What is trained, however it is run.
struct zb_training {
  const struct zb_gpt *gpt;
  const struct zb_corpus *corpus;
  uint64_t seed; // of the start values
  int microbatches;
  int64_t steps;
  // A NaN put into the gradient of unit `nan_unit` after the last W of step `nan_step` (from 0); -1: none.
  int64_t nan_step;
  int nan_unit;
};

// One stage that holds the whole model, one microbatch after another, every step with full knowledge of its
// norm. loss[steps] is each step's mean loss a token. *stage is the trained model, owned by the caller
// (zb_stage_free).
enum zb_status zb_straight_run(const struct zb_training *training, double *loss, struct zb_stage **stage,
                               struct zb_error *error);

// The mean loss a token from the sums of the microbatches, added in their order.
double zb_training_loss(const struct zb_training *training, const double *microbatch_loss);

#endif
