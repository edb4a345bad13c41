// cmd_tune.c - one model cut in several ways, ranked.
#include <stdlib.h>
#include <string.h>

#include "solver/cli/cause.h"
#include "solver/cli/commands.h"
#include "solver/cli/method.h"
#include "solver/cli/tune.h"
#include "solver/io/json.h"
#include "solver/io/table.h"
#include "solver/model/number.h"

static const struct zb_column columns[] = {
    {"", false},          {"profile", false}, {"devices", true}, {"microbatches", true}, {"samples", true},
    {"placement", false}, {"status", false},  {"cost", true},    {"samples/s", true},    {"at most", true},
    {"bubble", true},     {"peak", true},     {"binds", false},
};

// The largest cause where it is one; what does not fit is explained below the table.
static void print_binds(const struct zb_tune_row *row, struct zb_table *table) {
  const struct zb_cause *cause = &row->binds.causes[0];
  char saving[ZB_QUANTITY_TEXT];
  if (row->why)
    zb_table_cell(table, "memory");
  else if (row->status == ZB_UNKNOWN)
    zb_table_cell(table, "time");
  else if (cause->known && cause->saving >= ZB_NOTABLE_SAVING)
    zb_table_cell(table, "%s %s", zb_cause_word(cause->kind), zb_percent_text(cause->saving, saving));
  else
    zb_table_cell(table, "-");
}

static void print_row(const struct zb_tune *tune, int index, const struct zb_unit *unit,
                      struct zb_table *table) {
  const struct zb_tune_row *row = &tune->rows[index];
  char text[ZB_QUANTITY_TEXT], place[ZB_PLACE_TEXT];
  const bool drawn = row->cost_ns > 0, fits = row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE;
  zb_table_cell(table, "%s", index == tune->best ? "*" : "");
  zb_table_cell(table, "%s", row->path);
  zb_table_cell(table, "%d", row->devices);
  zb_table_cell(table, "%d", row->microbatches);
  zb_table_cell(table, "%lld", (long long)row->samples);
  zb_table_cell(table, "%s", zb_place_text(row->placement, row->chunks, place));
  zb_table_cell(table, "%s", zb_status_word(row->status));
  zb_table_cell(table, "%s", drawn ? zb_time_in(row->cost_ns, unit, text) : "-");
  if (drawn)
    zb_table_cell(table, "%.3f", row->rate);
  else
    zb_table_cell(table, "-");
  if (fits)
    zb_table_cell(table, "%.3f", row->most_rate);
  else
    zb_table_cell(table, "-");
  zb_table_cell(table, "%s", drawn ? zb_percent_text(row->bubble_rate, text) : "-");
  zb_table_cell(table, "%s", drawn ? zb_bytes_text(row->most_bytes, text) : "-");
  print_binds(row, table);
}

static void print_table(const struct zb_tune *tune, struct zb_text *out) {
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  int64_t largest = 0;
  for (int k = 0; k < tune->count; k++) largest = zb_max(largest, tune->rows[k].cost_ns);
  const struct zb_unit *unit = zb_time_unit_for(largest);
  zb_text_print(out, "Samples a second by method %s; cost is the %s", tune->rows[0].method,
                zb_objective_word(tune->objective));
  if (largest) zb_text_print(out, ", times in %s", unit->word);
  zb_text_put(out, "\n\n");
  for (int k = 0; k < tune->count; k++) print_row(tune, k, unit, &table);
  zb_table_print(&table, 0, out);
  zb_table_free(&table);
  zb_text_print(out, "\n%s", tune->verdict);
  for (const char *line = tune->warnings; *line; line += strcspn(line, "\n") + 1)
    zb_text_print(out, "Note: %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_json_row(const struct zb_tune_row *row, struct zb_text *out) {
  const bool fits = row->status == ZB_OPTIMAL || row->status == ZB_FEASIBLE;
  zb_text_put(out, "{\"profile\": ");
  zb_json_print_string(row->path, out);
  zb_text_print(
      out,
      ", \"method\": \"%s\", \"status\": \"%s\", \"placement\": \"%s\", \"chunks\": %d, \"devices\": "
      "%d, \"microbatches\": %d, \"samples\": %lld",
      row->method, zb_status_word(row->status), zb_placement_word(row->placement), row->chunks, row->devices,
      row->microbatches, (long long)row->samples);
  if (row->cost_ns > 0)
    zb_text_print(
        out, ", \"cost_ns\": %lld, \"samples_per_s\": %.6f, \"bubble_rate\": %.6f, \"most_peak_bytes\": %lld",
        (long long)row->cost_ns, row->rate, row->bubble_rate, (long long)row->most_bytes);
  if (fits)
    zb_text_print(out, ", \"bound_ns\": %lld, \"gap\": %.6f, \"most_samples_per_s\": %.6f",
                  (long long)row->bound_ns, row->gap, row->most_rate);
  if (row->status == ZB_INFEASIBLE)
    zb_text_print(out, ", \"reason\": {\"device\": %d, \"limit_bytes\": %lld, \"least_peak_bytes\": %lld}",
                  row->reason.device, (long long)row->reason.limit_bytes,
                  (long long)row->reason.least_peak_bytes);
  zb_text_put(out, ", \"causes\": [");
  const char *separator = "";
  for (int k = 0; k < ZB_CAUSE_COUNT; k++) {
    if (!row->binds.causes[k].known) continue;
    zb_text_print(out, "%s{\"cause\": \"%s\", \"saving\": %.6f}", separator,
                  zb_cause_word(row->binds.causes[k].kind), row->binds.causes[k].saving);
    separator = ", ";
  }
  zb_text_print(out, "], \"seconds\": %.6f}", row->seconds);
}

static void print_json(const struct zb_tune *tune, struct zb_text *out) {
  zb_text_print(out, "{\"objective\": \"%s\", \"rows\": [", zb_objective_word(tune->objective));
  for (int k = 0; k < tune->count; k++) {
    zb_text_put(out, k ? ", " : "");
    print_json_row(&tune->rows[k], out);
  }
  zb_text_put(out, "]");
  if (tune->best >= 0) {
    zb_text_put(out, ", \"best\": ");
    zb_json_print_string(tune->rows[tune->best].path, out);
  }
  zb_text_put(out, ", \"warnings\": ");
  zb_json_print_lines(tune->warnings, out);
  zb_text_put(out, ", \"verdict\": ");
  zb_json_print_lines(tune->verdict, out);
  zb_text_put(out, "}\n");
}

// All profiles are read before any is solved: a bad one is an error, not a row.
static enum zb_status read_candidates(const struct zb_options *options, struct zb_profile **profiles,
                                      struct zb_entries *entries, struct zb_candidate *candidates,
                                      struct zb_error *error) {
  const struct zb_entry_request request = {options->method, options->placements, options->chunks, false};
  enum zb_status status = ZB_OK;
  for (int k = 0; k < options->operand_count && status == ZB_OK; k++) {
    status = zb_method_profile_at(options, options->operands[k], &profiles[k], error);
    if (status == ZB_OK) status = zb_entries_list(profiles[k], &request, &entries[k], error);
    candidates[k] = (struct zb_candidate){options->operands[k], profiles[k], &entries[k]};
  }
  return status;
}

static enum zb_status conclusion(const struct zb_tune *tune) {
  if (tune->best >= 0) return ZB_OK;
  for (int k = 0; k < tune->count; k++)
    if (tune->rows[k].status != ZB_INFEASIBLE) return ZB_UNKNOWN;
  return ZB_INFEASIBLE;
}

enum zb_status zb_command_tune(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                               struct zb_error *error) {
  const size_t count = (size_t)options->operand_count;
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_progress progress;
  struct zb_tune tune = {.best = -1};
  struct zb_profile **profiles = calloc(count, sizeof *profiles);
  struct zb_entries *entries = calloc(count, sizeof *entries);
  struct zb_candidate *candidates = calloc(count, sizeof *candidates);
  enum zb_status status = profiles && entries && candidates ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = read_candidates(options, profiles, entries, candidates, error);
  if (status == ZB_OK) {
    zb_progress_start(&progress, options, start_ns, &problem);
    status = zb_tune_run(candidates, options->operand_count, &problem, &progress, &tune, error);
    zb_progress_end(&progress);
  }
  if (status == ZB_OK) {
    (options->json ? print_json : print_table)(&tune, out);
    status = conclusion(&tune);
  }
  zb_tune_free(&tune);
  for (size_t k = 0; k < count; k++) {
    if (profiles) zb_profile_free(profiles[k]);
    if (entries) zb_entries_free(&entries[k]);
  }
  free(candidates);
  free(entries);
  free(profiles);
  return status;
}
