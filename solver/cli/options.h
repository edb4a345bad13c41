// options.h - what can be said on the command line: the one table of commands and the one of options.
//
// The parser, the help texts and the tests all read these tables, so that they cannot drift apart.
#ifndef ZB_OPTIONS_H
#define ZB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/cli/quantity.h"
#include "solver/io/command_line.h"
#include "solver/model/status.h"

// Command, the operand it takes (".." at its end: up to ZB_OPERANDS of them), what it is for. Every command
// has a function zb_command_NAME.
#define ZB_COMMAND_TABLE(X)                                                                                  \
  X(SOLVE, solve, "PROFILE", "find the best schedule of a profile")                                          \
  X(COMPARE, compare, "PROFILE", "every method side by side, one bound, and a verdict")                      \
  X(TUNE, tune, "PROFILE..", "one model in several profiles: the most samples a second")                     \
  X(FRONTIER, frontier, "PROFILE", "memory limit against bubble, each point with its bound")                 \
  X(CHECK, check, "SCHEDULE", "is a schedule valid, are its numbers true, does its bound hold")              \
  X(SHOW, show, "SCHEDULE", "a Gantt chart of a schedule in the terminal")                                   \
  X(EXPORT, export, "SCHEDULE", "a schedule in the formats of other programs")                               \
  X(IMPORT, import, "FILE", "a schedule from the formats of other programs, checked and timed")              \
  X(COMPILE, compile, "SCHEDULE", "a program for each device, with its messages, proven to finish")          \
  X(PROFILE, profile, "FILE..", "a profile from traces and logs of a training run")

enum zb_command {
#define X(NAME, name, operand, help) ZB_COMMAND_##NAME,
  ZB_COMMAND_TABLE(X)
#undef X
      ZB_COMMAND_COUNT
};

enum {
  ZB_ON_SOLVE = 1 << ZB_COMMAND_SOLVE,
  ZB_ON_COMPARE = 1 << ZB_COMMAND_COMPARE,
  ZB_ON_TUNE = 1 << ZB_COMMAND_TUNE,
  ZB_ON_FRONTIER = 1 << ZB_COMMAND_FRONTIER,
  ZB_ON_CHECK = 1 << ZB_COMMAND_CHECK,
  ZB_ON_SHOW = 1 << ZB_COMMAND_SHOW,
  ZB_ON_EXPORT = 1 << ZB_COMMAND_EXPORT,
  ZB_ON_IMPORT = 1 << ZB_COMMAND_IMPORT,
  ZB_ON_COMPILE = 1 << ZB_COMMAND_COMPILE,
  ZB_ON_PROFILE = 1 << ZB_COMMAND_PROFILE,
  ZB_ON_ENGINES = ZB_ON_SOLVE | ZB_ON_COMPARE | ZB_ON_TUNE | ZB_ON_FRONTIER,
  ZB_ON_OUTPUT = ZB_ON_SOLVE | ZB_ON_FRONTIER | ZB_ON_EXPORT | ZB_ON_IMPORT | ZB_ON_COMPILE | ZB_ON_PROFILE,
  ZB_ON_ALL = (1 << ZB_COMMAND_COUNT) - 1,
};

// What --target takes: the releases of torch with the pipeline runtime that we write for, 2.6 and on.
#define ZB_TORCH_RELEASES "2.6|2.7|2.8|2.9|2.10|2.11|2.12|2.13|2.14|2.15"
enum { ZB_TORCH_FIRST_MINOR = 6, ZB_TORCH_LAST_MINOR = 15 };

// Field, letter (0: none), name, argument, type, default (as the user would write it), least, most, unit or
// the choices separated by '|', commands, help. A type's reader is in command_line.h or options.c.
// clang-format off
#define ZB_OPTION_TABLE(X)                                                                       \
  X(output, 'o', "output", "FILE", TEXT, NULL, 0, 0, "", ZB_ON_OUTPUT,                           \
    "write the result (the frontier's chart) to FILE")                                           \
  X(format, 0, "to", "FORMAT", TEXT, NULL, 0, 0, "", ZB_ON_EXPORT,                               \
    "what to write (listed below)")                                                              \
  X(target, 0, "target", "RELEASE", CHOICE, NULL, 0, 0, ZB_TORCH_RELEASES, ZB_ON_EXPORT,         \
    "of torch to write for, where the format is torch's (2.15)")                                 \
  X(layers, 0, "layers", "N", COUNT, NULL, 1, 1000000, "", ZB_ON_EXPORT,                         \
    "of the model, for megatron-layout")                                                         \
  X(source, 0, "from", "FORMAT", TEXT, NULL, 0, 0, "", ZB_ON_IMPORT | ZB_ON_PROFILE,             \
    "what FILE is (listed below)")                                                               \
  X(profile, 0, "profile", "PROFILE", TEXT, NULL, 0, 0, "", ZB_ON_IMPORT,                        \
    "what its ops cost")                                                                         \
  X(only_schedule, 0, "only-schedule", NULL, FLAG, NULL, 0, 0, "", ZB_ON_EXPORT,                 \
    "html without the comparison and the frontier, which take time")                             \
  X(proof, 0, "proof", "FILE", TEXT, NULL, 0, 0, "", ZB_ON_SOLVE,                                \
    "write the bound's proof tree to FILE beside the schedule")                                  \
  X(method, 0, "method", "M", TEXT, "auto", 0, 0, "",                                            \
    ZB_ON_SOLVE | ZB_ON_TUNE | ZB_ON_FRONTIER,                                                   \
    "how to solve (zbsolve help lists the methods)")                                             \
  X(start, 0, "start", "SCHEDULE", TEXT, NULL, 0, 0, "", ZB_ON_SOLVE,                            \
    "search on from this one, e.g. an imported one")                                             \
  X(methods, 0, "methods", "A,B,..", TEXT, NULL, 0, 0, "", ZB_ON_COMPARE | ZB_ON_FRONTIER,       \
    "only these methods; on frontier a curve each")                                              \
  X(placements, 0, "placements", "P,Q,..", TEXT, NULL, 0, 0, "",                                 \
    ZB_ON_COMPARE | ZB_ON_TUNE | ZB_ON_FRONTIER,                                                 \
    "only on these: own, chain, loop, v, or all")                                                \
  X(objective, 0, "objective", "O", CHOICE, "span", 0, 0, "span|makespan|period",                \
    ZB_ON_ENGINES | ZB_ON_IMPORT,                                                                \
    "what to minimise")                                                                          \
  X(memory_limit, 0, "memory-limit", "L", LIMIT, NULL, 0, 0, "",                                 \
    ZB_ON_SOLVE | ZB_ON_COMPARE | ZB_ON_TUNE | ZB_ON_IMPORT,                                     \
    "every device's: 40GiB, none, or 1.5x")                                                      \
  X(microbatches, 0, "microbatches", "N", COUNT, NULL, 1, 1000000, "",                           \
    ZB_ON_ENGINES | ZB_ON_IMPORT | ZB_ON_PROFILE,                                                \
    "instead of the input's")                                                                  \
  X(chunks, 0, "chunks", "V", COUNT, NULL, 1, 1000, "", ZB_ON_ENGINES,                           \
    "stages a device, where the method allows it")                                               \
  X(skip, 0, "skip", "N", COUNT, "-1", -1, 1000000, "", ZB_ON_PROFILE,                           \
    "drop the first N iterations; -1: one, where a trace has several")                           \
  X(devices, 0, "devices", "N", COUNT, NULL, 1, 100000, "", ZB_ON_PROFILE,                       \
    "of the pipeline, where logs number the ranks of more")                                      \
  X(comm, 0, "comm", "TIME", TEXT, NULL, 0, 0, "", ZB_ON_PROFILE,                                \
    "of every message, like 0.6ms, instead of what was measured")                                \
  X(from, 0, "from", "X", MULTIPLE, "0.5x", 0, 0, "", ZB_ON_FRONTIER,                            \
    "first limit")                                                                               \
  X(to, 0, "to", "X", MULTIPLE, "3x", 0, 0, "", ZB_ON_FRONTIER,                                  \
    "last limit")                                                                                \
  X(step, 0, "step", "X", MULTIPLE, "0.125x", 0, 0, "", ZB_ON_FRONTIER,                          \
    "from one limit to the next")                                                                \
  X(time_limit_s, 0, "time-limit", "S", SECONDS, "30", 0, 10000000, "s",                           \
    ZB_ON_ENGINES | ZB_ON_EXPORT,                                                                \
    "wall-clock time from the start, 0: none")                                                   \
  X(threads, 0, "threads", "N", COUNT, "0", 0, 1024, "", ZB_ON_ENGINES,                          \
    "0: one a processor; results do not depend on it")                                           \
  X(seed, 0, "seed", "N", COUNT, "1", 0, 1000000000, "", ZB_ON_ENGINES,                          \
    "of methods that draw random numbers")                                                       \
  X(require_optimal, 0, "require-optimal", NULL, FLAG, NULL, 0, 0, "", ZB_ON_SOLVE,              \
    "exit code 10 unless proven optimal")                                                        \
  X(channels, 0, "channels", "C", CHOICE, "rank", 0, 0, "rank|pair|edge",                       \
    ZB_ON_COMPILE | ZB_ON_IMPORT,                                                                \
    "messages of one device, pair or direction wait for each other")                             \
  X(optimizer, 0, "optimizer", "O", CHOICE, "barrier", 0, 0, "none|barrier|post-validation",     \
    ZB_ON_COMPILE, "what the program ends with")                                                 \
  X(width, 0, "width", "N", COUNT, NULL, 40, 1000, "columns", ZB_ON_SHOW,                        \
    "of the output, instead of the terminal's")                                                  \
  X(color, 0, "color", "WHEN", CHOICE, "auto", 0, 0, "auto|always|never", ZB_ON_SHOW,            \
    "auto: on a terminal, unless NO_COLOR is set")                                               \
  X(json, 0, "json", NULL, FLAG, NULL, 0, 0, "", ZB_ON_ALL,                                      \
    "one JSON object on stdout, nothing else there")                                             \
  X(quiet, 'q', "quiet", NULL, FLAG, NULL, 0, 0, "", ZB_ON_ALL,                                  \
    "only the result and errors")                                                                \
  X(verbose, 'v', "verbose", NULL, FLAG, NULL, 0, 0, "", ZB_ON_ALL,                              \
    "say more on stderr")                                                                        \
  X(help, 'h', "help", NULL, FLAG, NULL, 0, 0, "", ZB_ON_ALL,                                    \
    "print this")
// clang-format on

enum zb_color { ZB_COLOR_AUTO, ZB_COLOR_ALWAYS, ZB_COLOR_NEVER }; // the choices of --color, in order

// The C type of each option type.
typedef bool zb_option_FLAG;
typedef const char *zb_option_TEXT; // NULL: not given
typedef int64_t zb_option_COUNT;    // 0: not given and no default
typedef int zb_option_CHOICE;       // place among the choices; -1: not given and no default
typedef double zb_option_SECONDS;
typedef int64_t zb_option_MULTIPLE; // in millionths
typedef struct zb_limit zb_option_LIMIT;

struct zb_options {
  enum zb_command command;
  const char *operand;               // the file that the command is about, the first of several
  const char *operands[ZB_OPERANDS]; // all of them
  int operand_count;
#define X(field, letter, name, argument, type, value, least, most, unit, commands, help)                     \
  zb_option_##type field;
  ZB_OPTION_TABLE(X)
#undef X
};

// Reads the arguments after the command's name. BAD_INPUT with one line for anything the tables do not allow;
// with
// --help anywhere, OK and `help` set whatever else is missing. Texts are borrowed from `arguments`.
enum zb_status zb_options_parse(enum zb_command command, int count, char **arguments,
                                struct zb_options *options, struct zb_error *error);

// The command called `name`; BAD_INPUT with the nearest one suggested.
enum zb_status zb_command_find(const char *name, enum zb_command *command, struct zb_error *error);

// Which of `names` the argument of `option` (--to, --from) is; NULL: it was not given. BAD_INPUT with the
// nearest one suggested.
enum { ZB_FORMATS_MOST = 64 };
enum zb_status zb_format_find(enum zb_command command, const char *option, const char *name,
                              const char *const *names, int count, int *found, struct zb_error *error);

// All commands and methods; the options of one command.
void zb_help_print(struct zb_text *out);
void zb_help_print_command(enum zb_command command, struct zb_text *out);

#endif
