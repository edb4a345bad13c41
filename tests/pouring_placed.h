// Random placements with several stages a device, and what they cost at least if W is poured: run in pieces
// of any size, whenever no F or B does. By every order of F and B; of states that are alike in what is done
// only those are kept that no other beats. Knows no windows and no rules of a search; shares only types with
// solver/model.
#ifndef POURING_PLACED_H
#define POURING_PLACED_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/timeline.h"
#include "tests/generate.h"

enum { PLACED_DEVICES = 4, PLACED_STAGES = 12, PLACED_MICROBATCHES = 4, PLACED_PASSES = PLACED_STAGES * 4 };

// An F or B that a device runs.
struct placed_op {
  int stage;
  bool is_b;
};

// One device's F and B in order.
struct placed_word {
  int count;
  struct placed_op op[2 * PLACED_PASSES];
};

extern const int64_t placed_never;

// 1 to 4 devices with 1 to 3 stages each, 1 to 4 microbatches; stages times microbatches are at most
// `passes`, from 8 on. A list in any order, a loop or a V. All W of a device are alike, only F takes memory,
// and no fused backward pays. Limits are from the least that one microbatch needs. Owned by the caller; NULL
// where memory ran out.
struct zb_profile *placed_random(struct generate_random *random, int passes);

// Placements that random ones seldom are, with the least span and makespan of each.
struct placed_pinned {
  const char *why;
  int devices, chunks, microbatches;
  int device_of[PLACED_STAGES];
  int64_t f[PLACED_STAGES], b[PLACED_STAGES], backward[PLACED_STAGES]; // no w, no other comm
  int64_t b_bytes[PLACED_STAGES], w_bytes[PLACED_STAGES], limit[PLACED_DEVICES];
  int64_t cost;
};
extern const struct placed_pinned placed_pinned[];
extern const int placed_pins;

// In the solver's form, owned by the caller; NULL where memory ran out.
struct zb_profile *placed_profile(const struct placed_pinned *pinned);

// For messages; lasts until the next call.
const char *placed_text(const struct zb_profile *profile, enum zb_objective objective);

// The cost of the order word[d] of each device d, in ns; placed_never where it does not finish.
int64_t placed_cost(const struct zb_profile *profile, enum zb_objective objective,
                    const struct placed_word *word);

// The least cost of all orders, in ns; placed_never where there are too many states.
int64_t placed_optimum(const struct zb_profile *profile, enum zb_objective objective);

// The same with no state left out, which may be far slower; placed_never where that takes more than
// `steps` ops.
int64_t placed_optimum_of_all(const struct zb_profile *profile, enum zb_objective objective, int64_t steps);

#endif
