// compute_cuda_clock.c - when ops began and ended, on the host's clock.
//
// The device's clock tells the time between two of its events, and not which time of the host that is. Each
// batch begins with an event; from one such to the next the host's time is carried on by the device's, and
// each batch bounds it: the event came after it was issued, and the batch's last op ended before finish saw
// it. What lies outside is moved to the bound, so that after a few batches the error is no more than the
// least that any of them left open, and no drift of the clocks lasts.
//
// In a graph the events of ops are recorded each time it is launched; they are made for that (external).
#include <stdlib.h>
#include <string.h>

#include "runtime/compute_cuda_parts.h"
#include "solver/model/deadline.h"

static enum zb_status more_marks(struct zb_cuda *cuda, size_t room, struct zb_error *error) {
  if (room > cuda->mark_room) {
    struct zb_cuda_mark *grown = realloc(cuda->mark, room * sizeof *grown);
    if (!grown) return zb_fail_memory(error);
    cuda->mark = grown;
    cuda->mark_room = room;
  }
  for (; cuda->marks < room; cuda->marks++) {
    struct zb_cuda_mark *mark = &cuda->mark[cuda->marks];
    *mark = (struct zb_cuda_mark){NULL, NULL, NULL};
    ZB_CUDA_TRY(cudaEventCreate(&mark->start), error);
    cudaError_t code = cudaEventCreate(&mark->end);
    if (code == cudaSuccess) continue;
    cudaEventDestroy(mark->start);
    return zb_cuda_fail(error, "cudaEventCreate", code);
  }
  return ZB_OK;
}

enum zb_status zb_cuda_clock_open(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_program *program = cuda->setup->program;
  const int d = cuda->setup->device;
  size_t ops = 0;
  for (size_t k = program ? program->first[d] : 0; program && k < program->first[d + 1]; k++)
    ops += zb_instruction_acts(program->instructions[k].kind) == ZB_ACTS_OP;
  for (int k = 0; k < 2; k++) ZB_CUDA_TRY(cudaEventCreate(&cuda->base[k]), error);
  return more_marks(cuda, ops, error);
}

void zb_cuda_clock_close(struct zb_cuda *cuda) {
  for (size_t k = 0; k < cuda->marks; k++) {
    cudaEventDestroy(cuda->mark[k].start);
    cudaEventDestroy(cuda->mark[k].end);
  }
  for (int k = 0; k < 2; k++)
    if (cuda->base[k]) cudaEventDestroy(cuda->base[k]);
  free(cuda->mark);
}

enum zb_status zb_cuda_clock_begin(struct zb_cuda *cuda, struct zb_error *error) {
  cuda->issued = cuda->ended = cuda->told = 0;
  cuda->began_ns = zb_clock_ns();
  ZB_CUDA_TRY(cudaEventRecord(cuda->base[cuda->base_now], cuda->stream), error);
  return ZB_OK;
}

static enum zb_status record(const struct zb_cuda *cuda, cudaEvent_t event, struct zb_error *error) {
  unsigned how = cuda->graph_mode == ZB_CUDA_CAPTURES ? cudaEventRecordExternal : cudaEventRecordDefault;
  ZB_CUDA_TRY(cudaEventRecordWithFlags(event, cuda->stream, how), error);
  return ZB_OK;
}

enum zb_status zb_cuda_clock_start(struct zb_cuda *cuda, struct zb_interval *when, struct zb_error *error) {
  if (cuda->issued == cuda->marks) ZB_CUDA_PASS(more_marks(cuda, 2 * cuda->marks + 8, error));
  cuda->mark[cuda->issued].when = when;
  return record(cuda, cuda->mark[cuda->issued].start, error);
}

enum zb_status zb_cuda_clock_end(struct zb_cuda *cuda, struct zb_error *error) {
  return record(cuda, cuda->mark[cuda->issued++].end, error);
}

static enum zb_status between(cudaEvent_t from, cudaEvent_t to, int64_t *ns, struct zb_error *error) {
  float ms = 0;
  ZB_CUDA_TRY(cudaEventElapsedTime(&ms, from, to), error);
  *ns = (int64_t)((double)ms * 1e6);
  return ZB_OK;
}

// When this batch began, from when the one before did.
static enum zb_status find_base(struct zb_cuda *cuda, int64_t seen_ns, struct zb_error *error) {
  const cudaEvent_t now = cuda->base[cuda->base_now], before = cuda->base[!cuda->base_now];
  int64_t lasted_ns = 0, since_ns = 0;
  ZB_CUDA_PASS(between(now, cuda->mark[cuda->issued - 1].end, &lasted_ns, error));
  int64_t latest_ns = seen_ns - lasted_ns, base_ns = latest_ns;
  if (cuda->base_known) {
    ZB_CUDA_PASS(between(before, now, &since_ns, error));
    base_ns = cuda->base_ns + since_ns;
  }
  if (base_ns < cuda->began_ns) base_ns = cuda->began_ns;
  if (base_ns > latest_ns) base_ns = latest_ns;
  cuda->base_ns = base_ns;
  cuda->base_known = true;
  cuda->base_now = !cuda->base_now;
  return ZB_OK;
}

enum zb_status zb_cuda_clock_tell(struct zb_cuda *cuda, struct zb_error *error) {
  int64_t seen_ns = zb_clock_ns();
  cuda->ended = cuda->issued;
  // The first finish of a batch that has ops says when it began; from then on that is the event before.
  if (cuda->told == 0 && cuda->issued > 0) ZB_CUDA_PASS(find_base(cuda, seen_ns, error));
  for (; cuda->told < cuda->issued; cuda->told++) {
    const struct zb_cuda_mark *mark = &cuda->mark[cuda->told];
    int64_t start_ns = 0, took_ns = 0;
    ZB_CUDA_PASS(between(cuda->base[!cuda->base_now], mark->start, &start_ns, error));
    ZB_CUDA_PASS(between(mark->start, mark->end, &took_ns, error));
    mark->when->start_ns = cuda->base_ns + start_ns;
    mark->when->end_ns = mark->when->start_ns + took_ns;
  }
  return ZB_OK;
}
