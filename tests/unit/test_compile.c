// test_compile.c - whatever schedule a method finds for a profile in configs/, on the placement that it needs
// and with and without the profile's limit, compiles with every optimizer and is proven under every channel
// model.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/cli/method.h"
#include "solver/io/profile_json.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"
#include "tests/unit/unit.h"

// What a fast run leaves to a long one: large profiles, the methods that search, the time they may take.
enum { PASSES_MOST = 256, PATH = 512 };
static const double fast_s = 0.02, long_s = 2;

static bool is_long(void) { return getenv("ZB_LONG") != NULL; }

static void compile(const struct zb_profile *profile, const struct zb_schedule *schedule, const char *what) {
  for (int optimizer = 0; optimizer < ZB_OPTIMIZER_COUNT; optimizer++) {
    struct zb_program *program = NULL;
    struct zb_error error = {0};
    expect(zb_program_lower(profile, schedule, what, (enum zb_optimizer)optimizer, &program, &error) == ZB_OK,
           "%s: %s", what, error.text);
    for (int channels = 0; channels < ZB_CHANNELS_COUNT; channels++) {
      struct zb_run run = {0};
      program->channels = (enum zb_channels)channels;
      expect(zb_program_check(program, &run, &error) == ZB_OK, "%s, %s, %s: %s", what,
             zb_optimizer_word(program->optimizer), zb_channels_word(program->channels), error.text);
      zb_run_free(&run);
    }
    zb_program_free(program);
  }
}

// Returns whether the method had a schedule that fits.
static bool run_method(const struct zb_profile *profile, int index, const char *path) {
  const struct zb_engine *engine = zb_engine_at(index);
  const bool search = zb_engine_part_at(index) != ZB_PART_HEURISTIC;
  struct zb_profile *placed = NULL;
  struct zb_result result = {0};
  struct zb_error error = {0};
  char what[PATH + 64];
  bool found = false;
  if (!zb_engine_available(engine) || (search && !is_long())) return false;
  if (zb_method_place(engine, profile, 0, &placed, &error) != ZB_OK) return false;
  const struct zb_problem problem = {.profile = placed,
                                     .objective = ZB_SPAN,
                                     .threads = 1,
                                     .seed = 1,
                                     .rounds = 1,
                                     .deadline = zb_deadline_in(zb_clock_ns(), is_long() ? long_s : fast_s)};
  snprintf(what, sizeof what, "%s, %s", path, engine->name);
  expect(engine->solve(&problem, NULL, &result, &error) == ZB_OK, "%s: %s", what, error.text);
  if (result.schedule && result.status != ZB_OVER_LIMIT) {
    compile(placed, result.schedule, what);
    found = true;
  }
  zb_result_free(&result);
  zb_profile_free(placed);
  return found;
}

static int run_methods(const char *path) {
  struct zb_profile *profile = NULL;
  struct zb_error error = {0};
  int found = 0;
  expect(zb_profile_read(path, &profile, &error) == ZB_OK, "%s: %s", path, error.text);
  const bool fits = profile->stages * profile->microbatches <= PASSES_MOST || is_long();
  for (int limited = 1; limited >= 0 && fits; limited--) {
    if (!limited)
      for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = ZB_NO_LIMIT;
    for (int k = 0; k < zb_engine_count(); k++)
      if (!left_out(k + limited, 2)) found += run_method(profile, k, path);
  }
  zb_profile_free(profile);
  return found;
}

static void test_folder(const char *folder, int least) {
  DIR *directory = opendir(folder);
  expect(directory, "%s cannot be opened", folder);
  int found = 0;
  for (const struct dirent *entry; (entry = readdir(directory));) {
    char path[PATH];
    const size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
    if (strncmp(entry->d_name, "model-", 6) == 0) continue; // for the runtime, no profile
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    found += run_methods(path);
  }
  closedir(directory);
  expect(found >= (getenv("ZB_AGAIN") ? least / 2 : least), "%s: only %d schedules", folder, found);
}

static void test_published(void **state) {
  (void)state;
  test_folder("configs", 100);
}

static void test_uneven(void **state) {
  (void)state;
  test_folder("configs/uneven", 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_published), cmocka_unit_test(test_uneven)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
