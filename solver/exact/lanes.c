// lanes.c - lanes from a chain or from several stages a device.
#include "solver/exact/lanes.h"

#include <stdlib.h>

#include "solver/model/number.h"

enum { NONE = -1 };

static const struct zb_lane nothing = {.source = NONE, .target = NONE, .before = {NONE, NONE}};

static void fill_chain(const struct zb_chain *chain, struct zb_lanes *lanes) {
  const int p = chain->devices, m = chain->microbatches;
  for (int d = 0; d < p; d++) {
    const struct zb_chain_device *device = &chain->device[d];
    struct zb_lane *const lane = &lanes->lane[3 * (size_t)d];
    for (int kind = ZB_F; kind <= ZB_W; kind++) {
      lane[kind] = nothing;
      lane[kind].device = d;
      lane[kind].kind = (enum zb_kind)kind;
      lane[kind].count = m;
      lane[kind].letter = (unsigned char)kind;
    }
    lane[ZB_F].time = device->f;
    lane[ZB_B].time = device->b;
    lane[ZB_W].time = device->w;
    lane[ZB_F].bytes = device->f_bytes;
    lane[ZB_B].bytes = device->b_bytes;
    lane[ZB_W].bytes = device->w_bytes;
    lane[ZB_B].before[0] = 3 * d + ZB_F;
    lane[ZB_W].before[0] = 3 * d + ZB_B;
    if (d > 0) {
      lane[ZB_F].source = 3 * (d - 1) + ZB_F;
      lane[ZB_F].delay = device->forward_comm;
      lane[ZB_B].target = 3 * (d - 1) + ZB_B;
    }
    if (d + 1 < p) {
      lane[ZB_F].target = 3 * (d + 1) + ZB_F;
      lane[ZB_B].source = 3 * (d + 1) + ZB_B;
      lane[ZB_B].delay = device[1].backward_comm;
    }
    lanes->first[d] = 3 * d;
    lanes->first_weight[d] = 3 * d + ZB_W;
    lanes->room_bytes[d] = device->room_bytes;
    lanes->flow[d] = 3 * d + ZB_F;
    lanes->flow[2 * p - 1 - d] = 3 * d + ZB_B;
  }
  lanes->first[p] = 3 * p;
  lanes->flows = 2 * p;
}

static int lane_of(const struct zb_chunked *chunked, const struct zb_lanes *lanes, int stage,
                   enum zb_kind kind) {
  const struct zb_stage *at = &chunked->stage[stage];
  const struct zb_chunked_device *device = &chunked->device[at->device];
  return lanes->first[at->device] +
         (kind == ZB_F ? zb_class_of_f(device, at->chunk) : zb_class_of_b(device, at->chunk));
}

// What an F or B waits for: the op before it along the pipe, on its device or another.
static void link_lane(const struct zb_chunked *chunked, struct zb_lanes *lanes, int stage,
                      enum zb_kind kind) {
  const int n = chunked->stages, number = lane_of(chunked, lanes, stage, kind);
  struct zb_lane *const lane = &lanes->lane[number];
  if (kind == ZB_B) lane->before[0] = lane_of(chunked, lanes, stage, ZB_F);
  const int other = kind == ZB_F ? stage - 1 : stage + 1;
  if (other < 0 || other == n) return;
  const int from = lane_of(chunked, lanes, other, kind);
  if (chunked->stage[other].device == lane->device) {
    lane->before[1] = from;
    return;
  }
  lane->source = from;
  lanes->lane[from].target = number;
  lane->delay = kind == ZB_F ? chunked->stage[stage].forward_comm : chunked->stage[other].backward_comm;
}

static void fill_chunked(const struct zb_chunked *chunked, struct zb_lanes *lanes) {
  int count = 0;
  for (int d = 0; d < chunked->devices; d++) {
    const struct zb_chunked_device *device = &chunked->device[d];
    lanes->first[d] = count;
    lanes->first_weight[d] = count + 2 * device->chunks;
    lanes->room_bytes[d] = device->room_bytes;
    for (int i = 0; i < device->classes; i++) {
      const struct zb_op_class *class = &device->class[i];
      struct zb_lane *const lane = &lanes->lane[count + i];
      *lane = nothing;
      lane->device = d;
      lane->kind = class->kind;
      lane->count = class->count;
      lane->time = class->time;
      lane->bytes = class->bytes;
      lane->letter = (unsigned char)i;
      lane->any_weight = class->kind == ZB_W && class->chunk < 0;
      if (class->kind == ZB_W && class->chunk >= 0)
        lane->before[0] = count + zb_class_of_b(device, class->chunk);
    }
    count += device->classes;
  }
  lanes->first[chunked->devices] = count;
  for (int s = 0; s < chunked->stages; s++) {
    lanes->flow[s] = lane_of(chunked, lanes, s, ZB_F);
    lanes->flow[2 * chunked->stages - 1 - s] = lane_of(chunked, lanes, s, ZB_B);
  }
  lanes->flows = 2 * chunked->stages;
  for (int s = 0; s < chunked->stages; s++) {
    link_lane(chunked, lanes, s, ZB_F);
    link_lane(chunked, lanes, s, ZB_B);
  }
}

bool zb_lanes_create(const struct zb_chain *chain, enum zb_objective objective, struct zb_lanes *lanes) {
  const struct zb_chunked *chunked = chain->chunked;
  *lanes = (struct zb_lanes){.chunked = chunked,
                             .devices = chain->devices,
                             .chain = chain,
                             .microbatches = chain->microbatches,
                             .objective = objective};
  int stages = chain->devices;
  lanes->lanes = 3 * chain->devices;
  if (chunked) {
    stages = chunked->stages;
    lanes->lanes = 0;
    for (int d = 0; d < chunked->devices; d++) lanes->lanes += chunked->device[d].classes;
  }
  const size_t p = (size_t)chain->devices, n = (size_t)lanes->lanes;
  lanes->lane = malloc(n * sizeof *lanes->lane);
  lanes->first = malloc((p + 1) * sizeof *lanes->first);
  lanes->first_weight = malloc(p * sizeof *lanes->first_weight);
  lanes->flow = malloc(2 * (size_t)stages * sizeof *lanes->flow);
  lanes->room_bytes = malloc(p * sizeof *lanes->room_bytes);
  lanes->frame = malloc(p * sizeof *lanes->frame);
  lanes->origin = malloc(p * sizeof *lanes->origin);
  lanes->horizon = malloc(p * sizeof *lanes->horizon);
  lanes->late = malloc(n * (size_t)chain->microbatches * sizeof *lanes->late);
  if (!lanes->lane || !lanes->first || !lanes->first_weight || !lanes->flow || !lanes->room_bytes ||
      !lanes->frame || !lanes->origin || !lanes->horizon || !lanes->late)
    return false;
  if (chunked)
    fill_chunked(chunked, lanes);
  else
    fill_chain(chain, lanes);
  return true;
}

void zb_lanes_free(struct zb_lanes *lanes) {
  free(lanes->lane);
  free(lanes->first);
  free(lanes->first_weight);
  free(lanes->flow);
  free(lanes->room_bytes);
  free(lanes->frame);
  free(lanes->origin);
  free(lanes->horizon);
  free(lanes->late);
}

void zb_lanes_aim(struct zb_lanes *lanes, const struct zb_state *state) {
  const size_t m = (size_t)lanes->microbatches;
  for (int d = 0; d < lanes->devices; d++) {
    lanes->frame[d] = zb_chain_lead(lanes->chain, lanes->objective, d);
    lanes->origin[d] = lanes->objective == ZB_SPAN ? lanes->frame[d] : 0;
    lanes->horizon[d] = lanes->origin[d] + state->target;
  }
  for (int i = 0; i < lanes->flows; i++) {
    const int number = lanes->flow[i];
    const struct zb_lane *lane = &lanes->lane[number];
    const int64_t *late;
    if (lanes->chunked) {
      const int stage_chunk =
          lanes->chunked->device[lane->device].class[number - lanes->first[lane->device]].chunk;
      late = &state->cell[zb_state_array(
          state, lane->device,
          zb_stage_array(stage_chunk, lane->kind == ZB_F ? ZB_STAGE_F_LATE : ZB_STAGE_B_LATE))];
    } else {
      late = &state->cell[zb_state_cell(state, lane->device, lane->kind == ZB_F ? ZB_F_LATE : ZB_B_LATE, 0)];
    }
    for (size_t k = 0; k < m; k++) lanes->late[(size_t)number * m + k] = late[k] + lanes->frame[lane->device];
  }
}

int zb_lanes_coarse(const struct zb_lanes *lanes) {
  int64_t horizon = 0;
  int bits = 0;
  for (int d = 0; d < lanes->devices; d++) horizon = zb_max(horizon, lanes->horizon[d]);
  while (horizon >> bits > INT32_MAX) bits++;
  return bits;
}
