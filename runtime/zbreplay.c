// zbreplay.c - finds the command, runs it, prints what it returns. The only place that prints and exits.
#include <stdio.h>
#include <string.h>

#include "runtime/compute.h"
#include "runtime/gemm.h"
#include "runtime/replay_commands.h"
#include "runtime/replay_options.h"
#include "runtime/transport.h"
#include "solver/io/file.h"

#ifndef ZB_VERSION
#define ZB_VERSION "0.1.0"
#endif

static enum zb_status (*const commands[ZB_REPLAY_COMMANDS])(const struct zb_replay_options *options,
                                                            struct zb_text *out, zb_say say,
                                                            struct zb_error *error) = {
#define X(NAME, name, operand, help) zb_replay_##name,
    ZB_REPLAY_COMMAND_TABLE(X)
#undef X
};

static void say_at_once(const char *lines) {
  fputs(lines, stderr);
  fflush(stderr);
}

static enum zb_status print_help(int count, char **words, struct zb_text *out, struct zb_error *error) {
  if (count == 0) {
    zb_replay_help(out);
    return ZB_OK;
  }
  return zb_replay_help_command(words[0], out, error);
}

static enum zb_status run(int count, char **words, struct zb_text *out, struct zb_error *error) {
  if (count > 0 && strcmp(words[0], "--version") == 0) {
    zb_text_print(out, "zbreplay %s (products by %s, MPI %s, CUDA %s, NCCL %s)\n", ZB_VERSION, zb_gemm_name,
                  zb_mpi_name, zb_cuda_name, zb_nccl_name);
    return ZB_OK;
  }
  if (count > 0 &&
      (strcmp(words[0], "help") == 0 || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0))
    return print_help(count - 1, words + 1, out, error);
  struct zb_replay_options options;
  enum zb_status status = zb_replay_options_parse(count, words, &options, error);
  if (status != ZB_OK) return status;
  if (options.help) return zb_replay_help_command(words[0], out, error);
  zb_gemm_prepare();
  return commands[options.command](&options, out, say_at_once, error);
}

static void print_error(const struct zb_error *error) {
  if (error->path[0] && error->line)
    fprintf(stderr, "%s:%d:%d: %s\n", error->path, error->line, error->column, error->text);
  else
    fprintf(stderr, "%s: %s\n", error->path[0] ? error->path : "zbreplay", error->text);
}

int main(int count, char **arguments) {
  struct zb_text out = {0};
  struct zb_error error = {0}, unwritten = {0};
  enum zb_status status = run(count > 0 ? count - 1 : 0, arguments + 1, &out, &error);
  enum zb_status written = out.size || out.failed ? zb_file_write("-", &out, &unwritten) : ZB_OK;
  if (error.text[0]) print_error(&error);
  if (written != ZB_OK) {
    print_error(&unwritten);
    status = written;
  }
  zb_text_free(&out);
  return zb_status_exit_code(status);
}
