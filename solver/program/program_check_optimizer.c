// program_check_optimizer.c - the optimizer's instructions: each once where it belongs, in the order that
// program.h asks for, and VALIDATE where nothing is under way.
#include <stdlib.h>

#include "solver/program/program_check.h"

#define NONE SIZE_MAX
enum { KINDS = ZB_INSTRUCTION_KINDS - ZB_DO_RECV_NORM }; // the optimizer's are the last of the table

// Where a device's instructions of each kind are; NONE: it has none.
struct places {
  size_t at[KINDS], last_gradient;
};

// Pairs that must follow each other where a device has both.
struct order {
  enum zb_instruction_kind first, second;
};
static const struct order always[] = {{ZB_DO_RECV_NORM, ZB_DO_NORM},
                                      {ZB_DO_NORM, ZB_DO_SEND_NORM},
                                      {ZB_DO_NORM, ZB_DO_STEP},
                                      {ZB_DO_RECV_STATE, ZB_DO_SEND_STATE}};
static const struct order with_barrier[] = {{ZB_DO_NORM, ZB_DO_SEND_STATE}, {ZB_DO_RECV_STATE, ZB_DO_STEP}};
static const struct order with_validation[] = {
    {ZB_DO_RECV_STATE, ZB_DO_VALIDATE}, {ZB_DO_SEND_STATE, ZB_DO_VALIDATE}, {ZB_DO_VALIDATE, ZB_DO_NORM}};

static size_t place_of(const struct places *places, enum zb_instruction_kind kind) {
  return places->at[kind - ZB_DO_RECV_NORM];
}

// Whether device line[k] has the instruction, and whom with.
static bool expects(const struct zb_program *program, const int *line, int k, enum zb_instruction_kind kind,
                    int *peer) {
  const bool first = k == 0, last = k == program->devices - 1;
  *peer = -1;
  if (program->optimizer == ZB_OPTIMIZER_NONE) return false;
  if (kind == ZB_DO_VALIDATE) return program->optimizer == ZB_OPTIMIZER_POST_VALIDATION;
  if (kind == ZB_DO_NORM || kind == ZB_DO_STEP) return true;
  const bool up = kind == ZB_DO_RECV_NORM || kind == ZB_DO_SEND_STATE; // its peer is the device before
  if (up ? first : last) return false;
  *peer = line[up ? k - 1 : k + 1];
  return true;
}

static enum zb_status find_places(const struct zb_program *program, const int *line, int k,
                                  struct places *places, struct zb_error *error) {
  const int device = line[k];
  int peer;
  places->last_gradient = 0;
  for (int kind = 0; kind < KINDS; kind++) places->at[kind] = NONE;
  for (size_t at = program->first[device]; at < program->first[device + 1]; at++) {
    const struct zb_instruction *i = &program->instructions[at];
    if (i->kind == ZB_DO_W || i->kind == ZB_DO_BW) places->last_gradient = at;
    if (i->kind < ZB_DO_RECV_NORM) continue;
    size_t *place = &places->at[i->kind - ZB_DO_RECV_NORM];
    if (*place != NONE) return zb_instruction_fail(error, program, at, "comes twice");
    if (!expects(program, line, k, i->kind, &peer))
      return zb_instruction_fail(error, program, at, "this device has none with --optimizer %s",
                                 zb_optimizer_word(program->optimizer));
    if (i->peer != peer)
      return zb_instruction_fail(error, program, at, "its peer is %d, expected %d", (int)i->peer, peer);
    *place = at;
  }
  for (int kind = ZB_DO_RECV_NORM; kind < ZB_INSTRUCTION_KINDS; kind++)
    if (expects(program, line, k, (enum zb_instruction_kind)kind, &peer) &&
        place_of(places, (enum zb_instruction_kind)kind) == NONE)
      return zb_fail(error, ZB_WRONG, "device %d, %s: is missing", device,
                     zb_instruction_word((enum zb_instruction_kind)kind));
  return ZB_OK;
}

static enum zb_status check_pairs(const struct zb_program *program, const struct places *places,
                                  const struct order *orders, size_t count, struct zb_error *error) {
  for (size_t k = 0; k < count; k++) {
    const size_t first = place_of(places, orders[k].first), second = place_of(places, orders[k].second);
    if (first != NONE && second != NONE && first > second)
      return zb_instruction_fail(error, program, second, "comes before %s",
                                 zb_instruction_word(orders[k].first));
  }
  const size_t norm = place_of(places, ZB_DO_NORM);
  if (norm != NONE && norm < places->last_gradient)
    return zb_instruction_fail(error, program, norm, "comes before the device's last W or BW");
  return ZB_OK;
}

// What is sent before VALIDATE is received before it. `validate` has its place on every device.
static enum zb_status check_cut(const struct zb_program *program, const size_t *validate,
                                struct zb_error *error) {
  const struct zb_profile *profile = program->profile;
  const size_t microbatches = (size_t)profile->microbatches, passes = (size_t)profile->stages * microbatches;
  enum zb_status status = ZB_OK;
  bool *before = calloc(2 * passes, sizeof *before); // by what is sent: F of its stage, then B
  if (!before) return zb_fail_memory(error);
  for (int receiving = 0; receiving < 2; receiving++)
    for (int d = 0; d < program->devices && status == ZB_OK; d++)
      for (size_t at = program->first[d]; at < program->first[d + 1] && status == ZB_OK; at++) {
        struct zb_instruction i = program->instructions[at];
        if (zb_instruction_acts(i.kind) != ZB_ACTS_MESSAGE) continue;
        if (!(receiving ? zb_instruction_is_receive(i.kind) : zb_instruction_is_send(i.kind))) continue;
        if (receiving) i = zb_instruction_other_end(i);
        const size_t row = i.kind == ZB_DO_SEND_F ? 0 : passes;
        bool *sent = &before[row + (size_t)i.stage * microbatches + (size_t)i.microbatch];
        if (!receiving) *sent = at < validate[d];
        if (receiving && *sent != (at < validate[d]))
          status = zb_instruction_fail(error, program, at, "is received %s VALIDATE, but sent %s it",
                                       *sent ? "after" : "before", *sent ? "before" : "after");
      }
  free(before);
  return status;
}

enum zb_status zb_program_check_optimizer(const struct zb_program *program, struct zb_error *error) {
  const size_t devices = (size_t)program->devices;
  int *line = malloc(devices * sizeof *line);
  size_t *validate = calloc(devices, sizeof *validate);
  enum zb_status status = line && validate ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) zb_program_line(program->profile, line);
  for (int k = 0; k < program->devices && status == ZB_OK; k++) {
    struct places places;
    status = find_places(program, line, k, &places, error);
    if (status == ZB_OK)
      status = check_pairs(program, &places, always, sizeof always / sizeof *always, error);
    if (status == ZB_OK && program->optimizer == ZB_OPTIMIZER_BARRIER)
      status = check_pairs(program, &places, with_barrier, sizeof with_barrier / sizeof *with_barrier, error);
    if (status == ZB_OK && program->optimizer == ZB_OPTIMIZER_POST_VALIDATION)
      status = check_pairs(program, &places, with_validation,
                           sizeof with_validation / sizeof *with_validation, error);
    if (status == ZB_OK) validate[line[k]] = place_of(&places, ZB_DO_VALIDATE);
  }
  if (status == ZB_OK && program->optimizer == ZB_OPTIMIZER_POST_VALIDATION)
    status = check_cut(program, validate, error);
  free(line);
  free(validate);
  return status;
}
