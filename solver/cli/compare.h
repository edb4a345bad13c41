// compare.h - every method on one profile, and why the best is not better.
#ifndef ZB_COMPARE_RUN_H
#define ZB_COMPARE_RUN_H

#include "solver/cli/entry.h"
#include "solver/cli/options.h"
#include "solver/cli/progress.h"
#include "solver/model/report.h"

// Runs what `request` asks for. `problem` has no profile yet; its time is shared out. *compare is the
// caller's: zb_compare_free. Its rows are sorted and its verdict is written.
enum zb_status zb_compare_run(const struct zb_profile *profile, const struct zb_problem *problem,
                              const struct zb_entry_request *request, struct zb_progress *progress,
                              struct zb_compare *compare, struct zb_error *error);

// Runs `auto` in the memory that `row` takes, device by device, from the row's schedule on: what the order of
// a method that everybody runs leaves on the table. Fills `rival`; `placed` is the row's profile.
enum zb_status zb_compare_challenge(const struct zb_profile *placed, const struct zb_problem *problem,
                                    const struct zb_compare_row *row, struct zb_compare_rival *rival,
                                    struct zb_error *error);

// Fills `verdict` from the rest.
enum zb_status zb_compare_judge(struct zb_compare *compare, struct zb_error *error);

#endif
