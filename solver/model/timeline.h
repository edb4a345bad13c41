// timeline.h - from orders to times: the one place where a schedule is timed and costed.
//
// Every op starts as early as its device's order and its predecessors allow. The sweep visits each
// op once: a device runs until it meets an op whose predecessor is not timed yet, and is woken when
// that predecessor is.
#ifndef ZB_TIMELINE_H
#define ZB_TIMELINE_H

#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

#define ZB_OBJECTIVE_TABLE(X)                                                                                \
  X(ZB_SPAN, "span")         /* longest first start to last end of a device: the papers' cost */             \
  X(ZB_MAKESPAN, "makespan") /* end of the last op: an iteration with a barrier */                           \
  X(ZB_PERIOD, "period")     /* steady iteration time without a barrier */

enum zb_objective {
#define X(name, word) name,
  ZB_OBJECTIVE_TABLE(X)
#undef X
      ZB_OBJECTIVE_COUNT
};
const char *zb_objective_word(enum zb_objective objective);

struct zb_timeline {
  int devices;
  size_t ops;
  int64_t *start_ns; // [ops] parallel to the schedule's ops
  uint32_t *order;   // [ops] positions of all ops, each after its predecessors
  int64_t *first_start_ns, *last_end_ns, *busy_ns, *peak_bytes; // [devices]; peak includes static
  int64_t span_ns, makespan_ns;
  int64_t period_ns;                   // -1 until zb_timeline_period
  int64_t work_ns;                     // the largest busy_ns
  struct zb_timeline_scratch *scratch; // private: when each input of another op was ready
};

// Times `schedule`. WRONG with device, position and op where the orders wait for each other for ever
// (everything else about its validity is zb_check_schedule's). `timeline` is reused if it already has
// the right sizes (zero-initialised at first), so that a search can time without allocating.
enum zb_status zb_timeline_compute(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                   struct zb_timeline *timeline, struct zb_error *error);

// Fills period_ns of a computed timeline: the least whole T such that no cycle of the graph that
// repeats every T is positive (a maximum cycle ratio, rounded up).
enum zb_status zb_timeline_period(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                  struct zb_timeline *timeline, struct zb_error *error);

void zb_timeline_free(struct zb_timeline *timeline);

// The cost under an objective (the period must have been computed for ZB_PERIOD).
int64_t zb_timeline_cost(const struct zb_timeline *timeline, enum zb_objective objective);

// Which microbatches a device keeps at its peak, in the order of their F: one entry a (stage,
// microbatch) whose F has started
// and whose W (or BW) has not ended at the first op where the peak is reached. `alive` has room for
// stages-on-device * microbatches; returns how many were written.
size_t zb_timeline_alive_at_peak(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                 int device, struct zb_op *alive);

#endif
