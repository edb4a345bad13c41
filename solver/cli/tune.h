// tune.h - one model cut in several ways: which profile trains most samples a second.
#ifndef ZB_TUNE_H
#define ZB_TUNE_H

#include "solver/cli/entry.h"
#include "solver/cli/progress.h"
#include "solver/model/report.h"

struct zb_candidate {
  const char *path;                 // borrowed
  const struct zb_profile *profile; // borrowed
  const struct zb_entries *entries; // borrowed; where its method runs it
};

// Runs every entry of every candidate; `problem` has no profile, its time is shared out, and one share more
// is for what binds each. What the deadline cuts off is UNKNOWN. *tune is the caller's: zb_tune_free. Its
// rows are sorted, warnings and verdict written.
enum zb_status zb_tune_run(const struct zb_candidate *candidates, int count, const struct zb_problem *problem,
                           struct zb_progress *progress, struct zb_tune *tune, struct zb_error *error);

// Fills `warnings`: what differs between the profiles that one model under one limit would have alike.
enum zb_status zb_tune_warn(const struct zb_candidate *candidates, int count, struct zb_tune *tune,
                            struct zb_error *error);

#endif
