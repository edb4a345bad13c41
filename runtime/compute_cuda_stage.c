// compute_cuda_stage.c - units in a row, and what they keep, as stage.c has it.
//
// B writes what W will need into a buffer that counts as kept only when what B itself needed has been given
// back: so no more is counted on the way than at both ends, and nothing is copied.
#include <assert.h>

#include "kernels/kernels.h"
#include "runtime/compute_cuda_parts.h"

static struct zb_cuda_kept *kept_of(struct zb_cuda_stage *stage, int microbatch, int unit) {
  return &stage->kept[(size_t)microbatch * (size_t)(stage->end - stage->first) +
                      (size_t)(unit - stage->first)];
}

static struct zb_unit_bytes bytes_of(const struct zb_cuda *cuda, int unit) {
  return zb_unit_bytes(zb_cuda_gpt(cuda), unit, zb_cuda_dtype(cuda));
}

void zb_cuda_stage_begin(struct zb_cuda *cuda, struct zb_cuda_stage *stage) {
  for (int m = 0; m < cuda->setup->training->microbatches; m++) {
    for (int u = stage->first; u < stage->end; u++) {
      struct zb_cuda_kept *kept = kept_of(stage, m, u);
      struct zb_unit_bytes bytes = bytes_of(cuda, u);
      zb_cuda_keep_give(cuda, kept->brief, bytes.brief, true);
      zb_cuda_keep_give(cuda, kept->long_, bytes.long_, true);
      zb_cuda_keep_give(cuda, kept->late, bytes.late, true);
      *kept = (struct zb_cuda_kept){NULL, NULL, NULL};
    }
  }
  if (stage->resting) {
    float *last = stage->gradient;
    stage->gradient = stage->resting;
    stage->resting = last;
  }
  stage->next_w = 0;
}

static struct zb_cuda_pass pass_of(struct zb_cuda *cuda, const struct zb_cuda_stage *stage, int microbatch,
                                   int unit) {
  size_t offset = stage->offset[unit - stage->first];
  const struct zb_bf16 *shadow = stage->shadow;
  return (struct zb_cuda_pass){
      .cuda = cuda,
      .microbatch = microbatch,
      .parameters = stage->values + offset,
      .factors = shadow ? (const void *)(shadow + offset) : stage->values + offset,
  };
}

// A stage of no units hands on what it gets.
static enum zb_status pass_through(const struct zb_cuda *cuda, const struct zb_cuda_stage *stage,
                                   const void *in, void *out, struct zb_error *error) {
  if (stage->first < stage->end) return ZB_OK;
  ZB_CUDA_TRY(zb_cuda_copy(cuda->stream, in, out, (int64_t)zb_training_message_bytes(cuda->setup->training)),
              error);
  return ZB_OK;
}

static enum zb_status forward(struct zb_cuda *cuda, struct zb_cuda_stage *stage, int microbatch,
                              const void *input, void *output, struct zb_error *error) {
  ZB_CUDA_PASS(pass_through(cuda, stage, input, output, error));
  for (int u = stage->first; u < stage->end; u++) {
    struct zb_cuda_kept *kept = kept_of(stage, microbatch, u);
    ZB_CUDA_PASS(zb_cuda_keep_take(cuda, bytes_of(cuda, u).brief, true, &kept->brief, error));
    ZB_CUDA_PASS(zb_cuda_keep_take(cuda, bytes_of(cuda, u).long_, true, &kept->long_, error));
    void *next = u == stage->end - 1 ? output : cuda->between[(u - stage->first) & 1];
    struct zb_cuda_pass pass = pass_of(cuda, stage, microbatch, u);
    ZB_CUDA_PASS(zb_cuda_unit_forward(&pass, u, input, *kept, next, error));
    input = next;
  }
  return ZB_OK;
}

// B of one unit; what it kept for a short time goes back.
static enum zb_status unit_backward(struct zb_cuda *cuda, struct zb_cuda_stage *stage, int microbatch,
                                    int unit, const void *d_output, void *late, void *d_input,
                                    struct zb_error *error) {
  struct zb_cuda_kept *kept = kept_of(stage, microbatch, unit), used = *kept;
  struct zb_cuda_pass pass = pass_of(cuda, stage, microbatch, unit);
  used.late = late;
  ZB_CUDA_PASS(zb_cuda_unit_backward(&pass, unit, d_output, used, d_input, error));
  zb_cuda_keep_give(cuda, kept->brief, bytes_of(cuda, unit).brief, true);
  kept->brief = NULL;
  return ZB_OK;
}

// W of one unit, with `late` from where it is, after which nothing else of the microbatch is left there.
static enum zb_status unit_weights(struct zb_cuda *cuda, struct zb_cuda_stage *stage, int microbatch,
                                   int unit, void *late, struct zb_error *error) {
  size_t offset = stage->offset[unit - stage->first], end = stage->offset[unit - stage->first + 1];
  if (microbatch == 0)
    ZB_CUDA_TRY(
        cudaMemsetAsync(stage->gradient + offset, 0, (end - offset) * sizeof *stage->gradient, cuda->stream),
        error);
  struct zb_cuda_kept *kept = kept_of(stage, microbatch, unit), used = *kept;
  struct zb_cuda_pass pass = pass_of(cuda, stage, microbatch, unit);
  used.late = late;
  ZB_CUDA_PASS(zb_cuda_unit_weights(&pass, unit, used, stage->gradient + offset, error));
  zb_cuda_keep_give(cuda, kept->long_, bytes_of(cuda, unit).long_, true);
  kept->long_ = NULL;
  return ZB_OK;
}

// Where B of a unit leaves the gradient for its input.
static void *gradient_target(const struct zb_cuda *cuda, const struct zb_cuda_stage *stage, int unit,
                             void *d_input) {
  return unit == stage->first ? d_input : cuda->between[(unit - stage->first) & 1];
}

// The head comes first and grows, where blocks may shrink: so it counts last, as in stage.c.
static enum zb_status backward(struct zb_cuda *cuda, struct zb_cuda_stage *stage, int microbatch,
                               const void *d_output, void *d_input, struct zb_error *error) {
  const int head = zb_gpt_units(zb_cuda_gpt(cuda)) - 1;
  const void *above = d_output;
  for (int u = stage->end - 1; u >= stage->first; u--) {
    struct zb_cuda_kept *kept = kept_of(stage, microbatch, u);
    void *next = gradient_target(cuda, stage, u, d_input), *late = NULL;
    ZB_CUDA_PASS(zb_cuda_keep_take(cuda, bytes_of(cuda, u).late, false, &late, error));
    ZB_CUDA_PASS(unit_backward(cuda, stage, microbatch, u, above, late, next, error));
    kept->late = late;
    if (u != head) zb_cuda_keep_count(cuda, bytes_of(cuda, u).late);
    above = next;
  }
  if (stage->end - 1 == head && stage->first <= head) zb_cuda_keep_count(cuda, bytes_of(cuda, head).late);
  return pass_through(cuda, stage, d_output, d_input, error);
}

static enum zb_status weights(struct zb_cuda *cuda, struct zb_cuda_stage *stage, struct zb_error *error) {
  int microbatch = stage->next_w++;
  assert(microbatch < cuda->setup->training->microbatches);
  for (int u = stage->first; u < stage->end; u++) {
    struct zb_cuda_kept *kept = kept_of(stage, microbatch, u);
    ZB_CUDA_PASS(unit_weights(cuda, stage, microbatch, u, kept->late, error));
    zb_cuda_keep_give(cuda, kept->late, bytes_of(cuda, u).late, true);
    kept->late = NULL;
  }
  return ZB_OK;
}

static enum zb_status fused(struct zb_cuda *cuda, struct zb_cuda_stage *stage, int microbatch,
                            const void *d_output, void *d_input, struct zb_error *error) {
  if (stage->next_w != microbatch) {
    // Older microbatches wait for their W: the oldest goes first, and this one's B is an ordinary B.
    ZB_CUDA_PASS(weights(cuda, stage, error));
    return backward(cuda, stage, microbatch, d_output, d_input, error);
  }
  const void *above = d_output;
  for (int u = stage->end - 1; u >= stage->first; u--) {
    void *next = gradient_target(cuda, stage, u, d_input), *late = NULL;
    size_t bytes = bytes_of(cuda, u).late;
    ZB_CUDA_PASS(zb_cuda_keep_take(cuda, bytes, false, &late, error));
    ZB_CUDA_PASS(unit_backward(cuda, stage, microbatch, u, above, late, next, error));
    ZB_CUDA_PASS(unit_weights(cuda, stage, microbatch, u, late, error));
    zb_cuda_keep_give(cuda, late, bytes, false);
    above = next;
  }
  stage->next_w++;
  return pass_through(cuda, stage, d_output, d_input, error);
}

enum zb_status zb_cuda_stage_op(struct zb_cuda *cuda, struct zb_cuda_stage *stage, struct zb_op op,
                                const void *in, void *out, struct zb_error *error) {
  switch (op.kind) {
  case ZB_F:
    return forward(cuda, stage, op.microbatch, in, out, error);
  case ZB_B:
    return backward(cuda, stage, op.microbatch, in, out, error);
  case ZB_W:
    return weights(cuda, stage, error);
  case ZB_BW:
    return fused(cuda, stage, op.microbatch, in, out, error);
  }
  return ZB_OK;
}
