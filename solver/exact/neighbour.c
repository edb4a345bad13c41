// neighbour.c - large neighbourhoods of the best orders: most order variables kept, a part set free.
//
// A neighbourhood is some neighbouring devices, a stretch of time, or both; the target lies a random
// part of the way from the cost to the bound. What is kept makes windows narrow, so that a small tree
// says quickly whether the free part can do better.
#include "solver/exact/unit.h"

#include "solver/model/number.h"
#include "solver/model/random.h"

static const int64_t tree_nodes = 30;

static int random_below(struct zb_unit *unit, int count) {
  return count > 0 ? (int)(zb_random(&unit->random) % (uint64_t)count) : 0;
}

// Keeps what lies outside devices first .. last and times from .. to (ns) of the unit's best orders.
// The timeline must be theirs.
static void keep_outside(struct zb_unit *unit, struct zb_worker *worker, int first, int last, int64_t from,
                         int64_t to) {
  const struct zb_timeline *timeline = &worker->timer.timeline;
  size_t op = 0;
  for (int d = 0; d < unit->orders.devices; d++) {
    const int count = unit->orders.count[d];
    int free_from = 0, free_to = 0;
    if (d >= first && d <= last) {
      while (free_from < count && timeline->start_ns[op + (size_t)free_from] < from) free_from++;
      free_to = free_from;
      while (free_to < count && timeline->start_ns[op + (size_t)free_to] < to) free_to++;
    }
    zb_orders_keep(&worker->state, &unit->orders, d, free_from, free_to);
    op += (size_t)count;
  }
}

static bool try_once(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const int p = known->chain->devices;
  const int64_t gap = unit->cost - 1 - known->bound;
  const int64_t part = random_below(unit, 1024);
  const int64_t target = unit->cost - 1 - (int64_t)((double)gap * (double)(part * part) / (1024.0 * 1024.0));
  int64_t cost_ns;
  if (zb_timer_cost(&worker->timer, known->objective, &unit->orders, &cost_ns, NULL, NULL) != ZB_OK)
    return false;
  const int64_t whole = worker->timer.timeline.makespan_ns;
  const int shape = random_below(unit, 3);
  const int devices = shape == 0 ? p : 2 + unit->level + random_below(unit, 2 + unit->level);
  const int first = random_below(unit, p - (devices < p ? devices : p) + 1);
  const int64_t stretch = shape == 1 ? whole + 1 : whole / 16 * (1 + unit->level + random_below(unit, 3)) + 1;
  const int64_t from =
      shape == 1 ? 0 : (int64_t)((double)(whole + stretch) * random_below(unit, 1024) / 1024.0) - stretch;
  zb_state_derive(&worker->state, known->ceiling, target);
  keep_outside(unit, worker, first, first + devices - 1, from, from + stretch);
  const enum zb_sweep swept = zb_state_propagate(&worker->state);
  unit->nodes++;
  if (swept == ZB_SWEEP_STOPPED) return false;
  if (swept != ZB_SWEEP_KEPT) return true;
  const struct zb_tree_rule rule = {random_below(unit, 4) == 0 ? ZB_PICK_EARLIEST : ZB_PICK_SMALLEST, false,
                                    tree_nodes, 15, false};
  const enum zb_tree_end end = zb_tree_search(&worker->tree, &worker->state, &rule, INT64_MAX, &worker->timer,
                                              unit->weight, &unit->random, &worker->trial, NULL);
  unit->nodes += worker->tree.nodes;
  if (end == ZB_TREE_SOLVED) zb_unit_offer(unit, known, worker);
  return end != ZB_TREE_STOPPED && end != ZB_TREE_MEMORY;
}

void zb_unit_neighbour(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  if (known->cost == ZB_NO_COST) return;
  zb_orders_copy(&unit->orders, known->best);
  const int64_t enough = worker->lattice.work + unit->work;
  while (worker->lattice.work < enough && unit->cost > known->bound) {
    const int64_t before = unit->cost;
    if (!try_once(unit, known, worker)) return;
    if (unit->cost < before) {
      unit->failures = 0;
      if (unit->level > 0) unit->level--;
    } else if (++unit->failures % 200 == 0) {
      unit->level = unit->level < 8 ? unit->level + 1 : 0;
    }
  }
}
