// norm.cu - LayerNorm forward and backward, a group of threads a row. (Its parameters' gradients:
// columns.cu.)
//
// Bytes, for n elements of s bytes each (parameters and rstd are rows or columns, not counted):
//   forward   reads in, writes normal and out: 3 n s; with a residual and its sum 5 n s
//   backward  reads d_out and normal, writes d_in: 3 n s; with a residual 4 n s
// The floor is that over the memory's bandwidth; arithmetic is some 10 operations an element. A row is read
// once and held in registers while mean and variance are found one after the other, exactly as the CPU does;
// what precedes the norm (bias, residual) and what follows it (gain, shift) costs no trip of its own.
#include "kernels/kernels.h"
#include "kernels/reduce.h"

template <class T, bool WIDE, bool HELD>
__global__ void __launch_bounds__(1024)
    norm_forward(const T *in, const float *__restrict__ bias, const T *residual, T *sum,
                 const float *__restrict__ gain, const float *__restrict__ shift, int rows, int columns,
                 T *normal, float *rstd, T *out) {
  constexpr int V = zb_pack<T>;
  zb_share<T, HELD> mine(rows, columns);
  float x[zb_share<T, HELD>::KEPT][V], total = 0, variance = 0;
  // Where rows are not held, they are read again from where they were stored.
  const T *stored = sum ? sum : in;

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)], more[V];
    zb_read<V, WIDE>(in + mine.start + at, left, now);
    if (bias) {
      zb_read<V, WIDE>(bias + at, left, more);
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] += more[v];
    }
    if (residual) {
      zb_read<V, WIDE>(residual + mine.start + at, left, more);
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] += more[v];
    }
    if (sum) {
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] = zb_stored<T>(now[v]);
      zb_write<V, WIDE>(sum + mine.start + at, left, now);
    }
    ZB_UNROLL for (int v = 0; v < V; v++) total += now[v];
  }
  float mean = zb_row_reduce<zb_add, 0>(total) / (float)columns;

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)];
    if (!HELD) zb_read<V, WIDE>(stored + mine.start + at, left, now);
    ZB_UNROLL for (int v = 0; v < V; v++) if (v < left) variance += (now[v] - mean) * (now[v] - mean);
  }
  variance = zb_row_reduce<zb_add, 1>(variance);
  float scale = 1 / sqrtf(variance / (float)columns + ZB_LAYERNORM_EPSILON);
  if (mine.leads()) rstd[mine.row] = scale;

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)], factor[V], term[V];
    if (!HELD) zb_read<V, WIDE>(stored + mine.start + at, left, now);
    zb_read<V, WIDE>(gain + at, left, factor);
    zb_read<V, WIDE>(shift + at, left, term);
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] = zb_stored<T>((now[v] - mean) * scale);
    zb_write<V, WIDE>(normal + mine.start + at, left, now);
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] = now[v] * factor[v] + term[v];
    zb_write<V, WIDE>(out + mine.start + at, left, now);
  }
}

template <class T, bool WIDE, bool HELD>
__global__ void __launch_bounds__(1024)
    norm_backward(const T *d_out, const float *__restrict__ gain, const T *__restrict__ normal,
                  const float *__restrict__ rstd, const T *d_residual, int rows, int columns, T *d_in) {
  constexpr int V = zb_pack<T>;
  zb_share<T, HELD> mine(rows, columns);
  float d_normal[zb_share<T, HELD>::KEPT][V], n[zb_share<T, HELD>::KEPT][V];
  float sums[2] = {0, 0}; // of d_normal, and of d_normal along normal
  float scale = mine.end > 0 ? rstd[mine.row] : 0;

  auto fetch = [&](int k) {
    int at = mine.at(k), left = mine.end - at;
    float factor[V];
    zb_read<V, WIDE>(d_out + mine.start + at, left, d_normal[mine.slot(k)]);
    zb_read<V, WIDE>(normal + mine.start + at, left, n[mine.slot(k)]);
    zb_read<V, WIDE>(gain + at, left, factor);
    ZB_UNROLL for (int v = 0; v < V; v++) d_normal[mine.slot(k)][v] *= factor[v];
  };

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    fetch(k);
    ZB_UNROLL for (int v = 0; v < V; v++) {
      sums[0] += d_normal[mine.slot(k)][v];
      sums[1] += d_normal[mine.slot(k)][v] * n[mine.slot(k)][v];
    }
  }
  zb_row_reduce<zb_add, 0>(sums);
  float sum = sums[0] / (float)columns, along = sums[1] / (float)columns;

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float d_x[V] = {};
    if (!HELD) fetch(k);
    if (d_residual) zb_read<V, WIDE>(d_residual + mine.start + at, left, d_x);
    ZB_UNROLL for (int v = 0; v < V; v++) d_x[v] +=
        scale * (d_normal[mine.slot(k)][v] - sum - n[mine.slot(k)][v] * along);
    zb_write<V, WIDE>(d_in + mine.start + at, left, d_x);
  }
}

cudaError_t zb_cuda_layernorm_forward(cudaStream_t stream, enum zb_dtype dtype, const void *in,
                                      const float *bias, const void *residual, void *sum, const float *gain,
                                      const float *shift, int rows, int columns, void *normal, float *rstd,
                                      void *out) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  if (!sum && (bias || residual)) return cudaErrorInvalidValue;
  struct zb_geometry shape = zb_row_geometry(rows, columns);
  bool aligned = zb_aligned(in, bias, residual, sum, gain, shift, normal, out);
  return zb_for_dtype(dtype, aligned, columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    auto kernel = shape.held ? norm_forward<T, WIDE, true> : norm_forward<T, WIDE, false>;
    return ZB_LAUNCH(kernel, shape.grid, shape.block, stream, (const T *)in, bias, (const T *)residual,
                     (T *)sum, gain, shift, rows, columns, (T *)normal, rstd, (T *)out);
  });
}

cudaError_t zb_cuda_layernorm_backward(cudaStream_t stream, enum zb_dtype dtype, const void *d_out,
                                       const float *gain, const void *normal, const float *rstd,
                                       const void *d_residual, int rows, int columns, void *d_in) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  struct zb_geometry shape = zb_row_geometry(rows, columns);
  bool aligned = zb_aligned(d_out, gain, normal, d_residual, d_in);
  return zb_for_dtype(dtype, aligned, columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    auto kernel = shape.held ? norm_backward<T, WIDE, true> : norm_backward<T, WIDE, false>;
    return ZB_LAUNCH(kernel, shape.grid, shape.block, stream, (const T *)d_out, gain, (const T *)normal, rstd,
                     (const T *)d_residual, rows, columns, (T *)d_in);
  });
}
