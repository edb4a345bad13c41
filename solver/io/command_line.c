// command_line.c - the parser, the suggestions and the help.
#include "solver/io/command_line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "solver/model/number.h"

// Types.

static enum zb_status read_text(const struct zb_option *option, const char *text, void *field,
                                struct zb_error *error) {
  if (!*text) return zb_fail(error, ZB_BAD_INPUT, "its %s is empty", option->argument);
  *(const char **)field = text;
  return ZB_OK;
}

static enum zb_status read_count(const struct zb_option *option, const char *text, void *field,
                                 struct zb_error *error) {
  int64_t number;
  bool whole = strspn(text, "-0123456789") == strlen(text);
  enum zb_decimal why = whole ? zb_decimal_parse(text, 1, &number) : ZB_DECIMAL_MALFORMED;
  if (why == ZB_DECIMAL_MALFORMED) return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a whole number", text);
  if (why != ZB_DECIMAL_OK || number < option->least || number > option->most)
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (%lld to %lld%s%s)", text,
                   (long long)option->least, (long long)option->most, *option->unit ? " " : "", option->unit);
  *(int64_t *)field = number;
  return ZB_OK;
}

static enum zb_status read_choice(const struct zb_option *option, const char *text, void *field,
                                  struct zb_error *error) {
  const char *choice = option->unit;
  for (int k = 0; *choice; k++) {
    size_t length = strcspn(choice, "|");
    if (strlen(text) == length && strncmp(text, choice, length) == 0) {
      *(int *)field = k;
      return ZB_OK;
    }
    choice += length + (choice[length] == '|');
  }
  return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not one of %s", text, option->unit);
}

static void clear_choice(void *field) { *(int *)field = -1; }

const struct zb_option_type zb_option_type_FLAG = {0};
const struct zb_option_type zb_option_type_TEXT = {.read = read_text};
const struct zb_option_type zb_option_type_COUNT = {.read = read_count};
const struct zb_option_type zb_option_type_CHOICE = {
    .read = read_choice, .clear = clear_choice, .names_choices = true};

static enum zb_status read_value(const struct zb_option *option, const char *text, void *values,
                                 struct zb_error *error) {
  void *field = (char *)values + option->offset;
  if (option->type->read) return option->type->read(option, text, field, error);
  *(bool *)field = true;
  return ZB_OK;
}

static void set_defaults(const struct zb_command_line *line, void *values) {
  for (const struct zb_option *o = line->options; o < line->options + line->option_count; o++) {
    if (o->type->clear) o->type->clear((char *)values + o->offset);
    if (!o->value) continue;
    enum zb_status status = read_value(o, o->value, values, NULL);
    assert(status == ZB_OK);
    (void)status;
  }
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

enum zb_status zb_command_line_find(const struct zb_command_line *line, const char *name, int *command,
                                    struct zb_error *error) {
  const char *names[ZB_OPTIONS_MOST];
  int count = 0;
  for (; count < line->command_count; count++) {
    names[count] = line->commands[count].name;
    if (strcmp(name, names[count]) == 0) {
      *command = count;
      return ZB_OK;
    }
  }
  names[count++] = "help";
  const char *nearest = zb_nearest_word(name, names, count);
  if (nearest) return zb_fail(error, ZB_BAD_INPUT, "unknown command %s (did you mean %s?)", name, nearest);
  return zb_fail(error, ZB_BAD_INPUT, "unknown command %s (%s help lists them)", name, line->program);
}

// The parser.

// One command's reading.
struct reading {
  const struct zb_command_line *line;
  int command;
  void *values;
  struct zb_operands *operands;
  bool seen[ZB_OPTIONS_MOST];
};

static bool takes(int command, const struct zb_option *option) {
  return (option->commands >> command & 1) != 0;
}

static const struct zb_option *find(const struct reading *reading, const char *name, size_t length) {
  const struct zb_command_line *line = reading->line;
  for (const struct zb_option *o = line->options; o < line->options + line->option_count; o++)
    if (takes(reading->command, o) && strlen(o->name) == length && strncmp(o->name, name, length) == 0)
      return o;
  return NULL;
}

static const struct zb_option *find_letter(const struct reading *reading, char letter) {
  const struct zb_command_line *line = reading->line;
  for (const struct zb_option *o = line->options; o < line->options + line->option_count; o++)
    if (takes(reading->command, o) && o->letter == letter) return o;
  return NULL;
}

static enum zb_status fail_unknown(const struct reading *reading, const char *text, struct zb_error *error) {
  const struct zb_command_line *line = reading->line;
  const char *names[ZB_OPTIONS_MOST], *command = line->commands[reading->command].name;
  int count = 0;
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
  for (const struct zb_option *o = line->options; o < line->options + line->option_count; o++) {
    if (takes(reading->command, o))
      names[count++] = o->name;
    else if (strcmp(o->name, name) == 0)
      return zb_fail(error, ZB_BAD_INPUT, "%s does not take --%s", command, name);
  }
  const char *nearest = zb_nearest_word(name, names, count);
  if (nearest) return zb_fail(error, ZB_BAD_INPUT, "unknown option --%s (did you mean --%s?)", name, nearest);
  return zb_fail(error, ZB_BAD_INPUT, "unknown option --%s (%s help %s lists them)", name, line->program,
                 command);
}

// What the command line says about one option: where its argument starts, NULL if it must be the next word.
struct mention {
  const struct zb_option *option;
  const char *value;
};

static enum zb_status read_mention(const struct reading *reading, const char *text, struct mention *mention,
                                   struct zb_error *error) {
  if (text[1] != '-') {
    mention->option = find_letter(reading, text[1]);
    if (!mention->option)
      return zb_fail(error, ZB_BAD_INPUT, "unknown option -%c (%s help %s lists them)", text[1],
                     reading->line->program, reading->line->commands[reading->command].name);
    mention->value = text[2] ? text + 2 : NULL;
    if (mention->value && !mention->option->argument)
      return zb_fail(error, ZB_BAD_INPUT, "unknown option %s (write -%c by itself)", text, text[1]);
    return ZB_OK;
  }
  size_t length = strcspn(text + 2, "=");
  mention->option = find(reading, text + 2, length);
  if (!mention->option) return fail_unknown(reading, text, error);
  mention->value = text[2 + length] == '=' ? text + 3 + length : NULL;
  if (mention->value && !mention->option->argument)
    return zb_fail(error, ZB_BAD_INPUT, "--%s takes no argument", mention->option->name);
  return ZB_OK;
}

static enum zb_status add_operand(const struct reading *reading, const char *text, struct zb_error *error) {
  const char *word = reading->line->commands[reading->command].operand;
  const int most = strstr(word, "..") ? ZB_OPERANDS : 1;
  struct zb_operands *operands = reading->operands;
  if (operands->count == most && most == 1)
    return zb_fail(error, ZB_BAD_INPUT, "one %s at a time: \"%s\" is a second one", word, text);
  if (operands->count == most) return zb_fail(error, ZB_BAD_INPUT, "at most %d of %s", most, word);
  if (operands->count == 0) operands->operand = text;
  operands->each[operands->count++] = text;
  return ZB_OK;
}

static enum zb_status read_arguments(struct reading *reading, int count, char **arguments,
                                     struct zb_error *error) {
  bool options_end = false;
  for (int k = 0; k < count; k++) {
    const char *text = arguments[k];
    if (options_end || text[0] != '-' || !text[1]) {
      enum zb_status status = add_operand(reading, text, error);
      if (status != ZB_OK) return status;
      continue;
    }
    if (strcmp(text, "--") == 0) {
      options_end = true;
      continue;
    }
    struct mention mention = {0};
    enum zb_status status = read_mention(reading, text, &mention, error);
    if (status != ZB_OK) return status;
    const struct zb_option *option = mention.option;
    bool *seen = &reading->seen[option - reading->line->options];
    if (*seen) return zb_fail(error, ZB_BAD_INPUT, "--%s is given twice", option->name);
    *seen = true;
    if (option->argument && !mention.value) {
      if (k + 1 == count)
        return zb_fail(error, ZB_BAD_INPUT, "--%s needs its argument %s", option->name, option->argument);
      mention.value = arguments[++k];
    }
    struct zb_error why = {0};
    if (read_value(option, mention.value, reading->values, &why) != ZB_OK)
      return zb_fail(error, ZB_BAD_INPUT, "--%s: %s", option->name, why.text);
  }
  return ZB_OK;
}

static bool asks_for_help(int count, char **arguments) {
  for (int k = 0; k < count && strcmp(arguments[k], "--") != 0; k++)
    if (strcmp(arguments[k], "--help") == 0 || strcmp(arguments[k], "-h") == 0) return true;
  return false;
}

enum zb_status zb_command_line_parse(const struct zb_command_line *line, int command, int count,
                                     char **arguments, void *values, struct zb_operands *operands, bool *help,
                                     struct zb_error *error) {
  struct reading reading = {.line = line, .command = command, .values = values, .operands = operands};
  assert(line->option_count <= ZB_OPTIONS_MOST && line->command_count < ZB_OPTIONS_MOST);
  set_defaults(line, values);
  *help = asks_for_help(count, arguments);
  if (*help) return ZB_OK;
  enum zb_status status = read_arguments(&reading, count, arguments, error);
  if (status != ZB_OK) return status;
  const struct zb_command_words *words = &line->commands[command];
  if (operands->count == 0)
    return zb_fail(error, ZB_BAD_INPUT, "%s needs a %s (%s help %s)", words->name, words->operand,
                   line->program, words->name);
  return ZB_OK;
}

// Help.

void zb_command_line_print_commands(const struct zb_command_line *line, struct zb_text *out) {
  for (int k = 0; k < line->command_count; k++) {
    char usage[64];
    snprintf(usage, sizeof usage, "%s %s %s", line->program, line->commands[k].name,
             line->commands[k].operand);
    zb_text_print(out, "  %-*s%s\n", line->column, usage, line->commands[k].help);
  }
  char usage[64];
  snprintf(usage, sizeof usage, "%s help [COMMAND]", line->program);
  zb_text_print(out, "  %-*s%s\n", line->column, usage, "this, or the options of a command");
}

// Its help, then in brackets what the table knows: choices, and the default.
static void print_option(const struct zb_option *option, int column, struct zb_text *out) {
  char usage[64], remark[128] = "";
  const char *gap = option->argument ? " " : "", *argument = option->argument ? option->argument : "";
  if (option->letter)
    snprintf(usage, sizeof usage, "-%c, --%s%s%s", option->letter, option->name, gap, argument);
  else
    snprintf(usage, sizeof usage, "    --%s%s%s", option->name, gap, argument);
  size_t length = 0;
  if (option->type->names_choices) length += (size_t)snprintf(remark, sizeof remark, "%s", option->unit);
  if (option->value)
    snprintf(remark + length, sizeof remark - length, "%sdefault %s%s%s", length ? "; " : "", option->value,
             option->type->names_unit ? " " : "", option->type->names_unit ? option->unit : "");
  zb_text_print(out, "  %-*s%s", column, usage, option->help);
  if (*remark && strlen(option->help) + strlen(remark) + (size_t)column + 5 > 90)
    zb_text_print(out, "\n  %-*s", column, "");
  else if (*remark)
    zb_text_print(out, " ");
  if (*remark) zb_text_print(out, "(%s)", remark);
  zb_text_print(out, "\n");
}

void zb_command_line_print_options(const struct zb_command_line *line, int command, struct zb_text *out) {
  zb_text_print(out, "%s %s %s [options]: %s\n\n", line->program, line->commands[command].name,
                line->commands[command].operand, line->commands[command].help);
  for (const struct zb_option *o = line->options; o < line->options + line->option_count; o++)
    if (takes(command, o)) print_option(o, line->column, out);
}
