// check.c - validity of an order, then its times, then its memory.
#include "solver/model/check.h"

#include <stdbool.h>
#include <stdlib.h>

enum { SEEN_BW = 1 << ZB_BW, SEEN_SPLIT = 1 << ZB_B | 1 << ZB_W };

static enum zb_status wrong_op(const struct zb_schedule *schedule, int device, size_t position,
                               const char *what, struct zb_error *error) {
  char op[ZB_OP_TEXT];
  zb_op_print(schedule->ops[position], op);
  return zb_fail(error, ZB_WRONG, "device %d, position %zu, %s: %s", device,
                 position - schedule->first[device], op, what);
}

// Each op exists, is on its device, comes once, and no pass is both split and fused. `seen` has a bit
// a kind for each (stage, microbatch).
static enum zb_status check_ops(const struct zb_profile *p, const struct zb_schedule *schedule,
                                unsigned char *seen, struct zb_error *error) {
  for (int d = 0; d < p->devices; d++)
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const struct zb_op op = schedule->ops[i];
      if (op.stage < 0 || op.stage >= p->stages)
        return wrong_op(schedule, d, i, "there is no such stage", error);
      if (op.microbatch < 0 || op.microbatch >= p->microbatches)
        return wrong_op(schedule, d, i, "there is no such microbatch", error);
      if (p->device_of[op.stage] != d)
        return wrong_op(schedule, d, i, "its stage is on another device", error);
      unsigned char *kinds = &seen[(size_t)op.stage * (size_t)p->microbatches + (size_t)op.microbatch];
      if (*kinds >> op.kind & 1) return wrong_op(schedule, d, i, "comes twice", error);
      *kinds |= (unsigned char)(1 << op.kind);
      if (*kinds & SEEN_BW && *kinds & SEEN_SPLIT)
        return wrong_op(schedule, d, i, "its backward is both split and fused", error);
    }
  return ZB_OK;
}

static enum zb_status check_complete(const struct zb_profile *p, const unsigned char *seen,
                                     struct zb_error *error) {
  for (int s = 0; s < p->stages; s++)
    for (int j = 0; j < p->microbatches; j++) {
      unsigned kinds = seen[(size_t)s * (size_t)p->microbatches + (size_t)j];
      enum zb_kind missing = !(kinds >> ZB_F & 1) ? ZB_F : !(kinds >> ZB_B & 1) ? ZB_B : ZB_W;
      if (kinds == (1u << ZB_F | SEEN_SPLIT) || kinds == (1u << ZB_F | SEEN_BW)) continue;
      char op[ZB_OP_TEXT];
      zb_op_print((struct zb_op){s, j, missing}, op);
      return zb_fail(error, ZB_WRONG, "device %d, %s: is missing", p->device_of[s], op);
    }
  return ZB_OK;
}

enum zb_status zb_check_schedule(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                 struct zb_timeline *timeline, struct zb_error *error) {
  if (schedule->devices != profile->devices)
    return zb_fail(error, ZB_WRONG, "devices: %d orders, expected %d", schedule->devices, profile->devices);
  // Nothing is sized by what the profile claims before the order is seen to be of that size.
  size_t ops = schedule->first[schedule->devices],
         passes = (size_t)profile->stages * (size_t)profile->microbatches;
  if (ops < passes) return zb_fail(error, ZB_WRONG, "%zu ops, expected at least %zu", ops, 2 * passes);
  unsigned char *seen = calloc(passes, 1);
  if (!seen) return zb_fail_memory(error);
  enum zb_status status = check_ops(profile, schedule, seen, error);
  if (status == ZB_OK) status = check_complete(profile, seen, error);
  free(seen);
  if (status == ZB_OK) status = zb_timeline_compute(profile, schedule, timeline, error);
  if (status == ZB_OK) status = zb_timeline_period(profile, schedule, timeline, error);
  for (int d = 0; d < profile->devices && status == ZB_OK; d++)
    if (timeline->peak_bytes[d] > profile->limit_bytes[d])
      status = zb_fail(error, ZB_OVER_LIMIT, "device %d: peak %lld B, limit %lld B", d,
                       (long long)timeline->peak_bytes[d], (long long)profile->limit_bytes[d]);
  return status;
}
