// frontiers.c - which method on which placement, given the memory: frontiers side by side.
//
// Each curve never rises with the limit, so the lower edge of all of them, which is what the winners cost,
// does not either.
#include <stdlib.h>

#include "solver/cli/frontier.h"
#include "solver/cli/method.h"
#include "solver/model/number.h"

static bool fits(const struct zb_frontier_point *point) {
  return point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
}

static bool same_profile(const struct zb_frontier *a, const struct zb_frontier *b) {
  return a->placement == b->placement && a->chunks == b->chunks;
}

// What one method proves of a placement and limit holds for every method there.
static void share_bounds(struct zb_frontiers *frontiers) {
  for (int a = 0; a < frontiers->count; a++) {
    struct zb_frontier *curve = &frontiers->curve[a];
    for (int b = 0; b < frontiers->count; b++) {
      if (a == b || !same_profile(curve, &frontiers->curve[b])) continue;
      for (int k = 0; k < curve->count; k++)
        if (fits(&curve->points[k]))
          curve->points[k].bound_ns =
              zb_max(curve->points[k].bound_ns, frontiers->curve[b].points[k].bound_ns);
    }
    zb_frontier_settle(curve);
  }
}

static bool is_better(const struct zb_frontier *a, const struct zb_frontier *b, int k) {
  if (!fits(&b->points[k])) return true;
  if (a->points[k].cost_ns != b->points[k].cost_ns) return a->points[k].cost_ns < b->points[k].cost_ns;
  return a->comm_count < b->comm_count;
}

static void choose_best(struct zb_frontiers *frontiers) {
  for (int k = 0; k < frontiers->curve[0].count; k++) {
    int *best = &frontiers->best[k];
    *best = -1;
    for (int a = 0; a < frontiers->count; a++) {
      const struct zb_frontier *curve = &frontiers->curve[a];
      if (fits(&curve->points[k]) && (*best < 0 || is_better(curve, &frontiers->curve[*best], k))) *best = a;
    }
  }
}

enum zb_status zb_frontiers_run(const struct zb_entries *entries, const struct zb_profile *profile,
                                const struct zb_problem *problem, int64_t unit_bytes,
                                struct zb_frontier_range range, struct zb_progress *progress,
                                struct zb_frontiers *frontiers, struct zb_error *error) {
  struct zb_frontiers all = {.count = 0};
  all.curve = calloc((size_t)entries->count, sizeof *all.curve);
  enum zb_status status = all.curve ? ZB_OK : zb_fail_memory(error);
  for (int k = 0; k < entries->count && status == ZB_OK; k++) {
    struct zb_profile *placed = NULL;
    struct zb_problem part = *problem;
    part.deadline = zb_method_deadline(&problem->deadline, entries->count - k);
    status = zb_entry_place(&entries->entry[k], profile, &placed, error);
    if (status == ZB_OK)
      status = zb_frontier_run(entries->entry[k].engine, placed, &part, unit_bytes, range.from, range.to,
                               range.step, progress, &all.curve[k], error);
    if (status == ZB_OK) all.count = k + 1;
    zb_profile_free(placed);
  }
  if (status == ZB_OK) {
    all.best = malloc((size_t)all.curve[0].count * sizeof *all.best);
    if (!all.best) status = zb_fail_memory(error);
  }
  if (status != ZB_OK) {
    zb_frontiers_free(&all);
    return status;
  }
  share_bounds(&all);
  choose_best(&all);
  *frontiers = all;
  return ZB_OK;
}
