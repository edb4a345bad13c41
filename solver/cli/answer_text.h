// answer_text.h - an answer on standard output: what solve and import print.
#ifndef ZB_ANSWER_TEXT_H
#define ZB_ANSWER_TEXT_H

#include <stdint.h>

#include "solver/cli/options.h"
#include "solver/io/text.h"
#include "solver/model/answer.h"
#include "solver/model/status.h"

// BAD_INPUT where --json and -o both want standard output.
enum zb_status zb_output_check(const struct zb_options *options, struct zb_error *error);

// With --json one object; else "s OPTIMAL cost bound" as the last line, and a summary before it where the
// answer goes to no file or -v asks for it. Nothing where -o has taken standard output.
void zb_answer_say(const struct zb_options *options, const struct zb_answer *answer, int64_t start_ns,
                   struct zb_text *out);

#endif
