// report_data.h - what a report shows beside its schedule: every method, and what more memory would buy.
#ifndef ZB_REPORT_DATA_H
#define ZB_REPORT_DATA_H

#include "solver/cli/options.h"
#include "solver/model/answer.h"
#include "solver/model/report.h"

// The fields are the caller's: zb_report_data_free. Start from a zeroed struct.
struct zb_report_data {
  bool has_compare, has_frontiers; // no frontiers where the profile says nothing about memory
  struct zb_compare compare;
  struct zb_frontiers frontiers;
};

// Compares and sweeps the limit under the answer's profile and objective, within --time-limit from
// `start_ns`: a comparison that answers `which method?`, at most half of what is left for it and a third of
// the rest for the frontiers, one a placement.
enum zb_status zb_report_data_compute(const struct zb_options *options, const struct zb_answer *answer,
                                      int64_t start_ns, struct zb_report_data *data, struct zb_error *error);

void zb_report_data_free(struct zb_report_data *data); // the fields, not the struct

#endif
