// cause.h - what keeps a profile's schedules from being faster.
#ifndef ZB_CAUSE_H
#define ZB_CAUSE_H

#include "solver/model/engine.h"
#include "solver/model/report.h"

// Below this a saving is noise of the heuristics, not a cause.
#define ZB_NOTABLE_SAVING 0.005

// Tries what would make `placed` faster, one cause after the other, and fills *binds (zeroed by the caller).
// What the problem's deadline cuts off stays unknown.
enum zb_status zb_attribute(const struct zb_profile *placed, const struct zb_problem *problem,
                            struct zb_attribution *binds, struct zb_error *error);

#endif
