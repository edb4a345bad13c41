// gantt_svg.h - a schedule as a picture of its own: the whole, the memory below it, and where the whole is
// too dense to read the same once more in strips, like lines of a score.
#ifndef ZB_GANTT_SVG_H
#define ZB_GANTT_SVG_H

#include "solver/io/export.h"

// A writer of the table of formats. The bound is a line in every lane: with less than that behind its first
// op (span, period), or by that time (makespan), no schedule could end them all. In the strips an op says its
// name, times and what it waited for when pointed at. Light and dark pages.
enum zb_status zb_export_svg(const struct zb_export_input *input, struct zb_export_output *output,
                             struct zb_error *error);

#endif
