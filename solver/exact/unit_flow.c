// unit_flow.c - layers over orders of F and B: with fluid W from the bound up, with whole W below the cost.
//
// From the bound up a target is a part of the way to the cost, a larger part after each that is refuted and a
// smaller one after each that is given up; the smallest is not. Work grows about exponentially with targets:
// once two have been refuted, they say which target is likely to take a few times what the last one took. The
// least cost with fluid W, once found, ends it: no bound of this kind is higher. Below the cost layers are
// narrow at first, and twice as wide each time that W have been placed in every manner; the part of the way
// to the bound that a target lies down follows from what is found and what is not.
#include "solver/exact/unit.h"

#include <math.h>

#include "solver/model/number.h"

static const size_t first_width = 8, all = SIZE_MAX;

// What expanding a partial schedule counts for, in states swept, on each device.
static const int64_t states_a_device = 32;

static const double first_part = 0.125, least_part = 1e-4;
static const int64_t first_work = 20000;

// Work of a target over that of the last refuted one: as it is meant to be, and when it is given up. How much
// farther than the last step one may go for that, and the least work that says how it grows.
static const double growth = 2.5, most_steps = 4;
static const int64_t most_growth = 5, least_told = 1000;

// Below the cost: the part to begin with, what follows a success and a failure, and its limits.
static const double first_dive = 0.25, after_success = 1.5, after_failure = 0.7, most_dive = 0.5,
                    least_dive = 0.02;

static const struct zb_flow_weights fluid = {.fluid = true};

// Below the cost, in turn: no one is best everywhere.
static const struct zb_flow_weights manner[] = {
    {.nearly = 4, .many = 4}, {.nearly = 2, .many = 3}, {.nearly = 100, .many = 4}, {.nearly = 4, .many = 1}};
enum { MANNERS = sizeof manner / sizeof *manner };

static enum zb_front_end open_flow(struct zb_unit *unit, const struct zb_known *known,
                                   struct zb_worker *worker) {
  const bool up = unit->kind == ZB_UNIT_FLOW_UP;
  const int64_t most = unit->cost - 1, gap = most - unit->bound;
  const int64_t way = (int64_t)((double)gap * unit->flow_part);
  unit->flow_open = true;
  unit->flow_target = up ? unit->bound + way : most - way;
  const enum zb_front_end end = zb_unit_aim_front(&worker->state, known, unit->flow_target);
  if (end != ZB_FRONT_OPEN) return end;
  return zb_flow_front_begin(unit->flow, &worker->state, up ? fluid : manner[unit->flow_manner],
                             up ? all : unit->flow_width);
}

// Whether no easier target is left: then one goes on.
static bool is_lowest(const struct zb_unit *unit) {
  return unit->flow_target <= unit->bound || unit->flow_part <= least_part;
}

// How far the next target lies from the last refuted one for work to be `growth` times as much, by that one
// and the one before; 0: they do not say.
static int64_t predict_step(const struct zb_unit *unit, int64_t took) {
  if (unit->flow_refuted == 0 || took <= unit->flow_took || unit->flow_took < least_told) return 0;
  const double far = (double)(unit->flow_target - unit->flow_refuted);
  return (int64_t)(far * fmin(log(growth) / log((double)took / (double)unit->flow_took), most_steps));
}

static void take_refuted(struct zb_unit *unit) {
  const int64_t took = zb_flow_front_work(unit->flow), step = predict_step(unit, took);
  // By two ticks at least.
  const double gap = (double)(unit->cost - unit->bound), least = gap > 2 ? 2 / gap : 1;
  const double part = step > 0 ? (double)step / gap : 2 * unit->flow_part;
  unit->flow_part = fmax(fmin(part, 1), least);
  if (took < INT64_MAX / most_growth) unit->flow_work = zb_max(unit->flow_work, most_growth * took);
  unit->flow_refuted = unit->flow_target;
  unit->flow_took = took;
}

static void take_end_up(struct zb_unit *unit, enum zb_front_end end) {
  unit->flow_rises = end == ZB_FRONT_REFUTED;
  if (end == ZB_FRONT_REFUTED) {
    take_refuted(unit);
  } else {
    unit->flow_part /= 3;
    unit->flow_work *= unit->flow_work < INT64_MAX / 4 ? 2 : 1;
  }
  unit->flow_left = unit->flow_work;
}

static void take_end_down(struct zb_unit *unit, enum zb_front_end end) {
  if (end == ZB_FRONT_MEMORY) unit->flow_done = true;
  unit->flow_part = end == ZB_FRONT_SOLVED ? fmin(unit->flow_part * after_success, most_dive)
                                           : fmax(unit->flow_part * after_failure, least_dive);
  unit->flow_manner = (unit->flow_manner + 1) % MANNERS;
  if (unit->flow_manner == 0 && unit->flow_width <= SIZE_MAX / 2) unit->flow_width *= 2;
}

static bool prepare(struct zb_unit *unit, const struct zb_known *known) {
  const bool up = unit->kind == ZB_UNIT_FLOW_UP;
  // Windows of large devices are relaxed themselves; what they leave is far too much.
  if (up && known->chain->chunked && known->chain->chunked->fluid) return false;
  if (!unit->flow) {
    unit->flow = zb_flow_front_create(known->chain, known->objective);
    unit->flow_width = first_width;
    unit->flow_part = up ? first_part : first_dive;
    unit->flow_work = unit->flow_left = first_work;
    if (!unit->flow) return false;
  }
  if (unit->flow_target >= unit->cost || unit->flow_target < unit->bound) unit->flow_open = false;
  return true;
}

static void take_end(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                     enum zb_front_end end, int64_t cost) {
  const bool up = unit->kind == ZB_UNIT_FLOW_UP;
  unit->flow_open = false;
  if (up && end == ZB_FRONT_REFUTED) zb_unit_raise_bound(unit, unit->flow_target + 1, ZB_BY_FLUID_FRONTS);
  if (up && end == ZB_FRONT_SOLVED) {
    zb_unit_raise_bound(unit, cost, ZB_BY_FLUID_FRONTS);
    unit->flow_done = true;
  }
  if (!up && end == ZB_FRONT_SOLVED) zb_unit_offer(unit, known, worker);
  (up ? take_end_up : take_end_down)(unit, end);
}

void zb_unit_flow(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const bool up = unit->kind == ZB_UNIT_FLOW_UP;
  int64_t left = unit->work / (states_a_device * known->chain->devices);
  if (unit->flow_done || known->cost == ZB_NO_COST || !zb_flow_front_applies(known->chain, known->objective))
    return;
  if (!prepare(unit, known)) {
    unit->flow_done = true;
    return;
  }
  while (left > 0 && !unit->flow_done && unit->bound < unit->cost) {
    enum zb_front_end end = ZB_FRONT_OPEN;
    int64_t cost = 0;
    if (!unit->flow_open) {
      end = open_flow(unit, known, worker);
      left -= 1;
    }
    if (end == ZB_FRONT_OPEN) {
      const int64_t before = zb_flow_front_work(unit->flow);
      end = zb_flow_front_run(unit->flow, up ? zb_min(left, unit->flow_left) : left, worker->lattice.halt,
                              &worker->trial, &cost);
      const int64_t spent = zb_flow_front_work(unit->flow) - before;
      left -= spent;
      unit->nodes += spent;
      unit->flow_left -= spent;
    }
    if (end == ZB_FRONT_STOPPED) return;
    if (end == ZB_FRONT_OPEN && !(up && unit->flow_left <= 0)) return;
    if (end == ZB_FRONT_OPEN && is_lowest(unit))
      unit->flow_left = unit->flow_work;
    else
      take_end(unit, known, worker, end, cost);
  }
}
