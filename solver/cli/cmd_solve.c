// cmd_solve.c - profile in, checked schedule out.
#include <stdio.h>
#include <string.h>

#include "solver/cli/answer_text.h"
#include "solver/cli/commands.h"
#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/cli/progress.h"
#include "solver/cli/redo_bound.h"
#include "solver/cli/start_schedule.h"
#include "solver/cli/write_answer.h"
#include "solver/io/file.h"
#include "solver/model/number.h"

// The exit status of an answer, with the line that goes with it.
static enum zb_status conclude(const struct zb_options *options, const struct zb_answer *answer,
                               struct zb_error *error) {
  char gap[ZB_QUANTITY_TEXT];
  switch (answer->status) {
  case ZB_INFEASIBLE:
    zb_method_explain_infeasible(&answer->reason, error);
    zb_error_set_path(error, options->operand);
    break;
  case ZB_OVER_LIMIT:
    zb_method_explain_over_limit(answer, error);
    break;
  case ZB_UNKNOWN:
    return zb_fail(error, ZB_UNKNOWN, "%s found no schedule in the time given", answer->method);
  case ZB_FEASIBLE:
    if (options->require_optimal)
      return zb_fail(error, ZB_NOT_PROVEN, "not proven optimal, the gap is %s",
                     zb_percent_text(answer->gap, gap));
    break;
  default:
    break;
  }
  return answer->status;
}

static enum zb_status solve(const struct zb_options *options, const struct zb_engine *engine,
                            int64_t start_ns, struct zb_answer *answer, struct zb_error *error) {
  struct zb_profile *profile = NULL, *placed = NULL;
  struct zb_schedule *start = NULL;
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  enum zb_status status = zb_method_profile(options, &profile, error);
  if (status == ZB_OK) status = zb_method_place(engine, profile, options->chunks, &placed, error);
  problem.profile = placed;
  if (status == ZB_OK && options->start)
    status = zb_start_schedule_read(options->start, engine, &problem, &start, error);
  if (status == ZB_OK) {
    zb_progress_start(&progress, options, start_ns, &problem);
    status = zb_method_run(engine, &problem, start, answer, error);
    zb_progress_end(&progress);
    if (status == ZB_OK) {
      status = zb_redo_own_bound(answer, &problem.deadline, error);
      if (status != ZB_OK) zb_answer_free(answer);
    }
  }
  zb_schedule_free(start);
  zb_profile_free(placed);
  zb_profile_free(profile);
  return status;
}

enum zb_status zb_command_solve(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                struct zb_error *error) {
  const struct zb_engine *engine;
  struct zb_answer answer = {0};
  enum zb_status status = zb_engine_find(options->method, strlen(options->method), &engine, error);
  if (status == ZB_OK) status = zb_output_check(options, error);
  if (status == ZB_OK) status = zb_write_answer_check(options->output, options->proof, error);
  if (status == ZB_OK) status = solve(options, engine, start_ns, &answer, error);
  if (status != ZB_OK) return status;

  if (options->output) status = zb_write_answer(options->output, options->proof, &answer, error);
  if (status == ZB_OK) {
    zb_answer_say(options, &answer, start_ns, out);
    status = conclude(options, &answer, error);
  }
  zb_answer_free(&answer);
  return status;
}
