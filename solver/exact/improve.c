// improve.c - an improver's turn in a round.
//
// It gets schedules and answers with schedules: what it does in between is its own affair, and the search
// believes only what its own timer says of the orders.
#include "solver/exact/unit.h"

#include "solver/model/number.h"

// States swept in the time in which an op is placed: those of large tables take longer.
static const int64_t states_an_op = 4, fluid_states_an_op = 1;

void zb_unit_improve(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker) {
  struct zb_schedule *best = NULL, *found = NULL;
  int64_t cost_ns;
  if (known->cost == ZB_NO_COST || zb_halted(&unit->halt)) return;
  unit->status = zb_timer_cost(&worker->timer, known->objective, known->best, &cost_ns, &best, NULL);
  if (unit->status == ZB_OK) {
    const struct zb_improver *improver = unit->improver;
    const struct zb_chunked *chunked = known->chain->chunked;
    const int64_t work = unit->work / (chunked && chunked->fluid ? fluid_states_an_op : states_an_op);
    unit->status = improver->improve(improver->context, best, cost_ns, work, &found, NULL);
  }
  if (unit->status == ZB_OK && found) {
    zb_orders_from_schedule(known->chain, found, &worker->trial);
    zb_unit_offer(unit, known, worker);
  }
  zb_schedule_free(found);
  zb_schedule_free(best);
}
