// cmd_solve.c - profile in, checked schedule out.
#include <stdio.h>
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/cli/progress.h"
#include "solver/cli/redo_bound.h"
#include "solver/cli/write_answer.h"
#include "solver/io/file.h"
#include "solver/io/schedule_json.h"
#include "solver/model/number.h"

static bool to_stdout(const char *path) { return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0; }

// For a person who asked for no file: what came out, in a few lines.
static void print_summary(const struct zb_answer *answer, struct zb_text *out) {
  const struct zb_profile *profile = answer->profile;
  char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT];
  int device;
  zb_text_print(out, "%s: %d devices, %d microbatches, %s\n", profile->name ? profile->name : "profile",
                profile->devices, profile->microbatches, zb_placement_word(profile->placement));
  if (!answer->schedule) return;
  zb_text_print(out, "  %-7s %s (%s), bubble %s\n", answer->method, zb_time_text(answer->cost_ns, a),
                zb_objective_word(answer->objective), zb_percent_text(answer->bubble_rate, b));
  if (answer->status == ZB_OPTIMAL)
    zb_text_put(out, "  bound   the same: no schedule of this profile is faster\n");
  else if (answer->status == ZB_FEASIBLE)
    zb_text_print(out, "  bound   %s, gap %s\n", zb_time_text(answer->bound_ns, a),
                  zb_percent_text(answer->gap, b));
  int64_t peak = zb_method_most_bytes(&answer->timeline, &device);
  if (!profile->has_memory) return;
  zb_text_print(out, "  peak    %s on device %d", zb_bytes_text(peak, a), device);
  if (profile->limit_bytes[device] == ZB_NO_LIMIT)
    zb_text_put(out, ", no limit\n");
  else
    zb_text_print(out, ", limit %s\n", zb_bytes_text(profile->limit_bytes[device], b));
}

// Only what exists: a cost and a bound where there is a schedule that fits. Nothing but the last line counts
// for scripts; OVER_LIMIT is UNKNOWN there, because other methods may fit.
static void print_last_line(const struct zb_answer *answer, struct zb_text *out) {
  switch (answer->status) {
  case ZB_OPTIMAL:
  case ZB_FEASIBLE:
    zb_text_print(out, "s %s %lld %lld\n", answer->status == ZB_OPTIMAL ? "OPTIMAL" : "FEASIBLE",
                  (long long)answer->cost_ns, (long long)answer->bound_ns);
    break;
  case ZB_INFEASIBLE:
    zb_text_put(out, "s INFEASIBLE\n");
    break;
  default:
    zb_text_put(out, "s UNKNOWN\n");
    break;
  }
}

// A schedule that does not fit has no bound and no gap, but a limit under which it would fit everywhere.
static void print_json(const struct zb_answer *answer, double seconds, struct zb_text *out) {
  zb_text_put(out, "{");
  if (answer->status == ZB_OVER_LIMIT)
    zb_text_print(out,
                  "\"method\": \"%s\", \"objective\": \"%s\", \"status\": \"%s\", \"cost_ns\": %lld, "
                  "\"needs_bytes\": %lld",
                  answer->method, zb_objective_word(answer->objective), zb_status_word(answer->status),
                  (long long)answer->cost_ns, (long long)zb_method_most_bytes(&answer->timeline, NULL));
  else
    zb_answer_print_header(answer, out);
  zb_text_print(out, ", \"seconds\": %.6f}\n", seconds);
}

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
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  enum zb_status status = zb_method_profile(options, &profile, error);
  if (status == ZB_OK) status = zb_method_place(engine, profile, options->chunks, &placed, error);
  if (status == ZB_OK) {
    problem.profile = placed;
    zb_progress_start(&progress, options, start_ns, &problem);
    status = zb_method_run(engine, &problem, NULL, answer, error);
    zb_progress_end(&progress);
    if (status == ZB_OK) {
      status = zb_redo_own_bound(answer, &problem.deadline, error);
      if (status != ZB_OK) zb_answer_free(answer);
    }
  }
  zb_profile_free(placed);
  zb_profile_free(profile);
  return status;
}

enum zb_status zb_command_solve(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                struct zb_error *error) {
  const struct zb_engine *engine;
  struct zb_answer answer = {0};
  bool stdout_taken = options->output && to_stdout(options->output);
  enum zb_status status = zb_engine_find(options->method, strlen(options->method), &engine, error);
  if (status == ZB_OK && stdout_taken && options->json)
    status = zb_fail(error, ZB_BAD_INPUT, "--json and -o %s both want standard output", options->output);
  if (status == ZB_OK) status = zb_write_answer_check(options->output, options->proof, error);
  if (status == ZB_OK) status = solve(options, engine, start_ns, &answer, error);
  if (status != ZB_OK) return status;

  if (options->output) status = zb_write_answer(options->output, options->proof, &answer, error);
  if (status == ZB_OK) {
    double seconds = (double)(zb_clock_ns() - start_ns) * 1e-9;
    if (options->json)
      print_json(&answer, seconds, out);
    else if (!stdout_taken) {
      if ((!options->output || options->verbose) && !options->quiet) print_summary(&answer, out);
      print_last_line(&answer, out);
    }
    status = conclude(options, &answer, error);
  }
  zb_answer_free(&answer);
  return status;
}
