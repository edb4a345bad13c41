// options.c - zbsolve's tables, the types of argument that only it has, and its help.
#include "solver/cli/options.h"

#include <stddef.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/io/export.h"
#include "solver/io/import.h"
#include "solver/io/measured_formats.h"
#include "solver/model/number.h"

static enum zb_status read_seconds(const struct zb_option *option, const char *text, void *field,
                                   struct zb_error *error) {
  int64_t ns;
  enum zb_decimal why = zb_decimal_parse(text, 1000000000, &ns);
  if (why == ZB_DECIMAL_MALFORMED)
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a number of seconds", text);
  if (why == ZB_DECIMAL_FRACTION) return zb_fail(error, ZB_BAD_INPUT, "%s is finer than 1 ns", text);
  if (why != ZB_DECIMAL_OK || ns < option->least * 1000000000 || ns / 1000000000 > option->most)
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (%lld to %lld %s)", text,
                   (long long)option->least, (long long)option->most, option->unit);
  *(double *)field = (double)ns * 1e-9;
  return ZB_OK;
}

static enum zb_status read_multiple(const struct zb_option *option, const char *text, void *field,
                                    struct zb_error *error) {
  (void)option;
  return zb_multiple_read(text, field, error);
}

static enum zb_status read_limit(const struct zb_option *option, const char *text, void *field,
                                 struct zb_error *error) {
  (void)option;
  return zb_limit_read(text, field, error);
}

static const struct zb_option_type zb_option_type_SECONDS = {.read = read_seconds, .names_unit = true};
static const struct zb_option_type zb_option_type_MULTIPLE = {.read = read_multiple};
static const struct zb_option_type zb_option_type_LIMIT = {.read = read_limit};

static const struct zb_option options_table[] = {
#define X(field, letter, name, argument, type, value, least, most, unit, commands, help)                     \
  {offsetof(struct zb_options, field),                                                                       \
   letter,                                                                                                   \
   name,                                                                                                     \
   argument,                                                                                                 \
   &zb_option_type_##type,                                                                                   \
   value,                                                                                                    \
   least,                                                                                                    \
   most,                                                                                                     \
   unit,                                                                                                     \
   commands,                                                                                                 \
   help},
    ZB_OPTION_TABLE(X)
#undef X
};

static const struct zb_command_words commands[ZB_COMMAND_COUNT] = {
#define X(NAME, name, operand, help) {#name, operand, help},
    ZB_COMMAND_TABLE(X)
#undef X
};

enum { HELP_COLUMN = 26 };

static const struct zb_command_line line = {
    .program = "zbsolve",
    .options = options_table,
    .option_count = sizeof options_table / sizeof *options_table,
    .commands = commands,
    .command_count = ZB_COMMAND_COUNT,
    .column = HELP_COLUMN,
};

enum zb_status zb_command_find(const char *name, enum zb_command *command, struct zb_error *error) {
  int found;
  enum zb_status status = zb_command_line_find(&line, name, &found, error);
  if (status == ZB_OK) *command = (enum zb_command)found;
  return status;
}

enum zb_status zb_format_find(enum zb_command command, const char *option, const char *name,
                              const char *const *names, int count, int *found, struct zb_error *error) {
  const char *self = commands[command].name;
  if (!name)
    return zb_fail(error, ZB_BAD_INPUT, "%s needs %s FORMAT (zbsolve help %s lists them)", self, option,
                   self);
  for (int k = 0; k < count; k++) {
    if (strcmp(name, names[k]) != 0) continue;
    *found = k;
    return ZB_OK;
  }
  const char *nearest = zb_nearest_word(name, names, count);
  if (nearest)
    return zb_fail(error, ZB_BAD_INPUT, "%s: unknown format %s (did you mean %s?)", option, name, nearest);
  return zb_fail(error, ZB_BAD_INPUT, "%s: unknown format %s (zbsolve help %s lists them)", option, name,
                 self);
}

enum zb_status zb_options_parse(enum zb_command command, int count, char **arguments,
                                struct zb_options *options, struct zb_error *error) {
  struct zb_options read = {.command = command};
  struct zb_operands operands = {0};
  enum zb_status status =
      zb_command_line_parse(&line, (int)command, count, arguments, &read, &operands, &read.help, error);
  if (status != ZB_OK) return status;
  read.operand = operands.operand;
  read.operand_count = operands.count;
  memcpy(read.operands, operands.each, sizeof read.operands);
  *options = read;
  return ZB_OK;
}

void zb_help_print(struct zb_text *out) {
  zb_text_print(out, "zbsolve: schedules for pipeline-parallel training, checked, with a proven bound\n\n");
  zb_command_line_print_commands(&line, out);
  zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, "zbsolve --version", "version and the parts of this build");
  zb_text_print(out, "\nMethods:\n");
  for (int k = 0; k < zb_engine_count(); k++)
    zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, zb_engine_at(k)->name, zb_engine_at(k)->help);
  zb_text_put(out,
              "\nA limit like 1.5x is that many times devices * the activation of one microbatch, static\n"
              "memory excluded. Results go to stdout, everything else to stderr.\n"
              "\nExit codes: 0 done, 1 failure, 2 bad usage or input, 3 bug, 4 the schedule is wrong,\n"
              "10 not proven, 20 infeasible, 30 no schedule in the time or memory given.\n");
}

void zb_help_print_command(enum zb_command command, struct zb_text *out) {
  zb_command_line_print_options(&line, (int)command, out);
  if (command == ZB_COMMAND_EXPORT) {
    zb_text_put(out, "\nFormats:\n");
    for (int k = 0; k < zb_export_format_count(); k++)
      zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, zb_export_format_at(k)->name,
                    zb_export_format_at(k)->help);
  }
  if (command == ZB_COMMAND_IMPORT) {
    zb_text_put(out, "\nFormats:\n");
    for (int k = 0; k < zb_import_format_count(); k++)
      zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, zb_import_format_at(k)->name,
                    zb_import_format_at(k)->help);
  }
  if (command == ZB_COMMAND_PROFILE) {
    zb_text_put(out, "\nFormats, known by their text where --from does not say:\n");
    for (int k = 0; k < zb_measured_format_count(); k++)
      zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, zb_measured_format_at(k)->name,
                    zb_measured_format_at(k)->help);
  }
}
