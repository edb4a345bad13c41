// flow_hand.h - one partial schedule of F and B, as it is worked on.
//
// What flow_front.h says of a node happens to it: flow_look.h raises clocks to what is implied, flow_choice.h
// runs what is forced and tells what is left to choose. Lanes here are those of F and B alone, device by
// device, each device's in the order of fluid_table.h.
#ifndef ZB_FLOW_HAND_H
#define ZB_FLOW_HAND_H

#include "solver/exact/flow_front.h"
#include "solver/exact/fluid_table.h"
#include "solver/exact/orders.h"

enum { ZB_NO_LANE = -1 };

// A time that never comes, and one that has not been looked up.
static const int64_t zb_flow_never = INT64_MAX / 4, zb_flow_unknown = INT64_MIN;

struct zb_flow_lane {
  int device, own, position; // own: among the device's lanes; position: in `down`
  enum zb_kind kind;
  int64_t time, bytes, weight; // weight: of a B, what its W takes
  int source, target;          // lanes of other devices that it waits for and that wait for it; -1: none
  int64_t travel, delay;       // from the start of the source's op; to the target
  int before[2], after[2];     // lanes of its device that must be further, or less far; -1: none
  const int64_t *late;         // [microbatches] latest ends
};

// What does not change of a device.
struct zb_flow_device {
  int first, forwards, end; // lanes of B: first .. forwards - 1, of F: forwards .. end - 1
  bool limited;
  int64_t w, gives;              // as in fluid_table.h
  int64_t least_b, most_b_gives; // of its B
};

struct zb_flow_hand {
  struct zb_lanes lanes;
  int flows;                     // lanes of F and B
  int *down;                     // [flows] along the pipe: each behind what it waits for
  struct zb_flow_lane *lane;     // [flows]
  struct zb_flow_device *device; // [devices]
  struct zb_fluid_table *table;  // [devices]
  struct zb_flow_weights weights;
  struct zb_orders *orders; // that what runs is written to, or NULL; borrowed
  int64_t *packed;          // a key of key_words words, then numbers (layer.h)
  size_t key_words;
  uint16_t *count;  // [flows] done
  int *wait;        // [devices] the lane that is next, where that is settled and it cannot come yet; or -1
  int64_t *arrival; // [flows][microbatches] of those that are sent and wait
  int64_t cost;     // of the devices that are done
  // What follows from counts.
  bool *sent;      // [flows] all is done that the next op waits for
  uint64_t *stale; // bits, by position in `down`: what looking ahead has found has to be looked up again
  size_t stale_words;
  bool late;                // something cannot end in time
  bool *touched, *changed;  // [devices] some was looked up again; what can be next has to be listed again
  int64_t *over;            // [devices] bytes that F and B hold above the limit
  int64_t *backwards, *due; // [devices] B done, and how much W they leave
  // What looking ahead finds and raises, side by side.
  int64_t *start;          // [flows] of each lane's next op: earliest; never, where there is none
  int64_t *next;           // [flows] the same if it is the device's next; never: it cannot be
  int64_t *last_start;     // [flows] by the device's table, if it is the device's next
  int64_t *clock, *poured; // [devices]
  size_t found;            // numbers in the five
};

// False where memory would not do. zb_flow_hand_close what was opened either way.
bool zb_flow_hand_open(const struct zb_chain *chain, enum zb_objective objective, struct zb_flow_hand *hand);
void zb_flow_hand_close(struct zb_flow_hand *hand);

// Nothing done.
void zb_flow_start(struct zb_flow_hand *hand);
// How many F and B are done in all.
int zb_flow_done(const struct zb_flow_hand *hand);
// Into `packed`: how many words, 0 if nothing completes it; the score, unless NULL, is its time in hand.
size_t zb_flow_pack(struct zb_flow_hand *hand, int64_t *score);
// Nothing is known of it then but what was packed.
void zb_flow_unpack(struct zb_flow_hand *hand, const int64_t *packed);

// For flow_look.c and flow_choice.c.

// Counts ops of a lane as done.
void zb_flow_count(struct zb_flow_hand *hand, int l, int times);

static inline bool zb_flow_is_over(const struct zb_flow_hand *hand, int l) {
  return hand->count[l] == hand->lanes.microbatches;
}

static inline bool zb_flow_is_done(const struct zb_flow_hand *hand, int d) {
  // B of the first stage come last.
  return zb_flow_is_over(hand, hand->device[d].first);
}

static inline void zb_flow_mark_stale(struct zb_flow_hand *hand, int l) {
  const int position = hand->lane[l].position;
  hand->stale[position / 64] |= (uint64_t)1 << position % 64;
}

// The start of a lane's next op has changed: it is looked up again where that op is waited for.
static inline void zb_flow_tell_waiting(struct zb_flow_hand *hand, int l) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  if (lane->target >= 0 && hand->count[lane->target] == k) zb_flow_mark_stale(hand, lane->target);
  for (int i = 0; i < 2; i++)
    if (lane->after[i] >= 0 && hand->count[lane->after[i]] == k) zb_flow_mark_stale(hand, lane->after[i]);
}

static inline void zb_flow_raise_start(struct zb_flow_hand *hand, int l, int64_t start) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  if (start <= hand->start[l]) return;
  hand->start[l] = start;
  if (start + lane->time > lane->late[hand->count[l]]) hand->late = true;
  zb_flow_tell_waiting(hand, l);
}

static inline int64_t zb_flow_pourable(const struct zb_flow_hand *hand, int d) {
  return hand->due[d] - hand->poured[d];
}

#endif
