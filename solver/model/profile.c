// profile.c - creating, checking and measuring a profile.
//
// zb_profile_finish is the gate: it refuses what contract.md section 2 refuses and makes sure that
// no sum formed later can leave 2^53, so that nothing behind it needs a checked add.
#include "solver/model/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Sizes beyond these are refused: an order of more ops would not fit the program's memory anyway.
enum { STAGES_MAX = 1 << 16, OPS_MAX = 1 << 28 };

static enum zb_status check_shape(int devices, int chunks, int microbatches, enum zb_placement placement,
                                  struct zb_error *error) {
  if (devices < 1) return zb_fail(error, ZB_BAD_INPUT, "devices: %d, expected at least 1", devices);
  if (chunks < 1) return zb_fail(error, ZB_BAD_INPUT, "chunks: %d, expected at least 1", chunks);
  if (microbatches < 1)
    return zb_fail(error, ZB_BAD_INPUT, "microbatches: %d, expected at least 1", microbatches);
  if (placement == ZB_CHAIN && chunks != 1)
    return zb_fail(error, ZB_BAD_INPUT,
                   "placement: chain has 1 stage a device, but chunks is %d; expected loop, v or a list",
                   chunks);
  if (placement == ZB_V && chunks != 2)
    return zb_fail(error, ZB_BAD_INPUT, "placement: v has 2 stages a device, but chunks is %d", chunks);
  if ((int64_t)devices * chunks > STAGES_MAX)
    return zb_fail(error, ZB_BAD_INPUT, "devices: %d with %d chunks each are more than %d stages", devices,
                   chunks, STAGES_MAX);
  if ((int64_t)devices * chunks * 3 > OPS_MAX / microbatches)
    return zb_fail(error, ZB_BAD_INPUT, "microbatches: %d on %d stages are more than %d ops", microbatches,
                   devices * chunks, OPS_MAX);
  return ZB_OK;
}

static int placed_on(enum zb_placement placement, int devices, int stage) {
  if (placement == ZB_V && stage >= devices) return 2 * devices - 1 - stage;
  return stage % devices;
}

enum zb_placement zb_placement_find(const int *device_of, int devices, int stages) {
  bool loop = true, v = stages == 2 * devices;
  for (int s = 0; s < stages; s++) {
    loop = loop && device_of[s] == placed_on(ZB_LOOP, devices, s);
    v = v && device_of[s] == placed_on(ZB_V, devices, s);
  }
  return loop ? (stages == devices ? ZB_CHAIN : ZB_LOOP) : v ? ZB_V : ZB_LIST;
}

// The arrays of a profile, so that creating, copying and freeing cannot forget one.
#define STAGE_NUMBERS(X)                                                                                     \
  X(f_ns) X(b_ns) X(w_ns) X(bw_ns) X(comm_forward_ns) X(comm_backward_ns) X(f_bytes) X(b_bytes) X(w_bytes)
#define DEVICE_NUMBERS(X) X(limit_bytes) X(static_bytes)
#define STAGE_INDEXES(X) X(device_of) X(chunk_of) X(stage_at)

enum zb_status zb_profile_create(int devices, int chunks, int microbatches, enum zb_placement placement,
                                 struct zb_profile **profile, struct zb_error *error) {
  enum zb_status status = check_shape(devices, chunks, microbatches, placement, error);
  if (status != ZB_OK) return status;
  struct zb_profile *p = calloc(1, sizeof *p);
  if (!p) return zb_fail_memory(error);
  p->devices = devices;
  p->chunks = chunks;
  p->microbatches = microbatches;
  p->stages = devices * chunks;
  p->samples = 1;
  p->placement = placement;
  size_t stages = (size_t)p->stages;
  bool complete = true;
#define X(field) complete = (p->field = calloc(stages, sizeof *p->field)) && complete;
  STAGE_NUMBERS(X)
  STAGE_INDEXES(X)
#undef X
#define X(field) complete = (p->field = calloc((size_t)devices, sizeof *p->field)) && complete;
  DEVICE_NUMBERS(X)
#undef X
  if (!complete) {
    zb_profile_free(p);
    return zb_fail_memory(error);
  }
  for (int s = 0; s < p->stages; s++) p->device_of[s] = placed_on(placement, devices, s);
  for (int d = 0; d < devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
  *profile = p;
  return ZB_OK;
}

void zb_profile_free(struct zb_profile *p) {
  if (!p) return;
  free(p->name);
  free(p->source);
  free(p->note);
#define X(field) free(p->field);
  STAGE_NUMBERS(X)
  STAGE_INDEXES(X)
  DEVICE_NUMBERS(X)
#undef X
  free(p);
}

enum zb_status zb_profile_copy(const struct zb_profile *profile, struct zb_profile **copy,
                               struct zb_error *error) {
  struct zb_profile *p = NULL;
  enum zb_status status = zb_profile_create(profile->devices, profile->chunks, profile->microbatches,
                                            profile->placement, &p, error);
  if (status != ZB_OK) return status;
  if ((profile->name && !(p->name = strdup(profile->name))) ||
      (profile->source && !(p->source = strdup(profile->source))) ||
      (profile->note && !(p->note = strdup(profile->note)))) {
    zb_profile_free(p);
    return zb_fail_memory(error);
  }
  p->samples = profile->samples;
  p->has_bw = profile->has_bw;
  p->has_memory = profile->has_memory;
#define X(field) memcpy(p->field, profile->field, (size_t)p->stages * sizeof *p->field);
  STAGE_NUMBERS(X)
  STAGE_INDEXES(X)
#undef X
#define X(field) memcpy(p->field, profile->field, (size_t)p->devices * sizeof *p->field);
  DEVICE_NUMBERS(X)
#undef X
  *copy = p;
  return ZB_OK;
}

static enum zb_status index_stages(struct zb_profile *p, struct zb_error *error) {
  int *held = calloc((size_t)p->devices, sizeof *held);
  if (!held) return zb_fail_memory(error);
  enum zb_status status = ZB_OK;
  for (int s = 0; s < p->stages && status == ZB_OK; s++) {
    int d = p->device_of[s];
    if (d < 0 || d >= p->devices) {
      status =
          zb_fail(error, ZB_BAD_INPUT, "placement[%d]: device %d, expected 0 to %d", s, d, p->devices - 1);
    } else if (held[d] == p->chunks) {
      status = zb_fail(error, ZB_BAD_INPUT, "placement[%d]: device %d already holds its %d stages", s, d,
                       p->chunks);
    } else {
      p->chunk_of[s] = held[d];
      p->stage_at[d * p->chunks + held[d]++] = s;
    }
  }
  free(held);
  return status;
}

static enum zb_status check_times(const struct zb_profile *p, struct zb_error *error) {
  const struct {
    const char *name;
    const int64_t *values;
  } lists[] = {{"f", p->f_ns},
               {"b", p->b_ns},
               {"w", p->w_ns},
               {"bw", p->bw_ns},
               {"comm.forward", p->comm_forward_ns},
               {"comm.backward", p->comm_backward_ns}};
  int64_t horizon = 0;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    for (int s = 0; s < p->stages; s++) {
      if (lists[i].values[s] < 0)
        return zb_fail(error, ZB_BAD_INPUT, "time.%s[%d]: %lld ns is negative", lists[i].name, s,
                       (long long)lists[i].values[s]);
      if (!zb_add_product_checked(&horizon, p->microbatches, lists[i].values[s]))
        return zb_fail(error, ZB_BAD_INPUT, "time.%s[%d]: all ops together take more than 2^53 ns",
                       lists[i].name, s);
    }
  return ZB_OK;
}

static enum zb_status check_memory(const struct zb_profile *p, struct zb_error *error) {
  for (int d = 0; d < p->devices; d++) {
    int64_t most = p->static_bytes[d];
    if (most < 0)
      return zb_fail(error, ZB_BAD_INPUT, "memory.static[%d]: %lld B is negative", d, (long long)most);
    if (p->limit_bytes[d] < 0)
      return zb_fail(error, ZB_BAD_INPUT, "memory.limit[%d]: %lld B is negative", d,
                     (long long)p->limit_bytes[d]);
    for (int k = 0; k < p->chunks; k++) {
      int s = p->stage_at[d * p->chunks + k];
      int64_t f = p->f_bytes[s], b = p->b_bytes[s], w = p->w_bytes[s];
      if (f < 0)
        return zb_fail(error, ZB_BAD_INPUT, "memory.f[%d]: %lld B, expected 0 or more", s, (long long)f);
      if (w > 0)
        return zb_fail(error, ZB_BAD_INPUT, "memory.w[%d]: %lld B, expected 0 or less", s, (long long)w);
      if (f + b + w != 0)
        return zb_fail(error, ZB_BAD_INPUT, "memory: stage %d: f + b + w is %lld B, expected 0", s,
                       (long long)(f + b + w));
      if (!zb_add_product_checked(&most, p->microbatches, f - w))
        return zb_fail(error, ZB_BAD_INPUT,
                       "memory.f[%d]: all microbatches together, with memory.static, are more than 2^53 B",
                       s);
    }
  }
  return ZB_OK;
}

enum zb_status zb_profile_finish(struct zb_profile *p, struct zb_error *error) {
  enum zb_status status = check_shape(p->devices, p->chunks, p->microbatches, p->placement, error);
  if (status == ZB_OK) status = index_stages(p, error);
  if (status != ZB_OK) return status;
  for (int s = 0; s < p->stages; s++) {
    if (!p->has_bw) p->bw_ns[s] = p->b_ns[s] + p->w_ns[s];
    if (s == p->stages - 1 || p->device_of[s] == p->device_of[s + 1])
      p->comm_forward_ns[s] = p->comm_backward_ns[s] = 0;
  }
  status = check_times(p, error);
  return status == ZB_OK ? check_memory(p, error) : status;
}

int64_t zb_profile_activation(const struct zb_profile *p) {
  int64_t largest = 0;
  for (int d = 0; d < p->devices; d++)
    largest = zb_max(largest, zb_profile_least_peak(p, d) - p->static_bytes[d]);
  return largest;
}

int64_t zb_profile_least_work(const struct zb_profile *p, int device) {
  int64_t work = 0;
  for (int k = 0; k < p->chunks; k++) {
    int s = p->stage_at[device * p->chunks + k];
    work += p->microbatches * (p->f_ns[s] + zb_profile_backward_ns(p, s));
  }
  return work;
}

int64_t zb_profile_least_peak(const struct zb_profile *p, int device) {
  int64_t peak = p->static_bytes[device];
  for (int k = 0; k < p->chunks; k++) peak += p->f_bytes[p->stage_at[device * p->chunks + k]];
  return peak;
}

int64_t zb_profile_backward_ns(const struct zb_profile *p, int stage) {
  return zb_min(p->b_ns[stage] + p->w_ns[stage], p->bw_ns[stage]);
}

int64_t zb_profile_gradient_ns(const struct zb_profile *p, int stage) {
  return zb_min(p->b_ns[stage], p->bw_ns[stage]);
}
