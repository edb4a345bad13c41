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

// greedy_events.c: O(log devices) an op. How one device decides; most_wanted >= 1 is how many microbatches it
// asks to keep. `choices` has one a device, `clock` is scratch of zb_tournament_length(devices) entries.
struct zb_greedy_choices {
  int most_wanted;
  bool backward_first, hold_forward, fill_every_gap;
};
void zb_greedy_events(struct zb_pipe *pipe, const struct zb_greedy_choices *choices, int64_t *clock);

// The choices of greedy: every device alike, as the lowest four bits of `choice` say.
void zb_greedy_choose_alike(int devices, unsigned choice, struct zb_greedy_choices *choices);

#endif
