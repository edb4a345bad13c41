// gantt.h - a schedule as rows of characters: one row a device, time to the right.
#ifndef ZB_GANTT_H
#define ZB_GANTT_H

#include <stdbool.h>

#include "solver/io/text.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/timeline.h"

struct zb_gantt_style {
  int width;  // columns of the whole row
  bool color; // ANSI, 256 colours
  bool utf8;  // block characters
};

// Appends a row a device (number, chart, idle share, peak), the time axis and, unless `bare`, the legend.
// Every cell shows what fills most of its time; an op that is wide enough also shows its microbatch. Fails
// only when memory ends.
enum zb_status zb_gantt_print(const struct zb_gantt_style *style, const struct zb_profile *profile,
                              const struct zb_schedule *schedule, const struct zb_timeline *timeline,
                              bool bare, struct zb_text *out, struct zb_error *error);

#endif
