// compare.h - every method on one profile, and why the best is not better.
#ifndef ZB_COMPARE_RUN_H
#define ZB_COMPARE_RUN_H

#include "solver/cli/options.h"
#include "solver/cli/progress.h"
#include "solver/model/report.h"

// Runs the methods that `names` lists ("a,b,.."; NULL: all that this build has but auto) on the placements
// that they need, with `chunks` stages a device where that is open. `problem` has no profile yet; its time is
// shared out. *compare is the caller's: zb_compare_free. Its rows are sorted and its verdict is written.
enum zb_status zb_compare_run(const struct zb_profile *profile, const struct zb_problem *problem,
                              const char *names, int64_t chunks, struct zb_progress *progress,
                              struct zb_compare *compare, struct zb_error *error);

// Tries what would make the best row faster: fills base_cost_ns, work_ns and causes. `placed` is that row's
// profile.
enum zb_status zb_compare_attribute(const struct zb_profile *placed, const struct zb_problem *problem,
                                    struct zb_compare *compare, struct zb_error *error);

// Fills `verdict` from the rest.
enum zb_status zb_compare_judge(struct zb_compare *compare, struct zb_error *error);

#endif
