// unit_front.c - layers of partial schedules: below the cost, ever wider, and from the bound upwards.
//
// A narrow front finds schedules soon; one that nothing had to be left out of finds the best there is, or
// proves that there is none below the cost. Which width that takes is not known before, so it grows by
// factors: all tries together cost little more than the last. The further a target is below the optimum, the
// smaller are the layers that refute it: so a second unit raises the bound, by targets a part of the way to
// the cost, a larger part after each that is refuted and a smaller one, with more work, after each that is
// given up.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

static const size_t first_width = 128, most_width = (size_t)1 << 22;
enum { WIDER = 8 };

// What expanding a partial schedule counts for, in states swept, on each device.
static const int64_t states_a_device = 16;

// From the bound: of the gap, to where the first target is, and the work that it is given.
static const double first_part = 0.125, least_part = 1e-4;
static const int64_t first_work = 200000;

static enum zb_front_end open_front(struct zb_unit *unit, const struct zb_known *known,
                                    struct zb_worker *worker) {
  const int64_t gap = unit->cost - 1 - unit->bound;
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  const int64_t target = up ? unit->bound + (int64_t)((double)gap * unit->front_part) : unit->cost - 1;
  unit->front_open = true;
  unit->front_target = target;
  const enum zb_front_end end = zb_unit_aim_front(&worker->state, known, target);
  if (end != ZB_FRONT_OPEN) return end;
  return zb_front_begin(unit->front, &worker->state, up ? most_width : unit->front_width);
}

static void take_end_from_bound(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                                enum zb_front_end end) {
  switch (end) {
  case ZB_FRONT_SOLVED:
    zb_unit_offer(unit, known, worker);
    if (zb_front_whole(unit->front))
      zb_unit_raise_bound(unit, zb_min(unit->cost, unit->front_target + 1), ZB_BY_FRONTS);
    break;
  case ZB_FRONT_REFUTED:
    zb_unit_raise_bound(unit, unit->front_target + 1, ZB_BY_FRONTS);
    unit->front_part = unit->front_part < 0.5 ? unit->front_part * 2 : 1;
    break;
  default:
    unit->front_part = unit->front_part > least_part ? unit->front_part / 3 : unit->front_part;
    unit->front_work = zb_min(2 * unit->front_work, INT64_MAX / 4);
  }
  unit->front_left = unit->front_work;
}

static void take_end_below_cost(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                                enum zb_front_end end) {
  const bool whole = zb_front_whole(unit->front), proves = zb_front_proves(known->chain, known->objective);
  const int64_t before = unit->cost;
  switch (end) {
  case ZB_FRONT_SOLVED:
    zb_unit_offer(unit, known, worker);
    if (whole && proves && unit->cost < before) zb_unit_raise_bound(unit, unit->cost, ZB_BY_FRONTS);
    if (unit->cost == before) unit->front_done = true; // only what it leaves out would be new
    break;
  case ZB_FRONT_REFUTED:
    if (proves) zb_unit_raise_bound(unit, unit->front_target + 1, ZB_BY_FRONTS);
    unit->front_done = !proves;
    break;
  case ZB_FRONT_MEMORY:
    // The widest that there is room for was the one before.
    unit->front_most = unit->front_width / WIDER;
    unit->front_width = unit->front_most;
    unit->front_done = true;
    break;
  default:
    if (unit->front_width >= unit->front_most) unit->front_done = true;
    unit->front_width *= WIDER;
    if (unit->front_width > unit->front_most) unit->front_width = unit->front_most;
  }
}

static bool prepare(struct zb_unit *unit, const struct zb_known *known) {
  if (!unit->front) {
    unit->front = zb_front_create(known->chain, known->objective);
    unit->front_most = most_width;
    unit->front_width = first_width;
    unit->front_part = first_part;
    unit->front_work = unit->front_left = first_work;
  }
  // What was left out below another cost may be what is found now: only a whole front goes on.
  if (unit->front_open && unit->front_target >= unit->cost && !zb_front_whole(unit->front))
    unit->front_open = false;
  if (unit->front_open && unit->front_target < unit->bound) unit->front_open = false;
  return unit->front != NULL;
}

void zb_unit_front(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  const bool up = unit->kind == ZB_UNIT_FRONT_UP;
  if (unit->work == 0 || known->cost == ZB_NO_COST) return;
  if (!(up ? zb_front_proves : zb_front_applies)(known->chain, known->objective)) return;
  const int64_t states_a_node = states_a_device * known->chain->devices;
  int64_t left = unit->work / states_a_node;
  if (!prepare(unit, known)) {
    unit->status = ZB_FAILED;
    return;
  }
  while (left > 0 && !unit->front_done && unit->bound < unit->cost) {
    enum zb_front_end end = ZB_FRONT_OPEN;
    if (!unit->front_open) {
      const int64_t swept = worker->lattice.work;
      end = open_front(unit, known, worker);
      left -= (worker->lattice.work - swept) / states_a_node + 1;
    }
    if (end == ZB_FRONT_OPEN) {
      const int64_t before = zb_front_work(unit->front);
      end = zb_front_run(unit->front, up ? zb_min(left, unit->front_left) : left, worker->lattice.halt,
                         &worker->trial);
      const int64_t spent = zb_front_work(unit->front) - before;
      left -= spent;
      unit->nodes += spent;
      unit->front_left -= spent;
    }
    if (end == ZB_FRONT_STOPPED) return;
    if (end == ZB_FRONT_OPEN && !(up && unit->front_left <= 0)) return;
    unit->front_open = false;
    (up ? take_end_from_bound : take_end_below_cost)(unit, known, worker, end);
  }
}
