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

#endif
