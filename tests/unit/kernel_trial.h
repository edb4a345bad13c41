// kernel_trial.h - one kernel, run again and again on the same numbers: near what scalar.h computes, and the
// same bits whatever the seed of the stand-in and wherever the tensors lie.
//
// With ZB_ON_DEVICE the same tests run on a GPU, where a seed is only one run more.
#ifndef KERNEL_TRIAL_H
#define KERNEL_TRIAL_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/random.h"
#include "tests/unit/unit.h"

#ifdef ZB_ON_DEVICE
struct zb_standin {
  uint64_t seed;
};
static inline void zb_standin_begin(const struct zb_standin *setup) { (void)setup; }
static inline bool zb_standin_end(char *report, size_t size) {
  (void)report, (void)size;
  return true;
}
#else
#include "tests/standin/standin.h"
#endif

#define WORKS(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t error_ = (call);                                                                             \
    if (error_ != cudaSuccess) fail_msg("%s: %s", #call, cudaGetErrorString(error_));                        \
  } while (0)

enum { TENSORS = 32 };

struct kernel_trial {
  const char *name;
  int rows, columns;
  enum zb_dtype dtype;

  // Of the run.
  uint64_t drawn;
  int shift; // elements that tensors lie off their alignment
  cudaStream_t stream;
  struct tensor {
    float *values; // what it holds, or should hold
    char *device;  // the allocation
    const char *name;
    size_t count;
    enum zb_dtype dtype;
    bool real; // double
    double relative, absolute;
  } tensors[TENSORS];
  int count;

  // The bits of the first run.
  unsigned char *bits;
  size_t bytes;
};

static inline float stored(enum zb_dtype dtype, float x) {
  return dtype == ZB_BF16 ? zb_bf16_value(zb_bf16_round(x)) : x;
}

static inline size_t element(const struct tensor *tensor) {
  return tensor->real ? 8 : zb_dtype_bytes(tensor->dtype);
}

static inline struct tensor *tensor_of(struct kernel_trial *t, const float *values) {
  for (int k = 0; k < t->count; k++)
    if (t->tensors[k].values == values) return &t->tensors[k];
  fail_msg("%s: not a tensor", t->name);
  return NULL;
}

// `count` zeros, for a reference to write into.
static inline float *blank(struct kernel_trial *t, enum zb_dtype dtype, size_t count) {
  assert_true(t->count < TENSORS);
  struct tensor *tensor = &t->tensors[t->count++];
  *tensor =
      (struct tensor){.values = calloc(count ? count : 1, sizeof(float)), .count = count, .dtype = dtype};
  assert_non_null(tensor->values);
  return tensor->values;
}

// Random numbers in [-size, size), as the dtype holds them.
static inline float *numbers(struct kernel_trial *t, enum zb_dtype dtype, size_t count, double size) {
  float *values = blank(t, dtype, count);
  for (size_t k = 0; k < count; k++)
    values[k] = stored(dtype, (float)(size * zb_random_even(17, t->drawn++)));
  return values;
}

static inline void *place(struct kernel_trial *t, struct tensor *tensor) {
  size_t size = element(tensor);
  void *device = NULL;
  WORKS(cudaMalloc(&device, (tensor->count + (size_t)t->shift) * size + (tensor->count == 0)));
  WORKS(cudaMemsetAsync(device, 0xff, (tensor->count + (size_t)t->shift) * size, t->stream));
  tensor->device = device;
  return tensor->device + (size_t)t->shift * size;
}

// On the device, with its values. What the values become afterwards is what the kernel should make of them.
static inline void *given(struct kernel_trial *t, float *values) {
  struct tensor *tensor = tensor_of(t, values);
  char *at = place(t, tensor);
  void *packed = malloc(tensor->count * element(tensor) + 1);
  assert_non_null(packed);
  for (size_t k = 0; k < tensor->count; k++) {
    if (tensor->dtype == ZB_BF16)
      ((struct zb_bf16 *)packed)[k] = zb_bf16_round(values[k]);
    else
      ((float *)packed)[k] = values[k];
  }
  WORKS(cudaMemcpyAsync(at, packed, tensor->count * element(tensor), cudaMemcpyHostToDevice, t->stream));
  WORKS(cudaStreamSynchronize(t->stream));
  free(packed);
  return at;
}

// On the device, all NaN.
static inline void *room(struct kernel_trial *t, float *values) { return place(t, tensor_of(t, values)); }

static inline void *given_bytes(struct kernel_trial *t, const unsigned char *bytes, size_t count) {
  unsigned char *at = room(t, blank(t, ZB_FP32, (count + 3) / 4));
  WORKS(cudaMemcpyAsync(at, bytes, count, cudaMemcpyHostToDevice, t->stream));
  WORKS(cudaStreamSynchronize(t->stream));
  return at;
}

// The tensor is a result: within relative * |value| + absolute of the values.
static inline void becomes(struct kernel_trial *t, const char *name, float *values, double relative,
                           double absolute) {
  struct tensor *tensor = tensor_of(t, values);
  tensor->name = name;
  tensor->relative = relative + (tensor->dtype == ZB_BF16 ? 1.0 / 128 : 0);
  tensor->absolute = absolute;
}

static inline double value_at(const struct tensor *tensor, const unsigned char *bits, size_t k) {
  struct zb_bf16 half;
  float single;
  double real;
  if (tensor->real) return memcpy(&real, bits + k * 8, 8), real;
  if (tensor->dtype == ZB_FP32) return memcpy(&single, bits + k * 4, 4), (double)single;
  return memcpy(&half, bits + k * 2, 2), (double)zb_bf16_value(half);
}

// Compares a result with its values, and appends its bits.
static inline void compare(struct kernel_trial *t, const struct tensor *tensor, unsigned char **bits,
                           size_t *bytes) {
  size_t size = tensor->count * element(tensor), head = (size_t)t->shift * element(tensor);
  unsigned char *got = malloc(head + size + 1);
  *bits = realloc(*bits, *bytes + size + 1);
  assert_true(got && *bits);
  WORKS(cudaMemcpyAsync(got, tensor->device, head + size, cudaMemcpyDeviceToHost, t->stream));
  WORKS(cudaStreamSynchronize(t->stream));
  for (size_t k = 0; k < head; k++)
    expect(got[k] == 0xff, "%s, %d x %d: %s: written before its start", t->name, t->rows, t->columns,
           tensor->name);
  for (size_t k = 0; k < tensor->count; k++) {
    double value = value_at(tensor, got + head, k), wanted = (double)tensor->values[k];
    bool same = isfinite(wanted) ? fabs(value - wanted) <= tensor->relative * fabs(wanted) + tensor->absolute
                                 : (isnan(wanted) ? isnan(value) : value == wanted);
    expect(same, "%s, %d x %d, %s, %d off: %s[%zu] is %.9g, expected %.9g", t->name, t->rows, t->columns,
           t->dtype == ZB_BF16 ? "bf16" : "fp32", t->shift, tensor->name, k, value, wanted);
  }
  memcpy(*bits + *bytes, got + head, size);
  *bytes += size;
  free(got);
}

typedef void kernel_body(struct kernel_trial *t);

static inline void run_once(struct kernel_trial *t, kernel_body *body, int shift, uint64_t seed) {
  char report[2000] = "";
  unsigned char *bits = NULL;
  size_t bytes = 0;
  zb_standin_begin(&(struct zb_standin){.seed = seed});
  t->drawn = 0;
  t->shift = shift;
  t->count = 0;
  WORKS(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
  body(t);
  WORKS(cudaStreamSynchronize(t->stream));
  for (int k = 0; k < t->count; k++) {
    if (t->tensors[k].name) compare(t, &t->tensors[k], &bits, &bytes);
    WORKS(cudaFree(t->tensors[k].device));
    free(t->tensors[k].values);
  }
  WORKS(cudaStreamDestroy(t->stream));
  expect(zb_standin_end(report, sizeof report), "%s, %d x %d, %d off, seed %llu: %s", t->name, t->rows,
         t->columns, shift, (unsigned long long)seed, report);
  expect(bytes > 0, "%s: no result", t->name);
  if (t->bits)
    expect(bytes == t->bytes && memcmp(bits, t->bits, bytes) == 0,
           "%s, %d x %d, %s: other bits %d off under seed %llu", t->name, t->rows, t->columns,
           t->dtype == ZB_BF16 ? "bf16" : "fp32", shift, (unsigned long long)seed);
  else
    t->bits = bits, t->bytes = bytes, bits = NULL;
  free(bits);
}

// In both dtypes, on and off its alignment, under some seeds: 4 in all, 50 with ZB_LONG, 2 with ZB_AGAIN.
static inline void try_kernel(const char *name, kernel_body *body, int rows, int columns) {
  const char *longer = getenv("ZB_LONG");
  uint64_t seeds = longer && *longer ? 25 : getenv("ZB_AGAIN") ? 1 : 2;
  for (int dtype = ZB_FP32; dtype <= ZB_BF16; dtype++) {
    struct kernel_trial t = {.name = name, .rows = rows, .columns = columns, .dtype = (enum zb_dtype)dtype};
    for (uint64_t seed = 1; seed <= seeds; seed++)
      for (int shift = 0; shift < 2; shift++) run_once(&t, body, shift, 2 * seed + (uint64_t)shift);
    free(t.bits);
  }
}

#endif
