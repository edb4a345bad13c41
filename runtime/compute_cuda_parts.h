// compute_cuda_parts.h - what a device of the cuda backend is made of; private to the files compute_cuda*.c.
//
// A device has one stream on which it computes, one on which messages come in, and one that only learns when
// messages have gone out. What the stream runs is issued by one thread, in the program's order, so buffers of
// the device itself need no events: whoever is issued later finds what was issued before. Everything is
// allocated by open, each buffer by itself and 256-byte aligned wherever the unit that it belongs to is
// placed, because a product's bits may depend on the alignment of its factors.
//
// zb_cuda_lay_out hands out the buffers. It is called twice: to count the bytes, and to allocate them.
#ifndef ZB_COMPUTE_CUDA_PARTS_H
#define ZB_COMPUTE_CUDA_PARTS_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/compute.h"
#include "runtime/gpt_unit.h"

// Fails with the call's name and CUDA's words. `call` is the source text of the call.
enum zb_status zb_cuda_fail(struct zb_error *error, const char *call, cudaError_t code);
enum zb_status zb_cuda_fail_blas(struct zb_error *error, const char *call, cublasStatus_t code);

// Ends the function where the call fails. For functions that own nothing.
#define ZB_CUDA_TRY(call, error)                                                                             \
  do {                                                                                                       \
    cudaError_t code_ = (call);                                                                              \
    if (code_ != cudaSuccess) return zb_cuda_fail(error, #call, code_);                                      \
  } while (0)

// Likewise for calls of ours, which have filled the error.
#define ZB_CUDA_PASS(call)                                                                                   \
  do {                                                                                                       \
    enum zb_status status_ = (call);                                                                         \
    if (status_ != ZB_OK) return status_;                                                                    \
  } while (0)

// Buffers in which microbatches wait, by size. `in_use_bytes` is what the profile's memory counts; a buffer
// that B or BW works in counts only from when it waits for W.
enum { ZB_CUDA_SIZES = 8 };
struct zb_cuda_keep {
  int64_t in_use_bytes, peak_bytes;
  int sizes;
  struct {
    size_t bytes;
    int out, most;  // taken now, and at most
    int spares;     // of spare[], which wait to be taken
    int spare_room; // of spare[]
    void **spare;
  } size[ZB_CUDA_SIZES];
};

struct zb_cuda_kept {
  void *brief, *long_, *late; // NULL where the unit's size is 0
};

struct zb_cuda_stage {
  int first, end; // its units
  size_t count;   // of the arrays below: parameters, each unit's begin 256-byte aligned
  size_t *offset; // [end - first + 1]
  float *values, *gradient, *mean, *square;
  float *saved[3];           // values, mean, square before the last step; NULL: not asked for
  float *resting, *stepping; // as in stage.h
  void *shadow;              // values in bf16, or NULL
  struct zb_cuda_kept *kept; // [microbatches][end - first]
  int64_t steps_made;
  int next_w;
};

// When an op began and ended, by the device's clock.
struct zb_cuda_mark {
  cudaEvent_t start, end;
  struct zb_interval *when;
};

struct zb_cuda_event {
  cudaEvent_t event;
  bool free;
};

struct zb_cuda {
  const struct zb_compute_setup *setup;
  int gpu;
  cudaStream_t stream, copies, follows;
  pthread_mutex_t copying, following; // one message after another is put into these streams
  bool has_locks;
  cublasHandle_t blas;

  // Buffers, of which the first are the device's and each is freed by close.
  bool counts;   // only count bytes
  int64_t bytes; // of all buffers
  void **buffer; // [buffers]
  size_t buffers, buffer_room;
  void *blas_workspace;
  size_t blas_bytes;
  void *scratch;       // of F, B, W: zb_cuda_scratch_bytes
  float *columns;      // zb_cuda_column_scratch
  double *sums;        // zb_cuda_square_sum_scratch
  void *between[2];    // messages from unit to unit inside a stage
  unsigned char *data; // [2][microbatches][tokens] tokens and targets of the batch
  double *numbers;     // [units + microbatches] partial norms, losses
  struct zb_cuda_keep keep;
  struct zb_cuda_stage **stage; // [stages of the model] NULL: another device's

  // Pinned memory of the host, beside data and numbers.
  unsigned char *host_data;
  double *host_numbers;
  int64_t data_step; // that host_data has; -1: none
  bool reads_tokens, reads_targets;

  struct zb_cuda_event *event; // [events] of messages
  size_t events, event_room;

  struct zb_cuda_mark *mark; // [marks] of this batch's ops in the order of their issue
  size_t marks, mark_room, issued, ended, told;
  cudaEvent_t base[2]; // where batches began
  int base_now;        // this batch's
  bool base_known;     // when the other one was, on the host's clock: base_ns
  int64_t base_ns, began_ns;

  // With setup->graph: the first batch is issued, the second captured, the others are repetitions of it.
  enum { ZB_CUDA_PLAIN, ZB_CUDA_CAPTURES, ZB_CUDA_REPEATS } graph_mode;
  int64_t batches;
  cudaGraphExec_t graph;
};

static inline const struct zb_gpt *zb_cuda_gpt(const struct zb_cuda *cuda) {
  return cuda->setup->training->gpt;
}
static inline enum zb_dtype zb_cuda_dtype(const struct zb_cuda *cuda) { return cuda->setup->training->dtype; }

// The thread works on this device's GPU from now on.
enum zb_status zb_cuda_enter(const struct zb_cuda *cuda, struct zb_error *error);

// compute_cuda_memory.c: all buffers and stages, as plans or for real; frees them.
enum zb_status zb_cuda_lay_out(struct zb_cuda *cuda, struct zb_error *error);
void zb_cuda_take_down(struct zb_cuda *cuda);
// A buffer that was not foreseen waits for the device; NULL for 0 bytes. `counted`: adds to what is in use.
enum zb_status zb_cuda_keep_take(struct zb_cuda *cuda, size_t bytes, bool counted, void **buffer,
                                 struct zb_error *error);
void zb_cuda_keep_give(struct zb_cuda *cuda, void *buffer, size_t bytes, bool counted);
void zb_cuda_keep_count(struct zb_cuda *cuda, size_t bytes); // one taken uncounted counts from now on

// compute_cuda_stage.c: as zb_stage_*, enqueued.
void zb_cuda_stage_begin(struct zb_cuda *cuda, struct zb_cuda_stage *stage);
enum zb_status zb_cuda_stage_op(struct zb_cuda *cuda, struct zb_cuda_stage *stage, struct zb_op op,
                                const void *in, void *out, struct zb_error *error);

// compute_cuda_unit.c: as zb_unit_*, enqueued. `parameters` of the unit: fp32, and as products read them.
struct zb_cuda_pass {
  struct zb_cuda *cuda;
  int microbatch;
  const float *parameters;
  const void *factors;
};
size_t zb_cuda_scratch_bytes(const struct zb_gpt *gpt, enum zb_dtype dtype);
size_t zb_cuda_blas_bytes(const struct zb_gpt *gpt); // cuBLAS' workspace
size_t zb_cuda_column_floats(const struct zb_gpt *gpt);
enum zb_status zb_cuda_unit_forward(const struct zb_cuda_pass *pass, int unit, const void *input,
                                    struct zb_cuda_kept kept, void *output, struct zb_error *error);
enum zb_status zb_cuda_unit_backward(const struct zb_cuda_pass *pass, int unit, const void *d_output,
                                     struct zb_cuda_kept kept, void *d_input, struct zb_error *error);
enum zb_status zb_cuda_unit_weights(const struct zb_cuda_pass *pass, int unit, struct zb_cuda_kept kept,
                                    float *gradient, struct zb_error *error);

// compute_cuda_product.c: c[rows x columns] = keep * c + a b, row-major, `count` times, `stride` numbers
// apart. Factors have the dtype; c too, or fp32 where it is `exact`.
struct zb_cuda_matrix {
  const void *at;
  int step;
  bool turned;
  long long stride;
};
struct zb_cuda_result {
  void *at;
  int step;
  bool exact;
  long long stride;
};
enum zb_status zb_cuda_product(struct zb_cuda *cuda, int rows, int columns, int inner,
                               struct zb_cuda_matrix a, struct zb_cuda_matrix b, int keep,
                               struct zb_cuda_result c, int count, struct zb_error *error);

// compute_cuda_optimizer.c: the table's functions of the same names.
enum zb_status zb_cuda_norm(void *state, struct zb_error *error);
enum zb_status zb_cuda_step(void *state, double scale, bool undoable, struct zb_error *error);
enum zb_status zb_cuda_undo(void *state, double scale, struct zb_error *error);
enum zb_status zb_cuda_poison(void *state, int stage, struct zb_error *error);
enum zb_status zb_cuda_fetch(void *state, int stage, zb_real *values, struct zb_error *error);
enum zb_status zb_cuda_store(void *state, int stage, zb_real *values, int64_t *steps_made,
                             struct zb_error *error);
enum zb_status zb_cuda_restore(void *state, int stage, const zb_real *values, int64_t steps_made,
                               struct zb_error *error);
enum zb_status zb_cuda_start_values(struct zb_cuda *cuda, struct zb_cuda_stage *stage,
                                    struct zb_error *error);

// compute_cuda_clock.c: the ops' times.
enum zb_status zb_cuda_clock_begin(struct zb_cuda *cuda, struct zb_error *error);
// The next op begins, or has been issued; *mark is its place among the batch's.
enum zb_status zb_cuda_clock_start(struct zb_cuda *cuda, struct zb_interval *when, struct zb_error *error);
enum zb_status zb_cuda_clock_end(struct zb_cuda *cuda, struct zb_error *error);
// All is done: fills the intervals that are not yet.
enum zb_status zb_cuda_clock_tell(struct zb_cuda *cuda, struct zb_error *error);
enum zb_status zb_cuda_clock_open(struct zb_cuda *cuda, struct zb_error *error);
void zb_cuda_clock_close(struct zb_cuda *cuda);

// compute_cuda_rehearse.c: before the stages have their start values.
enum zb_status zb_cuda_rehearse(struct zb_cuda *cuda, struct zb_error *error);

// compute_cuda_look.c
enum zb_status zb_cuda_look(const struct zb_training *training, const struct zb_demand *need, int count,
                            struct zb_error *error);
// The GPU of a seat. FAILED or BAD_INPUT where there is none.
enum zb_status zb_cuda_gpu_of(int seat, int *gpu, struct zb_error *error);

// compute_cuda_graph.c
enum zb_status zb_cuda_graph_begin(struct zb_cuda *cuda, struct zb_error *error); // decides graph_mode
enum zb_status zb_cuda_graph_end(struct zb_cuda *cuda, struct zb_error *error);   // what was captured runs

#endif
