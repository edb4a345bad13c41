// program_check_slots.c - every buffer is written when free and read while it holds what the reader needs.
//
// One walk along each list with what each slot holds: a microbatch and how far it is. Ops run one after
// another on their device and a receive writes from where it is posted, so the list's order is the order of
// all writes and reads but those of sends, which last until their wait.
#include <stdlib.h>

#include "solver/program/program_check.h"

enum phase { FREE, FULL, BACKWARD, SENDING }; // BACKWARD: a KEPT slot whose B has run

struct slot {
  int32_t microbatch;
  enum phase phase;
};

struct shelf {
  const struct zb_program *program;
  size_t *first; // [stages * kinds] where its slots begin
  struct slot *slots;
  int32_t *used, *most; // [stages * kinds] in use now, and at most so far
};

// Takes slot `index` of the kind from phase `from` (FREE, or holding `microbatch`) to phase `to`.
static enum zb_status move(struct shelf *shelf, size_t at, int stage, enum zb_slot_kind kind, int32_t index,
                           enum phase from, enum phase to, struct zb_error *error) {
  const struct zb_program *program = shelf->program;
  const int32_t microbatch = program->instructions[at].microbatch;
  const size_t which = (size_t)(stage * ZB_SLOT_KINDS + (int)kind);
  if (index == -1)
    return zb_instruction_fail(error, program, at, "it names no %s slot of stage %d", zb_slot_word(kind),
                               stage);
  if (index < 0 || index >= program->slots[which])
    return zb_instruction_fail(error, program, at, "there is no %s slot %d of stage %d, there are %d",
                               zb_slot_word(kind), (int)index, stage, (int)program->slots[which]);
  struct slot *slot = &shelf->slots[shelf->first[which] + (size_t)index];
  if (slot->phase != from || (from != FREE && slot->microbatch != microbatch)) {
    const char *const needed[] = {"free", "filled with its microbatch", "left by its B", "being sent"};
    return zb_instruction_fail(error, program, at, "%s slot %d of stage %d must be %s", zb_slot_word(kind),
                               (int)index, stage, needed[from]);
  }
  *slot = (struct slot){microbatch, to};
  if (from == FREE && ++shelf->used[which] > shelf->most[which]) shelf->most[which] = shelf->used[which];
  if (to == FREE) shelf->used[which]--;
  return ZB_OK;
}

static enum zb_status no_slot(const struct zb_program *program, size_t at, const char *field, int32_t index,
                              struct zb_error *error) {
  if (index == -1) return ZB_OK;
  return zb_instruction_fail(error, program, at, "%s slot %d, expected none", field, (int)index);
}

// What the op takes in is free again afterwards; what it puts out goes into a buffer of the next stage where
// that is on the same device, else into one to send from.
static enum zb_status check_flow(struct shelf *shelf, size_t at, struct zb_error *error) {
  const struct zb_program *program = shelf->program;
  const struct zb_profile *profile = program->profile;
  const struct zb_instruction *i = &program->instructions[at];
  const int step = i->kind == ZB_DO_F ? 1 : -1, from = i->stage - step, to = i->stage + step;
  const enum zb_slot_kind in = i->kind == ZB_DO_F ? ZB_SLOT_INPUT : ZB_SLOT_GRADIENT_IN;
  const enum zb_slot_kind out = i->kind == ZB_DO_F ? ZB_SLOT_OUTPUT : ZB_SLOT_GRADIENT_OUT;
  const bool last = to < 0 || to == profile->stages;
  const bool here = !last && profile->device_of[to] == profile->device_of[i->stage];
  enum zb_status status = from < 0 || from == profile->stages
                              ? no_slot(program, at, "reads", i->reads, error)
                              : move(shelf, at, i->stage, in, i->reads, FULL, FREE, error);
  if (status != ZB_OK) return status;
  if (last) return no_slot(program, at, "writes", i->writes, error);
  return move(shelf, at, here ? to : i->stage, here ? in : out, i->writes, FREE, FULL, error);
}

static enum zb_status check_op(struct shelf *shelf, size_t at, struct zb_error *error) {
  const struct zb_program *program = shelf->program;
  const struct zb_instruction *i = &program->instructions[at];
  static const enum phase from[] = {FREE, FULL, BACKWARD, FULL}, to[] = {FULL, BACKWARD, FREE, FREE};
  enum zb_status status =
      move(shelf, at, i->stage, ZB_SLOT_KEPT, i->keeps, from[i->kind], to[i->kind], error);
  if (status == ZB_OK && i->peer != -1) status = zb_instruction_fail(error, program, at, "an op has no peer");
  if (status != ZB_OK) return status;
  if (i->kind != ZB_DO_W) return check_flow(shelf, at, error);
  status = no_slot(program, at, "reads", i->reads, error);
  return status == ZB_OK ? no_slot(program, at, "writes", i->writes, error) : status;
}

static enum zb_status check_message(struct shelf *shelf, size_t at, struct zb_error *error) {
  const struct zb_program *program = shelf->program;
  const struct zb_instruction *i = &program->instructions[at];
  const bool receive = zb_instruction_is_receive(i->kind), send = zb_instruction_is_send(i->kind);
  const bool forward = i->kind == ZB_DO_SEND_F || i->kind == ZB_DO_RECV_F || i->kind == ZB_DO_WAIT_SEND_F;
  enum zb_status status = no_slot(program, at, "keeps", i->keeps, error);
  if (status == ZB_OK)
    status = no_slot(program, at, receive ? "reads" : "writes", receive ? i->reads : i->writes, error);
  if (status != ZB_OK) return status;
  if (receive)
    return move(shelf, at, i->stage, forward ? ZB_SLOT_INPUT : ZB_SLOT_GRADIENT_IN, i->writes, FREE, FULL,
                error);
  return move(shelf, at, i->stage, forward ? ZB_SLOT_OUTPUT : ZB_SLOT_GRADIENT_OUT, i->reads,
              send ? FULL : SENDING, send ? SENDING : FREE, error);
}

static enum zb_status check_rest(const struct zb_program *program, size_t at, struct zb_error *error) {
  const struct zb_instruction *i = &program->instructions[at];
  if (i->stage != -1 || i->microbatch != -1)
    return zb_instruction_fail(error, program, at, "it has no stage and no microbatch");
  if (zb_instruction_acts(i->kind) == ZB_ACTS_DEVICE && i->peer != -1)
    return zb_instruction_fail(error, program, at, "it has no peer");
  enum zb_status status = no_slot(program, at, "keeps", i->keeps, error);
  if (status == ZB_OK) status = no_slot(program, at, "reads", i->reads, error);
  return status == ZB_OK ? no_slot(program, at, "writes", i->writes, error) : status;
}

static enum zb_status check_counts(const struct shelf *shelf, struct zb_error *error) {
  const struct zb_program *program = shelf->program;
  for (int s = 0; s < program->profile->stages; s++)
    for (int kind = 0; kind < ZB_SLOT_KINDS; kind++) {
      const int which = s * ZB_SLOT_KINDS + kind;
      const char *word = zb_slot_word((enum zb_slot_kind)kind);
      if (shelf->used[which] != 0)
        return zb_fail(error, ZB_WRONG, "stage %d: %d %s slots are never given back", s,
                       (int)shelf->used[which], word);
      if (shelf->most[which] != program->slots[which])
        return zb_fail(error, ZB_WRONG, "stage %d: %d %s slots, but %d are in use at once", s,
                       (int)program->slots[which], word, (int)shelf->most[which]);
    }
  return ZB_OK;
}

enum zb_status zb_program_check_slots(const struct zb_program *program, struct zb_error *error) {
  const size_t kinds = (size_t)program->profile->stages * ZB_SLOT_KINDS;
  size_t total = 0;
  struct shelf shelf = {.program = program,
                        .first = malloc(kinds * sizeof *shelf.first),
                        .used = calloc(kinds, sizeof *shelf.used),
                        .most = calloc(kinds, sizeof *shelf.most)};
  enum zb_status status = shelf.first && shelf.used && shelf.most ? ZB_OK : zb_fail_memory(error);
  for (size_t k = 0; k < kinds && status == ZB_OK; k++) {
    shelf.first[k] = total;
    if (program->slots[k] < 0 || program->slots[k] > program->profile->microbatches)
      status = zb_fail(error, ZB_WRONG, "stage %zu: %d %s slots, expected at most one a microbatch",
                       k / ZB_SLOT_KINDS, (int)program->slots[k],
                       zb_slot_word((enum zb_slot_kind)(k % ZB_SLOT_KINDS)));
    total += (size_t)program->slots[k];
  }
  if (status == ZB_OK && !(shelf.slots = calloc(total + 1, sizeof *shelf.slots)))
    status = zb_fail_memory(error);
  for (size_t at = 0; at < program->first[program->devices] && status == ZB_OK; at++) {
    const enum zb_acts acts = zb_instruction_acts(program->instructions[at].kind);
    status = acts == ZB_ACTS_OP        ? check_op(&shelf, at, error)
             : acts == ZB_ACTS_MESSAGE ? check_message(&shelf, at, error)
                                       : check_rest(program, at, error);
  }
  if (status == ZB_OK) status = check_counts(&shelf, error);
  free(shelf.first);
  free(shelf.slots);
  free(shelf.used);
  free(shelf.most);
  return status;
}
