// program.c - programs: their room, and the names of their parts.
#include "solver/program/program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *word;
  enum zb_acts acts;
} instructions[ZB_INSTRUCTION_KINDS] = {
#define X(name, word, acts) {word, acts},
    ZB_INSTRUCTION_TABLE(X)
#undef X
};

static const char *const slot_words[ZB_SLOT_KINDS] = {
#define X(name, word) word,
    ZB_SLOT_TABLE(X)
#undef X
};

static const char *const channels_words[ZB_CHANNELS_COUNT] = {
#define X(name, word) word,
    ZB_CHANNELS_TABLE(X)
#undef X
};

static const char *const optimizer_words[ZB_OPTIMIZER_COUNT] = {
#define X(name, word) word,
    ZB_OPTIMIZER_TABLE(X)
#undef X
};

const char *zb_instruction_word(enum zb_instruction_kind kind) { return instructions[kind].word; }
enum zb_acts zb_instruction_acts(enum zb_instruction_kind kind) { return instructions[kind].acts; }
const char *zb_slot_word(enum zb_slot_kind kind) { return slot_words[kind]; }
const char *zb_channels_word(enum zb_channels channels) { return channels_words[channels]; }
const char *zb_optimizer_word(enum zb_optimizer optimizer) { return optimizer_words[optimizer]; }

bool zb_instruction_is_send(enum zb_instruction_kind kind) {
  return kind == ZB_DO_SEND_F || kind == ZB_DO_SEND_B || kind == ZB_DO_SEND_NORM || kind == ZB_DO_SEND_STATE;
}

bool zb_instruction_is_receive(enum zb_instruction_kind kind) {
  return kind == ZB_DO_RECV_F || kind == ZB_DO_RECV_B || kind == ZB_DO_RECV_NORM || kind == ZB_DO_RECV_STATE;
}

bool zb_instruction_is_end(enum zb_instruction_kind kind) {
  return zb_instruction_is_send(kind) || zb_instruction_is_receive(kind);
}

struct zb_instruction zb_instruction_other_end(struct zb_instruction instruction) {
  static const struct {
    enum zb_instruction_kind from, to;
    int32_t stages;
  } ends[] = {{ZB_DO_SEND_F, ZB_DO_RECV_F, 1},         {ZB_DO_RECV_F, ZB_DO_SEND_F, -1},
              {ZB_DO_SEND_B, ZB_DO_RECV_B, -1},        {ZB_DO_RECV_B, ZB_DO_SEND_B, 1},
              {ZB_DO_SEND_NORM, ZB_DO_RECV_NORM, 0},   {ZB_DO_RECV_NORM, ZB_DO_SEND_NORM, 0},
              {ZB_DO_SEND_STATE, ZB_DO_RECV_STATE, 0}, {ZB_DO_RECV_STATE, ZB_DO_SEND_STATE, 0}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (instruction.kind == ends[i].from) {
      instruction.kind = ends[i].to;
      instruction.stage += ends[i].stages;
      break;
    }
  return instruction;
}

void zb_instruction_print(struct zb_instruction instruction, char *text) {
  const char *word = instructions[instruction.kind].word;
  if (instructions[instruction.kind].acts <= ZB_ACTS_MESSAGE)
    snprintf(text, ZB_INSTRUCTION_TEXT, "%d%s%d", (int)instruction.stage, word, (int)instruction.microbatch);
  else
    snprintf(text, ZB_INSTRUCTION_TEXT, "%s", word);
}

// A whole number without leading zeros; returns its length, 0 if there is none or it is out of range.
static size_t parse_index(const char *text, int32_t *value) {
  size_t length = 0;
  int64_t number = 0;
  for (; isdigit((unsigned char)text[length]); length++) {
    number = number * 10 + (text[length] - '0');
    if (number > INT32_MAX || (length == 1 && text[0] == '0')) return 0;
  }
  if (length > 0) *value = (int32_t)number;
  return length;
}

size_t zb_instruction_parse(const char *text, struct zb_instruction *instruction) {
  struct zb_instruction parsed = {
      .stage = -1, .microbatch = -1, .peer = -1, .keeps = -1, .reads = -1, .writes = -1};
  const size_t stage = parse_index(text, &parsed.stage);
  const char *word = text + stage;
  size_t length = 0;
  while (isupper((unsigned char)word[length]) || word[length] == '_') length++;
  int kind = 0;
  while (kind < ZB_INSTRUCTION_KINDS &&
         (strlen(instructions[kind].word) != length || strncmp(instructions[kind].word, word, length) != 0))
    kind++;
  if (kind == ZB_INSTRUCTION_KINDS) return 0;
  parsed.kind = (enum zb_instruction_kind)kind;
  const size_t microbatch = parse_index(word + length, &parsed.microbatch);
  const bool staged = instructions[kind].acts <= ZB_ACTS_MESSAGE;
  if ((stage > 0) != staged || (microbatch > 0) != staged) return 0;
  *instruction = parsed;
  return stage + length + microbatch;
}

int zb_program_device(const struct zb_program *program, size_t instruction) {
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

void zb_program_line(const struct zb_profile *profile, int *line) {
  int count = 0;
  for (int s = 0; s < profile->stages; s++)
    if (profile->chunk_of[s] == 0) line[count++] = profile->device_of[s];
}

enum zb_status zb_program_create(const struct zb_profile *profile, size_t room, struct zb_program **program,
                                 struct zb_error *error) {
  struct zb_program *p = calloc(1, sizeof *p);
  if (!p) return zb_fail_memory(error);
  const size_t devices = (size_t)profile->devices;
  enum zb_status status = zb_profile_copy(profile, &p->profile, error);
  if (status == ZB_OK) {
    p->devices = profile->devices;
    p->first = calloc(devices + 1, sizeof *p->first);
    p->peak_bytes = calloc(devices, sizeof *p->peak_bytes);
    p->instructions = calloc(room + 1, sizeof *p->instructions);
    p->slots = calloc((size_t)profile->stages * ZB_SLOT_KINDS, sizeof *p->slots);
    if (!p->first || !p->peak_bytes || !p->instructions || !p->slots) status = zb_fail_memory(error);
  }
  if (status != ZB_OK) {
    zb_program_free(p);
    return status;
  }
  *program = p;
  return ZB_OK;
}

void zb_program_free(struct zb_program *program) {
  if (!program) return;
  zb_profile_free(program->profile);
  free(program->method);
  free(program->peak_bytes);
  free(program->first);
  free(program->instructions);
  free(program->slots);
  free(program);
}
