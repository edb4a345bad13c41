// replay_options.h - what can be said on zbreplay's command line: one table of commands, one of options.
//
// The parser and the help read these tables, so that they cannot drift apart.
#ifndef ZB_REPLAY_OPTIONS_H
#define ZB_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/io/command_line.h"
#include "solver/model/status.h"

// Name, operand, what it is for. Each has a function zb_replay_NAME (replay_commands.h).
#define ZB_REPLAY_COMMAND_TABLE(X)                                                                           \
  X(RUN, run, "PROGRAM|SCHEDULE", "train a small model as the schedule says, and measure it")                \
  X(MEASURE, measure, "MODEL", "time F, B, W of every stage and write a profile")

enum zb_replay_command {
#define X(NAME, name, operand, help) ZB_REPLAY_##NAME,
  ZB_REPLAY_COMMAND_TABLE(X)
#undef X
      ZB_REPLAY_COMMANDS
};

enum {
  ZB_ON_RUN = 1 << ZB_REPLAY_RUN,
  ZB_ON_MEASURE = 1 << ZB_REPLAY_MEASURE,
  ZB_ON_BOTH = ZB_ON_RUN | ZB_ON_MEASURE,
};

// Field, letter (0: none), name, argument, type, default (as the user would write it), least, most (of a
// COUNT), the choices separated by '|' (of a CHOICE), commands, help.
// clang-format off
#define ZB_REPLAY_OPTION_TABLE(X)                                                               \
  X(model, 0, "model", "MODEL", TEXT, NULL, 0, 0, "", ZB_ON_RUN,                                \
    "what is trained; without it the smallest, one block a stage")                              \
  X(backend, 0, "backend", "B", CHOICE, "cpu", 0, 0, "cpu|sleep|cuda", ZB_ON_BOTH,              \
    "what computes")                                                                            \
  X(transport, 0, "transport", "T", CHOICE, "threads", 0, 0, "threads|mpi|nccl", ZB_ON_RUN,     \
    "what moves messages")                                                                      \
  X(dtype, 0, "dtype", "T", CHOICE, "fp32", 0, 0, "fp32|bf16", ZB_ON_BOTH,                      \
    "of activations and messages (cuda); weights, gradients and moments are fp32")              \
  X(tf32, 0, "tf32", NULL, FLAG, NULL, 0, 0, "", ZB_ON_BOTH,                                    \
    "fp32 products may round their factors to TF32 (cuda)")                                     \
  X(graph, 0, "graph", NULL, FLAG, NULL, 0, 0, "", ZB_ON_RUN,                                   \
    "iterations are launched as one CUDA graph a device")                                       \
  X(optimizer, 0, "optimizer", "O", CHOICE, NULL, 0, 0, "barrier|post-validation", ZB_ON_RUN, \
    "how a schedule's steps are made (barrier); a program says it itself")                      \
  X(rollback, 0, "rollback", "R", CHOICE, "copy", 0, 0, "copy|inverse", ZB_ON_RUN,              \
    "how post-validation takes a step back")                                                    \
  X(steps, 0, "steps", "N", COUNT, "3", 1, 1000000, "", ZB_ON_RUN,                              \
    "training steps")                                                                           \
  X(warm_up, 0, "warm-up", "N", COUNT, "1", 0, 1000000, "", ZB_ON_RUN,                          \
    "steps before measuring begins")                                                            \
  X(clip, 0, "clip", "NORM", NUMBER, NULL, 0, 0, "", ZB_ON_RUN,                                 \
    "clipping norm instead of the model's; 0: none")                                            \
  X(inject, 0, "inject", "nan:STEP:STAGE", TEXT, NULL, 0, 0, "", ZB_ON_RUN,                     \
    "a NaN into a stage's gradient in a step (from 0)")                                         \
  X(verify, 0, "verify", NULL, FLAG, NULL, 0, 0, "", ZB_ON_RUN,                                 \
    "train without a pipeline too: every loss and parameter must be the same")                  \
  X(trace, 0, "trace", "FILE", TEXT, NULL, 0, 0, "", ZB_ON_RUN,                                 \
    "write every instruction's times for Perfetto or chrome://tracing")                         \
  X(checkpoint, 0, "checkpoint", "DIR", TEXT, NULL, 0, 0, "", ZB_ON_RUN,                        \
    "go on from DIR/checkpoint where there is one, and leave one after the last step")          \
  X(checkpoint_every, 0, "checkpoint-every", "N", COUNT, "0", 0, 1000000, "", ZB_ON_RUN,        \
    "another one after every N steps; 0: none")                                                 \
  X(timeout_s, 0, "timeout", "S", NUMBER, "30", 0, 0, "", ZB_ON_RUN,                            \
    "seconds that any wait may take")                                                           \
  X(output, 'o', "output", "PROFILE", TEXT, NULL, 0, 0, "", ZB_ON_MEASURE,                      \
    "write the profile there instead of standard output")                                       \
  X(devices, 0, "devices", "P", COUNT, "0", 0, 1024, "", ZB_ON_MEASURE,                         \
    "devices; 0: as many as the model file's stages ask for, or 2")                             \
  X(placement, 0, "placement", "L", CHOICE, "chain", 0, 0, "chain|loop|v", ZB_ON_MEASURE,       \
    "which device holds which stage")                                                           \
  X(chunks, 0, "chunks", "V", COUNT, "0", 0, 64, "", ZB_ON_MEASURE,                             \
    "stages a device; 0: 1 on a chain, else 2")                                                 \
  X(microbatches, 0, "microbatches", "N", COUNT, "8", 1, 1000000, "", ZB_ON_MEASURE,            \
    "of the profile")                                                                           \
  X(repeats, 0, "repeats", "N", COUNT, "20", 1, 100000, "", ZB_ON_MEASURE,                      \
    "timings of each op, of which the median counts")                                           \
  X(data, 0, "data", "FILE", TEXT, NULL, 0, 0, "", ZB_ON_BOTH,                                  \
    "the bytes to learn from; without it configs/models/text.txt")                              \
  X(seed, 0, "seed", "N", COUNT, "1", 0, 1000000000, "", ZB_ON_BOTH,                            \
    "of start values and batches")                                                              \
  X(json, 0, "json", NULL, FLAG, NULL, 0, 0, "", ZB_ON_RUN,                                     \
    "one JSON object on stdout, nothing else there")                                            \
  X(quiet, 'q', "quiet", NULL, FLAG, NULL, 0, 0, "", ZB_ON_BOTH,                                \
    "only what --verify says, and errors")                                                      \
  X(verbose, 'v', "verbose", NULL, FLAG, NULL, 0, 0, "", ZB_ON_BOTH,                            \
    "every step's loss, every device")                                                          \
  X(help, 'h', "help", NULL, FLAG, NULL, 0, 0, "", ZB_ON_BOTH,                                  \
    "print this")
// clang-format on

// The C type of each option type; what it is where nothing is given and there is no default: command_line.h.
typedef bool zb_replay_FLAG;
typedef const char *zb_replay_TEXT;
typedef int64_t zb_replay_COUNT;
typedef int zb_replay_CHOICE;
typedef double zb_replay_NUMBER; // at least 0; -1: not given and no default

struct zb_replay_options {
  enum zb_replay_command command;
  const char *operand; // the file that the command is about
#define X(field, letter, name, argument, type, value, least, most, choices, commands, help)                  \
  zb_replay_##type field;
  ZB_REPLAY_OPTION_TABLE(X)
#undef X
};

// Reads the arguments after the program's name. BAD_INPUT with one line for anything that the tables do not
// allow; with --help anywhere after a command, OK and `help` set. Texts are borrowed from `arguments`.
enum zb_status zb_replay_options_parse(int count, char **arguments, struct zb_replay_options *options,
                                       struct zb_error *error);

void zb_replay_help(struct zb_text *out); // all commands
// The options of the command called `name`; BAD_INPUT where there is none.
enum zb_status zb_replay_help_command(const char *name, struct zb_text *out, struct zb_error *error);

#endif
