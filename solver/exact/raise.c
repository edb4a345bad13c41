// raise.c - trees whose targets narrow in on the best bound that can be proven.
//
// A probing tree costs much before its first split, so few and bold targets pay: a part of the way from
// bound to cost, more of it after a refutation, less after a tree that was given up. But a target that is too
// bold costs many times what a good one does: a tree is given up after what two rounds sweep, and only the
// next may sweep twice as much. That is often more than a round has left, so the tree stays open from round
// to round: its state is the unit's own.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

// Of the gap, to where the first target is.
static const double first_part = 0.125;

static void close_tree(struct zb_unit *unit) {
  if (unit->tree_open) zb_tree_end(&unit->tree);
  unit->tree_open = false;
  zb_proof_free(&unit->tree_proof);
}

static enum zb_tree_end open_tree(struct zb_unit *unit, const struct zb_known *known, int64_t target) {
  const enum zb_tree_end end = zb_unit_aim(&unit->state, known, target);
  if (end != ZB_TREE_OPEN) return end;
  zb_tree_begin(&unit->tree, &unit->state, &unit->rule, unit->weight, &unit->random, &unit->tree_proof);
  unit->tree_open = true;
  if (unit->tree_most == 0) unit->tree_most = 2 * unit->work;
  unit->tree_left = unit->tree_most;
  return ZB_TREE_OPEN;
}

// Runs the open tree for as long as the round has work for it. OPEN: it stays open, since it only ran out of
// that; what ends sooner cannot go on.
static enum zb_tree_end run_tree(struct zb_unit *unit, struct zb_worker *worker, int64_t work) {
  const int64_t before = worker->lattice.work, nodes = unit->tree.nodes;
  const enum zb_tree_end end =
      zb_tree_run(&unit->tree, zb_min(work, unit->tree_left), &worker->timer, &worker->trial);
  const int64_t swept = worker->lattice.work - before;
  unit->nodes += unit->tree.nodes - nodes;
  unit->tree_left -= swept;
  return end == ZB_TREE_CAPPED && swept >= work && unit->tree_left > 0 ? ZB_TREE_OPEN : end;
}

void zb_unit_raise(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const int64_t enough = worker->lattice.work + unit->work;
  unit->state.lattice = &worker->lattice;
  // A tree without probes says nothing about what one with them can do.
  if (unit->part == 0 || unit->probed != unit->rule.probing) {
    close_tree(unit);
    unit->part = first_part;
    unit->tree_most = 0;
    unit->probed = unit->rule.probing;
  }
  if (unit->tree_open && (unit->state.target < unit->bound || unit->state.target >= unit->cost))
    close_tree(unit);
  while (worker->lattice.work < enough) {
    const int64_t first = zb_max(unit->bound, unit->barren);
    if (first >= unit->cost) return;
    enum zb_tree_end end = ZB_TREE_OPEN;
    if (!unit->tree_open)
      end = open_tree(unit, known, first + (int64_t)((double)(unit->cost - 1 - first) * unit->part));
    if (end == ZB_TREE_OPEN) end = run_tree(unit, worker, enough - worker->lattice.work);
    if (end == ZB_TREE_OPEN) return;
    zb_unit_take_end(unit, known, worker, unit->state.target, end, &unit->tree_proof);
    close_tree(unit);
    switch (end) {
    case ZB_TREE_REFUTED:
      unit->part = unit->part < 0.5 ? unit->part * 2 : 1;
      break;
    case ZB_TREE_CAPPED:
      unit->part = unit->part > 1e-6 ? unit->part / 3 : unit->part;
      if (unit->tree_most < INT64_MAX / 4) unit->tree_most *= 2;
      break;
    case ZB_TREE_BARREN:
      break;
    default:
      return;
    }
  }
}
