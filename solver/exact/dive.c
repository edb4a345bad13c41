// dive.c - fixing one device after another.
#include "solver/exact/dive.h"

static enum zb_sweep fix_device(struct zb_state *state, const struct zb_dive *dive, int d, uint64_t *random,
                                struct zb_orders *orders) {
  const size_t mark = zb_state_mark(state);
  for (int i = 0; i < dive->tries; i++) {
    enum zb_sweep swept = zb_state_sweep(state, d);
    if (swept != ZB_SWEEP_KEPT) return swept;
    struct zb_preference preference = zb_preferences[(dive->preference + i) % zb_preference_count];
    preference.noise = dive->noise;
    if (!zb_walk(state, d, &preference, random, orders)) continue;
    zb_orders_keep(state, orders, d, 0, 0);
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
  for (int i = 0; i < p && swept == ZB_SWEEP_KEPT; i++) {
    swept = fix_device(state, dive, dive->from == ZB_DIVE_LAST ? p - 1 - i : i, random, orders);
  }
  zb_state_undo(state, mark);
  state->recording = recording;
  return swept;
}
