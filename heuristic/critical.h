// critical.h - improves a schedule of any placement by exchanging ops on and beside its critical paths.
#ifndef ZB_CRITICAL_H
#define ZB_CRITICAL_H

#include "solver/model/engine.h"

// The best schedule found from `start`, which must be valid and within the limits, or a copy of `start` where
// that is no worse. It searches by span where the period is asked for, and the period then decides. At most
// about `most_work` ops are timed (a second times some 10^7); same seed, same result, unless the deadline
// cuts it. `good_ns`: a cost at which it may stop, such as a bound. Fails only when memory ends.
enum zb_status zb_critical_improve(const struct zb_problem *problem, const struct zb_schedule *start,
                                   int64_t most_work, int64_t good_ns, struct zb_result *result,
                                   struct zb_error *error);

// The same search, a turn at a time.
struct zb_exchanger;

// `problem` is borrowed. Owned by the caller: zb_exchanger_free. Fails only when memory ends.
enum zb_status zb_exchanger_create(const struct zb_problem *problem, struct zb_exchanger **exchanger,
                                   struct zb_error *error);
void zb_exchanger_free(struct zb_exchanger *exchanger);

// As zb_improver wants it, `exchanger` being the context; work is ops timed. A turn goes on where the last
// one stopped, or begins anew from `best` where that costs less than what it had.
enum zb_status zb_exchanger_improve(void *exchanger, const struct zb_schedule *best, int64_t cost_ns,
                                    int64_t work, struct zb_schedule **found, struct zb_error *error);

#endif
