// cmd_check.c - is a schedule valid, are its numbers true, does its bound hold; and the same of a program.
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/cli/program_report.h"
#include "solver/cli/quantity.h"
#include "solver/cli/redo_bound.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/program_json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/answer.h"
#include "solver/program/program_check.h"

static void print_line(const char *path, const struct zb_answer *answer, struct zb_text *out) {
  char cost[ZB_QUANTITY_TEXT], bound[ZB_QUANTITY_TEXT], gap[ZB_QUANTITY_TEXT];
  zb_text_print(out, "%s: holds: %s", path, zb_status_word(answer->status));
  if (answer->schedule)
    zb_text_print(out, ", %s %s, bound %s, gap %s", zb_objective_word(answer->objective),
                  zb_time_text(answer->cost_ns, cost), zb_time_text(answer->bound_ns, bound),
                  zb_percent_text(answer->gap, gap));
  zb_text_put(out, "\n");
}

// `result` is a word of the table of outcomes: ok, wrong or not-proven; the rest is what the file claims.
static void print_json(enum zb_status status, const struct zb_answer *answer, const char *why,
                       struct zb_text *out) {
  zb_text_print(out, "{\"result\": \"%s\"", zb_status_word(status));
  if (answer->method) {
    zb_text_put(out, ", ");
    zb_answer_print_header(answer, out);
  }
  if (*why) {
    zb_text_put(out, ", \"text\": ");
    zb_json_print_string(why, out);
  }
  zb_text_put(out, "}\n");
}

// A cycle is the answer to "why does it hang", so it goes to standard output.
static enum zb_status check_program(const struct zb_options *options, const struct zb_text *file,
                                    struct zb_text *out, struct zb_error *error) {
  struct zb_program *program = NULL;
  struct zb_program_facts facts = {0};
  struct zb_run run = {0};
  enum zb_status status = zb_program_read_text(file->data, file->size, &program, error);
  if (status == ZB_OK) status = zb_program_check(program, &run, error);
  if (status == ZB_OK) status = zb_program_facts(program, &facts, error);
  if (options->json && program && (status == ZB_OK || status == ZB_WRONG)) {
    zb_text_print(out, "{\"result\": \"%s\", ", zb_status_word(status));
    if (status == ZB_OK) {
      zb_program_print_fields(program, &facts, out);
    } else {
      zb_text_put(out, "\"text\": ");
      zb_json_print_string(error->text, out);
      zb_text_put(out, ", ");
      zb_program_print_cycle_field(program, &run, out);
    }
    zb_text_put(out, "}\n");
  } else if (status == ZB_OK && !options->quiet) {
    zb_text_print(out, "%s: holds: ", options->operand);
    zb_program_print_line(program, &facts, out);
    zb_text_put(out, "\n");
  } else if (status == ZB_WRONG && program && !options->quiet) {
    zb_program_print_cycle(program, &run, out);
  }
  zb_run_free(&run);
  zb_program_free(program);
  return status;
}

static enum zb_status check_schedule(const struct zb_options *options, const struct zb_text *file,
                                     struct zb_text *out, struct zb_error *error) {
  struct zb_answer answer = {0};
  enum zb_status status = zb_answer_read_text(file->data ? file->data : "", file->size, &answer, error);
  if (status == ZB_OK) status = zb_answer_verify(&answer, error);
  if (status == ZB_OK) status = zb_redo_bound(&answer, options->operand, error);
  if (options->json && (status == ZB_OK || status == ZB_WRONG || status == ZB_NOT_PROVEN))
    print_json(status, &answer, status == ZB_OK ? "" : error->text, out);
  else if (status == ZB_OK && !options->quiet)
    print_line(options->operand, &answer, out);
  zb_answer_free(&answer);
  return status;
}

enum zb_status zb_command_check(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                struct zb_error *error) {
  (void)start_ns;
  struct zb_text file = {0};
  enum zb_status status = zb_file_read(options->operand, ZB_RESULT_BYTES_MOST, &file, error);
  if (status == ZB_OK && zb_program_begins(file.data, file.size))
    status = check_program(options, &file, out, error);
  else if (status == ZB_OK)
    status = check_schedule(options, &file, out, error);
  if (status != ZB_OK && !error->path[0]) zb_error_set_path(error, options->operand);
  zb_text_free(&file);
  return status;
}
