// engine.c - the endings that engines share.
#include "solver/model/engine.h"

#include <stdlib.h>

void zb_result_free(struct zb_result *result) {
  zb_schedule_free(result->schedule);
  free(result->proof);
  *result = (struct zb_result){.status = ZB_UNKNOWN, .cost_ns = INT64_MAX};
}

enum zb_status zb_result_from_schedule(const struct zb_problem *problem, struct zb_schedule *schedule,
                                       struct zb_result *result, struct zb_error *error) {
  const struct zb_profile *profile = problem->profile;
  struct zb_timeline timeline = {0};
  enum zb_status status = zb_timeline_compute(profile, schedule, &timeline, error);
  if (status == ZB_OK && problem->objective == ZB_PERIOD)
    status = zb_timeline_period(profile, schedule, &timeline, error);
  if (status == ZB_OK) {
    *result = (struct zb_result){.status = ZB_FEASIBLE, .schedule = schedule};
    result->cost_ns = zb_timeline_cost(&timeline, problem->objective);
    for (int d = 0; d < profile->devices; d++)
      if (timeline.peak_bytes[d] > profile->limit_bytes[d]) result->status = ZB_OVER_LIMIT;
  } else {
    zb_schedule_free(schedule);
  }
  zb_timeline_free(&timeline);
  return status;
}

bool zb_result_if_infeasible(const struct zb_problem *problem, struct zb_result *result) {
  const struct zb_profile *profile = problem->profile;
  for (int d = 0; d < profile->devices; d++) {
    int64_t least = zb_profile_least_peak(profile, d);
    if (least <= profile->limit_bytes[d]) continue;
    *result = (struct zb_result){.status = ZB_INFEASIBLE, .cost_ns = INT64_MAX};
    result->reason = (struct zb_reason){d, profile->limit_bytes[d], least};
    return true;
  }
  return false;
}
