// device.h - what the kernels share: how they are launched, and how a thread reads and writes a pack, the 16
// bytes that make one access: 4 elements of fp32, 8 of bf16.
//
// The same sources compile with nvcc and, with ZB_STAND_IN naming a header that stands for the GPU, as C++
// for the CPU. That is why shared memory and launches are written as macros here.
//
// Which thread adds what must not depend on whether accesses are wide. So a thread owns the same pack of
// elements either way, and without WIDE reads it one by one.
#ifndef ZB_DEVICE_H
#define ZB_DEVICE_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"

#ifdef ZB_STAND_IN
#include ZB_STAND_IN
#define ZB_UNROLL
#define ZB_UNROLL_BY_4
#else
// Launches a kernel, whose name is in parentheses, and says how that went.
#define ZB_LAUNCH(kernel, grid, block, stream, ...)                                                          \
  (kernel<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__), cudaGetLastError())
#define ZB_SHARED(type, name, count) __shared__ type name[count]
#define ZB_UNROLL _Pragma("unroll")
#define ZB_UNROLL_BY_4 _Pragma("unroll 4")
#endif

#define ZB_WARP 32

template <class T> constexpr int zb_pack = 16 / (int)sizeof(T);

static __device__ inline float zb_value(float x) { return x; }
static __device__ inline float zb_value(zb_bf16 x) { return zb_bf16_value(x); }

template <class T> __device__ inline T zb_round(float x);
template <> __device__ inline float zb_round<float>(float x) { return x; }
template <> __device__ inline zb_bf16 zb_round<zb_bf16>(float x) { return zb_bf16_round(x); }

// x as a reader will find it.
template <class T> __device__ inline float zb_stored(float x) { return zb_value(zb_round<T>(x)); }

template <class T, int COUNT> struct alignas(COUNT * sizeof(T)) zb_chunk { T at[COUNT]; };

// V elements of T in accesses of at most 16 bytes.
template <class T, int V> constexpr int zb_chunk_size = V < zb_pack<T> ? V : zb_pack<T>;

// x[v] = from[v] for v < left, 0 beyond. WIDE: `from` is aligned, and left is at least V or at most 0.
template <int V, bool WIDE, class T> __device__ inline void zb_read(const T *from, int left, float *x) {
  if constexpr (WIDE) {
    constexpr int SIZE = zb_chunk_size<T, V>;
    ZB_UNROLL for (int k = 0; k < V; k += SIZE) {
      zb_chunk<T, SIZE> chunk = {};
      if (left > 0) chunk = *reinterpret_cast<const zb_chunk<T, SIZE> *>(from + k);
      ZB_UNROLL for (int v = 0; v < SIZE; v++) x[k + v] = zb_value(chunk.at[v]);
    }
  } else {
    ZB_UNROLL for (int v = 0; v < V; v++) x[v] = v < left ? zb_value(from[v]) : 0;
  }
}

// to[v] = x[v] for v < left; otherwise as zb_read.
template <int V, bool WIDE, class T> __device__ inline void zb_write(T *to, int left, const float *x) {
  if constexpr (WIDE) {
    constexpr int SIZE = zb_chunk_size<T, V>;
    if (left <= 0) return;
    ZB_UNROLL for (int k = 0; k < V; k += SIZE) {
      zb_chunk<T, SIZE> chunk;
      ZB_UNROLL for (int v = 0; v < SIZE; v++) chunk.at[v] = zb_round<T>(x[k + v]);
      *reinterpret_cast<zb_chunk<T, SIZE> *>(to + k) = chunk;
    }
  } else {
    ZB_UNROLL for (int v = 0; v < V; v++) if (v < left) to[v] = zb_round<T>(x[v]);
  }
}

// Everything below is for the host: which instance of a kernel to launch, and how much of it.

// True when all of these are 16-byte aligned; NULL is.
template <class... P> bool zb_aligned(const P *...pointer) {
  return ((reinterpret_cast<uintptr_t>(pointer) | ...) & 15) == 0;
}

template <class T, bool WIDE> struct zb_instance {
  using type = T;
  static constexpr bool wide = WIDE;
};

// Calls launch(zb_instance) for the dtype, wide where `aligned` and the columns fill whole packs.
template <class F> cudaError_t zb_for_dtype(enum zb_dtype dtype, bool aligned, int columns, F launch) {
  if (dtype == ZB_BF16)
    return aligned && columns % zb_pack<zb_bf16> == 0 ? launch(zb_instance<zb_bf16, true>())
                                                      : launch(zb_instance<zb_bf16, false>());
  return aligned && columns % zb_pack<float> == 0 ? launch(zb_instance<float, true>())
                                                  : launch(zb_instance<float, false>());
}

static inline int64_t zb_parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

#endif
