// The exact optimum of a tiny profile, by trying every order: what engines and bounds are tested against.
//
// Every order up to one exchange: of the ops of one stage and kind the k-th to run is microbatch k, which
// loses nothing (design: sort them; every precedence and every memory sum survives), and backwards of a
// stage, fused or not, count as one kind for this. A fused backward is tried wherever it could help: where it
// takes less time than its two parts, or its B adds memory. Orders are timed by code of their own, the span
// and the makespan as in naive.c, the period by all simple cycles of devices. Shares only types with
// solver/model.
#ifndef BRUTE_H
#define BRUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/timeline.h"

enum { BRUTE_MAX_DEVICES = 6, BRUTE_MAX_PASSES = 64 };

struct brute {
  bool feasible;                // some order fits every device's limit
  int64_t cost_ns;              // the optimum, where feasible
  struct zb_schedule *schedule; // that reaches it, owned; NULL where infeasible
  uint64_t words, timed;        // orders of single devices, and combinations of them that were timed
};

// False, and nothing to free, where the devices' orders have more than `most` combinations, the profile is
// beyond the sizes above, or memory is out.
bool brute_solve(const struct zb_profile *profile, enum zb_objective objective, uint64_t most,
                 struct brute *out);

void brute_free(struct brute *brute);

#endif
