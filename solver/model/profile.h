// profile.h - what the user measured, in exact units: the input of everything.
//
// A profile is plain data with arrays a stage, a boundary or a device. Boundary k lies between
// stages k and k+1. It is complete once zb_profile_finish has accepted it: after that every sum that
// a schedule, a timeline or a bound can form stays within 2^53 (contract.md section 2).
#ifndef ZB_PROFILE_H
#define ZB_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/status.h"

#define ZB_NO_LIMIT INT64_MAX

// Which device holds which stage (contract.md section 1).
#define ZB_PLACEMENT_TABLE(X)                                                                                \
  X(ZB_CHAIN, "chain") /* one stage a device, in order */                                                    \
  X(ZB_LOOP, "loop")   /* stage s on s mod p */                                                              \
  X(ZB_V, "v")         /* two a device: down the devices and up */                                           \
  X(ZB_LIST, "list")   /* whatever device_of says */

enum zb_placement {
#define X(name, word) name,
  ZB_PLACEMENT_TABLE(X)
#undef X
      ZB_PLACEMENT_COUNT
};
const char *zb_placement_word(enum zb_placement placement);

// "chain", "loop 2", "v 2": with the stages a device, into `text` of ZB_PLACE_TEXT bytes, which is returned.
enum { ZB_PLACE_TEXT = 32 };
const char *zb_place_text(enum zb_placement placement, int chunks, char *text);

// What device_of[stages] is called: LIST where it has no other name. All stages on one device are a loop (or
// a chain of one), not a v.
enum zb_placement zb_placement_find(const int *device_of, int devices, int stages);

struct zb_profile {
  char *name, *source, *note; // owned; NULL where the file has none
  int devices, microbatches, chunks;
  int stages;      // devices * chunks
  int64_t samples; // in one microbatch
  enum zb_placement placement;
  int *device_of; // [stages]
  int *chunk_of;  // [stages] position among its device's stages, 0 .. chunks-1
  int *stage_at;  // [devices * chunks] stage at (device * chunks + chunk); ascending a device
  int64_t *f_ns, *b_ns, *w_ns, *bw_ns;  // [stages]
  int64_t *comm_forward_ns;             // [stages] delay of boundary k; 0 where both stages share a device
  int64_t *comm_backward_ns;            // [stages] likewise, k+1 to k; the last entry of both is 0, unused
  int64_t *f_bytes, *b_bytes, *w_bytes; // [stages] change of kept memory; f + b + w = 0
  int64_t *limit_bytes;                 // [devices] ZB_NO_LIMIT: none
  int64_t *static_bytes;                // [devices]
  bool has_bw;                          // bw was given (otherwise bw = b + w)
  bool has_memory;                      // memory was given
};

// Allocates a profile of the given sizes with all numbers zero, no limit, samples 1, and the
// placement's device_of filled in (ZB_LIST: the caller fills device_of before zb_profile_finish).
// Sizes must be >= 1 and agree with the placement (chain: chunks 1, v: chunks 2), else BAD_INPUT.
enum zb_status zb_profile_create(int devices, int chunks, int microbatches, enum zb_placement placement,
                                 struct zb_profile **profile, struct zb_error *error);

// Checks all values and derives chunk_of, stage_at, zeroed same-device comm, and bw where !has_bw.
// On BAD_INPUT the error's text starts with the field, e.g. "memory: stage 3: f+b+w is 20, ...".
enum zb_status zb_profile_finish(struct zb_profile *profile, struct zb_error *error);

enum zb_status zb_profile_copy(const struct zb_profile *profile, struct zb_profile **copy,
                               struct zb_error *error);
void zb_profile_free(struct zb_profile *profile);

// The same model on another placement (contract.md section 4: split, merge, or the same stages
// placed anew). A boundary's comm is kept on every hop; the hop from the last device of a loop back
// to the first, which a chain never measured, costs the largest of the boundaries'.
enum zb_status zb_profile_derive(const struct zb_profile *profile, enum zb_placement placement, int chunks,
                                 struct zb_profile **derived, struct zb_error *error);

// Activation bytes that one microbatch keeps on the device where that is largest, all its stages
// together: the unit of relative limits is this times `devices` (contract.md section 4).
int64_t zb_profile_activation(const struct zb_profile *profile);

// Sum of this device's op times over all microbatches when each stage takes its cheaper backward:
// no schedule keeps the device busy for less.
int64_t zb_profile_least_work(const struct zb_profile *profile, int device);

// The least peak any order has on this device, static included: a microbatch must be kept on all of
// the device's stages at once before the first backward can start. The order that runs one
// microbatch at a time reaches it, so a limit is infeasible exactly when it is below this.
int64_t zb_profile_least_peak(const struct zb_profile *profile, int device);

// Cheaper of the split and the fused backward of a stage, in ns; and the least time from the start
// of a stage's backward to its input gradient: B alone, or the whole BW where that is shorter.
int64_t zb_profile_backward_ns(const struct zb_profile *profile, int stage);
int64_t zb_profile_gradient_ns(const struct zb_profile *profile, int stage);
static inline bool zb_profile_fused_is_shorter(const struct zb_profile *profile, int stage) {
  return profile->bw_ns[stage] < profile->b_ns[stage] + profile->w_ns[stage];
}

#endif
