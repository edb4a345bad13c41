// chunked.h - any placement in the units the exact engine computes in: several stages a device.
//
// This header is also the specification of a leaf: what propagation may use to refute a cost, stated so that
// a second program can be written from it. Times are ticks, or any unit that divides them. Stages are
// numbered along the pipe, 0 .. n-1; "next" and "before" are meant along the pipe. k counts from 0.
#ifndef ZB_CHUNKED_H
#define ZB_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

// Most classes of ops a device may have.
enum { ZB_MOST_CLASSES = 24 };

struct zb_stage {
  int device, chunk; // chunk: position among the device's stages, ascending
  int64_t f, b, w, bw;
  int64_t f_bytes, b_bytes, w_bytes;
  bool fused;       // a fused BW can pay: it is faster than B and W, or fits where B alone would not
  int64_t backward; // least ticks that B and W of one microbatch take, split or fused
  int64_t gradient; // least ticks from the start of B or BW to its input gradient
  int64_t forward_comm, backward_comm; // between this stage and the one before it; 0 on one device
  // Least ticks from the end of F here to the start of the same microbatch's next op on the device: F of the
  // device's next stage, or B here where this is its last. And from the gradient of the device's next stage
  // to B here.
  int64_t lag_forward, lag_backward;
};

// Ops that are counted together: all F or all B of a stage (BW is a B and a W), W of a stage, or, where they
// are alike on all stages of the device, all its W.
struct zb_op_class {
  enum zb_kind kind; // F, B or W
  int chunk;         // -1: all W of the device
  int stage;         // of chunk; where chunk is -1 the device's first
  int count;
  int64_t time, bytes;
};

struct zb_chunked_device {
  int chunks;
  const int *stage; // [chunks] ascending
  int64_t room_bytes;
  // B of the first stage, .., B of the last, F of the last, .., F of the first, then W: each count is at most
  // that of the next, and the last class is always W.
  int classes;
  struct zb_op_class class[ZB_MOST_CLASSES];
  bool weights_merged;
  int feeder;   // stage before the device's first, -1 on the device of stage 0
  int parent;   // its device
  bool prompt;  // the feeder's first op is its device's first op too: the start offset is known
  bool pinned;  // .. and so up to stage 0: the start in the one frame of a makespan is known
  int64_t lead; // least ticks from the start of stage 0 to the first arrival here
};

struct zb_chunked {
  int devices, stages, microbatches;
  struct zb_stage *stage;           // [stages]
  struct zb_chunked_device *device; // [devices]
  int *stage_at;                    // [stages] what device[].stage points into
  bool open_offsets;                // some start offset is not known even for the span
};

// Fails with UNKNOWN where a device has more stages than ZB_MOST_CLASSES allows. Owned by the caller.
enum zb_status zb_chunked_create(const struct zb_profile *profile, int64_t tick_ns,
                                 struct zb_chunked **chunked, struct zb_error *error);
void zb_chunked_free(struct zb_chunked *chunked);

// Without the dominance rule every backward may be fused.
void zb_chunked_allow_fused(struct zb_chunked *chunked);

// What is known of one device is arrays over microbatches: for each of its stages these, then for each pair
// of classes (counted, starting), starting before counted in the list and not W, the least and most of
// `counted` done when number k of `starting` starts. Even arrays hold lower bounds, odd ones upper.
enum zb_stage_window {
  ZB_STAGE_F_EARLY,      // earliest start
  ZB_STAGE_F_LATE,       // latest end
  ZB_STAGE_B_EARLY,      // earliest start, split or fused
  ZB_STAGE_B_LATE_START, // latest start
  ZB_STAGE_B_EARLY_END,  // earliest end of what hands the gradient on: B, or the whole BW
  ZB_STAGE_B_LATE,       // latest end
  ZB_STAGE_FUSED_LO,
  ZB_STAGE_FUSED_HI, // 1: backward k is fused
  ZB_STAGE_WINDOWS
};

static inline int zb_stage_array(int chunk, enum zb_stage_window window) {
  return chunk * ZB_STAGE_WINDOWS + (int)window;
}
// Lower array of a pair; the upper is the next.
static inline int zb_pair_array(const struct zb_chunked_device *device, int starting, int counted) {
  const int before = starting * (device->classes - 1) - starting * (starting - 1) / 2;
  return device->chunks * ZB_STAGE_WINDOWS + 2 * (before + counted - starting - 1);
}
static inline int zb_device_arrays(const struct zb_chunked_device *device) {
  return zb_pair_array(device, 2 * device->chunks, 2 * device->chunks + 1);
}
static inline int zb_class_of_b(const struct zb_chunked_device *device, int chunk) {
  (void)device;
  return chunk;
}
static inline int zb_class_of_f(const struct zb_chunked_device *device, int chunk) {
  return 2 * device->chunks - 1 - chunk;
}
static inline int zb_class_of_w(const struct zb_chunked_device *device, int chunk) {
  return 2 * device->chunks + (device->weights_merged ? 0 : chunk);
}

#endif
