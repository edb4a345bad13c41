// options.c - the parser and the help, both driven by the table in options.h.
//
// A value is read by its type's reader and nothing else looks at argument text; defaults go through the
// same readers, so a default that the user could not have typed does not exist. Every complaint is one line
// that names the option, what was found and what was expected.
#include "solver/cli/options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/io/export.h"
#include "solver/io/import.h"
#include "solver/io/measured_formats.h"
#include "solver/model/number.h"

enum type { FLAG, TEXT, COUNT, CHOICE, SECONDS, MULTIPLE, LIMIT };

struct option {
  size_t offset; // of its field in struct zb_options
  char letter;
  const char *name, *argument;
  enum type type;
  const char *value; // default
  int64_t least, most;
  const char *unit;
  unsigned commands;
  const char *help;
};

static const struct option table[] = {
#define X(field, letter, name, argument, type, value, least, most, unit, commands, help)                     \
  {offsetof(struct zb_options, field),                                                                       \
   letter,                                                                                                   \
   name,                                                                                                     \
   argument,                                                                                                 \
   type,                                                                                                     \
   value,                                                                                                    \
   least,                                                                                                    \
   most,                                                                                                     \
   unit,                                                                                                     \
   commands,                                                                                                 \
   help},
    ZB_OPTION_TABLE(X)
#undef X
};
enum { OPTIONS = sizeof table / sizeof *table };

static const struct {
  const char *name, *operand, *help;
} commands[ZB_COMMAND_COUNT] = {
#define X(NAME, name, operand, help) {#name, operand, help},
    ZB_COMMAND_TABLE(X)
#undef X
};

static bool takes(enum zb_command command, const struct option *option) {
  return (option->commands >> command & 1) != 0;
}

// Suggestions.

// Edit distance with swaps of neighbours, for words of up to 31 letters; longer ones are far from everything.
static int distance(const char *a, const char *b) {
  enum { LONGEST = 32 };
  size_t n = strlen(a), m = strlen(b);
  if (n >= LONGEST || m >= LONGEST) return LONGEST;
  int rows[LONGEST][LONGEST];
  for (size_t i = 0; i <= n; i++) {
    for (size_t j = 0; j <= m; j++) {
      if (i == 0 || j == 0) {
        rows[i][j] = (int)(i + j);
        continue;
      }
      int best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (rows[i - 1][j] + 1 < best) best = rows[i - 1][j] + 1;
      if (rows[i][j - 1] + 1 < best) best = rows[i][j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && rows[i - 2][j - 2] + 1 < best) best = rows[i - 2][j - 2] + 1;
      rows[i][j] = best;
    }
  }
  return rows[n][m];
}

// A word that the text begins beats one that merely looks like it.
const char *zb_nearest_word(const char *text, const char *const *words, int count) {
  const char *nearest = NULL;
  int least = 0;
  size_t length = strlen(text);
  for (int k = 0; k < count; k++) {
    bool begins = length >= 2 && strncmp(words[k], text, length) == 0;
    int far = begins ? 0 : distance(text, words[k]);
    bool near = far <= 2 && far < (int)strlen(words[k]) && far < (int)length;
    if ((begins || near) && (!nearest || far < least)) {
      nearest = words[k];
      least = far;
    }
  }
  return nearest;
}

enum zb_status zb_command_find(const char *name, enum zb_command *command, struct zb_error *error) {
  const char *names[ZB_COMMAND_COUNT + 1];
  for (int k = 0; k < ZB_COMMAND_COUNT; k++) {
    names[k] = commands[k].name;
    if (strcmp(name, names[k]) == 0) {
      *command = (enum zb_command)k;
      return ZB_OK;
    }
  }
  names[ZB_COMMAND_COUNT] = "help";
  const char *nearest = zb_nearest_word(name, names, ZB_COMMAND_COUNT + 1);
  if (nearest) return zb_fail(error, ZB_BAD_INPUT, "unknown command %s (did you mean %s?)", name, nearest);
  return zb_fail(error, ZB_BAD_INPUT, "unknown command %s (zbsolve help lists them)", name);
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

// Values.

static enum zb_status read_count(const struct option *option, const char *text, int64_t *value,
                                 struct zb_error *error) {
  int64_t number;
  bool whole = strspn(text, "-0123456789") == strlen(text);
  enum zb_decimal why = whole ? zb_decimal_parse(text, 1, &number) : ZB_DECIMAL_MALFORMED;
  if (why == ZB_DECIMAL_MALFORMED) return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a whole number", text);
  if (why != ZB_DECIMAL_OK || number < option->least || number > option->most)
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (%lld to %lld%s%s)", text,
                   (long long)option->least, (long long)option->most, *option->unit ? " " : "", option->unit);
  *value = number;
  return ZB_OK;
}

static enum zb_status read_seconds(const struct option *option, const char *text, double *value,
                                   struct zb_error *error) {
  int64_t ns;
  enum zb_decimal why = zb_decimal_parse(text, 1000000000, &ns);
  if (why == ZB_DECIMAL_MALFORMED)
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a number of seconds", text);
  if (why == ZB_DECIMAL_FRACTION) return zb_fail(error, ZB_BAD_INPUT, "%s is finer than 1 ns", text);
  if (why != ZB_DECIMAL_OK || ns < option->least * 1000000000 || ns / 1000000000 > option->most)
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (%lld to %lld %s)", text,
                   (long long)option->least, (long long)option->most, option->unit);
  *value = (double)ns * 1e-9;
  return ZB_OK;
}

static enum zb_status read_choice(const struct option *option, const char *text, int *value,
                                  struct zb_error *error) {
  const char *choice = option->unit;
  for (int k = 0; *choice; k++) {
    size_t length = strcspn(choice, "|");
    if (strlen(text) == length && strncmp(text, choice, length) == 0) {
      *value = k;
      return ZB_OK;
    }
    choice += length + (choice[length] == '|');
  }
  return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not one of %s", text, option->unit);
}

static enum zb_status read_value(const struct option *option, const char *text, struct zb_options *options,
                                 struct zb_error *error) {
  void *field = (char *)options + option->offset;
  switch (option->type) {
  case FLAG:
    *(zb_option_FLAG *)field = true;
    return ZB_OK;
  case TEXT:
    if (!*text) return zb_fail(error, ZB_BAD_INPUT, "its %s is empty", option->argument);
    *(zb_option_TEXT *)field = text;
    return ZB_OK;
  case COUNT:
    return read_count(option, text, field, error);
  case CHOICE:
    return read_choice(option, text, field, error);
  case SECONDS:
    return read_seconds(option, text, field, error);
  case MULTIPLE:
    return zb_multiple_read(text, field, error);
  case LIMIT:
    return zb_limit_read(text, field, error);
  }
  return ZB_OK;
}

// The parser.

static const struct option *find(enum zb_command command, const char *name, size_t length) {
  for (const struct option *o = table; o < table + OPTIONS; o++)
    if (takes(command, o) && strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
  return NULL;
}

static const struct option *find_letter(enum zb_command command, char letter) {
  for (const struct option *o = table; o < table + OPTIONS; o++)
    if (takes(command, o) && o->letter == letter) return o;
  return NULL;
}

static enum zb_status fail_unknown(enum zb_command command, const char *text, struct zb_error *error) {
  const char *names[OPTIONS];
  int count = 0;
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
  for (const struct option *o = table; o < table + OPTIONS; o++) {
    if (takes(command, o))
      names[count++] = o->name;
    else if (strcmp(o->name, name) == 0)
      return zb_fail(error, ZB_BAD_INPUT, "%s does not take --%s", commands[command].name, name);
  }
  const char *nearest = zb_nearest_word(name, names, count);
  if (nearest) return zb_fail(error, ZB_BAD_INPUT, "unknown option --%s (did you mean --%s?)", name, nearest);
  return zb_fail(error, ZB_BAD_INPUT, "unknown option --%s (zbsolve help %s lists them)", name,
                 commands[command].name);
}

// What the command line says about one option: where its argument starts, NULL if it must be the next word.
struct mention {
  const struct option *option;
  const char *value;
};

static enum zb_status read_mention(enum zb_command command, const char *text, struct mention *mention,
                                   struct zb_error *error) {
  if (text[1] != '-') {
    mention->option = find_letter(command, text[1]);
    if (!mention->option)
      return zb_fail(error, ZB_BAD_INPUT, "unknown option -%c (zbsolve help %s lists them)", text[1],
                     commands[command].name);
    mention->value = text[2] ? text + 2 : NULL;
    if (mention->value && !mention->option->argument)
      return zb_fail(error, ZB_BAD_INPUT, "unknown option %s (write -%c by itself)", text, text[1]);
    return ZB_OK;
  }
  size_t length = strcspn(text + 2, "=");
  mention->option = find(command, text + 2, length);
  if (!mention->option) return fail_unknown(command, text, error);
  mention->value = text[2 + length] == '=' ? text + 3 + length : NULL;
  if (mention->value && !mention->option->argument)
    return zb_fail(error, ZB_BAD_INPUT, "--%s takes no argument", mention->option->name);
  return ZB_OK;
}

static enum zb_status add_operand(const char *text, struct zb_options *options, struct zb_error *error) {
  const char *operand = commands[options->command].operand;
  const int most = strstr(operand, "..") ? ZB_OPERANDS : 1;
  if (options->operand_count == most && most == 1)
    return zb_fail(error, ZB_BAD_INPUT, "one %s at a time: \"%s\" is a second one", operand, text);
  if (options->operand_count == most) return zb_fail(error, ZB_BAD_INPUT, "at most %d of %s", most, operand);
  if (options->operand_count == 0) options->operand = text;
  options->operands[options->operand_count++] = text;
  return ZB_OK;
}

static enum zb_status read_arguments(int count, char **arguments, struct zb_options *options, bool *seen,
                                     struct zb_error *error) {
  bool options_end = false;
  for (int k = 0; k < count; k++) {
    const char *text = arguments[k];
    if (options_end || text[0] != '-' || !text[1]) {
      enum zb_status status = add_operand(text, options, error);
      if (status != ZB_OK) return status;
      continue;
    }
    if (strcmp(text, "--") == 0) {
      options_end = true;
      continue;
    }
    struct mention mention = {0};
    enum zb_status status = read_mention(options->command, text, &mention, error);
    if (status != ZB_OK) return status;
    const struct option *option = mention.option;
    if (seen[option - table]) return zb_fail(error, ZB_BAD_INPUT, "--%s is given twice", option->name);
    seen[option - table] = true;
    if (option->argument && !mention.value) {
      if (k + 1 == count)
        return zb_fail(error, ZB_BAD_INPUT, "--%s needs its argument %s", option->name, option->argument);
      mention.value = arguments[++k];
    }
    struct zb_error why = {0};
    if (read_value(option, mention.value, options, &why) != ZB_OK)
      return zb_fail(error, ZB_BAD_INPUT, "--%s: %s", option->name, why.text);
  }
  return ZB_OK;
}

static bool asks_for_help(int count, char **arguments) {
  for (int k = 0; k < count && strcmp(arguments[k], "--") != 0; k++)
    if (strcmp(arguments[k], "--help") == 0 || strcmp(arguments[k], "-h") == 0) return true;
  return false;
}

enum zb_status zb_options_parse(enum zb_command command, int count, char **arguments,
                                struct zb_options *options, struct zb_error *error) {
  bool seen[OPTIONS] = {false};
  struct zb_options read = {.command = command};
  for (const struct option *o = table; o < table + OPTIONS; o++) {
    if (!o->value && o->type == CHOICE) *(zb_option_CHOICE *)(void *)((char *)&read + o->offset) = -1;
    if (!o->value) continue;
    enum zb_status status = read_value(o, o->value, &read, error);
    assert(status == ZB_OK);
    (void)status;
  }
  read.help = asks_for_help(count, arguments);
  if (!read.help) {
    enum zb_status status = read_arguments(count, arguments, &read, seen, error);
    if (status != ZB_OK) return status;
    if (!read.operand)
      return zb_fail(error, ZB_BAD_INPUT, "%s needs a %s (zbsolve help %s)", commands[command].name,
                     commands[command].operand, commands[command].name);
  }
  *options = read;
  return ZB_OK;
}

// Help.

enum { HELP_COLUMN = 26 };

void zb_help_print(struct zb_text *out) {
  zb_text_print(out, "zbsolve: schedules for pipeline-parallel training, checked, with a proven bound\n\n");
  for (int k = 0; k < ZB_COMMAND_COUNT; k++) {
    char usage[64];
    snprintf(usage, sizeof usage, "zbsolve %s %s", commands[k].name, commands[k].operand);
    zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, usage, commands[k].help);
  }
  zb_text_print(out, "  %-*s%s\n", HELP_COLUMN, "zbsolve help [COMMAND]",
                "this, or the options of a command");
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

// Its help, then in brackets what the table knows: choices or range, and the default.
static void print_option(const struct option *option, struct zb_text *out) {
  char usage[64], remark[128] = "";
  const char *gap = option->argument ? " " : "", *argument = option->argument ? option->argument : "";
  if (option->letter)
    snprintf(usage, sizeof usage, "-%c, --%s%s%s", option->letter, option->name, gap, argument);
  else
    snprintf(usage, sizeof usage, "    --%s%s%s", option->name, gap, argument);
  size_t length = 0;
  if (option->type == CHOICE) length += (size_t)snprintf(remark, sizeof remark, "%s", option->unit);
  if (option->value)
    snprintf(remark + length, sizeof remark - length, "%sdefault %s%s%s", length ? "; " : "", option->value,
             option->type == SECONDS ? " " : "", option->type == SECONDS ? option->unit : "");
  zb_text_print(out, "  %-*s%s", HELP_COLUMN, usage, option->help);
  if (*remark && strlen(option->help) + strlen(remark) + HELP_COLUMN + 5 > 90)
    zb_text_print(out, "\n  %-*s", HELP_COLUMN, "");
  else if (*remark)
    zb_text_print(out, " ");
  if (*remark) zb_text_print(out, "(%s)", remark);
  zb_text_print(out, "\n");
}

void zb_help_print_command(enum zb_command command, struct zb_text *out) {
  zb_text_print(out, "zbsolve %s %s [options]: %s\n\n", commands[command].name, commands[command].operand,
                commands[command].help);
  for (const struct option *o = table; o < table + OPTIONS; o++)
    if (takes(command, o)) print_option(o, out);
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
