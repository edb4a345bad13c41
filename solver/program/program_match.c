// program_match.c - which SEND goes with which RECV, and which messages share a channel.
//
// A message is numbered by what is sent, so both ends find it without a search; that transports match by
// order instead is checked afterwards, one peer at a time.
#include "solver/program/program_match.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "solver/program/simulate.h"

enum zb_status zb_instruction_fail(struct zb_error *error, const struct zb_program *program,
                                   size_t instruction, const char *format, ...) {
  char name[ZB_INSTRUCTION_TEXT], text[400];
  const int device = zb_program_device(program, instruction);
  zb_instruction_print(program->instructions[instruction], name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return zb_fail(error, ZB_WRONG, "device %d, position %zu, %s: %s", device,
                 instruction - program->first[device], name, text);
}

// Form: what must hold before anything can be looked up.

static enum zb_status check_form(const struct zb_program *program, int device, size_t at,
                                 struct zb_error *error) {
  const struct zb_profile *profile = program->profile;
  const struct zb_instruction *i = &program->instructions[at];
  const enum zb_acts acts = zb_instruction_acts(i->kind);
  if (acts == ZB_ACTS_OP || acts == ZB_ACTS_MESSAGE) {
    if (i->stage < 0 || i->stage >= profile->stages)
      return zb_instruction_fail(error, program, at, "there is no such stage, the profile has %d",
                                 profile->stages);
    if (i->microbatch < 0 || i->microbatch >= profile->microbatches)
      return zb_instruction_fail(error, program, at, "there is no such microbatch, the profile has %d",
                                 profile->microbatches);
    if (profile->device_of[i->stage] != device)
      return zb_instruction_fail(error, program, at, "its stage is on device %d",
                                 profile->device_of[i->stage]);
  }
  if (acts == ZB_ACTS_LINE && (i->peer < 0 || i->peer >= program->devices || i->peer == device))
    return zb_instruction_fail(error, program, at, "its peer is %d, expected another device", (int)i->peer);
  if (acts != ZB_ACTS_MESSAGE) return ZB_OK;
  const bool forward =
      i->kind == ZB_DO_SEND_F || i->kind == ZB_DO_RECV_B || i->kind == ZB_DO_WAIT_SEND_F; // towards stage + 1
  const int other = i->stage + (forward ? 1 : -1);
  if (other < 0 || other >= profile->stages)
    return zb_instruction_fail(error, program, at, "there is no stage %s it", forward ? "after" : "before");
  if (profile->device_of[other] == device)
    return zb_instruction_fail(error, program, at, "stage %d is on the same device: nothing crosses", other);
  if (i->peer == -1)
    return zb_instruction_fail(error, program, at, "it names no peer, but stage %d is on device %d", other,
                               profile->device_of[other]);
  if (i->peer != profile->device_of[other])
    return zb_instruction_fail(error, program, at, "its peer is %d, but stage %d is on device %d",
                               (int)i->peer, other, profile->device_of[other]);
  return ZB_OK;
}

// Messages.

// By what is sent, whichever end or wait the instruction is.
size_t zb_message_number(const struct zb_match *s, int device, const struct zb_instruction *i) {
  const size_t microbatches = (size_t)s->program->profile->microbatches,
               devices = (size_t)s->program->devices;
  const size_t pass = (size_t)i->stage * microbatches + (size_t)i->microbatch;
  switch (i->kind) {
  case ZB_DO_SEND_F:
  case ZB_DO_WAIT_SEND_F:
    return pass;
  case ZB_DO_RECV_F:
    return pass - microbatches;
  case ZB_DO_SEND_B:
  case ZB_DO_WAIT_SEND_B:
    return s->passes + pass;
  case ZB_DO_RECV_B:
    return s->passes + pass + microbatches;
  case ZB_DO_SEND_NORM:
    return 2 * s->passes + (size_t)device;
  case ZB_DO_RECV_NORM:
    return 2 * s->passes + (size_t)i->peer;
  case ZB_DO_SEND_STATE:
    return 2 * s->passes + devices + (size_t)device;
  case ZB_DO_RECV_STATE:
    return 2 * s->passes + devices + (size_t)i->peer;
  default:
    return ZB_NOWHERE;
  }
}

size_t zb_message_input(const struct zb_match *s, int device, const struct zb_instruction *i) {
  struct zb_instruction receive = *i;
  receive.kind = i->kind == ZB_DO_F ? ZB_DO_RECV_F : ZB_DO_RECV_B;
  const int from = i->stage + (i->kind == ZB_DO_F ? -1 : 1);
  if (i->kind == ZB_DO_W || from < 0 || from == s->program->profile->stages ||
      s->program->profile->device_of[from] == device)
    return ZB_NOWHERE;
  return zb_message_number(s, device, &receive);
}

static int64_t comm_ns(const struct zb_profile *profile, const struct zb_instruction *send) {
  if (send->kind == ZB_DO_SEND_F) return profile->comm_forward_ns[send->stage];
  return send->kind == ZB_DO_SEND_B ? profile->comm_backward_ns[send->stage - 1] : 0;
}

// Within one list: no op comes twice, a SEND stands behind the op that makes what it sends, a WAIT_SEND
// behind its SEND. `made` has a bit a kind for each stage and microbatch.
static enum zb_status check_made(const struct zb_match *s, int device, size_t at, unsigned char *made,
                                 struct zb_error *error) {
  const struct zb_instruction *i = &s->program->instructions[at];
  const enum zb_acts acts = zb_instruction_acts(i->kind);
  if (acts != ZB_ACTS_OP && acts != ZB_ACTS_MESSAGE) return ZB_OK;
  unsigned char *kinds =
      &made[(size_t)i->stage * (size_t)s->program->profile->microbatches + (size_t)i->microbatch];
  if (acts == ZB_ACTS_OP) {
    if (*kinds >> i->kind & 1) return zb_instruction_fail(error, s->program, at, "comes twice");
    *kinds |= (unsigned char)(1 << i->kind);
  }
  if ((i->kind == ZB_DO_SEND_F && !(*kinds >> ZB_DO_F & 1)) ||
      (i->kind == ZB_DO_SEND_B && !(*kinds >> ZB_DO_B & 1) && !(*kinds >> ZB_DO_BW & 1)))
    return zb_instruction_fail(error, s->program, at, "is sent before it is made");
  if ((i->kind == ZB_DO_WAIT_SEND_F || i->kind == ZB_DO_WAIT_SEND_B) &&
      s->message[zb_message_number(s, device, i)].end[ZB_SENT] == ZB_NOWHERE)
    return zb_instruction_fail(error, s->program, at, "waits for what was not sent before");
  return ZB_OK;
}

static enum zb_status find_ends(struct zb_match *s, unsigned char *made, struct zb_error *error) {
  const struct zb_program *program = s->program;
  for (int d = 0; d < program->devices; d++)
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      enum zb_status status = check_form(program, d, at, error);
      if (status == ZB_OK) status = check_made(s, d, at, made, error);
      if (status != ZB_OK) return status;
      if (!zb_instruction_is_end(i->kind)) continue;
      const int side = zb_instruction_is_send(i->kind) ? ZB_SENT : ZB_RECEIVED;
      const size_t number = zb_message_number(s, d, i);
      struct zb_message *m = &s->message[number];
      // A norm or state has one sender, and its receiver is whom that names.
      if (m->end[side] != ZB_NOWHERE) return zb_instruction_fail(error, program, at, "comes twice");
      m->end[side] = at;
      m->device[side] = d;
      if (side == ZB_SENT) m->comm_ns = comm_ns(s->program->profile, i);
      size_t *const in = i->kind == ZB_DO_RECV_NORM    ? s->norm_in
                         : i->kind == ZB_DO_RECV_STATE ? s->state_in
                                                       : NULL;
      if (!in) continue;
      if (in[d] != ZB_NOWHERE) return zb_instruction_fail(error, program, at, "comes twice");
      in[d] = number;
    }
  return ZB_OK;
}

static enum zb_status check_ends(const struct zb_match *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  char name[ZB_INSTRUCTION_TEXT];
  for (int d = 0; d < program->devices; d++)
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      const enum zb_acts acts = zb_instruction_acts(i->kind);
      const size_t number = acts == ZB_ACTS_OP ? zb_message_input(s, d, i) : zb_message_number(s, d, i);
      if (number == ZB_NOWHERE) continue;
      const struct zb_message *m = &s->message[number];
      if (acts == ZB_ACTS_OP && m->end[ZB_RECEIVED] == ZB_NOWHERE)
        return zb_instruction_fail(error, program, at, "its input is never received");
      if (acts == ZB_ACTS_OP) continue;
      if (!zb_instruction_is_end(i->kind)) continue;
      const int side = m->end[ZB_SENT] == at ? ZB_RECEIVED : ZB_SENT;
      if (m->end[side] == ZB_NOWHERE) {
        zb_instruction_print(zb_instruction_other_end(*i), name);
        return zb_instruction_fail(error, program, at, "its other end %s is missing on device %d", name,
                                   (int)i->peer);
      }
      if (m->device[side] != i->peer)
        return zb_instruction_fail(error, program, at, "its other end is on device %d, not on %d",
                                   m->device[side], (int)i->peer);
    }
  return ZB_OK;
}

// Transports match by order: seen from the sender, the ends at one peer come in the order of the sends.
static enum zb_status check_order(const struct zb_match *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  enum zb_status status = ZB_OK;
  size_t *last = malloc((size_t)program->devices * sizeof *last); // send to each peer, ZB_NOWHERE
  if (!last) return zb_fail_memory(error);
  for (int d = 0; d < program->devices; d++) last[d] = ZB_NOWHERE;
  for (int d = 0; d < program->devices && status == ZB_OK; d++) {
    for (size_t at = program->first[d]; at < program->first[d + 1] && status == ZB_OK; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      if (!zb_instruction_is_send(i->kind)) continue;
      const struct zb_message *m = &s->message[zb_message_number(s, d, i)];
      const struct zb_message *b =
          last[i->peer] == ZB_NOWHERE
              ? NULL
              : &s->message[zb_message_number(s, d, &program->instructions[last[i->peer]])];
      if (b && b->end[ZB_RECEIVED] > m->end[ZB_RECEIVED]) {
        char earlier[ZB_INSTRUCTION_TEXT], at_peer[ZB_INSTRUCTION_TEXT];
        zb_instruction_print(program->instructions[b->end[ZB_SENT]], earlier);
        zb_instruction_print(program->instructions[m->end[ZB_RECEIVED]], at_peer);
        status = zb_instruction_fail(
            error, program, at,
            "sent after %s, but device %d receives %s first: messages are matched by order", earlier,
            (int)i->peer, at_peer);
      }
      last[i->peer] = at;
    }
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++)
      if (zb_instruction_is_send(program->instructions[at].kind))
        last[program->instructions[at].peer] = ZB_NOWHERE;
  }
  free(last);
  return status;
}

// Which of a device's channels an end belongs to.
static size_t channel_of(enum zb_channels channels, const struct zb_instruction *i) {
  const size_t peer = (size_t)i->peer;
  if (channels == ZB_CHANNELS_RANK) return 0;
  if (channels == ZB_CHANNELS_PAIR) return peer;
  return 2 * peer + (zb_instruction_is_send(i->kind) ? ZB_SENT : ZB_RECEIVED);
}

static enum zb_status link_channels(struct zb_match *s, enum zb_channels channels, struct zb_error *error) {
  const struct zb_program *program = s->program;
  size_t *last = malloc(2 * (size_t)program->devices * sizeof *last); // end in each channel, ZB_NOWHERE
  if (!last) return zb_fail_memory(error);
  for (size_t c = 0; c < 2 * (size_t)program->devices; c++) last[c] = ZB_NOWHERE;
  for (int d = 0; d < program->devices; d++) {
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      if (!zb_instruction_is_end(i->kind)) continue;
      const size_t number = zb_message_number(s, d, i), channel = channel_of(channels, i);
      const int side = zb_instruction_is_send(i->kind) ? ZB_SENT : ZB_RECEIVED;
      if (last[channel] != ZB_NOWHERE) {
        const struct zb_instruction *b = &program->instructions[last[channel]];
        const size_t before = zb_message_number(s, d, b);
        s->message[number].before[side] = before;
        s->message[before].after[zb_instruction_is_send(b->kind) ? ZB_SENT : ZB_RECEIVED] = number;
      }
      last[channel] = at;
    }
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++)
      if (zb_instruction_is_end(program->instructions[at].kind))
        last[channel_of(channels, &program->instructions[at])] = ZB_NOWHERE;
  }
  free(last);
  return ZB_OK;
}

static enum zb_status allocate(struct zb_match *s, struct zb_error *error) {
  const size_t devices = (size_t)s->program->devices;
  s->count = 2 * s->passes + 2 * devices;
  s->message = malloc(s->count * sizeof *s->message);
  s->norm_in = calloc(devices, sizeof *s->norm_in);
  s->state_in = calloc(devices, sizeof *s->state_in);
  if (!s->message || !s->norm_in || !s->state_in) return zb_fail_memory(error);
  const struct zb_message none = {.end = {ZB_NOWHERE, ZB_NOWHERE},
                                  .before = {ZB_NOWHERE, ZB_NOWHERE},
                                  .after = {ZB_NOWHERE, ZB_NOWHERE},
                                  .posted_ns = {-1, -1},
                                  .left_ns = -1,
                                  .done_ns = -1};
  for (size_t k = 0; k < s->count; k++) s->message[k] = none;
  for (size_t d = 0; d < devices; d++) s->norm_in[d] = s->state_in[d] = ZB_NOWHERE;
  return ZB_OK;
}

enum zb_status zb_match_create(const struct zb_program *program, enum zb_channels channels,
                               struct zb_match *match, struct zb_error *error) {
  const size_t passes = (size_t)program->profile->stages * (size_t)program->profile->microbatches;
  const size_t total = program->first[program->devices];
  *match = (struct zb_match){.program = program, .passes = passes};
  // Nothing is sized by what the profile claims before the lists are seen to be of that size.
  if (total < 2 * passes)
    return zb_fail(error, ZB_WRONG, "%zu instructions, expected at least %zu", total, 2 * passes);
  unsigned char *made = calloc(passes, 1);
  enum zb_status status = made ? allocate(match, error) : zb_fail_memory(error);
  if (status == ZB_OK) status = find_ends(match, made, error);
  if (status == ZB_OK) status = check_ends(match, error);
  if (status == ZB_OK) status = check_order(match, error);
  if (status == ZB_OK) status = link_channels(match, channels, error);
  free(made);
  return status;
}

void zb_match_free(struct zb_match *match) {
  free(match->message);
  free(match->norm_in);
  free(match->state_in);
  *match = (struct zb_match){0};
}
