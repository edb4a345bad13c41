// replay_options.c - zbreplay's tables, the one type of argument that only it has, and its help.
#include "runtime/replay_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static enum zb_status read_number(const struct zb_option *option, const char *text, void *field,
                                  struct zb_error *error) {
  (void)option;
  char *end;
  double number = strtod(text, &end);
  if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end)
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a number", text);
  if (!(number >= 0 && number <= 1e9))
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (0 to 1e9)", text);
  *(double *)field = number;
  return ZB_OK;
}

static void clear_number(void *field) { *(double *)field = -1; }

static const struct zb_option_type zb_option_type_NUMBER = {.read = read_number, .clear = clear_number};

static const struct zb_option options_table[] = {
#define X(field, letter, name, argument, type, value, least, most, choices, commands, help)                  \
  {offsetof(struct zb_replay_options, field),                                                                \
   letter,                                                                                                   \
   name,                                                                                                     \
   argument,                                                                                                 \
   &zb_option_type_##type,                                                                                   \
   value,                                                                                                    \
   least,                                                                                                    \
   most,                                                                                                     \
   choices,                                                                                                  \
   commands,                                                                                                 \
   help},
    ZB_REPLAY_OPTION_TABLE(X)
#undef X
};

static const struct zb_command_words commands[ZB_REPLAY_COMMANDS] = {
#define X(NAME, name, operand, help) {#name, operand, help},
    ZB_REPLAY_COMMAND_TABLE(X)
#undef X
};

static const struct zb_command_line line = {
    .program = "zbreplay",
    .options = options_table,
    .option_count = sizeof options_table / sizeof *options_table,
    .commands = commands,
    .command_count = ZB_REPLAY_COMMANDS,
    .column = 32,
};

enum zb_status zb_replay_options_parse(int count, char **arguments, struct zb_replay_options *options,
                                       struct zb_error *error) {
  if (count == 0) return zb_fail(error, ZB_BAD_INPUT, "which command? (zbreplay help lists them)");
  struct zb_replay_options read = {0};
  struct zb_operands operands = {0};
  int command;
  enum zb_status status = zb_command_line_find(&line, arguments[0], &command, error);
  if (status == ZB_OK)
    status =
        zb_command_line_parse(&line, command, count - 1, arguments + 1, &read, &operands, &read.help, error);
  if (status != ZB_OK) return status;
  read.command = (enum zb_replay_command)command;
  read.operand = operands.operand;
  *options = read;
  return ZB_OK;
}

void zb_replay_help(struct zb_text *out) {
  zb_text_put(out, "zbreplay: runs schedules for real, on a small GPT, and measures them\n\n");
  zb_command_line_print_commands(&line, out);
  zb_text_put(out,
              "\nExit codes: 0 done, 1 failure or a wait that took too long, 2 bad usage or input, 3 bug,\n"
              "4 a program that is wrong, or --verify found a difference.\n");
}

enum zb_status zb_replay_help_command(const char *name, struct zb_text *out, struct zb_error *error) {
  int command;
  enum zb_status status = zb_command_line_find(&line, name, &command, error);
  if (status == ZB_OK) zb_command_line_print_options(&line, command, out);
  return status;
}
