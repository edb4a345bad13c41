// main.c - finds the command, runs it, prints what it returns. The only place that prints errors and exits.
//
// Results reach standard output in one write at the end, so that a failure never leaves half a result there.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/io/file.h"
#include "solver/model/deadline.h"

#ifndef ZB_VERSION
#define ZB_VERSION "0.1.0"
#endif
#ifndef ZB_PARTS
#define ZB_PARTS "parts unknown"
#endif

static zb_command_run *const commands[ZB_COMMAND_COUNT] = {
#define X(NAME, name, operand, help) zb_command_##name,
    ZB_COMMAND_TABLE(X)
#undef X
};

// The first signal asks for the best so far; from then on the signals mean what they always mean.
static void on_signal(int number) {
  (void)number;
  zb_stop_request();
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

// No SA_RESTART: a read that waits for input must notice.
static void listen(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static void print_error(const struct zb_error *error) {
  if (error->path[0] && error->line)
    fprintf(stderr, "%s:%d:%d: %s\n", error->path, error->line, error->column, error->text);
  else
    fprintf(stderr, "%s: %s\n", error->path[0] ? error->path : "zbsolve", error->text);
}

// Exit codes are the table's; an error without words would be a riddle, success has none.
static int finish(enum zb_status status, const struct zb_text *out, struct zb_error *error) {
  struct zb_error unwritten = {0};
  enum zb_status written = out->size || out->failed ? zb_file_write("-", out, &unwritten) : ZB_OK;
  if (error->text[0]) print_error(error);
  if (written == ZB_OK) return zb_status_exit_code(status);
  print_error(&unwritten);
  return zb_status_exit_code(written);
}

static enum zb_status print_help(int count, char **arguments, struct zb_text *out, struct zb_error *error) {
  enum zb_command command;
  if (count > 1) return zb_fail(error, ZB_BAD_INPUT, "help explains one command at a time");
  if (count == 0) {
    zb_help_print(out);
    return ZB_OK;
  }
  enum zb_status status = zb_command_find(arguments[0], &command, error);
  if (status == ZB_OK) zb_help_print_command(command, out);
  return status;
}

static enum zb_status run(int count, char **arguments, int64_t start_ns, struct zb_text *out,
                          struct zb_error *error) {
  if (count == 0) return zb_fail(error, ZB_BAD_INPUT, "which command? (zbsolve help lists them)");
  const char *word = arguments[0];
  if (strcmp(word, "--version") == 0) {
    zb_text_print(out, "zbsolve %s (%s)\n", ZB_VERSION, ZB_PARTS);
    return ZB_OK;
  }
  if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
    return print_help(count - 1, arguments + 1, out, error);
  if (word[0] == '-')
    return zb_fail(error, ZB_BAD_INPUT, "a command comes before its options: %s (zbsolve help lists them)",
                   word);

  enum zb_command command;
  struct zb_options options;
  enum zb_status status = zb_command_find(word, &command, error);
  if (status == ZB_OK) status = zb_options_parse(command, count - 1, arguments + 1, &options, error);
  if (status != ZB_OK) return status;
  if (options.help) {
    zb_help_print_command(command, out);
    return ZB_OK;
  }
  listen();
  return commands[command](&options, start_ns, out, error);
}

int main(int count, char **arguments) {
  int64_t start_ns = zb_clock_ns();
  struct zb_text out = {0};
  struct zb_error error = {0};
  enum zb_status status = run(count > 0 ? count - 1 : 0, arguments + 1, start_ns, &out, &error);
  int code = finish(status, &out, &error);
  zb_text_free(&out);
  return code;
}
