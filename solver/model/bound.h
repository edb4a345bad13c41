// bound.h - the closed-form lower bound: what filling and draining the pipe force on the busiest device.
#ifndef ZB_BOUND_H
#define ZB_BOUND_H

#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/timeline.h"

// A lower bound, in ns, on the cost of every schedule of the profile under the objective, for any
// placement. O(devices^2 + stages).
int64_t zb_bound_closed_form(const struct zb_profile *profile, enum zb_objective objective);

#endif
