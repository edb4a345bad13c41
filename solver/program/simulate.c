// simulate.c - messages are matched end to end, then devices run until all are done or all wait.
//
// A device runs until its next instruction needs a message that has not left; it is parked on that message,
// and whoever completes the message wakes it. A message that leaves may let the next one of its two channels
// leave, so each instruction and each message is visited a bounded number of times and the whole is linear.
// The order in which the work is done does not matter: all times are maxima of times that are fixed before.
#include "solver/program/simulate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

#define NONE SIZE_MAX
enum { SENT, RECEIVED }; // the two ends of a message

struct message {
  size_t end[2];      // positions of SEND and RECV, NONE
  size_t before[2];   // message before it in the channel of that end, NONE
  size_t after[2];    // likewise
  int64_t posted[2];  // -1: not yet
  int64_t left, done; // -1: not yet
  int64_t comm_ns;
};

struct simulation {
  const struct zb_program *program;
  const struct zb_profile *profile;
  struct zb_run *run;
  bool serial;
  size_t passes, messages;
  struct message *message;    // [messages] indexed by what is sent: number_of
  size_t *next;               // [devices] position of the next instruction
  int64_t *clock;             // [devices]
  size_t *parked_on;          // [devices] message, NONE
  size_t *norm_in, *state_in; // [devices] the message that its RECV_NORM, RECV_STATE is, NONE
  int *stack;                 // [devices] devices that can run
  int stacked;
  size_t
      *leaving; // [messages] messages to look at; each is looked at when posted and when one before it leaves
  size_t leaving_count;
};

static const char *const wait_words[ZB_WAIT_COUNT] = {
#define X(name, word) word,
    ZB_WAIT_TABLE(X)
#undef X
};

const char *zb_wait_word(enum zb_wait wait) { return wait_words[wait]; }

void zb_run_free(struct zb_run *run) {
  free(run->start_ns);
  free(run->end_ns);
  free(run->cycle);
  *run = (struct zb_run){0};
}

static int device_at(const struct zb_program *program, size_t instruction) {
  int low = 0, high = program->devices - 1;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (instruction < program->first[middle + 1])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

enum zb_status zb_instruction_fail(struct zb_error *error, const struct zb_program *program,
                                   size_t instruction, const char *format, ...) {
  char name[ZB_INSTRUCTION_TEXT], text[400];
  const int device = device_at(program, instruction);
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
  if (i->peer != profile->device_of[other])
    return zb_instruction_fail(error, program, at, "its peer is %d, but stage %d is on device %d",
                               (int)i->peer, other, profile->device_of[other]);
  return ZB_OK;
}

// Messages.

// By what is sent, whichever end or wait the instruction is. NONE: it has no message.
static size_t number_of(const struct simulation *s, int device, const struct zb_instruction *i) {
  const size_t microbatches = (size_t)s->profile->microbatches, devices = (size_t)s->program->devices;
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
    return NONE;
  }
}

// The message that an op reads, NONE where its input is made on the same device or there is none.
static size_t input_of(const struct simulation *s, int device, const struct zb_instruction *i) {
  struct zb_instruction receive = *i;
  receive.kind = i->kind == ZB_DO_F ? ZB_DO_RECV_F : ZB_DO_RECV_B;
  const int from = i->stage + (i->kind == ZB_DO_F ? -1 : 1);
  if (i->kind == ZB_DO_W || from < 0 || from == s->profile->stages || s->profile->device_of[from] == device)
    return NONE;
  return number_of(s, device, &receive);
}

static int64_t comm_ns(const struct zb_profile *profile, const struct zb_instruction *send) {
  if (send->kind == ZB_DO_SEND_F) return profile->comm_forward_ns[send->stage];
  return send->kind == ZB_DO_SEND_B ? profile->comm_backward_ns[send->stage - 1] : 0;
}

static bool is_end(enum zb_instruction_kind kind) {
  return zb_instruction_is_send(kind) || zb_instruction_is_receive(kind);
}

// Within one list: a SEND stands behind the op that makes what it sends, a WAIT_SEND behind its SEND. `made`
// has a flag for each message's op.
static enum zb_status check_made(const struct simulation *s, int device, size_t at, bool *made,
                                 struct zb_error *error) {
  const struct zb_instruction *i = &s->program->instructions[at];
  const size_t pass = (size_t)i->stage * (size_t)s->profile->microbatches + (size_t)i->microbatch;
  if (i->kind == ZB_DO_F) made[pass] = true;
  if (i->kind == ZB_DO_B || i->kind == ZB_DO_BW) made[s->passes + pass] = true;
  if ((i->kind == ZB_DO_SEND_F || i->kind == ZB_DO_SEND_B) && !made[number_of(s, device, i)])
    return zb_instruction_fail(error, s->program, at, "is sent before it is made");
  if ((i->kind == ZB_DO_WAIT_SEND_F || i->kind == ZB_DO_WAIT_SEND_B) &&
      s->message[number_of(s, device, i)].end[SENT] == NONE)
    return zb_instruction_fail(error, s->program, at, "waits for what was not sent before");
  return ZB_OK;
}

static enum zb_status find_ends(struct simulation *s, bool *made, struct zb_error *error) {
  const struct zb_program *program = s->program;
  for (int d = 0; d < program->devices; d++)
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      enum zb_status status = check_form(program, d, at, error);
      if (status == ZB_OK) status = check_made(s, d, at, made, error);
      if (status != ZB_OK) return status;
      if (!is_end(i->kind)) continue;
      const int side = zb_instruction_is_send(i->kind) ? SENT : RECEIVED;
      const size_t number = number_of(s, d, i);
      struct message *m = &s->message[number];
      // A norm or state has one sender, and its receiver is whom that names.
      if (m->end[side] != NONE) return zb_instruction_fail(error, program, at, "comes twice");
      m->end[side] = at;
      if (side == SENT) m->comm_ns = comm_ns(s->profile, i);
      size_t *const in = i->kind == ZB_DO_RECV_NORM    ? s->norm_in
                         : i->kind == ZB_DO_RECV_STATE ? s->state_in
                                                       : NULL;
      if (!in) continue;
      if (in[d] != NONE) return zb_instruction_fail(error, program, at, "comes twice");
      in[d] = number;
    }
  return ZB_OK;
}

static enum zb_status check_ends(const struct simulation *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  char name[ZB_INSTRUCTION_TEXT];
  for (int d = 0; d < program->devices; d++)
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      const enum zb_acts acts = zb_instruction_acts(i->kind);
      const size_t number = acts == ZB_ACTS_OP ? input_of(s, d, i) : number_of(s, d, i);
      if (number == NONE) continue;
      const struct message *m = &s->message[number];
      if (acts == ZB_ACTS_OP && m->end[RECEIVED] == NONE)
        return zb_instruction_fail(error, program, at, "its input is never received");
      if (acts == ZB_ACTS_OP) continue;
      if (!is_end(i->kind)) continue;
      const int side = m->end[SENT] == at ? RECEIVED : SENT;
      if (m->end[side] == NONE) {
        zb_instruction_print(zb_instruction_other_end(*i), name);
        return zb_instruction_fail(error, program, at, "its other end %s is missing on device %d", name,
                                   (int)i->peer);
      }
      if (device_at(program, m->end[side]) != i->peer)
        return zb_instruction_fail(error, program, at, "its other end is on device %d, not on %d",
                                   device_at(program, m->end[side]), (int)i->peer);
    }
  return ZB_OK;
}

// Transports match by order: seen from the sender, the ends at one peer come in the order of the sends.
static enum zb_status check_order(const struct simulation *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  enum zb_status status = ZB_OK;
  size_t *last = malloc((size_t)program->devices * sizeof *last); // send to each peer, NONE
  if (!last) return zb_fail_memory(error);
  for (int d = 0; d < program->devices; d++) last[d] = NONE;
  for (int d = 0; d < program->devices && status == ZB_OK; d++) {
    for (size_t at = program->first[d]; at < program->first[d + 1] && status == ZB_OK; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      if (!zb_instruction_is_send(i->kind)) continue;
      const struct message *m = &s->message[number_of(s, d, i)];
      const struct message *b =
          last[i->peer] == NONE ? NULL : &s->message[number_of(s, d, &program->instructions[last[i->peer]])];
      if (b && b->end[RECEIVED] > m->end[RECEIVED]) {
        char earlier[ZB_INSTRUCTION_TEXT], at_peer[ZB_INSTRUCTION_TEXT];
        zb_instruction_print(program->instructions[b->end[SENT]], earlier);
        zb_instruction_print(program->instructions[m->end[RECEIVED]], at_peer);
        status = zb_instruction_fail(
            error, program, at,
            "sent after %s, but device %d receives %s first: messages are matched by order", earlier,
            (int)i->peer, at_peer);
      }
      last[i->peer] = at;
    }
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++)
      if (zb_instruction_is_send(program->instructions[at].kind)) last[program->instructions[at].peer] = NONE;
  }
  free(last);
  return status;
}

// Which of a device's channels an end belongs to.
static size_t channel_of(enum zb_channels channels, const struct zb_instruction *i) {
  const size_t peer = (size_t)i->peer;
  if (channels == ZB_CHANNELS_RANK) return 0;
  if (channels == ZB_CHANNELS_PAIR) return peer;
  return 2 * peer + (zb_instruction_is_send(i->kind) ? SENT : RECEIVED);
}

static enum zb_status link_channels(struct simulation *s, enum zb_channels channels, struct zb_error *error) {
  const struct zb_program *program = s->program;
  size_t *last = malloc(2 * (size_t)program->devices * sizeof *last); // end in each channel, NONE
  if (!last) return zb_fail_memory(error);
  for (size_t c = 0; c < 2 * (size_t)program->devices; c++) last[c] = NONE;
  for (int d = 0; d < program->devices; d++) {
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      if (!is_end(i->kind)) continue;
      const size_t number = number_of(s, d, i), channel = channel_of(channels, i);
      const int side = zb_instruction_is_send(i->kind) ? SENT : RECEIVED;
      if (last[channel] != NONE) {
        const struct zb_instruction *b = &program->instructions[last[channel]];
        const size_t before = number_of(s, d, b);
        s->message[number].before[side] = before;
        s->message[before].after[zb_instruction_is_send(b->kind) ? SENT : RECEIVED] = number;
      }
      last[channel] = at;
    }
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++)
      if (is_end(program->instructions[at].kind))
        last[channel_of(channels, &program->instructions[at])] = NONE;
  }
  free(last);
  return ZB_OK;
}

// Running.

static void push_device(struct simulation *s, int device) { s->stack[s->stacked++] = device; }

// Lets a message leave if nothing holds it, and looks at those behind it.
static void try_leave(struct simulation *s, size_t number) {
  s->leaving[s->leaving_count++] = number;
  while (s->leaving_count > 0) {
    struct message *m = &s->message[s->leaving[--s->leaving_count]];
    const size_t this = (size_t)(m - s->message);
    if (m->left >= 0 || m->posted[SENT] < 0 || m->posted[RECEIVED] < 0) continue;
    int64_t left = zb_max(m->posted[SENT], m->posted[RECEIVED]);
    bool held = false;
    for (int side = SENT; side <= RECEIVED; side++) {
      if (m->before[side] == NONE) continue;
      const struct message *b = &s->message[m->before[side]];
      held = held || b->left < 0;
      left = zb_max(left, s->serial ? b->done : b->left);
    }
    if (held) continue;
    m->left = left;
    m->done = left + m->comm_ns;
    for (int side = SENT; side <= RECEIVED; side++) {
      const int device = device_at(s->program, m->end[side]);
      s->run->start_ns[m->end[side]] = m->left;
      s->run->end_ns[m->end[side]] = m->done;
      if (s->parked_on[device] == this) {
        s->parked_on[device] = NONE;
        push_device(s, device);
      }
      // The message behind it is looked at once for each of its ends, so twice at most.
      if (m->after[side] != NONE) s->leaving[s->leaving_count++] = m->after[side];
    }
  }
}

// The message without which the instruction cannot be passed, NONE.
static size_t needed(const struct simulation *s, int device, const struct zb_instruction *i) {
  switch (i->kind) {
  case ZB_DO_WAIT_SEND_F:
  case ZB_DO_WAIT_SEND_B:
    return number_of(s, device, i);
  case ZB_DO_NORM:
    return s->norm_in[device];
  case ZB_DO_SEND_STATE:
  case ZB_DO_VALIDATE:
  case ZB_DO_STEP:
    return s->state_in[device];
  default:
    return zb_instruction_acts(i->kind) == ZB_ACTS_OP ? input_of(s, device, i) : NONE;
  }
}

static void run_device(struct simulation *s, int device) {
  const struct zb_program *program = s->program;
  while (s->next[device] < program->first[device + 1]) {
    const size_t at = s->next[device];
    const struct zb_instruction *i = &program->instructions[at];
    const size_t input = needed(s, device, i);
    if (input != NONE && s->message[input].left < 0) {
      s->parked_on[device] = input;
      return;
    }
    int64_t *clock = &s->clock[device];
    if (input != NONE) *clock = zb_max(*clock, s->message[input].done);
    s->next[device]++;
    if (is_end(i->kind)) {
      const size_t number = number_of(s, device, i);
      s->message[number].posted[zb_instruction_is_send(i->kind) ? SENT : RECEIVED] = *clock;
      try_leave(s, number);
      continue;
    }
    s->run->start_ns[at] = *clock;
    if (zb_instruction_acts(i->kind) == ZB_ACTS_OP)
      *clock += zb_op_time(s->profile, (struct zb_op){i->stage, i->microbatch, (enum zb_kind)i->kind});
    s->run->end_ns[at] = *clock;
  }
}

static void measure(const struct simulation *s) {
  const struct zb_program *program = s->program;
  for (int d = 0; d < program->devices; d++) {
    int64_t first = -1, last = 0;
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      if (zb_instruction_acts(program->instructions[at].kind) != ZB_ACTS_OP) continue;
      if (first < 0) first = s->run->start_ns[at];
      last = s->run->end_ns[at];
    }
    s->run->span_ns = zb_max(s->run->span_ns, first < 0 ? 0 : last - first);
    s->run->makespan_ns = zb_max(s->run->makespan_ns, last);
  }
}

// The cycle.

// What instruction `at` of a stuck program waits for, and why.
static struct zb_wait_for blame(const struct simulation *s, size_t at, size_t *then) {
  const struct zb_program *program = s->program;
  const int device = device_at(program, at);
  struct zb_wait_for wait = {device, at, ZB_WAIT_REACH};
  if (at > s->next[device]) {
    *then = s->next[device];
    return wait;
  }
  if (at == s->next[device]) {
    const struct message *m = &s->message[s->parked_on[device]];
    const int side = device_at(program, m->end[SENT]) == device ? SENT : RECEIVED;
    wait.why = ZB_WAIT_MESSAGE;
    *then = m->end[side];
    return wait;
  }
  const struct zb_instruction *i = &program->instructions[at];
  const struct message *m = &s->message[number_of(s, device, i)];
  const int side = zb_instruction_is_send(i->kind) ? SENT : RECEIVED;
  if (m->before[side] != NONE && s->message[m->before[side]].left < 0) {
    const struct message *b = &s->message[m->before[side]];
    wait.why = ZB_WAIT_CHANNEL;
    *then = device_at(program, b->end[SENT]) == device ? b->end[SENT] : b->end[RECEIVED];
    return wait;
  }
  wait.why = ZB_WAIT_OTHER_END;
  *then = m->end[1 - side];
  return wait;
}

// Follows the blame from one waiting device until it comes round; only the round is kept.
static enum zb_status find_cycle(struct simulation *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  const size_t total = program->first[program->devices];
  struct zb_wait_for *path = malloc((total + 1) * sizeof *path);
  size_t *met = calloc(total, sizeof *met); // 1 + place in the path
  if (!path || !met) {
    free(path);
    free(met);
    return zb_fail_memory(error);
  }
  int device = 0;
  while (s->next[device] == program->first[device + 1]) device++;
  size_t at = s->next[device], length = 0, then = 0;
  for (; met[at] == 0; at = then) {
    met[at] = length + 1;
    path[length++] = blame(s, at, &then);
  }
  const size_t round = met[at] - 1;
  memmove(path, path + round, (length - round) * sizeof *path);
  s->run->cycle = path;
  s->run->cycle_length = length - round;
  free(met);
  const struct zb_wait_for *start = &path[0];
  char names[2][ZB_INSTRUCTION_TEXT];
  zb_instruction_print(program->instructions[start->instruction], names[0]);
  zb_instruction_print(program->instructions[path[s->run->cycle_length > 1].instruction], names[1]);
  return zb_instruction_fail(error, program, start->instruction,
                             "waits for ever, in a cycle of %zu: %s %s, ..", s->run->cycle_length,
                             zb_wait_word(start->why), names[1]);
}

static enum zb_status run(struct simulation *s, struct zb_error *error) {
  const struct zb_program *program = s->program;
  for (int d = program->devices - 1; d >= 0; d--) {
    s->next[d] = program->first[d];
    s->parked_on[d] = NONE;
    push_device(s, d);
  }
  while (s->stacked > 0) run_device(s, s->stack[--s->stacked]);
  for (int d = 0; d < program->devices; d++)
    if (s->next[d] < program->first[d + 1]) return find_cycle(s, error);
  measure(s);
  return ZB_OK;
}

static enum zb_status allocate(struct simulation *s, struct zb_error *error) {
  const size_t devices = (size_t)s->program->devices, total = s->program->first[devices];
  s->messages = 2 * s->passes + 2 * devices;
  s->message = malloc(s->messages * sizeof *s->message);
  s->leaving = malloc((2 * s->messages + 1) * sizeof *s->leaving);
  s->next = calloc(devices, sizeof *s->next);
  s->clock = calloc(devices, sizeof *s->clock);
  s->parked_on = calloc(devices, sizeof *s->parked_on);
  s->norm_in = calloc(devices, sizeof *s->norm_in);
  s->state_in = calloc(devices, sizeof *s->state_in);
  s->stack = malloc(devices * sizeof *s->stack);
  s->run->start_ns = calloc(total + 1, sizeof(int64_t));
  s->run->end_ns = calloc(total + 1, sizeof(int64_t));
  if (!s->message || !s->leaving || !s->next || !s->clock || !s->parked_on || !s->norm_in || !s->state_in ||
      !s->stack || !s->run->start_ns || !s->run->end_ns)
    return zb_fail_memory(error);
  for (size_t k = 0; k < s->messages; k++)
    s->message[k] = (struct message){{NONE, NONE}, {NONE, NONE}, {NONE, NONE}, {-1, -1}, -1, -1, 0};
  for (size_t d = 0; d < devices; d++) s->norm_in[d] = s->state_in[d] = NONE;
  return ZB_OK;
}

enum zb_status zb_program_simulate(const struct zb_program *program, enum zb_channels channels, bool serial,
                                   struct zb_run *result, struct zb_error *error) {
  zb_run_free(result);
  struct simulation s = {.program = program,
                         .profile = program->profile,
                         .run = result,
                         .serial = serial,
                         .passes = (size_t)program->profile->stages * (size_t)program->profile->microbatches};
  // Nothing is sized by what the profile claims before the lists are seen to be of that size.
  const size_t total = program->first[program->devices];
  if (total < 2 * s.passes)
    return zb_fail(error, ZB_WRONG, "%zu instructions, expected at least %zu", total, 2 * s.passes);
  bool *made = calloc(2 * s.passes, sizeof *made);
  enum zb_status status = made ? allocate(&s, error) : zb_fail_memory(error);
  if (status == ZB_OK) status = find_ends(&s, made, error);
  if (status == ZB_OK) status = check_ends(&s, error);
  if (status == ZB_OK) status = check_order(&s, error);
  if (status == ZB_OK) status = link_channels(&s, channels, error);
  if (status == ZB_OK) status = run(&s, error);
  free(made);
  free(s.message);
  free(s.leaving);
  free(s.next);
  free(s.clock);
  free(s.parked_on);
  free(s.norm_in);
  free(s.state_in);
  free(s.stack);
  return status;
}
