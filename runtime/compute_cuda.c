// compute_cuda.c - a device of the cuda backend: its streams, its events, and the table of its functions.
//
// The rank issues a whole batch and then waits once, in finish behind the norm. Errors of what runs later
// come out there.
#include <assert.h>
#include <nvtx3/nvToolsExt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/compute_cuda_parts.h"
#include "solver/model/deadline.h"

_Static_assert(sizeof(zb_real) == sizeof(float), "kernels compute in fp32");

// How often finish asks before it sleeps between two questions: a batch's end is waited for once.
enum { LOOKS = 200 };

enum zb_status zb_cuda_enter(const struct zb_cuda *cuda, struct zb_error *error) {
  ZB_CUDA_TRY(cudaSetDevice(cuda->gpu), error);
  return ZB_OK;
}

// A graph may have messages inside, and their communicators do not end before it does. One that is still
// running is freed when it is over.
static void part(void *state) {
  struct zb_cuda *cuda = state;
  zb_cuda_enter(cuda, NULL);
  if (cuda->graph) cudaGraphExecDestroy(cuda->graph);
  cuda->graph = NULL;
}

static void close_state(void *state) {
  struct zb_cuda *cuda = state;
  if (!cuda) return;
  zb_cuda_enter(cuda, NULL);
  part(cuda);
  zb_cuda_clock_close(cuda);
  for (size_t k = 0; k < cuda->events; k++) cudaEventDestroy(cuda->event[k].event);
  free(cuda->event);
  if (cuda->blas) cublasDestroy(cuda->blas);
  zb_cuda_take_down(cuda);
  if (cuda->host_data) cudaFreeHost(cuda->host_data);
  if (cuda->host_numbers) cudaFreeHost(cuda->host_numbers);
  cudaStream_t const streams[] = {cuda->stream, cuda->copies, cuda->follows};
  for (size_t k = 0; k < sizeof streams / sizeof *streams; k++)
    if (streams[k]) cudaStreamDestroy(streams[k]);
  if (cuda->has_locks) {
    pthread_mutex_destroy(&cuda->copying);
    pthread_mutex_destroy(&cuda->following);
  }
  free(cuda);
}

static enum zb_status try_blas(cublasStatus_t code, const char *call, struct zb_error *error) {
  return code == CUBLAS_STATUS_SUCCESS ? ZB_OK : zb_cuda_fail_blas(error, call, code);
}

static enum zb_status open_blas(struct zb_cuda *cuda, struct zb_error *error) {
  ZB_CUDA_PASS(try_blas(cublasCreate(&cuda->blas), "cublasCreate", error));
  ZB_CUDA_PASS(try_blas(cublasSetStream(cuda->blas, cuda->stream), "cublasSetStream", error));
  // Partial sums of bf16 products are never bf16.
  ZB_CUDA_PASS(try_blas(
      cublasSetMathMode(cuda->blas, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
      "cublasSetMathMode", error));
  return try_blas(cublasSetWorkspace(cuda->blas, cuda->blas_workspace, cuda->blas_bytes),
                  "cublasSetWorkspace", error);
}

static enum zb_status open_parts(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_training *training = cuda->setup->training;
  size_t batch = (size_t)training->microbatches * (size_t)zb_gpt_tokens(training->gpt);
  size_t numbers = (size_t)zb_gpt_units(training->gpt) + (size_t)training->microbatches;
  void *pinned = NULL;
  int least = 0, greatest = 0;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  ZB_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), error);
  // A copy that is a kernel does not queue behind all blocks of an op: somebody waits for it.
  ZB_CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest), error);
  ZB_CUDA_TRY(cudaStreamCreateWithPriority(&cuda->copies, cudaStreamNonBlocking, greatest), error);
  ZB_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->follows, cudaStreamNonBlocking), error);
  ZB_CUDA_TRY(cudaMallocHost(&pinned, 2 * batch), error);
  cuda->host_data = pinned;
  ZB_CUDA_TRY(cudaMallocHost(&pinned, numbers * sizeof(double)), error);
  cuda->host_numbers = pinned;
  enum zb_status status = zb_cuda_lay_out(cuda, error);
  if (status != ZB_OK) return status;
  ZB_CUDA_PASS(open_blas(cuda, error));
  ZB_CUDA_PASS(zb_cuda_clock_open(cuda, error));
  ZB_CUDA_PASS(zb_cuda_rehearse(cuda, error));
  for (int s = 0; s < cuda->setup->profile->stages; s++) {
    struct zb_cuda_stage *stage = cuda->stage[s];
    if (!stage) continue;
    cuda->reads_tokens |= stage->first == 0 && stage->end > 0;
    cuda->reads_targets |= stage->end == zb_gpt_units(training->gpt) && stage->first < stage->end;
    ZB_CUDA_PASS(zb_cuda_start_values(cuda, stage, error));
  }
  return ZB_OK;
}

static int64_t needs(const struct zb_compute_setup *setup) {
  struct zb_cuda plan = {.setup = setup, .counts = true};
  enum zb_status status = zb_cuda_lay_out(&plan, NULL);
  zb_cuda_take_down(&plan);
  return status == ZB_OK ? plan.bytes : INT64_MAX / 4096;
}

// Before the first step in any case: everything is allocated by then.
static enum zb_status fail_memory(const struct zb_cuda *cuda, struct zb_error *error) {
  return zb_fail(error, ZB_BAD_INPUT,
                 "out of memory: device %d needs %lld bytes of GPU %d, and its message slots",
                 cuda->setup->device, (long long)needs(cuda->setup), cuda->gpu);
}

static enum zb_status open_state(const struct zb_compute_setup *setup, void **state, struct zb_error *error) {
  struct zb_cuda *cuda = calloc(1, sizeof *cuda);
  if (!cuda) return zb_fail_memory(error);
  cuda->setup = setup;
  cuda->data_step = -1;
  enum zb_status status = zb_cuda_gpu_of(setup->seat, &cuda->gpu, error);
  if (status == ZB_OK) {
    pthread_mutex_init(&cuda->copying, NULL);
    pthread_mutex_init(&cuda->following, NULL);
    cuda->has_locks = true;
    status = open_parts(cuda, error);
  }
  if (status == ZB_OK) {
    *state = cuda;
    return ZB_OK;
  }
  if (error && strstr(error->text, "out of memory")) fail_memory(cuda, error);
  // What is under way must not lose its buffers.
  if (cuda->stream) cudaStreamSynchronize(cuda->stream);
  close_state(cuda);
  return error ? error->status : status;
}

static enum zb_status allocate(void *state, size_t bytes, void **buffer, struct zb_error *error) {
  ZB_CUDA_PASS(zb_cuda_enter(state, error));
  cudaError_t code = cudaMalloc(buffer, bytes ? bytes : 1);
  if (code == cudaErrorMemoryAllocation) return fail_memory(state, error);
  return code == cudaSuccess ? ZB_OK : zb_cuda_fail(error, "cudaMalloc", code);
}

static void release(void *state, void *buffer) {
  (void)state;
  if (buffer) cudaFree(buffer);
}

// The batch's tokens into pinned memory, which a device reads when it gets there.
static void draw_data(struct zb_cuda *cuda, int64_t step) {
  const struct zb_training *training = cuda->setup->training;
  size_t tokens = (size_t)zb_gpt_tokens(training->gpt);
  unsigned char *targets = cuda->host_data + (size_t)training->microbatches * tokens;
  // Begun again: it is there, and may be on its way.
  if (cuda->data_step == step) return;
  for (size_t m = 0; m < (size_t)training->microbatches; m++)
    zb_corpus_batch(training->corpus, training->gpt, step, (int)m, cuda->host_data + m * tokens,
                    targets + m * tokens);
  cuda->data_step = step;
}

static enum zb_status upload_data(struct zb_cuda *cuda, struct zb_error *error) {
  const struct zb_training *training = cuda->setup->training;
  size_t batch = (size_t)training->microbatches * (size_t)zb_gpt_tokens(training->gpt);
  ZB_CUDA_TRY(cudaMemcpyAsync(cuda->data, cuda->host_data, 2 * batch, cudaMemcpyHostToDevice, cuda->stream),
              error);
  return ZB_OK;
}

static enum zb_status begin(void *state, int64_t step, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  bool reads = cuda->reads_tokens || cuda->reads_targets;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (int s = 0; s < cuda->setup->profile->stages; s++)
    if (cuda->stage[s]) zb_cuda_stage_begin(cuda, cuda->stage[s]);
  if (reads) draw_data(cuda, step);
  ZB_CUDA_PASS(zb_cuda_clock_begin(cuda, error));
  ZB_CUDA_PASS(zb_cuda_graph_begin(cuda, error));
  return reads && cuda->graph_mode != ZB_CUDA_REPEATS ? upload_data(cuda, error) : ZB_OK;
}

static bool repeats(void *state) {
  const struct zb_cuda *cuda = state;
  return cuda->graph_mode == ZB_CUDA_REPEATS;
}

static enum zb_status issue(struct zb_cuda *cuda, struct zb_op op, const void *in, void *out,
                            struct zb_interval *when, struct zb_error *error) {
  ZB_CUDA_PASS(zb_cuda_clock_start(cuda, when, error));
  ZB_CUDA_PASS(zb_cuda_stage_op(cuda, cuda->stage[op.stage], op, in, out, error));
  return zb_cuda_clock_end(cuda, error);
}

static enum zb_status run_op(void *state, struct zb_op op, const void *in, void *out,
                             struct zb_interval *when, struct zb_error *error) {
  struct zb_instruction named = {
      .kind = (enum zb_instruction_kind)op.kind, .stage = op.stage, .microbatch = op.microbatch};
  char name[ZB_INSTRUCTION_TEXT + 4] = "PP:";
  zb_instruction_print(named, name + 3);
  ZB_CUDA_PASS(zb_cuda_enter(state, error));
  nvtxRangePushA(name);
  enum zb_status status = issue(state, op, in, out, when, error);
  nvtxRangePop();
  return status;
}

// Events of messages. There are as many as messages were ever posted at once.

static enum zb_status more_events(struct zb_cuda *cuda, struct zb_error *error) {
  if (cuda->events == cuda->event_room) {
    size_t room = cuda->event_room ? 2 * cuda->event_room : 16;
    struct zb_cuda_event *grown = realloc(cuda->event, room * sizeof *grown);
    if (!grown) return zb_fail_memory(error);
    cuda->event = grown;
    cuda->event_room = room;
  }
  struct zb_cuda_event *event = &cuda->event[cuda->events];
  ZB_CUDA_TRY(cudaEventCreateWithFlags(&event->event, cudaEventDisableTiming), error);
  event->free = true;
  cuda->events++;
  return ZB_OK;
}

static enum zb_status record(void *state, void **event, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  size_t k = 0;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  while (k < cuda->events && !cuda->event[k].free) k++;
  if (k == cuda->events) ZB_CUDA_PASS(more_events(cuda, error));
  // What a send reads is written then, and what a receive overwrites has been read.
  ZB_CUDA_TRY(cudaEventRecord(cuda->event[k].event, cuda->stream), error);
  cuda->event[k].free = false;
  *event = cuda->event[k].event;
  return ZB_OK;
}

static enum zb_status await(void *state, void *event, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  // What comes next reads what has arrived, or overwrites what has left.
  ZB_CUDA_TRY(cudaStreamWaitEvent(cuda->stream, event, 0), error);
  for (size_t k = 0; k < cuda->events; k++)
    if (cuda->event[k].event == event) cuda->event[k].free = true;
  return ZB_OK;
}

static enum zb_status copy_message(struct zb_cuda *cuda, void *to, const void *from, size_t bytes,
                                   cudaEvent_t after_from, cudaEvent_t after_to, struct zb_error *error) {
  // The sender's op has written it.
  ZB_CUDA_TRY(cudaStreamWaitEvent(cuda->copies, after_from, 0), error);
  // The last reader of the slot that it goes into is through.
  ZB_CUDA_TRY(cudaStreamWaitEvent(cuda->copies, after_to, 0), error);
  ZB_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda->copies), error);
  // It has arrived.
  ZB_CUDA_TRY(cudaEventRecord(after_to, cuda->copies), error);
  return ZB_OK;
}

static enum zb_status copy(void *state, void *to, const void *from, size_t bytes, void *after_from,
                           void *after_to, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  pthread_mutex_lock(&cuda->copying);
  enum zb_status status = copy_message(cuda, to, from, bytes, after_from, after_to, error);
  pthread_mutex_unlock(&cuda->copying);
  return status;
}

// An event belongs to its device, and only a stream of that one can carry it: so the sender's is put behind
// the receiver's in a stream of the sender's own.
static enum zb_status follow_message(struct zb_cuda *cuda, cudaEvent_t event, cudaEvent_t other,
                                     struct zb_error *error) {
  // The copy has read what this device will overwrite.
  ZB_CUDA_TRY(cudaStreamWaitEvent(cuda->follows, other, 0), error);
  ZB_CUDA_TRY(cudaEventRecord(event, cuda->follows), error);
  return ZB_OK;
}

static enum zb_status follow(void *state, void *event, void *other, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  pthread_mutex_lock(&cuda->following);
  enum zb_status status = follow_message(cuda, event, other, error);
  pthread_mutex_unlock(&cuda->following);
  return status;
}

static enum zb_status look_at_stream(cudaStream_t stream, bool *idle, struct zb_error *error) {
  cudaError_t code = cudaStreamQuery(stream);
  if (code == cudaErrorNotReady) {
    *idle = false;
    // Or the next kernel's launch would find it.
    cudaGetLastError();
  } else if (code != cudaSuccess) {
    return zb_cuda_fail(error, "cudaStreamQuery", code);
  }
  return ZB_OK;
}

// Messages too: after a failure nobody may have awaited them.
static enum zb_status is_idle(const struct zb_cuda *cuda, bool *idle, struct zb_error *error) {
  *idle = true;
  ZB_CUDA_PASS(look_at_stream(cuda->stream, idle, error));
  ZB_CUDA_PASS(look_at_stream(cuda->copies, idle, error));
  return look_at_stream(cuda->follows, idle, error);
}

static enum zb_status finish(void *state, int64_t deadline_ns, bool *done, struct zb_error *error) {
  struct zb_cuda *cuda = state;
  const struct timespec shortly = {0, 10000};
  *done = false;
  ZB_CUDA_PASS(zb_cuda_enter(cuda, error));
  for (int look = 0;; look++) {
    ZB_CUDA_PASS(is_idle(cuda, done, error));
    if (*done) return zb_cuda_clock_tell(cuda, error);
    if (zb_clock_ns() >= deadline_ns) return ZB_OK;
    if (look < LOOKS)
      sched_yield();
    else
      nanosleep(&shortly, NULL);
  }
}

static int at_once(void) {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0;
}

static int64_t ops_done(void *state) {
  struct zb_cuda *cuda = state;
  // A graph's events tell nothing before all of it is over, nor before it is launched.
  if (cuda->graph_mode != ZB_CUDA_PLAIN && cuda->ended < cuda->issued) return -1;
  while (cuda->ended < cuda->issued && cudaEventQuery(cuda->mark[cuda->ended].end) == cudaSuccess)
    cuda->ended++;
  cudaGetLastError(); // that one is not ready is no error
  return (int64_t)cuda->ended;
}

static void partials(void *state, double *partial) {
  const struct zb_cuda *cuda = state;
  for (int s = 0; s < cuda->setup->profile->stages; s++)
    for (int u = cuda->stage[s] ? cuda->stage[s]->first : 0; cuda->stage[s] && u < cuda->stage[s]->end; u++)
      partial[u] = cuda->host_numbers[u];
}

static bool loss(void *state, double *values) {
  const struct zb_cuda *cuda = state;
  const struct zb_training *training = cuda->setup->training;
  if (!cuda->stage[cuda->setup->profile->stages - 1]) return false;
  memcpy(values, cuda->host_numbers + zb_gpt_units(training->gpt),
         (size_t)training->microbatches * sizeof *values);
  return true;
}

static size_t parameters(void *state, int stage) {
  const struct zb_cuda *cuda = state;
  size_t count = 0;
  for (int u = cuda->stage[stage]->first; u < cuda->stage[stage]->end; u++)
    count += zb_unit_sizes(zb_cuda_gpt(cuda), u).parameters;
  return count;
}

static struct zb_memory_use memory(void *state) {
  const struct zb_cuda *cuda = state;
  // What is allocated beyond what is kept: scratch, and what rounding and sizes of different times cost.
  struct zb_memory_use use = {.kept_peak_bytes = cuda->keep.peak_bytes,
                              .static_bytes = cuda->bytes - cuda->keep.peak_bytes};
  for (int s = 0; s < cuda->setup->profile->stages; s++) {
    const struct zb_cuda_stage *stage = cuda->stage[s];
    if (stage && stage->saved[0]) use.undo_bytes += (int64_t)(3 * stage->count * sizeof(float));
    if (stage && stage->resting) use.undo_bytes += (int64_t)(stage->count * sizeof(float));
  }
  use.static_bytes -= use.undo_bytes;
  return use;
}

const char *const zb_cuda_name = "yes";

const struct zb_compute zb_compute_cuda = {
    .name = "cuda",
    .help = "trains, a GPU a device or several devices on one",
    .trains = true,
    .apart = true,
    .at_once = at_once,
    .look = zb_cuda_look,
    .needs = needs,
    .open = open_state,
    .close = close_state,
    .allocate = allocate,
    .release = release,
    .begin = begin,
    .repeats = repeats,
    .op = run_op,
    .record = record,
    .await = await,
    .copy = copy,
    .follow = follow,
    .finish = finish,
    .ops_done = ops_done,
    .norm = zb_cuda_norm,
    .partials = partials,
    .step = zb_cuda_step,
    .undo = zb_cuda_undo,
    .part = part,
    .poison = zb_cuda_poison,
    .loss = loss,
    .parameters = parameters,
    .fetch = zb_cuda_fetch,
    .store = zb_cuda_store,
    .restore = zb_cuda_restore,
    .memory = memory,
};
