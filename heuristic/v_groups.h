// v_groups.h - zb-v as it is described: the same groups of ops on every device, whatever they take.
#ifndef ZB_V_GROUPS_H
#define ZB_V_GROUPS_H

#include <stdbool.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"

// Whether there are enough microbatches for the whole ramp: one less than two a device.
bool zb_v_groups_apply(const struct zb_profile *profile);

// What the groups leave open, at the end: devices 0 .. p.
struct zb_v_endings {
  int hasty; // the first so many devices run two W, not one, before the first b that they wait for
  int late;  // and on the first so many each B of chunk 1 after the last F comes before the b that is there
};

// Appends the order of a V's devices to an empty builder. Needs no more than 2p chunks a device on p devices
// where B gives back memory; else the peaks are for the caller to see.
void zb_v_groups_fill(const struct zb_profile *profile, const struct zb_v_endings *endings,
                      struct zb_schedule_builder *builder);

#endif
