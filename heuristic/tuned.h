// tuned.h - list scheduling on a chain, its choices tuned device by device.
#ifndef ZB_TUNED_H
#define ZB_TUNED_H

#include "solver/model/engine.h"

// A local search over what greedy decides alike for all devices. For profiles whose limits the pipe does not
// fit into, where that costs most. It goes on where it stopped for as long as somebody asks.
struct zb_tuner;

// Needs one stage a device and a feasible profile; `problem` is borrowed. Owned by the caller:
// zb_tuner_free. Fails only when memory ends.
enum zb_status zb_tuner_create(const struct zb_problem *problem, struct zb_tuner **tuner,
                               struct zb_error *error);
void zb_tuner_free(struct zb_tuner *tuner);

// As zb_improver wants it, `tuner` being the context; work is ops written and timed. What it finds depends on
// the problem and on the work of all calls so far, unless the deadline cuts it.
enum zb_status zb_tuner_improve(void *tuner, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                                struct zb_schedule **found, struct zb_error *error);

#endif
