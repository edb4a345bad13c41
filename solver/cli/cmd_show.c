// cmd_show.c - a schedule in the terminal.
//
// What is drawn and summed is what the orders really do under the profile, not what the file says they do.
// Where the two differ, the drawing comes first and the difference after it, with check's exit code.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "solver/cli/commands.h"
#include "solver/cli/gantt.h"
#include "solver/cli/method.h"
#include "solver/cli/quantity.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/answer.h"
#include "solver/model/check.h"
#include "solver/model/number.h"

enum { LEAST_WIDTH = 40, MOST_WIDTH = 1000, USUAL_WIDTH = 80 };

// --width, COLUMNS, the terminal, 80: the first that says something.
static int find_width(const struct zb_options *options) {
  if (options->width) return (int)options->width;
  const char *columns = getenv("COLUMNS");
  long width = columns ? strtol(columns, NULL, 10) : 0;
  struct winsize size;
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  if (width <= 0) width = USUAL_WIDTH;
  return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : (int)width;
}

// As setlocale would find it: the first of these that is set decides.
static bool is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const char *value = getenv(names[k]);
    if (!value || !*value) continue;
    const char *charset = strchr(value, '.');
    return charset && (strncasecmp(charset, ".utf-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0);
  }
  return false;
}

static bool wants_color(const struct zb_options *options) {
  if (options->color != ZB_COLOR_AUTO) return options->color == ZB_COLOR_ALWAYS;
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  bool dumb = terminal && strcmp(terminal, "dumb") == 0;
  return isatty(STDOUT_FILENO) && !dumb && !(no_color && *no_color);
}

static void print_title(const struct zb_answer *answer, struct zb_text *out) {
  const struct zb_profile *profile = answer->profile;
  zb_text_print(out, "%s: %s, %d devices, %d microbatches, ", profile->name ? profile->name : "schedule",
                answer->method, profile->devices, profile->microbatches);
  if (profile->chunks > 1)
    zb_text_print(out, "%s of %d stages a device, ", zb_placement_word(profile->placement), profile->chunks);
  zb_text_print(out, "%s\n", zb_status_word(answer->status));
}

static void print_totals(const struct zb_answer *answer, const struct zb_timeline *timeline,
                         struct zb_text *out) {
  const struct zb_profile *profile = answer->profile;
  const int64_t times[ZB_OBJECTIVE_COUNT] = {timeline->span_ns, timeline->makespan_ns, timeline->period_ns};
  char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT], c[ZB_QUANTITY_TEXT], d[ZB_QUANTITY_TEXT];
  int64_t cost_ns = times[answer->objective];
  zb_text_print(out, "\n%s %s, bound %s, gap %s, bubble %s\n", zb_objective_word(answer->objective),
                zb_time_text(cost_ns, a), zb_time_text(answer->bound_ns, b),
                zb_percent_text(zb_ratio(cost_ns, answer->bound_ns), c),
                zb_percent_text(zb_ratio(cost_ns, timeline->work_ns), d));
  const char *separator = "";
  for (int k = 0; k < ZB_OBJECTIVE_COUNT; k++) {
    if (k == (int)answer->objective) continue;
    zb_text_print(out, "%s%s %s", separator, zb_objective_word((enum zb_objective)k),
                  zb_time_text(times[k], a));
    separator = ", ";
  }
  bool same = true;
  for (int k = 1; k < profile->devices; k++)
    same = same && profile->limit_bytes[k] == profile->limit_bytes[0];
  if (profile->has_memory && same && profile->limit_bytes[0] != ZB_NO_LIMIT)
    zb_text_print(out, ", limit %s on every device", zb_bytes_text(profile->limit_bytes[0], a));
  zb_text_put(out, "\n");
}

static void print_json(const struct zb_answer *answer, const struct zb_timeline *timeline,
                       struct zb_text *out) {
  zb_text_put(out, "{");
  zb_answer_print_header(answer, out);
  for (int d = 0; answer->schedule && d < timeline->devices; d++) {
    const size_t *first = answer->schedule->first;
    zb_text_print(out, "%s{\"device\": %d, \"ops\": %zu", d ? ", " : ", \"devices\": [", d,
                  first[d + 1] - first[d]);
    zb_text_print(out, ", \"first_start_ns\": %lld, \"last_end_ns\": %lld",
                  (long long)timeline->first_start_ns[d], (long long)timeline->last_end_ns[d]);
    zb_text_print(out, ", \"busy_ns\": %lld, \"idle_ns\": %lld", (long long)timeline->busy_ns[d],
                  (long long)zb_answer_idle_ns(timeline, d));
    zb_text_print(out, ", \"peak_bytes\": %lld", (long long)timeline->peak_bytes[d]);
    if (answer->profile->limit_bytes[d] != ZB_NO_LIMIT)
      zb_text_print(out, ", \"limit_bytes\": %lld", (long long)answer->profile->limit_bytes[d]);
    zb_text_put(out, "}");
  }
  zb_text_put(out, answer->schedule ? "]}\n" : "}\n");
}

static enum zb_status draw(const struct zb_options *options, const struct zb_answer *answer,
                           const struct zb_timeline *timeline, struct zb_text *out, struct zb_error *error) {
  struct zb_gantt_style style = {find_width(options), wants_color(options), is_utf8()};
  if (!options->quiet) print_title(answer, out);
  enum zb_status status =
      zb_gantt_print(&style, answer->profile, answer->schedule, timeline, options->quiet, out, error);
  if (status == ZB_OK && !options->quiet) print_totals(answer, timeline, out);
  return status;
}

static void print_nothing(const struct zb_answer *answer, struct zb_text *out) {
  struct zb_error why = {0};
  if (answer->status == ZB_INFEASIBLE) zb_method_explain_infeasible(&answer->reason, &why);
  print_title(answer, out);
  zb_text_print(out, "no schedule to draw%s%s\n", *why.text ? ": " : "", why.text);
}

enum zb_status zb_command_show(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                               struct zb_error *error) {
  (void)start_ns;
  struct zb_answer answer = {0};
  struct zb_timeline timeline = {0};
  enum zb_status status = zb_answer_read(options->operand, &answer, error);
  if (status == ZB_OK && answer.schedule) {
    status = zb_check_schedule(answer.profile, answer.schedule, &timeline, error);
    if (status == ZB_OVER_LIMIT) status = ZB_OK; // drawn, and verify says it afterwards
  }
  if (status == ZB_OK) {
    if (options->json)
      print_json(&answer, &timeline, out);
    else if (answer.schedule)
      status = draw(options, &answer, &timeline, out, error);
    else
      print_nothing(&answer, out);
  }
  if (status == ZB_OK) {
    if (error) error->text[0] = 0;
    status = zb_answer_verify(&answer, error);
  }
  if (status != ZB_OK) zb_error_set_path(error, options->operand);
  zb_timeline_free(&timeline);
  zb_answer_free(&answer);
  return status;
}
