// start_schedule.h - the schedule that `solve --start` searches on from.
#ifndef ZB_START_SCHEDULE_H
#define ZB_START_SCHEDULE_H

#include "solver/model/engine.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

// Reads the schedule file `path` and checks that its orders are a schedule of the problem's profile, within
// its limits, and one that the objective's bounds are about. *schedule is the caller's. BAD_INPUT says where
// it is not; the numbers of the file do not matter.
enum zb_status zb_start_schedule_read(const char *path, const struct zb_engine *engine,
                                      const struct zb_problem *problem, struct zb_schedule **schedule,
                                      struct zb_error *error);

#endif
