// rank_parts.h - what a rank is made of; private to the files rank*.c and gather.c.
//
// A slot has the ticket of the message that fills it or leaves from it; an op that reads it, or an
// instruction that frees it, waits for that ticket first. The optimizer's messages have a buffer of partial
// norms and a ticket each, and each is waited for before its buffer is used again.
#ifndef ZB_RANK_PARTS_H
#define ZB_RANK_PARTS_H

#include "runtime/rank.h"

struct zb_slot {
  void *buffer;
  struct zb_ticket ticket;
  int32_t instruction; // which posted it
  int64_t posted_ns;
};

// A message of the optimizer: one partial a unit.
struct zb_line {
  double *partial; // [units]
  struct zb_ticket ticket;
  int32_t instruction;
  int64_t posted_ns;
};

enum { ZB_NORM_IN, ZB_NORM_OUT, ZB_STATE_IN, ZB_STATE_OUT, ZB_LINES };

struct zb_rank {
  const struct zb_replay *replay;
  void *shared, *endpoint, *state;
  int device, units;
  bool first_of_line, last_of_line;
  size_t first, count; // its list
  size_t *slot_at;     // [stages * ZB_SLOT_KINDS] first slot of a kind
  struct zb_slot *slot;
  size_t slots, message_bytes;
  struct zb_line line[ZB_LINES];
  double *known;                // [units] partials that this device knows of the step
  int64_t ops_issued;           // of this batch
  struct zb_interval *interval; // [count] of the ops
  double *microbatch_loss;      // [microbatches]
  size_t event_room;
  // The step whose full state is still to come.
  bool pending, stepped;
  int64_t pending_step;
  // What it is at.
  int64_t step;
  struct zb_progress own_progress, *progress; // its own, or the watched one
  struct zb_compute_setup setup;
  bool runs_on; // its device, after its part has ended
  struct zb_rank_log log;
};

static inline const struct zb_instruction *zb_rank_instruction(const struct zb_rank *rank, int32_t position) {
  return &rank->replay->program->instructions[position];
}

// Waits until the backend has done all that was issued, as long as it gets on and nobody gives up. Where it
// does not, the rank's progress becomes what the device itself has finished and is at.
enum zb_status zb_rank_finish(struct zb_rank *rank, struct zb_error *error);

// Before an op is issued: waits likewise, where more ops than a device's queue has room for have not ended.
enum zb_status zb_rank_keep_near(struct zb_rank *rank, struct zb_error *error);

// Fails with "waiting for 1RECV_B1 from device 2, 128 bytes: " before the error's text.
enum zb_status zb_rank_fail_waiting(const struct zb_rank *rank, enum zb_status status,
                                    struct zb_error *error);

// What is resumed into the backend, and a checkpoint after this step (rank_checkpoint.c).
enum zb_status zb_rank_resume(struct zb_rank *rank, struct zb_error *error);
enum zb_status zb_rank_checkpoint(struct zb_rank *rank, struct zb_error *error);

#endif
