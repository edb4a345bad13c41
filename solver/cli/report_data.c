// report_data.c - compare, then frontiers, on the profile inside a schedule.
#include "solver/cli/report_data.h"

#include <string.h>

#include "solver/cli/compare.h"
#include "solver/cli/frontier.h"
#include "solver/cli/method.h"
#include "solver/cli/progress.h"
#include "solver/model/number.h"

// The limits that `frontier` would take by itself, in millionths.
enum { FROM = ZB_MILLION / 2, TO = 3 * ZB_MILLION, STEP = ZB_MILLION / 8 };

// `part` of what is left of the time.
static struct zb_deadline deadline_part(const struct zb_deadline *all, double part) {
  if (all->end_ns == INT64_MAX) return *all;
  const int64_t now_ns = zb_clock_ns(), left_ns = zb_max(all->end_ns - now_ns, 0);
  return (struct zb_deadline){now_ns, now_ns + (int64_t)((double)left_ns * part)};
}

// `auto` on every placement that the profile can be derived for.
static enum zb_status sweep(const struct zb_profile *profile, const struct zb_problem *problem,
                            struct zb_progress *progress, struct zb_report_data *data,
                            struct zb_error *error) {
  const struct zb_entry_request request = {.methods = "auto",
                                           .placements = profile->placement == ZB_LIST ? "own" : "all"};
  const int64_t unit_bytes = zb_limit_unit(profile);
  struct zb_entries entries = {0};
  if (unit_bytes == 0) return ZB_OK;
  enum zb_status status = zb_entries_list(profile, &request, &entries, error);
  if (status == ZB_OK)
    status = zb_frontiers_run(&entries, profile, problem, unit_bytes,
                              (struct zb_frontier_range){FROM, TO, STEP}, progress, &data->frontiers, error);
  data->has_frontiers = status == ZB_OK;
  zb_entries_free(&entries);
  return status;
}

enum zb_status zb_report_data_compute(const struct zb_options *options, const struct zb_answer *answer,
                                      int64_t start_ns, struct zb_report_data *data, struct zb_error *error) {
  struct zb_problem problem = zb_method_problem(options, start_ns);
  const struct zb_deadline all = problem.deadline;
  const struct zb_entry_request everything = {.search_everywhere = true};
  struct zb_progress progress;
  problem.objective = answer->objective;
  zb_progress_start(&progress, options, start_ns, &problem);
  problem.deadline = deadline_part(&all, 0.5);
  enum zb_status status =
      zb_compare_run(answer->profile, &problem, &everything, &progress, &data->compare, error);
  data->has_compare = status == ZB_OK;
  problem.deadline = deadline_part(&all, 1.0 / 3.0);
  if (status == ZB_OK) status = sweep(answer->profile, &problem, &progress, data, error);
  zb_progress_end(&progress);
  return status;
}

void zb_report_data_free(struct zb_report_data *data) {
  zb_compare_free(&data->compare);
  zb_frontiers_free(&data->frontiers);
  *data = (struct zb_report_data){0};
}
