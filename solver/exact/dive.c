// dive.c - fixing one device after another.
#include "solver/exact/dive.h"

// Fixes the first `stretch` of `stretches` parts of the device's order.
static enum zb_sweep fix_device(struct zb_state *state, const struct zb_dive *dive, int d, int stretch,
                                int stretches, uint64_t *random, struct zb_orders *orders) {
  const size_t mark = zb_state_mark(state);
  for (int i = 0; i < dive->tries; i++) {
    enum zb_sweep swept = zb_state_sweep(state, d);
    if (swept != ZB_SWEEP_KEPT) return swept;
    struct zb_preference preference = zb_preferences[(dive->preference + i) % zb_preference_count];
    preference.noise = dive->noise;
    if (!zb_walk(state, d, &preference, random, orders)) continue;
    zb_orders_keep(state, orders, d, orders->count[d] * stretch / stretches, orders->count[d]);
    swept = zb_state_propagate(state);
    if (swept != ZB_SWEEP_REFUTED) return swept;
    zb_state_undo(state, mark);
  }
  return ZB_SWEEP_REFUTED;
}

enum zb_sweep zb_dive(struct zb_state *state, const struct zb_dive *dive, uint64_t *random,
                      struct zb_orders *orders) {
  const int p = state->chain->devices;
  const size_t mark = zb_state_mark(state);
  const bool recording = state->recording;
  state->recording = true;
  enum zb_sweep swept = ZB_SWEEP_KEPT;
  const int stretches = dive->stretches > 1 ? dive->stretches : 1;
  for (int i = 0; i < p * stretches && swept == ZB_SWEEP_KEPT; i++) {
    const int d = dive->from == ZB_DIVE_LAST ? p - 1 - i % p : i % p;
    swept = fix_device(state, dive, d, i / p + 1, stretches, random, orders);
  }
  zb_state_undo(state, mark);
  state->recording = recording;
  return swept;
}
