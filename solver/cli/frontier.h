// frontier.h - what more memory buys: the same profile solved under one limit after another.
#ifndef ZB_FRONTIER_RUN_H
#define ZB_FRONTIER_RUN_H

#include "solver/cli/entry.h"
#include "solver/cli/progress.h"
#include "solver/model/report.h"

enum { ZB_FRONTIER_POINTS = 10000 }; // at most

// Solves `profile`, already placed for the engine, under limits of `from`, `from + step`, ... up to `to`
// (millionths of unit_bytes, which the caller took from the profile as it was read). `problem` has no
// profile; its time is shared out. *frontier is the caller's: zb_frontier_free.
enum zb_status zb_frontier_run(const struct zb_engine *engine, const struct zb_profile *profile,
                               const struct zb_problem *problem, int64_t unit_bytes, int64_t from, int64_t to,
                               int64_t step, struct zb_progress *progress, struct zb_frontier *frontier,
                               struct zb_error *error);

// Carries bounds down to smaller limits, and derives status, gap and the bubble of the bound from them.
void zb_frontier_settle(struct zb_frontier *frontier);

// The limits of a frontier: from, from + step, ... up to `to`, in millionths of 1x.
struct zb_frontier_range {
  int64_t from, to, step;
};

// One frontier for each entry, under the same limits. The time is shared out among them; curves on the same
// placement share their bounds. `unit_bytes` is 1x of `profile` as it was read. *frontiers is the caller's:
// zb_frontiers_free.
enum zb_status zb_frontiers_run(const struct zb_entries *entries, const struct zb_profile *profile,
                                const struct zb_problem *problem, int64_t unit_bytes,
                                struct zb_frontier_range range, struct zb_progress *progress,
                                struct zb_frontiers *frontiers, struct zb_error *error);

#endif
