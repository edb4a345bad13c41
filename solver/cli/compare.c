// compare.c - runs the methods and puts their results side by side.
//
// Methods that share a placement solve the same profile, so whatever one of them proves bounds all of them: a
// row's bound is the largest of its placement, and its status follows from that.
#include "solver/cli/compare.h"

#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "solver/cli/cause.h"
#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/model/number.h"

// By default searches get no more than this part of the time: a comparison is not worth waiting for the last
// proof. Named ones share all of it.
enum { SEARCH_PART = 6, ILP_PART = 15 };

static struct zb_deadline method_deadline(const struct zb_problem *problem, const struct zb_engine *engine,
                                          bool named, int shares) {
  struct zb_deadline deadline = zb_method_deadline(&problem->deadline, shares);
  const enum zb_engine_part part = zb_engine_part_of(engine);
  if (named || deadline.end_ns == INT64_MAX || part == ZB_PART_HEURISTIC) return deadline;
  const int64_t all_ns = problem->deadline.end_ns - problem->deadline.start_ns;
  const int64_t end_ns = zb_clock_ns() + all_ns / (part == ZB_PART_ALONE ? ILP_PART : SEARCH_PART);
  deadline.end_ns = zb_min(end_ns, problem->deadline.end_ns);
  return deadline;
}

// What is known of a row before anything runs.
static enum zb_status begin_row(const struct zb_entry *entry, const struct zb_profile *placed,
                                struct zb_compare_row *row, struct zb_error *error) {
  row->method = entry->engine->name;
  row->heuristic = zb_engine_part_of(entry->engine) == ZB_PART_HEURISTIC;
  row->status = ZB_UNKNOWN;
  row->placement = placed->placement;
  row->chunks = placed->chunks;
  row->comm_count = zb_method_comm_count(placed);
  row->sends = malloc((size_t)placed->devices * sizeof *row->sends);
  if (!row->sends) return zb_fail_memory(error);
  zb_method_sends(placed, row->sends);
  for (int d = 0; d < placed->devices; d++)
    row->most_sends = row->sends[d] > row->most_sends ? row->sends[d] : row->most_sends;
  return ZB_OK;
}

static enum zb_status fill_row(const struct zb_answer *answer, struct zb_compare_row *row,
                               struct zb_error *error) {
  row->status = answer->status;
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

// Fills the entry's row; with `too_late` without running it.
static enum zb_status run_entry(const struct zb_entry *entry, const struct zb_profile *profile,
                                const struct zb_problem *shared, bool too_late, struct zb_compare_row *row,
                                struct zb_reason *reason, struct zb_error *error) {
  struct zb_problem problem = *shared;
  struct zb_profile *placed = NULL;
  struct zb_answer answer = {0};
  int64_t began_ns = zb_clock_ns();
  enum zb_status status = zb_entry_place(entry, profile, &placed, error);
  if (status == ZB_OK) status = begin_row(entry, placed, row, error);
  if (status == ZB_OK && !too_late) {
    problem.profile = placed;
    status = zb_method_run(entry->engine, &problem, NULL, &answer, error);
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

static enum zb_status place_row(const struct zb_compare_row *row, const struct zb_profile *profile,
                                struct zb_profile **placed, struct zb_error *error) {
  const struct zb_entry entry = {.placement = row->placement, .chunks = row->chunks};
  return zb_entry_place(&entry, profile, placed, error);
}

static enum zb_status attribute_best(const struct zb_profile *profile, const struct zb_problem *problem,
                                     struct zb_compare *compare, struct zb_error *error) {
  struct zb_profile *placed = NULL;
  if (compare->best < 0) return ZB_OK;
  enum zb_status status = place_row(&compare->rows[compare->best], profile, &placed, error);
  if (status == ZB_OK) status = zb_attribute(placed, problem, &compare->binds, error);
  zb_profile_free(placed);
  return status;
}

// Of what is run today, the interleaved order is the one that nobody has searched around.
static enum zb_status challenge(const struct zb_profile *profile, const struct zb_problem *problem,
                                struct zb_compare *compare, struct zb_error *error) {
  const struct zb_compare_row *row = compare->rows;
  const struct zb_compare_row *const end = row + compare->count;
  struct zb_profile *placed = NULL;
  while (row < end && strcmp(row->method, zb_engine_1f1b_interleaved.name) != 0) row++;
  if (row == end || rank(row) != 0 || zb_deadline_passed(&problem->deadline)) return ZB_OK;
  enum zb_status status = place_row(row, profile, &placed, error);
  if (status == ZB_OK) status = zb_compare_challenge(placed, problem, row, &compare->rival, error);
  zb_profile_free(placed);
  return status;
}

static void find_shift(const struct zb_profile *profile, struct zb_compare *compare) {
  const int last = profile->devices - 1;
  if (compare->best < 0) return;
  const struct zb_compare_row *best = &compare->rows[compare->best];
  if (best->placement != ZB_V || profile->placement == ZB_V || last == 0) return;
  int64_t least = profile->static_bytes[last];
  for (int d = 0; d < last; d++) least = zb_min(least, profile->static_bytes[d]);
  struct zb_compare_shift *shift = &compare->shift;
  *shift = (struct zb_compare_shift){.bytes = profile->static_bytes[last] - least, .from = last, .to = 0};
  shift->needs_bytes = best->peak_bytes[0] + shift->bytes;
  shift->limit_bytes = profile->limit_bytes[0];
}

enum zb_status zb_compare_run(const struct zb_profile *profile, const struct zb_problem *problem,
                              const struct zb_entry_request *request, struct zb_progress *progress,
                              struct zb_compare *compare, struct zb_error *error) {
  struct zb_compare c = {.devices = profile->devices, .microbatches = profile->microbatches, .best = -1};
  struct zb_entries entries = {0};
  c.objective = problem->objective;
  c.has_memory = profile->has_memory;
  enum zb_status status = zb_entries_list(profile, request, &entries, error);
  if (status != ZB_OK) return status;
  c.rows = calloc((size_t)entries.count, sizeof *c.rows);
  if (profile->name) c.name = strdup(profile->name);
  status = c.rows && (c.name || !profile->name) ? ZB_OK : zb_fail_memory(error);
  for (int k = 0; k < entries.count && status == ZB_OK; k++) {
    struct zb_problem part = *problem;
    // One share is for what comes after.
    part.deadline =
        method_deadline(problem, entries.entry[k].engine, request->methods != NULL, entries.count - k + 1);
    zb_progress_label(progress, entries.entry[k].engine->name);
    bool too_late = k > 0 && zb_deadline_passed(&problem->deadline);
    c.count = k + 1;
    status = run_entry(&entries.entry[k], profile, &part, too_late, &c.rows[k], &c.reason, error);
  }
  if (status == ZB_OK) {
    struct zb_problem part = *problem;
    share_bounds(&c);
    sort_rows(&c);
    find_shift(profile, &c);
    part.deadline = method_deadline(problem, &zb_engine_auto, false, 2);
    zb_progress_label(progress, "same memory");
    status = challenge(profile, &part, &c, error);
  }
  zb_progress_label(progress, NULL);
  if (status == ZB_OK) status = attribute_best(profile, problem, &c, error);
  if (status == ZB_OK) status = zb_compare_judge(&c, error);
  if (status == ZB_OK)
    *compare = c;
  else
    zb_compare_free(&c);
  zb_entries_free(&entries);
  return status;
}
