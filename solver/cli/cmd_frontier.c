// cmd_frontier.c - memory limit against bubble.
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/cli/engines.h"
#include "solver/cli/frontier.h"
#include "solver/cli/method.h"
#include "solver/io/file.h"
#include "solver/io/frontier_svg.h"
#include "solver/io/table.h"
#include "solver/model/number.h"

static const struct zb_column columns[] = {
    {"limit", true}, {"bytes", true}, {"status", false}, {"cost", true},
    {"bound", true}, {"gap", true},   {"bubble", true},  {"peak", true},
};

static void print_point(const struct zb_frontier_point *point, const struct zb_unit *unit,
                        struct zb_table *table) {
  char text[ZB_QUANTITY_TEXT];
  bool drawn = point->cost_ns > 0, fits = point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
  zb_table_cell(table, "%s", zb_multiple_text(point->multiple, text));
  zb_table_cell(table, "%s", zb_bytes_text(point->limit_bytes, text));
  zb_table_cell(table, "%s", zb_status_word(point->status));
  zb_table_cell(table, "%s", drawn ? zb_time_in(point->cost_ns, unit, text) : "-");
  zb_table_cell(table, "%s", fits ? zb_time_in(point->bound_ns, unit, text) : "-");
  zb_table_cell(table, "%s", fits ? zb_percent_text(point->gap, text) : "-");
  zb_table_cell(table, "%s", drawn ? zb_percent_text(point->bubble_rate, text) : "-");
  zb_table_cell(table, "%s", drawn ? zb_bytes_text(point->most_bytes, text) : "-");
}

static void print_table(const struct zb_frontier *frontier, struct zb_text *out) {
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  char text[ZB_QUANTITY_TEXT];
  int64_t largest = 0;
  for (int k = 0; k < frontier->count; k++) largest = zb_max(largest, frontier->points[k].cost_ns);
  const struct zb_unit *unit = zb_time_unit_for(largest);
  zb_text_print(out, "%s: %d devices, %d microbatches, method %s; cost is the %s, times in %s\n",
                frontier->name ? frontier->name : "profile", frontier->devices, frontier->microbatches,
                frontier->method, zb_objective_word(frontier->objective), unit->word);
  zb_text_print(out, "1x is %s: %d times the activation of one microbatch, static memory excluded\n\n",
                zb_bytes_text(frontier->unit_bytes, text), frontier->devices);
  for (int k = 0; k < frontier->count; k++) print_point(&frontier->points[k], unit, &table);
  zb_table_print(&table, 0, out);
  zb_table_free(&table);
}

static void print_json(const struct zb_frontier *frontier, struct zb_text *out) {
  zb_text_print(out, "{\"method\": \"%s\", \"objective\": \"%s\", \"unit_bytes\": %lld, \"points\": [",
                frontier->method, zb_objective_word(frontier->objective), (long long)frontier->unit_bytes);
  for (int k = 0; k < frontier->count; k++) {
    const struct zb_frontier_point *point = &frontier->points[k];
    zb_text_print(out, "%s{\"multiple\": %lld.%06lld, \"limit_bytes\": %lld, \"status\": \"%s\"",
                  k ? ", " : "", (long long)(point->multiple / ZB_MILLION),
                  (long long)(point->multiple % ZB_MILLION), (long long)point->limit_bytes,
                  zb_status_word(point->status));
    if (point->cost_ns > 0) zb_text_print(out, ", \"cost_ns\": %lld", (long long)point->cost_ns);
    if (point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE)
      zb_text_print(out, ", \"bound_ns\": %lld, \"gap\": %.6f", (long long)point->bound_ns, point->gap);
    if (point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE)
      zb_text_print(out, ", \"bubble_bound\": %.6f", point->bubble_bound);
    if (point->cost_ns > 0)
      zb_text_print(out, ", \"bubble_rate\": %.6f, \"most_peak_bytes\": %lld", point->bubble_rate,
                    (long long)point->most_bytes);
    zb_text_print(out, ", \"seconds\": %.6f}", point->seconds);
  }
  zb_text_put(out, "]}\n");
}

// A chart goes to a file that is called one.
static enum zb_status check_output(const struct zb_options *options, struct zb_error *error) {
  static const char suffix[] = ".svg";
  const char *path = options->output;
  if (!path) return ZB_OK;
  const size_t length = strlen(path), end = sizeof suffix - 1;
  if (length < end || strcmp(path + length - end, suffix) != 0)
    return zb_fail(error, ZB_BAD_INPUT, "--output: %.200s, expected a chart's name, FILE.svg", path);
  return zb_file_can_write(path, error);
}

static enum zb_status write_chart(const char *path, const struct zb_frontier *frontier,
                                  struct zb_error *error) {
  struct zb_text text = {0};
  zb_frontier_print_svg(frontier, &text);
  enum zb_status status = zb_file_write(path, &text, error);
  zb_text_free(&text);
  return status;
}

static enum zb_status check_range(const struct zb_options *options, struct zb_error *error) {
  if (options->step == 0) return zb_fail(error, ZB_BAD_INPUT, "--step: 0x leads nowhere");
  if (options->to < options->from) return zb_fail(error, ZB_BAD_INPUT, "--to is below --from");
  if ((options->to - options->from) / options->step >= ZB_FRONTIER_POINTS)
    return zb_fail(error, ZB_BAD_INPUT, "--step: more than %d limits from --from to --to",
                   ZB_FRONTIER_POINTS);
  return ZB_OK;
}

static enum zb_status run(const struct zb_options *options, const struct zb_engine *engine, int64_t start_ns,
                          struct zb_frontier *frontier, struct zb_error *error) {
  struct zb_profile *profile = NULL, *placed = NULL;
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  enum zb_status status = zb_method_profile(options, &profile, error);
  if (status != ZB_OK) return status;
  int64_t unit_bytes = zb_limit_unit(profile);
  if (unit_bytes == 0) {
    status = zb_fail(error, ZB_BAD_INPUT, "memory: no forward keeps any, a limit would change nothing");
    zb_error_set_path(error, options->operand);
  }
  if (status == ZB_OK) status = zb_method_place(engine, profile, options->chunks, &placed, error);
  if (status == ZB_OK) {
    zb_progress_start(&progress, options, start_ns, &problem);
    status = zb_frontier_run(engine, placed, &problem, unit_bytes, options->from, options->to, options->step,
                             &progress, frontier, error);
    zb_progress_end(&progress);
  }
  zb_profile_free(placed);
  zb_profile_free(profile);
  return status;
}

enum zb_status zb_command_frontier(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                   struct zb_error *error) {
  const struct zb_engine *engine;
  struct zb_frontier frontier = {.count = 0};
  enum zb_status status = zb_engine_find(options->method, strlen(options->method), &engine, error);
  if (status == ZB_OK) status = check_range(options, error);
  if (status == ZB_OK) status = check_output(options, error);
  if (status == ZB_OK) status = run(options, engine, start_ns, &frontier, error);
  if (status != ZB_OK) return status;
  if (options->json)
    print_json(&frontier, out);
  else
    print_table(&frontier, out);
  if (options->output) status = write_chart(options->output, &frontier, error);
  zb_frontier_free(&frontier);
  return status;
}
