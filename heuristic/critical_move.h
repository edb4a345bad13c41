// critical_move.h - the moves of the local search: which ops change places on their devices.
#ifndef ZB_CRITICAL_MOVE_H
#define ZB_CRITICAL_MOVE_H

#include "heuristic/order_graph.h"

struct zb_mover {
  struct zb_graph *graph; // borrowed
  int32_t *path;          // [nodes] a critical path, last op first
  int length;
  uint64_t random; // state, not 0
};

// Below `count`, which is at least 1.
int zb_mover_below(struct zb_mover *mover, int count);

// A path that makes the longest device as long as it is; ties are drawn.
void zb_mover_trace(struct zb_mover *mover);

// Makes one random move as exchanges of the graph, none where it draws one that cannot be. Returns whether it
// is compound: moves ops of several stages or microbatches alike.
bool zb_mover_move(struct zb_mover *mover);

#endif
