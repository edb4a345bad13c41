// links.h - who feeds whom in a schedule, and what each op waited for.
#ifndef ZB_LINKS_H
#define ZB_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

#define ZB_NO_OP UINT32_MAX

// Every entry is a place in the schedule's ops, or ZB_NO_OP. All arrays are owned.
struct zb_links {
  size_t ops;
  uint32_t *input; // [ops] op of a neighbouring stage whose output this one takes
  uint32_t *own;   // [ops] op of its own stage and microbatch that must have ended: F of a B, B of a W
  // [ops] the predecessor that was ready last, so that the op could not start earlier: the op before it on
  // its device where that one ended last (of equals it is named), else `input` (with its comm) or `own`.
  uint32_t *waited_for;
};

// Links of a schedule that zb_check_schedule has accepted, with its timeline. *links is the caller's:
// zb_links_free.
enum zb_status zb_links_create(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               const struct zb_timeline *timeline, struct zb_links *links,
                               struct zb_error *error);
void zb_links_free(struct zb_links *links); // the fields, not the struct

// Delay of the message between two ops of `links->input`: 0 where both are on one device.
int64_t zb_links_comm_ns(const struct zb_profile *profile, struct zb_op from, struct zb_op to);

#endif
