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

// Stage 0's split backwards, which nobody waits for: each becomes whole somewhere from where its B was to
// where its W was. Where its B was it always fits, because it keeps no more than B and W did; everywhere else
// it is put before an op that would not fit beside what it keeps. No place is best for every order, so all
// are tried.
enum whole_place {
  WHOLE_IN_GAPS, // in the first time that the device is idle for long enough, else where its W was
  WHOLE_LATE,    // where its W was
  WHOLE_EARLY,   // where its B was
  WHOLE_PLACES
};

struct whole {
  const struct zb_profile *profile;
  struct zb_schedule *schedule;
  const int64_t *start_ns; // [ops] of the schedule as it was
  enum whole_place place;
  size_t write; // ops of the device are rewritten in place: reading is never behind
  int64_t used_bytes;
  int64_t clock_ns;     // when the device is through with what was put, nothing of it earlier than it was
  size_t *order;        // [begun] positions of B, as they were
  int32_t *microbatch;  // [begun] of them
  size_t oldest, begun; // those before the oldest are put
  bool *gone;           // [microbatches] whether its whole backward is put
};

static void put(struct whole *w, struct zb_op op, int64_t start_ns) {
  w->schedule->ops[w->write++] = op;
  w->used_bytes += zb_op_memory(w->profile, op);
  w->clock_ns = zb_max(w->clock_ns, start_ns) + zb_op_time(w->profile, op);
}

static void put_whole(struct whole *w, int32_t microbatch, int64_t start_ns) {
  put(w, (struct zb_op){0, microbatch, ZB_BW}, start_ns);
  w->gone[microbatch] = true;
}

static bool waits(struct whole *w) {
  while (w->oldest < w->begun && w->gone[w->microbatch[w->oldest]]) w->oldest++;
  return w->oldest < w->begun;
}

static void put_oldest(struct whole *w) {
  put_whole(w, w->microbatch[w->oldest], w->start_ns[w->order[w->oldest]]);
}

// Whether the oldest one must, or may, come before `op`, which started at start_ns.
static bool comes_before(const struct whole *w, struct zb_op op, int device, int64_t start_ns) {
  if (w->used_bytes + zb_max(0, zb_op_memory(w->profile, op)) > w->profile->limit_bytes[device]) return true;
  const int64_t ready_ns = w->start_ns[w->order[w->oldest]];
  return w->place == WHOLE_IN_GAPS && zb_max(w->clock_ns, ready_ns) + w->profile->bw_ns[0] <= start_ns;
}

static void make_whole(struct whole *w) {
  struct zb_schedule *schedule = w->schedule;
  const int device = w->profile->device_of[0];
  const size_t end = schedule->first[device + 1];
  w->write = schedule->first[device];
  w->used_bytes = w->profile->static_bytes[device];
  for (size_t i = schedule->first[device]; i < end; i++) {
    const struct zb_op op = schedule->ops[i];
    if (op.stage == 0 && op.kind == ZB_B) {
      w->order[w->begun] = i;
      w->microbatch[w->begun++] = op.microbatch;
      if (w->place == WHOLE_EARLY) put_whole(w, op.microbatch, w->start_ns[i]);
    } else if (op.stage == 0 && op.kind == ZB_W) {
      if (!w->gone[op.microbatch]) put_whole(w, op.microbatch, w->start_ns[i] - w->profile->b_ns[0]);
    } else {
      while (waits(w) && comes_before(w, op, device, w->start_ns[i])) put_oldest(w);
      put(w, op, w->start_ns[i]);
    }
  }
  const size_t fewer = end - w->write, all = schedule->first[schedule->devices];
  for (size_t i = end; i < all; i++) schedule->ops[i - fewer] = schedule->ops[i];
  for (int d = device + 1; d <= schedule->devices; d++) schedule->first[d] -= fewer;
}

// One place tried on a copy; *better where its cost is below *cost_ns, which it then is.
static enum zb_status try_place(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                const struct zb_timeline *timeline, enum whole_place place,
                                enum zb_objective objective, int64_t *count, int64_t *cost_ns,
                                struct zb_schedule **better, struct zb_error *error) {
  const size_t m = (size_t)profile->microbatches;
  struct zb_timeline times = {0};
  struct zb_schedule *copy = NULL;
  struct whole w = {.profile = profile, .start_ns = timeline->start_ns, .place = place};
  w.order = malloc(m * sizeof *w.order);
  w.microbatch = malloc(m * sizeof *w.microbatch);
  w.gone = calloc(m, sizeof *w.gone);
  enum zb_status status = w.order && w.microbatch && w.gone ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = zb_schedule_copy(schedule, &copy, error);
  if (status == ZB_OK) {
    w.schedule = copy;
    make_whole(&w);
    *count = (int64_t)w.begun;
    status = zb_check_schedule(profile, copy, &times, error);
  }
  if (status == ZB_OK && zb_timeline_cost(&times, objective) < *cost_ns) {
    *cost_ns = zb_timeline_cost(&times, objective);
    zb_schedule_free(*better);
    *better = copy;
    copy = NULL;
  }
  zb_schedule_free(copy);
  zb_timeline_free(&times);
  free(w.order);
  free(w.microbatch);
  free(w.gone);
  return status;
}

static enum zb_status make_whole_best(const struct zb_profile *profile, const struct zb_timeline *timeline,
                                      enum zb_objective objective, int64_t *count,
                                      struct zb_schedule **schedule, struct zb_error *error) {
  struct zb_schedule *best = NULL;
  int64_t cost_ns = INT64_MAX;
  enum zb_status status = ZB_OK;
  for (int place = 0; place < WHOLE_PLACES && status == ZB_OK; place++)
    status = try_place(profile, *schedule, timeline, (enum whole_place)place, objective, count, &cost_ns,
                       &best, error);
  if (status == ZB_OK) {
    zb_schedule_free(*schedule);
    *schedule = best;
  } else {
    zb_schedule_free(best);
  }
  return status;
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
  int32_t *numbers = calloc((size_t)profile->microbatches, sizeof *numbers);
  enum zb_status status = numbers ? zb_schedule_copy(schedule, &copy, error) : zb_fail_memory(error);
  if (status == ZB_OK) {
    c.renumbered = renumber(profile, copy, numbers);
    status = zb_check_schedule(profile, copy, timeline, error);
  }
  if (status == ZB_OK) status = make_whole_best(profile, timeline, objective, &c.whole, &copy, error);
  if (status == ZB_OK && c.whole > 0) status = zb_check_schedule(profile, copy, timeline, error);
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
