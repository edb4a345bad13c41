// scalar.h - the arithmetic of the model, one number or one row at a time, for the CPU and the GPU alike.
//
// Plain C that nvcc compiles too. Everything here is a function of its arguments alone, and every sum adds
// its terms in index order, so that the bits do not depend on who calls it, on which device, or in which
// schedule. The GPU uses what is said of one number, and adds up rows in trees of its own, of fixed shape
// too. Two things are left to the platform: exp, log and sqrt are its own library's, so another C library may
// round otherwise; and multiplications and additions must not be fused (-ffp-contract=off, -fmad=false),
// because whether they are would depend on the compiler's mood.
//
// ZB_REAL_DOUBLE compiles the same arithmetic in double, for gradient checks.
#ifndef ZB_SCALAR_H
#define ZB_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define ZB_HD static __host__ __device__ inline
#else
#define ZB_HD static inline
#endif

#ifdef ZB_REAL_DOUBLE
typedef double zb_real;
#define ZB_REAL_EXP exp
#define ZB_REAL_LOG log
#define ZB_REAL_SQRT sqrt
#else
typedef float zb_real;
#define ZB_REAL_EXP expf
#define ZB_REAL_LOG logf
#define ZB_REAL_SQRT sqrtf
#endif

#define ZB_LAYERNORM_EPSILON ((zb_real)1e-5)

// GELU in its tanh form (arXiv 1606.08415, section 2), with (1 + tanh(y)) / 2 written as the sigmoid of 2y:
// one exp.
#define ZB_GELU_SCALE ((zb_real)1.5957691216057308) // 2 sqrt(2 / pi)
#define ZB_GELU_CUBIC ((zb_real)0.044715)

ZB_HD zb_real zb_sigmoid(zb_real x) { return 1 / (1 + ZB_REAL_EXP(-x)); }

ZB_HD zb_real zb_gelu(zb_real x) { return x * zb_sigmoid(ZB_GELU_SCALE * (x + ZB_GELU_CUBIC * x * x * x)); }

ZB_HD zb_real zb_gelu_slope(zb_real x) {
  zb_real s = zb_sigmoid(ZB_GELU_SCALE * (x + ZB_GELU_CUBIC * x * x * x));
  return s + x * s * (1 - s) * ZB_GELU_SCALE * (1 + 3 * ZB_GELU_CUBIC * x * x);
}

// x[n] to normal[n] of mean 0 and variance 1. *rstd is what the backward pass needs besides it.
ZB_HD void zb_layernorm_row(const zb_real *x, int n, zb_real *normal, zb_real *rstd) {
  zb_real mean = 0, variance = 0;
  for (int j = 0; j < n; j++) mean += x[j];
  mean /= (zb_real)n;
  for (int j = 0; j < n; j++) variance += (x[j] - mean) * (x[j] - mean);
  *rstd = 1 / ZB_REAL_SQRT(variance / (zb_real)n + ZB_LAYERNORM_EPSILON);
  for (int j = 0; j < n; j++) normal[j] = (x[j] - mean) * *rstd;
}

// out = normal * gain + shift.
ZB_HD void zb_affine_row(const zb_real *normal, const zb_real *gain, const zb_real *shift, int n,
                         zb_real *out) {
  for (int j = 0; j < n; j++) out[j] = normal[j] * gain[j] + shift[j];
}

// Adds to dx the gradient for the row's input; d_out is the gradient for the affine output.
ZB_HD void zb_layernorm_back_row(const zb_real *d_out, const zb_real *gain, const zb_real *normal,
                                 zb_real rstd, int n, zb_real *dx) {
  zb_real sum = 0, along = 0;
  for (int j = 0; j < n; j++) {
    zb_real d_normal = d_out[j] * gain[j];
    sum += d_normal;
    along += d_normal * normal[j];
  }
  sum /= (zb_real)n;
  along /= (zb_real)n;
  for (int j = 0; j < n; j++) dx[j] += rstd * (d_out[j] * gain[j] - sum - normal[j] * along);
}

// Adds the row's share of the gradients for gain and shift.
ZB_HD void zb_affine_gradient_row(const zb_real *d_out, const zb_real *normal, int n, zb_real *d_gain,
                                  zb_real *d_shift) {
  for (int j = 0; j < n; j++) {
    d_gain[j] += d_out[j] * normal[j];
    d_shift[j] += d_out[j];
  }
}

// Attention scores of one query to probabilities, in place: softmax of scale * row over the first `seen`
// keys, 0 for the keys after them.
ZB_HD void zb_softmax_causal_row(zb_real *row, int seen, int n, zb_real scale) {
  zb_real most = row[0], sum = 0;
  for (int j = 1; j < seen; j++) most = row[j] > most ? row[j] : most;
  for (int j = 0; j < seen; j++) {
    row[j] = ZB_REAL_EXP(scale * (row[j] - most));
    sum += row[j];
  }
  for (int j = 0; j < seen; j++) row[j] /= sum;
  for (int j = seen; j < n; j++) row[j] = 0;
}

// Gradient for the probabilities to gradient for the unscaled scores, in place.
ZB_HD void zb_softmax_back_row(const zb_real *probability, zb_real *d_row, int seen, int n, zb_real scale) {
  zb_real along = 0;
  for (int j = 0; j < seen; j++) along += probability[j] * d_row[j];
  for (int j = 0; j < seen; j++) d_row[j] = scale * probability[j] * (d_row[j] - along);
  for (int j = seen; j < n; j++) d_row[j] = 0;
}

// -log softmax(row)[target]; the row becomes weight times the gradient of that.
ZB_HD zb_real zb_cross_entropy_row(zb_real *row, int n, int target, zb_real weight) {
  zb_real most = row[0], sum = 0;
  for (int j = 1; j < n; j++) most = row[j] > most ? row[j] : most;
  zb_real chosen = row[target] - most;
  for (int j = 0; j < n; j++) {
    row[j] = ZB_REAL_EXP(row[j] - most);
    sum += row[j];
  }
  for (int j = 0; j < n; j++) row[j] = weight * (row[j] / sum - (j == target ? (zb_real)1 : (zb_real)0));
  return ZB_REAL_LOG(sum) - chosen;
}

// sum += row: a bias, a residual, a row's share of a bias' gradient.
ZB_HD void zb_add_row(const zb_real *row, int n, zb_real *sum) {
  for (int j = 0; j < n; j++) sum[j] += row[j];
}

// One sum of squares, in four running sums by index mod 4 that are added at the end: a fixed order, and four
// chains where one would wait for itself. In double, so that fp32 gradients neither overflow nor lose small
// terms. NaN and infinity survive into the sum.
ZB_HD double zb_square_sum(const zb_real *x, int64_t n) {
  double part[4] = {0, 0, 0, 0};
  for (int64_t j = 0; j < n; j++) part[j & 3] += (double)x[j] * (double)x[j];
  return (part[0] + part[1]) + (part[2] + part[3]);
}

// AdamW (arXiv 1711.05101) as arXiv 2401.10241 Algorithm 1 writes it: one step, and its inverse in place. The
// numbers of step t: shrink = 1 - rate * decay, correct1 = 1 / (1 - beta1^t), correct2 = 1 / (1 - beta2^t);
// scale is what clipping multiplies the gradient by.
struct zb_adamw_step {
  zb_real rate, beta1, beta2, epsilon, shrink, correct1, correct2, scale;
};

ZB_HD zb_real zb_adamw_move(const struct zb_adamw_step *s, zb_real mean, zb_real square) {
  return s->rate * (mean * s->correct1) / (ZB_REAL_SQRT(square * s->correct2) + s->epsilon);
}

ZB_HD void zb_adamw_forward(const struct zb_adamw_step *s, zb_real gradient, zb_real *value, zb_real *mean,
                            zb_real *square) {
  zb_real g = gradient * s->scale;
  *mean = s->beta1 * *mean + (1 - s->beta1) * g;
  *square = s->beta2 * *square + (1 - s->beta2) * g * g;
  *value = s->shrink * *value - zb_adamw_move(s, *mean, *square);
}

// Undoes zb_adamw_forward with the same gradient and numbers, up to rounding: each of the three returns
// within a few units in the last place of the larger of its old value and what was added. A square that
// rounding would make negative is 0.
ZB_HD void zb_adamw_inverse(const struct zb_adamw_step *s, zb_real gradient, zb_real *value, zb_real *mean,
                            zb_real *square) {
  zb_real g = gradient * s->scale;
  *value = (*value + zb_adamw_move(s, *mean, *square)) / s->shrink;
  *mean = (*mean - (1 - s->beta1) * g) / s->beta1;
  zb_real before = (*square - (1 - s->beta2) * g * g) / s->beta2;
  *square = before > 0 ? before : 0;
}

#endif
