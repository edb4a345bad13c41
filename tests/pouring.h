// Random chains, and what they cost at least if W is poured: run in pieces of any size, whenever no F or B
// does. By every order of F and B, or by every state that none beats; both are slow and simple, and know no
// windows. What searches for `fluid-fronts` are tested against. Shares only types with solver/model.
#ifndef POURING_H
#define POURING_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/timeline.h"
#include "tests/generate.h"

enum { POURING_DEVICES = 8, POURING_MICROBATCHES = 16 };

// One stage a device; times in ns, memory in bytes; comm has an entry a boundary. Where memory is limited
// only F takes any, and no fused backward pays.
struct pouring_chain {
  int devices, microbatches;
  int64_t f[POURING_DEVICES], b[POURING_DEVICES], w[POURING_DEVICES], bw[POURING_DEVICES];
  int64_t forward[POURING_DEVICES], backward[POURING_DEVICES];
  int64_t f_bytes[POURING_DEVICES], b_bytes[POURING_DEVICES], w_bytes[POURING_DEVICES];
  int64_t limit[POURING_DEVICES], standing[POURING_DEVICES]; // ZB_NO_LIMIT: none
};

// One device's F and B in order.
struct pouring_word {
  bool is_b[2 * POURING_MICROBATCHES];
};

// One device on the common clock.
struct pouring_device {
  int f, b; // done
  int64_t clock, poured;
  int64_t f_end[POURING_MICROBATCHES], b_end[POURING_MICROBATCHES];
};

static const int64_t pouring_never = INT64_MAX / 4;

// Devices and microbatches are one of `sizes`, or every other time some number up to them.
struct pouring_chain pouring_random(struct generate_random *random, const int (*sizes)[2], size_t count);

// Likewise, with little memory nearly everywhere, most of which W gives back: where what comes first, and
// what is held back for it, matters.
struct pouring_chain pouring_tight(struct generate_random *random, const int (*sizes)[2], size_t count);

// For messages; lasts until the next call.
const char *pouring_text(const struct pouring_chain *chain, enum zb_objective objective);

// The same in the solver's form, owned by the caller; NULL where memory ran out.
struct zb_profile *pouring_profile(const struct pouring_chain *chain);

// The cost of the order word[d] of each device d; pouring_never where it does not finish.
int64_t pouring_cost(const struct pouring_chain *chain, enum zb_objective objective,
                     const struct pouring_word *const *word);

// The least cost of all orders, for up to 7 microbatches; pouring_never where none finishes.
int64_t pouring_optimum(const struct pouring_chain *chain, enum zb_objective objective);

// The same by states, for fewer than 16 microbatches; pouring_never where there are too many.
int64_t pouring_optimum_by_states(const struct pouring_chain *chain, enum zb_objective objective);

// The least cost of all orders of F, B and W by brute.h; -1 where there is none, or too many to try.
int64_t pouring_whole_optimum(const struct pouring_chain *chain, enum zb_objective objective);

// Chains that random ones seldom are, with the least span of each.
struct pouring_pinned {
  const char *why;
  struct pouring_chain chain;
  int64_t span;
};
extern const struct pouring_pinned pouring_pinned[];
extern const int pouring_pins;

#endif
