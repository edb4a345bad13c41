// unit.c - a thread's scratch, and what the kinds of work share.
#include "solver/exact/unit.h"

enum zb_status zb_worker_open(const struct zb_known *known, size_t most_states, struct zb_worker *worker,
                              struct zb_error *error) {
  *worker = (struct zb_worker){0};
  worker->lattice.most_states = most_states;
  enum zb_status status =
      zb_state_open(known->chain, known->objective, &worker->lattice, &worker->state, error);
  worker->state.rules_off = known->rules_off;
  if (status == ZB_OK) status = zb_timer_open(known->profile, &worker->timer, error);
  if (status == ZB_OK) status = zb_orders_create(known->chain, &worker->trial, error);
  if (status != ZB_OK) zb_worker_close(worker);
  return status;
}

void zb_worker_close(struct zb_worker *worker) {
  zb_state_close(&worker->state);
  zb_lattice_free(&worker->lattice);
  zb_tree_free(&worker->tree);
  zb_timer_close(&worker->timer);
  zb_orders_free(&worker->trial);
}

void zb_unit_offer(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  int64_t cost_ns;
  const enum zb_objective objective = worker->state.objective;
  const enum zb_status status =
      zb_timer_cost(&worker->timer, objective, &worker->trial, &cost_ns, NULL, NULL);
  if (status == ZB_FAILED) unit->status = status;
  if (status != ZB_OK) return;
  const int64_t cost = zb_chain_ticks(known->chain, cost_ns);
  if (cost >= unit->cost) return;
  unit->cost = cost;
  zb_orders_copy(&unit->orders, &worker->trial);
}

void zb_unit_take_end(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                      int64_t target, enum zb_tree_end end, struct zb_proof *proof) {
  switch (end) {
  case ZB_TREE_SOLVED:
    zb_unit_offer(unit, known, worker);
    break;
  case ZB_TREE_REFUTED:
    unit->bound = target + 1;
    zb_proof_free(&unit->proof);
    unit->proof = *proof;
    *proof = (struct zb_proof){0};
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
}

void zb_unit_raise_bound(struct zb_unit *unit, int64_t bound, enum zb_proof_search search) {
  if (bound <= unit->bound) return;
  unit->bound = bound;
  zb_proof_free(&unit->proof);
  unit->proof.search = search;
}

enum zb_tree_end zb_unit_aim(struct zb_state *state, const struct zb_known *known, int64_t target) {
  zb_state_derive(state, known->ceiling, target);
  switch (zb_state_propagate(state)) {
  case ZB_SWEEP_KEPT:
    return ZB_TREE_OPEN;
  case ZB_SWEEP_REFUTED:
    return ZB_TREE_REFUTED;
  case ZB_SWEEP_STOPPED:
    return ZB_TREE_STOPPED;
  default:
    return ZB_TREE_MEMORY;
  }
}

enum zb_front_end zb_unit_aim_front(struct zb_state *state, const struct zb_known *known, int64_t target) {
  switch (zb_unit_aim(state, known, target)) {
  case ZB_TREE_OPEN:
    return ZB_FRONT_OPEN;
  case ZB_TREE_REFUTED:
    return ZB_FRONT_REFUTED;
  case ZB_TREE_STOPPED:
    return ZB_FRONT_STOPPED;
  default:
    return ZB_FRONT_MEMORY;
  }
}

void zb_unit_run(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  unit->bound = known->bound;
  unit->barren = known->barren;
  unit->cost = known->cost;
  unit->nodes = 0;
  unit->status = ZB_OK;
  unit->proof.count = 0;
  unit->proof.search = ZB_NO_SEARCH;
  worker->lattice.halt = &unit->halt;
  const unsigned off = known->rules_off;
  switch (unit->kind) {
  case ZB_UNIT_RAISE:
    zb_unit_raise(unit, known, worker);
    break;
  case ZB_UNIT_CLIMB:
    if (!(off & ZB_RULE_BIT(ZB_RULE_CLIMB))) zb_unit_climb(unit, known, worker);
    break;
  case ZB_UNIT_NEIGHBOUR:
    if (!(off & ZB_RULE_BIT(ZB_RULE_NEIGHBOUR))) zb_unit_neighbour(unit, known, worker);
    break;
  case ZB_UNIT_FRONT:
  case ZB_UNIT_FRONT_UP:
    if (!(off & ZB_RULE_BIT(ZB_RULE_FRONT))) zb_unit_front(unit, known, worker);
    break;
  case ZB_UNIT_FLOW:
  case ZB_UNIT_FLOW_UP:
    if (!(off & ZB_RULE_BIT(ZB_RULE_FLOW))) zb_unit_flow(unit, known, worker);
    break;
  case ZB_UNIT_IMPROVE:
    zb_unit_improve(unit, known, worker);
    break;
  }
  worker->lattice.halt = NULL;
}
