// program_json.h - a program as JSON, in and out.
//
//   {"zbsolve_program": 1, "profile": {..}, "method": "zb-h1",
//    "span_ns": .., "period_ns": .., "makespan_ns": ..,         of the schedule that it was made from
//    "channels": "rank", "optimizer": "barrier",                the channels under which it is proven to
//    finish "slots": [{"stage": 0, "kept": 4, "input": 0, "output": 1, "gradient_in": 1, "gradient_out": 0},
//    ..], "devices": [{"device": 0, "stages": [0], "peak_bytes": .., "instructions": [
//      ["0F0", 0, null, 0], ["0SEND_F0", 1, 0], ["1RECV_B0", 2, 0], ["SEND_NORM", 1], ["STEP"], ..]}, ..]}
//
// After its name an op has the slots that it keeps, reads and writes, a message its peer and its slot, a norm
// or state its peer; null is none. program.h says what each instruction does.
#ifndef ZB_PROGRAM_JSON_H
#define ZB_PROGRAM_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/status.h"
#include "solver/program/program.h"

// Appends the whole file, newline included.
void zb_program_print(const struct zb_program *program, struct zb_text *text);

// Reads the file `path` ("-": standard input); *program is owned by the caller and written only on success.
// BAD_INPUT: not such a file. WRONG: such a file, but its devices, stages or instructions do not exist in its
// profile. Everything else is a claim that only zb_program_check has tested.
enum zb_status zb_program_read(const char *path, struct zb_program **program, struct zb_error *error);

// The same from text that is already in memory; the error's path is left alone.
enum zb_status zb_program_read_text(const char *text, size_t size, struct zb_program **program,
                                    struct zb_error *error);

// Whether the text begins like a program: its first key is zbsolve_program.
bool zb_program_begins(const char *text, size_t size);

#endif
