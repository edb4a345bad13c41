// schedule_print.c - an answer as a schedule file (contract.md section 3).
#include <inttypes.h>
#include <stdbool.h>

#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/io/schedule_json.h"

static void print_costs(const struct zb_answer *answer, const char *separator, struct zb_text *text) {
  bool solved = answer->schedule != NULL;
  if (solved) zb_text_print(text, "%s\"cost_ns\": %" PRId64, separator, answer->cost_ns);
  if (solved || answer->status == ZB_UNKNOWN)
    zb_text_print(text, "%s\"bound_ns\": %" PRId64, solved ? ", " : separator, answer->bound_ns);
  if (!solved) return;
  zb_text_print(text, ", \"gap\": %.6f, \"bubble_rate\": %.6f", answer->gap, answer->bubble_rate);
  const struct zb_timeline *t = &answer->timeline;
  zb_text_print(text, "%s\"span_ns\": %" PRId64 ", \"period_ns\": %" PRId64 ", \"makespan_ns\": %" PRId64,
                separator, t->span_ns, t->period_ns, t->makespan_ns);
}

// `separator` stands between groups: a line break in the file, a comma in one line.
static void print_header(const struct zb_answer *answer, const char *separator, struct zb_text *text) {
  zb_text_put(text, "\"method\": ");
  zb_json_print_string(answer->method, text);
  zb_text_print(text, ", \"objective\": \"%s\", \"status\": \"%s\"", zb_objective_word(answer->objective),
                zb_status_word(answer->status));
  print_costs(answer, separator, text);
  if (answer->relaxation) {
    zb_text_print(text, "%s\"relaxation\": ", separator);
    zb_json_print_string(answer->relaxation, text);
  }
  if (answer->status == ZB_INFEASIBLE)
    zb_text_print(
        text,
        "%s\"reason\": {\"device\": %d, \"limit_bytes\": %" PRId64 ", \"least_peak_bytes\": %" PRId64 "}",
        separator, answer->reason.device, answer->reason.limit_bytes, answer->reason.least_peak_bytes);
}

void zb_answer_print_header(const struct zb_answer *answer, struct zb_text *text) {
  print_header(answer, ", ", text);
}

static void print_ops(const struct zb_answer *answer, int device, struct zb_text *text) {
  const struct zb_schedule *schedule = answer->schedule;
  size_t first = schedule->first[device], end = schedule->first[device + 1];
  zb_text_put(text, "\"ops\": [");
  for (size_t i = first; i < end; i++) {
    const struct zb_op *op = &schedule->ops[i];
    zb_text_put(text, i == first ? "\"" : "\", \"");
    zb_text_integer(text, op->stage);
    zb_text_put(text, zb_kind_word[op->kind]);
    zb_text_integer(text, op->microbatch);
  }
  zb_text_put(text, first == end ? "], \"start_ns\": [" : "\"], \"start_ns\": [");
  for (size_t i = first; i < end; i++) {
    if (i > first) zb_text_put(text, ", ");
    zb_text_integer(text, answer->timeline.start_ns[i]);
  }
  zb_text_put(text, "]");
}

static void print_device(const struct zb_answer *answer, int device, struct zb_text *text) {
  const struct zb_profile *profile = answer->profile;
  const struct zb_timeline *t = &answer->timeline;
  zb_text_print(text, "    {\"device\": %d, \"stages\": [", device);
  for (int k = 0; k < profile->chunks; k++)
    zb_text_print(text, "%s%d", k == 0 ? "" : ", ", profile->stage_at[device * profile->chunks + k]);
  zb_text_put(text, "], ");
  print_ops(answer, device, text);
  zb_text_print(text,
                ",\n     \"peak_bytes\": %" PRId64 ", \"busy_ns\": %" PRId64 ", \"idle_ns\": %" PRId64 "}",
                t->peak_bytes[device], t->busy_ns[device], zb_answer_idle_ns(t, device));
}

void zb_answer_print(const struct zb_answer *answer, struct zb_text *text) {
  zb_text_put(text, "{\n  \"zbsolve_schedule\": 1,\n  \"profile\": ");
  zb_profile_print(answer->profile, 2, text);
  zb_text_put(text, ",\n  ");
  print_header(answer, ",\n  ", text);
  if (answer->schedule) {
    zb_text_put(text, ",\n  \"devices\": [");
    for (int d = 0; d < answer->profile->devices; d++) {
      zb_text_put(text, d == 0 ? "\n" : ",\n");
      print_device(answer, d, text);
    }
    zb_text_put(text, "\n  ]");
  }
  if (answer->proof) {
    zb_text_put(text, ",\n  \"proof\": ");
    zb_text_put(text, answer->proof);
  }
  zb_text_put(text, "\n}\n");
}
