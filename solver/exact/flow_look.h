// flow_look.h - what a partial schedule of F and B implies.
#ifndef ZB_FLOW_LOOK_H
#define ZB_FLOW_LOOK_H

#include "solver/exact/flow_hand.h"

// Raises starts and clocks to what is implied, where something has changed. False: too late for something.
bool zb_flow_look_ahead(struct zb_flow_hand *hand);
// Runs `work` of W that is there, from the clock on; the clock stands.
void zb_flow_pour(struct zb_flow_hand *hand, int d, int64_t work);
// What fits before a time at which something else can start. The clock is that time then, unless whole W
// wait.
void zb_flow_pour_until(struct zb_flow_hand *hand, int d, int64_t time);
// Writes an op of a lane of zb_lanes down, where that is asked for.
void zb_flow_write(const struct zb_flow_hand *hand, int d, int number);

#endif
