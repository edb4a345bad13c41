// root.c - bisection for the least target that propagation does not refute.
//
// Targets below the bound are refuted quickly, and a fixpoint of a larger target is a valid start for a
// smaller one, so each step goes on from the tightest fixpoint known. The closed form is often the
// bound itself: it is tried first, then the target just below it; then steps double from there.
//
// Invariant: every target below *bound is refuted by propagation, so that a checker needs no help.
#include "solver/exact/root.h"

#include "solver/model/number.h"

// The fixpoint that targets below may start from.
struct known {
  struct zb_state *fixpoint, *trial;
  bool any;
};

// What a target may sweep: more than within a search, since all of it starts from the root's bound. On 24
// devices with 72 microbatches (Table 8) it so rises by 0.17%, to within 0.1% of the best schedule known.
static const int64_t enough_states = 32000000;

static enum zb_sweep try_target(struct known *known, int64_t target) {
  if (known->any) {
    zb_state_derive(known->trial, known->fixpoint, target);
  } else {
    zb_state_reset(known->trial, target);
  }
  known->trial->enough_states = enough_states;
  const enum zb_sweep swept = zb_state_propagate(known->trial);
  known->trial->enough_states = 0;
  if (swept == ZB_SWEEP_KEPT) {
    struct zb_state *now = known->trial;
    known->trial = known->fixpoint;
    known->fixpoint = now;
    known->any = true;
  }
  return swept;
}

// Below a known fixpoint the first sweep of a large table mostly refutes what can be refuted, while a target
// that holds takes one of every device: there steps are small, so that few targets hold.
enum { BOLD = 2, SHY = 32 };

enum zb_sweep zb_root_bound(struct zb_state *state, struct zb_state *spare, struct zb_state *ceiling,
                            int64_t hint, int64_t high, int64_t *bound) {
  struct known known = {state, spare, false};
  const bool reached = high != INT64_MAX;
  *bound = 0;
  // A good heuristic is often optimal: then one refutation is all it takes. But large tables are the smaller
  // the lower the target is, and above a wide gap none may ever be swept: there targets come from below.
  const bool fluid = state->chain->chunked && state->chain->chunked->fluid;
  const bool wide = fluid && high - hint > high / 64;
  int64_t kept = high, target = reached && !wide ? high - 1 : hint, step = zb_max(1, hint / 1024);
  while (*bound < kept) {
    const int part = fluid && known.any ? SHY : BOLD;
    const enum zb_sweep swept = try_target(&known, target);
    if (swept == ZB_SWEEP_KEPT) {
      if (reached && target == high - 1) zb_state_derive(ceiling, known.fixpoint, target);
      kept = target;
      target = kept == hint                   ? hint - 1
               : hint > *bound && hint < kept ? hint
                                              : *bound + (kept - *bound) / part;
    } else if (swept == ZB_SWEEP_REFUTED) {
      *bound = target + 1;
      target = wide && !known.any ? kept - 1 : *bound + (kept - *bound) / part;
      if (step < kept - *bound) {
        target = zb_min(target, *bound + step);
        step *= 2;
      }
    } else {
      return swept;
    }
  }
  if (known.any && known.fixpoint != state) zb_state_derive(state, known.fixpoint, known.fixpoint->target);
  return ZB_SWEEP_KEPT;
}
