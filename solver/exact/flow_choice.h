// flow_choice.h - what of a partial schedule of F and B is forced, and what there is to choose.
#ifndef ZB_FLOW_CHOICE_H
#define ZB_FLOW_CHOICE_H

#include "solver/exact/flow_hand.h"

// What is done on a device: its next op runs, or a whole W before that, or it waits for it.
enum zb_flow_act { ZB_TAKE, ZB_W_THEN_TAKE, ZB_WAIT_FOR, ZB_FLOW_ACTS };
enum { ZB_MOST_CHOICES = 2 * ZB_MOST_CLASSES };

// `act` and which of the device's lanes, in a byte.
struct zb_flow_choice {
  unsigned char act, lane;
};

// Looks ahead, and runs all that is forced. False: nothing completes it.
bool zb_flow_settle(struct zb_flow_hand *hand);
// The device to branch on, and its choices [ZB_MOST_CHOICES]; -1: none, nothing completes it.
int zb_flow_choose(const struct zb_flow_hand *hand, struct zb_flow_choice *choice, int *choices);
void zb_flow_take(struct zb_flow_hand *hand, int d, struct zb_flow_choice choice);

#endif
