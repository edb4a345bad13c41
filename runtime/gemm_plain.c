// gemm_plain.c - products without a library, for builds that have no OpenBLAS (BLAS=0): right, and slow.
//
// Each result row is built by adding rows of b, so that the inner loop runs along memory; its terms are added
// in index order.
#include "runtime/gemm.h"

#include <stddef.h>

const char *const zb_gemm_name = "plain";

void zb_gemm_prepare(void) {}

void zb_gemm(int rows, int columns, int inner, struct zb_matrix a, struct zb_matrix b, int keep, zb_real *c,
             int c_step) {
  for (int i = 0; i < rows; i++) {
    zb_real *row = c + (size_t)i * (size_t)c_step;
    for (int j = 0; j < columns && !keep; j++) row[j] = 0;
    for (int k = 0; k < inner; k++) {
      zb_real factor = a.turned ? a.at[(size_t)k * (size_t)a.step + (size_t)i]
                                : a.at[(size_t)i * (size_t)a.step + (size_t)k];
      if (b.turned) {
        for (int j = 0; j < columns; j++) row[j] += factor * b.at[(size_t)j * (size_t)b.step + (size_t)k];
      } else {
        const zb_real *other = b.at + (size_t)k * (size_t)b.step;
        for (int j = 0; j < columns; j++) row[j] += factor * other[j];
      }
    }
  }
}
