// compute_cuda_optimizer.c - norms, steps, steps taken back, and parameters to and from the host.
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/adamw.h"
#include "runtime/compute_cuda_parts.h"
#include "runtime/keep.h"

#include <stdlib.h>

// The device's stages in turn: for (int s = next(cuda, -1); s >= 0; s = next(cuda, s)).
static int next(const struct zb_cuda *cuda, int s) {
  do s++;
  while (s < cuda->setup->profile->stages && !cuda->stage[s]);
  return s < cuda->setup->profile->stages ? s : -1;
}

enum zb_status zb_cuda_norm(void *state, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  ZB_CUDA_PASS(zb_cuda_graph_end(cuda, error));
  for (int s = next(cuda, -1); s >= 0; s = next(cuda, s)) {
    struct zb_cuda_stage *stage = cuda->stage[s];
    stage->stepping = stage->gradient;
    for (int u = stage->first; u < stage->end; u++)
      ZB_CUDA_TRY(zb_cuda_square_sum(cuda->stream, stage->gradient + stage->offset[u - stage->first],
                                     (int64_t)zb_unit_sizes(gpt, u).parameters, cuda->numbers + u,
                                     cuda->sums),
                  error);
  }
  size_t numbers = (size_t)zb_gpt_units(gpt) + (size_t)cuda->setup->training->microbatches;
  ZB_CUDA_TRY(cudaMemcpyAsync(cuda->host_numbers, cuda->numbers, numbers * sizeof(double),
                              cudaMemcpyDeviceToHost, cuda->stream),
              error);
  return ZB_OK;
}

static enum zb_status copy_floats(struct zb_cuda *cuda, const float *from, float *to, size_t count,
                                  struct zb_error *error) {
  ZB_CUDA_TRY(zb_cuda_copy(cuda->stream, from, to, (int64_t)(count * sizeof *from)), error);
  return ZB_OK;
}

enum zb_status zb_cuda_step(void *state, double scale, bool undoable, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (int s = next(cuda, -1); s >= 0; s = next(cuda, s)) {
    struct zb_cuda_stage *stage = cuda->stage[s];
    const float *const from[] = {stage->values, stage->mean, stage->square};
    for (int k = 0; k < 3 && undoable && stage->saved[0]; k++)
      ZB_CUDA_PASS(copy_floats(cuda, from[k], stage->saved[k], stage->count, error));
    struct zb_adamw_step numbers = zb_adamw_step(&zb_cuda_gpt(cuda)->adamw, ++stage->steps_made, scale);
    ZB_CUDA_TRY(zb_cuda_adamw_step(cuda->stream, numbers, stage->stepping, (int64_t)stage->count,
                                   stage->values, stage->mean, stage->square, stage->shadow),
                error);
  }
  return ZB_OK;
}

static enum zb_status make_shadow(struct zb_cuda *cuda, struct zb_cuda_stage *stage, struct zb_error *error) {
  if (stage->shadow)
    ZB_CUDA_TRY(zb_cuda_shadow(cuda->stream, stage->values, (int64_t)stage->count, stage->shadow), error);
  return ZB_OK;
}

enum zb_status zb_cuda_undo(void *state, double scale, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (int s = next(cuda, -1); s >= 0; s = next(cuda, s)) {
    struct zb_cuda_stage *stage = cuda->stage[s];
    float *const to[] = {stage->values, stage->mean, stage->square};
    struct zb_adamw_step numbers = zb_adamw_step(&zb_cuda_gpt(cuda)->adamw, stage->steps_made--, scale);
    for (int k = 0; k < 3 && stage->saved[0]; k++)
      ZB_CUDA_PASS(copy_floats(cuda, stage->saved[k], to[k], stage->count, error));
    if (stage->saved[0])
      ZB_CUDA_PASS(make_shadow(cuda, stage, error));
    else
      ZB_CUDA_TRY(zb_cuda_adamw_inverse(cuda->stream, numbers, stage->stepping, (int64_t)stage->count,
                                        stage->values, stage->mean, stage->square, stage->shadow),
                  error);
  }
  return ZB_OK;
}

enum zb_status zb_cuda_poison(void *state, int stage, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  struct zb_cuda_stage *poisoned = cuda->stage[stage];
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  // Not into what will be repeated.
  ZB_CUDA_PASS(zb_cuda_graph_end(cuda, error));
  // All bits set are a NaN.
  if (poisoned && poisoned->count)
    ZB_CUDA_TRY(cudaMemsetAsync(poisoned->gradient, 0xff, sizeof *poisoned->gradient, cuda->stream), error);
  return ZB_OK;
}

// Numbers of a stage, on the host one unit behind another, to or from an array of the device.
static enum zb_status move(struct zb_cuda *cuda, const struct zb_cuda_stage *stage, float *device,
                           const float *from, float *to, struct zb_error *error) {
  size_t place = 0;
  for (int u = stage->first; u < stage->end; u++) {
    size_t count = zb_unit_sizes(zb_cuda_gpt(cuda), u).parameters;
    float *at = device + stage->offset[u - stage->first];
    if (from)
      ZB_CUDA_TRY(cudaMemcpyAsync(at, from + place, count * sizeof *at, cudaMemcpyHostToDevice, cuda->stream),
                  error);
    else
      ZB_CUDA_TRY(cudaMemcpyAsync(to + place, at, count * sizeof *at, cudaMemcpyDeviceToHost, cuda->stream),
                  error);
    place += count;
  }
  return ZB_OK;
}

static size_t parameters_of(const struct zb_cuda *cuda, const struct zb_cuda_stage *stage) {
  size_t count = 0;
  for (int u = stage->first; u < stage->end; u++) count += zb_unit_sizes(zb_cuda_gpt(cuda), u).parameters;
  return count;
}

// The caller reads or frees its numbers next. They lie in ordinary memory, with which a copy may be over when
// its call returns, or not: where a GPU reaches that memory by itself, nothing is staged.
static enum zb_status settle(const struct zb_cuda *cuda, struct zb_error *error) {
  ZB_CUDA_TRY(cudaStreamSynchronize(cuda->stream), error);
  return ZB_OK;
}

enum zb_status zb_cuda_fetch(void *state, int stage, zb_real *values, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  ZB_CUDA_PASS(move(cuda, cuda->stage[stage], cuda->stage[stage]->values, NULL, values, error));
  return settle(cuda, error);
}

enum zb_status zb_cuda_store(void *state, int stage, zb_real *values, int64_t *steps_made,
                             struct zb_error *error) {
  struct zb_cuda *cuda = state;
  struct zb_cuda_stage *from = cuda->stage[stage];
  float *const arrays[] = {from->values, from->mean, from->square};
  size_t count = parameters_of(cuda, from);
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (size_t k = 0; k < 3; k++) ZB_CUDA_PASS(move(cuda, from, arrays[k], NULL, values + k * count, error));
  *steps_made = from->steps_made;
  return settle(cuda, error);
}

enum zb_status zb_cuda_restore(void *state, int stage, const zb_real *values, int64_t steps_made,
                               struct zb_error *error) {
  struct zb_cuda *cuda = state;
  struct zb_cuda_stage *to = cuda->stage[stage];
  float *const arrays[] = {to->values, to->mean, to->square};
  size_t count = parameters_of(cuda, to);
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (size_t k = 0; k < 3; k++) ZB_CUDA_PASS(move(cuda, to, arrays[k], values + k * count, NULL, error));
  ZB_CUDA_PASS(make_shadow(cuda, to, error));
  to->steps_made = steps_made;
  return settle(cuda, error);
}

enum zb_status zb_cuda_start_values(struct zb_cuda *cuda, struct zb_cuda_stage *stage,
                                    struct zb_error *error) {
  const struct zb_training *training = cuda->setup->training;
  size_t place = 0;
  zb_real *values = zb_reals(parameters_of(cuda, stage));
  if (!values) return zb_fail_memory(error);
  for (int u = stage->first; u < stage->end; u++) {
    zb_unit_start(training->gpt, u, training->seed, values + place);
    place += zb_unit_sizes(training->gpt, u).parameters;
  }
  enum zb_status status = move(cuda, stage, stage->values, values, NULL, error);
  if (status == ZB_OK) status = make_shadow(cuda, stage, error);
  enum zb_status settled = settle(cuda, status == ZB_OK ? error : NULL);
  free(values);
  return status == ZB_OK ? settled : status;
}
