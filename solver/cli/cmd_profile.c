// cmd_profile.c - a profile from what a training run left: traces, logs, a table of times.
//
// Without -o the profile is the result; with it the result is a table of what was measured, and how much the
// samples spread. What looks odd goes to stderr, or into the object of --json.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cli/answer_text.h"
#include "solver/cli/commands.h"
#include "solver/cli/quantity.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/measured_formats.h"
#include "solver/io/profile_json.h"
#include "solver/io/table.h"
#include "solver/model/number.h"

static enum zb_status find_format(const char *name, const struct zb_measured_format **format,
                                  struct zb_error *error) {
  const char *names[ZB_FORMATS_MOST];
  int count = zb_measured_format_count(), found = 0;
  assert(count <= ZB_FORMATS_MOST);
  *format = NULL;
  if (!name) return ZB_OK;
  for (int k = 0; k < count; k++) names[k] = zb_measured_format_at(k)->name;
  enum zb_status status = zb_format_find(ZB_COMMAND_PROFILE, "--from", name, names, count, &found, error);
  if (status == ZB_OK) *format = zb_measured_format_at(found);
  return status;
}

// "0.6ms" in ns; -1 where nothing was given.
static enum zb_status read_comm(const char *text, int64_t *ns, struct zb_error *error) {
  char number[48], list[ZB_UNIT_LIST];
  *ns = -1;
  if (!text) return ZB_OK;
  const size_t length = strspn(text, "+-.0123456789");
  if (length == 0 || length >= sizeof number)
    return zb_fail(error, ZB_BAD_INPUT, "--comm: \"%s\" does not start with a number", text);
  memcpy(number, text, length);
  number[length] = '\0';
  const struct zb_unit *unit = zb_unit_find(zb_time_units, text + length + (text[length] == ' '));
  if (!unit)
    return zb_fail(error, ZB_BAD_INPUT, "--comm: \"%s\" has no unit of time (%s)", text,
                   zb_unit_list(zb_time_units, list));
  if (zb_decimal_parse(number, unit->scale, ns) != ZB_DECIMAL_OK || *ns < 0)
    return zb_fail(error, ZB_BAD_INPUT, "--comm: %s is no time of whole ns, at least 0", text);
  return ZB_OK;
}

// Every file has the format that --from names, or that the first one looks like.
static enum zb_status read_files(const struct zb_options *options, const struct zb_measured_format **format,
                                 struct zb_measurements *measurements, struct zb_error *error) {
  const struct zb_measured_hints hints = {(int)options->microbatches, (int)options->devices};
  enum zb_status status = ZB_OK;
  for (int k = 0; k < options->operand_count && status == ZB_OK; k++) {
    struct zb_text text = {0};
    status = zb_measured_file_read(options->operands[k], &text, error);
    const char *bytes = text.data ? text.data : "";
    if (status == ZB_OK && !*format) status = zb_measured_format_guess(bytes, text.size, format, error);
    if (status == ZB_OK) status = (*format)->read(bytes, text.size, &hints, measurements, error);
    if (status != ZB_OK) zb_error_set_path(error, options->operands[k]);
    zb_text_free(&text);
  }
  return status;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return strcmp(path, "-") == 0 ? "stdin" : slash ? slash + 1 : path;
}

// "torch-trace: rank0.json.gz and 7 more"
static void name_source(const struct zb_options *options, const struct zb_measured_format *format,
                        struct zb_text *source) {
  zb_text_print(source, "%s: %s", format->name, base_name(options->operand));
  if (options->operand_count > 1) zb_text_print(source, " and %d more", options->operand_count - 1);
}

static double spread(const struct zb_measured_row *row) {
  return row->value > 0 ? (double)(row->high - row->low) / (double)row->value : 0.0;
}

static bool is_time(const struct zb_measured_row *row) { return row->measure <= ZB_MEASURE_COMM_BACKWARD; }

static void print_table(const struct zb_measured *measured, struct zb_text *out) {
  static const struct zb_column columns[] = {{"stage", true}, {"what", false},  {"samples", true},
                                             {"value", true}, {"spread", true}, {"least", true},
                                             {"most", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  char text[ZB_QUANTITY_TEXT];
  for (size_t k = 0; k < measured->row_count; k++) {
    const struct zb_measured_row *row = &measured->rows[k];
    const char *(*shown)(int64_t, char *) = is_time(row) ? zb_time_text : zb_bytes_text;
    zb_table_cell(&table, "%d", row->stage);
    zb_table_cell(&table, "%s", zb_measure_word(row->measure));
    zb_table_cell(&table, "%zu", row->samples);
    zb_table_cell(&table, "%s", shown(row->value, text));
    zb_table_cell(&table, "%s", zb_percent_text(spread(row), text));
    zb_table_cell(&table, "%s", shown(row->least, text));
    zb_table_cell(&table, "%s", shown(row->most, text));
  }
  zb_text_print(
      out,
      "%d devices, %s, %d microbatches; value: median (of messages in traces the shortest); spread: of the "
      "middle half\n\n",
      measured->profile->devices, zb_placement_word(measured->profile->placement),
      measured->profile->microbatches);
  zb_table_print(&table, 0, out);
  zb_table_free(&table);
}

static void print_warnings(const char *warnings) {
  for (const char *line = warnings; line && *line; line = strchr(line, '\n') + 1)
    fprintf(stderr, "warning: %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_json(const struct zb_options *options, const struct zb_measured *measured,
                       const struct zb_text *profile, struct zb_text *out) {
  zb_text_put(out, options->output ? "{\"file\": " : "{\"profile\": ");
  if (options->output)
    zb_json_print_string(options->output, out);
  else
    zb_text_add(out, profile->data, profile->size - 1); // without its line break
  zb_text_put(out, ", \"rows\": [");
  for (size_t k = 0; k < measured->row_count; k++) {
    const struct zb_measured_row *row = &measured->rows[k];
    zb_text_print(out, "%s{\"stage\": %d, \"what\": \"%s\", \"samples\": %zu", k ? ", " : "", row->stage,
                  zb_measure_word(row->measure), row->samples);
    const char *unit = is_time(row) ? "ns" : "bytes";
    zb_text_print(out, ", \"value_%s\": %lld, \"spread\": %.6f, \"least_%s\": %lld, \"most_%s\": %lld}", unit,
                  (long long)row->value, spread(row), unit, (long long)row->least, unit,
                  (long long)row->most);
  }
  zb_text_put(out, "], \"warnings\": [");
  const char *separator = "";
  struct zb_text warning = {0};
  for (const char *line = measured->warnings.data; line && *line; line = strchr(line, '\n') + 1) {
    zb_text_clear(&warning);
    zb_text_add(&warning, line, strcspn(line, "\n"));
    zb_text_put(out, separator);
    if (!warning.failed) zb_json_print_string(warning.data, out);
    out->failed = out->failed || warning.failed;
    separator = ", ";
  }
  zb_text_free(&warning);
  zb_text_put(out, "]}\n");
}

static enum zb_status deliver(const struct zb_options *options, const struct zb_measured *measured,
                              struct zb_text *out, struct zb_error *error) {
  struct zb_text profile = {0};
  zb_profile_print(measured->profile, 0, &profile);
  zb_text_put(&profile, "\n");
  enum zb_status status = zb_text_status(&profile, error);
  if (status == ZB_OK && options->output) status = zb_file_write(options->output, &profile, error);
  if (status == ZB_OK && options->json) print_json(options, measured, &profile, out);
  if (status == ZB_OK && !options->json) {
    if (!options->output)
      zb_text_add(out, profile.data, profile.size);
    else if (!options->quiet)
      print_table(measured, out);
    if (!options->quiet) print_warnings(measured->warnings.data);
  }
  zb_text_free(&profile);
  return status;
}

enum zb_status zb_command_profile(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                  struct zb_error *error) {
  (void)start_ns;
  const struct zb_measured_format *format = NULL;
  struct zb_measurements measurements = {0};
  struct zb_measured measured = {0};
  struct zb_text source = {0};
  int64_t comm_ns = -1;
  enum zb_status status = find_format(options->source, &format, error);
  if (status == ZB_OK) status = read_comm(options->comm, &comm_ns, error);
  if (status == ZB_OK) status = zb_output_check(options, error);
  if (status == ZB_OK && options->output) status = zb_file_can_write(options->output, error);
  if (status == ZB_OK) status = read_files(options, &format, &measurements, error);
  if (status == ZB_OK) {
    name_source(options, format, &source);
    status = zb_text_status(&source, error);
  }
  if (status == ZB_OK) {
    const struct zb_measured_options how = {.name = base_name(options->operand),
                                            .source = source.data,
                                            .skip = (int)options->skip,
                                            .warms_up = format->warms_up,
                                            .microbatches = (int)options->microbatches,
                                            .comm_ns = comm_ns};
    status = zb_measurements_profile(&measurements, &how, &measured, error);
    if (status != ZB_OK) zb_error_set_path(error, options->operand);
  }
  if (status == ZB_OK) status = deliver(options, &measured, out, error);
  zb_text_free(&source);
  zb_measured_free(&measured);
  zb_measurements_free(&measurements);
  return status;
}
