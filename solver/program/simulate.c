// simulate.c - messages are matched end to end, then devices run until all are done or all wait.
//
// A device runs until its next instruction needs a message that has not left; it is parked on that message,
// and whoever completes the message wakes it. A message that leaves may let the next one of its two channels
// leave, so each instruction and each message is visited a bounded number of times and the whole is linear.
// The order in which the work is done does not matter: all times are maxima of times that are fixed before.
#include "solver/program/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"
#include "solver/program/program_match.h"

struct simulation {
  const struct zb_program *program;
  struct zb_match match;
  struct zb_run *run;
  bool serial;
  size_t *next;      // [devices] position of the next instruction
  int64_t *clock;    // [devices]
  size_t *parked_on; // [devices] number of a message, ZB_NOWHERE
  int *stack;        // [devices] devices that can run
  int stacked;
  size_t *leaving; // messages to look at: each when it is posted, and when one before it has left
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

// Running.

static void push_device(struct simulation *s, int device) { s->stack[s->stacked++] = device; }

// Lets a message leave if nothing holds it, and looks at those behind it.
static void try_leave(struct simulation *s, size_t number) {
  s->leaving[s->leaving_count++] = number;
  while (s->leaving_count > 0) {
    struct zb_message *m = &s->match.message[s->leaving[--s->leaving_count]];
    const size_t this = (size_t)(m - s->match.message);
    if (m->left_ns >= 0 || m->posted_ns[ZB_SENT] < 0 || m->posted_ns[ZB_RECEIVED] < 0) continue;
    int64_t left = zb_max(m->posted_ns[ZB_SENT], m->posted_ns[ZB_RECEIVED]);
    bool held = false;
    for (int side = ZB_SENT; side <= ZB_RECEIVED; side++) {
      if (m->before[side] == ZB_NOWHERE) continue;
      const struct zb_message *b = &s->match.message[m->before[side]];
      held = held || b->left_ns < 0;
      left = zb_max(left, s->serial ? b->done_ns : b->left_ns);
    }
    if (held) continue;
    m->left_ns = left;
    m->done_ns = left + m->comm_ns;
    for (int side = ZB_SENT; side <= ZB_RECEIVED; side++) {
      const int device = m->device[side];
      s->run->start_ns[m->end[side]] = m->left_ns;
      s->run->end_ns[m->end[side]] = m->done_ns;
      if (s->parked_on[device] == this) {
        s->parked_on[device] = ZB_NOWHERE;
        push_device(s, device);
      }
      // The message behind it is looked at once for each of its ends, so twice at most.
      if (m->after[side] != ZB_NOWHERE) s->leaving[s->leaving_count++] = m->after[side];
    }
  }
}

// The message without which the instruction cannot be passed, ZB_NOWHERE.
static size_t needed(const struct simulation *s, int device, const struct zb_instruction *i) {
  switch (i->kind) {
  case ZB_DO_WAIT_SEND_F:
  case ZB_DO_WAIT_SEND_B:
    return zb_message_number(&s->match, device, i);
  case ZB_DO_NORM:
    return s->match.norm_in[device];
  case ZB_DO_SEND_STATE:
  case ZB_DO_VALIDATE:
  case ZB_DO_STEP:
    return s->match.state_in[device];
  default:
    return zb_instruction_acts(i->kind) == ZB_ACTS_OP ? zb_message_input(&s->match, device, i) : ZB_NOWHERE;
  }
}

static void run_device(struct simulation *s, int device) {
  const struct zb_program *program = s->program;
  while (s->next[device] < program->first[device + 1]) {
    const size_t at = s->next[device];
    const struct zb_instruction *i = &program->instructions[at];
    const size_t input = needed(s, device, i);
    if (input != ZB_NOWHERE && s->match.message[input].left_ns < 0) {
      s->parked_on[device] = input;
      return;
    }
    int64_t *clock = &s->clock[device];
    if (input != ZB_NOWHERE) *clock = zb_max(*clock, s->match.message[input].done_ns);
    s->next[device]++;
    if (zb_instruction_is_end(i->kind)) {
      const size_t number = zb_message_number(&s->match, device, i);
      s->match.message[number].posted_ns[zb_instruction_is_send(i->kind) ? ZB_SENT : ZB_RECEIVED] = *clock;
      try_leave(s, number);
      continue;
    }
    s->run->start_ns[at] = *clock;
    if (zb_instruction_acts(i->kind) == ZB_ACTS_OP)
      *clock +=
          zb_op_time(s->program->profile, (struct zb_op){i->stage, i->microbatch, (enum zb_kind)i->kind});
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
  const int device = zb_program_device(program, at);
  struct zb_wait_for wait = {device, at, ZB_WAIT_REACH};
  if (at > s->next[device]) {
    *then = s->next[device];
    return wait;
  }
  if (at == s->next[device]) {
    const struct zb_message *m = &s->match.message[s->parked_on[device]];
    const int side = m->device[ZB_SENT] == device ? ZB_SENT : ZB_RECEIVED;
    wait.why = ZB_WAIT_MESSAGE;
    *then = m->end[side];
    return wait;
  }
  const struct zb_instruction *i = &program->instructions[at];
  const struct zb_message *m = &s->match.message[zb_message_number(&s->match, device, i)];
  const int side = zb_instruction_is_send(i->kind) ? ZB_SENT : ZB_RECEIVED;
  if (m->before[side] != ZB_NOWHERE && s->match.message[m->before[side]].left_ns < 0) {
    const struct zb_message *b = &s->match.message[m->before[side]];
    wait.why = ZB_WAIT_CHANNEL;
    *then = b->device[ZB_SENT] == device ? b->end[ZB_SENT] : b->end[ZB_RECEIVED];
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
    s->parked_on[d] = ZB_NOWHERE;
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
  s->leaving = malloc((2 * s->match.count + 1) * sizeof *s->leaving);
  s->next = calloc(devices, sizeof *s->next);
  s->clock = calloc(devices, sizeof *s->clock);
  s->parked_on = calloc(devices, sizeof *s->parked_on);
  s->stack = malloc(devices * sizeof *s->stack);
  s->run->start_ns = calloc(total + 1, sizeof(int64_t));
  s->run->end_ns = calloc(total + 1, sizeof(int64_t));
  if (!s->leaving || !s->next || !s->clock || !s->parked_on || !s->stack || !s->run->start_ns ||
      !s->run->end_ns)
    return zb_fail_memory(error);
  return ZB_OK;
}

enum zb_status zb_program_simulate(const struct zb_program *program, enum zb_channels channels, bool serial,
                                   struct zb_run *result, struct zb_error *error) {
  zb_run_free(result);
  struct simulation s = {.program = program, .run = result, .serial = serial};
  enum zb_status status = zb_match_create(program, channels, &s.match, error);
  if (status == ZB_OK) status = allocate(&s, error);
  if (status == ZB_OK) status = run(&s, error);
  zb_match_free(&s.match);
  free(s.leaving);
  free(s.next);
  free(s.clock);
  free(s.parked_on);
  free(s.stack);
  return status;
}
