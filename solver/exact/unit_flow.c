// unit_flow.c - layers with fluid W, and whole W laid into the orders that they find.
//
// From the bound upwards as in unit_front.c. Below the cost, narrow layers find orders of F and B that fluid
// W completes for less; then a search that follows these orders places W, first at what they cost with fluid
// W and then at larger targets. Targets lie a part of the way from what was found to the bound: a smaller
// part, and at last wider layers, where nothing is found.
//
// A search from which nothing was left out ends it: it finds the least cost with fluid W, which is a bound.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

static const size_t first_width = 64, all = SIZE_MAX;
enum { WIDER = 4 };

static const double first_part = 0.125, least_part = 1e-4;
static const int64_t first_work = 20000;

// Below the cost: parts of the way to the bound.
static const double first_dive = 0.25, least_dive = 0.05;

static const struct zb_flow_weights fluid = {.fluid = true};

// Below the cost, in turn: no one is best everywhere.
static const struct zb_flow_weights manner[] = {
    {.nearly = 4, .many = 4}, {.nearly = 2, .many = 3}, {.nearly = 100, .many = 4}, {.nearly = 4, .many = 1}};
enum { MANNERS = sizeof manner / sizeof *manner };

static enum zb_front_end open_fluid(struct zb_unit *unit, const struct zb_known *known,
                                    struct zb_worker *worker) {
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  const int64_t most = unit->fluid_goal - 1, gap = most - unit->bound;
  const int64_t way = (int64_t)((double)gap * unit->fluid_part);
  unit->fluid_open = true;
  unit->fluid_target = up ? unit->bound + way : most - way;
  switch (zb_unit_aim(&worker->state, known, unit->fluid_target)) {
  case ZB_TREE_OPEN:
    return zb_flow_front_begin(unit->fluid, &worker->state, up ? fluid : manner[unit->flow_manner],
                               up ? all : unit->fluid_width);
  case ZB_TREE_REFUTED:
    return ZB_FRONT_REFUTED;
  case ZB_TREE_STOPPED:
    return ZB_FRONT_STOPPED;
  default:
    return ZB_FRONT_MEMORY;
  }
}

static void take_end_up(struct zb_unit *unit, enum zb_front_end end) {
  if (end == ZB_FRONT_REFUTED) {
    unit->fluid_part = unit->fluid_part < 0.5 ? unit->fluid_part * 2 : 1;
  } else {
    unit->fluid_part = unit->fluid_part > least_part ? unit->fluid_part / 3 : unit->fluid_part;
    unit->fluid_work = zb_min(2 * unit->fluid_work, INT64_MAX / 4);
  }
  unit->fluid_left = unit->fluid_work;
}

static void take_end_down(struct zb_unit *unit, enum zb_front_end end) {
  if (end == ZB_FRONT_SOLVED || end == ZB_FRONT_REFUTED) {
    unit->flow_failures = 0;
    return;
  }
  unit->flow_manner = (unit->flow_manner + 1) % MANNERS;
  unit->flow_failures++;
  if (end != ZB_FRONT_MEMORY && unit->flow_failures % MANNERS != 0) return;
  unit->fluid_part /= 2;
  if (unit->fluid_part >= least_dive && end != ZB_FRONT_MEMORY) return;
  unit->fluid_part = first_dive;
  unit->fluid_width *= WIDER;
  if (end == ZB_FRONT_MEMORY) unit->fluid_done = true;
}

static bool prepare(struct zb_unit *unit, const struct zb_known *known) {
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  if (!unit->fluid) {
    unit->fluid = zb_flow_front_create(known->chain, known->objective);
    unit->fluid_width = first_width;
    unit->fluid_part = up ? first_part : first_dive;
    unit->fluid_work = unit->fluid_left = first_work;
    if (!unit->fluid) return false;
  }
  unit->fluid_goal = unit->cost;
  if (unit->fluid_target >= unit->fluid_goal || unit->fluid_target < unit->bound) unit->fluid_open = false;
  return true;
}

static void take_end(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                     enum zb_front_end end, int64_t cost) {
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  unit->fluid_open = false;
  if (up && end == ZB_FRONT_REFUTED) zb_unit_raise_bound(unit, unit->fluid_target + 1, ZB_BY_FLUID_FRONTS);
  if (up && end == ZB_FRONT_SOLVED) {
    zb_unit_raise_bound(unit, cost, ZB_BY_FLUID_FRONTS);
    unit->fluid_done = true;
  }
  if (!up && end == ZB_FRONT_SOLVED) zb_unit_offer(unit, known, worker);
  (up ? take_end_up : take_end_down)(unit, end);
}

void zb_unit_flow(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                  int64_t *left) {
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  if (unit->fluid_done || !zb_flow_front_applies(known->chain, known->objective)) return;
  if (!prepare(unit, known)) {
    unit->fluid_done = true;
    return;
  }
  while (*left > 0 && !unit->fluid_done && unit->bound < unit->cost) {
    enum zb_front_end end = ZB_FRONT_OPEN;
    int64_t cost = 0;
    if (!unit->fluid_open) {
      end = open_fluid(unit, known, worker);
      *left -= 1;
    }
    if (end == ZB_FRONT_OPEN) {
      const int64_t before = zb_flow_front_work(unit->fluid);
      end = zb_flow_front_run(unit->fluid, up ? zb_min(*left, unit->fluid_left) : *left, worker->lattice.halt,
                              &worker->trial, &cost);
      const int64_t spent = zb_flow_front_work(unit->fluid) - before;
      *left -= spent;
      unit->nodes += spent;
      unit->fluid_left -= spent;
    }
    if (end == ZB_FRONT_STOPPED) return;
    if (end == ZB_FRONT_OPEN && !(up && unit->fluid_left <= 0)) return;
    take_end(unit, known, worker, end, cost);
    unit->fluid_goal = unit->cost;
  }
}
