// chunked.c - profile to ticks, and the constants of a placement that propagation needs.
#include "solver/exact/chunked.h"

#include <stdlib.h>
#include <string.h>

const char *const zb_word_fluid = "fluid-w";

// Least ticks from the end of F on stage `from` to the start of F on stage `to` behind it.
static int64_t trip_down(const struct zb_chunked *chunked, int from, int to) {
  int64_t ticks = 0;
  for (int s = from + 1; s <= to; s++) {
    ticks += chunked->stage[s].forward_comm + (s < to ? chunked->stage[s].f : 0);
  }
  return ticks;
}

// .. from the gradient of stage `from` to the start of B on stage `to` before it.
static int64_t trip_up(const struct zb_chunked *chunked, int from, int to) {
  int64_t ticks = 0;
  for (int s = from; s > to; s--) {
    ticks += chunked->stage[s].backward_comm + (s < from ? chunked->stage[s].gradient : 0);
  }
  return ticks;
}

static void fill_lags(struct zb_chunked *chunked) {
  int64_t round = 0; // from the end of F of a stage to the start of its B
  for (int s = chunked->stages - 1; s >= 0; s--) {
    struct zb_stage *at = &chunked->stage[s];
    const struct zb_chunked_device *device = &chunked->device[at->device];
    if (s + 1 < chunked->stages) {
      const struct zb_stage *next = at + 1;
      round += next->forward_comm + next->f + next->gradient + next->backward_comm;
    }
    const bool last = at->chunk == device->chunks - 1;
    at->lag_forward = last ? round : trip_down(chunked, s, device->stage[at->chunk + 1]);
    at->lag_backward = last ? 0 : trip_up(chunked, device->stage[at->chunk + 1], s);
  }
}

static void fill_starts(struct zb_chunked *chunked) {
  int64_t lead = 0;
  for (int s = 0; s < chunked->stages; s++) {
    const struct zb_stage *at = &chunked->stage[s];
    struct zb_chunked_device *device = &chunked->device[at->device];
    lead += at->forward_comm;
    if (at->chunk == 0) {
      const struct zb_stage *feeder = s > 0 ? at - 1 : NULL;
      device->feeder = s - 1;
      device->parent = feeder ? feeder->device : -1;
      device->prompt = !feeder || feeder->chunk == 0;
      device->pinned = device->prompt && (!feeder || chunked->device[feeder->device].pinned);
      device->lead = lead;
      chunked->open_offsets |= !device->prompt;
    }
    lead += at->f;
  }
}

// All W of a device are one class where it does not matter which of them runs, or how much of a BW they are.
static bool weights_alike(const struct zb_chunked *chunked, const struct zb_chunked_device *device) {
  for (int c = 1; c < device->chunks; c++) {
    const struct zb_stage *first = &chunked->stage[device->stage[0]];
    const struct zb_stage *other = &chunked->stage[device->stage[c]];
    if (other->w != first->w || other->w_bytes != first->w_bytes ||
        other->backward - other->gradient != first->backward - first->gradient)
      return false;
  }
  return true;
}

static void fill_classes(struct zb_chunked *chunked, struct zb_chunked_device *device) {
  const int v = device->chunks, m = chunked->microbatches;
  device->weights_merged = weights_alike(chunked, device);
  device->classes = 2 * v + (device->weights_merged ? 1 : v);
  for (int c = 0; c < v; c++) {
    const struct zb_stage *at = &chunked->stage[device->stage[c]];
    const int s = device->stage[c];
    device->class[zb_class_of_b(device, c)] = (struct zb_op_class){ZB_B, c, s, m, at->b, at->b_bytes};
    device->class[zb_class_of_f(device, c)] = (struct zb_op_class){ZB_F, c, s, m, at->f, at->f_bytes};
    if (!device->weights_merged)
      device->class[zb_class_of_w(device, c)] = (struct zb_op_class){ZB_W, c, s, m, at->w, at->w_bytes};
  }
  if (device->weights_merged) {
    const struct zb_stage *at = &chunked->stage[device->stage[0]];
    device->class[2 * v] = (struct zb_op_class){ZB_W, -1, device->stage[0], v * m, at->w, at->w_bytes};
  }
}

static void fill_stages(struct zb_chunked *chunked, const struct zb_profile *profile, int64_t tick) {
  for (int s = 0; s < chunked->stages; s++) {
    struct zb_stage *at = &chunked->stage[s];
    at->device = profile->device_of[s];
    at->chunk = profile->chunk_of[s];
    at->f = profile->f_ns[s] / tick;
    at->b = profile->b_ns[s] / tick;
    at->w = profile->w_ns[s] / tick;
    at->bw = profile->bw_ns[s] / tick;
    at->f_bytes = profile->f_bytes[s];
    at->b_bytes = profile->b_bytes[s];
    at->w_bytes = profile->w_bytes[s];
    const bool limited = profile->limit_bytes[at->device] != ZB_NO_LIMIT;
    at->fused = at->bw < at->b + at->w || (at->b_bytes > 0 && limited);
    at->backward = at->fused && at->bw < at->b + at->w ? at->bw : at->b + at->w;
    at->gradient = at->fused && at->bw < at->b ? at->bw : at->b;
    if (s > 0) {
      at->forward_comm = profile->comm_forward_ns[s - 1] / tick;
      at->backward_comm = profile->comm_backward_ns[s - 1] / tick;
    }
  }
}

enum zb_status zb_chunked_create(const struct zb_profile *profile, int64_t tick_ns,
                                 struct zb_chunked **result, struct zb_error *error) {
  if (3 * profile->chunks > ZB_MOST_CLASSES) {
    return zb_fail(error, ZB_UNKNOWN, "window: at most %d stages a device", ZB_MOST_CLASSES / 3);
  }
  struct zb_chunked *chunked = calloc(1, sizeof *chunked);
  if (!chunked) return zb_fail_memory(error);
  chunked->devices = profile->devices;
  chunked->stages = profile->stages;
  chunked->microbatches = profile->microbatches;
  chunked->stage = calloc((size_t)profile->stages, sizeof *chunked->stage);
  chunked->device = calloc((size_t)profile->devices, sizeof *chunked->device);
  chunked->stage_at = calloc((size_t)profile->stages, sizeof *chunked->stage_at);
  if (!chunked->stage || !chunked->device || !chunked->stage_at) {
    zb_chunked_free(chunked);
    return zb_fail_memory(error);
  }
  memcpy(chunked->stage_at, profile->stage_at, (size_t)profile->stages * sizeof *chunked->stage_at);
  fill_stages(chunked, profile, tick_ns);
  for (int d = 0; d < chunked->devices; d++) {
    struct zb_chunked_device *device = &chunked->device[d];
    device->chunks = profile->chunks;
    device->stage = &chunked->stage_at[d * profile->chunks];
    device->room_bytes = profile->limit_bytes[d] == ZB_NO_LIMIT
                             ? ZB_NO_LIMIT
                             : profile->limit_bytes[d] - profile->static_bytes[d];
    fill_classes(chunked, device);
  }
  fill_lags(chunked);
  fill_starts(chunked);
  *result = chunked;
  return ZB_OK;
}

void zb_chunked_free(struct zb_chunked *chunked) {
  if (!chunked) return;
  free(chunked->stage);
  free(chunked->device);
  free(chunked->stage_at);
  free(chunked);
}

void zb_chunked_allow_fused(struct zb_chunked *chunked) {
  for (int s = 0; s < chunked->stages; s++) chunked->stage[s].fused = true;
}
