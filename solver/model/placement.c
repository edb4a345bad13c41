// placement.c - which device holds which stage, and the same model on another placement.
//
// Deriving keeps what was measured: a stage that is split gives parts that differ by at most one ns
// and one byte and keep the sum; stages that are merged are added; a boundary's comm travels with it.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "solver/model/number.h"
#include "solver/model/profile.h"

static const char *const words[ZB_PLACEMENT_COUNT] = {
#define X(name, word) word,
    ZB_PLACEMENT_TABLE(X)
#undef X
};

const char *zb_placement_word(enum zb_placement placement) { return words[placement]; }

const char *zb_place_text(enum zb_placement placement, int chunks, char *text) {
  if (placement == ZB_CHAIN)
    snprintf(text, ZB_PLACE_TEXT, "%s", words[placement]);
  else
    snprintf(text, ZB_PLACE_TEXT, "%s %d", words[placement], chunks);
  return text;
}

// Part `part` of `whole` in `parts`: the first whole % parts of them are one larger.
static int64_t share(int64_t whole, int parts, int part) { return whole / parts + (part < whole % parts); }

// The chain stage that a part of device `device` comes from is `device` itself; where the part stands
// in the new stage order depends on the placement.
static int stage_of_part(enum zb_placement placement, int devices, int device, int part) {
  if (placement == ZB_V) return part == 0 ? device : 2 * devices - 1 - device;
  return part * devices + device;
}

static void add_stage(struct zb_profile *to, int target, const struct zb_profile *from, int source) {
  to->f_ns[target] += from->f_ns[source];
  to->b_ns[target] += from->b_ns[source];
  to->w_ns[target] += from->w_ns[source];
  to->bw_ns[target] += from->bw_ns[source];
  to->f_bytes[target] += from->f_bytes[source];
  to->b_bytes[target] += from->b_bytes[source];
  to->w_bytes[target] += from->w_bytes[source];
}

// f and -w are shared alike, largest parts first, so that their difference b also differs by at most
// one from part to part and each part's memory still sums to zero.
static void split_stage(struct zb_profile *to, const struct zb_profile *chain, int device) {
  int parts = to->chunks;
  for (int part = 0; part < parts; part++) {
    int s = stage_of_part(to->placement, to->devices, device, part);
    to->f_ns[s] = share(chain->f_ns[device], parts, part);
    to->b_ns[s] = share(chain->b_ns[device], parts, part);
    to->w_ns[s] = share(chain->w_ns[device], parts, part);
    to->bw_ns[s] = share(chain->bw_ns[device], parts, part);
    to->f_bytes[s] = share(chain->f_bytes[device], parts, part);
    to->w_bytes[s] = -share(-chain->w_bytes[device], parts, part);
    to->b_bytes[s] = -to->f_bytes[s] - to->w_bytes[s];
  }
}

// What a hop costs that was never measured: the largest of the boundaries that were.
static int64_t largest_comm(const struct zb_profile *from, const int64_t *comm_ns) {
  int64_t largest = 0;
  for (int k = 0; k < from->stages - 1; k++) largest = zb_max(largest, comm_ns[k]);
  return largest;
}

// Boundary k of `to` is boundary `source` of `from`; where that lay within a device nothing was measured.
static void move_comm(struct zb_profile *to, int k, const struct zb_profile *from, int source) {
  bool measured = from->device_of[source] != from->device_of[source + 1];
  to->comm_forward_ns[k] =
      measured ? from->comm_forward_ns[source] : largest_comm(from, from->comm_forward_ns);
  to->comm_backward_ns[k] =
      measured ? from->comm_backward_ns[source] : largest_comm(from, from->comm_backward_ns);
}

static void split_comm(struct zb_profile *to, const struct zb_profile *chain) {
  const int64_t wrap_forward = largest_comm(chain, chain->comm_forward_ns);
  const int64_t wrap_backward = largest_comm(chain, chain->comm_backward_ns);
  for (int s = 0; s < to->stages - 1; s++) {
    int a = to->device_of[s], b = to->device_of[s + 1];
    if (a == b) continue;
    bool neighbours = b - a == 1 || a - b == 1;
    int boundary = a < b ? a : b;
    to->comm_forward_ns[s] = neighbours ? chain->comm_forward_ns[boundary] : wrap_forward;
    to->comm_backward_ns[s] = neighbours ? chain->comm_backward_ns[boundary] : wrap_backward;
  }
}

// A profile of the new shape that has everything of `from` but the numbers of stages and boundaries.
static enum zb_status derive_empty(const struct zb_profile *from, enum zb_placement placement, int chunks,
                                   struct zb_profile **derived, struct zb_error *error) {
  struct zb_profile *to = NULL;
  enum zb_status status = zb_profile_create(from->devices, chunks, from->microbatches, placement, &to, error);
  if (status != ZB_OK) return status;
  char **texts[3] = {&to->name, &to->source, &to->note};
  const char *originals[3] = {from->name, from->source, from->note};
  for (int i = 0; i < 3; i++)
    if (originals[i] && !(*texts[i] = strdup(originals[i]))) {
      zb_profile_free(to);
      return zb_fail_memory(error);
    }
  to->samples = from->samples;
  to->has_bw = from->has_bw;
  to->has_memory = from->has_memory;
  size_t bytes = (size_t)from->devices * sizeof(int64_t);
  memcpy(to->limit_bytes, from->limit_bytes, bytes);
  memcpy(to->static_bytes, from->static_bytes, bytes);
  *derived = to;
  return ZB_OK;
}

static enum zb_status merge_to_chain(const struct zb_profile *from, struct zb_profile **chain,
                                     struct zb_error *error) {
  enum zb_status status = derive_empty(from, ZB_CHAIN, 1, chain, error);
  if (status != ZB_OK) return status;
  struct zb_profile *to = *chain;
  for (int s = 0; s < from->stages; s++) add_stage(to, s / from->chunks, from, s);
  for (int k = 0; k < to->stages - 1; k++) move_comm(to, k, from, (k + 1) * from->chunks - 1);
  return ZB_OK;
}

enum zb_status zb_profile_derive(const struct zb_profile *profile, enum zb_placement placement, int chunks,
                                 struct zb_profile **derived, struct zb_error *error) {
  assert(placement != ZB_LIST);
  struct zb_profile *to = NULL, *chain = NULL;
  enum zb_status status;
  if (chunks == 1) {
    status = merge_to_chain(profile, &to, error);
    if (status == ZB_OK) to->placement = placement;
  } else if (chunks == profile->chunks) {
    status = derive_empty(profile, placement, chunks, &to, error);
    if (status == ZB_OK) {
      for (int s = 0; s < to->stages; s++) add_stage(to, s, profile, s);
      for (int k = 0; k < to->stages - 1; k++) move_comm(to, k, profile, k);
    }
  } else {
    status = merge_to_chain(profile, &chain, error);
    if (status == ZB_OK) status = derive_empty(profile, placement, chunks, &to, error);
    if (status == ZB_OK) {
      for (int d = 0; d < to->devices; d++) split_stage(to, chain, d);
      split_comm(to, chain);
    }
  }
  if (status == ZB_OK) status = zb_profile_finish(to, error);
  zb_profile_free(chain);
  if (status != ZB_OK) {
    zb_profile_free(to);
    return status;
  }
  *derived = to;
  return ZB_OK;
}
