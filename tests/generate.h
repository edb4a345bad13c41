// Random profiles from a seed: the same seed gives the same profile on every machine.
//
// Two kinds. `uneven` is what is hard for a scheduler in practice: stages that differ, memory that is tight.
// `tiny` is small enough to try every order, and goes where input is odd: times of zero, fused backward
// passes, communication that differs by boundary and direction, limits a device, a B that adds memory, limits
// that no order can meet. Integers only, own random numbers, no header of the solver: a test that compares
// the solver with a second reading of the profile starts from here.
#ifndef GENERATE_H
#define GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GENERATE_MAX_DEVICES = 16, GENERATE_JSON_BYTES = 4096 };

enum generate_kind {
  GENERATE_UNEVEN, // p 4 to 16, m p to 4p, spread 2 to 40%, limit 0.4x to 2x, W keeps 10 to 90%, comm 0 to
                   // 20%
  GENERATE_TINY,   // p 1 to 3, m 1 to 3, everything else uneven
};

// splitmix64: the whole state is one number.
struct generate_random {
  uint64_t state;
};

// A profile of one stage a device. Times in ns, memory in bytes; comm has an entry a boundary k, k+1.
struct generated_profile {
  uint64_t seed, index;
  enum generate_kind kind;
  int devices, microbatches;
  int64_t f[GENERATE_MAX_DEVICES], b[GENERATE_MAX_DEVICES], w[GENERATE_MAX_DEVICES];
  int64_t bw[GENERATE_MAX_DEVICES]; // of a fused backward; b+w where has_bw is false
  int64_t comm_forward[GENERATE_MAX_DEVICES], comm_backward[GENERATE_MAX_DEVICES];
  int64_t memory_f[GENERATE_MAX_DEVICES], memory_b[GENERATE_MAX_DEVICES], memory_w[GENERATE_MAX_DEVICES];
  int64_t limit[GENERATE_MAX_DEVICES]; // without meaning where has_limit is false
  int64_t fixed[GENERATE_MAX_DEVICES]; // the profile's memory.static
  bool has_bw, has_limit;
};

// The next 64 bits.
uint64_t generate_bits(struct generate_random *random);

// An integer from low to high, both possible; low <= high.
int64_t generate_between(struct generate_random *random, int64_t low, int64_t high);

// Fills *profile with number `index` of the sequence that `seed` starts.
void generate_profile(struct generated_profile *profile, enum generate_kind kind, uint64_t seed,
                      uint64_t index);

// Writes the profile as a profile file into text, like snprintf: at most size bytes with the final zero, and
// the length of the whole is returned. GENERATE_JSON_BYTES is always enough.
size_t generate_json(const struct generated_profile *profile, char *text, size_t size);

#endif
