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

// greedy_events.c: O(log devices) an op. How one device decides:
struct zb_greedy_choices {
  int most_wanted;          // microbatches that it asks to keep, at least 1
  int most_wanted_first;    // the same until it has run its first B
  bool backward_first;      // of an F and a B that are both there
  int64_t hold_forward_ns;  // an F waits for a B that is due sooner than this
  int64_t hold_backward_ns; // a B waits for an F whose turn it is and that is due sooner than this
  int64_t least_gap_ns;     // a W goes into gaps of at least this
};

// How all do: in part part[n] of its order, n the B that it has run, device i decides by
// choices[i * parts + part[n]]. `part` is NULL where there is one part.
struct zb_greedy_plan {
  const struct zb_greedy_choices *choices; // [devices * parts], borrowed
  const int *part;                         // [microbatches + 1], borrowed
  int parts;
};

// `clock` is scratch of zb_tournament_length(devices) entries.
void zb_greedy_events(struct zb_pipe *pipe, const struct zb_greedy_plan *plan, int64_t *clock);

// The choices of greedy: every device alike, as the lowest four bits of `choice` say. The pipe must have been
// cleared, for its times depend on how backwards are done.
void zb_greedy_choose_alike(const struct zb_pipe *pipe, unsigned choice, struct zb_greedy_choices *choices);

#endif
