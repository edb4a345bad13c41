// See fuzz_reader.h.
#include "tests/fuzz_reader.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/export.h"
#include "solver/io/import.h"
#include "solver/model/check.h"

enum { NEWEST_MINOR = 15 };

static struct zb_profile *make_profile(void) {
  struct zb_profile *profile = NULL;
  if (zb_profile_create(2, 1, 2, ZB_CHAIN, &profile, NULL) != ZB_OK) return NULL;
  for (int s = 0; s < 2; s++) {
    profile->f_ns[s] = 3;
    profile->b_ns[s] = 4;
    profile->w_ns[s] = 2;
  }
  profile->comm_forward_ns[0] = profile->comm_backward_ns[0] = 1;
  if (zb_profile_finish(profile, NULL) == ZB_OK) return profile;
  zb_profile_free(profile);
  return NULL;
}

static bool read(const struct zb_import_format *format, const struct zb_profile *profile, const char *text,
                 size_t size, struct zb_imported *imported) {
  struct zb_error error = {0};
  enum zb_status status =
      zb_import_read_text(format, text, size, profile, ZB_CHANNELS_EDGE, imported, &error);
  if (status == ZB_OK) return true;
  if ((status != ZB_BAD_INPUT && status != ZB_WRONG) || !error.text[0] || strchr(error.text, '\n')) abort();
  return false;
}

static bool same(const struct zb_schedule *a, const struct zb_schedule *b) {
  const size_t ops = a->first[a->devices];
  return a->devices == b->devices && ops == b->first[b->devices] &&
         memcmp(a->first, b->first, ((size_t)a->devices + 1) * sizeof *a->first) == 0 &&
         memcmp(a->ops, b->ops, ops * sizeof *a->ops) == 0;
}

// What is written of it, read and written again, is itself.
static void check_written(const struct zb_export_format *out, const struct zb_import_format *in,
                          const struct zb_imported *imported, const struct zb_timeline *timeline) {
  struct zb_answer answer = {.profile = imported->placed, .schedule = imported->schedule};
  struct zb_export_input input = {.answer = &answer, .timeline = timeline, .torch_minor = NEWEST_MINOR};
  struct zb_export_output first = {0}, second = {0};
  struct zb_imported once = {0}, twice = {0};
  struct zb_timeline times = {0};
  if (out->write(&input, &first, NULL) != ZB_OK) abort();
  if (!read(in, imported->placed, first.text.data, first.text.size, &once)) abort();
  if (zb_check_schedule(once.placed, once.schedule, &times, NULL) != ZB_OK) abort();
  answer.schedule = once.schedule;
  input.timeline = &times;
  if (out->write(&input, &second, NULL) != ZB_OK) abort();
  if (strcmp(first.text.data, second.text.data) != 0) abort();
  if (!read(in, imported->placed, second.text.data, second.text.size, &twice)) abort();
  if (!same(once.schedule, twice.schedule)) abort();
  zb_timeline_free(&times);
  zb_imported_free(&once);
  zb_imported_free(&twice);
  zb_export_output_free(&first);
  zb_export_output_free(&second);
}

void fuzz_reader(const char *name, const uint8_t *data, size_t size) {
  const struct zb_import_format *in = NULL;
  const struct zb_export_format *out = NULL;
  struct zb_profile *profile = make_profile();
  struct zb_imported imported = {0};
  struct zb_timeline timeline = {0};
  for (int k = 0; k < zb_import_format_count(); k++)
    if (strcmp(zb_import_format_at(k)->name, name) == 0) in = zb_import_format_at(k);
  for (int k = 0; k < zb_export_format_count(); k++)
    if (strcmp(zb_export_format_at(k)->name, name) == 0) out = zb_export_format_at(k);
  if (!profile || !in || !out) abort();
  if (read(in, profile, (const char *)data, size, &imported)) {
    if (zb_check_schedule(imported.placed, imported.schedule, &timeline, NULL) != ZB_OK) abort();
    check_written(out, in, &imported, &timeline);
  }
  zb_timeline_free(&timeline);
  zb_imported_free(&imported);
  zb_profile_free(profile);
}
