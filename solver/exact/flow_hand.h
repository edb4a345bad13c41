// flow_hand.h - one partial schedule of F and B, as it is worked on.
//
// What flow_front.h says of a node happens here: clocks are raised to what is implied, what is forced runs,
// and what is left to choose is told. Lane 2d + ZB_F and 2d + ZB_B are device d's F and B.
#ifndef ZB_FLOW_HAND_H
#define ZB_FLOW_HAND_H

#include "solver/exact/flow_front.h"
#include "solver/exact/fluid_table.h"
#include "solver/exact/orders.h"

// What is done next on a device; its whole W may go before that.
enum zb_flow_choice { ZB_TAKE_F, ZB_TAKE_B, ZB_HOLD_B, ZB_W_THEN_F, ZB_W_THEN_B, ZB_MOST_CHOICES };

// What does not change of a device.
struct zb_flow_device {
  int64_t time[2], w; // of F and B
  int64_t delay[2];   // to the device that F and B are sent to
  bool limited;
};

// Numbers a device that looking ahead finds and raises.
enum { ZB_FLOW_FOUND = 5 };

struct zb_flow_hand {
  struct zb_lanes lanes;
  struct zb_flow_device *device;
  struct zb_fluid_table *table; // [devices]
  struct zb_flow_weights weights;
  struct zb_orders *orders; // that what runs is written to, or NULL; borrowed
  int64_t *packed;          // a key of key_words words, then numbers (layer.h)
  size_t key_words;
  uint16_t *count;  // [2 devices] of each lane done
  bool *held;       // [devices] its B waits for its next F
  int64_t *arrival; // [2 devices][microbatches] of those that wait
  int64_t cost;     // of the devices that are done
  // What looking ahead finds and raises, side by side.
  int64_t *start;          // [2 devices] of each lane's next op: earliest; never, where there is none
  int64_t *next_f;         // [devices] the same of F if no B comes before it; never: memory forbids that
  int64_t *clock, *poured; // [devices]
};

// False where memory would not do. zb_flow_hand_close what was opened either way.
bool zb_flow_hand_open(const struct zb_chain *chain, enum zb_objective objective, struct zb_flow_hand *hand);
void zb_flow_hand_close(struct zb_flow_hand *hand);

// Nothing done.
void zb_flow_start(struct zb_flow_hand *hand);
// How many F and B are done in all.
int zb_flow_done(const struct zb_flow_hand *hand);
// Raises starts and clocks to what is implied. False: too late for something.
bool zb_flow_look_ahead(struct zb_flow_hand *hand);
// Looks ahead, and runs all that is forced. False: nothing completes it.
bool zb_flow_settle(struct zb_flow_hand *hand);
// The device to branch on, and its choices [ZB_MOST_CHOICES]; -1: none, nothing completes it.
int zb_flow_choose(const struct zb_flow_hand *hand, enum zb_flow_choice *choice, int *choices);
void zb_flow_take(struct zb_flow_hand *hand, int d, enum zb_flow_choice choice);
// Into `packed`: how many words, 0 if nothing completes it; the score is its time in hand.
size_t zb_flow_pack(struct zb_flow_hand *hand, int64_t *score);
void zb_flow_unpack(struct zb_flow_hand *hand, const int64_t *packed);

#endif
