// dtype.h - what activations, messages and the inputs of matrix products are stored as: fp32, or bf16, whose
// bits are the upper half of the fp32 number's.
//
// Arithmetic is always fp32. Master weights, gradients, the optimizer's moments, 1/std of a norm and losses
// are never bf16.
#ifndef ZB_DTYPE_H
#define ZB_DTYPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/scalar.h"

enum zb_dtype { ZB_FP32, ZB_BF16 };

struct zb_bf16 {
  uint16_t bits;
};

static inline size_t zb_dtype_bytes(enum zb_dtype dtype) { return dtype == ZB_BF16 ? 2 : 4; }

// Exact.
ZB_HD float zb_bf16_value(struct zb_bf16 x) {
#ifdef __CUDA_ARCH__
  return __uint_as_float((unsigned)x.bits << 16);
#else
  uint32_t bits = (uint32_t)x.bits << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// To the nearest, ties to even; infinity where that overflows. Every NaN becomes 0x7fff, as the GPU's own
// instruction has it.
ZB_HD struct zb_bf16 zb_bf16_round(float value) {
  struct zb_bf16 rounded;
#ifdef __CUDA_ARCH__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
#else
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  rounded.bits =
      (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
  return rounded;
}

#endif
