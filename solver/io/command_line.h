// command_line.h - words of a command line against tables: one of commands, one of options.
//
// A program has its own tables and its own struct that the values go into; parser, suggestions and help are
// the same for all. A value is read by its type's reader and nothing else looks at argument text; defaults go
// through the same readers, so a default that the user could not have typed does not exist. Every complaint
// is one line that names the option, what was found and what was expected.
#ifndef ZB_COMMAND_LINE_H
#define ZB_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/io/text.h"
#include "solver/model/status.h"

struct zb_option;

// How an argument becomes a value.
struct zb_option_type {
  // BAD_INPUT: what is wrong with the text, without the option's name. `field` is the value's place. NULL: a
  // flag, a bool that its mention sets.
  enum zb_status (*read)(const struct zb_option *option, const char *text, void *field,
                         struct zb_error *error);
  // What `field` is where nothing is given and there is no default; NULL: zero bytes.
  void (*clear)(void *field);
  // What --help adds in brackets before the default: nothing, the choices, and behind the default, the unit.
  bool names_choices, names_unit;
};

extern const struct zb_option_type zb_option_type_FLAG; // bool
extern const struct zb_option_type zb_option_type_TEXT; // const char *, not empty; NULL: not given. Borrowed
// int64_t, from `least` to `most`; 0: not given and no default
extern const struct zb_option_type zb_option_type_COUNT;
// int, place among the choices, which are `unit`, separated by '|'; -1: not given and no default
extern const struct zb_option_type zb_option_type_CHOICE;

struct zb_option {
  size_t offset; // of its field in the program's struct
  char letter;   // 0: none
  const char *name, *argument;
  const struct zb_option_type *type;
  const char *value; // default, as the user would write it; NULL: none
  int64_t least, most;
  const char *unit;  // or choices
  unsigned commands; // bit k: command k takes it
  const char *help;
};

struct zb_command_words {
  const char *name, *operand, *help; // operand: what the command is about; several where it ends with ".."
};

enum { ZB_OPERANDS = 256, ZB_OPTIONS_MOST = 64 };

// What a command is about.
struct zb_operands {
  const char *operand;           // the first
  const char *each[ZB_OPERANDS]; // all of them
  int count;
};

struct zb_command_line {
  const char *program;
  const struct zb_option *options;
  int option_count; // at most ZB_OPTIONS_MOST
  const struct zb_command_words *commands;
  int command_count;
  int column; // of the help texts
};

// Which command `name` is. BAD_INPUT with the nearest one suggested.
enum zb_status zb_command_line_find(const struct zb_command_line *line, const char *name, int *command,
                                    struct zb_error *error);

// Reads the arguments after the command's name into the fields of `values` and *operands, which start as zero
// bytes. BAD_INPUT with one line for anything that the tables do not allow; with --help or -h anywhere, OK
// and *help whatever else is wrong. Texts are borrowed from `arguments`.
enum zb_status zb_command_line_parse(const struct zb_command_line *line, int command, int count,
                                     char **arguments, void *values, struct zb_operands *operands, bool *help,
                                     struct zb_error *error);

// A line for each command; a line or two for each option of one.
void zb_command_line_print_commands(const struct zb_command_line *line, struct zb_text *out);
void zb_command_line_print_options(const struct zb_command_line *line, int command, struct zb_text *out);

// The nearest of `words` to a mistyped `text`, or NULL when none is near.
const char *zb_nearest_word(const char *text, const char *const *words, int count);

#endif
