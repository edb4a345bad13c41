// torch_normal.c - renumber, then make stage 0's backwards whole, then merge pairs until none is left.
#include "solver/io/torch_normal.h"

#include <stdbool.h>
#include <stdlib.h>

#include "solver/model/check.h"
#include "solver/model/number.h"

// By the order in which the last stage runs its forwards.
static int64_t renumber(const struct zb_profile *profile, struct zb_schedule *schedule, int32_t *number) {
  const int last = profile->stages - 1, device = profile->device_of[last];
  int64_t changed = 0;
  int32_t next = 0;
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    const struct zb_op *op = &schedule->ops[i];
    if (op->stage != last || op->kind != ZB_F) continue;
    changed += op->microbatch != next;
    number[op->microbatch] = next++;
  }
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++)
    schedule->ops[i].microbatch = number[schedule->ops[i].microbatch];
  return changed;
}

// Stage 0's split backwards, which nobody waits for: each becomes whole where its W was, so that nothing else
// comes later; or earlier, before the first op that would not fit beside what it keeps. Where its B was it
// always fits, because it keeps no more than B and W did.
struct whole {
  const struct zb_profile *profile;
  struct zb_schedule *schedule;
  size_t write; // ops of the device are rewritten in place: reading is never behind
  int64_t used_bytes;
  const int32_t *order; // [begun] microbatches by their B
  size_t oldest, begun;
  const int32_t *gone; // [microbatches] whether its whole backward has been put
};

static void put(struct whole *w, struct zb_op op) {
  w->schedule->ops[w->write++] = op;
  w->used_bytes += zb_op_memory(w->profile, op);
}

static bool waits(struct whole *w) {
  while (w->oldest < w->begun && w->gone[w->order[w->oldest]]) w->oldest++;
  return w->oldest < w->begun;
}

static bool fits(const struct whole *w, struct zb_op op, int device) {
  return w->used_bytes + zb_max(0, zb_op_memory(w->profile, op)) <= w->profile->limit_bytes[device];
}

static int64_t make_whole(const struct zb_profile *profile, struct zb_schedule *schedule, int32_t *order,
                          int32_t *gone) {
  const int device = profile->device_of[0];
  const size_t begin = schedule->first[device], end = schedule->first[device + 1];
  struct whole w = {profile, schedule, begin, profile->static_bytes[device], order, 0, 0, gone};
  for (size_t i = begin; i < end; i++) {
    const struct zb_op op = schedule->ops[i];
    if (op.stage == 0 && op.kind == ZB_B) {
      order[w.begun++] = op.microbatch;
      continue;
    }
    if (op.stage == 0 && op.kind == ZB_W) {
      if (!gone[op.microbatch]) put(&w, (struct zb_op){0, op.microbatch, ZB_BW});
      gone[op.microbatch] = 1;
      continue;
    }
    while (!fits(&w, op, device) && waits(&w)) {
      const int32_t oldest = order[w.oldest++];
      put(&w, (struct zb_op){0, oldest, ZB_BW});
      gone[oldest] = 1;
    }
    put(&w, op);
  }
  const size_t fewer = end - w.write, all = schedule->first[schedule->devices];
  for (size_t i = end; i < all; i++) schedule->ops[i - fewer] = schedule->ops[i];
  for (int d = device + 1; d <= schedule->devices; d++) schedule->first[d] -= fewer;
  return (int64_t)w.begun;
}

static bool is_pair(const struct zb_schedule *schedule, size_t i, size_t end) {
  const struct zb_op *ops = schedule->ops;
  return i + 1 < end && ops[i].kind == ZB_B && ops[i + 1].kind == ZB_W && ops[i].stage == ops[i + 1].stage &&
         ops[i].microbatch == ops[i + 1].microbatch;
}

// When each input gradient is used, [stages * microbatches]: the start of the backward of the stage before.
static void note_starts(const struct zb_profile *profile, const struct zb_schedule *schedule,
                        const struct zb_timeline *timeline, int64_t *backward_ns) {
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++) {
    const struct zb_op op = schedule->ops[i];
    if (op.kind == ZB_B || op.kind == ZB_BW)
      backward_ns[(int64_t)op.stage * profile->microbatches + op.microbatch] = timeline->start_ns[i];
  }
}

// Merges every pair whose gradient, ready only at the end of the whole pass, still comes in time. No op
// starts later than in `timeline`, so all of them can be merged at once.
static int64_t merge(const struct zb_profile *profile, struct zb_schedule *schedule,
                     const struct zb_timeline *timeline, const int64_t *backward_ns) {
  size_t write = 0, begin = 0;
  int64_t merged = 0;
  for (int d = 0; d < schedule->devices; d++) {
    const size_t end = schedule->first[d + 1];
    for (size_t i = begin; i < end; i++) {
      struct zb_op op = schedule->ops[i];
      if (is_pair(schedule, i, end)) {
        const int s = op.stage;
        const int64_t ready_ns = timeline->start_ns[i] + profile->bw_ns[s];
        const int64_t *used_ns = &backward_ns[(int64_t)(s - 1) * profile->microbatches + op.microbatch];
        if (profile->bw_ns[s] <= profile->b_ns[s] + profile->w_ns[s] &&
            (s == 0 || ready_ns + profile->comm_backward_ns[s - 1] <= *used_ns)) {
          op.kind = ZB_BW;
          merged++;
          i++;
        }
      }
      schedule->ops[write++] = op;
    }
    begin = end;
    schedule->first[d + 1] = write;
  }
  return merged;
}

// A period is not decided by these start times alone: a round of merges that raises the cost is taken back.
static enum zb_status merge_all(const struct zb_profile *profile, enum zb_objective objective,
                                struct zb_schedule **schedule, struct zb_timeline *timeline, int64_t *merged,
                                struct zb_error *error) {
  struct zb_schedule *next = NULL;
  struct zb_timeline times = {0};
  int64_t *backward_ns = calloc((size_t)profile->stages * (size_t)profile->microbatches, sizeof *backward_ns);
  enum zb_status status = backward_ns ? ZB_OK : zb_fail_memory(error);
  while (status == ZB_OK) {
    note_starts(profile, *schedule, timeline, backward_ns);
    status = zb_schedule_copy(*schedule, &next, error);
    if (status != ZB_OK) break;
    const int64_t round = merge(profile, next, timeline, backward_ns);
    if (round == 0) break;
    status = zb_check_schedule(profile, next, &times, error);
    if (status != ZB_OK || zb_timeline_cost(&times, objective) > zb_timeline_cost(timeline, objective)) break;
    *merged += round;
    zb_schedule_free(*schedule);
    *schedule = next;
    next = NULL;
    const struct zb_timeline swap = *timeline;
    *timeline = times;
    times = swap;
  }
  free(backward_ns);
  zb_schedule_free(next);
  zb_timeline_free(&times);
  return status;
}

enum zb_status zb_torch_normalise(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                  enum zb_objective objective, struct zb_torch_changes *changes,
                                  struct zb_schedule **normal, struct zb_timeline *timeline,
                                  struct zb_error *error) {
  struct zb_torch_changes c = {0};
  struct zb_schedule *copy = NULL;
  const size_t m = (size_t)profile->microbatches;
  int32_t *numbers = calloc(2 * m, sizeof *numbers);
  enum zb_status status = numbers ? zb_schedule_copy(schedule, &copy, error) : zb_fail_memory(error);
  if (status == ZB_OK) {
    c.renumbered = renumber(profile, copy, numbers);
    c.whole = make_whole(profile, copy, numbers, numbers + m);
    status = zb_check_schedule(profile, copy, timeline, error);
  }
  if (status == ZB_OK) status = merge_all(profile, objective, &copy, timeline, &c.merged, error);
  free(numbers);
  if (status != ZB_OK) {
    zb_schedule_free(copy);
    return status;
  }
  *changes = c;
  *normal = copy;
  return ZB_OK;
}
