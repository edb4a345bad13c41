// cmd_compile.c - a schedule to what each device does, checked before it is written.
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/cli/program_report.h"
#include "solver/io/file.h"
#include "solver/io/program_json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/answer.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"

// A schedule whose numbers are true.
static enum zb_status read_schedule(const char *path, struct zb_answer *answer, struct zb_error *error) {
  enum zb_status status = zb_answer_read(path, answer, error);
  if (status == ZB_OK && !answer->schedule)
    status = zb_fail(error, ZB_BAD_INPUT, "an %s answer has no schedule, expected one that does",
                     zb_status_word(answer->status));
  if (status == ZB_OK) status = zb_answer_verify(answer, error);
  if (status != ZB_OK && !error->path[0]) zb_error_set_path(error, path);
  return status;
}

// The lowering is right by construction; that it is so is checked by what shares nothing with it.
static enum zb_status compile(const struct zb_options *options, const struct zb_answer *answer,
                              struct zb_program **program, struct zb_program_facts *facts,
                              struct zb_error *error) {
  struct zb_program *p = NULL;
  struct zb_run run = {0};
  struct zb_error found = {0};
  enum zb_status status = zb_program_lower(answer->profile, answer->schedule, answer->method,
                                           (enum zb_optimizer)options->optimizer, &p, error);
  if (status != ZB_OK) return status;
  p->channels = (enum zb_channels)options->channels;
  status = zb_program_check(p, &run, &found);
  if (status == ZB_OK) status = zb_program_facts(p, facts, &found);
  if (status == ZB_WRONG) status = ZB_SELF_CHECK;
  zb_run_free(&run);
  if (status == ZB_OK) {
    *program = p;
    return ZB_OK;
  }
  zb_program_free(p);
  return zb_fail(error, status, "%s", found.text);
}

static enum zb_status write_program(const char *path, const struct zb_program *program,
                                    struct zb_error *error) {
  struct zb_text text = {0};
  zb_program_print(program, &text);
  enum zb_status status = zb_file_write(path, &text, error);
  zb_text_free(&text);
  return status;
}

enum zb_status zb_command_compile(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                  struct zb_error *error) {
  (void)start_ns;
  const char *path = options->output;
  const bool stdout_taken = path && (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0);
  struct zb_answer answer = {0};
  struct zb_program *program = NULL;
  struct zb_program_facts facts = {0};
  enum zb_status status = ZB_OK;
  if (stdout_taken && options->json)
    status = zb_fail(error, ZB_BAD_INPUT, "--json and -o %s both want standard output", path);
  if (status == ZB_OK && path) status = zb_file_can_write(path, error);
  if (status == ZB_OK) status = read_schedule(options->operand, &answer, error);
  if (status == ZB_OK) status = compile(options, &answer, &program, &facts, error);
  if (status == ZB_OK && path) status = write_program(path, program, error);
  if (status == ZB_OK && options->json) {
    zb_text_put(out, "{");
    zb_program_print_fields(program, &facts, out);
    zb_text_put(out, "}\n");
  } else if (status == ZB_OK && !stdout_taken && !options->quiet) {
    if (!path || options->verbose) {
      zb_program_print_summary(program, &facts, out);
    } else {
      zb_text_print(out, "%s: ", path);
      zb_program_print_line(program, &facts, out);
      zb_text_put(out, "\n");
    }
  }
  zb_program_free(program);
  zb_answer_free(&answer);
  return status;
}
