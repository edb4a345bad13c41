// tune.c - solves each profile and ranks by what an iteration of it is worth: its samples by its cost.
//
// Costs of different profiles cannot be compared, samples a second can: microbatches * samples / cost. The
// bound gives in the same way what no schedule of a profile exceeds, so that an open profile is lost for sure
// only where that is below the best. What binds a row is found afterwards, best rows first, because the
// ranking needs the time more.
#include "solver/cli/tune.h"

#include <stdlib.h>
#include <string.h>

#include "solver/cli/cause.h"
#include "solver/cli/method.h"
#include "solver/cli/quantity.h"
#include "solver/model/number.h"

static bool fits(const struct zb_tune_row *row) {
  return row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE;
}

static double samples_a_second(const struct zb_tune_row *row, int64_t ns) {
  return ns > 0 ? (double)row->samples * row->microbatches / ((double)ns * 1e-9) : 0.0;
}

static enum zb_status explain(const struct zb_answer *answer, struct zb_tune_row *row,
                              struct zb_error *error) {
  struct zb_error why = {0};
  if (answer->status == ZB_INFEASIBLE) {
    row->reason = answer->reason;
    zb_method_explain_infeasible(&answer->reason, &why);
  } else if (answer->status == ZB_OVER_LIMIT) {
    zb_method_explain_over_limit(answer, &why);
  } else {
    return ZB_OK;
  }
  row->why = strdup(why.text);
  return row->why ? ZB_OK : zb_fail_memory(error);
}

static enum zb_status fill_row(const struct zb_answer *answer, struct zb_tune_row *row,
                               struct zb_error *error) {
  row->status = answer->status;
  if (fits(row)) {
    row->bound_ns = answer->bound_ns;
    row->most_rate = samples_a_second(row, answer->bound_ns);
    row->gap = answer->gap;
  }
  if (answer->schedule) {
    row->cost_ns = answer->cost_ns;
    row->rate = samples_a_second(row, answer->cost_ns);
    row->bubble_rate = answer->bubble_rate;
    row->most_bytes = zb_method_most_bytes(&answer->timeline, NULL);
  }
  return explain(answer, row, error);
}

static enum zb_status run_row(const struct zb_candidate *candidate, const struct zb_entry *entry,
                              const struct zb_problem *shared, bool too_late, struct zb_tune_row *row,
                              struct zb_error *error) {
  const struct zb_profile *profile = candidate->profile;
  struct zb_problem problem = *shared;
  struct zb_profile *placed = NULL;
  struct zb_answer answer = {0};
  const int64_t began_ns = zb_clock_ns();
  *row = (struct zb_tune_row){.path = candidate->path,
                              .method = entry->engine->name,
                              .devices = profile->devices,
                              .microbatches = profile->microbatches,
                              .chunks = entry->chunks,
                              .samples = profile->samples,
                              .placement = entry->placement,
                              .status = ZB_UNKNOWN};
  if (too_late) return ZB_OK;
  enum zb_status status = zb_entry_place(entry, profile, &placed, error);
  problem.profile = placed;
  if (status == ZB_OK) status = zb_method_run(entry->engine, &problem, NULL, &answer, error);
  if (status == ZB_OK) status = fill_row(&answer, row, error);
  if (status == ZB_OK && problem.progress && answer.schedule)
    problem.progress(problem.progress_context, zb_status_word(row->status), row->cost_ns, row->bound_ns);
  row->seconds = (double)(zb_clock_ns() - began_ns) * 1e-9;
  zb_answer_free(&answer);
  zb_profile_free(placed);
  return status;
}

static int rank(const struct zb_tune_row *row) {
  return fits(row) ? 0 : row->status == ZB_OVER_LIMIT ? 1 : 2;
}

// Of equal rates the one with fewer devices.
static bool comes_before(const struct zb_tune_row *a, const struct zb_tune_row *b) {
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a->rate > b->rate || a->rate < b->rate) return a->rate > b->rate;
  return a->devices < b->devices;
}

// By insertion: equal ones keep the order of the command line.
static void sort_rows(struct zb_tune *tune) {
  for (int k = 1; k < tune->count; k++) {
    const struct zb_tune_row row = tune->rows[k];
    int place = k;
    for (; place > 0 && comes_before(&row, &tune->rows[place - 1]); place--)
      tune->rows[place] = tune->rows[place - 1];
    tune->rows[place] = row;
  }
  tune->best = tune->count > 0 && fits(&tune->rows[0]) ? 0 : -1;
}

static enum zb_status attribute(const struct zb_candidate *candidates, int count,
                                const struct zb_problem *problem, struct zb_tune *tune,
                                struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int k = 0; k < tune->count && status == ZB_OK; k++) {
    struct zb_tune_row *row = &tune->rows[k];
    const struct zb_entry entry = {.placement = row->placement, .chunks = row->chunks};
    struct zb_profile *placed = NULL;
    if (!fits(row)) continue;
    int which = 0;
    while (which < count && candidates[which].path != row->path) which++;
    status = zb_entry_place(&entry, candidates[which].profile, &placed, error);
    if (status == ZB_OK) status = zb_attribute(placed, problem, &row->binds, error);
    zb_profile_free(placed);
  }
  return status;
}

// Whether another profile could still win: by the largest rate that a bound allows.
static void say_rest(const struct zb_tune *tune, struct zb_text *text) {
  const struct zb_tune_row *best = &tune->rows[tune->best], *most = NULL;
  int unknown = 0;
  for (int k = 0; k < tune->count; k++) {
    const struct zb_tune_row *row = &tune->rows[k];
    unknown += row->status == ZB_UNKNOWN;
    if (k != tune->best && fits(row) && (!most || row->most_rate > most->most_rate)) most = row;
  }
  if (unknown) zb_text_print(text, "The time was up before %d of %d were tried.\n", unknown, tune->count);
  if (most && most->most_rate > best->rate)
    zb_text_print(text, "Not ruled out: the bound of %s allows up to %.3f samples/s.\n", most->path,
                  most->most_rate);
  else if (most && !unknown)
    zb_text_print(text, "No schedule of the others is faster: their bounds allow at most %.3f samples/s.\n",
                  most->most_rate);
}

static enum zb_status judge(struct zb_tune *tune, struct zb_error *error) {
  struct zb_text text = {0};
  char place[ZB_PLACE_TEXT], amount[ZB_QUANTITY_TEXT];
  if (tune->best >= 0) {
    const struct zb_tune_row *best = &tune->rows[tune->best];
    zb_text_print(&text, "%s on %s wins: %.3f samples/s, %.3f a device, ", best->path,
                  zb_place_text(best->placement, best->chunks, place), best->rate,
                  best->rate / best->devices);
    if (best->status == ZB_OPTIMAL)
      zb_text_put(&text, "proven optimal.\n");
    else
      zb_text_print(&text, "within %s of its bound.\n", zb_percent_text(best->gap, amount));
    say_rest(tune, &text);
  } else if (tune->rows[tune->count - 1].status == ZB_UNKNOWN) {
    zb_text_put(&text, "The time was up before a schedule that fits was found.\n");
  } else {
    zb_text_put(&text, "None of these profiles fits.\n");
  }
  for (int k = 0; k < tune->count; k++)
    if (tune->rows[k].why) zb_text_print(&text, "%s: %s.\n", tune->rows[k].path, tune->rows[k].why);
  enum zb_status status = zb_text_status(&text, error);
  if (status == ZB_OK)
    tune->verdict = text.data;
  else
    zb_text_free(&text);
  return status;
}

enum zb_status zb_tune_run(const struct zb_candidate *candidates, int count, const struct zb_problem *problem,
                           struct zb_progress *progress, struct zb_tune *tune, struct zb_error *error) {
  struct zb_tune t = {.objective = problem->objective, .best = -1};
  int left = 0;
  for (int c = 0; c < count; c++) left += candidates[c].entries->count;
  t.rows = calloc((size_t)left, sizeof *t.rows);
  enum zb_status status = t.rows ? ZB_OK : zb_fail_memory(error);
  for (int c = 0; c < count; c++)
    for (int k = 0; k < candidates[c].entries->count && status == ZB_OK; k++) {
      struct zb_problem part = *problem;
      const bool too_late = t.count > 0 && zb_deadline_passed(&problem->deadline);
      part.deadline = zb_method_deadline(&problem->deadline, 1 + left--);
      zb_progress_label(progress, candidates[c].path);
      status = run_row(&candidates[c], &candidates[c].entries->entry[k], &part, too_late, &t.rows[t.count++],
                       error);
    }
  zb_progress_label(progress, NULL);
  if (status == ZB_OK) {
    sort_rows(&t);
    status = attribute(candidates, count, problem, &t, error);
  }
  if (status == ZB_OK) status = zb_tune_warn(candidates, count, &t, error);
  if (status == ZB_OK) status = judge(&t, error);
  if (status == ZB_OK)
    *tune = t;
  else
    zb_tune_free(&t);
  return status;
}
