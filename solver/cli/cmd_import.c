// cmd_import.c - a schedule from the formats of other programs: checked, timed against a profile, bounded.
//
// The bound is the closed form, or, from one of our own files for the same profile and objective, that file's
// once it has been redone. `solve --start` searches on from what import wrote.
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "solver/cli/answer_text.h"
#include "solver/cli/commands.h"
#include "solver/cli/method.h"
#include "solver/cli/redo_bound.h"
#include "solver/cli/write_answer.h"
#include "solver/io/file.h"
#include "solver/io/import.h"
#include "solver/io/profile_json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/bound.h"
#include "solver/model/check.h"

static enum zb_status find_format(const char *name, const struct zb_import_format **format,
                                  struct zb_error *error) {
  const char *names[ZB_FORMATS_MOST];
  int count = zb_import_format_count(), found = 0;
  assert(count <= ZB_FORMATS_MOST);
  for (int k = 0; k < count; k++) names[k] = zb_import_format_at(k)->name;
  enum zb_status status = zb_format_find(ZB_COMMAND_IMPORT, "--from", name, names, count, &found, error);
  if (status == ZB_OK) *format = zb_import_format_at(found);
  return status;
}

static enum zb_status read_profile(const struct zb_options *options, struct zb_profile **profile,
                                   struct zb_error *error) {
  struct zb_options about = *options;
  if (!options->profile) return zb_fail(error, ZB_BAD_INPUT, "import needs --profile PROFILE");
  about.operand = options->profile;
  return zb_method_profile(&about, profile, error);
}

// A peak above its limit makes it the wrong schedule for this profile. A span below the closed form is no
// contradiction (README, Words), but then that bound does not hold for it, and there is no other.
static enum zb_status check(const struct zb_imported *imported, enum zb_objective objective,
                            struct zb_error *error) {
  struct zb_timeline timeline = {0};
  enum zb_status status = zb_check_schedule(imported->placed, imported->schedule, &timeline, error);
  if (status == ZB_OVER_LIMIT) {
    char text[sizeof error->text];
    snprintf(text, sizeof text, "%.400s (--memory-limit none takes it without)", error->text);
    status = zb_fail(error, ZB_WRONG, "%s", text);
  } else if (status == ZB_OK) {
    const int64_t cost_ns = zb_timeline_cost(&timeline, objective),
                  bound_ns = zb_bound_closed_form(imported->placed, objective);
    if (cost_ns < bound_ns)
      status =
          zb_fail(error, ZB_BAD_INPUT,
                  "its devices begin with different microbatches, for which spans have no bound (%lld ns "
                  "is below %lld ns): --objective makespan or period",
                  (long long)cost_ns, (long long)bound_ns);
  }
  zb_timeline_free(&timeline);
  return status;
}

// What one of our own files says beyond its orders, where it says it of this profile and objective.
static enum zb_status read_claims(const struct zb_options *options, const struct zb_imported *imported,
                                  struct zb_answer *claims, bool *same, struct zb_error *error) {
  struct zb_text theirs = {0}, ours = {0};
  enum zb_status status = zb_answer_read(options->operand, claims, error);
  *same = false;
  if (status != ZB_OK) return status;
  zb_profile_print(claims->profile, 0, &theirs);
  zb_profile_print(imported->placed, 0, &ours);
  status = zb_text_status(&theirs, error);
  if (status == ZB_OK) status = zb_text_status(&ours, error);
  if (status == ZB_OK)
    *same = strcmp(theirs.data, ours.data) == 0 && claims->objective == (enum zb_objective)options->objective;
  zb_text_free(&theirs);
  zb_text_free(&ours);
  return status;
}

// Takes over the bound, and its proof where that is in the file, if both hold.
static void take_bound(const struct zb_options *options, struct zb_answer *claims, struct zb_result *result) {
  struct zb_error why = {0};
  const bool elsewhere = claims->proof && claims->proof[0] != '[';
  if (elsewhere || zb_answer_verify(claims, &why) != ZB_OK ||
      zb_redo_bound(claims, options->operand, &why) != ZB_OK)
    return;
  result->bound_ns = claims->bound_ns;
  result->proof = claims->proof;
  claims->proof = NULL;
}

static enum zb_status answer_of(const struct zb_options *options, const struct zb_import_format *format,
                                struct zb_imported *imported, int64_t start_ns, struct zb_answer *answer,
                                struct zb_error *error) {
  struct zb_answer claims = {0};
  bool same = false;
  struct zb_problem problem = zb_method_problem(options, start_ns);
  struct zb_result result;
  problem.profile = imported->placed;
  enum zb_status status = check(imported, problem.objective, error);
  if (status == ZB_OK && format->own && strcmp(options->operand, "-") != 0)
    status = read_claims(options, imported, &claims, &same, error);
  if (status == ZB_OK) {
    struct zb_schedule *schedule = imported->schedule;
    imported->schedule = NULL;
    status = zb_result_from_schedule(&problem, schedule, &result, error);
  }
  if (status == ZB_OK) {
    if (same) take_bound(options, &claims, &result);
    status = zb_answer_from_result(&problem, same ? claims.method : "import", &result, answer, error);
  }
  zb_answer_free(&claims);
  return status;
}

static void print_notes(const char *notes) {
  for (const char *line = notes; line && *line; line = strchr(line, '\n') + 1)
    fprintf(stderr, "# %.*s\n", (int)strcspn(line, "\n"), line);
}

enum zb_status zb_command_import(const struct zb_options *options, int64_t start_ns, struct zb_text *out,
                                 struct zb_error *error) {
  const struct zb_import_format *format = NULL;
  struct zb_profile *profile = NULL;
  struct zb_imported imported = {0};
  struct zb_answer answer = {0};
  enum zb_status status = find_format(options->source, &format, error);
  if (status == ZB_OK) status = zb_output_check(options, error);
  if (status == ZB_OK) status = zb_write_answer_check(options->output, NULL, error);
  if (status == ZB_OK) status = read_profile(options, &profile, error);
  if (status == ZB_OK)
    status = zb_import_read(format, options->operand, profile, (enum zb_channels)options->channels, &imported,
                            error);
  if (status == ZB_OK) {
    status = answer_of(options, format, &imported, start_ns, &answer, error);
    if (status != ZB_OK && !error->path[0]) zb_error_set_path(error, options->operand);
  }
  if (status == ZB_OK && options->output) status = zb_write_answer(options->output, NULL, &answer, error);
  if (status == ZB_OK) {
    zb_answer_say(options, &answer, start_ns, out);
    if (!options->quiet) print_notes(imported.notes.data);
    status = answer.status;
  }
  zb_answer_free(&answer);
  zb_imported_free(&imported);
  zb_profile_free(profile);
  return status;
}
