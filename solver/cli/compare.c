// compare.c - runs the methods and puts their results side by side.
//
// Methods that share a placement solve the same profile, so whatever one of them proves bounds all of them: a
// row's bound is the largest of its placement, and its status follows from that.
#include "solver/cli/compare.h"

#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/model/number.h"

// By default searches get no more than this part of the time: a comparison is not worth waiting for the last
// proof. Named ones share all of it.
enum { WINDOW_PART = 6, ILP_PART = 15 };

static struct zb_deadline method_deadline(const struct zb_problem *problem, const struct zb_engine *engine,
                                          bool named, int shares) {
  struct zb_deadline deadline = zb_method_deadline(&problem->deadline, shares);
  const enum zb_engine_part part = zb_engine_part_of(engine);
  if (named || deadline.end_ns == INT64_MAX || (part != ZB_PART_SEARCH && part != ZB_PART_ALONE))
    return deadline;
  const int64_t all_ns = problem->deadline.end_ns - problem->deadline.start_ns;
  const int64_t end_ns = zb_clock_ns() + all_ns / (part == ZB_PART_SEARCH ? WINDOW_PART : ILP_PART);
  deadline.end_ns = zb_min(end_ns, problem->deadline.end_ns);
  return deadline;
}

// The methods to run, in the order of `names`, or of the table.
static enum zb_status list_methods(const char *names, const struct zb_engine **engines, int *count,
                                   struct zb_error *error) {
  *count = 0;
  if (!names) {
    for (int k = 0; k < zb_engine_count(); k++)
      if (zb_engine_part_at(k) != ZB_PART_WHOLE && zb_engine_available(zb_engine_at(k)))
        engines[(*count)++] = zb_engine_at(k);
    return ZB_OK;
  }
  for (const char *name = names;; name++) {
    size_t length = strcspn(name, ",");
    const struct zb_engine *engine;
    enum zb_status status = zb_engine_find(name, length, &engine, error);
    if (status != ZB_OK) return status;
    for (int k = 0; k < *count; k++)
      if (engines[k] == engine)
        return zb_fail(error, ZB_BAD_INPUT, "--methods: %s is listed twice", engine->name);
    engines[(*count)++] = engine;
    name += length;
    if (!*name) return ZB_OK;
  }
}

static enum zb_status fill_row(const struct zb_answer *answer, struct zb_compare_row *row,
                               struct zb_error *error) {
  row->status = answer->status;
  row->placement = answer->profile->placement;
  row->chunks = answer->profile->chunks;
  row->comm_count = zb_method_comm_count(answer->profile);
  if (answer->status != ZB_OVER_LIMIT && answer->status != ZB_INFEASIBLE) row->bound_ns = answer->bound_ns;
  if (!answer->schedule) return ZB_OK;
  const struct zb_timeline *timeline = &answer->timeline;
  size_t bytes = (size_t)answer->profile->devices * sizeof *row->peak_bytes;
  row->peak_bytes = malloc(bytes);
  if (!row->peak_bytes) return zb_fail_memory(error);
  memcpy(row->peak_bytes, timeline->peak_bytes, bytes);
  row->most_bytes = zb_method_most_bytes(timeline, NULL);
  row->cost_ns = answer->cost_ns;
  row->bubble_rate = answer->bubble_rate;
  row->span_ns = timeline->span_ns;
  row->makespan_ns = timeline->makespan_ns;
  row->period_ns = timeline->period_ns;
  return ZB_OK;
}

static void fill_unknown(const struct zb_profile *placed, struct zb_compare_row *row) {
  row->status = ZB_UNKNOWN;
  row->placement = placed->placement;
  row->chunks = placed->chunks;
  row->comm_count = zb_method_comm_count(placed);
}

// Fills the method's row; with `too_late` without running it.
static enum zb_status run_method(const struct zb_engine *engine, const struct zb_profile *profile,
                                 const struct zb_problem *shared, int64_t chunks, bool too_late,
                                 struct zb_compare_row *row, struct zb_reason *reason,
                                 struct zb_error *error) {
  struct zb_problem problem = *shared;
  struct zb_profile *placed = NULL;
  struct zb_answer answer = {0};
  int64_t began_ns = zb_clock_ns();
  row->method = engine->name;
  row->heuristic = zb_engine_part_of(engine) == ZB_PART_HEURISTIC;
  enum zb_status status =
      zb_method_place(engine, profile, engine->need == ZB_NEED_LOOP ? chunks : 0, &placed, error);
  if (status == ZB_OK && too_late) {
    fill_unknown(placed, row);
  } else if (status == ZB_OK) {
    problem.profile = placed;
    status = zb_method_run(engine, &problem, NULL, &answer, error);
    if (status == ZB_OK) status = fill_row(&answer, row, error);
    if (status == ZB_OK && answer.status == ZB_INFEASIBLE) *reason = answer.reason;
    if (status == ZB_OK && problem.progress && answer.schedule)
      problem.progress(problem.progress_context, zb_status_word(row->status), row->cost_ns, row->bound_ns);
    row->seconds = (double)(zb_clock_ns() - began_ns) * 1e-9;
  }
  zb_answer_free(&answer);
  zb_profile_free(placed);
  return status;
}

static bool same_placement(const struct zb_compare_row *a, const struct zb_compare_row *b) {
  return a->placement == b->placement && a->chunks == b->chunks;
}

static void share_bounds(struct zb_compare *compare) {
  for (int k = 0; k < compare->count; k++) {
    struct zb_compare_row *row = &compare->rows[k];
    if (row->status != ZB_FEASIBLE && row->status != ZB_OPTIMAL) continue;
    for (int other = 0; other < compare->count; other++)
      if (same_placement(row, &compare->rows[other]))
        row->bound_ns = zb_max(row->bound_ns, compare->rows[other].bound_ns);
    row->status = row->cost_ns == row->bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE;
    row->gap = zb_ratio(row->cost_ns, row->bound_ns);
  }
}

static int rank(const struct zb_compare_row *row) {
  if (row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE) return 0;
  return row->status == ZB_OVER_LIMIT ? 1 : 2;
}

// What fits comes first, cheaper before dearer, and of equal costs the one that needs less memory.
static bool comes_before(const struct zb_compare_row *a, const struct zb_compare_row *b) {
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a->cost_ns != b->cost_ns) return a->cost_ns < b->cost_ns;
  return a->most_bytes < b->most_bytes;
}

// By insertion: a handful of rows, and equal ones keep the table's order.
static void sort_rows(struct zb_compare *compare) {
  for (int k = 1; k < compare->count; k++) {
    struct zb_compare_row row = compare->rows[k];
    int place = k;
    for (; place > 0 && comes_before(&row, &compare->rows[place - 1]); place--)
      compare->rows[place] = compare->rows[place - 1];
    compare->rows[place] = row;
  }
  compare->best = compare->count > 0 && rank(&compare->rows[0]) == 0 ? 0 : -1;
}

static enum zb_status attribute_best(const struct zb_profile *profile, const struct zb_problem *problem,
                                     int64_t chunks, struct zb_compare *compare, struct zb_error *error) {
  if (compare->best < 0) return ZB_OK;
  const struct zb_compare_row *best = &compare->rows[compare->best];
  const struct zb_engine *engine;
  struct zb_profile *placed = NULL;
  enum zb_status status = zb_engine_find(best->method, strlen(best->method), &engine, error);
  if (status == ZB_OK)
    status = zb_method_place(engine, profile, engine->need == ZB_NEED_LOOP ? chunks : 0, &placed, error);
  if (status == ZB_OK) status = zb_compare_attribute(placed, problem, compare, error);
  zb_profile_free(placed);
  return status;
}

enum zb_status zb_compare_run(const struct zb_profile *profile, const struct zb_problem *problem,
                              const char *names, int64_t chunks, struct zb_progress *progress,
                              struct zb_compare *compare, struct zb_error *error) {
  struct zb_compare c = {.devices = profile->devices, .microbatches = profile->microbatches, .best = -1};
  c.objective = problem->objective;
  c.has_memory = profile->has_memory;
  const struct zb_engine **engines = malloc((size_t)zb_engine_count() * sizeof(struct zb_engine *));
  c.rows = calloc((size_t)zb_engine_count(), sizeof *c.rows);
  if (profile->name) c.name = strdup(profile->name);
  enum zb_status status = engines && c.rows && (c.name || !profile->name) ? ZB_OK : zb_fail_memory(error);
  int methods = 0;
  if (status == ZB_OK) status = list_methods(names, engines, &methods, error);
  for (int k = 0; k < methods && status == ZB_OK; k++) {
    struct zb_problem part = *problem;
    // One share is for the causes.
    part.deadline = method_deadline(problem, engines[k], names != NULL, methods - k + 1);
    zb_progress_label(progress, engines[k]->name);
    bool too_late = k > 0 && zb_deadline_passed(&problem->deadline);
    status = run_method(engines[k], profile, &part, chunks, too_late, &c.rows[k], &c.reason, error);
    c.count = k + 1;
  }
  zb_progress_label(progress, NULL);
  if (status == ZB_OK) {
    share_bounds(&c);
    sort_rows(&c);
    status = attribute_best(profile, problem, chunks, &c, error);
  }
  if (status == ZB_OK) status = zb_compare_judge(&c, error);
  if (status == ZB_OK)
    *compare = c;
  else
    zb_compare_free(&c);
  free(engines);
  return status;
}
