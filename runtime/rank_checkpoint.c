// rank_checkpoint.c - a device's part of a checkpoint: device 0 collects all stages and writes them.
//
// Taken between two steps, with every verdict in and nothing under way, on all devices after the same step.
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint.h"
#include "runtime/gather.h"
#include "runtime/keep.h"
#include "runtime/rank_parts.h"

// A stage's numbers lie together in each third of the checkpoint's.
struct span {
  size_t begin, count;
};

static struct span span_of(const struct zb_replay *replay, int stage) {
  const struct zb_gpt *gpt = replay->training->gpt;
  size_t begin = zb_checkpoint_place(gpt, replay->first_unit[stage]);
  return (struct span){begin, zb_checkpoint_place(gpt, replay->first_unit[stage + 1]) - begin};
}

enum zb_status zb_rank_resume(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  const struct zb_checkpoint *from = replay->resumed;
  enum zb_status status = ZB_OK;
  for (int s = 0; from && status == ZB_OK && s < replay->program->profile->stages; s++) {
    if (replay->program->profile->device_of[s] != rank->device) continue;
    struct span span = span_of(replay, s);
    zb_real *values = zb_reals(3 * span.count);
    if (!values) return zb_fail_memory(error);
    for (size_t third = 0; third < 3; third++)
      memcpy(values + third * span.count, from->values + third * from->count + span.begin,
             span.count * sizeof *values);
    status = replay->compute->restore(rank->state, s, values, from->made, error);
    free(values);
  }
  return status;
}

static enum zb_status move_stage(struct zb_rank *rank, int stage, struct zb_checkpoint *whole,
                                 struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  int owner = replay->program->profile->device_of[stage];
  struct span span = span_of(replay, stage);
  if ((owner != rank->device && rank->device != 0) || span.count == 0) return ZB_OK;
  zb_real *values = zb_reals(3 * span.count);
  if (!values) return zb_fail_memory(error);
  enum zb_status status = ZB_OK;
  int64_t made;
  if (owner == rank->device) status = replay->compute->store(rank->state, stage, values, &made, error);
  if (status == ZB_OK && owner == 0) whole->made = made;
  if (status == ZB_OK && owner != 0)
    status = zb_gather_part(rank, owner, stage, values, 3 * span.count * sizeof *values, error);
  for (size_t third = 0; status == ZB_OK && whole && third < 3; third++)
    memcpy(whole->values + third * whole->count + span.begin, values + third * span.count,
           span.count * sizeof *values);
  free(values);
  return status;
}

enum zb_status zb_rank_checkpoint(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  struct zb_checkpoint *whole = NULL;
  enum zb_status status = rank->device == 0 ? zb_checkpoint_create(replay->training, &whole, error) : ZB_OK;
  for (int s = 0; status == ZB_OK && s < replay->program->profile->stages; s++)
    status = move_stage(rank, s, whole, error);
  if (status == ZB_OK && whole) {
    whole->step = rank->step + 1;
    status = zb_checkpoint_write(replay->checkpoint, replay->training, whole, error);
  }
  zb_checkpoint_free(whole);
  return status;
}
