// rank_open.c - everything that a rank will need, allocated before its first step.
#include <assert.h>
#include <stdlib.h>

#include "runtime/rank_parts.h"
#include "solver/model/deadline.h"

// How long a device may take to end what is left of its work after a failure.
static const int64_t moment_ns = INT64_C(1000000000);

static bool weights_before_verdict(const struct zb_program *program, int device) {
  for (size_t k = program->first[device];
       k < program->first[device + 1] && program->instructions[k].kind != ZB_DO_VALIDATE; k++)
    if (program->instructions[k].kind == ZB_DO_W || program->instructions[k].kind == ZB_DO_BW) return true;
  return false;
}

struct zb_compute_setup zb_rank_setup(const struct zb_replay *replay, int device, int seat) {
  const struct zb_program *program = replay->program;
  bool validates = program->optimizer == ZB_OPTIMIZER_POST_VALIDATION;
  return (struct zb_compute_setup){
      .profile = program->profile,
      .training = replay->training,
      .first_unit = replay->first_unit,
      .program = program,
      .device = device,
      .seat = seat,
      .may_undo = validates,
      .rollback = replay->rollback,
      .weights_before_verdict = validates && weights_before_verdict(program, device),
      .graph = replay->graph,
  };
}

// Gradients are summed in microbatch order, which needs the Bs of a stage in that order.
static enum zb_status expect_backward_order(const struct zb_rank *rank, struct zb_error *error) {
  const struct zb_profile *profile = rank->replay->program->profile;
  for (int s = 0; s < profile->stages; s++) {
    int next = 0;
    for (size_t k = 0; k < rank->count; k++) {
      const struct zb_instruction *i = zb_rank_instruction(rank, (int32_t)(rank->first + k));
      if (i->stage != s || (i->kind != ZB_DO_B && i->kind != ZB_DO_BW)) continue;
      if (i->microbatch != next)
        return zb_fail(error, ZB_BAD_INPUT,
                       "device %d, position %zu: %d%s%d comes before that of microbatch %d; replay needs the "
                       "backward passes of a stage in order",
                       rank->device, k, i->stage, zb_instruction_word(i->kind), i->microbatch, next);
      next++;
    }
  }
  return ZB_OK;
}

static enum zb_status open_slots(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_program *program = rank->replay->program;
  const struct zb_compute *compute = rank->replay->compute;
  const size_t kinds = (size_t)program->profile->stages * ZB_SLOT_KINDS;
  rank->slot_at = calloc(kinds, sizeof *rank->slot_at);
  if (!rank->slot_at) return zb_fail_memory(error);
  size_t count = 0;
  for (int s = 0; s < program->profile->stages; s++) {
    for (int kind = 0; kind < ZB_SLOT_KINDS; kind++) {
      rank->slot_at[s * ZB_SLOT_KINDS + kind] = count;
      // What a microbatch keeps is the backend's own.
      if (program->profile->device_of[s] == rank->device && kind != ZB_SLOT_KEPT)
        count += (size_t)zb_program_slots(program, s, (enum zb_slot_kind)kind);
    }
  }
  rank->slot = calloc(count + 1, sizeof *rank->slot);
  if (!rank->slot) return zb_fail_memory(error);
  for (; rank->slots < count; rank->slots++) {
    enum zb_status status =
        compute->allocate(rank->state, rank->message_bytes, &rank->slot[rank->slots].buffer, error);
    if (status != ZB_OK) return status;
  }
  rank->log.buffer_bytes = (int64_t)(count * rank->message_bytes);
  return ZB_OK;
}

static enum zb_status open_numbers(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_training *training = rank->replay->training;
  size_t steps = (size_t)training->steps;
  for (int k = 0; k < ZB_LINES; k++) {
    rank->line[k].partial = calloc((size_t)rank->units, sizeof(double));
    if (!rank->line[k].partial) return zb_fail_memory(error);
  }
  rank->known = calloc((size_t)rank->units, sizeof *rank->known);
  rank->interval = calloc(rank->count + 1, sizeof *rank->interval);
  rank->microbatch_loss = calloc((size_t)training->microbatches, sizeof *rank->microbatch_loss);
  rank->log.step = calloc(steps + 1, sizeof *rank->log.step);
  rank->log.busy_ns = calloc(rank->count + 1, sizeof *rank->log.busy_ns);
  rank->log.longest_ns = calloc(rank->count + 1, sizeof *rank->log.longest_ns);
  bool has_loss =
      rank->replay->compute->trains &&
      rank->replay->program->profile->device_of[rank->replay->program->profile->stages - 1] == rank->device;
  if (has_loss) rank->log.loss = calloc(steps + 1, sizeof *rank->log.loss);
  if (!rank->known || !rank->interval || (has_loss && !rank->log.loss) || !rank->microbatch_loss ||
      !rank->log.step || !rank->log.busy_ns || !rank->log.longest_ns)
    return zb_fail_memory(error);
  return ZB_OK;
}

enum zb_status zb_rank_open(const struct zb_replay *replay, void *shared, int device, struct zb_rank **rank,
                            struct zb_error *error) {
  const struct zb_program *program = replay->program;
  assert(program->optimizer != ZB_OPTIMIZER_NONE);
  struct zb_rank *made = calloc(1, sizeof *made);
  if (!made) return zb_fail_memory(error);
  *made = (struct zb_rank){
      .replay = replay,
      .shared = shared,
      .device = device,
      .units = zb_gpt_units(replay->training->gpt),
      .first = program->first[device],
      .count = program->first[device + 1] - program->first[device],
      .message_bytes = zb_training_message_bytes(replay->training),
  };
  made->progress = replay->watched ? replay->watched : &made->own_progress;
  *made->progress = (struct zb_progress){.device = device, .step = -1};
  made->setup = zb_rank_setup(replay, device, replay->transport->seat(shared, device));
  made->first_of_line = made->last_of_line = true;
  for (size_t k = 0; k < made->count; k++) {
    enum zb_instruction_kind kind = program->instructions[made->first + k].kind;
    if (kind == ZB_DO_RECV_NORM) made->first_of_line = false;
    if (kind == ZB_DO_SEND_NORM) made->last_of_line = false;
  }
  enum zb_status status = expect_backward_order(made, error);
  if (status == ZB_OK) status = replay->compute->open(&made->setup, &made->state, error);
  if (status == ZB_OK) status = zb_rank_resume(made, error);
  struct zb_mover mover = {replay->compute->copy, replay->compute->follow, made->state};
  if (status == ZB_OK)
    status = replay->transport->open(shared, device, mover.copy ? &mover : NULL, &made->endpoint, error);
  if (status == ZB_OK) status = open_slots(made, error);
  if (status == ZB_OK) status = open_numbers(made, error);
  if (status == ZB_OK) *rank = made;
  if (status != ZB_OK) {
    zb_rank_part(made);
    zb_rank_close(made);
  }
  return status;
}

void zb_rank_log_free(struct zb_rank_log *log) {
  free(log->step);
  free(log->busy_ns);
  free(log->longest_ns);
  free(log->event);
  free(log->loss);
  *log = (struct zb_rank_log){0};
}

void zb_rank_part(struct zb_rank *rank) {
  if (!rank) return;
  bool done = true;
  if (rank->state && rank->replay->compute->part) rank->replay->compute->part(rank->state);
  if (rank->endpoint) rank->replay->transport->close(rank->endpoint);
  rank->endpoint = NULL;
  // Another's device may still read what this one will free, and this one what another will.
  if (rank->state) rank->replay->compute->finish(rank->state, zb_clock_ns() + moment_ns, &done, NULL);
  rank->runs_on = !done;
}

void zb_rank_close(struct zb_rank *rank) {
  if (!rank) return;
  // A device that does not end keeps what it uses: freeing it might wait for ever, and the process ends.
  for (size_t k = 0; !rank->runs_on && k < rank->slots; k++)
    rank->replay->compute->release(rank->state, rank->slot[k].buffer);
  for (int k = 0; k < ZB_LINES; k++) free(rank->line[k].partial);
  if (rank->state && !rank->runs_on) rank->replay->compute->close(rank->state);
  free(rank->slot_at);
  free(rank->slot);
  free(rank->known);
  free(rank->interval);
  free(rank->microbatch_loss);
  zb_rank_log_free(&rank->log);
  free(rank);
}
