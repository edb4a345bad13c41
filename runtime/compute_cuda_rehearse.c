// compute_cuda_rehearse.c - everything that a step will run is run once before the first one.
//
// CUDA loads a kernel when it is first launched, and to do so may wait for all that runs; a kernel that waits
// for another device's message, which waits for this one's next kernel, would then wait for ever (CUDA's
// programming guide, on lazy loading). So would whatever cuBLAS makes at first use. The numbers are rubbish
// and are cleared afterwards.
#include "runtime/compute_cuda_parts.h"

static enum zb_status run_stage(struct zb_cuda *cuda, int s, struct zb_error *error) {
  static const enum zb_kind kinds[] = {ZB_F, ZB_B, ZB_W};
  for (int k = 0; k < 3; k++) {
    struct zb_op op = {s, 0, kinds[k]};
    ZB_CUDA_PASS(zb_cuda_stage_op(cuda, cuda->stage[s], op, cuda->between[0], cuda->between[1], error));
  }
  return ZB_OK;
}

static enum zb_status clear_stage(struct zb_cuda *cuda, struct zb_cuda_stage *stage, struct zb_error *error) {
  float *const arrays[] = {stage->values, stage->gradient, stage->mean, stage->square};
  for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
    ZB_CUDA_TRY(cudaMemsetAsync(arrays[k], 0, stage->count * sizeof *arrays[k], cuda->stream), error);
  zb_cuda_stage_begin(cuda, stage);
  stage->steps_made = 0;
  return ZB_OK;
}

enum zb_status zb_cuda_rehearse(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_compute_setup *setup = cuda->setup;
  size_t batch = (size_t)setup->training->microbatches * (size_t)zb_gpt_tokens(zb_cuda_gpt(cuda));
  // Bytes that are in any vocabulary.
  ZB_CUDA_TRY(cudaMemsetAsync(cuda->data, 0, 2 * batch, cuda->stream), error);
  for (int s = 0; s < setup->profile->stages; s++)
    if (cuda->stage[s]) ZB_CUDA_PASS(run_stage(cuda, s, error));
  ZB_CUDA_PASS(zb_cuda_norm(cuda, error));
  ZB_CUDA_PASS(zb_cuda_step(cuda, 1, setup->may_undo, error));
  if (setup->may_undo) ZB_CUDA_PASS(zb_cuda_undo(cuda, 1, error));
  for (int s = 0; s < setup->profile->stages; s++)
    if (cuda->stage[s]) ZB_CUDA_PASS(clear_stage(cuda, cuda->stage[s], error));
  cuda->keep.peak_bytes = 0;
  return ZB_OK;
}
