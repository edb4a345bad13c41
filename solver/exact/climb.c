// climb.c - one complete tree at the bound: refuted it raises the bound, solved it is an optimum.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

void zb_unit_climb(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const int64_t target = zb_max(unit->bound, unit->barren);
  struct zb_proof proof = {0};
  enum zb_tree_end end = zb_unit_aim(&worker->state, known, target);
  if (end == ZB_TREE_OPEN) {
    end = zb_tree_search(&worker->tree, &worker->state, &unit->rule, unit->work, &worker->timer, unit->weight,
                         &unit->random, &worker->trial, &proof);
    unit->nodes += worker->tree.nodes;
  }
  zb_unit_take_end(unit, known, worker, target, end, &proof);
  zb_proof_free(&proof);
}
