// The stand-in's products: cuBLAS's storage by columns, turned or not, in steps and strides, fp32 and bf16,
// against sums written out; and what it takes and refuses.
#include <cublas_v2.h>
#include <math.h>

#include "runtime/gemm.h"
#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

#define sound(call)                                                                                          \
  do {                                                                                                       \
    cublasStatus_t status_ = (call);                                                                         \
    if (status_) fail_msg("seed %d: %s: %s", seed, #call, cublasGetStatusName(status_));                     \
  } while (0)

enum { NUMBERS = 4096 };

// Sixteenths between -2 and 2: exact in bf16, and their sums in fp32 whatever the order.
static float draw(void) { return (float)((int)(zb_standin_random() % 65) - 32) / 16; }

static uint16_t half_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static float whole_of(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

struct numbers {
  bool half;
  void *at;
};
static void put(struct numbers n, long long k, float x) {
  if (n.half)
    ((uint16_t *)n.at)[k] = half_of(x);
  else
    ((float *)n.at)[k] = x;
}
static float get(struct numbers n, long long k) {
  return n.half ? whole_of(((uint16_t *)n.at)[k]) : ((float *)n.at)[k];
}
static struct numbers new_operand(bool half) {
  struct numbers made = {.half = half};
  good(cudaMalloc(&made.at, NUMBERS * sizeof(float)));
  for (int k = 0; k < NUMBERS; k++) put(made, k, draw());
  return made;
}
static cudaDataType type_of(struct numbers n) { return n.half ? CUDA_R_16BF : CUDA_R_32F; }

static int below(int bound) { return (int)(zb_standin_random() % (uint64_t)bound); }

static void one_product(cublasHandle_t handle, cudaStream_t stream) {
  bool half = below(2), half_out = half && below(2), turn_a = below(2), turn_b = below(2);
  int m = 1 + below(7), n = 1 + below(7), k = 1 + below(9), count = 1 + below(3);
  int a_step = (turn_a ? k : m) + below(3), b_step = (turn_b ? n : k) + below(3), c_step = m + below(3);
  long long a_stride = below(2) * 256, b_stride = 200, c_stride = 128;
  float alpha = below(2) ? 1 : -0.5f, beta = (float[]){0, 1, 0.25f}[below(3)];
  struct numbers a = new_operand(half), b = new_operand(half), c = new_operand(half_out);
  float *was = malloc(NUMBERS * sizeof *was);
  assert_non_null(was);
  for (int at = 0; at < NUMBERS; at++) was[at] = get(c, at);
  cublasOperation_t op_a = turn_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (count == 1)
    sound(cublasGemmEx(handle, op_a, op_b, m, n, k, &alpha, a.at, type_of(a), a_step, b.at, type_of(b),
                       b_step, &beta, c.at, type_of(c), c_step, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  else
    sound(cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, &alpha, a.at, type_of(a), a_step, a_stride,
                                     b.at, type_of(b), b_step, b_stride, &beta, c.at, type_of(c), c_step,
                                     c_stride, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  good(cudaStreamSynchronize(stream));
  for (int batch = 0; batch < count; batch++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int t = 0; t < k; t++)
          sum += get(a, batch * a_stride + (turn_a ? t + i * a_step : i + t * a_step)) *
                 get(b, batch * b_stride + (turn_b ? j + t * b_step : t + j * b_step));
        long long at = batch * c_stride + i + j * c_step;
        float wanted = alpha * sum + (beta != 0 ? beta * was[at] : 0);
        if (half_out) wanted = whole_of(half_of(wanted));
        expect(get(c, at) == wanted, "seed %d, %d x %d x %d, turned %d %d, half %d %d: %g, expected %g", seed,
               m, n, k, turn_a, turn_b, half, half_out, (double)get(c, at), (double)wanted);
        was[at] = wanted;
      }
  // And nothing else was written.
  for (int at = 0; at < NUMBERS; at++)
    expect(get(c, at) == was[at], "seed %d: number %d was written", seed, at);
  free(was);
  good(cudaFree(a.at));
  good(cudaFree(b.at));
  good(cudaFree(c.at));
}

static void test_products(void **state) {
  (void)state;
  zb_gemm_prepare();
  for (seed = 0; seed < 2 * seeds(); seed++) {
    begin((struct zb_standin){0});
    cudaStream_t stream = new_stream();
    cublasHandle_t handle;
    sound(cublasCreate(&handle));
    sound(cublasSetStream(handle, stream));
    one_product(handle, stream);
    sound(cublasDestroy(handle));
    good(cudaStreamDestroy(stream));
    end_well();
  }
}

static cublasStatus_t small(cublasHandle_t handle, float *at, int m, cublasComputeType_t compute) {
  const float one = 1, zero = 0;
  return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 1, 1, &one, at, CUDA_R_32F, m, at + 4, CUDA_R_32F,
                      1, &zero, at + 8, CUDA_R_32F, m, compute, CUBLAS_GEMM_DEFAULT);
}

// Two handles with one workspace, and what a product must not reach.
static void test_misuse(void **state) {
  (void)state;
  seed = 0;
  begin((struct zb_standin){0});
  cudaStream_t stream = new_stream();
  cublasHandle_t handle;
  float *at, *workspace;
  good(cudaMalloc((void **)&at, 12 * sizeof *at));
  good(cudaMalloc((void **)&workspace, 2048));
  good(cudaMemset(at, 0, 12 * sizeof *at));
  good(cudaMemset(workspace, 0, 2048));
  sound(cublasCreate(&handle));
  sound(cublasSetStream(handle, stream));
  sound(cublasSetWorkspace(handle, workspace, 2048));
  sound(small(handle, at, 4, CUBLAS_COMPUTE_32F));
  good(cudaStreamSynchronize(stream));
  assert_true(isnan(workspace[0]));
  assert_int_equal(small(handle, at, 4, CUBLAS_COMPUTE_16F), CUBLAS_STATUS_NOT_SUPPORTED);
  // Too far: seen when it runs.
  sound(small(handle, at, 5, CUBLAS_COMPUTE_32F));
  good(cudaStreamSynchronize(stream));
  good(cudaSetDevice(1));
  assert_int_equal(small(handle, at, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_EXECUTION_FAILED);
  good(cudaFree(at));
  good(cudaFree(workspace));
  good(cudaStreamDestroy(stream));
  char report[2000];
  assert_false(zb_standin_end(report, sizeof report));
  expect(strstr(report, "a product's C: 20 bytes from 32 of device 0's memory of 48 bytes"), "%s", report);
  expect(strstr(report, "a handle of device 0, a stream of device 0, a thread on device 1"), "%s", report);
  expect(strstr(report, "not destroyed: a cuBLAS handle of device 0"), "%s", report);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
