// tuned.h - list scheduling on a chain, its choices tuned device by device.
#ifndef ZB_TUNED_H
#define ZB_TUNED_H

#include "solver/model/engine.h"

// A local search over what greedy decides alike for all devices. For profiles whose limits the pipe does not
// fit into, where that costs most. Needs one stage a device and a feasible profile; same seed, same result,
// unless the deadline cuts it. Fails only when memory ends.
enum zb_status zb_tuned_solve(const struct zb_problem *problem, struct zb_result *result,
                              struct zb_error *error);

#endif
