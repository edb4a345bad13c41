// root.h - the root bound: the least target that propagation alone does not refute.
#ifndef ZB_ROOT_H
#define ZB_ROOT_H

#include "solver/exact/window.h"

// Bisects over whole ticks. `hint`: a bound to start from, itself not trusted; `high`: a cost that is
// known to be reachable (INT64_MAX: none is). *bound rises from 0 and every target below it is refuted,
// whatever is returned; on KEPT it is the least target that is not refuted, at most `high`, and `state`
// is the fixpoint at *bound unless *bound == high. `spare` is a second state of the same chain; `ceiling`,
// a third, becomes the fixpoint at high - 1 where that is kept (its target tells).
enum zb_sweep zb_root_bound(struct zb_state *state, struct zb_state *spare, struct zb_state *ceiling,
                            int64_t hint, int64_t high, int64_t *bound);

#endif
