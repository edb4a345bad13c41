// period.c - the exact steady period of an order: a maximum cycle ratio over the wrap-around graph.
//
// Repeating an order every T adds, for each device, the condition that its first op starts no earlier
// than its last op's end minus T. T is too small exactly when these conditions feed back on themselves
// for ever: a cycle of devices, each one's last op reached by a longest path from the first op of the one
// before it, whose total length exceeds T times the number of devices on it.
//
// So: relax the conditions as Bellman and Ford would, one linear sweep a round, remembering for each
// device whose first op its longest path came from. When those memories close a cycle, T is at least the
// cycle's mean; raise T to it (rounded up, since only whole T count) and go on. When nothing moves, T is
// the answer. T starts at the busiest device's work, itself such a cycle, and only ever moves to
// means of cycles, so it never passes the answer.
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"
#include "solver/model/timeline.h"

struct wrap {
  const struct zb_profile *profile;
  const struct zb_schedule *schedule;
  const uint32_t *order; // the timeline's: every op after its predecessors
  int64_t *ready[2];     // [passes] end of F; end of B or BW
  int *origin[2];        // [passes] device whose first op the longest path to that end starts at
  int64_t *release;      // [devices] earliest start of the device's first op
  int64_t *clock;        // [devices] end of its last op so far
  int *clock_origin;     // [devices]
  int *parent;           // [devices] who forced `release` last, -1: nobody
  int64_t *length;       // [devices] of the path that did
  int *mark;             // [devices]
};

static void time_op(struct wrap *w, size_t position) {
  const struct zb_profile *p = w->profile;
  const struct zb_op op = w->schedule->ops[position];
  int d = p->device_of[op.stage];
  size_t microbatches = (size_t)p->microbatches,
         pass = (size_t)op.stage * microbatches + (size_t)op.microbatch;
  int64_t start = w->clock[d], arrival = INT64_MIN;
  int origin = w->clock_origin[d], arrival_origin = origin;
  if (op.kind == ZB_F && op.stage > 0) {
    arrival = w->ready[0][pass - microbatches] + p->comm_forward_ns[op.stage - 1];
    arrival_origin = w->origin[0][pass - microbatches];
  } else if ((op.kind == ZB_B || op.kind == ZB_BW) && op.stage < p->stages - 1) {
    arrival = w->ready[1][pass + microbatches] + p->comm_backward_ns[op.stage];
    arrival_origin = w->origin[1][pass + microbatches];
  }
  if (arrival > start) {
    start = arrival;
    origin = arrival_origin;
  }
  int64_t end = start + zb_op_time(p, op);
  w->clock[d] = end;
  w->clock_origin[d] = origin;
  if (op.kind != ZB_W) {
    int which = op.kind != ZB_F;
    w->ready[which][pass] = end;
    w->origin[which][pass] = origin;
  }
}

// One sweep under the present releases, then one round of the wrap-around conditions. Returns
// whether any release moved.
static bool relax(struct wrap *w, int64_t period) {
  int devices = w->profile->devices;
  for (int d = 0; d < devices; d++) {
    w->clock[d] = w->release[d];
    w->clock_origin[d] = d;
  }
  size_t ops = w->schedule->first[devices];
  for (size_t i = 0; i < ops; i++) time_op(w, w->order[i]);
  bool moved = false;
  for (int d = 0; d < devices; d++) {
    if (w->clock[d] - period <= w->release[d]) continue;
    w->parent[d] = w->clock_origin[d];
    w->length[d] = w->clock[d] - w->release[w->parent[d]];
    moved = true;
  }
  // All lengths belong to this sweep's releases, so releases move only after all were read.
  for (int d = 0; d < devices; d++) w->release[d] = zb_max(w->release[d], w->clock[d] - period);
  return moved;
}

// The largest mean, rounded up, of the cycles that the parents close; 0 if there is none.
static int64_t parent_cycle_mean(struct wrap *w) {
  int devices = w->profile->devices;
  int64_t best = 0;
  memset(w->mark, 0, (size_t)devices * sizeof *w->mark);
  for (int d = 0; d < devices; d++) {
    int at = d;
    while (at >= 0 && w->mark[at] == 0) {
      w->mark[at] = d + 1;
      at = w->parent[at];
    }
    if (at < 0 || w->mark[at] != d + 1) continue;
    int64_t total = 0, count = 0;
    int c = at;
    do {
      total += w->length[c];
      count++;
      c = w->parent[c];
    } while (c != at);
    best = zb_max(best, (total + count - 1) / count);
  }
  return best;
}

static int64_t least_period(struct wrap *w, int64_t period) {
  int devices = w->profile->devices;
  for (int d = 0; d < devices; d++) w->parent[d] = -1;
  while (relax(w, period)) {
    int64_t mean = parent_cycle_mean(w);
    if (mean <= period) continue;
    period = mean;
    for (int d = 0; d < devices; d++) w->parent[d] = -1;
  }
  return period;
}

enum zb_status zb_timeline_period(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                  struct zb_timeline *timeline, struct zb_error *error) {
  size_t devices = (size_t)profile->devices, passes = (size_t)profile->stages * (size_t)profile->microbatches;
  int64_t *times = malloc((2 * passes + 3 * devices) * sizeof *times);
  int *indexes = malloc((2 * passes + 3 * devices) * sizeof *indexes);
  enum zb_status status = ZB_OK;
  if (!times || !indexes) {
    status = zb_fail_memory(error);
  } else {
    struct wrap w = {.profile = profile, .schedule = schedule, .order = timeline->order};
    w.ready[0] = times;
    w.ready[1] = times + passes;
    w.release = times + 2 * passes;
    w.clock = w.release + devices;
    w.length = w.clock + devices;
    w.origin[0] = indexes;
    w.origin[1] = indexes + passes;
    w.clock_origin = indexes + 2 * passes;
    w.parent = w.clock_origin + devices;
    w.mark = w.parent + devices;
    memcpy(w.release, timeline->first_start_ns, devices * sizeof *w.release);
    timeline->period_ns = least_period(&w, timeline->work_ns);
  }
  free(times);
  free(indexes);
  return status;
}
