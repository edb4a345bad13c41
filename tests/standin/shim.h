// shim.h - what stands for the GPU when a .cu file is compiled as C++ for the CPU: the words that nvcc would
// know.
//
// kernels/device.h includes it where ZB_STAND_IN names it. A launch goes into the stand-in's stream as any
// other operation, and runs there (shim_block.h).
#ifndef ZB_SHIM_H
#define ZB_SHIM_H

#include <math.h>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <tuple>

#include "tests/standin/shim_block.h"

#define threadIdx (zb_shim_self()->thread)
#define blockIdx (zb_shim_self()->block)
#define blockDim (zb_shim_self()->block_size)
#define gridDim (zb_shim_self()->grid_size)
#define __launch_bounds__(...)

#define ZB_SHIM_TEXT(x) ZB_SHIM_TEXT_OF(x)
#define ZB_SHIM_TEXT_OF(x) #x
#define ZB_LAUNCH(kernel, grid, block, stream, ...)                                                          \
  zb_shim_call_kernel(__FILE__ ":" ZB_SHIM_TEXT(__LINE__), kernel, grid, block, stream, __VA_ARGS__)

// A place of its own in each instance of a template, as in CUDA.
#define ZB_SHARED(type, name, count)                                                                         \
  static char name##_site;                                                                                   \
  type *name = static_cast<type *>(zb_shim_shared(&name##_site, sizeof(type) * (size_t)(count)))

static inline void __syncthreads() { zb_shim_barrier(); }

static inline int __ffs(int x) { return __builtin_ffs(x); }

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  static_assert(sizeof value <= sizeof(uint64_t), "a register");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  const uint64_t *all = zb_shim_warp(mask, bits);
  memcpy(&value, &all[(threadIdx.x % ZB_SHIM_WARP) ^ (unsigned)lanes], sizeof value);
  return value;
}

static inline unsigned __ballot_sync(unsigned mask, bool yes) {
  const uint64_t *all = zb_shim_warp(mask, yes);
  unsigned found = 0;
  for (unsigned lane = 0; lane < ZB_SHIM_WARP; lane++) found |= (unsigned)all[lane] << lane;
  return found;
}

// A kernel and what it was given, until it has run.
template <class... P> struct zb_shim_call {
  void (*kernel)(P...);
  std::tuple<P...> given;

  static void run(void *argument) {
    auto *call = static_cast<zb_shim_call *>(argument);
    std::apply(call->kernel, call->given);
  }
};

template <class... P, class... A>
cudaError_t zb_shim_call_kernel(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                cudaStream_t stream, A... given) {
  void *room = malloc(sizeof(zb_shim_call<P...>));
  if (!room) return cudaErrorMemoryAllocation;
  new (room) zb_shim_call<P...>{kernel, std::tuple<P...>(given...)};
  return zb_shim_launch(name, grid, block, stream, zb_shim_call<P...>::run, room);
}

#endif
