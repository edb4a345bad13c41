// families.c - from a fixed order to a result: what all handcrafted families share.
#include "heuristic/families.h"

enum zb_status zb_family_solve(const struct zb_problem *problem, zb_family_fill *fill,
                               struct zb_result *result, struct zb_error *error) {
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  struct zb_schedule_builder builder;
  enum zb_status status = zb_builder_create(problem->profile, &builder, error);
  if (status != ZB_OK) return status;
  fill(problem->profile, &builder);
  struct zb_schedule *schedule = NULL;
  status = zb_builder_finish(&builder, &schedule, error);
  zb_builder_free(&builder);
  if (status != ZB_OK) return status;
  return zb_result_from_schedule(problem, schedule, result, error);
}
