// rank.c - the loop over instructions.
#include "runtime/rank.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/adamw.h"
#include "runtime/rank_parts.h"
#include "solver/model/deadline.h"

const char *zb_note_word(enum zb_note note) {
  static const char *const words[] = {
#define X(name, word) word,
      ZB_NOTE_TABLE(X)
#undef X
  };
  return words[note];
}

const struct zb_rank_log *zb_rank_log(const struct zb_rank *rank) { return &rank->log; }
const struct zb_progress *zb_rank_progress(const struct zb_rank *rank) { return rank->progress; }
void *zb_rank_state(const struct zb_rank *rank) { return rank->state; }

bool zb_rank_keeps_gradient(const struct zb_rank *rank) { return rank->setup.weights_before_verdict; }

static enum zb_status note_event(struct zb_rank *rank, int32_t instruction, struct zb_interval when,
                                 enum zb_note note, struct zb_error *error) {
  rank->log.notes[note]++;
  if (!rank->replay->traces) return ZB_OK;
  if (rank->log.events == rank->event_room) {
    size_t room = rank->event_room ? 2 * rank->event_room : 1024;
    struct zb_event *event = realloc(rank->log.event, room * sizeof *event);
    if (!event) return zb_fail_memory(error);
    rank->log.event = event;
    rank->event_room = room;
  }
  rank->log.event[rank->log.events++] =
      (struct zb_event){when, instruction, (int32_t)rank->step, (int32_t)note};
  return ZB_OK;
}

// Waits for a posted message; nothing where none is.
static enum zb_status wait_ticket(struct zb_rank *rank, struct zb_ticket *ticket, int32_t instruction,
                                  int64_t posted_ns, struct zb_error *error) {
  if (!ticket->posted) return ZB_OK;
  // The message that does not come is what this device is at, whichever instruction needs it.
  struct zb_progress *progress = rank->progress;
  progress->awaited = *zb_rank_instruction(rank, instruction);
  progress->bytes = zb_instruction_acts(progress->awaited.kind) == ZB_ACTS_LINE
                        ? (size_t)rank->units * sizeof(double)
                        : rank->message_bytes;
  progress->waits = true;
  void *event = NULL;
  enum zb_status status = rank->replay->transport->wait(
      rank->endpoint, ticket, zb_clock_ns() + rank->replay->timeout_ns, &event, error);
  if (status != ZB_OK) return zb_rank_fail_waiting(rank, status, error);
  progress->waits = false;
  struct zb_interval when = {posted_ns, zb_clock_ns()};
  status = note_event(rank, instruction, when, ZB_NOTE_NONE, error);
  if (status == ZB_OK && event) status = rank->replay->compute->await(rank->state, event, error);
  return status;
}

static enum zb_status wait_slot(struct zb_rank *rank, struct zb_slot *slot, struct zb_error *error) {
  return slot ? wait_ticket(rank, &slot->ticket, slot->instruction, slot->posted_ns, error) : ZB_OK;
}

static enum zb_status wait_line(struct zb_rank *rank, int which, struct zb_error *error) {
  struct zb_line *line = &rank->line[which];
  return wait_ticket(rank, &line->ticket, line->instruction, line->posted_ns, error);
}

static struct zb_slot *slot_of(struct zb_rank *rank, int stage, enum zb_slot_kind kind, int32_t index) {
  return index < 0 ? NULL : &rank->slot[rank->slot_at[stage * ZB_SLOT_KINDS + (int)kind] + (size_t)index];
}

static bool is_here(const struct zb_rank *rank, int stage) {
  const struct zb_profile *profile = rank->replay->program->profile;
  return stage >= 0 && stage < profile->stages && profile->device_of[stage] == rank->device;
}

static enum zb_status do_op(struct zb_rank *rank, int32_t position, struct zb_error *error) {
  const struct zb_instruction *i = zb_rank_instruction(rank, position);
  struct zb_slot *in = NULL, *out = NULL;
  if (i->kind == ZB_DO_F) {
    in = slot_of(rank, i->stage, ZB_SLOT_INPUT, i->reads);
    out = is_here(rank, i->stage + 1) ? slot_of(rank, i->stage + 1, ZB_SLOT_INPUT, i->writes)
                                      : slot_of(rank, i->stage, ZB_SLOT_OUTPUT, i->writes);
  } else if (i->kind != ZB_DO_W) {
    in = slot_of(rank, i->stage, ZB_SLOT_GRADIENT_IN, i->reads);
    out = is_here(rank, i->stage - 1) ? slot_of(rank, i->stage - 1, ZB_SLOT_GRADIENT_IN, i->writes)
                                      : slot_of(rank, i->stage, ZB_SLOT_GRADIENT_OUT, i->writes);
  }
  enum zb_status status = wait_slot(rank, in, error);
  if (status == ZB_OK) status = zb_rank_keep_near(rank, error);
  if (status != ZB_OK) return status;
  struct zb_op op = {i->stage, i->microbatch, (enum zb_kind)i->kind};
  rank->ops_issued++;
  int64_t begin_ns = zb_clock_ns();
  status = rank->replay->compute->op(rank->state, op, in ? in->buffer : NULL, out ? out->buffer : NULL,
                                     &rank->interval[(size_t)position - rank->first], error);
  rank->log.step[rank->step].host_ns += zb_clock_ns() - begin_ns;
  return status;
}

static int64_t delay_of(const struct zb_rank *rank, const struct zb_instruction *i) {
  const struct zb_profile *profile = rank->replay->program->profile;
  if (!rank->replay->compute->pretends) return 0;
  switch (i->kind) {
  case ZB_DO_RECV_F:
    return profile->comm_forward_ns[i->stage - 1];
  case ZB_DO_RECV_B:
    return profile->comm_backward_ns[i->stage];
  default:
    return 0;
  }
}

// Posts a send or a receive of `bytes` at `data`.
static enum zb_status post(struct zb_rank *rank, const struct zb_instruction *i, void *data, size_t bytes,
                           void *after, struct zb_ticket *ticket, struct zb_error *error) {
  struct zb_instruction sent = zb_instruction_is_send(i->kind) ? *i : zb_instruction_other_end(*i);
  struct zb_label label = {(int32_t)sent.kind, sent.stage, sent.microbatch, delay_of(rank, i)};
  const struct zb_transport *transport = rank->replay->transport;
  return zb_instruction_is_send(i->kind)
             ? transport->send(rank->endpoint, i->peer, label, data, bytes, after, ticket, error)
             : transport->receive(rank->endpoint, i->peer, label, data, bytes, after, ticket, error);
}

static struct zb_slot *message_slot(struct zb_rank *rank, const struct zb_instruction *i) {
  switch (i->kind) {
  case ZB_DO_RECV_F:
    return slot_of(rank, i->stage, ZB_SLOT_INPUT, i->writes);
  case ZB_DO_RECV_B:
    return slot_of(rank, i->stage, ZB_SLOT_GRADIENT_IN, i->writes);
  case ZB_DO_SEND_F:
  case ZB_DO_WAIT_SEND_F:
    return slot_of(rank, i->stage, ZB_SLOT_OUTPUT, i->reads);
  default:
    return slot_of(rank, i->stage, ZB_SLOT_GRADIENT_OUT, i->reads);
  }
}

static enum zb_status do_message(struct zb_rank *rank, int32_t position, struct zb_error *error) {
  const struct zb_instruction *i = zb_rank_instruction(rank, position);
  struct zb_slot *slot = message_slot(rank, i);
  if (i->kind == ZB_DO_WAIT_SEND_F || i->kind == ZB_DO_WAIT_SEND_B) return wait_slot(rank, slot, error);
  // A send reads what the op before it writes; a receive writes what an op before it may still read.
  void *after = NULL;
  enum zb_status status = rank->replay->compute->record(rank->state, &after, error);
  if (status != ZB_OK) return status;
  slot->instruction = position;
  slot->posted_ns = zb_clock_ns();
  return post(rank, i, slot->buffer, rank->message_bytes, after, &slot->ticket, error);
}

static enum zb_status do_line(struct zb_rank *rank, int32_t position, struct zb_error *error) {
  const struct zb_instruction *i = zb_rank_instruction(rank, position);
  size_t bytes = (size_t)rank->units * sizeof(double);
  int which = i->kind == ZB_DO_RECV_NORM    ? ZB_NORM_IN
              : i->kind == ZB_DO_SEND_NORM  ? ZB_NORM_OUT
              : i->kind == ZB_DO_RECV_STATE ? ZB_STATE_IN
                                            : ZB_STATE_OUT;
  struct zb_line *line = &rank->line[which];
  enum zb_status status = wait_line(rank, which, error);
  if (status == ZB_OK && which == ZB_STATE_OUT) status = wait_line(rank, ZB_STATE_IN, error);
  if (status != ZB_OK) return status;
  if (which == ZB_NORM_OUT) memcpy(line->partial, rank->known, bytes);
  if (which == ZB_STATE_OUT) memcpy(line->partial, rank->line[ZB_STATE_IN].partial, bytes);
  line->instruction = position;
  line->posted_ns = zb_clock_ns();
  return post(rank, i, line->partial, bytes, NULL, &line->ticket, error);
}

static enum zb_status do_norm(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  const struct zb_training *training = replay->training;
  size_t bytes = (size_t)rank->units * sizeof(double);
  enum zb_status status = ZB_OK;
  if (rank->step == training->nan_step && is_here(rank, replay->nan_stage))
    status = replay->compute->poison(rank->state, replay->nan_stage, error);
  // What repeats by itself has all its messages inside.
  for (size_t k = 0; replay->graph && status == ZB_OK && k < rank->slots; k++)
    status = wait_slot(rank, &rank->slot[k], error);
  if (status == ZB_OK) status = replay->compute->norm(rank->state, error);
  // The one wait of an iteration for the device; before that for the line, so that a device which hangs is
  // told from one that waits for it.
  if (status == ZB_OK) status = zb_rank_finish(rank, error);
  if (status == ZB_OK) status = wait_line(rank, ZB_NORM_IN, error);
  if (status != ZB_OK) return status;
  if (rank->first_of_line)
    for (int u = 0; u < rank->units; u++) rank->known[u] = ZB_PARTIAL_UNKNOWN;
  else
    memcpy(rank->known, rank->line[ZB_NORM_IN].partial, bytes);
  replay->compute->partials(rank->state, rank->known);
  // The last device of the line knows all there is to know.
  if (rank->last_of_line) memcpy(rank->line[ZB_STATE_IN].partial, rank->known, bytes);
  return status;
}

static enum zb_status do_step(struct zb_rank *rank, enum zb_note *note, struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  double clip = replay->training->gpt->adamw.clip;
  if (replay->program->optimizer == ZB_OPTIMIZER_BARRIER) {
    enum zb_status status = wait_line(rank, ZB_STATE_IN, error);
    if (status != ZB_OK) return status;
    struct zb_judgement all = zb_adamw_judge(rank->line[ZB_STATE_IN].partial, rank->units, clip);
    rank->log.step[rank->step].norm = all.norm;
    *note = all.verdict == ZB_STEP_WHOLE     ? ZB_NOTE_STEPPED
            : all.verdict == ZB_STEP_CLIPPED ? ZB_NOTE_CLIPPED
                                             : ZB_NOTE_SKIPPED;
    if (all.verdict == ZB_STEP_SKIPPED) return ZB_OK;
    return replay->compute->step(rank->state, all.scale, false, error);
  }
  struct zb_judgement so_far = zb_adamw_judge(rank->known, rank->units, clip);
  rank->pending = true;
  rank->pending_step = rank->step;
  rank->stepped = so_far.verdict == ZB_STEP_WHOLE;
  *note = rank->stepped ? ZB_NOTE_STEPPED : ZB_NOTE_HELD;
  return rank->stepped ? replay->compute->step(rank->state, 1, true, error) : ZB_OK;
}

// Holds the full state against the step that was made or held. *again: it was wrong, on this device or
// another.
static enum zb_status do_validate(struct zb_rank *rank, bool *again, enum zb_note *note,
                                  struct zb_error *error) {
  const struct zb_compute *compute = rank->replay->compute;
  enum zb_status status = wait_line(rank, ZB_STATE_IN, error);
  if (status != ZB_OK) return status;
  struct zb_judgement all =
      zb_adamw_judge(rank->line[ZB_STATE_IN].partial, rank->units, rank->replay->training->gpt->adamw.clip);
  rank->log.step[rank->pending_step].norm = all.norm;
  rank->pending = false;
  *again = all.verdict != ZB_STEP_WHOLE;
  if (!*again) {
    // Knowing less never says more (adamw.h), so no device has held a step that is right whole.
    assert(rank->stepped);
    *note = ZB_NOTE_RIGHT;
    return ZB_OK;
  }
  *note = rank->stepped ? ZB_NOTE_ROLLED : all.verdict == ZB_STEP_CLIPPED ? ZB_NOTE_LATE : ZB_NOTE_NOT_MADE;
  if (rank->stepped) status = compute->undo(rank->state, 1, error);
  if (status == ZB_OK && all.verdict == ZB_STEP_CLIPPED)
    status = compute->step(rank->state, all.scale, false, error);
  return status;
}

// All messages that this device has under way: their other ends are posted, or will be without its help.
static enum zb_status settle(struct zb_rank *rank, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (size_t k = 0; status == ZB_OK && k < rank->slots; k++) status = wait_slot(rank, &rank->slot[k], error);
  for (int k = 0; status == ZB_OK && k < ZB_LINES; k++) status = wait_line(rank, k, error);
  return status;
}

static bool is_verdict(enum zb_instruction_kind kind) {
  return kind == ZB_DO_RECV_STATE || kind == ZB_DO_SEND_STATE || kind == ZB_DO_VALIDATE;
}

static enum zb_status do_instruction(struct zb_rank *rank, int32_t position, bool *again,
                                     struct zb_error *error) {
  const struct zb_instruction *i = zb_rank_instruction(rank, position);
  enum zb_note note = ZB_NOTE_NONE;
  enum zb_status status = ZB_OK;
  struct zb_interval when = {zb_clock_ns(), 0};
  rank->progress->at = *i;
  switch (zb_instruction_acts(i->kind)) {
  case ZB_ACTS_OP:
    status = do_op(rank, position, error);
    break;
  case ZB_ACTS_MESSAGE:
    status = do_message(rank, position, error);
    break;
  case ZB_ACTS_LINE:
    status = do_line(rank, position, error);
    break;
  case ZB_ACTS_DEVICE:
    if (i->kind == ZB_DO_NORM) status = do_norm(rank, error);
    if (i->kind == ZB_DO_STEP) status = do_step(rank, &note, error);
    if (i->kind == ZB_DO_VALIDATE) status = do_validate(rank, again, &note, error);
    when.end_ns = zb_clock_ns();
    if (status == ZB_OK) status = note_event(rank, position, when, note, error);
    break;
  }
  if (status != ZB_OK) return status;
  rank->progress->last = *i;
  rank->progress->finished = true;
  rank->log.instructions++;
  return ZB_OK;
}

// A batch begins, or begins again. *repeats: by itself (zb_compute.repeats).
static enum zb_status begin_batch(struct zb_rank *rank, bool *repeats, struct zb_error *error) {
  const struct zb_compute *compute = rank->replay->compute;
  enum zb_status status = compute->begin(rank->state, rank->step, error);
  *repeats = status == ZB_OK && compute->repeats && compute->repeats(rank->state);
  rank->ops_issued = 0;
  for (size_t k = 0; *repeats && k < rank->count; k++)
    rank->ops_issued +=
        zb_instruction_acts(zb_rank_instruction(rank, (int32_t)(rank->first + k))->kind) == ZB_ACTS_OP;
  return status;
}

// What the step's ops took, for the log.
static enum zb_status account(struct zb_rank *rank, struct zb_error *error) {
  struct zb_step_log *log = &rank->log.step[rank->step];
  enum zb_status status = ZB_OK;
  bool any = false;
  for (size_t k = 0; status == ZB_OK && k < rank->count; k++) {
    if (zb_instruction_acts(zb_rank_instruction(rank, (int32_t)(rank->first + k))->kind) != ZB_ACTS_OP)
      continue;
    struct zb_interval when = rank->interval[k];
    int64_t took_ns = when.end_ns - when.start_ns;
    if (!any) log->first_start_ns = when.start_ns;
    any = true;
    log->last_end_ns = when.end_ns;
    log->busy_ns += took_ns;
    if (rank->step >= rank->replay->warm_up) {
      rank->log.busy_ns[k] += took_ns;
      if (took_ns > rank->log.longest_ns[k]) rank->log.longest_ns[k] = took_ns;
    }
    status = note_event(rank, (int32_t)(rank->first + k), when, ZB_NOTE_NONE, error);
  }
  return status;
}

static enum zb_status run_step(struct zb_rank *rank, struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  const struct zb_training *training = replay->training;
  bool validates = rank->pending, again = false, repeats = false;
  rank->progress->step = rank->step;
  enum zb_status status = begin_batch(rank, &repeats, error);
  for (size_t k = 0; status == ZB_OK && k < rank->count; k++) {
    int32_t position = (int32_t)(rank->first + k);
    enum zb_instruction_kind kind = zb_rank_instruction(rank, position)->kind;
    if (replay->program->optimizer == ZB_OPTIMIZER_POST_VALIDATION && is_verdict(kind) && !validates)
      continue;
    if (repeats && (zb_instruction_acts(kind) == ZB_ACTS_OP || zb_instruction_acts(kind) == ZB_ACTS_MESSAGE))
      continue;
    status = do_instruction(rank, position, &again, error);
    if (status != ZB_OK || !again) continue;
    again = validates = false;
    rank->log.repeats++;
    status = settle(rank, error);
    if (status == ZB_OK) status = begin_batch(rank, &repeats, error);
    k = (size_t)-1; // from the beginning
  }
  // All ops come before NORM, which has waited for them.
  if (status == ZB_OK) status = account(rank, error);
  if (status != ZB_OK) return status;
  rank->log.step[rank->step].end_ns = zb_clock_ns();
  if (rank->log.loss && replay->compute->loss(rank->state, rank->microbatch_loss))
    rank->log.loss[rank->step] = zb_training_loss(training, rank->microbatch_loss);
  return ZB_OK;
}

// The full state of the last step, which no step follows at once.
static enum zb_status run_last_verdict(struct zb_rank *rank, struct zb_error *error) {
  bool again = false;
  enum zb_status status = ZB_OK;
  for (size_t k = 0; status == ZB_OK && rank->pending && k < rank->count; k++) {
    int32_t position = (int32_t)(rank->first + k);
    if (is_verdict(zb_rank_instruction(rank, position)->kind))
      status = do_instruction(rank, position, &again, error);
  }
  return status;
}

static bool is_due(const struct zb_rank *rank) {
  const struct zb_replay *replay = rank->replay;
  int64_t done = rank->step + 1;
  return replay->checkpoint && (done == replay->training->steps ||
                                (replay->checkpoint_every && done % replay->checkpoint_every == 0));
}

enum zb_status zb_rank_run(struct zb_rank *rank, struct zb_error *error) {
  struct zb_error local;
  if (!error) error = &local;
  enum zb_status status = ZB_OK;
  for (rank->step = rank->replay->first_step; status == ZB_OK && rank->step < rank->replay->training->steps;
       rank->step++) {
    status = run_step(rank, error);
    if (status != ZB_OK || !is_due(rank)) continue;
    status = run_last_verdict(rank, error);
    if (status == ZB_OK) status = settle(rank, error);
    if (status == ZB_OK) status = zb_rank_checkpoint(rank, error);
  }
  if (status == ZB_OK) status = run_last_verdict(rank, error);
  if (status == ZB_OK) status = settle(rank, error);
  if (status == ZB_OK) status = zb_rank_finish(rank, error);
  if (status == ZB_OK) {
    rank->log.memory = rank->replay->compute->memory(rank->state);
    rank->progress->through = true;
    return ZB_OK;
  }
  rank->replay->transport->abandon(rank->shared);
  struct zb_text text = {0};
  zb_progress_print(rank->progress, false, &text);
  zb_text_print(&text, ", %.300s", error->text);
  zb_fail(error, status, "%s", text.data ? text.data : error->text);
  zb_text_free(&text);
  return status;
}
