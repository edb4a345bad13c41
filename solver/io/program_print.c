// program_print.c - a program as JSON (program_json.h).
#include <inttypes.h>

#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/io/program_json.h"

// Characters of a line of instructions, after which the next begins a new one.
enum { LINE = 96 };

static void print_slots(const struct zb_program *program, struct zb_text *text) {
  zb_text_put(text, "  \"slots\": [");
  for (int s = 0; s < program->profile->stages; s++) {
    zb_text_print(text, "%s\n    {\"stage\": %d", s == 0 ? "" : ",", s);
    for (int kind = 0; kind < ZB_SLOT_KINDS; kind++)
      zb_text_print(text, ", \"%s\": %d", zb_slot_word((enum zb_slot_kind)kind),
                    (int)zb_program_slots(program, s, (enum zb_slot_kind)kind));
    zb_text_put(text, "}");
  }
  zb_text_put(text, "\n  ],\n");
}

static void print_number(int32_t value, struct zb_text *text) {
  zb_text_put(text, ", ");
  if (value < 0)
    zb_text_put(text, "null");
  else
    zb_text_integer(text, value);
}

static void print_instruction(const struct zb_instruction *i, struct zb_text *text) {
  const enum zb_acts acts = zb_instruction_acts(i->kind);
  const bool staged = acts == ZB_ACTS_OP || acts == ZB_ACTS_MESSAGE;
  zb_text_put(text, "[\"");
  if (staged) zb_text_integer(text, i->stage);
  zb_text_put(text, zb_instruction_word(i->kind));
  if (staged) zb_text_integer(text, i->microbatch);
  zb_text_put(text, "\"");
  if (acts == ZB_ACTS_OP) {
    print_number(i->keeps, text);
    print_number(i->reads, text);
    print_number(i->writes, text);
  }
  if (acts == ZB_ACTS_MESSAGE || acts == ZB_ACTS_LINE) print_number(i->peer, text);
  if (acts == ZB_ACTS_MESSAGE) print_number(zb_instruction_is_receive(i->kind) ? i->writes : i->reads, text);
  zb_text_put(text, "]");
}

static void print_device(const struct zb_program *program, int device, struct zb_text *text) {
  const struct zb_profile *profile = program->profile;
  zb_text_print(text, "    {\"device\": %d, \"stages\": [", device);
  for (int k = 0; k < profile->chunks; k++)
    zb_text_print(text, "%s%d", k == 0 ? "" : ", ", profile->stage_at[device * profile->chunks + k]);
  zb_text_print(text, "], \"peak_bytes\": %" PRId64 ", \"instructions\": [", program->peak_bytes[device]);
  size_t line = 0;
  for (size_t at = program->first[device]; at < program->first[device + 1]; at++) {
    if (at > program->first[device]) zb_text_put(text, ",");
    if (at == program->first[device] || text->size - line > LINE) {
      zb_text_put(text, "\n      ");
      line = text->size;
    } else {
      zb_text_put(text, " ");
    }
    print_instruction(&program->instructions[at], text);
  }
  zb_text_put(text, "]}");
}

void zb_program_print(const struct zb_program *program, struct zb_text *text) {
  zb_text_put(text, "{\n  \"zbsolve_program\": 1,\n  \"profile\": ");
  zb_profile_print(program->profile, 2, text);
  zb_text_put(text, ",\n  \"method\": ");
  zb_json_print_string(program->method, text);
  zb_text_print(text,
                ",\n  \"span_ns\": %" PRId64 ", \"period_ns\": %" PRId64 ", \"makespan_ns\": %" PRId64
                ",\n  \"channels\": \"%s\", \"optimizer\": \"%s\",\n",
                program->span_ns, program->period_ns, program->makespan_ns,
                zb_channels_word(program->channels), zb_optimizer_word(program->optimizer));
  print_slots(program, text);
  zb_text_put(text, "  \"devices\": [");
  for (int d = 0; d < program->devices; d++) {
    zb_text_put(text, d == 0 ? "\n" : ",\n");
    print_device(program, d, text);
  }
  zb_text_put(text, "\n  ]\n}\n");
}
