// kernels - how near the CUDA kernels are to what the memory of a GPU allows, and GEMMs to its largest rate.
//
//   kernels [--hidden H] [--samples N] [--sequence S] [--arena MIB] [--json FILE]
//   kernels --list                the GPUs, a line each
//
// The floor of a kernel is the bytes that it cannot avoid (kernels/*.cu say which), at the rate at which
// zb_cuda_copy moves a large array in the same run. Each launch takes the next of several sets of tensors, so
// that none is found in a cache. bench/README.md, GPU, defines the columns. Exit 1 where a kernel is below
// the target, 77 without a GPU.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "solver/io/file.h"
#include "solver/io/text.h"

static const double target = 0.7;

enum { ROUNDS = 7, LAUNCHES = 24, TENSORS = 5, VOCABULARY = 256, HEADS = 16 };

struct shape {
  int hidden, samples, sequence, rows, heads;
  int arena_mib; // at least: more than any cache of a GPU
};

struct bench {
  struct shape shape;
  enum zb_dtype dtype;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  cublasHandle_t blas;
  char *arena; // sets of tensors, one behind another
  size_t arena_bytes;
  // What is small and the same in every launch.
  unsigned char *tokens;
  float *table, *table_gradient, *vector[6], *rstd, *scratch;
  double *sum, *sum_scratch;
  double copy_rate; // bytes a us
  int missed;
  struct zb_text out, json;
};

static bool failed(const char *call, const char *words) {
  fprintf(stderr, "kernels: %s: %s\n", call, words);
  return true;
}
#define CUDA_FAILS(call) cuda_fails(#call, call)
static bool cuda_fails(const char *call, cudaError_t code) {
  return code != cudaSuccess && failed(call, cudaGetErrorString(code));
}
#define BLAS_FAILS(call) blas_fails(#call, call)
static bool blas_fails(const char *call, cublasStatus_t code) {
  return code != CUBLAS_STATUS_SUCCESS && failed(call, cublasGetStatusString(code));
}

static size_t size_of(enum zb_dtype dtype) { return dtype == ZB_FP32 ? 4 : 2; }
static const char *word_of(enum zb_dtype dtype) { return dtype == ZB_FP32 ? "fp32" : "bf16"; }

// How many elements a kernel's tensors have.
static int64_t of_rows(const struct shape *s) { return (int64_t)s->rows * s->hidden; }
static int64_t of_wide_rows(const struct shape *s) { return 4 * of_rows(s); }
static int64_t of_scores(const struct shape *s) {
  return (int64_t)s->samples * s->heads * s->sequence * s->sequence;
}
static int64_t of_logits(const struct shape *s) { return (int64_t)s->rows * VOCABULARY; }
static int64_t of_weights(const struct shape *s) { return (int64_t)12 * s->hidden * s->hidden; }

// Bytes beside the tensors.
static double table_bytes(const struct shape *s) { return 4.0 * (VOCABULARY + s->sequence) * s->hidden; }
static double table_bytes_twice(const struct shape *s) { return 2 * table_bytes(s); }

static cudaError_t run_copy(const struct bench *b, void *const *t) {
  return zb_cuda_copy(b->stream, t[0], t[1], of_rows(&b->shape) * (int64_t)size_of(b->dtype));
}
static cudaError_t run_embedding(const struct bench *b, void *const *t) {
  const struct shape *s = &b->shape;
  return zb_cuda_embedding_forward(b->stream, b->dtype, b->tokens, b->table, s->rows, s->sequence, VOCABULARY,
                                   s->hidden, t[0]);
}
static cudaError_t run_embedding_weights(const struct bench *b, void *const *t) {
  const struct shape *s = &b->shape;
  return zb_cuda_embedding_weights(b->stream, b->dtype, b->tokens, t[0], s->rows, s->sequence, VOCABULARY,
                                   s->hidden, b->table_gradient);
}
static cudaError_t run_norm(const struct bench *b, void *const *t) {
  return zb_cuda_layernorm_forward(b->stream, b->dtype, t[0], b->vector[0], t[1], t[2], b->vector[1],
                                   b->vector[2], b->shape.rows, b->shape.hidden, t[3], b->rstd, t[4]);
}
static cudaError_t run_norm_backward(const struct bench *b, void *const *t) {
  return zb_cuda_layernorm_backward(b->stream, b->dtype, t[0], b->vector[1], t[1], b->rstd, t[2],
                                    b->shape.rows, b->shape.hidden, t[3]);
}
static cudaError_t run_norm_weights(const struct bench *b, void *const *t) {
  return zb_cuda_layernorm_weights(b->stream, b->dtype, t[0], t[1], b->vector[1], b->vector[2], b->shape.rows,
                                   b->shape.hidden, b->vector[3], b->vector[4], t[2], b->scratch);
}
static cudaError_t run_bias(const struct bench *b, void *const *t) {
  return zb_cuda_bias(b->stream, b->dtype, t[0], b->vector[0], t[1], b->shape.rows, b->shape.hidden);
}
static cudaError_t run_bias_gelu(const struct bench *b, void *const *t) {
  return zb_cuda_bias_gelu(b->stream, b->dtype, t[0], b->vector[0], b->shape.rows, 4 * b->shape.hidden, t[1]);
}
static cudaError_t run_gelu_backward(const struct bench *b, void *const *t) {
  return zb_cuda_gelu_backward(b->stream, b->dtype, t[0], t[1], of_wide_rows(&b->shape));
}
static cudaError_t run_bias_weights(const struct bench *b, void *const *t) {
  return zb_cuda_bias_weights(b->stream, b->dtype, t[0], b->shape.rows, 4 * b->shape.hidden, b->vector[3],
                              b->scratch);
}
static cudaError_t run_softmax(const struct bench *b, void *const *t) {
  return zb_cuda_softmax_forward(b->stream, b->dtype, t[0], b->shape.samples * b->shape.heads,
                                 b->shape.sequence, 0.1F);
}
static cudaError_t run_softmax_backward(const struct bench *b, void *const *t) {
  return zb_cuda_softmax_backward(b->stream, b->dtype, t[0], t[1], b->shape.samples * b->shape.heads,
                                  b->shape.sequence, 0.1F);
}
static cudaError_t run_cross_entropy(const struct bench *b, void *const *t) {
  return zb_cuda_cross_entropy(b->stream, b->dtype, t[0], b->tokens, b->shape.rows, VOCABULARY, 1e-3F, b->sum,
                               b->scratch);
}
static cudaError_t run_square_sum(const struct bench *b, void *const *t) {
  return zb_cuda_square_sum(b->stream, t[0], of_weights(&b->shape), b->sum, b->sum_scratch);
}
static struct zb_adamw_step a_step(void) {
  return (struct zb_adamw_step){.rate = 1e-3F,
                                .beta1 = 0.9F,
                                .beta2 = 0.95F,
                                .epsilon = 1e-8F,
                                .shrink = 0.999F,
                                .correct1 = 1,
                                .correct2 = 1,
                                .scale = 1};
}
static cudaError_t run_adamw(const struct bench *b, void *const *t) {
  return zb_cuda_adamw_step(b->stream, a_step(), t[0], of_weights(&b->shape), t[1], t[2], t[3],
                            b->dtype == ZB_BF16 ? t[4] : NULL);
}
static cudaError_t run_adamw_inverse(const struct bench *b, void *const *t) {
  return zb_cuda_adamw_inverse(b->stream, a_step(), t[0], of_weights(&b->shape), t[1], t[2], t[3],
                               b->dtype == ZB_BF16 ? t[4] : NULL);
}
static cudaError_t run_shadow(const struct bench *b, void *const *t) {
  return zb_cuda_shadow(b->stream, t[0], of_weights(&b->shape), t[1]);
}

// Tensors, how many elements each has, and how often one of the dtype and one of fp32 is moved for each of
// these; `only`: with this dtype only, where the other would be the same.
static const struct kernel {
  const char *name;
  int tensors;
  int64_t (*elements)(const struct shape *shape);
  double moved, moved_fp32;
  double (*beside)(const struct shape *shape);
  cudaError_t (*run)(const struct bench *bench, void *const *tensor);
} kernels[] = {
    {"copy", 2, of_rows, 2, 0, NULL, run_copy},
    {"embedding_forward", 1, of_rows, 1, 0, table_bytes, run_embedding},
    {"embedding_weights", 1, of_rows, 1, 0, table_bytes_twice, run_embedding_weights},
    {"layernorm_forward", 5, of_rows, 5, 0, NULL, run_norm},
    {"layernorm_backward", 4, of_rows, 4, 0, NULL, run_norm_backward},
    {"layernorm_weights", 3, of_rows, 3, 0, NULL, run_norm_weights},
    {"bias", 2, of_rows, 3, 0, NULL, run_bias},
    {"bias_gelu", 2, of_wide_rows, 3, 0, NULL, run_bias_gelu},
    {"gelu_backward", 2, of_wide_rows, 3, 0, NULL, run_gelu_backward},
    {"bias_weights", 1, of_wide_rows, 1, 0, NULL, run_bias_weights},
    // Half of what is read lies above the diagonal; all is written.
    {"softmax_forward", 1, of_scores, 1.5, 0, NULL, run_softmax},
    {"softmax_backward", 2, of_scores, 2, 0, NULL, run_softmax_backward},
    {"cross_entropy", 1, of_logits, 2, 0, NULL, run_cross_entropy},
    {"square_sum", 1, of_weights, 0, 1, NULL, run_square_sum},
    {"adamw_step", 5, of_weights, 0, 7, NULL, run_adamw},
    {"adamw_inverse", 5, of_weights, 0, 7, NULL, run_adamw_inverse},
    {"shadow", 2, of_weights, 0, 1.5, NULL, run_shadow},
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median of some rounds, us a launch; negative where something failed.
static double us_of(struct bench *b, const struct kernel *kernel) {
  size_t each =
      ((size_t)kernel->elements(&b->shape) * (kernel->moved_fp32 > 0 ? 4 : size_of(b->dtype)) + 255) / 256 *
      256;
  size_t set = each * (size_t)kernel->tensors, sets = b->arena_bytes / set;
  double us[ROUNDS];
  size_t next = 0;
  for (int round = -1; round < ROUNDS; round++) {
    if (CUDA_FAILS(cudaEventRecord(b->begin, b->stream))) return -1;
    for (int k = 0; k < LAUNCHES; k++) {
      void *tensor[TENSORS];
      for (int t = 0; t < kernel->tensors; t++) tensor[t] = b->arena + next * set + (size_t)t * each;
      next = (next + 1) % sets;
      if (cuda_fails(kernel->name, kernel->run(b, tensor))) return -1;
    }
    if (CUDA_FAILS(cudaEventRecord(b->end, b->stream))) return -1;
    if (cuda_fails(kernel->name, cudaEventSynchronize(b->end))) return -1;
    float ms = 0;
    if (CUDA_FAILS(cudaEventElapsedTime(&ms, b->begin, b->end))) return -1;
    if (round >= 0) us[round] = 1000 * (double)ms / LAUNCHES;
  }
  qsort(us, ROUNDS, sizeof *us, compare);
  return us[ROUNDS / 2];
}

static double bytes_of(const struct bench *b, const struct kernel *kernel) {
  double a_time = kernel->moved * (double)size_of(b->dtype) + 4 * kernel->moved_fp32;
  // The copy in bf16 of what the optimizer changed.
  if (b->dtype == ZB_BF16 && (kernel->run == run_adamw || kernel->run == run_adamw_inverse)) a_time += 2;
  return a_time * (double)kernel->elements(&b->shape) + (kernel->beside ? kernel->beside(&b->shape) : 0);
}

static bool is_the_same(const struct bench *b, const struct kernel *kernel) {
  return kernel->moved == 0 && b->dtype == ZB_BF16 && kernel->run != run_adamw &&
         kernel->run != run_adamw_inverse;
}

static bool measure_kernels(struct bench *b) {
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    const struct kernel *kernel = &kernels[k];
    if (is_the_same(b, kernel)) continue;
    double us = us_of(b, kernel), bytes = bytes_of(b, kernel);
    if (us < 0) return false;
    // Of the first dtype; a copy moves bytes, whatever they are.
    if (kernel->run == run_copy && b->copy_rate == 0) b->copy_rate = us > 0 ? bytes / us : 0;
    double floor_us = b->copy_rate > 0 ? bytes / b->copy_rate : 0, of_floor = us > 0 ? floor_us / us : 0;
    bool met = of_floor >= target;
    b->missed += !met;
    zb_text_print(&b->out, "%-20s %s %12.0f %10.1f %10.1f %7.1f%%  %s\n", kernel->name, word_of(b->dtype),
                  bytes, us, floor_us, 100 * of_floor, met ? "met" : "missed");
    zb_text_print(
        &b->json,
        "%s\n  {\"kernel\": \"%s\", \"dtype\": \"%s\", \"bytes\": %.0f, \"us\": %.2f, \"floor_us\": "
        "%.2f, \"of_floor\": %.4f}",
        b->json.data[b->json.size - 1] == '[' ? "" : ",", kernel->name, word_of(b->dtype), bytes, us,
        floor_us, of_floor);
  }
  return true;
}

// rows x columns = rows x depth times depth x columns, in units of rows of tokens and of hidden.
static const struct gemm {
  const char *name;
  int columns, depth; // of hidden
  bool weights;       // the sum is over the rows
} gemms[] = {
    {"qkv", 3, 1, false},     {"projection", 1, 1, false},    {"mlp_in", 4, 1, false},
    {"mlp_out", 1, 4, false}, {"mlp_in_weights", 4, 1, true}, {"mlp_out_weights", 1, 4, true},
};

// A GEMM's rate in TFLOP/s, of m x n x k numbers; negative where something failed. cuBLAS sees columns first.
static double gemm_rate(struct bench *b, int m, int n, int k) {
  cudaDataType_t type = b->dtype == ZB_FP32 ? CUDA_R_32F : CUDA_R_16BF;
  size_t e = size_of(b->dtype);
  char *left = b->arena, *right = left + (size_t)m * (size_t)k * e, *out = right + (size_t)k * (size_t)n * e;
  const float one = 1, none = 0;
  double us[ROUNDS];
  if (out + (size_t)m * (size_t)n * e > b->arena + b->arena_bytes) return failed("GEMM", "no room"), -1;
  for (int round = -1; round < ROUNDS; round++) {
    if (CUDA_FAILS(cudaEventRecord(b->begin, b->stream)) ||
        BLAS_FAILS(cublasGemmEx(b->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, right, type, n, left, type,
                                k, &none, out, type, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT)) ||
        CUDA_FAILS(cudaEventRecord(b->end, b->stream)) || CUDA_FAILS(cudaEventSynchronize(b->end)))
      return -1;
    float ms = 0;
    if (CUDA_FAILS(cudaEventElapsedTime(&ms, b->begin, b->end))) return -1;
    if (round >= 0) us[round] = 1000 * (double)ms;
  }
  qsort(us, ROUNDS, sizeof *us, compare);
  return us[ROUNDS / 2] > 0 ? 2.0 * m * n * k / us[ROUNDS / 2] / 1e6 : 0;
}

static bool measure_gemms(struct bench *b) {
  int hidden = b->shape.hidden, large = 4 * hidden;
  double best = gemm_rate(b, large, large, large);
  for (size_t k = 0; best >= 0 && k < sizeof gemms / sizeof *gemms; k++) {
    const struct gemm *g = &gemms[k];
    int inner = g->depth * hidden, columns = g->columns * hidden;
    double rate = g->weights ? gemm_rate(b, inner, columns, b->shape.rows)
                             : gemm_rate(b, b->shape.rows, columns, inner);
    if (rate < 0) return false;
    double part = best > 0 ? rate / best : 0;
    zb_text_print(&b->out, "%-20s %s %12.1f TFLOP/s, %.1f%% of the largest\n", g->name, word_of(b->dtype),
                  rate, 100 * part);
    zb_text_print(&b->json,
                  ",\n  {\"gemm\": \"%s\", \"dtype\": \"%s\", \"tflops\": %.2f, \"largest_tflops\": %.2f}",
                  g->name, word_of(b->dtype), rate, best);
  }
  return best >= 0;
}

static void *room(const struct bench *b, size_t bytes) {
  void *got = NULL;
  if (CUDA_FAILS(cudaMalloc(&got, bytes)) || CUDA_FAILS(cudaMemsetAsync(got, 0, bytes, b->stream)))
    return NULL;
  return got;
}

// What a kernel's largest set needs, several times, and never less than what no cache holds.
static size_t arena_of(const struct shape *shape) {
  size_t most = (size_t)shape->arena_mib << 20;
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    size_t set = (size_t)kernels[k].tensors * ((size_t)kernels[k].elements(shape) * 4 + 256);
    if (2 * set > most) most = 2 * set;
  }
  return most;
}

static bool open_bench(struct bench *b) {
  const struct shape *s = &b->shape;
  size_t wide = 4 * (size_t)s->hidden * sizeof(float);
  size_t scratch = zb_cuda_column_scratch(s->rows, 4 * s->hidden);
  if (scratch < (size_t)s->rows) scratch = (size_t)s->rows;
  if (CUDA_FAILS(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking)) ||
      CUDA_FAILS(cudaEventCreateWithFlags(&b->begin, cudaEventDefault)) ||
      CUDA_FAILS(cudaEventCreateWithFlags(&b->end, cudaEventDefault)) || BLAS_FAILS(cublasCreate(&b->blas)) ||
      BLAS_FAILS(cublasSetStream(b->blas, b->stream)))
    return false;
  b->arena_bytes = arena_of(s);
  b->arena = room(b, b->arena_bytes);
  b->tokens = room(b, (size_t)s->rows);
  b->table = room(b, (size_t)table_bytes(s));
  b->table_gradient = room(b, (size_t)table_bytes(s));
  b->rstd = room(b, (size_t)s->rows * sizeof(float));
  b->scratch = room(b, scratch * sizeof(float));
  b->sum = room(b, sizeof(double));
  b->sum_scratch = room(b, zb_cuda_square_sum_scratch(of_weights(s)) * sizeof(double));
  bool all = b->arena && b->tokens && b->table && b->table_gradient && b->rstd && b->scratch && b->sum &&
             b->sum_scratch;
  for (size_t k = 0; all && k < sizeof b->vector / sizeof *b->vector; k++)
    all = (b->vector[k] = room(b, wide)) != NULL;
  if (!all) return false;
  unsigned char *tokens = malloc((size_t)s->rows);
  if (!tokens) return !failed("malloc", "no memory");
  uint32_t word = 1;
  for (int k = 0; k < s->rows; k++) {
    word = word * 1664525U + 1013904223U;
    tokens[k] = (unsigned char)(word >> 24);
  }
  bool well = !CUDA_FAILS(cudaMemcpy(b->tokens, tokens, (size_t)s->rows, cudaMemcpyHostToDevice));
  free(tokens);
  return well;
}

static void close_bench(struct bench *b) {
  void *const rooms[] = {b->arena, b->tokens,  b->table, b->table_gradient,
                         b->rstd,  b->scratch, b->sum,   b->sum_scratch};
  for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) cudaFree(rooms[k]);
  for (size_t k = 0; k < sizeof b->vector / sizeof *b->vector; k++) cudaFree(b->vector[k]);
  if (b->blas) cublasDestroy(b->blas);
  if (b->begin) cudaEventDestroy(b->begin);
  if (b->end) cudaEventDestroy(b->end);
  if (b->stream) cudaStreamDestroy(b->stream);
  zb_text_free(&b->out);
  zb_text_free(&b->json);
}

static bool measure(struct bench *b) {
  struct cudaDeviceProp properties;
  if (CUDA_FAILS(cudaGetDeviceProperties(&properties, 0)) || !open_bench(b)) return false;
  zb_text_print(&b->out, "%s: %d tokens, hidden %d, sequence %d\n%-20s %s %12s %10s %10s %8s\n",
                properties.name, b->shape.rows, b->shape.hidden, b->shape.sequence, "kernel", "type", "bytes",
                "us", "floor us", "of it");
  zb_text_put(&b->json, "[");
  for (int k = 0; k < 2; k++) {
    b->dtype = k == 0 ? ZB_FP32 : ZB_BF16;
    if (!measure_kernels(b) || !measure_gemms(b)) return false;
  }
  zb_text_put(&b->json, "\n]\n");
  zb_text_print(&b->out, "copy: %.0f GB/s; %d below %.0f%%\n", b->copy_rate / 1000, b->missed, 100 * target);
  return true;
}

static bool read_arguments(int count, char **words, struct shape *shape, const char **json) {
  for (int k = 1; k < count; k += 2) {
    if (k + 1 == count) return false;
    int *number = strcmp(words[k], "--hidden") == 0     ? &shape->hidden
                  : strcmp(words[k], "--samples") == 0  ? &shape->samples
                  : strcmp(words[k], "--sequence") == 0 ? &shape->sequence
                  : strcmp(words[k], "--arena") == 0    ? &shape->arena_mib
                                                        : NULL;
    if (number)
      *number = atoi(words[k + 1]);
    else if (strcmp(words[k], "--json") == 0)
      *json = words[k + 1];
    else
      return false;
  }
  shape->rows = shape->samples * shape->sequence;
  return shape->hidden > 0 && shape->rows > 0 && shape->arena_mib > 0;
}

static bool list(int gpus) {
  for (int k = 0; k < gpus; k++) {
    struct cudaDeviceProp properties;
    if (CUDA_FAILS(cudaGetDeviceProperties(&properties, k))) return false;
    printf("%s\n", properties.name);
  }
  return true;
}

int main(int argc, char **argv) {
  struct bench bench = {
      .shape = {.hidden = 2048, .samples = 8, .sequence = 1024, .heads = HEADS, .arena_mib = 512}};
  const char *json = NULL;
  bool lists = argc == 2 && strcmp(argv[1], "--list") == 0;
  if (!lists && !read_arguments(argc, argv, &bench.shape, &json)) {
    fputs("usage: kernels [--hidden H] [--samples N] [--sequence S] [--arena MIB] [--json FILE] | --list\n",
          stderr);
    return 2;
  }
  int gpus = 0;
  cudaError_t code = cudaGetDeviceCount(&gpus);
  if (code != cudaSuccess || gpus == 0) {
    fprintf(stderr, "kernels: no GPU (cudaGetDeviceCount: %s)\n", cudaGetErrorString(code));
    return 77;
  }
  if (lists) return !list(gpus);
  struct zb_error error = {0};
  bool well = measure(&bench);
  enum zb_status status = well ? zb_file_write("-", &bench.out, &error) : ZB_FAILED;
  if (status == ZB_OK && json) status = zb_file_write(json, &bench.json, &error);
  if (error.text[0]) fprintf(stderr, "kernels: %s\n", error.text);
  int missed = bench.missed;
  close_bench(&bench);
  return status != ZB_OK || missed > 0;
}
