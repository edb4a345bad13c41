// unit_front.c - layers of partial schedules below the cost, each try wider than the one before.
//
// A narrow front finds schedules soon; one that nothing had to be left out of finds the best there is, or
// proves that there is none below the cost. Which width that takes is not known before, so it grows by
// factors: all tries together cost little more than the last.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

static const size_t first_width = 128, most_width = (size_t)1 << 22;
enum { WIDER = 8 };

// What expanding a partial schedule counts for, in states swept.
static const int64_t states_a_node = 512;

static void close_front(struct zb_unit *unit) { unit->front_open = false; }

static enum zb_front_end open_front(struct zb_unit *unit, const struct zb_known *known,
                                    struct zb_worker *worker) {
  switch (zb_unit_aim(&worker->state, known, unit->cost - 1)) {
  case ZB_TREE_OPEN:
    break;
  case ZB_TREE_REFUTED:
    return ZB_FRONT_REFUTED;
  case ZB_TREE_STOPPED:
    return ZB_FRONT_STOPPED;
  default:
    return ZB_FRONT_MEMORY;
  }
  if (!unit->front) unit->front = zb_front_create(known->chain, known->objective);
  if (!unit->front) return ZB_FRONT_MEMORY;
  if (unit->front_width == 0) unit->front_width = first_width;
  const enum zb_front_end end = zb_front_begin(unit->front, &worker->state, unit->front_width);
  unit->front_open = end == ZB_FRONT_OPEN;
  return end;
}

// Nothing below `bound` meets; the search that says so can be redone.
static void raise_bound(struct zb_unit *unit, int64_t bound) {
  if (bound <= unit->bound) return;
  unit->bound = bound;
  zb_proof_free(&unit->proof);
  unit->proof.fronts = true;
}

// Returns whether to go on.
static bool take_end(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                     enum zb_front_end end, int64_t target) {
  const bool whole = zb_front_whole(unit->front), proves = zb_front_proves(known->chain, known->objective);
  const int64_t before = unit->cost;
  switch (end) {
  case ZB_FRONT_SOLVED:
    zb_unit_offer(unit, known, worker);
    if (whole && proves && unit->cost < before) raise_bound(unit, unit->cost);
    if (unit->cost == before) unit->front_done = true; // only what it leaves out would be new
    return unit->cost < before;
  case ZB_FRONT_REFUTED:
    if (proves)
      raise_bound(unit, target + 1);
    else
      unit->front_done = true;
    return false;
  case ZB_FRONT_BARREN:
    if (unit->front_width >= unit->front_most) unit->front_done = true;
    unit->front_width *= WIDER;
    if (unit->front_width > unit->front_most) unit->front_width = unit->front_most;
    return true;
  case ZB_FRONT_MEMORY:
    // The widest that there is room for was the one before.
    unit->front_most = unit->front_width / WIDER;
    unit->front_width = unit->front_most;
    unit->front_done = unit->front_most < first_width;
    return true;
  default:
    return false;
  }
}

void zb_unit_front(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  if (known->cost == ZB_NO_COST || !zb_front_applies(known->chain, known->objective)) return;
  if (unit->front_most == 0) unit->front_most = most_width;
  // What was left out below another cost may be what is found now: only a whole front goes on.
  if (unit->front_open && !zb_front_whole(unit->front) && zb_front_target(unit->front) >= unit->cost) {
    close_front(unit);
    unit->front_done = false;
  }
  int64_t left = unit->work / states_a_node;
  while (left > 0 && !unit->front_done && unit->bound < unit->cost) {
    enum zb_front_end end = ZB_FRONT_OPEN;
    if (!unit->front_open) {
      const int64_t swept = worker->lattice.work;
      end = open_front(unit, known, worker);
      left -= (worker->lattice.work - swept) / states_a_node;
      if (!unit->front) {
        unit->status = end == ZB_FRONT_MEMORY ? ZB_FAILED : ZB_OK;
        return;
      }
    }
    const int64_t before = zb_front_work(unit->front);
    if (end == ZB_FRONT_OPEN) {
      end = zb_front_run(unit->front, left, worker->lattice.halt, &worker->trial);
      left -= zb_front_work(unit->front) - before;
      unit->nodes += zb_front_work(unit->front) - before;
    }
    if (end == ZB_FRONT_OPEN) return;
    close_front(unit);
    if (!take_end(unit, known, worker, end, zb_front_target(unit->front))) return;
  }
}
