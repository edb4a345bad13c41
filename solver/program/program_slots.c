// program_slots.c - buffers for what a program keeps and moves, as many as its order needs.
//
// One walk along each device's list: an instruction first takes the slots that it fills, then gives back
// those that it read last. A slot that was given back is taken again before a new one is made, so at each
// stage there are as many of a kind as are ever in use at once; KEPT slots therefore as many as microbatches
// whose F has started and whose W has not ended, which is what the schedule's peak counts.
#include <stdlib.h>

#include "solver/program/lower.h"

// The slots of one kind at one stage, or of all kinds on the stages of a device in turn.
struct slots {
  struct zb_program *program;
  size_t microbatches;
  int32_t *held;  // [stages * kinds * microbatches] which slot holds a microbatch, -1: none
  int32_t *freed; // [stages * kinds * microbatches] stack of slots that were given back
  size_t *depth;  // [stages * kinds] of that stack
};

static int32_t take(struct slots *slots, int stage, enum zb_slot_kind kind, int microbatch) {
  const size_t which = (size_t)(stage * ZB_SLOT_KINDS + (int)kind), row = which * slots->microbatches;
  const int32_t slot =
      slots->depth[which] > 0 ? slots->freed[row + --slots->depth[which]] : slots->program->slots[which]++;
  return slots->held[row + (size_t)microbatch] = slot;
}

static int32_t find(const struct slots *slots, int stage, enum zb_slot_kind kind, int microbatch) {
  return slots->held[(size_t)(stage * ZB_SLOT_KINDS + (int)kind) * slots->microbatches + (size_t)microbatch];
}

static int32_t give_back(struct slots *slots, int stage, enum zb_slot_kind kind, int microbatch) {
  const size_t which = (size_t)(stage * ZB_SLOT_KINDS + (int)kind);
  const int32_t slot = find(slots, stage, kind, microbatch);
  slots->freed[which * slots->microbatches + slots->depth[which]++] = slot;
  return slot;
}

// Where the op's output goes: to a buffer of the stage itself, or straight into the next stage's on this
// device.
static int32_t take_output(struct slots *slots, const struct zb_instruction *at, int step,
                           enum zb_slot_kind sent, enum zb_slot_kind handed) {
  const struct zb_profile *profile = slots->program->profile;
  const int next = at->stage + step;
  if (next < 0 || next == profile->stages) return -1;
  if (profile->device_of[next] == profile->device_of[at->stage])
    return take(slots, next, handed, at->microbatch);
  return take(slots, at->stage, sent, at->microbatch);
}

static void assign(struct slots *slots, struct zb_instruction *at) {
  const int stage = at->stage, microbatch = at->microbatch;
  switch (at->kind) {
  case ZB_DO_F:
    at->keeps = take(slots, stage, ZB_SLOT_KEPT, microbatch);
    at->writes = take_output(slots, at, 1, ZB_SLOT_OUTPUT, ZB_SLOT_INPUT);
    if (stage > 0) at->reads = give_back(slots, stage, ZB_SLOT_INPUT, microbatch);
    break;
  case ZB_DO_B:
  case ZB_DO_BW:
    at->writes = take_output(slots, at, -1, ZB_SLOT_GRADIENT_OUT, ZB_SLOT_GRADIENT_IN);
    if (stage + 1 < slots->program->profile->stages)
      at->reads = give_back(slots, stage, ZB_SLOT_GRADIENT_IN, microbatch);
    at->keeps = at->kind == ZB_DO_B ? find(slots, stage, ZB_SLOT_KEPT, microbatch)
                                    : give_back(slots, stage, ZB_SLOT_KEPT, microbatch);
    break;
  case ZB_DO_W:
    at->keeps = give_back(slots, stage, ZB_SLOT_KEPT, microbatch);
    break;
  case ZB_DO_RECV_F:
    at->writes = take(slots, stage, ZB_SLOT_INPUT, microbatch);
    break;
  case ZB_DO_RECV_B:
    at->writes = take(slots, stage, ZB_SLOT_GRADIENT_IN, microbatch);
    break;
  case ZB_DO_SEND_F:
    at->reads = find(slots, stage, ZB_SLOT_OUTPUT, microbatch);
    break;
  case ZB_DO_SEND_B:
    at->reads = find(slots, stage, ZB_SLOT_GRADIENT_OUT, microbatch);
    break;
  case ZB_DO_WAIT_SEND_F:
    at->reads = give_back(slots, stage, ZB_SLOT_OUTPUT, microbatch);
    break;
  case ZB_DO_WAIT_SEND_B:
    at->reads = give_back(slots, stage, ZB_SLOT_GRADIENT_OUT, microbatch);
    break;
  default: // the optimizer's hold no buffer
    break;
  }
}

enum zb_status zb_program_assign_slots(struct zb_program *program, struct zb_error *error) {
  const size_t kinds = (size_t)program->profile->stages * ZB_SLOT_KINDS;
  const size_t microbatches = (size_t)program->profile->microbatches;
  struct slots slots = {program, microbatches, malloc(kinds * microbatches * sizeof(int32_t)),
                        malloc(kinds * microbatches * sizeof(int32_t)), calloc(kinds, sizeof(size_t))};
  enum zb_status status = ZB_OK;
  if (slots.held && slots.freed && slots.depth)
    for (size_t i = 0; i < program->first[program->devices]; i++) assign(&slots, &program->instructions[i]);
  else
    status = zb_fail_memory(error);
  free(slots.held);
  free(slots.freed);
  free(slots.depth);
  return status;
}
