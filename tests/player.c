// See player.h.
#include "tests/player.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One end of a message that a device has posted. Its buffer is a number somewhere; norms and states are
// copied when they are sent.
struct post {
  bool send, done;
  int peer;
  uint64_t *buffer, copy;
  size_t instruction;
};

struct device {
  size_t next;
  int iteration, attempt;
  bool over, blocked; // blocked: its last post must be done first
  struct post *posts; // [room] of this iteration and what is left of earlier ones
  size_t count;
  uint64_t norm_in, norm, state;
  int steps;
};

struct play {
  const struct zb_program *program;
  struct player_game game;
  struct device *devices;
  uint64_t *slots; // [stages][kinds][microbatches]
  int *line;
  bool lost;
  char *why;
  size_t room;
};

enum { SPOILT = 1 }; // what no number is

static void lose(struct play *play, int device, size_t at, const char *format, ...) {
  char name[ZB_INSTRUCTION_TEXT], text[200];
  if (play->lost) return;
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  zb_instruction_print(play->program->instructions[at], name);
  snprintf(play->why, play->room, "device %d, %s (%zu), iteration %d: %s", device, name,
           at - play->program->first[device], play->devices[device].iteration, text);
  play->lost = true;
}

// Numbers: what made it, where and when.
static uint64_t number(const char *what, int stage, int microbatch, const struct device *when) {
  struct generate_random random = {(uint64_t)what[0] << 8 | (uint64_t)what[1]};
  random.state = generate_bits(&random) ^ (uint64_t)(stage + 1);
  random.state = generate_bits(&random) ^ (uint64_t)(microbatch + 1);
  random.state = generate_bits(&random) ^ (uint64_t)(when->iteration + 2) ^ (uint64_t)when->attempt << 32;
  return generate_bits(&random) | 2;
}

static uint64_t *slot(struct play *play, int device, size_t at, int stage, enum zb_slot_kind kind,
                      int index) {
  static uint64_t nowhere;
  const int microbatches = play->program->profile->microbatches;
  if (stage < 0 || stage >= play->program->profile->stages || index < 0 || index >= microbatches ||
      play->program->profile->device_of[stage] != device) {
    lose(play, device, at, "no such slot");
    return &nowhere;
  }
  return &play->slots[(stage * ZB_SLOT_KINDS + (int)kind) * microbatches + index];
}

static void expect_number(struct play *play, int device, size_t at, const char *what, uint64_t found,
                          uint64_t wanted) {
  if (found != wanted) lose(play, device, at, "%s is not what it should be", what);
}

static int position_in_line(const struct play *play, int device) {
  int k = 0;
  while (play->line[k] != device) k++;
  return k;
}

// Norms and the state: the number of the last device that is in it. The state is that of the iteration's own
// step, or of the one before it.
static uint64_t norm_number(const struct device *when, int k) { return number("norm", k, 0, when); }
static uint64_t state_number(const struct play *play, const struct device *when) {
  struct device stamp = *when;
  stamp.attempt = 0;
  if (play->program->optimizer == ZB_OPTIMIZER_POST_VALIDATION) stamp.iteration--;
  return number("state", 0, 0, &stamp);
}

static void run_op(struct play *play, int d, size_t at) {
  const struct zb_instruction *i = &play->program->instructions[at];
  const struct zb_profile *profile = play->program->profile;
  const struct device *now = &play->devices[d];
  const int s = i->stage, j = i->microbatch;
  uint64_t *kept = slot(play, d, at, s, ZB_SLOT_KEPT, i->keeps);
  const bool forward = i->kind == ZB_DO_F;
  const int from = forward ? s - 1 : s + 1, to = forward ? s + 1 : s - 1;
  if (forward) {
    *kept = number("KF", s, j, now);
  } else if (i->kind == ZB_DO_W) {
    expect_number(play, d, at, "what B kept", *kept, number("KB", s, j, now));
    *kept = SPOILT;
    return;
  } else {
    expect_number(play, d, at, "what F kept", *kept, number("KF", s, j, now));
    *kept = i->kind == ZB_DO_B ? number("KB", s, j, now) : SPOILT;
  }
  const char *what = forward ? "F" : "B";
  if (from >= 0 && from < profile->stages) {
    uint64_t *in = slot(play, d, at, s, forward ? ZB_SLOT_INPUT : ZB_SLOT_GRADIENT_IN, i->reads);
    expect_number(play, d, at, "its input", *in, number(what, from, j, now));
    *in = SPOILT;
  }
  if (to < 0 || to == profile->stages) return;
  const bool here = profile->device_of[to] == d;
  const enum zb_slot_kind handed = forward ? ZB_SLOT_INPUT : ZB_SLOT_GRADIENT_IN;
  const enum zb_slot_kind sent = forward ? ZB_SLOT_OUTPUT : ZB_SLOT_GRADIENT_OUT;
  *slot(play, d, at, here ? to : s, here ? handed : sent, i->writes) = number(what, s, j, now);
}

static void post(struct play *play, int d, size_t at) {
  const struct zb_instruction *i = &play->program->instructions[at];
  struct device *device = &play->devices[d];
  struct post *p = &device->posts[device->count++];
  *p = (struct post){zb_instruction_is_send(i->kind), false, i->peer, NULL, 0, at};
  switch (i->kind) {
  case ZB_DO_SEND_F:
    p->buffer = slot(play, d, at, i->stage, ZB_SLOT_OUTPUT, i->reads);
    break;
  case ZB_DO_SEND_B:
    p->buffer = slot(play, d, at, i->stage, ZB_SLOT_GRADIENT_OUT, i->reads);
    break;
  case ZB_DO_RECV_F:
    p->buffer = slot(play, d, at, i->stage, ZB_SLOT_INPUT, i->writes);
    break;
  case ZB_DO_RECV_B:
    p->buffer = slot(play, d, at, i->stage, ZB_SLOT_GRADIENT_IN, i->writes);
    break;
  case ZB_DO_RECV_NORM:
    p->buffer = &device->norm_in;
    break;
  case ZB_DO_SEND_NORM:
    p->copy = device->norm;
    break;
  case ZB_DO_SEND_STATE:
    p->copy = device->state;
    break;
  default:
    p->buffer = &device->state;
    break;
  }
  if (!p->send) *p->buffer = SPOILT;
  device->blocked = play->game.posts == PLAYER_BLOCKS;
}

// The last post of that name; NULL: none.
static struct post *find_post(struct play *play, int d, enum zb_instruction_kind kind, int stage,
                              int microbatch) {
  struct device *device = &play->devices[d];
  for (size_t k = device->count; k-- > 0;) {
    const struct zb_instruction *i = &play->program->instructions[device->posts[k].instruction];
    if (i->kind == kind && i->stage == stage && i->microbatch == microbatch) return &device->posts[k];
  }
  return NULL;
}

// Whether what the instruction needs is here.
static bool is_ready(struct play *play, int d, size_t at) {
  const struct zb_instruction *i = &play->program->instructions[at];
  const struct post *p = NULL;
  switch (i->kind) {
  case ZB_DO_F:
    p = find_post(play, d, ZB_DO_RECV_F, i->stage, i->microbatch);
    break;
  case ZB_DO_B:
  case ZB_DO_BW:
    p = find_post(play, d, ZB_DO_RECV_B, i->stage, i->microbatch);
    break;
  case ZB_DO_WAIT_SEND_F:
  case ZB_DO_WAIT_SEND_B:
    p = find_post(play, d, i->kind == ZB_DO_WAIT_SEND_F ? ZB_DO_SEND_F : ZB_DO_SEND_B, i->stage,
                  i->microbatch);
    if (p) break;
    lose(play, d, at, "nothing was sent");
    return false;
  case ZB_DO_NORM:
    p = find_post(play, d, ZB_DO_RECV_NORM, -1, -1);
    break;
  case ZB_DO_SEND_STATE:
  case ZB_DO_VALIDATE:
  case ZB_DO_STEP:
    p = find_post(play, d, ZB_DO_RECV_STATE, -1, -1);
    break;
  default:
    break;
  }
  return !p || p->done;
}

static bool all_done(const struct device *device) {
  for (size_t k = 0; k < device->count; k++)
    if (!device->posts[k].done) return false;
  return true;
}

// The state is right here. Where it says that the step was wrong the device begins again, once nothing of its
// own is under way. Returns whether it could.
static bool validate(struct play *play, int d, size_t at) {
  struct device *device = &play->devices[d];
  expect_number(play, d, at, "the state", device->state, state_number(play, device));
  if (device->iteration - 1 != play->game.wrong_step || device->iteration == play->game.iterations)
    return true;
  if (!all_done(device)) return false;
  const struct zb_profile *profile = play->program->profile;
  for (int s = 0; s < profile->stages; s++)
    if (profile->device_of[s] == d)
      for (int k = 0; k < ZB_SLOT_KINDS * profile->microbatches; k++)
        play->slots[s * ZB_SLOT_KINDS * profile->microbatches + k] = SPOILT;
  device->attempt = 1;
  device->count = 0;
  device->next = play->program->first[d] - 1;
  return true;
}

// Whether this instruction is left out of this pass over the list.
static bool is_skipped(const struct play *play, const struct device *device, enum zb_instruction_kind kind) {
  if (play->program->optimizer != ZB_OPTIMIZER_POST_VALIDATION) return false;
  const bool late = kind == ZB_DO_RECV_STATE || kind == ZB_DO_SEND_STATE || kind == ZB_DO_VALIDATE;
  if (device->iteration == play->game.iterations) return !late; // after the last: these alone
  return late && (device->iteration == 0 || device->attempt > 0);
}

static void end_iteration(struct play *play, int d) {
  struct device *device = &play->devices[d];
  const bool more = play->program->optimizer == ZB_OPTIMIZER_POST_VALIDATION;
  size_t left = 0;
  for (size_t k = 0; k < device->count; k++)
    if (!device->posts[k].done) device->posts[left++] = device->posts[k];
  device->count = left;
  device->iteration++;
  device->attempt = 0;
  device->next = play->program->first[d];
  device->over = device->iteration == play->game.iterations + more;
}

// One instruction of the device; false where it must wait.
static bool step(struct play *play, int d) {
  struct device *device = &play->devices[d];
  if (device->over || (device->blocked && !device->posts[device->count - 1].done)) return false;
  device->blocked = false;
  const size_t at = device->next;
  if (at == play->program->first[d + 1]) {
    end_iteration(play, d);
    return true;
  }
  const struct zb_instruction *i = &play->program->instructions[at];
  const int k = position_in_line(play, d);
  const bool last = k == play->program->devices - 1;
  if (is_skipped(play, device, i->kind)) {
    device->next++;
    return true;
  }
  if (!is_ready(play, d, at)) return false;
  switch (i->kind) {
  case ZB_DO_F:
  case ZB_DO_B:
  case ZB_DO_W:
  case ZB_DO_BW:
    run_op(play, d, at);
    break;
  case ZB_DO_WAIT_SEND_F:
  case ZB_DO_WAIT_SEND_B: // the buffer is free: whatever comes next may be written over it
    *find_post(play, d, i->kind == ZB_DO_WAIT_SEND_F ? ZB_DO_SEND_F : ZB_DO_SEND_B, i->stage, i->microbatch)
         ->buffer = SPOILT;
    break;
  case ZB_DO_NORM:
    if (k > 0) expect_number(play, d, at, "the norms before it", device->norm_in, norm_number(device, k - 1));
    device->norm = norm_number(device, k);
    if (last) {
      struct device stamp = *device;
      stamp.attempt = 0;
      device->state = number("state", 0, 0, &stamp);
    }
    break;
  case ZB_DO_STEP:
    if (play->program->optimizer == ZB_OPTIMIZER_BARRIER)
      expect_number(play, d, at, "the state", device->state, state_number(play, device));
    device->steps++;
    break;
  case ZB_DO_VALIDATE:
    if (!validate(play, d, at)) return false;
    break;
  default:
    post(play, d, at);
    break;
  }
  device->next++;
  return true;
}

// Messages.

static bool same_channel(const struct play *play, const struct post *a, const struct post *b) {
  if (play->game.channels == ZB_CHANNELS_RANK) return true;
  if (a->peer != b->peer) return false;
  return play->game.channels == ZB_CHANNELS_PAIR || a->send == b->send;
}

// The device's first post to or from `peer` that is not done, if nothing in its channel is before it.
static struct post *head(struct play *play, int d, int peer, bool send) {
  struct device *device = &play->devices[d];
  for (size_t k = 0; k < device->count; k++) {
    struct post *p = &device->posts[k];
    if (p->done || p->peer != peer || p->send != send) continue;
    for (size_t b = 0; b < k; b++)
      if (!device->posts[b].done && same_channel(play, &device->posts[b], p)) return NULL;
    return p;
  }
  return NULL;
}

static bool transfer(struct play *play, int from, int to) {
  struct post *sent = head(play, from, to, true), *received = head(play, to, from, false);
  if (!sent || !received) return false;
  *received->buffer = sent->buffer ? *sent->buffer : sent->copy;
  sent->done = received->done = true;
  return true;
}

// Steps and transfers in a random order; false when a whole round finds nothing to do.
static bool advance(struct play *play, struct generate_random *random) {
  const int p = play->program->devices, choices = p + p * p;
  const int first = (int)generate_between(random, 0, choices - 1);
  for (int k = 0; k < choices; k++) {
    const int choice = (first + k) % choices;
    if (choice < p ? step(play, choice) : transfer(play, (choice - p) / p, (choice - p) % p)) return true;
  }
  return false;
}

static void check_end(struct play *play) {
  for (int d = 0; d < play->program->devices && !play->lost; d++) {
    struct device *device = &play->devices[d];
    const size_t at = device->next < play->program->first[d + 1] ? device->next : play->program->first[d];
    if (!device->over)
      lose(play, d, at, "hangs");
    else if (!all_done(device))
      lose(play, d, at, "ends with messages under way");
    else if (device->steps != (play->program->optimizer == ZB_OPTIMIZER_NONE ? 0 : play->game.iterations))
      lose(play, d, at, "has stepped %d times", device->steps);
  }
}

bool player_play(const struct zb_program *program, struct player_game game, struct generate_random *random,
                 char *why, size_t room) {
  const size_t devices = (size_t)program->devices, total = program->first[devices];
  const size_t slots =
      (size_t)program->profile->stages * ZB_SLOT_KINDS * (size_t)program->profile->microbatches;
  struct play play = {.program = program, .game = game, .why = why, .room = room};
  snprintf(why, room, "out of memory");
  play.devices = calloc(devices, sizeof *play.devices);
  play.slots = calloc(slots, sizeof *play.slots);
  play.line = calloc(devices, sizeof *play.line);
  play.lost = !play.devices || !play.slots || !play.line;
  for (size_t d = 0; d < devices && !play.lost; d++) {
    play.devices[d].next = program->first[d];
    play.devices[d].posts = calloc((size_t)(game.iterations + 2) * (total + 1), sizeof(struct post));
    play.lost = !play.devices[d].posts;
  }
  if (!play.lost) {
    for (size_t k = 0; k < slots; k++) play.slots[k] = SPOILT;
    zb_program_line(program->profile, play.line);
    while (!play.lost && advance(&play, random)) continue;
    if (!play.lost) check_end(&play);
  }
  for (size_t d = 0; d < devices && play.devices; d++) free(play.devices[d].posts);
  free(play.devices);
  free(play.slots);
  free(play.line);
  return !play.lost;
}
