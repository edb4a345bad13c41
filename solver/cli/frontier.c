// frontier.c - one limit after another, smallest first.
//
// A schedule that fits a limit fits every larger one, and a bound that holds under a limit holds under every
// smaller one. So the best schedule is carried up (each solve starts from it, and it stands where the solve
// finds nothing better) and the best bound is carried down afterwards: costs and bounds never rise with the
// limit, by construction.
#include "solver/cli/frontier.h"

#include <stdlib.h>
#include <string.h>

#include "solver/cli/method.h"
#include "solver/cli/quantity.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

// The best of the smaller limits: an incumbent for the next solve, and its point.
struct carried {
  struct zb_answer answer;
  const struct zb_frontier_point *point; // NULL: there is none yet
};

static bool fits(enum zb_status status) { return status == ZB_OPTIMAL || status == ZB_FEASIBLE; }

static void fill_point(const struct zb_answer *answer, struct zb_frontier_point *point) {
  point->status = answer->status;
  if (answer->status != ZB_OVER_LIMIT) point->bound_ns = answer->bound_ns;
  if (!answer->schedule) return;
  point->cost_ns = answer->cost_ns;
  point->bubble_rate = answer->bubble_rate;
  point->most_bytes = zb_method_most_bytes(&answer->timeline, NULL);
}

// The carried schedule at this limit. It was checked under a smaller one; only the bound is this limit's own,
// and the status follows when the bounds have been carried down.
static void fill_carried(const struct zb_frontier_point *from, int64_t bound_ns,
                         struct zb_frontier_point *point) {
  point->status = ZB_FEASIBLE;
  point->cost_ns = from->cost_ns;
  point->bubble_rate = from->bubble_rate;
  point->most_bytes = from->most_bytes;
  point->bound_ns = bound_ns;
}

static enum zb_status solve_point(const struct zb_engine *engine, const struct zb_problem *problem,
                                  struct carried *carried, struct zb_frontier_point *point,
                                  struct zb_error *error) {
  struct zb_answer answer = {0};
  int64_t began_ns = zb_clock_ns(), closed_form = zb_bound_closed_form(problem->profile, problem->objective);
  if (carried->point && zb_deadline_passed(&problem->deadline)) {
    fill_carried(carried->point, closed_form, point);
    return ZB_OK;
  }
  enum zb_status status = zb_method_run(engine, problem, carried->answer.schedule, &answer, error);
  if (status != ZB_OK) return status;
  point->seconds = (double)(zb_clock_ns() - began_ns) * 1e-9;
  if (carried->point && (!fits(answer.status) || answer.cost_ns > carried->point->cost_ns)) {
    fill_carried(carried->point, fits(answer.status) ? answer.bound_ns : closed_form, point);
    zb_answer_free(&answer);
    return ZB_OK;
  }
  fill_point(&answer, point);
  if (!fits(answer.status)) {
    zb_answer_free(&answer);
    return ZB_OK;
  }
  if (problem->progress)
    problem->progress(problem->progress_context, zb_status_word(answer.status), answer.cost_ns,
                      answer.bound_ns);
  zb_answer_free(&carried->answer);
  *carried = (struct carried){answer, point};
  return ZB_OK;
}

static void carry_bounds_down(struct zb_frontier *frontier) {
  int64_t bound_ns = 0;
  for (int k = frontier->count - 1; k >= 0; k--) {
    struct zb_frontier_point *point = &frontier->points[k];
    if (!fits(point->status)) continue;
    point->bound_ns = bound_ns = zb_max(bound_ns, point->bound_ns);
    point->status = point->cost_ns == bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE;
    point->gap = zb_ratio(point->cost_ns, bound_ns);
  }
}

// Engines see a profile whose limits move from point to point.
static enum zb_status solve_points(const struct zb_engine *engine, struct zb_profile *profile,
                                   const struct zb_problem *shared, struct zb_progress *progress,
                                   struct zb_frontier *frontier, struct zb_error *error) {
  struct carried carried = {.point = NULL};
  struct zb_problem problem = *shared;
  enum zb_status status = ZB_OK;
  problem.profile = profile;
  for (int k = 0; k < frontier->count && status == ZB_OK; k++) {
    struct zb_frontier_point *point = &frontier->points[k];
    char label[ZB_QUANTITY_TEXT];
    zb_progress_label(progress, zb_multiple_text(point->multiple, label));
    problem.deadline = zb_method_deadline(&shared->deadline, frontier->count - k);
    status = zb_limit_set(point->multiple, frontier->unit_bytes, profile, &point->limit_bytes, error);
    if (status == ZB_OK) status = zb_profile_finish(profile, error);
    if (status == ZB_OK) status = solve_point(engine, &problem, &carried, point, error);
  }
  zb_progress_label(progress, NULL);
  zb_answer_free(&carried.answer);
  return status;
}

enum zb_status zb_frontier_run(const struct zb_engine *engine, const struct zb_profile *profile,
                               const struct zb_problem *problem, int64_t unit_bytes, int64_t from, int64_t to,
                               int64_t step, struct zb_progress *progress, struct zb_frontier *frontier,
                               struct zb_error *error) {
  struct zb_frontier f = {.method = engine->name, .devices = profile->devices, .unit_bytes = unit_bytes};
  struct zb_profile *limited = NULL;
  f.microbatches = profile->microbatches;
  f.objective = problem->objective;
  f.count = (int)((to - from) / step) + 1;
  f.points = calloc((size_t)f.count, sizeof *f.points);
  if (profile->name) f.name = strdup(profile->name);
  enum zb_status status = f.points && (f.name || !profile->name) ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = zb_profile_copy(profile, &limited, error);
  if (status == ZB_OK) {
    for (int k = 0; k < f.count; k++) f.points[k].multiple = from + k * step;
    status = solve_points(engine, limited, problem, progress, &f, error);
  }
  zb_profile_free(limited);
  if (status != ZB_OK) {
    zb_frontier_free(&f);
    return status;
  }
  carry_bounds_down(&f);
  *frontier = f;
  return ZB_OK;
}
