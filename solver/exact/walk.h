// walk.h - from windows to one complete order of a device, by a rule of preference.
#ifndef ZB_WALK_H
#define ZB_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/exact/orders.h"
#include "solver/exact/window.h"

// How a walk chooses among the ops that may still lead to an end in time.
struct zb_preference {
  unsigned char rank[4]; // by kind F, B, W, BW: lower first, among those that start equally soon
  int64_t patience;      // ticks of idling that count as none
  unsigned noise;        // of 256: how often the choice is any op that may start
};

// The rules that work best, most useful first.
extern const struct zb_preference zb_preferences[];
extern const int zb_preference_count;

// Walks device `d` through the table of the last sweep, which must have been zb_state_sweep(state, d)
// and KEPT, and writes its word. `random` advances. Returns false where the walk got stuck (a fused and a
// split backward that the order bounds do not allow together).
bool zb_walk(const struct zb_state *state, int d, const struct zb_preference *preference, uint64_t *random,
             struct zb_orders *orders);

#endif
