// gemm.h - matrix products in row-major order. One implementation is linked: OpenBLAS, or a plain one.
//
// A product's bits depend on its shape and numbers alone: one thread computes it, whoever calls.
#ifndef ZB_GEMM_H
#define ZB_GEMM_H

#include <stdbool.h>

#include "kernels/scalar.h"

extern const char *const zb_gemm_name; // "openblas", "plain"

// Once, before the first product and before any thread that computes.
void zb_gemm_prepare(void);

// A matrix: `step` numbers from one row to the next; `turned` reads it transposed.
struct zb_matrix {
  const zb_real *at;
  int step;
  bool turned;
};

// c[rows x columns] = keep * c + a b, where a (turned or not) is rows x inner and b inner x columns. `keep`
// is 0, and c is then only written, or 1. Sizes are at least 1.
void zb_gemm(int rows, int columns, int inner, struct zb_matrix a, struct zb_matrix b, int keep, zb_real *c,
             int c_step);

static inline struct zb_matrix zb_matrix(const zb_real *at, int step) {
  return (struct zb_matrix){at, step, false};
}
static inline struct zb_matrix zb_turned(const zb_real *at, int step) {
  return (struct zb_matrix){at, step, true};
}

#endif
