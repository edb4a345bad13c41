// report_html.h - one page, without a network, about one schedule: the chart, its devices, every method
// beside it and what more memory would buy.
#ifndef ZB_REPORT_HTML_H
#define ZB_REPORT_HTML_H

#include "solver/io/export.h"

// A writer of the table of formats. Comparison and frontier are left out where the input has none.
enum zb_status zb_export_html(const struct zb_export_input *input, struct zb_export_output *output,
                              struct zb_error *error);

#endif
