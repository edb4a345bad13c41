// schedule_json.h - an answer as a schedule file (contract.md section 3), in and out.
//
// Printing leaves out what does not exist: without a schedule there are no cost, span, ... and no
// devices, and a bound only where one was proven.
#ifndef ZB_SCHEDULE_JSON_H
#define ZB_SCHEDULE_JSON_H

#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/answer.h"
#include "solver/model/status.h"

// Appends the whole file, newline included.
void zb_answer_print(const struct zb_answer *answer, struct zb_text *text);

// Appends the fields from `method` to `makespan_ns` (then relaxation and reason, where there are any)
// on one line, comma-separated, without braces: what `solve --json` shows.
void zb_answer_print_header(const struct zb_answer *answer, struct zb_text *text);

// Reads the file `path` ("-": standard input) into *answer (zb_answer_free; written only on success).
// BAD_INPUT: not such a file. WRONG: such a file, but its devices, stages or ops do not exist in its
// profile. Everything else in the answer is a claim that only zb_answer_verify has tested.
enum zb_status zb_answer_read(const char *path, struct zb_answer *answer, struct zb_error *error);

// The same from text that is already in memory; the error's path is left alone.
enum zb_status zb_answer_read_text(const char *text, size_t size, struct zb_answer *answer,
                                   struct zb_error *error);

#endif
