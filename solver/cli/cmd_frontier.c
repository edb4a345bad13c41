// cmd_frontier.c - memory limit against bubble.
#include <stdio.h>
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

// Several curves have a column each after the first ones, for as many as a table holds.
enum { BEFORE_CURVES = 8, MOST_CURVES = ZB_TABLE_COLUMNS - BEFORE_CURVES, CURVE_NAME = 64 };

static bool fits(const struct zb_frontier_point *point) {
  return point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
}

static void print_point(const struct zb_frontier_point *point, const struct zb_unit *unit,
                        struct zb_table *table) {
  char text[ZB_QUANTITY_TEXT];
  const bool drawn = point->cost_ns > 0;
  zb_table_cell(table, "%s", zb_multiple_text(point->multiple, text));
  zb_table_cell(table, "%s", zb_bytes_text(point->limit_bytes, text));
  zb_table_cell(table, "%s", zb_status_word(point->status));
  zb_table_cell(table, "%s", drawn ? zb_time_in(point->cost_ns, unit, text) : "-");
  zb_table_cell(table, "%s", fits(point) ? zb_time_in(point->bound_ns, unit, text) : "-");
  zb_table_cell(table, "%s", fits(point) ? zb_percent_text(point->gap, text) : "-");
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

static void print_json_points(const struct zb_frontier *frontier, struct zb_text *out) {
  zb_text_put(out, "\"points\": [");
  for (int k = 0; k < frontier->count; k++) {
    const struct zb_frontier_point *point = &frontier->points[k];
    zb_text_print(out, "%s{\"multiple\": %lld.%06lld, \"limit_bytes\": %lld, \"status\": \"%s\"",
                  k ? ", " : "", (long long)(point->multiple / ZB_MILLION),
                  (long long)(point->multiple % ZB_MILLION), (long long)point->limit_bytes,
                  zb_status_word(point->status));
    if (point->cost_ns > 0) zb_text_print(out, ", \"cost_ns\": %lld", (long long)point->cost_ns);
    if (fits(point))
      zb_text_print(out, ", \"bound_ns\": %lld, \"gap\": %.6f, \"bubble_bound\": %.6f",
                    (long long)point->bound_ns, point->gap, point->bubble_bound);
    if (point->cost_ns > 0)
      zb_text_print(out, ", \"bubble_rate\": %.6f, \"most_peak_bytes\": %lld", point->bubble_rate,
                    (long long)point->most_bytes);
    zb_text_print(out, ", \"seconds\": %.6f}", point->seconds);
  }
  zb_text_put(out, "]");
}

static void print_json(const struct zb_frontier *frontier, struct zb_text *out) {
  zb_text_print(out, "{\"method\": \"%s\", \"objective\": \"%s\", \"unit_bytes\": %lld, ", frontier->method,
                zb_objective_word(frontier->objective), (long long)frontier->unit_bytes);
  print_json_points(frontier, out);
  zb_text_put(out, "}\n");
}

// Several curves: what wins at each limit, and the bubble of each curve there.

static void name_curve(const struct zb_frontier *curve, char *name, size_t size) {
  char place[ZB_PLACE_TEXT];
  snprintf(name, size, "%s on %s", curve->method, zb_place_text(curve->placement, curve->chunks, place));
}

static void print_best(const struct zb_frontiers *all, int k, const struct zb_unit *unit,
                       struct zb_table *table) {
  const struct zb_frontier *curve = &all->curve[all->best[k] < 0 ? 0 : all->best[k]];
  const struct zb_frontier_point *point = &curve->points[k];
  char text[ZB_QUANTITY_TEXT], name[CURVE_NAME] = "-";
  const bool any = all->best[k] >= 0;
  if (any) name_curve(curve, name, sizeof name);
  zb_table_cell(table, "%s", zb_multiple_text(point->multiple, text));
  zb_table_cell(table, "%s", zb_bytes_text(point->limit_bytes, text));
  zb_table_cell(table, "%s", name);
  zb_table_cell(table, "%s", zb_status_word(point->status));
  zb_table_cell(table, "%s", any ? zb_time_in(point->cost_ns, unit, text) : "-");
  zb_table_cell(table, "%s", any ? zb_time_in(point->bound_ns, unit, text) : "-");
  zb_table_cell(table, "%s", any ? zb_percent_text(point->gap, text) : "-");
  zb_table_cell(table, "%s", any ? zb_bytes_text(point->most_bytes, text) : "-");
  for (int a = 0; a < all->count && a < MOST_CURVES; a++) {
    const struct zb_frontier_point *other = &all->curve[a].points[k];
    zb_table_cell(table, "%s", fits(other) ? zb_percent_text(other->bubble_rate, text) : "-");
  }
}

// Who wins, from which limit to which.
static void print_winners(const struct zb_frontiers *all, struct zb_text *out) {
  const struct zb_frontier_point *points = all->curve[0].points;
  const int count = all->curve[0].count;
  char from[ZB_QUANTITY_TEXT], to[ZB_QUANTITY_TEXT], name[CURVE_NAME];
  const char *separator = "\nBest: ";
  for (int first = 0, last; first < count; first = last + 1) {
    for (last = first; last + 1 < count && all->best[last + 1] == all->best[first];) last++;
    zb_multiple_text(points[first].multiple, from);
    zb_multiple_text(points[last].multiple, to);
    if (all->best[first] < 0)
      snprintf(name, sizeof name, "nothing fits");
    else
      name_curve(&all->curve[all->best[first]], name, sizeof name);
    zb_text_print(out, "%s%s%s%s%s %s", separator, first < last ? "from " : "at ", from,
                  first < last ? " to " : "", first < last ? to : "", name);
    separator = "; ";
  }
  zb_text_put(out, ".\n");
}

static void print_tables(const struct zb_frontiers *all, struct zb_text *out) {
  struct zb_column wide[ZB_TABLE_COLUMNS] = {{"limit", true},   {"bytes", true}, {"best", false},
                                             {"status", false}, {"cost", true},  {"bound", true},
                                             {"gap", true},     {"peak", true}};
  char name[MOST_CURVES][CURVE_NAME], text[ZB_QUANTITY_TEXT];
  const struct zb_frontier *first = &all->curve[0];
  struct zb_table table = {.columns = wide, .count = BEFORE_CURVES};
  int64_t largest = 0;
  for (int a = 0; a < all->count; a++)
    for (int k = 0; k < first->count; k++) largest = zb_max(largest, all->curve[a].points[k].cost_ns);
  for (int a = 0; a < all->count && a < MOST_CURVES; a++) {
    name_curve(&all->curve[a], name[a], CURVE_NAME);
    wide[table.count++] = (struct zb_column){name[a], true};
  }
  const struct zb_unit *unit = zb_time_unit_for(largest);
  zb_text_print(out, "%s: %d devices, %d microbatches; cost is the %s, times in %s; bubble of each curve\n",
                first->name ? first->name : "profile", first->devices, first->microbatches,
                zb_objective_word(first->objective), unit->word);
  zb_text_print(out, "1x is %s: %d times the activation of one microbatch, static memory excluded\n\n",
                zb_bytes_text(first->unit_bytes, text), first->devices);
  for (int k = 0; k < first->count; k++) print_best(all, k, unit, &table);
  zb_table_print(&table, 0, out);
  zb_table_free(&table);
  print_winners(all, out);
}

static void print_json_all(const struct zb_frontiers *all, struct zb_text *out) {
  const struct zb_frontier *first = &all->curve[0];
  zb_text_print(out, "{\"objective\": \"%s\", \"unit_bytes\": %lld, \"curves\": [",
                zb_objective_word(first->objective), (long long)first->unit_bytes);
  for (int a = 0; a < all->count; a++) {
    const struct zb_frontier *curve = &all->curve[a];
    zb_text_print(out, "%s{\"method\": \"%s\", \"placement\": \"%s\", \"chunks\": %d, \"comm_count\": %lld, ",
                  a ? ", " : "", curve->method, zb_placement_word(curve->placement), curve->chunks,
                  (long long)curve->comm_count);
    print_json_points(curve, out);
    zb_text_put(out, "}");
  }
  zb_text_put(out, "], \"best\": [");
  for (int k = 0; k < first->count; k++) {
    const int best = all->best[k];
    zb_text_put(out, k ? ", " : "");
    if (best < 0)
      zb_text_put(out, "null");
    else
      zb_text_print(out, "{\"curve\": %d, \"method\": \"%s\", \"placement\": \"%s\"}", best,
                    all->curve[best].method, zb_placement_word(all->curve[best].placement));
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

static enum zb_status write_chart(const char *path, const struct zb_frontiers *frontiers,
                                  struct zb_error *error) {
  struct zb_text text = {0};
  zb_frontier_print_svg(frontiers, &text);
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

// One curve unless --methods or --placements asks for several.
static bool asks_for_several(const struct zb_options *options) {
  return options->methods || options->placements;
}

static enum zb_status check_methods(const struct zb_options *options, struct zb_error *error) {
  if (options->methods && strcmp(options->method, "auto") != 0)
    return zb_fail(error, ZB_BAD_INPUT, "--method and --methods: one of them");
  return ZB_OK;
}

static enum zb_status list_entries(const struct zb_options *options, const struct zb_profile *profile,
                                   struct zb_entries *entries, struct zb_error *error) {
  struct zb_entry_request request = {.placements = options->placements, .chunks = options->chunks};
  request.methods = options->methods ? options->methods : options->method;
  enum zb_status status = zb_entries_list(profile, &request, entries, error);
  if (status != ZB_OK || asks_for_several(options)) return status;
  struct zb_entry *only = &entries->entry[0];
  status = zb_method_where(only->engine, profile, options->chunks, &only->placement, &only->chunks, error);
  if (status != ZB_OK) zb_entries_free(entries);
  return status;
}

static enum zb_status run(const struct zb_options *options, int64_t start_ns, struct zb_frontiers *frontiers,
                          struct zb_error *error) {
  struct zb_profile *profile = NULL;
  struct zb_entries entries = {0};
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  const struct zb_frontier_range range = {options->from, options->to, options->step};
  enum zb_status status = zb_method_profile(options, &profile, error);
  if (status != ZB_OK) return status;
  int64_t unit_bytes = zb_limit_unit(profile);
  if (unit_bytes == 0) {
    status = zb_fail(error, ZB_BAD_INPUT, "memory: no forward keeps any, a limit would change nothing");
    zb_error_set_path(error, options->operand);
  }
  if (status == ZB_OK) status = list_entries(options, profile, &entries, error);
  if (status == ZB_OK) {
    zb_progress_start(&progress, options, start_ns, &problem);
    status = zb_frontiers_run(&entries, profile, &problem, unit_bytes, range, &progress, frontiers, error);
    zb_progress_end(&progress);
  }
  zb_entries_free(&entries);
  zb_profile_free(profile);
  return status;
}

enum zb_status zb_command_frontier(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                   struct zb_error *error) {
  const struct zb_engine *engine;
  struct zb_frontiers all = {.count = 0};
  enum zb_status status = zb_engine_find(options->method, strlen(options->method), &engine, error);
  if (status == ZB_OK) status = check_methods(options, error);
  if (status == ZB_OK) status = check_range(options, error);
  if (status == ZB_OK) status = check_output(options, error);
  if (status == ZB_OK) status = run(options, start_ns, &all, error);
  if (status != ZB_OK) return status;
  if (asks_for_several(options))
    (options->json ? print_json_all : print_tables)(&all, out);
  else
    (options->json ? print_json : print_table)(&all.curve[0], out);
  if (options->output) status = write_chart(options->output, &all, error);
  zb_frontiers_free(&all);
  return status;
}
