// timeline.c - the sweep that times a schedule, its memory, and which microbatches a peak consists of.
//
// Two tables hold, for each (stage, microbatch), when its forward and its input gradient are ready;
// -1 is "not yet". A device whose next op needs an entry that is -1 is parked on that entry, and
// whoever writes the entry puts the device back on the stack. Each op is timed once and each wake is
// one op's doing, so the sweep is linear. It writes only inside its tables whatever the orders are, as
// long as stages and microbatches are in range.
#include "solver/model/timeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

static const char *const objective_words[ZB_OBJECTIVE_COUNT] = {
#define X(name, word) word,
    ZB_OBJECTIVE_TABLE(X)
#undef X
};

const char *zb_objective_word(enum zb_objective objective) { return objective_words[objective]; }

struct zb_timeline_scratch {
  size_t passes;              // stages * microbatches
  int64_t *f_ready, *b_ready; // [passes] end of F, end of B or BW; -1 until timed
  size_t timed;               // ops so far
  size_t *next;               // [devices] position of the device's next op
  const int64_t **parked_on;  // [devices] the entry it waits for, NULL while it can run
  int *stack;                 // [devices] devices that can run
};

static void scratch_free(struct zb_timeline_scratch *scratch) {
  if (!scratch) return;
  free(scratch->f_ready);
  free(scratch->b_ready);
  free(scratch->next);
  free((void *)scratch->parked_on);
  free(scratch->stack);
  free(scratch);
}

static struct zb_timeline_scratch *scratch_create(size_t devices, size_t passes) {
  struct zb_timeline_scratch *scratch = calloc(1, sizeof *scratch);
  if (!scratch) return NULL;
  scratch->passes = passes;
  scratch->f_ready = malloc(passes * sizeof *scratch->f_ready);
  scratch->b_ready = malloc(passes * sizeof *scratch->b_ready);
  scratch->next = malloc(devices * sizeof *scratch->next);
  scratch->parked_on = malloc(devices * sizeof *scratch->parked_on);
  scratch->stack = malloc(devices * sizeof *scratch->stack);
  if (scratch->f_ready && scratch->b_ready && scratch->next && scratch->parked_on && scratch->stack)
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
                                       size_t passes, struct zb_error *error) {
  if (timeline->scratch && (size_t)timeline->devices == devices && timeline->ops == ops &&
      timeline->scratch->passes == passes)
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
  timeline->scratch = scratch_create(devices, passes);
  if (timeline->start_ns && timeline->order && timeline->first_start_ns && timeline->last_end_ns &&
      timeline->busy_ns && timeline->peak_bytes && timeline->scratch)
    return ZB_OK;
  zb_timeline_free(timeline);
  return zb_fail_memory(error);
}

// Runs device `d` until its order ends or an input is missing; devices it wakes go on the stack.
static size_t run_device(const struct zb_profile *profile, const struct zb_schedule *schedule,
                         struct zb_timeline *timeline, int d, size_t stacked) {
  struct zb_timeline_scratch *scratch = timeline->scratch;
  size_t microbatches = (size_t)profile->microbatches, position = scratch->next[d];
  const size_t end = schedule->first[d + 1];
  const int last_stage = profile->stages - 1;
  int64_t clock = timeline->last_end_ns[d];
  scratch->parked_on[d] = NULL;
  for (; position < end; position++) {
    const struct zb_op op = schedule->ops[position];
    const size_t pass = (size_t)op.stage * microbatches + (size_t)op.microbatch;
    const int64_t *input = NULL, *own = NULL; // from the neighbour, and from this stage itself
    int64_t comm = 0, *output = NULL, duration;
    int consumer = -1;
    if (op.kind == ZB_F) {
      duration = profile->f_ns[op.stage];
      output = &scratch->f_ready[pass];
      if (op.stage > 0) {
        input = output - microbatches;
        comm = profile->comm_forward_ns[op.stage - 1];
      }
      if (op.stage < last_stage) consumer = profile->device_of[op.stage + 1];
    } else if (op.kind == ZB_W) {
      duration = profile->w_ns[op.stage];
      own = &scratch->b_ready[pass];
    } else {
      duration = op.kind == ZB_B ? profile->b_ns[op.stage] : profile->bw_ns[op.stage];
      own = &scratch->f_ready[pass];
      output = &scratch->b_ready[pass];
      if (op.stage < last_stage) {
        input = output + microbatches;
        comm = profile->comm_backward_ns[op.stage];
      }
      if (op.stage > 0) consumer = profile->device_of[op.stage - 1];
    }
    if (own && *own < 0) { // only this device can write it, and it is past it: parked for ever
      scratch->parked_on[d] = own;
      break;
    }
    int64_t start = clock;
    if (input) {
      if (*input < 0) {
        scratch->parked_on[d] = input;
        break;
      }
      start = zb_max(start, *input + comm);
    }
    if (position == schedule->first[d]) timeline->first_start_ns[d] = start;
    timeline->start_ns[position] = start;
    timeline->order[scratch->timed++] = (uint32_t)position;
    clock = start + duration;
    if (output) *output = clock;
    if (consumer >= 0 && scratch->parked_on[consumer] == output) {
      scratch->parked_on[consumer] = NULL;
      if (consumer != d) scratch->stack[stacked++] = consumer;
    }
    timeline->busy_ns[d] += duration;
  }
  scratch->next[d] = position;
  timeline->last_end_ns[d] = clock;
  return stacked;
}

static enum zb_status report_deadlock(const struct zb_schedule *schedule, const struct zb_timeline *timeline,
                                      size_t microbatches, struct zb_error *error) {
  const struct zb_timeline_scratch *scratch = timeline->scratch;
  int d = 0;
  while (scratch->next[d] == schedule->first[d + 1]) d++;
  char op[ZB_OP_TEXT], missing[ZB_OP_TEXT];
  const int64_t *entry = scratch->parked_on[d];
  bool forward = entry >= scratch->f_ready && entry < scratch->f_ready + scratch->passes;
  size_t pass = (size_t)(entry - (forward ? scratch->f_ready : scratch->b_ready));
  zb_op_print(schedule->ops[scratch->next[d]], op);
  zb_op_print(
      (struct zb_op){(int32_t)(pass / microbatches), (int32_t)(pass % microbatches), forward ? ZB_F : ZB_B},
      missing);
  return zb_fail(error, ZB_WRONG, "device %d, position %zu, %s: waits for ever for %s", d,
                 scratch->next[d] - schedule->first[d], op, missing);
}

static int64_t device_peak(const struct zb_profile *profile, const struct zb_schedule *schedule, int device) {
  int64_t kept = 0, peak = 0;
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    kept += zb_op_memory(profile, schedule->ops[i]);
    peak = zb_max(peak, kept);
  }
  return profile->static_bytes[device] + peak;
}

enum zb_status zb_timeline_compute(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                   struct zb_timeline *timeline, struct zb_error *error) {
  size_t devices = (size_t)profile->devices, microbatches = (size_t)profile->microbatches;
  size_t passes = (size_t)profile->stages * microbatches;
  enum zb_status status = timeline_reserve(timeline, devices, schedule->first[devices], passes, error);
  if (status != ZB_OK) return status;
  struct zb_timeline_scratch *scratch = timeline->scratch;
  memset(scratch->f_ready, 0xff, passes * sizeof *scratch->f_ready);
  memset(scratch->b_ready, 0xff, passes * sizeof *scratch->b_ready);
  memset(timeline->first_start_ns, 0, devices * sizeof(int64_t));
  memset(timeline->last_end_ns, 0, devices * sizeof(int64_t));
  memset(timeline->busy_ns, 0, devices * sizeof(int64_t));
  scratch->timed = 0;
  size_t stacked = 0;
  for (int d = profile->devices - 1; d >= 0; d--) {
    scratch->next[d] = schedule->first[d];
    scratch->parked_on[d] = NULL;
    scratch->stack[stacked++] = d;
  }
  while (stacked > 0) {
    int d = scratch->stack[--stacked];
    stacked = run_device(profile, schedule, timeline, d, stacked);
  }
  timeline->span_ns = timeline->makespan_ns = timeline->work_ns = 0;
  timeline->period_ns = -1;
  for (size_t d = 0; d < devices; d++) {
    if (scratch->next[d] < schedule->first[d + 1])
      return report_deadlock(schedule, timeline, microbatches, error);
    timeline->span_ns = zb_max(timeline->span_ns, timeline->last_end_ns[d] - timeline->first_start_ns[d]);
    timeline->makespan_ns = zb_max(timeline->makespan_ns, timeline->last_end_ns[d]);
    timeline->work_ns = zb_max(timeline->work_ns, timeline->busy_ns[d]);
    timeline->peak_bytes[d] = device_peak(profile, schedule, (int)d);
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
