// gemm_blas.c - products by OpenBLAS, one thread each: a device computes on its own core. The only unit that
// knows the library.
#include <cblas.h>

#include "runtime/gemm.h"

const char *const zb_gemm_name = "openblas";

void zb_gemm_prepare(void) { openblas_set_num_threads(1); }

#ifdef ZB_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

void zb_gemm(int rows, int columns, int inner, struct zb_matrix a, struct zb_matrix b, int keep, zb_real *c,
             int c_step) {
  GEMM(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans, b.turned ? CblasTrans : CblasNoTrans, rows,
       columns, inner, 1, a.at, a.step, b.at, b.step, (zb_real)keep, c, c_step);
}
