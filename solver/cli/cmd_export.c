// cmd_export.c - a schedule in other people's formats.
//
// The file goes to -o or stdout; the settings that must go with it and the writer's notes go to stderr as
// comments, or into the object of --json.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "solver/cli/answer_text.h"
#include "solver/cli/commands.h"
#include "solver/cli/report_data.h"
#include "solver/io/export.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/check.h"

static enum zb_status find_format(const char *name, const struct zb_export_format **format,
                                  struct zb_error *error) {
  const char *names[ZB_FORMATS_MOST];
  int count = zb_export_format_count(), found = 0;
  assert(count <= ZB_FORMATS_MOST);
  for (int k = 0; k < count; k++) names[k] = zb_export_format_at(k)->name;
  enum zb_status status = zb_format_find(ZB_COMMAND_EXPORT, "--to", name, names, count, &found, error);
  if (status == ZB_OK) *format = zb_export_format_at(found);
  return status;
}

// An option that would change nothing is a misunderstanding.
static enum zb_status expect_used(const struct zb_options *options, const struct zb_export_format *format,
                                  struct zb_error *error) {
  const struct {
    const char *name, *takers;
    bool given;
    unsigned use;
  } all[] = {
      {"--target", "torch-csv and torch-comms-csv", options->target >= 0, ZB_EXPORT_TARGET},
      {"--layers", "megatron-layout", options->layers > 0, ZB_EXPORT_LAYERS},
      {"--only-schedule", "html", options->only_schedule, ZB_EXPORT_COMPARE},
  };
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (all[k].given && !(format->uses & all[k].use))
      return zb_fail(error, ZB_BAD_INPUT, "%s says nothing about %s, only about %s", all[k].name,
                     format->name, all[k].takers);
  return ZB_OK;
}

static void print_comments(const struct zb_export_output *output) {
  for (int k = 0; k < output->setting_count; k++) {
    const struct zb_export_setting *s = &output->settings[k];
    fprintf(stderr, "# %s: %s = %s\n", s->framework, s->key, s->value);
  }
  for (const char *line = output->notes.data; line && *line; line = strchr(line, '\n') + 1)
    fprintf(stderr, "# %.*s\n", (int)strcspn(line, "\n"), line);
}

// Without a file to write to, the object holds the text itself.
static void print_json(const struct zb_options *options, const struct zb_export_output *output,
                       struct zb_text *out) {
  zb_text_print(out, "{\"format\": \"%s\", ", options->format);
  zb_text_put(out, options->output ? "\"file\": " : "\"text\": ");
  zb_json_print_string(options->output ? options->output : output->text.data, out);
  zb_text_put(out, ", \"settings\": [");
  for (int k = 0; k < output->setting_count; k++) {
    const struct zb_export_setting *s = &output->settings[k];
    zb_text_print(out, "%s{\"framework\": \"%s\", \"key\": \"%s\", \"value\": ", k ? ", " : "", s->framework,
                  s->key);
    zb_json_print_string(s->value, out);
    zb_text_put(out, "}");
  }
  zb_text_put(out, "], \"notes\": [");
  const char *separator = "";
  struct zb_text note = {0};
  for (const char *line = output->notes.data; line && *line; line = strchr(line, '\n') + 1) {
    zb_text_clear(&note);
    zb_text_add(&note, line, strcspn(line, "\n"));
    zb_text_put(out, separator);
    if (note.failed)
      out->failed = true;
    else
      zb_json_print_string(note.data, out);
    separator = ", ";
  }
  zb_text_free(&note);
  zb_text_put(out, "]}\n");
}

static enum zb_status deliver(const struct zb_options *options, const struct zb_export_output *output,
                              struct zb_text *out, struct zb_error *error) {
  enum zb_status status = zb_text_status(&output->notes, error);
  if (status == ZB_OK && options->output) status = zb_file_write(options->output, &output->text, error);
  if (status != ZB_OK) return status;
  if (options->json) {
    print_json(options, output, out);
    return ZB_OK;
  }
  if (!options->output) zb_text_add(out, output->text.data, output->text.size);
  if (!options->quiet) print_comments(output);
  return ZB_OK;
}

enum zb_status zb_command_export(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                 struct zb_error *error) {
  const struct zb_export_format *format = NULL;
  struct zb_answer answer = {0};
  struct zb_timeline timeline = {0};
  struct zb_report_data beside = {0};
  struct zb_export_output output = {0};
  enum zb_status status = find_format(options->format, &format, error);
  if (status == ZB_OK) status = expect_used(options, format, error);
  if (status == ZB_OK) status = zb_output_check(options, error);
  if (status == ZB_OK && options->output) status = zb_file_can_write(options->output, error);
  if (status != ZB_OK) return status;

  status = zb_answer_read(options->operand, &answer, error);
  if (status == ZB_OK) status = zb_answer_verify(&answer, error);
  if (status == ZB_OK && !answer.schedule)
    status =
        zb_fail(error, ZB_BAD_INPUT, "an %s answer has no schedule to export", zb_status_word(answer.status));
  if (status == ZB_OK) status = zb_check_schedule(answer.profile, answer.schedule, &timeline, error);
  if (status == ZB_OK && format->uses & ZB_EXPORT_COMPARE && !options->only_schedule)
    status = zb_report_data_compute(options, &answer, start_ns, &beside, error);
  if (status == ZB_OK) {
    const struct zb_export_input input = {
        .answer = &answer,
        .timeline = &timeline,
        .torch_minor = options->target < 0 ? ZB_TORCH_LAST_MINOR : options->target + ZB_TORCH_FIRST_MINOR,
        .layers = options->layers,
        .compare = beside.has_compare ? &beside.compare : NULL,
        .frontiers = beside.has_frontiers ? &beside.frontiers : NULL};
    status = format->write(&input, &output, error);
  }
  if (status != ZB_OK && !error->path[0]) zb_error_set_path(error, options->operand);
  if (status == ZB_OK) status = deliver(options, &output, out, error);
  zb_export_output_free(&output);
  zb_report_data_free(&beside);
  zb_timeline_free(&timeline);
  zb_answer_free(&answer);
  return status;
}
