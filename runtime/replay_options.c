// replay_options.c - the parser and the help, driven by the tables.
#include "runtime/replay_options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

enum type { FLAG, TEXT, COUNT, CHOICE, NUMBER };

struct option {
  size_t offset; // of its field in struct zb_replay_options
  char letter;
  const char *name, *argument;
  enum type type;
  const char *value; // default
  int64_t least, most;
  const char *choices;
  unsigned commands;
  const char *help;
};

static const struct option table[] = {
#define X(field, letter, name, argument, type, value, least, most, choices, commands, help)                  \
  {offsetof(struct zb_replay_options, field),                                                                \
   letter,                                                                                                   \
   name,                                                                                                     \
   argument,                                                                                                 \
   type,                                                                                                     \
   value,                                                                                                    \
   least,                                                                                                    \
   most,                                                                                                     \
   choices,                                                                                                  \
   commands,                                                                                                 \
   help},
    ZB_REPLAY_OPTION_TABLE(X)
#undef X
};
enum { OPTIONS = sizeof table / sizeof *table };

static const struct {
  const char *name, *operand, *help;
} commands[ZB_REPLAY_COMMANDS] = {
#define X(NAME, name, operand, help) {#name, operand, help},
    ZB_REPLAY_COMMAND_TABLE(X)
#undef X
};

enum zb_replay_command zb_replay_command_find(const char *name) {
  int k = 0;
  while (k < ZB_REPLAY_COMMANDS && strcmp(commands[k].name, name) != 0) k++;
  return (enum zb_replay_command)k;
}

static bool takes(enum zb_replay_command command, const struct option *option) {
  return (option->commands >> command & 1) != 0;
}

static enum zb_status read_count(const struct option *option, const char *text, int64_t *value,
                                 struct zb_error *error) {
  int64_t number;
  if (!*text || strspn(text, "0123456789") != strlen(text))
    return zb_fail(error, ZB_BAD_INPUT, "--%s: \"%s\" is not a whole number", option->name, text);
  if (zb_decimal_parse(text, 1, &number) != ZB_DECIMAL_OK || number < option->least || number > option->most)
    return zb_fail(error, ZB_BAD_INPUT, "--%s: %s is out of range (%lld to %lld)", option->name, text,
                   (long long)option->least, (long long)option->most);
  *value = number;
  return ZB_OK;
}

static enum zb_status read_choice(const struct option *option, const char *text, int *value,
                                  struct zb_error *error) {
  const char *choice = option->choices;
  for (int k = 0; *choice; k++) {
    size_t length = strcspn(choice, "|");
    if (strlen(text) == length && strncmp(text, choice, length) == 0) {
      *value = k;
      return ZB_OK;
    }
    choice += length + (choice[length] == '|');
  }
  return zb_fail(error, ZB_BAD_INPUT, "--%s: \"%s\" is not one of %s", option->name, text, option->choices);
}

static enum zb_status read_number(const struct option *option, const char *text, double *value,
                                  struct zb_error *error) {
  char *end;
  double number = strtod(text, &end);
  if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || *end)
    return zb_fail(error, ZB_BAD_INPUT, "--%s: \"%s\" is not a number", option->name, text);
  if (!(number >= 0 && number <= 1e9))
    return zb_fail(error, ZB_BAD_INPUT, "--%s: %s is out of range (0 to 1e9)", option->name, text);
  *value = number;
  return ZB_OK;
}

static enum zb_status read_value(const struct option *option, const char *text,
                                 struct zb_replay_options *options, struct zb_error *error) {
  void *field = (char *)options + option->offset;
  switch (option->type) {
  case FLAG:
    *(zb_replay_FLAG *)field = true;
    return ZB_OK;
  case TEXT:
    if (!*text) return zb_fail(error, ZB_BAD_INPUT, "--%s: its %s is empty", option->name, option->argument);
    *(zb_replay_TEXT *)field = text;
    return ZB_OK;
  case COUNT:
    return read_count(option, text, field, error);
  case CHOICE:
    return read_choice(option, text, field, error);
  case NUMBER:
    return read_number(option, text, field, error);
  }
  return ZB_OK;
}

static void set_defaults(struct zb_replay_options *options) {
  for (const struct option *o = table; o < table + OPTIONS; o++) {
    void *field = (char *)options + o->offset;
    if (o->value) {
      enum zb_status status = read_value(o, o->value, options, NULL);
      assert(status == ZB_OK);
      (void)status;
    } else if (o->type == CHOICE) {
      *(zb_replay_CHOICE *)field = -1;
    } else if (o->type == NUMBER) {
      *(zb_replay_NUMBER *)field = -1;
    }
  }
}

// The option that a word names, by letter or by name, and its argument where the word has it too.
static const struct option *find(enum zb_replay_command command, const char *word, const char **value) {
  size_t length = word[1] == '-' ? strcspn(word + 2, "=") : 0;
  *value = NULL;
  for (const struct option *o = table; o < table + OPTIONS; o++) {
    if (!takes(command, o)) continue;
    if (length == 0 && word[1] != '-' && o->letter == word[1] && !word[2]) return o;
    if (length == 0 || strlen(o->name) != length || strncmp(o->name, word + 2, length) != 0) continue;
    if (word[2 + length] == '=') *value = word + 3 + length;
    return o;
  }
  return NULL;
}

static enum zb_status read_words(int count, char **words, struct zb_replay_options *options,
                                 struct zb_error *error) {
  bool seen[OPTIONS] = {false};
  const char *name = commands[options->command].name;
  for (int k = 0; k < count; k++) {
    if (words[k][0] != '-' || !words[k][1]) {
      if (options->operand)
        return zb_fail(error, ZB_BAD_INPUT, "one %s at a time: \"%s\" is a second one",
                       commands[options->command].operand, words[k]);
      options->operand = words[k];
      continue;
    }
    const char *value;
    const struct option *option = find(options->command, words[k], &value);
    if (!option)
      return zb_fail(error, ZB_BAD_INPUT, "unknown option %s (zbreplay help %s lists them)", words[k], name);
    if (seen[option - table]) return zb_fail(error, ZB_BAD_INPUT, "--%s is given twice", option->name);
    seen[option - table] = true;
    if (value && !option->argument)
      return zb_fail(error, ZB_BAD_INPUT, "--%s takes no argument", option->name);
    if (option->argument && !value) {
      if (k + 1 == count)
        return zb_fail(error, ZB_BAD_INPUT, "--%s needs its argument %s", option->name, option->argument);
      value = words[++k];
    }
    enum zb_status status = read_value(option, value, options, error);
    if (status != ZB_OK) return status;
  }
  return ZB_OK;
}

enum zb_status zb_replay_options_parse(int count, char **arguments, struct zb_replay_options *options,
                                       struct zb_error *error) {
  if (count == 0) return zb_fail(error, ZB_BAD_INPUT, "which command? (zbreplay help lists them)");
  struct zb_replay_options read = {.command = zb_replay_command_find(arguments[0])};
  if (read.command == ZB_REPLAY_COMMANDS)
    return zb_fail(error, ZB_BAD_INPUT, "unknown command %s (zbreplay help lists them)", arguments[0]);
  set_defaults(&read);
  for (int k = 1; k < count; k++)
    if (strcmp(arguments[k], "--help") == 0 || strcmp(arguments[k], "-h") == 0) read.help = true;
  if (!read.help) {
    enum zb_status status = read_words(count - 1, arguments + 1, &read, error);
    if (status != ZB_OK) return status;
    const char *name = commands[read.command].name;
    if (!read.operand)
      return zb_fail(error, ZB_BAD_INPUT, "%s needs a %s (zbreplay help %s)", name,
                     commands[read.command].operand, name);
  }
  *options = read;
  return ZB_OK;
}

enum { HELP_COLUMN = 30 };

void zb_replay_help(struct zb_text *out) {
  zb_text_put(out, "zbreplay: runs schedules for real, on a small GPT, and measures them\n\n");
  for (int k = 0; k < ZB_REPLAY_COMMANDS; k++) {
    char usage[64];
    snprintf(usage, sizeof usage, "zbreplay %s %s", commands[k].name, commands[k].operand);
    zb_text_print(out, "  %-*s%s\n", HELP_COLUMN + 4, usage, commands[k].help);
  }
  zb_text_print(out, "  %-*s%s\n", HELP_COLUMN + 4, "zbreplay help [COMMAND]",
                "this, or the options of a command");
  zb_text_put(out,
              "\nExit codes: 0 done, 1 failure or a wait that took too long, 2 bad usage or input, 3 bug,\n"
              "4 a program that is wrong, or --verify found a difference.\n");
}

void zb_replay_help_command(enum zb_replay_command command, struct zb_text *out) {
  zb_text_print(out, "zbreplay %s %s [options]: %s\n\n", commands[command].name, commands[command].operand,
                commands[command].help);
  for (const struct option *o = table; o < table + OPTIONS; o++) {
    if (!takes(command, o)) continue;
    char usage[64], letter[8] = "   ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c,", o->letter);
    snprintf(usage, sizeof usage, "%s --%s%s%s", letter, o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    zb_text_print(out, "  %-*s%s", HELP_COLUMN, usage, o->help);
    if (o->type == CHOICE)
      zb_text_print(out, " (%s%s%s)", o->choices, o->value ? "; default " : "", o->value ? o->value : "");
    if (o->type != CHOICE && o->value) zb_text_print(out, " (default %s)", o->value);
    zb_text_put(out, "\n");
  }
}
