// program_report.h - what is to say about a program, in words and as JSON.
#ifndef ZB_PROGRAM_REPORT_H
#define ZB_PROGRAM_REPORT_H

#include "solver/io/text.h"
#include "solver/model/status.h"
#include "solver/program/program.h"
#include "solver/program/simulate.h"

// What the lists and the simulations come to.
struct zb_program_facts {
  size_t instructions, messages;
  int64_t serial_span_ns, serial_makespan_ns; // where messages of a channel follow each other
  int32_t most_slots[ZB_SLOT_KINDS];          // at one stage
};

// Simulates the program with serial channels and counts. An error is zb_program_simulate's.
enum zb_status zb_program_facts(const struct zb_program *program, struct zb_program_facts *facts,
                                struct zb_error *error);

// "8 devices, 1234 instructions, 336 messages, finishes under rank channels", without a line break.
void zb_program_print_line(const struct zb_program *program, const struct zb_program_facts *facts,
                           struct zb_text *out);

// A few lines for a person.
void zb_program_print_summary(const struct zb_program *program, const struct zb_program_facts *facts,
                              struct zb_text *out);

// Fields of a JSON object, comma-separated, without braces.
void zb_program_print_fields(const struct zb_program *program, const struct zb_program_facts *facts,
                             struct zb_text *out);

// The cycle of a program that does not finish, one instruction a line; or as the JSON field "cycle".
void zb_program_print_cycle(const struct zb_program *program, const struct zb_run *run, struct zb_text *out);
void zb_program_print_cycle_field(const struct zb_program *program, const struct zb_run *run,
                                  struct zb_text *out);

#endif
