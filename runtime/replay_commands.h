// replay_commands.h - the commands of zbreplay. Each appends its result to `out`.
#ifndef ZB_REPLAY_COMMANDS_H
#define ZB_REPLAY_COMMANDS_H

#include "runtime/corpus.h"
#include "runtime/gpt.h"
#include "runtime/replay_options.h"

// `notes` is for standard error: where a run hangs, what each device was at.
enum zb_status zb_replay_run(const struct zb_replay_options *options, struct zb_text *out,
                             struct zb_text *notes, struct zb_error *error);
enum zb_status zb_replay_measure(const struct zb_replay_options *options, struct zb_text *out,
                                 struct zb_text *notes, struct zb_error *error);

// The text of --data, or the one that comes with the program: from the source tree or from where it is
// installed.
enum zb_status zb_replay_read_data(const struct zb_replay_options *options, const struct zb_gpt *gpt,
                                   struct zb_corpus *corpus, struct zb_error *error);

// BAD_INPUT where the machine has less memory than this: said before the first step, and before the kernel
// has to choose whom to end.
enum zb_status zb_replay_expect_memory(int64_t bytes, const struct zb_gpt *gpt, struct zb_error *error);

#endif
