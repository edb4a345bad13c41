// compute_cuda_product.c - matrix products by cuBLAS.
//
// cuBLAS reads matrices by columns: what is row-major to us is the transposed matrix to it, so c = a b is
// asked for as c' = b' a'. Sums are fp32 whatever the factors are; which of cuBLAS' kernels computes a
// product depends on its shape, on alignments, which are the same wherever a unit is placed, and on the
// workspace, which is the same on every device of a model. One stream uses the handle, so the same product
// has the same bits every time.
#include "runtime/compute_cuda_parts.h"

static const struct zb_cuda_matrix *turned_about(const struct zb_cuda_matrix *matrix,
                                                 cublasOperation_t *how) {
  *how = matrix->turned ? CUBLAS_OP_T : CUBLAS_OP_N;
  return matrix;
}

enum zb_status zb_cuda_product(struct zb_cuda *cuda, int rows, int columns, int inner,
                               struct zb_cuda_matrix a, struct zb_cuda_matrix b, int keep,
                               struct zb_cuda_result c, int count, struct zb_error *error) {
  const float one = 1, kept = (float)keep;
  cudaDataType type = zb_cuda_dtype(cuda) == ZB_BF16 ? CUDA_R_16BF : CUDA_R_32F;
  cudaDataType result_type = c.exact ? CUDA_R_32F : type;
  cublasComputeType_t compute =
      cuda->setup->training->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasOperation_t first, second;
  const struct zb_cuda_matrix *x = turned_about(&b, &first), *y = turned_about(&a, &second);
  cublasStatus_t code;
  if (count == 1)
    code = cublasGemmEx(cuda->blas, first, second, columns, rows, inner, &one, x->at, type, x->step, y->at,
                        type, y->step, &kept, c.at, result_type, c.step, compute, CUBLAS_GEMM_DEFAULT);
  else
    code = cublasGemmStridedBatchedEx(cuda->blas, first, second, columns, rows, inner, &one, x->at, type,
                                      x->step, x->stride, y->at, type, y->step, y->stride, &kept, c.at,
                                      result_type, c.step, c.stride, count, compute, CUBLAS_GEMM_DEFAULT);
  return code == CUBLAS_STATUS_SUCCESS
             ? ZB_OK
             : zb_cuda_fail_blas(error, count == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx", code);
}
