// commands.h - what every command is: options in, text for standard output out, a status for the exit code.
#ifndef ZB_COMMANDS_H
#define ZB_COMMANDS_H

#include <stdint.h>

#include "solver/cli/options.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

// Runs a command whose process began at `start_ns` of the monotonic clock, and appends what belongs on
// standard output to `out`, whatever the status. The status gives the exit code. An error's text is printed
// where there is one: WRONG and INFEASIBLE carry one too, OPTIMAL and FEASIBLE never.
typedef enum zb_status zb_command_run(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                      struct zb_error *error);

#define X(NAME, name, operand, help) zb_command_run zb_command_##name;
ZB_COMMAND_TABLE(X)
#undef X

#endif
