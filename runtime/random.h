// random.h - numbers that are a function of where they are used: start values and batches.
//
// The mixing function is the finaliser of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators). There is no hidden state, so any device can draw any other's numbers.
#ifndef ZB_RANDOM_H
#define ZB_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/scalar.h"

static inline uint64_t zb_random_mix(uint64_t seed, uint64_t index) {
  uint64_t x = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

// Uniform in [-1, 1), on a grid that float holds exactly.
static inline double zb_random_even(uint64_t seed, uint64_t index) {
  return (double)(zb_random_mix(seed, index) >> 40) / (double)(1 << 23) - 1;
}

// Where in its unit's start values a writer is.
struct zb_start {
  uint64_t seed, next;
};

// Uniform with mean 0 and the given standard deviation.
static inline void zb_start_matrix(struct zb_start *start, size_t count, double deviation, zb_real *values) {
  for (size_t k = 0; k < count; k++)
    values[k] = (zb_real)(sqrt(3) * deviation * zb_random_even(start->seed, start->next++));
}

static inline void zb_start_constant(size_t count, zb_real value, zb_real *values) {
  for (size_t k = 0; k < count; k++) values[k] = value;
}

#endif
