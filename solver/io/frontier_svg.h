// frontier_svg.h - memory limit against bubble rate as a chart.
#ifndef ZB_FRONTIER_SVG_H
#define ZB_FRONTIER_SVG_H

#include "solver/io/text.h"
#include "solver/model/report.h"

// Appends a self-contained SVG: bubble rate of the schedules and of the bounds over the limit, limits under
// which nothing fits marked. One frontier has what lies open between the two shaded; of several each has a
// colour, and a ring marks the best at every limit. Readable on light and dark pages; a point says its
// numbers when pointed at.
void zb_frontier_print_svg(const struct zb_frontiers *frontiers, struct zb_text *text);

#endif
