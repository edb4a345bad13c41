// greedy.h - the two ways in which greedy writes an order into a pipe.
#ifndef ZB_GREEDY_H
#define ZB_GREEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "heuristic/pipe.h"

// Each fills a pipe that zb_pipe_clear has emptied, whatever its limits. The yes/no choices are explained at
// the top of the two files.

// greedy_rounds.c: O(1) an op.
void zb_greedy_rounds(struct zb_pipe *pipe, bool extra_forward, bool skip_forward);

// greedy_events.c: O(log devices) an op. `clock` is scratch of zb_tournament_length(devices) entries.
struct zb_greedy_choices {
  bool backward_first, hold_forward, keep_many, fill_every_gap;
};
void zb_greedy_events(struct zb_pipe *pipe, const struct zb_greedy_choices *choices, int64_t *clock);

#endif
