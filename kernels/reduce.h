// reduce.h - sums and maxima over threads, as trees of fixed shape, and over rows.
//
// A row kernel gives each row a group of threads: blockDim.x of them, a multiple of a warp, blockDim.y rows a
// block. The group's size follows from the columns alone, and so does the order in which a row is added up:
// within a thread, within a warp as a butterfly (every lane ends with the same bits, because addition
// commutes), across the group's warps the same way.
//
// Rows of up to ZB_HELD_COLUMNS are held in registers, so that a tensor is read once. Longer ones are read
// again for each pass over them; the second time comes from the cache, as long as a block's row fits there.
#ifndef ZB_REDUCE_H
#define ZB_REDUCE_H

#include "kernels/device.h"

#define ZB_EACH 8 // elements of a row that a thread holds
#define ZB_HELD_COLUMNS (ZB_EACH * 1024)
#define ZB_ROW_BLOCK 128 // threads a block has at least, where there are rows enough

struct zb_add {
  template <class T> static __device__ T none() { return 0; }
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};

struct zb_most {
  template <class T> static __device__ T none() { return -INFINITY; }
  template <class T> __device__ T operator()(T a, T b) const { return fmaxf(a, b); }
};

template <class OP, class T> __device__ inline T zb_warp_reduce(T x) {
  ZB_UNROLL for (int lane = ZB_WARP / 2; lane > 0; lane /= 2) x = OP()(x, __shfl_xor_sync(~0u, x, lane));
  return x;
}

// Replaces each of x[N] by its reduction over the group. All threads of the block call it. SLOT: another one
// for each call in a kernel, so that a fast warp cannot overwrite what a slow one still reads.
template <class OP, int SLOT, int N, class T> __device__ inline void zb_row_reduce(T (&x)[N]) {
  ZB_SHARED(T, partial, N * ZB_WARP);
  ZB_UNROLL for (int n = 0; n < N; n++) x[n] = zb_warp_reduce<OP>(x[n]);
  if (blockDim.x == ZB_WARP) return;
  int warps = (int)blockDim.x / ZB_WARP, lane = (int)threadIdx.x % ZB_WARP;
  int group = (int)threadIdx.y * warps;
  if (lane == 0)
    ZB_UNROLL for (int n = 0; n < N; n++) partial[n * ZB_WARP + group + (int)threadIdx.x / ZB_WARP] = x[n];
  __syncthreads(); // the partials are read by all warps of the group
  ZB_UNROLL for (int n = 0; n < N; n++) x[n] =
      zb_warp_reduce<OP>(lane < warps ? partial[n * ZB_WARP + group + lane] : OP::template none<T>());
}

template <class OP, int SLOT, class T> __device__ inline T zb_row_reduce(T x) {
  T one[1] = {x};
  zb_row_reduce<OP, SLOT>(one);
  return one[0];
}

// A thread's share of its row: pack k starts at column first + k * step. Threads behind the last row have end
// 0: they read and write nothing, and meet every barrier.
template <class T, bool HELD> struct zb_share {
  static constexpr int V = zb_pack<T>;
  static constexpr int KEPT = HELD ? ZB_EACH / V : 1; // packs in registers
  int64_t row;
  int64_t start; // of the row, in the tensor
  int end, first, step, trips;

  __device__ zb_share(int64_t rows, int columns) {
    row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    end = row < rows ? columns : 0;
    start = row < rows ? row * columns : 0;
    first = (int)threadIdx.x * V;
    step = (int)blockDim.x * V;
    trips = (columns + step - 1) / step;
  }
  __device__ bool leads() const { return end > 0 && threadIdx.x == 0; }
  __device__ int packs() const { return HELD ? KEPT : trips; }
  __device__ int at(int k) const { return first + k * step; }
  static __device__ int slot(int k) { return HELD ? k : 0; }
};

struct zb_geometry {
  dim3 grid, block;
  bool held;
};

static inline struct zb_geometry zb_row_geometry(int64_t rows, int columns) {
  int64_t threads = zb_parts(zb_parts(columns, ZB_EACH), ZB_WARP) * ZB_WARP;
  if (threads > 1024) threads = 1024;
  int64_t together = threads < ZB_ROW_BLOCK ? ZB_ROW_BLOCK / threads : 1;
  if (together > rows) together = rows;
  struct zb_geometry geometry;
  geometry.grid = dim3((unsigned)zb_parts(rows, together));
  geometry.block = dim3((unsigned)threads, (unsigned)together);
  geometry.held = columns <= ZB_HELD_COLUMNS;
  return geometry;
}

#endif
