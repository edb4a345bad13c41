// standin_copy.c - copies and fills.
//
// A copy reads and writes when its turn comes. With ordinary memory of the host it may be over before that:
// CUDA's runtime stages it, so that from there the content is taken at the call and into there the call waits
// for the copy, but promises neither ("might be synchronous": API synchronization behavior). So a coin is
// tossed, unless calls are to fail, because then nobody can wait for what is under way.
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin_parts.h"

struct copy {
  void *to;
  const void *from;
  size_t bytes;
  enum place to_place, from_place;
  int value; // of a fill, which has no `from`
  bool done;
  _Alignas(16) unsigned char content[]; // of ordinary memory
};

static void copy_run(void *argument) {
  struct copy *copy = argument;
  int64_t bytes = (int64_t)copy->bytes;
  // Each end once more: what was there at the call may have been freed since.
  if (!zb_standin_range("a copy's destination", copy->to, bytes, copy->to_place)) return;
  if (!copy->from) {
    memset(copy->to, copy->value, copy->bytes);
    return;
  }
  if (!zb_standin_range("a copy's source", copy->from, bytes, copy->from_place)) return;
  memcpy(copy->to, copy->from, copy->bytes);
}

static bool overlap(const void *a, const void *b, size_t bytes) {
  const unsigned char *x = a, *y = b;
  return x < y ? (size_t)(y - x) < bytes : (size_t)(x - y) < bytes;
}

static enum place place_of(const void *at) {
  struct block *block = zb_standin_block(at);
  return block && block->device >= 0 ? PLACE_DEVICE : PLACE_HOST;
}

static cudaError_t look(const char *call, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                        struct copy *copy) {
  static const struct {
    enum cudaMemcpyKind kind;
    enum place to, from;
  } sides[] = {{cudaMemcpyHostToHost, PLACE_HOST, PLACE_HOST},
               {cudaMemcpyHostToDevice, PLACE_DEVICE, PLACE_HOST},
               {cudaMemcpyDeviceToHost, PLACE_HOST, PLACE_DEVICE},
               {cudaMemcpyDeviceToDevice, PLACE_DEVICE, PLACE_DEVICE}};
  *copy = (struct copy){
      .to = to, .from = from, .bytes = bytes, .to_place = place_of(to), .from_place = place_of(from)};
  for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
    if (sides[k].kind == kind) copy->to_place = sides[k].to, copy->from_place = sides[k].from;
  if (!zb_standin_range(call, to, (int64_t)bytes, copy->to_place) ||
      !zb_standin_range(call, from, (int64_t)bytes, copy->from_place))
    return cudaErrorInvalidValue;
  if (bytes && overlap(to, from, bytes)) {
    zb_standin_report("%s: source and destination overlap", call);
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// For a call that waits, and frees it.
static void copy_tell(void *argument) { ((struct copy *)argument)->done = true; }
static bool copy_is_over(void *argument) { return ((struct copy *)argument)->done; }

static bool ordinary(const void *at) { return !zb_standin_block(at); }

static cudaError_t copy_later(const char *call, void *to, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  struct copy copy;
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable(call, stream);
  if (!status) status = look(call, to, from, bytes, kind, &copy);
  if (status || !bytes) return zb_standin_leave(status);
  bool from_ordinary = ordinary(from), to_ordinary = ordinary(to);
  if (stream->capture && (from_ordinary || to_ordinary)) {
    zb_standin_report("%s: ordinary memory of the host in a captured stream", call);
    return zb_standin_leave(cudaErrorStreamCaptureUnsupported);
  }
  bool staged = zb_standin_setup.fail_call || zb_standin_below(2);
  from_ordinary &= staged;
  to_ordinary &= staged;
  struct copy *kept = zb_standin_new(sizeof *kept + (from_ordinary ? bytes : 0));
  *kept = copy;
  if (from_ordinary) kept->from = memcpy(kept->content, from, bytes);
  struct op *op = zb_standin_op(&zb_standin_call, call);
  op->call = copy_run;
  op->argument = kept;
  op->discard = to_ordinary ? copy_tell : free;
  zb_standin_queue(stream, op);
  if (to_ordinary) {
    bool over = zb_standin_wait(call, copy_is_over, kept, stream);
    if (!over) return zb_standin_leave(cudaErrorLaunchTimeout); // and it stays where it is, still queued
    free(kept);
    if (zb_standin_device[stream->device].broken) status = zb_standin_device[stream->device].broken;
  }
  return zb_standin_leave(status);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_later("cudaMemcpyAsync", to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  zb_standin_enter(ENTER_SAFE);
  struct block *target = zb_standin_block(to), *source = zb_standin_block(from);
  bool agree = target && source && target->device == to_device && source->device == from_device;
  if (!agree) zb_standin_report("cudaMemcpyPeerAsync: the addresses are not of the devices that it names");
  zb_standin_leave(cudaSuccess);
  if (!agree) return cudaErrorInvalidValue;
  return copy_later("cudaMemcpyPeerAsync", to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

static bool blocking_are_over(void *argument) {
  for (struct CUstream_st *stream = zb_standin_streams; stream; stream = stream->next)
    if (stream->alive && stream->blocking && stream->device == *(int *)argument && stream->queued)
      return false;
  return true;
}

// Behind the default stream's rule: after all that blocking streams have, and no other.
static cudaError_t behind_blocking(const char *call) {
  int device = zb_standin_current();
  if (!zb_standin_wait(call, blocking_are_over, &device, NULL)) return cudaErrorLaunchTimeout;
  return zb_standin_device[device].broken;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  struct copy copy;
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status) status = look("cudaMemcpy", to, from, bytes, kind, &copy);
  if (!status) status = behind_blocking("cudaMemcpy");
  if (!status && bytes) copy_run(&copy);
  return zb_standin_leave(status);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (!status && !zb_standin_range("cudaMemset", at, (int64_t)bytes, PLACE_DEVICE))
    status = cudaErrorInvalidValue;
  if (!status) status = behind_blocking("cudaMemset");
  if (!status && bytes) memset(at, value, bytes);
  return zb_standin_leave(status);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) status = zb_standin_usable("cudaMemsetAsync", stream);
  if (!status && !zb_standin_range("cudaMemsetAsync", at, (int64_t)bytes, PLACE_DEVICE))
    status = cudaErrorInvalidValue;
  if (status || !bytes) return zb_standin_leave(status);
  struct copy *kept = zb_standin_new(sizeof *kept);
  *kept = (struct copy){.to = at, .bytes = bytes, .value = value, .to_place = PLACE_DEVICE};
  struct op *op = zb_standin_op(&zb_standin_call, "cudaMemsetAsync");
  op->call = copy_run;
  op->argument = kept;
  op->discard = free;
  zb_standin_queue(stream, op);
  return zb_standin_leave(cudaSuccess);
}
