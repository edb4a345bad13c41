// torch_normal.h - a schedule as torch's pipeline runtime would run it.
//
// Three things in which that runtime differs from ours, each a change that keeps the schedule valid:
// - losses of the last stage are found by the order of its forwards, so microbatches are renumbered by it;
// - stage 0 has no input gradient: its B does nothing and its W the whole backward, so it gets a BW, which
// may
//   cost time;
// - one call for the whole backward is cheaper than two in a row, so a B right before its W becomes a BW
// where
//   that moves no other op and costs nothing.
// A normal schedule is its own normal form, so that writing what was read back gives the same bytes.
#ifndef ZB_TORCH_NORMAL_H
#define ZB_TORCH_NORMAL_H

#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

struct zb_torch_changes {
  int64_t renumbered; // microbatches whose number changed
  int64_t whole;      // backwards of stage 0 that were split
  int64_t merged;     // elsewhere
};

// `schedule` has been checked against the profile. *normal is the caller's; `timeline` (zeroed at first,
// zb_timeline_free) is filled with its times, period included. FAILED only for want of memory.
enum zb_status zb_torch_normalise(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                  enum zb_objective objective, struct zb_torch_changes *changes,
                                  struct zb_schedule **normal, struct zb_timeline *timeline,
                                  struct zb_error *error);

#endif
