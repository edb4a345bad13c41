// interleaved.c - 1F1B with several stages a device (arXiv 2104.04473, section 2.2.2).
//
// Microbatches go in groups of p. A device runs a group's forwards chunk after chunk, its backwards
// likewise from the last chunk to the first, and alternates the two once 2(p-1-i) + (v-1)p forwards are
// done. The published order is for whole groups. Here an incomplete last group is laid out as a whole
// one and the microbatches that do not exist are left out: what remains of an order that finishes
// still finishes, because no op waits for another microbatch's.
#include "heuristic/families.h"
#include "solver/model/number.h"

// The k-th forward (or backward) of a device: `chunk` counts in the order of its direction.
static void interleaved_append(const struct zb_profile *profile, struct zb_schedule_builder *builder,
                               int device, enum zb_kind kind, int64_t k) {
  const int64_t p = profile->devices, v = profile->chunks;
  const int64_t microbatch = k / (p * v) * p + k % p;
  const int chunk = (int)(k / p % v);
  if (microbatch >= profile->microbatches) return;
  const int from_first = kind == ZB_F ? chunk : profile->chunks - 1 - chunk;
  zb_builder_append(builder, from_first * profile->devices + device, kind, (int)microbatch);
}

static void interleaved_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder) {
  const int64_t p = profile->devices, v = profile->chunks;
  const int64_t total = (profile->microbatches + p - 1) / p * p * v;
  for (int device = 0; device < profile->devices; device++) {
    const int64_t warmup = zb_min(2 * (p - 1 - device) + (v - 1) * p, total);
    for (int64_t k = 0; k < warmup; k++) interleaved_append(profile, builder, device, ZB_F, k);
    for (int64_t k = 0; k < total; k++) {
      if (warmup + k < total) interleaved_append(profile, builder, device, ZB_F, warmup + k);
      interleaved_append(profile, builder, device, ZB_BW, k);
    }
  }
}

static enum zb_status interleaved_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                        struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return zb_family_solve(problem, interleaved_fill, result, error);
}

const struct zb_engine zb_engine_1f1b_interleaved = {"1f1b-interleaved", "1F1B with several stages a device",
                                                     ZB_NEED_LOOP, interleaved_solve};
