// climb.c - complete trees: refuted ones raise the bound, solved ones are schedules.
//
// Where a tree reaches its cap, a smaller target is easier to refute.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

// One tree.
static enum zb_tree_end try_target(struct zb_unit *unit, const struct zb_known *known,
                                   struct zb_worker *worker, int64_t target) {
  struct zb_proof proof = {0};
  zb_state_derive(&worker->state, known->ceiling, target);
  const enum zb_sweep swept = zb_state_propagate(&worker->state);
  enum zb_tree_end end = swept == ZB_SWEEP_REFUTED   ? ZB_TREE_REFUTED
                         : swept == ZB_SWEEP_STOPPED ? ZB_TREE_STOPPED
                                                     : ZB_TREE_MEMORY;
  if (swept == ZB_SWEEP_KEPT) {
    end = zb_tree_search(&worker->tree, &worker->state, &unit->rule, &worker->timer, unit->weight,
                         &unit->random, &worker->trial, &proof);
    unit->nodes += worker->tree.nodes;
  }
  switch (end) {
  case ZB_TREE_SOLVED:
    zb_unit_offer(unit, known, worker);
    break;
  case ZB_TREE_REFUTED:
    unit->bound = target + 1;
    zb_proof_free(&unit->proof);
    unit->proof = proof;
    proof = (struct zb_proof){0};
    break;
  case ZB_TREE_BARREN:
    unit->barren = target + 1;
    break;
  case ZB_TREE_MEMORY:
    unit->status = ZB_FAILED;
    break;
  default:
    break;
  }
  zb_proof_free(&proof);
  return end;
}

// A probing tree costs much before its first split, so few and bold targets pay: a part of the way from
// bound to cost, more of it after a refutation, less after a tree that reached its cap.
void zb_unit_raise(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const int64_t enough = worker->lattice.work + unit->work / 2;
  while (worker->lattice.work < enough) {
    const int64_t first = zb_max(unit->bound, unit->barren);
    if (first >= unit->cost) return;
    const int64_t target = first + (int64_t)((double)(unit->cost - 1 - first) * unit->part);
    switch (try_target(unit, known, worker, target)) {
    case ZB_TREE_REFUTED:
      unit->part = unit->part < 0.5 ? unit->part * 2 : 1;
      break;
    case ZB_TREE_CAPPED:
      unit->part = unit->part > 1e-6 ? unit->part / 3 : unit->part;
      break;
    case ZB_TREE_BARREN:
      break;
    default:
      return;
    }
  }
}

void zb_unit_climb(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  try_target(unit, known, worker, zb_max(unit->bound, unit->barren));
}
