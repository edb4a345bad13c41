// measured_rows.h - from samples to one row a stage and measure.
#ifndef ZB_MEASURED_ROWS_H
#define ZB_MEASURED_ROWS_H

#include "solver/io/measurements.h"

// Drops the first repeats and sums up the rest. *rows is the caller's (free), by stage, then measure;
// *skipped is how many repeats were dropped, *repeats how many there were at most. BAD_INPUT where nothing is
// left.
enum zb_status zb_measured_rows_create(const struct zb_measurements *measurements,
                                       const struct zb_measured_options *options,
                                       struct zb_measured_row **rows, size_t *row_count, int *skipped,
                                       int *repeats, struct zb_error *error);

// The row of a stage and measure, NULL if there is none.
const struct zb_measured_row *zb_measured_row_find(const struct zb_measured_row *rows, size_t row_count,
                                                   int stage, enum zb_measure measure);

#endif
