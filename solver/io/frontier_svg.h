// frontier_svg.h - memory limit against bubble rate as a chart.
#ifndef ZB_FRONTIER_SVG_H
#define ZB_FRONTIER_SVG_H

#include "solver/io/text.h"
#include "solver/model/report.h"

// Appends a self-contained SVG: bubble rate of the schedules and of the bounds over the limit, what lies open
// between them shaded, limits under which nothing fits marked. Readable on light and dark pages; a point says
// its numbers when pointed at.
void zb_frontier_print_svg(const struct zb_frontier *frontier, struct zb_text *text);

#endif
