// cmd_compare.c - every method side by side, one bound a placement, and a verdict.
#include <stdio.h>
#include <string.h>

#include "solver/cli/commands.h"
#include "solver/cli/compare.h"
#include "solver/cli/method.h"
#include "solver/io/json.h"
#include "solver/io/table.h"
#include "solver/model/number.h"

// The columns before and after those of the other objectives, which are there for the two that are not the
// cost.
enum { BEFORE = 8, AFTER = 4, COLUMNS = BEFORE + ZB_OBJECTIVE_COUNT - 1 + AFTER };

static void set_columns(enum zb_objective objective, struct zb_column *columns) {
  static const struct zb_column before[BEFORE] = {{"", false},       {"method", false}, {"placement", false},
                                                  {"status", false}, {"cost", true},    {"bound", true},
                                                  {"gap", true},     {"bubble", true}};
  static const struct zb_column after[AFTER] = {
      {"peak", true}, {"messages", true}, {"sends", true}, {"seconds", true}};
  memcpy(columns, before, sizeof before);
  columns += BEFORE;
  for (int k = 0; k < ZB_OBJECTIVE_COUNT; k++)
    if (k != (int)objective) *columns++ = (struct zb_column){zb_objective_word((enum zb_objective)k), true};
  memcpy(columns, after, sizeof after);
}

static void print_time(bool exists, int64_t ns, const struct zb_unit *unit, struct zb_table *table) {
  char text[ZB_QUANTITY_TEXT];
  zb_table_cell(table, "%s", exists ? zb_time_in(ns, unit, text) : "-");
}

static void print_row(const struct zb_compare *compare, int index, const struct zb_unit *unit,
                      struct zb_table *table) {
  const struct zb_compare_row *row = &compare->rows[index];
  const int64_t times[ZB_OBJECTIVE_COUNT] = {row->span_ns, row->makespan_ns, row->period_ns};
  char text[ZB_QUANTITY_TEXT], place[ZB_PLACE_TEXT];
  bool drawn = row->peak_bytes != NULL, fits = drawn && row->status != ZB_OVER_LIMIT;
  zb_table_cell(table, "%s", index == compare->best ? "*" : "");
  zb_table_cell(table, "%s", row->method);
  zb_table_cell(table, "%s", zb_place_text(row->placement, row->chunks, place));
  zb_table_cell(table, "%s", zb_status_word(row->status));
  print_time(drawn, row->cost_ns, unit, table);
  print_time(row->bound_ns > 0, row->bound_ns, unit, table);
  zb_table_cell(table, "%s", fits ? zb_percent_text(row->gap, text) : "-");
  zb_table_cell(table, "%s", drawn ? zb_percent_text(row->bubble_rate, text) : "-");
  for (int k = 0; k < ZB_OBJECTIVE_COUNT; k++)
    if (k != (int)compare->objective) print_time(drawn, times[k], unit, table);
  zb_table_cell(table, "%s", drawn && compare->has_memory ? zb_bytes_text(row->most_bytes, text) : "-");
  zb_table_cell(table, "%lld", (long long)row->comm_count);
  zb_table_cell(table, "%d", row->most_sends);
  zb_table_cell(table, "%.3f", row->seconds);
}

static void print_table(const struct zb_compare *compare, struct zb_text *out) {
  struct zb_column columns[COLUMNS];
  struct zb_table table = {.columns = columns, .count = COLUMNS};
  int64_t largest = 0;
  set_columns(compare->objective, columns);
  for (int k = 0; k < compare->count; k++) largest = zb_max(largest, compare->rows[k].makespan_ns);
  const struct zb_unit *unit = zb_time_unit_for(largest);
  zb_text_print(out, "%s: %d devices, %d microbatches; cost is the %s",
                compare->name ? compare->name : "profile", compare->devices, compare->microbatches,
                zb_objective_word(compare->objective));
  if (largest) zb_text_print(out, ", times in %s", unit->word);
  zb_text_put(out, "\n\n");
  for (int k = 0; k < compare->count; k++) print_row(compare, k, unit, &table);
  zb_table_print(&table, 0, out);
  zb_table_free(&table);
  zb_text_print(out, "\n%s", compare->verdict);
}

// What does not exist is left out, as in a schedule file.
static void print_json_row(const struct zb_compare_row *row, int devices, struct zb_text *out) {
  zb_text_print(out, "{\"method\": \"%s\", \"status\": \"%s\", \"placement\": \"%s\", \"chunks\": %d",
                row->method, zb_status_word(row->status), zb_placement_word(row->placement), row->chunks);
  if (row->peak_bytes) zb_text_print(out, ", \"cost_ns\": %lld", (long long)row->cost_ns);
  if (row->bound_ns > 0) zb_text_print(out, ", \"bound_ns\": %lld", (long long)row->bound_ns);
  if (row->peak_bytes) {
    if (row->status != ZB_OVER_LIMIT) zb_text_print(out, ", \"gap\": %.6f", row->gap);
    zb_text_print(
        out, ", \"bubble_rate\": %.6f, \"span_ns\": %lld, \"makespan_ns\": %lld, \"period_ns\": %lld",
        row->bubble_rate, (long long)row->span_ns, (long long)row->makespan_ns, (long long)row->period_ns);
    zb_text_put(out, ", \"peak_bytes\": [");
    for (int d = 0; d < devices; d++)
      zb_text_print(out, "%s%lld", d ? ", " : "", (long long)row->peak_bytes[d]);
    zb_text_put(out, "]");
  }
  zb_text_print(out, ", \"comm_count\": %lld, \"sends\": [", (long long)row->comm_count);
  for (int d = 0; d < devices; d++) zb_text_print(out, "%s%d", d ? ", " : "", row->sends[d]);
  zb_text_print(out, "], \"seconds\": %.6f}", row->seconds);
}

static void print_json(const struct zb_compare *compare, struct zb_text *out) {
  zb_text_put(out, "{\"rows\": [");
  for (int k = 0; k < compare->count; k++) {
    if (k) zb_text_put(out, ", ");
    print_json_row(&compare->rows[k], compare->devices, out);
  }
  zb_text_put(out, "]");
  if (compare->best >= 0) {
    const struct zb_compare_row *best = &compare->rows[compare->best];
    zb_text_print(out, ", \"best\": \"%s\", \"best_placement\": \"%s\", \"causes\": [", best->method,
                  zb_placement_word(best->placement));
    const char *separator = "";
    for (int k = 0; k < ZB_CAUSE_COUNT; k++) {
      if (!compare->binds.causes[k].known) continue;
      zb_text_print(out, "%s{\"cause\": \"%s\", \"saving\": %.6f}", separator,
                    zb_cause_word(compare->binds.causes[k].kind), compare->binds.causes[k].saving);
      separator = ", ";
    }
    zb_text_put(out, "]");
  }
  if (compare->rival.method)
    zb_text_print(out,
                  ", \"same_memory\": {\"method\": \"%s\", \"cost_ns\": %lld, \"auto_cost_ns\": %lld, "
                  "\"bound_ns\": %lld}",
                  compare->rival.method, (long long)compare->rival.method_ns,
                  (long long)compare->rival.auto_ns, (long long)compare->rival.bound_ns);
  zb_text_put(out, ", \"verdict\": ");
  zb_json_print_lines(compare->verdict, out);
  zb_text_put(out, "}\n");
}

// The question is answered where a schedule fits, and also where none of these methods has one that does.
static enum zb_status conclusion(const struct zb_compare *compare) {
  if (compare->best >= 0) return ZB_OK;
  if (compare->reason.least_peak_bytes > 0) return ZB_INFEASIBLE;
  return compare->rows[compare->count - 1].status == ZB_UNKNOWN ? ZB_UNKNOWN : ZB_OK;
}

enum zb_status zb_command_compare(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                  struct zb_error *error) {
  struct zb_profile *profile = NULL;
  struct zb_compare compare = {.best = -1};
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  const struct zb_entry_request request = {options->methods, options->placements, options->chunks, true};
  enum zb_status status = zb_method_profile(options, &profile, error);
  if (status != ZB_OK) return status;
  zb_progress_start(&progress, options, start_ns, &problem);
  status = zb_compare_run(profile, &problem, &request, &progress, &compare, error);
  zb_progress_end(&progress);
  zb_profile_free(profile);
  if (status != ZB_OK) return status;

  if (options->json)
    print_json(&compare, out);
  else
    print_table(&compare, out);
  status = conclusion(&compare);
  zb_compare_free(&compare);
  return status;
}
