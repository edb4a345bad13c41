// pipe.h - a chain of devices whose orders are written and timed in one sweep.
//
// What the greedy constructions share. An op is appended to its device at a start time that the
// construction has found legal, and from then on the neighbours know when its output arrives. Since
// the k-th F (B, W) of a device is always microbatch k (design.md, section 2), a device's order is a
// word of kinds and a microbatch never needs to be named.
//
// A device that is `fused` runs its backward as one BW: to the constructions that is a B with another
// duration which leaves no W behind.
#ifndef ZB_PIPE_H
#define ZB_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

#define ZB_NEVER INT64_MAX

struct zb_pipe_device {
  // The profile's, for the way in which backwards are done now.
  int64_t f_ns, b_ns, w_ns;
  int64_t from_previous_ns, from_next_ns; // delay of what arrives
  int64_t f_bytes, b_bytes, w_bytes;
  int64_t room_bytes; // limit without static
  int most_kept;      // forwards without backward that fit when no W is open, and one can go on: at least 1
  bool fused;
  // What has been written so far.
  int forwards, backwards, weights;
  bool forward_last;        // of F and B, the device ran an F last
  int64_t start_ns, end_ns; // of the first and the last op
  int64_t idle_ns;          // between them
  int64_t kept_bytes;
  int64_t *forward_end_ns, *backward_end_ns; // [microbatches]
  unsigned char *word;                       // [forwards + backwards + weights (0 if fused)] enum zb_kind
};

struct zb_pipe {
  const struct zb_profile *profile; // borrowed
  int devices, microbatches;
  struct zb_pipe_device *device; // [devices]
  int64_t largest_idle_ns;       // over devices
  int64_t *ends;                 // storage of the devices' end times
  unsigned char *words;          // [devices * 3 * microbatches]
};

// An empty pipe for a chain. Limits are the profile's, and no device keeps more than its static memory
// plus `most_bytes` (ZB_NO_LIMIT: no further limit). Every device must be able to hold one microbatch.
enum zb_status zb_pipe_create(const struct zb_profile *profile, int64_t most_bytes, struct zb_pipe *pipe,
                              struct zb_error *error);
void zb_pipe_free(struct zb_pipe *pipe);

// Empties the pipe. A device is fused where only the fused backward fits its limit, and, if asked, where
// it is shorter than B and W.
void zb_pipe_clear(struct zb_pipe *pipe, bool fuse_where_shorter);

// Each appends the next op of its kind at `start_ns`, which is not before the device's end.
void zb_pipe_forward(struct zb_pipe *pipe, int device, int64_t start_ns);
void zb_pipe_backward(struct zb_pipe *pipe, int device, int64_t start_ns);
void zb_pipe_weight(struct zb_pipe *pipe, int device, int64_t start_ns);

// When the input of the device's next F (B) arrives; ZB_NEVER while nobody has written the op it comes
// from, or where there is no next.
int64_t zb_pipe_forward_arrival(const struct zb_pipe *pipe, int device);
int64_t zb_pipe_backward_arrival(const struct zb_pipe *pipe, int device);

// The span or makespan of what was written, summed up as it was.
int64_t zb_pipe_cost(const struct zb_pipe *pipe, enum zb_objective objective);

// Fills the builder with the pipe's words.
void zb_pipe_write(const struct zb_pipe *pipe, struct zb_schedule_builder *builder);

static inline bool zb_pipe_weight_open(const struct zb_pipe_device *d) { return d->weights < d->backwards; }

// Whether the op fits now; where it does not, running open W makes it fit (the F only while the device
// keeps fewer than most_kept).
static inline bool zb_pipe_forward_fits(const struct zb_pipe_device *d) {
  return d->f_bytes <= d->room_bytes - d->kept_bytes;
}
static inline bool zb_pipe_backward_fits(const struct zb_pipe_device *d) {
  return d->b_bytes <= d->room_bytes - d->kept_bytes;
}

#endif
