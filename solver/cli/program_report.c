// program_report.c - what is to say about a program, in words and as JSON.
#include "solver/cli/program_report.h"

#include <inttypes.h>

#include "solver/cli/quantity.h"
#include "solver/io/json.h"

enum zb_status zb_program_facts(const struct zb_program *program, struct zb_program_facts *facts,
                                struct zb_error *error) {
  struct zb_run run = {0};
  enum zb_status status = zb_program_simulate(program, program->channels, true, &run, error);
  if (status == ZB_OK) {
    *facts = (struct zb_program_facts){.instructions = program->first[program->devices],
                                       .serial_span_ns = run.span_ns,
                                       .serial_makespan_ns = run.makespan_ns};
    for (size_t at = 0; at < facts->instructions; at++)
      facts->messages += zb_instruction_is_send(program->instructions[at].kind);
    for (int which = 0; which < program->profile->stages * ZB_SLOT_KINDS; which++) {
      int32_t *most = &facts->most_slots[which % ZB_SLOT_KINDS];
      if (program->slots[which] > *most) *most = program->slots[which];
    }
  }
  zb_run_free(&run);
  return status;
}

void zb_program_print_line(const struct zb_program *program, const struct zb_program_facts *facts,
                           struct zb_text *out) {
  zb_text_print(out, "%d devices, %zu instructions, %zu messages, finishes under %s channels",
                program->devices, facts->instructions, facts->messages, zb_channels_word(program->channels));
}

void zb_program_print_summary(const struct zb_program *program, const struct zb_program_facts *facts,
                              struct zb_text *out) {
  char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT];
  zb_text_print(out, "%s, %s: ", program->profile->name ? program->profile->name : "profile",
                program->method);
  zb_program_print_line(program, facts, out);
  zb_text_print(out, "\n  span       %s; %s where messages of a channel follow each other\n",
                zb_time_text(program->span_ns, a), zb_time_text(facts->serial_span_ns, b));
  zb_text_print(out, "  makespan   %s; %s\n", zb_time_text(program->makespan_ns, a),
                zb_time_text(facts->serial_makespan_ns, b));
  zb_text_put(out, "  slots      ");
  for (int kind = 0; kind < ZB_SLOT_KINDS; kind++)
    zb_text_print(out, "%s%s %d", kind == 0 ? "" : ", ", zb_slot_word((enum zb_slot_kind)kind),
                  (int)facts->most_slots[kind]);
  zb_text_print(out, ": the most at one stage\n  optimizer  %s\n", zb_optimizer_word(program->optimizer));
}

void zb_program_print_fields(const struct zb_program *program, const struct zb_program_facts *facts,
                             struct zb_text *out) {
  zb_text_put(out, "\"method\": ");
  zb_json_print_string(program->method, out);
  zb_text_print(out,
                ", \"channels\": \"%s\", \"optimizer\": \"%s\", \"instructions\": %zu, \"messages\": %zu",
                zb_channels_word(program->channels), zb_optimizer_word(program->optimizer),
                facts->instructions, facts->messages);
  zb_text_print(out,
                ", \"span_ns\": %" PRId64 ", \"period_ns\": %" PRId64 ", \"makespan_ns\": %" PRId64
                ", \"serial_span_ns\": %" PRId64 ", \"serial_makespan_ns\": %" PRId64 ", \"slots\": {",
                program->span_ns, program->period_ns, program->makespan_ns, facts->serial_span_ns,
                facts->serial_makespan_ns);
  for (int kind = 0; kind < ZB_SLOT_KINDS; kind++)
    zb_text_print(out, "%s\"%s\": %d", kind == 0 ? "" : ", ", zb_slot_word((enum zb_slot_kind)kind),
                  (int)facts->most_slots[kind]);
  zb_text_put(out, "}");
}

void zb_program_print_cycle(const struct zb_program *program, const struct zb_run *run, struct zb_text *out) {
  for (size_t k = 0; k < run->cycle_length; k++) {
    const struct zb_wait_for *wait = &run->cycle[k], *next = &run->cycle[(k + 1) % run->cycle_length];
    char name[ZB_INSTRUCTION_TEXT], other[ZB_INSTRUCTION_TEXT];
    zb_instruction_print(program->instructions[wait->instruction], name);
    zb_instruction_print(program->instructions[next->instruction], other);
    zb_text_print(out, "device %d, position %zu, %s: %s %s", wait->device,
                  wait->instruction - program->first[wait->device], name, zb_wait_word(wait->why), other);
    if (next->device != wait->device) zb_text_print(out, " of device %d", next->device);
    zb_text_put(out, "\n");
  }
}

void zb_program_print_cycle_field(const struct zb_program *program, const struct zb_run *run,
                                  struct zb_text *out) {
  zb_text_put(out, "\"cycle\": [");
  for (size_t k = 0; k < run->cycle_length; k++) {
    const struct zb_wait_for *wait = &run->cycle[k];
    char name[ZB_INSTRUCTION_TEXT];
    zb_instruction_print(program->instructions[wait->instruction], name);
    zb_text_print(out, "%s{\"device\": %d, \"position\": %zu, \"instruction\": \"%s\", \"why\": \"%s\"}",
                  k == 0 ? "" : ", ", wait->device, wait->instruction - program->first[wait->device], name,
                  zb_wait_word(wait->why));
  }
  zb_text_put(out, "]");
}
