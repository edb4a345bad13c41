// training.c - the sum that every device and every run forms alike.
#include "runtime/training.h"

double zb_training_loss(const struct zb_training *training, const double *microbatch_loss) {
  double sum = 0;
  for (int m = 0; m < training->microbatches; m++) sum += microbatch_loss[m];
  return sum / ((double)training->microbatches * zb_gpt_tokens(training->gpt));
}
