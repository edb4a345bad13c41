// v_pipe.h - a V of devices whose orders are written and timed in one sweep.
//
// Device i holds stage i (chunk 0, on the way down) and stage 2p-1-i (chunk 1, on the way up). An op is
// appended to its device at a start time that was found legal, and from then on the neighbours know when its
// output arrives. The k-th F (B, W) of a stage is always microbatch k (design.md, section 2), so a device's
// order is a word over classes of ops and a microbatch is never named.
//
// A stage that is `fused` runs its backward as one BW: a B with another duration that leaves no W behind.
#ifndef ZB_V_PIPE_H
#define ZB_V_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "heuristic/pipe.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"

// The forwards and backwards of a device, in the order in which a microbatch comes by.
enum zb_v_class { ZB_V_F0, ZB_V_F1, ZB_V_B1, ZB_V_B0, ZB_V_CLASSES };

struct zb_v_stage {
  int64_t f_ns, b_ns, w_ns, f_bytes, b_bytes, w_bytes; // for the way in which its backwards are done now
  int64_t forward_comm_ns, backward_comm_ns;           // delay of what arrives from the stage before, after
  bool fused;
  int forwards, backwards, weights;          // written so far
  int64_t *forward_end_ns, *backward_end_ns; // [microbatches]
};

struct zb_v_device {
  struct zb_v_stage *stage[2]; // its chunks
  int64_t room_bytes;          // limit without static
  int64_t work_ns;             // all its ops together
  int64_t start_ns, end_ns, idle_ns;
  int64_t kept_bytes, peak_bytes;
  int64_t turn_ns[ZB_V_CLASSES], arrival_ns[ZB_V_CLASSES]; // the walk's: of the next op of each class
  int count;                                               // ops written
  unsigned char *word;                                     // [count] 4 * chunk + enum zb_kind
};

struct zb_v_pipe {
  int devices, microbatches;  // as many as are written; at most those it was created for
  struct zb_v_stage *stage;   // [2 * devices]
  struct zb_v_device *device; // [devices]
  int64_t longest_ns;         // the largest work + idle of a device so far: no span will be below it
  int64_t *clock;             // scratch of the walk
  int64_t *ends;              // storage of the stages' end times
  unsigned char *words;
};

enum zb_status zb_v_pipe_create(int devices, int microbatches, struct zb_v_pipe *pipe,
                                struct zb_error *error);
void zb_v_pipe_free(struct zb_v_pipe *pipe);

// What is to be scheduled. Both leave the pipe empty.
//
// The profile's times, and no device keeps more than its limit, nor more than its static memory plus
// most_bytes[device] (NULL: no further limit). Fused where only that fits and, if asked, where it is shorter.
void zb_v_pipe_take_profile(struct zb_v_pipe *pipe, const struct zb_profile *profile,
                            const int64_t *most_bytes, bool fuse_where_shorter);
// Every F, B and W takes 1, nothing is lost between devices, and a device keeps at most `most_kept` chunks.
void zb_v_pipe_take_units(struct zb_v_pipe *pipe, int most_kept, bool fused);

void zb_v_pipe_clear(struct zb_v_pipe *pipe);

// Each appends the next op of its kind at start_ns, not before the device's end. `chunk` is 0 or 1.
void zb_v_pipe_append(struct zb_v_pipe *pipe, int device, int chunk, enum zb_kind kind, int64_t start_ns);

// When the input of the device's next op of a class is there; ZB_NEVER while that is not known, or where
// there is no next.
int64_t zb_v_pipe_arrival(const struct zb_v_pipe *pipe, int device, enum zb_v_class class);

int64_t zb_v_pipe_span(const struct zb_v_pipe *pipe);
int64_t zb_v_pipe_makespan(const struct zb_v_pipe *pipe);

// Fills the builder with the pipe's words.
void zb_v_pipe_write(const struct zb_v_pipe *pipe, struct zb_schedule_builder *builder);

static inline int zb_v_stage_of(const struct zb_v_pipe *pipe, int device, int chunk) {
  return chunk == 0 ? device : 2 * pipe->devices - 1 - device;
}

#endif
