// random.h - the generator of every search that tries things at random: small, and the same everywhere.
#ifndef ZB_RANDOM_H
#define ZB_RANDOM_H

#include <stdint.h>

// xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators"). *state is not 0.
static inline uint64_t zb_random(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * UINT64_C(2685821657736338717);
}

#endif
