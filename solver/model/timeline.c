// timeline.c - the sweep that times a schedule, its memory, and which microbatches a peak consists of.
//
// A table holds, for each (stage, microbatch), when its forward and its input gradient are ready;
// -1 is "not yet". A device whose next op needs an entry that is -1 is parked on that entry, and
// whoever writes the entry puts the device back on the stack. Each op is timed once and each wake is
// one op's doing, so the sweep is linear. It writes only inside its tables whatever the orders are, as
// long as stages and microbatches are in range.
#include "solver/model/timeline.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

static const char *const objective_words[ZB_OBJECTIVE_COUNT] = {
#define X(name, word) word,
    ZB_OBJECTIVE_TABLE(X)
#undef X
};

const char *zb_objective_word(enum zb_objective objective) { return objective_words[objective]; }

// What timing an op of one stage and kind takes, looked up once a sweep instead of once an op, so that the
// sweep has one branch for "may it start" and one for "does someone wait for it". Rows of `ready` are named
// by where they begin; an op that waits for nothing reads the last entry, which is always 0.
struct lane {
  int64_t duration, comm, bytes;
  size_t input, own, output;   // rows of `ready`
  size_t input_mask, own_mask; // 0: the row has one entry for all microbatches, else all ones
  int consumer;                // device whose op may wait for the output, -1: none
};

struct zb_timeline_scratch {
  size_t passes; // stages * microbatches
  size_t stages;
  struct lane *lanes; // [stages * 4]
  int64_t *ready;     // [2 * passes + 1] end of F, then end of B or BW, -1 until timed; then one 0
  size_t timed;       // ops so far
  size_t *next;       // [devices] position of the device's next op
  size_t *parked_on;  // [devices] the entry it waits for, NOWHERE while it can run
  int *stack;         // [devices] devices that can run
};

#define NOWHERE SIZE_MAX

static void scratch_free(struct zb_timeline_scratch *scratch) {
  if (!scratch) return;
  free(scratch->lanes);
  free(scratch->ready);
  free(scratch->next);
  free(scratch->parked_on);
  free(scratch->stack);
  free(scratch);
}

static struct zb_timeline_scratch *scratch_create(size_t devices, size_t stages, size_t passes) {
  struct zb_timeline_scratch *scratch = calloc(1, sizeof *scratch);
  if (!scratch) return NULL;
  scratch->passes = passes;
  scratch->stages = stages;
  scratch->lanes = malloc(4 * stages * sizeof *scratch->lanes);
  scratch->ready = malloc((2 * passes + 1) * sizeof *scratch->ready);
  scratch->next = malloc(devices * sizeof *scratch->next);
  scratch->parked_on = malloc(devices * sizeof *scratch->parked_on);
  scratch->stack = malloc(devices * sizeof *scratch->stack);
  if (scratch->lanes && scratch->ready && scratch->next && scratch->parked_on && scratch->stack)
    return scratch;
  scratch_free(scratch);
  return NULL;
}

void zb_timeline_free(struct zb_timeline *timeline) {
  free(timeline->start_ns);
  free(timeline->order);
  free(timeline->first_start_ns);
  free(timeline->last_end_ns);
  free(timeline->busy_ns);
  free(timeline->peak_bytes);
  scratch_free(timeline->scratch);
  *timeline = (struct zb_timeline){0};
}

static enum zb_status timeline_reserve(struct zb_timeline *timeline, size_t devices, size_t ops,
                                       size_t stages, size_t passes, struct zb_error *error) {
  if (timeline->scratch && (size_t)timeline->devices == devices && timeline->ops == ops &&
      timeline->scratch->stages == stages && timeline->scratch->passes == passes)
    return ZB_OK;
  zb_timeline_free(timeline);
  timeline->devices = (int)devices;
  timeline->ops = ops;
  timeline->start_ns = malloc((ops ? ops : 1) * sizeof(int64_t));
  timeline->order = malloc((ops ? ops : 1) * sizeof *timeline->order);
  timeline->first_start_ns = calloc(devices, sizeof(int64_t));
  timeline->last_end_ns = calloc(devices, sizeof(int64_t));
  timeline->busy_ns = calloc(devices, sizeof(int64_t));
  timeline->peak_bytes = calloc(devices, sizeof(int64_t));
  timeline->scratch = scratch_create(devices, stages, passes);
  if (timeline->start_ns && timeline->order && timeline->first_start_ns && timeline->last_end_ns &&
      timeline->busy_ns && timeline->peak_bytes && timeline->scratch)
    return ZB_OK;
  zb_timeline_free(timeline);
  return zb_fail_memory(error);
}

static void fill_lanes(const struct zb_profile *profile, struct zb_timeline_scratch *scratch) {
  const size_t microbatches = (size_t)profile->microbatches, always = 2 * scratch->passes;
  const int last = profile->stages - 1;
  for (int s = 0; s <= last; s++) {
    const size_t f = (size_t)s * microbatches, b = scratch->passes + f;
    for (int kind = ZB_F; kind <= ZB_BW; kind++) {
      const struct zb_op op = {s, 0, (enum zb_kind)kind};
      struct lane *lane = &scratch->lanes[4 * s + kind];
      *lane = (struct lane){.duration = zb_op_time(profile, op),
                            .bytes = zb_op_memory(profile, op),
                            .input = always,
                            .own = always,
                            .consumer = -1};
      if (kind == ZB_F) {
        lane->output = f;
        if (s > 0) {
          lane->input = f - microbatches;
          lane->comm = profile->comm_forward_ns[s - 1];
        }
        if (s < last) lane->consumer = profile->device_of[s + 1];
      } else if (kind == ZB_W) {
        lane->own = b;
      } else {
        lane->own = f;
        lane->output = b;
        if (s < last) {
          lane->input = b + microbatches;
          lane->comm = profile->comm_backward_ns[s];
        }
        if (s > 0) lane->consumer = profile->device_of[s - 1];
      }
      if (lane->input != always) lane->input_mask = SIZE_MAX;
      if (lane->own != always) lane->own_mask = SIZE_MAX;
    }
  }
}

// Runs device `d` until its order ends or an input is missing; devices it wakes go on the stack.
static size_t run_device(const struct zb_schedule *schedule, struct zb_timeline *timeline, int d,
                         size_t stacked) {
  struct zb_timeline_scratch *scratch = timeline->scratch;
  const struct lane *const lanes = scratch->lanes;
  int64_t *const ready = scratch->ready, *const start_ns = timeline->start_ns;
  uint32_t *order = timeline->order + scratch->timed;
  const size_t end = schedule->first[d + 1];
  size_t position = scratch->next[d];
  int64_t clock = timeline->last_end_ns[d], busy = timeline->busy_ns[d];
  scratch->parked_on[d] = NOWHERE;
  for (; position < end; position++) {
    const struct zb_op op = schedule->ops[position];
    const struct lane *lane = &lanes[4 * op.stage + (int)op.kind];
    const size_t j = (size_t)op.microbatch, input = lane->input + (j & lane->input_mask);
    const size_t own = lane->own + (j & lane->own_mask);
    const int64_t arrival = ready[input];
    if ((ready[own] | arrival) < 0) { // own comes first: it is this device's, so nobody can end that wait
      scratch->parked_on[d] = ready[own] < 0 ? own : input;
      break;
    }
    const int64_t start = zb_max(clock, arrival + lane->comm);
    start_ns[position] = start;
    *order++ = (uint32_t)position;
    clock = start + lane->duration;
    busy += lane->duration;
    if (op.kind == ZB_W) continue;
    const size_t output = lane->output + j;
    ready[output] = clock;
    if (lane->consumer >= 0 && scratch->parked_on[lane->consumer] == output) {
      scratch->parked_on[lane->consumer] = NOWHERE;
      scratch->stack[stacked++] = lane->consumer;
    }
  }
  scratch->timed = (size_t)(order - timeline->order);
  scratch->next[d] = position;
  timeline->last_end_ns[d] = clock;
  timeline->busy_ns[d] = busy;
  return stacked;
}

// The op that a parked device waits for, as the order of its device has it.
static struct zb_op awaited_op(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               const struct zb_timeline_scratch *scratch, int parked) {
  const bool forward = scratch->parked_on[parked] < scratch->passes;
  const size_t pass = scratch->parked_on[parked] - (forward ? 0 : scratch->passes);
  const size_t microbatches = (size_t)profile->microbatches;
  struct zb_op op = {(int32_t)(pass / microbatches), (int32_t)(pass % microbatches), forward ? ZB_F : ZB_B};
  const int device = profile->device_of[op.stage];
  for (size_t i = scratch->next[device]; i < schedule->first[device + 1]; i++) {
    const struct zb_op later = schedule->ops[i];
    if (later.stage == op.stage && later.microbatch == op.microbatch && !forward && later.kind == ZB_BW)
      op.kind = ZB_BW;
  }
  return op;
}

// Told from a device on the cycle, once around: as much of it as one line holds. Where an op is missing there
// may be none, and the way ends at the device that should have it.
static enum zb_status report_deadlock(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                      const struct zb_timeline *timeline, struct zb_error *error) {
  const struct zb_timeline_scratch *scratch = timeline->scratch;
  char line[sizeof error->text - 4], at[ZB_OP_TEXT], awaited[ZB_OP_TEXT];
  int start = 0;
  if (!error) return ZB_WRONG;
  while (scratch->next[start] == schedule->first[start + 1]) start++;
  for (int k = 0; k < profile->devices; k++) {
    const int next = profile->device_of[awaited_op(profile, schedule, scratch, start).stage];
    if (scratch->next[next] == schedule->first[next + 1]) break;
    start = next;
  }
  zb_op_print(schedule->ops[scratch->next[start]], at);
  size_t used = (size_t)snprintf(line, sizeof line, "device %d, position %zu, %s: waits for ever", start,
                                 scratch->next[start] - schedule->first[start], at);
  int device = start;
  bool whole = true;
  do {
    const struct zb_op op = awaited_op(profile, schedule, scratch, device);
    const int next = profile->device_of[op.stage];
    zb_op_print(op, awaited);
    const bool has = scratch->next[next] < schedule->first[next + 1];
    if (has) zb_op_print(schedule->ops[scratch->next[next]], at);
    const int length =
        has ? snprintf(line + used, sizeof line - used, "%s for %s, behind %s on device %d",
                       device == start ? "" : ", which waits", awaited, at, next)
            : snprintf(line + used, sizeof line - used, "%s for %s, which device %d does not have",
                       device == start ? "" : ", which waits", awaited, next);
    whole = length >= 0 && (size_t)length < sizeof line - used;
    if (whole) used += (size_t)length;
    line[used] = '\0';
    device = has ? next : start;
  } while (whole && device != start);
  return zb_fail(error, ZB_WRONG, "%s%s", line, whole ? "" : " ..");
}

static int64_t device_peak(const struct zb_profile *profile, const struct zb_schedule *schedule, int device) {
  int64_t kept = 0, peak = 0;
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    kept += zb_op_memory(profile, schedule->ops[i]);
    peak = zb_max(peak, kept);
  }
  return profile->static_bytes[device] + peak;
}

// The same without static, from the lanes.
static int64_t lane_peak(const struct lane *lanes, const struct zb_schedule *schedule, size_t device) {
  int64_t kept = 0, peak = 0;
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    kept += lanes[4 * schedule->ops[i].stage + (int)schedule->ops[i].kind].bytes;
    peak = zb_max(peak, kept);
  }
  return peak;
}

enum zb_status zb_timeline_compute(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                   struct zb_timeline *timeline, struct zb_error *error) {
  size_t devices = (size_t)profile->devices, microbatches = (size_t)profile->microbatches;
  size_t stages = (size_t)profile->stages, passes = stages * microbatches;
  enum zb_status status =
      timeline_reserve(timeline, devices, schedule->first[devices], stages, passes, error);
  if (status != ZB_OK) return status;
  struct zb_timeline_scratch *scratch = timeline->scratch;
  memset(scratch->ready, 0xff, 2 * passes * sizeof *scratch->ready);
  scratch->ready[2 * passes] = 0;
  fill_lanes(profile, scratch);
  memset(timeline->last_end_ns, 0, devices * sizeof(int64_t));
  memset(timeline->busy_ns, 0, devices * sizeof(int64_t));
  scratch->timed = 0;
  size_t stacked = 0;
  for (int d = profile->devices - 1; d >= 0; d--) {
    scratch->next[d] = schedule->first[d];
    scratch->parked_on[d] = NOWHERE;
    scratch->stack[stacked++] = d;
  }
  while (stacked > 0) {
    int d = scratch->stack[--stacked];
    stacked = run_device(schedule, timeline, d, stacked);
  }
  timeline->span_ns = timeline->makespan_ns = timeline->work_ns = 0;
  timeline->period_ns = -1;
  for (size_t d = 0; d < devices; d++) {
    if (scratch->next[d] < schedule->first[d + 1]) return report_deadlock(profile, schedule, timeline, error);
    const bool empty = schedule->first[d] == schedule->first[d + 1];
    timeline->first_start_ns[d] = empty ? 0 : timeline->start_ns[schedule->first[d]];
    timeline->span_ns = zb_max(timeline->span_ns, timeline->last_end_ns[d] - timeline->first_start_ns[d]);
    timeline->makespan_ns = zb_max(timeline->makespan_ns, timeline->last_end_ns[d]);
    timeline->work_ns = zb_max(timeline->work_ns, timeline->busy_ns[d]);
    timeline->peak_bytes[d] = profile->static_bytes[d] + lane_peak(scratch->lanes, schedule, d);
  }
  return ZB_OK;
}

int64_t zb_timeline_cost(const struct zb_timeline *timeline, enum zb_objective objective) {
  const int64_t costs[ZB_OBJECTIVE_COUNT] = {timeline->span_ns, timeline->makespan_ns, timeline->period_ns};
  return costs[objective];
}

size_t zb_timeline_alive_at_peak(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                 int device, struct zb_op *alive) {
  int64_t peak = device_peak(profile, schedule, device) - profile->static_bytes[device], kept = 0;
  size_t count = 0;
  if (peak == 0) return 0;
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    const struct zb_op op = schedule->ops[i];
    kept += zb_op_memory(profile, op);
    if (op.kind == ZB_F) alive[count++] = op;
    if (kept == peak) return count;
    if (op.kind == ZB_B) continue;
    // W and BW give the pass's last byte back: it leaves the list, which stays in order.
    size_t left = 0;
    for (size_t k = 0; op.kind != ZB_F && k < count; k++)
      if (alive[k].stage != op.stage || alive[k].microbatch != op.microbatch) alive[left++] = alive[k];
    if (op.kind != ZB_F) count = left;
  }
  return count;
}
