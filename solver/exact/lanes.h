// lanes.h - a device's classes of ops and what they wait for, alike for chains and several stages a device.
//
// A lane is one class on one device: the F, B or W of a stage, or all W of a device where it does not matter
// which runs (chunked.h). Its ops run in the order of their microbatches.
#ifndef ZB_LANES_H
#define ZB_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/exact/window.h"

enum { ZB_MOST_LANE_DEVICES = 1024 };

struct zb_lane {
  int device;
  enum zb_kind kind; // F, B or W
  int count;         // of its ops
  int64_t time, bytes;
  int source, target;   // lanes on other devices that its op k needs the end of, and that need its; -1: none
  int64_t delay;        // from the source's end
  int before[2];        // lanes on its device that must be further, -1: none
  bool any_weight;      // all W of a device: as many as B are done there
  unsigned char letter; // of zb_orders
};

struct zb_lanes {
  const struct zb_chunked *chunked; // borrowed, NULL for a chain
  int devices, lanes, microbatches;
  struct zb_lane *lane;
  int *first;        // [devices + 1] lanes of device d: first[d] .. first[d + 1] - 1, W last
  int *first_weight; // [devices]
  int *flow;         // [flows] lanes of F and B, each behind what it waits for
  int flows;
  int64_t *room_bytes; // [devices]
  // By zb_lanes_aim, in one frame: the zero of devices' clocks, what costs are counted from, the latest end
  // of all, and of F and B number k of a lane.
  int64_t *frame, *origin, *horizon; // [devices]
  int64_t *late;                     // [lanes][microbatches]
  const struct zb_chain *chain;      // borrowed
  enum zb_objective objective;
};

// False where memory ran out. zb_lanes_free what was made either way.
bool zb_lanes_create(const struct zb_chain *chain, enum zb_objective objective, struct zb_lanes *lanes);
void zb_lanes_free(struct zb_lanes *lanes);

// Takes the latest ends from a fixpoint.
void zb_lanes_aim(struct zb_lanes *lanes, const struct zb_state *state);

// Bits by which times have to be shifted to lie within 32, the sign included.
int zb_lanes_coarse(const struct zb_lanes *lanes);

// Latest end of op k of a lane; nothing is known of single W.
static inline int64_t zb_lane_late(const struct zb_lanes *lanes, int lane, int k) {
  return lanes->lane[lane].kind == ZB_W ? lanes->horizon[lanes->lane[lane].device]
                                        : lanes->late[(size_t)lane * (size_t)lanes->microbatches + (size_t)k];
}

// Whether what its next op needs on its own device is done.
static inline bool zb_lane_is_ready(const struct zb_lanes *lanes, int number, const uint16_t *count) {
  const struct zb_lane *lane = &lanes->lane[number];
  if (lane->any_weight) {
    int backwards = 0;
    for (int l = lanes->first[lane->device]; l < lanes->first_weight[lane->device]; l++)
      if (lanes->lane[l].kind == ZB_B) backwards += count[l];
    return count[number] < backwards;
  }
  return (lane->before[0] < 0 || count[lane->before[0]] > count[number]) &&
         (lane->before[1] < 0 || count[lane->before[1]] > count[number]);
}

#endif
