// answer_text.c - the summary, the last line and the object of an answer.
#include "solver/cli/answer_text.h"

#include <string.h>

#include "solver/cli/method.h"
#include "solver/cli/quantity.h"
#include "solver/io/schedule_json.h"
#include "solver/model/deadline.h"

static bool to_stdout(const char *path) { return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0; }

enum zb_status zb_output_check(const struct zb_options *options, struct zb_error *error) {
  if (!options->json || !options->output || !to_stdout(options->output)) return ZB_OK;
  return zb_fail(error, ZB_BAD_INPUT, "--json and -o %s both want standard output", options->output);
}

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

void zb_answer_say(const struct zb_options *options, const struct zb_answer *answer, int64_t start_ns,
                   struct zb_text *out) {
  if (options->json) {
    print_json(answer, (double)(zb_clock_ns() - start_ns) * 1e-9, out);
  } else if (!options->output || !to_stdout(options->output)) {
    if ((!options->output || options->verbose) && !options->quiet) print_summary(answer, out);
    print_last_line(answer, out);
  }
}
