// pointwise.cu - what happens to each element alone: bias, residual, GELU and its gradient, and a plain copy.
//
// Bytes, for n elements of s bytes each (the bias is one row, not counted):
//   bias           reads and writes x: 2 n s; with a residual 3 n s
//   bias_gelu      reads and writes before, writes after: 3 n s
//   gelu_backward  reads d_after and before, writes before: 3 n s
//   copy           2 n
// The floor is that over the memory's bandwidth. Where there is a bias, a thread owns one pack of columns, so
// that it reads its part of the bias once, for ZB_ROWS rows whose accesses do not wait for each other.
#include "kernels/device.h"
#include "kernels/kernels.h"

#define ZB_ROWS 4 // of a thread
#define ZB_TALL 8 // threads of a block, down the rows
#define ZB_FLAT 256

// What follows a bias, for one pack of x: stores it, and what is made of it.
template <class T> struct zb_plain {
  const T *residual;
  template <int V, bool WIDE> __device__ void operator()(T *x, int64_t at, int left, float *now) const {
    if (residual) {
      float more[V];
      zb_read<V, WIDE>(residual + at, left, more);
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] += more[v];
    }
    zb_write<V, WIDE>(x + at, left, now);
  }
};

template <class T> struct zb_with_gelu {
  T *after;
  template <int V, bool WIDE> __device__ void operator()(T *x, int64_t at, int left, float *now) const {
    zb_write<V, WIDE>(x + at, left, now);
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] = zb_gelu(zb_stored<T>(now[v]));
    zb_write<V, WIDE>(after + at, left, now);
  }
};

template <class T, bool WIDE, class THEN>
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    add_bias(T *x, const float *__restrict__ bias, int rows, int columns, THEN then) {
  constexpr int V = zb_pack<T>;
  int at = ((int)blockIdx.y * ZB_WARP + (int)threadIdx.x) * V, left = columns - at;
  int64_t first = (int64_t)blockIdx.x * (ZB_TALL * ZB_ROWS) + threadIdx.y;
  float term[V], now[ZB_ROWS][V];
  zb_read<V, WIDE>(bias + at, left, term);
  ZB_UNROLL for (int k = 0; k < ZB_ROWS; k++) {
    int64_t row = first + k * ZB_TALL;
    zb_read<V, WIDE>(x + row * columns + at, row < rows ? left : 0, now[k]);
  }
  ZB_UNROLL for (int k = 0; k < ZB_ROWS; k++) {
    int64_t row = first + k * ZB_TALL;
    ZB_UNROLL for (int v = 0; v < V; v++) now[k][v] += term[v];
    then.template operator()<V, WIDE>(x, row * columns + at, row < rows ? left : 0, now[k]);
  }
}

static dim3 bias_grid(int rows, int columns, int pack) {
  return dim3((unsigned)zb_parts(rows, ZB_TALL * ZB_ROWS), (unsigned)zb_parts(columns, ZB_WARP * pack));
}

cudaError_t zb_cuda_bias(cudaStream_t stream, enum zb_dtype dtype, void *x, const float *bias,
                         const void *residual, int rows, int columns) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  return zb_for_dtype(dtype, zb_aligned(x, bias, residual), columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    auto kernel = add_bias<T, decltype(instance)::wide, zb_plain<T>>;
    return ZB_LAUNCH(kernel, bias_grid(rows, columns, zb_pack<T>), dim3(ZB_WARP, ZB_TALL), stream, (T *)x,
                     bias, rows, columns, zb_plain<T>{(const T *)residual});
  });
}

cudaError_t zb_cuda_bias_gelu(cudaStream_t stream, enum zb_dtype dtype, void *before, const float *bias,
                              int rows, int columns, void *after) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  return zb_for_dtype(dtype, zb_aligned(before, bias, after), columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    auto kernel = add_bias<T, decltype(instance)::wide, zb_with_gelu<T>>;
    return ZB_LAUNCH(kernel, bias_grid(rows, columns, zb_pack<T>), dim3(ZB_WARP, ZB_TALL), stream,
                     (T *)before, bias, rows, columns, zb_with_gelu<T>{(T *)after});
  });
}

template <bool WIDE, class T>
static __device__ void gelu_back_pack(const T *d_after, T *before, int64_t at, int left) {
  constexpr int V = zb_pack<T>;
  float d[V], x[V];
  zb_read<V, WIDE>(d_after + at, left, d);
  zb_read<V, WIDE>(before + at, left, x);
  ZB_UNROLL for (int v = 0; v < V; v++) x[v] = d[v] * zb_gelu_slope(x[v]);
  zb_write<V, WIDE>(before + at, left, x);
}

template <class T>
__global__ void __launch_bounds__(ZB_FLAT)
    gelu_back(const T *d_after, T *before, int64_t count, bool aligned) {
  constexpr int V = zb_pack<T>;
  int64_t at = ((int64_t)blockIdx.x * ZB_FLAT + threadIdx.x) * V;
  if (aligned && at + V <= count)
    gelu_back_pack<true>(d_after, before, at, V);
  else if (at < count)
    gelu_back_pack<false>(d_after, before, at, count - at < V ? (int)(count - at) : V);
}

template <class T>
static cudaError_t gelu_backward(cudaStream_t stream, const T *d_after, T *before, int64_t count) {
  dim3 grid((unsigned)zb_parts(count, (int64_t)ZB_FLAT * zb_pack<T>));
  return ZB_LAUNCH(gelu_back<T>, grid, dim3(ZB_FLAT), stream, d_after, before, count,
                   zb_aligned(d_after, before));
}

cudaError_t zb_cuda_gelu_backward(cudaStream_t stream, enum zb_dtype dtype, const void *d_after, void *before,
                                  int64_t count) {
  if (count <= 0) return cudaSuccess;
  return dtype == ZB_BF16 ? gelu_backward(stream, (const zb_bf16 *)d_after, (zb_bf16 *)before, count)
                          : gelu_backward(stream, (const float *)d_after, (float *)before, count);
}

// Whole 16 bytes by the first `packs` threads, what is left by the others, a byte each.
__global__ void __launch_bounds__(ZB_FLAT)
    copy_bytes(const unsigned char *from, unsigned char *to, int64_t packs, int64_t bytes) {
  typedef zb_chunk<uint32_t, 4> chunk;
  int64_t index = (int64_t)blockIdx.x * ZB_FLAT + threadIdx.x, byte = packs * 16 + (index - packs);
  if (index < packs)
    reinterpret_cast<chunk *>(to)[index] = reinterpret_cast<const chunk *>(from)[index];
  else if (byte < bytes)
    to[byte] = from[byte];
}

cudaError_t zb_cuda_copy(cudaStream_t stream, const void *from, void *to, int64_t bytes) {
  if (bytes <= 0) return cudaSuccess;
  int64_t packs = zb_aligned(from, to) ? bytes / 16 : 0, threads = packs + (bytes - packs * 16);
  return ZB_LAUNCH(copy_bytes, dim3((unsigned)zb_parts(threads, ZB_FLAT)), dim3(ZB_FLAT), stream,
                   (const unsigned char *)from, (unsigned char *)to, packs, bytes);
}
