// Every allocation of the way from a profile file to a schedule file fails once; then all from each one on.
//
// After each run that failed, the status says so, no block is left over, and the old output file is as it
// was, with nothing beside it. Skipped where malloc cannot be wrapped (tests/heap.h).
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heuristic/families.h"
#include "solver/cli/write_answer.h"
#include "solver/exact/proof_check.h"
#include "solver/io/file.h"
#include "solver/io/profile_json.h"
#include "solver/io/proof_json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/answer.h"
#include "tests/heap.h"
#include "tests/unit/unit.h"

static const char *const chain_text = "{\"zbsolve_profile\": 1, \"name\": \"three\", \"source\": \"made "
                                      "up\", \"note\": \"\\u00fc\", \"devices\": 3,\n"
                                      " \"microbatches\": 4, \"time\": {\"unit\": \"us\", \"f\": [1, 2.5, "
                                      "3], \"b\": 2, \"w\": [1, 1, 2], \"bw\": 3.5,\n"
                                      " \"comm\": {\"forward\": [0.5, 1], \"backward\": 0.25}},\n"
                                      " \"memory\": {\"unit\": \"KiB\", \"f\": 10, \"b\": -4, \"w\": -6, "
                                      "\"limit\": [45, null, 50], \"static\": 1}}\n";
static const char *const loop_text =
    "{\"zbsolve_profile\": 1, \"devices\": 2, \"microbatches\": 3, \"chunks\": 2, \"placement\": \"loop\",\n"
    " \"time\": {\"unit\": \"ms\", \"f\": 1, \"b\": [1, 2, 3, 4], \"w\": 1, \"comm\": 0}}\n";
static const char *const tight_text =
    "{\"zbsolve_profile\": 1, \"devices\": 2, \"microbatches\": 3, \"time\": {\"unit\": \"ms\", \"f\": 1, "
    "\"b\": 1,\n"
    " \"w\": 1, \"comm\": 0}, \"memory\": {\"f\": 10, \"b\": -4, \"w\": -6, \"limit\": [100, 9]}}\n";
static const char *const old_text = "the file that was there before\n";

struct run {
  const char *name;
  const struct zb_engine *engine;
  enum zb_objective objective;
  int derived_chunks; // 0: the profile as it is
};

static const struct run runs[] = {
    {"gpipe", &zb_engine_gpipe, ZB_SPAN, 0},
    {"1f1b", &zb_engine_1f1b, ZB_SPAN, 0},
    {"interleaved", &zb_engine_1f1b_interleaved, ZB_MAKESPAN, 0},
    {"interleaved of a chain", &zb_engine_1f1b_interleaved, ZB_SPAN, 2},
    {"zb-h1", &zb_engine_zb_h1, ZB_MAKESPAN, 0},
    {"greedy", &zb_engine_greedy, ZB_SPAN, 0},
    {"greedy by period", &zb_engine_greedy, ZB_PERIOD, 0},
    {"infeasible", &zb_engine_greedy, ZB_SPAN, 0},
};

static char directory[512], profile_path[600], output_path[600];

static void write_plain(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static bool holds_plain(const char *path, const char *text) {
  char read[256] = {0};
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t length = fread(read, 1, sizeof read - 1, file);
  fclose(file);
  return length == strlen(text) && memcmp(read, text, length) == 0;
}

static int entries_of_directory(void) {
  int count = 0;
  DIR *entries = opendir(directory);
  assert_non_null(entries);
  while (readdir(entries)) count++;
  closedir(entries);
  return count;
}

static const char *text_of(size_t which) {
  const char *name = runs[which].name;
  if (strcmp(name, "infeasible") == 0) return tight_text;
  return strcmp(name, "interleaved") == 0 ? loop_text : chain_text;
}

// Read, solve, check, write: what `zbsolve solve` does. OK only if all of it succeeded.
static enum zb_status solve(const struct run *run, struct zb_error *error) {
  struct zb_profile *profile = NULL, *derived = NULL;
  struct zb_result result = {0};
  struct zb_answer answer = {0};
  enum zb_status status = zb_profile_read(profile_path, &profile, error);
  if (status == ZB_OK && run->derived_chunks > 0)
    status = zb_profile_derive(profile, ZB_LOOP, run->derived_chunks, &derived, error);
  struct zb_problem problem = {.profile = derived ? derived : profile,
                               .objective = run->objective,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  if (status == ZB_OK) status = run->engine->solve(&problem, NULL, &result, error);
  if (status == ZB_OK) status = zb_answer_from_result(&problem, run->engine->name, &result, &answer, error);
  if (status == ZB_OK && answer.status != ZB_OVER_LIMIT) status = zb_answer_verify(&answer, error);
  if (status == ZB_OK) status = zb_write_answer(output_path, NULL, &answer, error);
  zb_answer_free(&answer);
  zb_result_free(&result);
  zb_profile_free(derived);
  zb_profile_free(profile);
  return status;
}

// Read the file back and redo its numbers and its bound: what `zbsolve check` does.
static enum zb_status check(const struct run *run, struct zb_error *error) {
  (void)run;
  struct zb_answer answer = {0};
  struct zb_proof_list tree = {NULL, 0};
  enum zb_status status = zb_answer_read(output_path, &answer, error);
  if (status == ZB_OK) status = zb_answer_verify(&answer, error);
  if (status == ZB_OK && answer.status != ZB_INFEASIBLE && answer.profile->chunks == 1) {
    status = zb_proof_load(&answer, output_path, &tree, error);
    if (status == ZB_OK)
      status = zb_proof_check(answer.profile, answer.objective, answer.bound_ns, &tree, NULL, NULL, error);
  }
  zb_proof_list_free(&tree);
  zb_answer_free(&answer);
  return status;
}

typedef enum zb_status step(const struct run *run, struct zb_error *error);

// Runs the step with its n-th allocation failing, for n = 1, 2, .. until it needs no more than n - 1.
static void fail_each(const struct run *run, step *what, bool from, const char *before) {
  int entries = entries_of_directory();
  for (long n = 1;; n++) {
    struct zb_error error = {0};
    long first = heap.calls, blocks = heap.blocks;
    heap.refuse_from = from;
    heap.refuse_at = first + n;
    enum zb_status status = what(run, &error);
    heap.refuse_at = 0;
    long calls = heap.calls - first;
    expect(heap.blocks == blocks, "%s, allocation %ld%s: %ld blocks left over", run->name, n,
           from ? " and all after" : "", heap.blocks - blocks);
    if (calls < n) {
      expect(status == ZB_OK, "%s: %s: %s", run->name, zb_status_word(status), error.text);
      expect(n > 5, "%s: only %ld allocations", run->name, n - 1);
      return;
    }
    // A bound that cannot be redone for want of memory leaves the rest of the check standing.
    const bool failed = status == ZB_FAILED || (what == check && status == ZB_NOT_PROVEN);
    expect(failed && error.status == status && error.text[0], "%s, allocation %ld%s: %s: %s", run->name, n,
           from ? " and all after" : "", zb_status_word(status), error.text);
    if (before)
      expect(holds_plain(output_path, before), "%s, allocation %ld: the old file changed", run->name, n);
    expect(entries_of_directory() == entries, "%s, allocation %ld: a file was left behind", run->name, n);
  }
}

static void run_all(bool from) {
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    const struct run *run = &runs[i];
    struct zb_error error = {0};
    write_plain(profile_path, text_of(i));
    enum zb_status status = solve(run, &error); // once as it is, for what libraries keep for good
    expect(status == ZB_OK, "%s: %s: %s", run->name, zb_status_word(status), error.text);
    write_plain(output_path, old_text);
    fail_each(run, solve, from, old_text);
    assert_false(holds_plain(output_path, old_text));
    fail_each(run, check, from, NULL);
    unlink(output_path);
    unlink(profile_path);
  }
}

static void skip_unless_wrapped(void) {
  if (!HEAP_WRAPPED) {
    print_message("malloc cannot be wrapped in this build (sanitizer, or no glibc)\n");
    skip();
  }
}

static void test_one_fails(void **state) {
  (void)state;
  skip_unless_wrapped();
  run_all(false);
}

static void test_all_fail_from_one_on(void **state) {
  (void)state;
  skip_unless_wrapped();
  run_all(true);
}

static int make_directory(void **state) {
  (void)state;
  const char *scratch = getenv("SCRATCH"), *temporary = getenv("TMPDIR");
  const char *parent = scratch ? scratch : temporary ? temporary : "/tmp";
  if (strlen(parent) > 400) return -1;
  snprintf(directory, sizeof directory, "%s/test_allocation.XXXXXX", parent);
  if (!mkdtemp(directory)) return -1;
  snprintf(profile_path, sizeof profile_path, "%s/profile.json", directory);
  snprintf(output_path, sizeof output_path, "%s/schedule.json", directory);
  return 0;
}

static int remove_directory(void **state) {
  (void)state;
  unlink(profile_path);
  unlink(output_path);
  return rmdir(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_fails),
      cmocka_unit_test(test_all_fail_from_one_on),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
