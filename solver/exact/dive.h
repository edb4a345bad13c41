// dive.h - from a fixpoint of all devices to complete orders, one device at a time.
#ifndef ZB_DIVE_H
#define ZB_DIVE_H

#include "solver/exact/orders.h"
#include "solver/exact/walk.h"
#include "solver/exact/window.h"

// In which order devices are fixed.
enum zb_dive_from { ZB_DIVE_LAST, ZB_DIVE_FIRST };

struct zb_dive {
  enum zb_dive_from from;
  int preference; // the rule tried first; the others follow where it is refuted
  int tries;      // rules tried a device before the dive gives up
  unsigned noise; // of 256
  // Into how many parts a device's order is cut: each device is fixed one part further in turn. 0, 1: whole.
  // With several stages devices hang together too closely for one to be fixed from end to end before the
  // next.
  int stretches;
};

// From a fixpoint of `state`: walk a device, fix its order, propagate, go on. KEPT: `orders` is complete and
// meets the state's target; REFUTED: the dive failed, which proves nothing. The state is as before.
enum zb_sweep zb_dive(struct zb_state *state, const struct zb_dive *dive, uint64_t *random,
                      struct zb_orders *orders);

#endif
