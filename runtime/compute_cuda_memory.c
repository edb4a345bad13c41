// compute_cuda_memory.c - every buffer of a device, and the ones in which microbatches wait.
//
// How many of each size microbatches need is found by running the program's list of ops once without a
// device: taking and giving back are the same calls. So no step allocates. Without a program (measuring, and
// training without a pipeline) what is missing is allocated when it is first needed.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/compute_cuda_parts.h"

enum { ALIGNMENT = 256 };

static size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// One buffer; counted only, where that is what is asked for. At least one byte, so that it has an address.
static enum zb_status allocate(struct zb_cuda *cuda, size_t bytes, void **buffer, struct zb_error *error) {
  cuda->bytes += (int64_t)rounded(bytes ? bytes : 1);
  if (cuda->counts) return ZB_OK;
  if (cuda->buffers == cuda->buffer_room) {
    size_t room = cuda->buffer_room ? 2 * cuda->buffer_room : 64;
    void **grown = realloc(cuda->buffer, room * sizeof *grown);
    if (!grown) return zb_fail_memory(error);
    cuda->buffer = grown;
    cuda->buffer_room = room;
  }
  ZB_CUDA_TRY(cudaMalloc(buffer, bytes ? bytes : 1), error);
  cuda->buffer[cuda->buffers++] = *buffer;
  return ZB_OK;
}

static enum zb_status allocate_floats(struct zb_cuda *cuda, size_t count, float **floats,
                                      struct zb_error *error) {
  void *buffer = NULL;
  enum zb_status status = allocate(cuda, count * sizeof **floats, &buffer, error);
  *floats = buffer;
  return status;
}

static enum zb_status allocate_zeros(struct zb_cuda *cuda, size_t count, float **floats,
                                     struct zb_error *error) {
  ZB_CUDA_PASS(allocate_floats(cuda, count, floats, error));
  if (!cuda->counts) ZB_CUDA_TRY(cudaMemsetAsync(*floats, 0, count * sizeof **floats, cuda->stream), error);
  return ZB_OK;
}

static int size_index(struct zb_cuda_keep *keep, size_t bytes) {
  int k = 0;
  while (k < keep->sizes && keep->size[k].bytes != bytes) k++;
  assert(k < ZB_CUDA_SIZES);
  if (k == keep->sizes) keep->size[keep->sizes++].bytes = bytes;
  return k;
}

void zb_cuda_keep_count(struct zb_cuda *cuda, size_t bytes) {
  struct zb_cuda_keep *keep = &cuda->keep;
  keep->in_use_bytes += (int64_t)bytes;
  if (keep->in_use_bytes > keep->peak_bytes) keep->peak_bytes = keep->in_use_bytes;
}

static void note_taken(struct zb_cuda_keep *keep, int k) {
  keep->size[k].out++;
  if (keep->size[k].out > keep->size[k].most) keep->size[k].most = keep->size[k].out;
}

enum zb_status zb_cuda_keep_take(struct zb_cuda *cuda, size_t bytes, bool counted, void **buffer,
                                 struct zb_error *error) {
  struct zb_cuda_keep *keep = &cuda->keep;
  *buffer = NULL;
  if (bytes == 0) return ZB_OK;
  int k = size_index(keep, bytes);
  if (keep->size[k].spares == 0) {
    // Room for all of this size to be given back, before there is one more.
    int room = keep->size[k].out + 1;
    if (room > keep->size[k].spare_room) {
      void **grown = realloc(keep->size[k].spare, 2 * (size_t)room * sizeof *grown);
      if (!grown) return zb_fail_memory(error);
      keep->size[k].spare = grown;
      keep->size[k].spare_room = 2 * room;
    }
    ZB_CUDA_PASS(allocate(cuda, bytes, buffer, error));
  } else {
    *buffer = keep->size[k].spare[--keep->size[k].spares];
  }
  note_taken(keep, k);
  if (counted) zb_cuda_keep_count(cuda, bytes);
  return ZB_OK;
}

void zb_cuda_keep_give(struct zb_cuda *cuda, void *buffer, size_t bytes, bool counted) {
  struct zb_cuda_keep *keep = &cuda->keep;
  if (!buffer) return;
  int k = size_index(keep, bytes);
  keep->size[k].spare[keep->size[k].spares++] = buffer;
  keep->size[k].out--;
  if (counted) keep->in_use_bytes -= (int64_t)bytes;
}

// The same as numbers: one more or one less buffer of this size.
static void plan(struct zb_cuda_keep *keep, size_t bytes, int change) {
  if (bytes == 0) return;
  int k = size_index(keep, bytes);
  if (change > 0)
    note_taken(keep, k);
  else
    keep->size[k].out--;
}

// What a unit does with its buffers, in compute_cuda_stage.c's order.
static void plan_unit(struct zb_cuda_keep *keep, struct zb_unit_bytes bytes, enum zb_kind kind) {
  if (kind == ZB_F) {
    plan(keep, bytes.brief, 1);
    plan(keep, bytes.long_, 1);
  }
  if (kind == ZB_B || kind == ZB_BW) {
    plan(keep, bytes.late, 1);
    plan(keep, bytes.brief, -1);
  }
  if (kind == ZB_W || kind == ZB_BW) {
    plan(keep, bytes.long_, -1);
    plan(keep, bytes.late, -1);
  }
}

static void plan_op(struct zb_cuda *cuda, int stage, enum zb_kind kind) {
  const struct zb_compute_setup *setup = cuda->setup;
  int first = setup->first_unit[stage], end = setup->first_unit[stage + 1];
  for (int u = end - 1; u >= first; u--)
    plan_unit(&cuda->keep, zb_unit_bytes(zb_cuda_gpt(cuda), u, zb_cuda_dtype(cuda)), kind);
}

static enum zb_status plan_program(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_program *program = cuda->setup->program;
  const int d = cuda->setup->device;
  int32_t *next_w = calloc((size_t)program->profile->stages, sizeof *next_w);
  if (!next_w) return zb_fail_memory(error);
  for (size_t k = program->first[d]; k < program->first[d + 1]; k++) {
    const struct zb_instruction *i = &program->instructions[k];
    if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
    enum zb_kind kind = (enum zb_kind)i->kind;
    if (kind == ZB_BW && i->microbatch != next_w[i->stage]) {
      plan_op(cuda, i->stage, ZB_W);
      kind = ZB_B;
    }
    plan_op(cuda, i->stage, kind);
    if (kind == ZB_W || i->kind == ZB_DO_BW) next_w[i->stage]++;
  }
  free(next_w);
  return ZB_OK;
}

static enum zb_status lay_out_keep(struct zb_cuda *cuda, struct zb_error *error) {
  struct zb_cuda_keep *keep = &cuda->keep;
  if (!cuda->setup->program) return ZB_OK;
  ZB_CUDA_PASS(plan_program(cuda, error));
  for (int k = 0; k < keep->sizes; k++) {
    int most = keep->size[k].most;
    keep->size[k].spare = calloc((size_t)most + 1, sizeof *keep->size[k].spare);
    if (!keep->size[k].spare) return zb_fail_memory(error);
    keep->size[k].spare_room = most + 1;
    keep->size[k].out = 0;
    for (; keep->size[k].spares < most; keep->size[k].spares++)
      ZB_CUDA_PASS(allocate(cuda, keep->size[k].bytes, &keep->size[k].spare[keep->size[k].spares], error));
  }
  return ZB_OK;
}

static enum zb_status lay_out_stage(struct zb_cuda *cuda, int s, struct zb_error *error) {
  const struct zb_compute_setup *setup = cuda->setup;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  int first = setup->first_unit[s], end = setup->first_unit[s + 1];
  size_t units = (size_t)(end - first);
  struct zb_cuda_stage *stage = calloc(1, sizeof *stage);
  if (!stage) return zb_fail_memory(error);
  cuda->stage[s] = stage;
  *stage = (struct zb_cuda_stage){.first = first, .end = end};
  stage->offset = calloc(units + 1, sizeof *stage->offset);
  stage->kept = calloc((size_t)setup->training->microbatches * units + 1, sizeof *stage->kept);
  if (!stage->offset || !stage->kept) return zb_fail_memory(error);
  for (size_t u = 0; u < units; u++)
    stage->offset[u + 1] =
        stage->offset[u] +
        rounded(zb_unit_sizes(gpt, first + (int)u).parameters * sizeof(float)) / sizeof(float);
  stage->count = stage->offset[units];
  ZB_CUDA_PASS(allocate_zeros(cuda, stage->count, &stage->values, error));
  ZB_CUDA_PASS(allocate_zeros(cuda, stage->count, &stage->gradient, error));
  ZB_CUDA_PASS(allocate_zeros(cuda, stage->count, &stage->mean, error));
  ZB_CUDA_PASS(allocate_zeros(cuda, stage->count, &stage->square, error));
  stage->stepping = stage->gradient;
  for (int k = 0; k < 3 && setup->may_undo && setup->rollback == ZB_ROLLBACK_COPY; k++)
    ZB_CUDA_PASS(allocate_floats(cuda, stage->count, &stage->saved[k], error));
  if (setup->may_undo && setup->weights_before_verdict)
    ZB_CUDA_PASS(allocate_zeros(cuda, stage->count, &stage->resting, error));
  if (zb_cuda_dtype(cuda) == ZB_BF16)
    ZB_CUDA_PASS(allocate(cuda, stage->count * zb_dtype_bytes(ZB_BF16), &stage->shadow, error));
  return ZB_OK;
}

static size_t sums_of(const struct zb_gpt *gpt) {
  size_t most = 0;
  const int kinds[] = {0, 1, zb_gpt_units(gpt) - 1};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    size_t sums = zb_cuda_square_sum_scratch((int64_t)zb_unit_sizes(gpt, kinds[k]).parameters);
    if (sums > most) most = sums;
  }
  return most;
}

enum zb_status zb_cuda_lay_out(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_compute_setup *setup = cuda->setup;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  size_t microbatches = (size_t)setup->training->microbatches, tokens = (size_t)zb_gpt_tokens(gpt);
  size_t message = zb_training_message_bytes(setup->training);
  void *buffer = NULL;
  cuda->blas_bytes = zb_cuda_blas_bytes(gpt);
  ZB_CUDA_PASS(allocate(cuda, cuda->blas_bytes, &cuda->blas_workspace, error));
  ZB_CUDA_PASS(allocate(cuda, zb_cuda_scratch_bytes(gpt, zb_cuda_dtype(cuda)), &cuda->scratch, error));
  ZB_CUDA_PASS(allocate_floats(cuda, zb_cuda_column_floats(gpt), &cuda->columns, error));
  ZB_CUDA_PASS(allocate(cuda, sums_of(gpt) * sizeof(double), &buffer, error));
  cuda->sums = buffer;
  for (int k = 0; k < 2; k++) ZB_CUDA_PASS(allocate(cuda, message, &cuda->between[k], error));
  ZB_CUDA_PASS(allocate(cuda, 2 * microbatches * tokens, &buffer, error));
  cuda->data = buffer;
  size_t numbers = (size_t)zb_gpt_units(gpt) + microbatches;
  ZB_CUDA_PASS(allocate(cuda, numbers * sizeof(double), &buffer, error));
  cuda->numbers = buffer;
  cuda->stage = calloc((size_t)setup->profile->stages, sizeof *cuda->stage);
  if (!cuda->stage) return zb_fail_memory(error);
  for (int s = 0; s < setup->profile->stages; s++)
    if (setup->profile->device_of[s] == setup->device) ZB_CUDA_PASS(lay_out_stage(cuda, s, error));
  return lay_out_keep(cuda, error);
}

void zb_cuda_take_down(struct zb_cuda *cuda) {
  for (int s = 0; cuda->stage && s < cuda->setup->profile->stages; s++) {
    if (!cuda->stage[s]) continue;
    free(cuda->stage[s]->offset);
    free(cuda->stage[s]->kept);
    free(cuda->stage[s]);
  }
  for (int k = 0; k < cuda->keep.sizes; k++) free(cuda->keep.size[k].spare);
  for (size_t k = 0; k < cuda->buffers; k++) cudaFree(cuda->buffer[k]);
  free(cuda->stage);
  free(cuda->buffer);
}
