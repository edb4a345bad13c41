// in_flight.h - a schedule for any placement, for profiles that no named family is made for.
#ifndef ZB_IN_FLIGHT_H
#define ZB_IN_FLIGHT_H

#include "solver/model/engine.h"

// The best order of a few list schedules that keep at most k microbatches unfinished, over several k that the
// limits allow; where not even one fits that way, one microbatch at a time with fused backwards. Needs a
// profile that is feasible (zb_result_if_infeasible). Fails only when memory ends.
enum zb_status zb_in_flight_solve(const struct zb_problem *problem, struct zb_result *result,
                                  struct zb_error *error);

#endif
