// check.h - is this order a schedule of the profile at all, and does it fit?
//
// What zbsolve itself trusts before it writes anything. tests/zbcheck.c answers the same question
// without sharing a line with it.
#ifndef ZB_CHECK_H
#define ZB_CHECK_H

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// Every op once, on its device, every (stage, microbatch) with F and either B and W or BW, in an
// order that finishes, within every device's limit. Fills `timeline` (as zb_timeline_compute, period
// included). WRONG names device, position and op; OVER_LIMIT names device, peak and limit and still
// leaves the timeline filled.
enum zb_status zb_check_schedule(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                 struct zb_timeline *timeline, struct zb_error *error);

#endif
