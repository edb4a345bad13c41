// standin_cublas.c - cuBLAS's products over the CPU's.
//
// cuBLAS stores by columns, gemm.h by rows: the same memory is the transposed matrix, and the transposed
// product is op(B)' op(A)'. bf16 numbers are widened, multiplied as fp32 and rounded to nearest even. A
// handle's workspace is scribbled on by each product, so two that share it must not have numbers there.
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gemm.h"
#include "tests/standin/standin_parts.h"

_Static_assert(sizeof(zb_real) == sizeof(float), "products are of floats");

enum { SCRIBBLE_BYTES = 1024 };

struct cublasContext {
  struct cublasContext *next;
  bool alive;
  int device;
  cudaStream_t stream;
  void *workspace;
  size_t workspace_bytes;
};

static struct cublasContext *handles;

struct operand {
  const void *at;
  cudaDataType type;
  int rows, columns, step; // as stored, by columns
  bool turned;
};

struct product {
  int rows, columns, inner, count;
  struct operand a, b, c;
  long long a_stride, b_stride, c_stride;
  float alpha, beta;
  void *workspace;
  size_t workspace_bytes;
};

static int64_t size_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }

static float widen(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint16_t narrow(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static const void *element(struct operand operand, long long stride, int k) {
  return (const char *)operand.at + stride * k * size_of(operand.type);
}

// The numbers as floats: where they are, or in `wide`.
static const float *floats(struct operand operand, const void *at, float *wide) {
  if (operand.type == CUDA_R_32F) return at;
  const uint16_t *half = at;
  for (int column = 0; column < operand.columns; column++)
    for (int row = 0; row < operand.rows; row++) {
      size_t k = (size_t)column * (size_t)operand.step + (size_t)row;
      wide[k] = widen(half[k]);
    }
  return wide;
}

static size_t numbers(struct operand operand) {
  return (size_t)(operand.columns - 1) * (size_t)operand.step + (size_t)operand.rows;
}

static bool reachable(const char *what, struct operand operand, long long stride, int count) {
  int64_t bytes = ((int64_t)numbers(operand) + stride * (count - 1)) * size_of(operand.type);
  return zb_standin_range(what, operand.at, bytes, PLACE_DEVICE);
}

static void multiply(const struct product *p, const float *a, const float *b, void *c, float *result) {
  bool direct = p->c.type == CUDA_R_32F && p->alpha == 1 && (p->beta == 0 || p->beta == 1);
  float *to = direct ? c : result;
  struct zb_matrix left = {b, p->b.step, p->b.turned}, right = {a, p->a.step, p->a.turned};
  zb_gemm(p->columns, p->rows, p->inner, left, right, direct && p->beta == 1, to,
          direct ? p->c.step : p->rows);
  if (direct) return;
  for (int column = 0; column < p->columns; column++)
    for (int row = 0; row < p->rows; row++) {
      size_t k = (size_t)column * (size_t)p->c.step + (size_t)row;
      float x = p->alpha * result[(size_t)column * (size_t)p->rows + (size_t)row];
      if (p->c.type == CUDA_R_32F) {
        if (p->beta != 0) x += p->beta * ((float *)c)[k];
        ((float *)c)[k] = x;
      } else {
        if (p->beta != 0) x += p->beta * widen(((uint16_t *)c)[k]);
        ((uint16_t *)c)[k] = narrow(x);
      }
    }
}

static void product_run(void *argument) {
  const struct product *p = argument;
  if (!reachable("a product's A", p->a, p->a_stride, p->count) ||
      !reachable("a product's B", p->b, p->b_stride, p->count) ||
      !reachable("a product's C", p->c, p->c_stride, p->count))
    return;
  if (p->workspace) {
    size_t bytes = p->workspace_bytes < SCRIBBLE_BYTES ? p->workspace_bytes : SCRIBBLE_BYTES;
    if (!zb_standin_range("a product's workspace", p->workspace, (int64_t)p->workspace_bytes, PLACE_DEVICE))
      return;
    memset(p->workspace, 0xff, bytes);
  }
  float *a = malloc(numbers(p->a) * sizeof *a), *b = malloc(numbers(p->b) * sizeof *b);
  float *result = malloc((size_t)p->rows * (size_t)p->columns * sizeof *result);
  if (!a || !b || !result) abort();
  union {
    const void *given;
    void *written;
  } c;
  for (int k = 0; k < p->count; k++) {
    c.given = element(p->c, p->c_stride, k);
    multiply(p, floats(p->a, element(p->a, p->a_stride, k), a),
             floats(p->b, element(p->b, p->b_stride, k), b), c.written, result);
  }
  free(a);
  free(b);
  free(result);
}

static cublasStatus_t leave(cublasStatus_t status) {
  zb_standin_leave(cudaSuccess);
  return status;
}

// Errors of the device come as CUBLAS_STATUS_EXECUTION_FAILED, as cuBLAS says them.
static cublasStatus_t enter(const char *call, cublasHandle_t handle) {
  if (zb_standin_enter(ENTER_FAILS)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (handle && handle->alive) return CUBLAS_STATUS_SUCCESS;
  zb_standin_report("%s: a handle that was destroyed", call);
  return CUBLAS_STATUS_NOT_INITIALIZED;
}

static void reset(bool report) {
  for (struct cublasContext *handle = handles, *next; handle; handle = next) {
    next = handle->next;
    if (report && handle->alive)
      zb_standin_report("not destroyed: a cuBLAS handle of device %d", handle->device);
    free(handle);
  }
  handles = NULL;
}

static struct standin_part products = {.reset = reset};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  if (zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED)) return leave(CUBLAS_STATUS_NOT_INITIALIZED);
  zb_standin_register(&products);
  struct cublasContext *made = zb_standin_new(sizeof *made);
  *made = (struct cublasContext){.next = handles, .alive = true, .device = zb_standin_current()};
  handles = *handle = made;
  return leave(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  zb_standin_enter(ENTER_SAFE);
  if (!handle || !handle->alive) {
    zb_standin_report("cublasDestroy: a handle that was destroyed");
    return leave(CUBLAS_STATUS_NOT_INITIALIZED);
  }
  handle->alive = false;
  return leave(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  cublasStatus_t status = enter("cublasSetStream", handle);
  if (!status) {
    handle->stream = stream;
    // cuBLAS goes back to its own workspace.
    handle->workspace = NULL;
    handle->workspace_bytes = 0;
  }
  return leave(status);
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
  cublasStatus_t status = enter("cublasGetStream", handle);
  if (!status) *stream = handle->stream;
  return leave(status);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  cublasStatus_t status = enter("cublasSetWorkspace", handle);
  if (!status && (uintptr_t)workspace % 256) status = CUBLAS_STATUS_INVALID_VALUE;
  if (!status && workspace &&
      !zb_standin_range("cublasSetWorkspace", workspace, (int64_t)bytes, PLACE_DEVICE))
    status = CUBLAS_STATUS_INVALID_VALUE;
  if (!status) {
    handle->workspace = bytes ? workspace : NULL;
    handle->workspace_bytes = bytes;
  }
  return leave(status);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  (void)mode;
  return leave(enter("cublasSetMathMode", handle));
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  (void)mode;
  return leave(enter("cublasSetAtomicsMode", handle));
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  cublasStatus_t status = enter("cublasSetPointerMode", handle);
  return leave(status || mode == CUBLAS_POINTER_MODE_HOST ? status : CUBLAS_STATUS_NOT_SUPPORTED);
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  cublasStatus_t status = enter("cublasGetVersion", handle);
  if (!status) *version = CUBLAS_VERSION;
  return leave(status);
}

static struct operand operand(const void *at, cudaDataType type, bool turned, int rows, int columns,
                              int step) {
  return (struct operand){at, type, turned ? columns : rows, turned ? rows : columns, step, turned};
}

static bool sound(struct operand o) {
  return o.step >= o.rows && (o.type == CUDA_R_32F || o.type == CUDA_R_16BF);
}

// The types that cuBLAS lists for CUBLAS_COMPUTE_32F and have fp32 or bf16 numbers.
static bool types_agree(const struct product *p, cublasComputeType_t compute) {
  return p->a.type == p->b.type && (p->a.type == CUDA_R_16BF || p->c.type == CUDA_R_32F) &&
         (compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
          compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

static cublasStatus_t queue(const char *call, cublasHandle_t handle, struct product product,
                            cublasComputeType_t compute) {
  cublasStatus_t status = enter(call, handle);
  if (status) return leave(status);
  if (product.rows < 0 || product.columns < 0 || product.inner < 1 || product.count < 0)
    return leave(CUBLAS_STATUS_INVALID_VALUE);
  if (!product.rows || !product.columns || !product.count) return leave(CUBLAS_STATUS_SUCCESS);
  if (!sound(product.a) || !sound(product.b) || !sound(product.c)) return leave(CUBLAS_STATUS_INVALID_VALUE);
  if (!types_agree(&product, compute)) return leave(CUBLAS_STATUS_NOT_SUPPORTED);
  if (zb_standin_usable(call, handle->stream)) return leave(CUBLAS_STATUS_EXECUTION_FAILED);
  if (handle->stream->device != handle->device || handle->device != zb_standin_current()) {
    zb_standin_report("%s: a handle of device %d, a stream of device %d, a thread on device %d", call,
                      handle->device, handle->stream->device, zb_standin_current());
    return leave(CUBLAS_STATUS_EXECUTION_FAILED);
  }
  product.workspace = handle->workspace;
  product.workspace_bytes = handle->workspace_bytes;
  struct product *kept = malloc(sizeof *kept);
  if (!kept) abort();
  *kept = product;
  struct op *op = zb_standin_op(&zb_standin_kernel, call);
  op->call = product_run;
  op->argument = kept;
  op->discard = free;
  zb_standin_queue(handle->stream, op);
  return leave(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t turn_a,
                                          cublasOperation_t turn_b, int m, int n, int k, const void *alpha,
                                          const void *a, cudaDataType a_type, int a_step, long long a_stride,
                                          const void *b, cudaDataType b_type, int b_step, long long b_stride,
                                          const void *beta, void *c, cudaDataType c_type, int c_step,
                                          long long c_stride, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  (void)algorithm;
  struct product product = {.rows = m,
                            .columns = n,
                            .inner = k,
                            .count = count,
                            .a = operand(a, a_type, turn_a != CUBLAS_OP_N, m, k, a_step),
                            .b = operand(b, b_type, turn_b != CUBLAS_OP_N, k, n, b_step),
                            .c = operand(c, c_type, false, m, n, c_step),
                            .a_stride = a_stride,
                            .b_stride = b_stride,
                            .c_stride = c_stride,
                            .alpha = *(const float *)alpha,
                            .beta = *(const float *)beta};
  return queue("cublasGemmStridedBatchedEx", handle, product, compute);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t turn_a, cublasOperation_t turn_b, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType a_type, int a_step,
                            const void *b, cudaDataType b_type, int b_step, const void *beta, void *c,
                            cudaDataType c_type, int c_step, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, turn_a, turn_b, m, n, k, alpha, a, a_type, a_step, 0, b, b_type,
                                    b_step, 0, beta, c, c_type, c_step, 0, 1, compute, algorithm);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t turn_a, cublasOperation_t turn_b,
                              int m, int n, int k, const float *alpha, const float *a, int a_step,
                              const float *b, int b_step, const float *beta, float *c, int c_step) {
  return cublasGemmEx(handle, turn_a, turn_b, m, n, k, alpha, a, CUDA_R_32F, a_step, b, CUDA_R_32F, b_step,
                      beta, c, CUDA_R_32F, c_step, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static const struct {
  cublasStatus_t status;
  const char *name, *text;
} words[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
};

const char *cublasGetStatusName(cublasStatus_t status) {
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
    if (words[k].status == status) return words[k].name;
  return "CUBLAS_STATUS_UNKNOWN";
}

const char *cublasGetStatusString(cublasStatus_t status) {
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
    if (words[k].status == status) return words[k].text;
  return "unknown status";
}
