// Schedules timed the slow and obvious way, to compare the solver's timeline with.
//
// Times come from relaxing every precedence until nothing moves, the period from all simple cycles of
// devices, memory from prefix sums. Nothing here is shared with solver/model but its types.
#ifndef NAIVE_H
#define NAIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"

enum { NAIVE_MAX_OPS = 1024, NAIVE_MAX_DEVICES = 8 };

struct naive_times {
  int64_t start_ns[NAIVE_MAX_OPS]; // parallel to the schedule's ops
  int64_t span_ns, makespan_ns, period_ns;
  int64_t own_ns; // the longest way from a device's first op to its own last end
};

// Times of an order that has every op once; false where ops wait for each other for ever. At most
// NAIVE_MAX_OPS ops and NAIVE_MAX_DEVICES devices.
bool naive_time(const struct zb_profile *profile, const struct zb_schedule *schedule,
                struct naive_times *times);

// Peak of a device, static included; *position (may be NULL) is that of the first op at which it is reached,
// and first[device] where nothing is ever kept.
int64_t naive_peak(const struct zb_profile *profile, const struct zb_schedule *schedule, int device,
                   size_t *position);

#endif
