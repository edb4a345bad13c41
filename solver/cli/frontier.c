// frontier.c - one limit after another, smallest first; then the open ones again, as long as there is time.
//
// A schedule that fits a limit fits every larger one, and a bound that holds under a limit holds under every
// smaller one. So each solve starts from the best schedule of the smaller limits, schedules are carried up
// and bounds down: costs and bounds never rise with the limit, by construction.
#include "solver/cli/frontier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/cli/entry.h"
#include "solver/cli/method.h"
#include "solver/cli/quantity.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

// What all points share while they are solved. schedule[k] is point k's own, NULL where it has a smaller
// limit's, or where they would take too much memory.
struct sweep {
  const struct zb_engine *engine;
  const struct zb_problem *shared;
  struct zb_profile *profile; // its limits move from point to point
  struct zb_frontier *frontier;
  struct zb_schedule **schedule; // [count]
  bool *ended;                   // [count] by itself, not by its deadline: once more would change nothing
  size_t kept_ops;
  struct zb_progress *progress;
};

static const size_t most_kept_ops = (size_t)1 << 24;

static bool fits(const struct zb_frontier_point *point) {
  return point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
}

// The schedule of a smaller limit, checked there. The bound stays this limit's own.
static void take_over(const struct zb_frontier_point *from, struct zb_frontier_point *point) {
  point->status = ZB_FEASIBLE;
  point->cost_ns = from->cost_ns;
  point->bubble_rate = from->bubble_rate;
  point->work_ns = from->work_ns;
  point->most_bytes = from->most_bytes;
}

static void carry_up(struct zb_frontier *frontier, int from) {
  for (int k = from + 1; k < frontier->count; k++) {
    const struct zb_frontier_point *smaller = &frontier->points[k - 1];
    struct zb_frontier_point *point = &frontier->points[k];
    if (fits(smaller) && (!fits(point) || point->cost_ns > smaller->cost_ns)) take_over(smaller, point);
  }
}

void zb_frontier_settle(struct zb_frontier *frontier) {
  int64_t bound_ns = 0;
  for (int k = frontier->count - 1; k >= 0; k--) {
    struct zb_frontier_point *point = &frontier->points[k];
    if (!fits(point)) continue;
    point->bound_ns = bound_ns = zb_max(bound_ns, point->bound_ns);
    point->status = point->cost_ns == bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE;
    point->gap = zb_ratio(point->cost_ns, bound_ns);
    point->bubble_bound = bound_ns > point->work_ns ? zb_ratio(bound_ns, point->work_ns) : 0.0;
  }
}

// The best schedule of this and the smaller limits; they only get better.
static const struct zb_schedule *best_up_to(const struct sweep *sweep, int index) {
  while (index >= 0 && !sweep->schedule[index]) index--;
  return index >= 0 ? sweep->schedule[index] : NULL;
}

// Takes over the answer's schedule where it is better than what the point has.
static void fill_point(struct sweep *sweep, int index, struct zb_answer *answer) {
  struct zb_frontier_point *point = &sweep->frontier->points[index];
  const bool usable = answer->status == ZB_OPTIMAL || answer->status == ZB_FEASIBLE;
  if (answer->status != ZB_OVER_LIMIT) point->bound_ns = zb_max(point->bound_ns, answer->bound_ns);
  if (fits(point) && (!usable || answer->cost_ns >= point->cost_ns)) return;
  point->status = answer->status;
  if (!answer->schedule) return;
  point->cost_ns = answer->cost_ns;
  point->bubble_rate = answer->bubble_rate;
  point->work_ns = answer->timeline.work_ns;
  point->most_bytes = zb_method_most_bytes(&answer->timeline, NULL);
  if (!usable) return;
  zb_schedule_free(sweep->schedule[index]);
  sweep->schedule[index] = NULL;
  sweep->kept_ops += answer->timeline.ops;
  if (sweep->kept_ops > most_kept_ops) return;
  sweep->schedule[index] = answer->schedule;
  answer->schedule = NULL;
}

// `again`: it has been solved before, in less time.
static enum zb_status solve_point(struct sweep *sweep, int index, int shares, bool again,
                                  struct zb_error *error) {
  struct zb_frontier_point *point = &sweep->frontier->points[index];
  struct zb_problem problem = *sweep->shared;
  struct zb_answer answer = {0};
  char label[ZB_PLACE_TEXT + 2 * ZB_QUANTITY_TEXT], place[ZB_PLACE_TEXT], multiple[ZB_QUANTITY_TEXT];
  const int64_t began_ns = zb_clock_ns();
  enum zb_status status =
      zb_limit_set(point->multiple, sweep->frontier->unit_bytes, sweep->profile, &point->limit_bytes, error);
  if (status == ZB_OK) status = zb_profile_finish(sweep->profile, error);
  if (status != ZB_OK) return status;
  problem.profile = sweep->profile;
  problem.deadline = zb_method_deadline(&sweep->shared->deadline, shares);
  problem.resumed = again && sweep->kept_ops <= most_kept_ops;
  point->bound_ns = zb_max(point->bound_ns, zb_bound_closed_form(problem.profile, problem.objective));
  // Out of time: a smaller limit's schedule does.
  if (fits(point) && zb_deadline_passed(&problem.deadline)) return ZB_OK;
  snprintf(label, sizeof label, "%s %s",
           zb_place_text(sweep->frontier->placement, sweep->frontier->chunks, place),
           zb_multiple_text(point->multiple, multiple));
  zb_progress_label(sweep->progress, label);
  status = zb_method_run(sweep->engine, &problem, best_up_to(sweep, index), &answer, error);
  zb_progress_label(sweep->progress, NULL);
  if (status != ZB_OK) return status;
  sweep->ended[index] = !zb_deadline_passed(&problem.deadline);
  fill_point(sweep, index, &answer);
  zb_answer_free(&answer);
  point->seconds += (double)(zb_clock_ns() - began_ns) * 1e-9;
  if (fits(point) && problem.progress)
    problem.progress(problem.progress_context, zb_status_word(point->status), point->cost_ns,
                     point->bound_ns);
  return ZB_OK;
}

static enum zb_status solve_all(struct sweep *sweep, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  struct zb_frontier *frontier = sweep->frontier;
  for (int k = 0; k < frontier->count && status == ZB_OK; k++) {
    if (k > 0 && fits(&frontier->points[k - 1])) take_over(&frontier->points[k - 1], &frontier->points[k]);
    status = solve_point(sweep, k, frontier->count - k, false, error);
  }
  zb_frontier_settle(frontier);
  return status;
}

static bool is_open(const struct sweep *sweep, int index) {
  return sweep->frontier->points[index].status == ZB_FEASIBLE && !sweep->ended[index];
}

static int open_points(const struct sweep *sweep, int from) {
  int open = 0;
  for (int k = from; k < sweep->frontier->count; k++) open += is_open(sweep, k);
  return open;
}

// Points that closed early leave their time to those that did not.
static enum zb_status solve_open(struct sweep *sweep, struct zb_error *error) {
  enum { ROUNDS = 3 };
  struct zb_frontier *frontier = sweep->frontier;
  const struct zb_deadline *deadline = &sweep->shared->deadline;
  if (zb_engine_part_of(sweep->engine) == ZB_PART_HEURISTIC || deadline->end_ns == INT64_MAX) return ZB_OK;
  enum zb_status status = ZB_OK;
  for (int round = 0; round < ROUNDS; round++)
    for (int k = 0; k < frontier->count && status == ZB_OK; k++) {
      if (zb_deadline_passed(deadline)) return ZB_OK;
      if (!is_open(sweep, k)) continue;
      status = solve_point(sweep, k, open_points(sweep, k), true, error);
      carry_up(frontier, k);
      zb_frontier_settle(frontier);
    }
  return status;
}

enum zb_status zb_frontier_run(const struct zb_engine *engine, const struct zb_profile *profile,
                               const struct zb_problem *problem, int64_t unit_bytes, int64_t from, int64_t to,
                               int64_t step, struct zb_progress *progress, struct zb_frontier *frontier,
                               struct zb_error *error) {
  struct zb_frontier f = {.method = engine->name, .devices = profile->devices, .unit_bytes = unit_bytes};
  struct zb_profile *limited = NULL;
  f.microbatches = profile->microbatches;
  f.placement = profile->placement;
  f.chunks = profile->chunks;
  f.comm_count = zb_method_comm_count(profile);
  f.objective = problem->objective;
  f.count = (int)((to - from) / step) + 1;
  f.points = calloc((size_t)f.count, sizeof *f.points);
  if (profile->name) f.name = strdup(profile->name);
  enum zb_status status = f.points && (f.name || !profile->name) ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = zb_profile_copy(profile, &limited, error);
  if (status == ZB_OK) {
    for (int k = 0; k < f.count; k++) f.points[k].multiple = from + k * step;
    struct sweep sweep = {.engine = engine, .shared = problem, .profile = limited, .frontier = &f};
    sweep.progress = progress;
    const size_t count = f.count > 0 ? (size_t)f.count : 0;
    sweep.schedule = calloc(count, sizeof *sweep.schedule);
    sweep.ended = calloc(count, sizeof *sweep.ended);
    status = sweep.schedule && sweep.ended ? solve_all(&sweep, error) : zb_fail_memory(error);
    if (status == ZB_OK) status = solve_open(&sweep, error);
    for (int k = 0; sweep.schedule && k < f.count; k++) zb_schedule_free(sweep.schedule[k]);
    free(sweep.schedule);
    free(sweep.ended);
  }
  zb_profile_free(limited);
  if (status != ZB_OK) {
    zb_frontier_free(&f);
    return status;
  }
  *frontier = f;
  return ZB_OK;
}
