// replay_commands.h - the commands of zbreplay. Each appends its result to `out`.
#ifndef ZB_REPLAY_COMMANDS_H
#define ZB_REPLAY_COMMANDS_H

#include "runtime/corpus.h"
#include "runtime/gpt.h"
#include "runtime/replay.h"
#include "runtime/replay_options.h"

// Prints lines to standard error, at once: who is where before the first step, and where a run hangs what
// each device was at, before a launcher ends this process for another's sake.
typedef void (*zb_say)(const char *lines);

enum zb_status zb_replay_run(const struct zb_replay_options *options, struct zb_text *out, zb_say say,
                             struct zb_error *error);
enum zb_status zb_replay_measure(const struct zb_replay_options *options, struct zb_text *out, zb_say say,
                                 struct zb_error *error);

// The text of --data, or the one that comes with the program: from the source tree or from where it is
// installed.
enum zb_status zb_replay_read_data(const struct zb_replay_options *options, const struct zb_gpt *gpt,
                                   struct zb_corpus *corpus, struct zb_error *error);

// A number for all that must be the same in every process of a run, so that they train the same.
uint64_t zb_replay_digest(const struct zb_replay *replay);

#endif
