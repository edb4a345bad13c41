// front_hand.h - one partial schedule of F, B and W, as it is worked on.
//
// What front.h says of a node happens to it: it is unpacked, an op is run, and what is implied and what is
// too late is found when it is packed. Packed (layer.h) it is
//   aside    W done in all, then ops done of each lane,
//   key      F and B done of each lane,
//   numbers  clocks of devices, - W done in all, the cost of the devices that are done, then each device's
//            clock less the W that it has done, and the arrivals that wait, lane by lane.
// X is free no later than Y even after the W that it has done less if its clock is not greater, nor its clock
// less what its W took. Where a device has several lanes of W, that is asked of all sets of them: what X has
// done less is the most that any set says. Sets are of four lanes; of any others X has to have done no fewer
// W each, which is more than it needs to.
#ifndef ZB_FRONT_HAND_H
#define ZB_FRONT_HAND_H

#include "solver/exact/lanes.h"

struct zb_front_hand {
  struct zb_lanes lanes;
  struct zb_lattice *lattice; // [devices] each with its device's table at the fixpoint
  bool has_tables;
  int64_t *packed;
  size_t aside_words, key_words, numbers; // numbers: that all have
  // What was unpacked.
  uint16_t *count;       // [lanes] done
  int64_t *clock;        // [devices]
  int64_t cost;          // of the devices that are done
  const int64_t **queue; // [lanes] arrivals that wait
  int *queued;           // [lanes]
  // What has run since changes.
  int taken, sent; // lanes whose queue gets shorter and longer; -1: none
  int64_t sent_at;
  int64_t *estimate; // [lanes] earliest starts of the next F and B
};

// False where memory would not do. zb_front_hand_close what was opened either way.
bool zb_front_hand_open(const struct zb_chain *chain, enum zb_objective objective,
                        struct zb_front_hand *hand);
void zb_front_hand_close(struct zb_front_hand *hand);

// Takes latest ends, and tables where there are any, from a fixpoint. KEPT, REFUTED or STOPPED.
enum zb_sweep zb_front_hand_aim(struct zb_front_hand *hand, struct zb_state *state);

// Nothing done.
void zb_front_hand_start(struct zb_front_hand *hand);
// What was packed, which is read as long as the hand has not been packed again.
void zb_front_hand_unpack(struct zb_front_hand *hand, const int64_t *packed);
// Into `packed`: how many words, 0 if nothing completes it; the score is its time in hand.
size_t zb_front_hand_pack(struct zb_front_hand *hand, int64_t *score);

// Whether an op of a lane can come next on its device, and when.
bool zb_front_hand_can_come_next(const struct zb_front_hand *hand, int lane, int64_t *start);
// Runs the next op of a lane; one since it was unpacked. False: it ends too late.
bool zb_front_hand_run(struct zb_front_hand *hand, int lane, int64_t end);

#endif
