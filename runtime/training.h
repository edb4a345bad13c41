// training.h - what is trained, however it is run.
#ifndef ZB_TRAINING_H
#define ZB_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "runtime/corpus.h"
#include "runtime/gpt.h"

struct zb_training {
  const struct zb_gpt *gpt;
  const struct zb_corpus *corpus;
  uint64_t seed; // of the start values
  int microbatches;
  int64_t steps;
  // A NaN put into the gradient of unit `nan_unit` after the last W of step `nan_step` (from 0); -1: none.
  int64_t nan_step;
  int nan_unit;
  enum zb_dtype dtype; // of activations, messages and what is multiplied; all else is fp32
  bool tf32;           // fp32 products may round their factors to TF32
};

// The mean loss a token from the sums of the microbatches, added in their order.
double zb_training_loss(const struct zb_training *training, const double *microbatch_loss);

// Of the model's activations and messages.
static inline size_t zb_training_message_bytes(const struct zb_training *training) {
  return zb_gpt_message(training->gpt) * zb_dtype_bytes(training->dtype);
}

#endif
