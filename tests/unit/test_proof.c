// Proof trees: their text, their digest, the walk that redoes a bound, and the files that they go to.
//
// The walk is held against schedules that exist: a tree for a target that one of them meets must have a leaf
// that is not refuted, and it must be the leaf on whose side of every split that schedule lies.
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/cli/redo_bound.h"
#include "solver/cli/write_answer.h"
#include "solver/exact/proof_check.h"
#include "solver/exact/window_engine.h"
#include "solver/io/file.h"
#include "solver/io/proof_json.h"
#include "solver/io/schedule_json.h"
#include "solver/io/sha256.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static void test_sha256(void **state) {
  (void)state;
  static const struct {
    size_t count;
    const char *hex;
  } runs_of_a[] = {
      {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
      {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
      {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  char hex[ZB_SHA256_TEXT];
  char *bytes = malloc(1000000);
  assert_non_null(bytes);
  memset(bytes, 'a', 1000000);
  for (size_t i = 0; i < sizeof runs_of_a / sizeof *runs_of_a; i++) {
    zb_sha256(bytes, runs_of_a[i].count, hex);
    assert_string_equal(hex, runs_of_a[i].hex);
  }
  free(bytes);
  zb_sha256("abc", 3, hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Two devices, three microbatches.
static struct zb_profile *small_profile(void) {
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(2, 1, 3, ZB_CHAIN, &p, NULL), ZB_OK);
  for (int s = 0; s < 2; s++) {
    p->f_ns[s] = 3 + s;
    p->b_ns[s] = 4;
    p->w_ns[s] = 2;
  }
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  return p;
}

static void test_parse(void **state) {
  (void)state;
  static const struct {
    enum zb_status status;
    const char *text, *says;
  } cases[] = {
      {ZB_OK, "[0]", ""},
      {ZB_OK, " [ [ \"n\" , 1 , \"W\" , \"B\" , 2 , -1 ] ,\n 0,0 ]\n", ""},
      {ZB_OK, "[[\"n\",0,\"B\",\"F\",0,9007199254740992],[\"fused\",0,\"B\",\"\",1,0],0,0,0]", ""},
      {ZB_WRONG, "[]", "a half missing"},
      {ZB_BAD_INPUT, "", "expected"},
      {ZB_BAD_INPUT, "{}", "not a list"},
      {ZB_BAD_INPUT, "0", "not a list"},
      {ZB_BAD_INPUT, "[0", "expected"},
      {ZB_BAD_INPUT, "[1]", "proof[0]: neither a leaf nor a split"},
      {ZB_BAD_INPUT, "[0.0]", "proof[0]: neither"},
      {ZB_BAD_INPUT, "[00]", "no JSON number"},
      {ZB_BAD_INPUT, "[0, null]", "proof[1]: neither"},
      {ZB_BAD_INPUT, "[[]]", "not a string"},
      {ZB_BAD_INPUT, "[[[]]]", "not a string"},
      {ZB_BAD_INPUT, "[[\"n\",2,\"F\",\"B\",0,0],0,0]", "device 2, expected a whole number from 0 to 1"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"B\",3,0],0,0]", "index 3, expected a whole number from 0 to 2"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"B\",0,-2],0,0]", "value -2"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"B\",0,0.5],0,0]", "value 0.5"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"F\",0,0],0,0]", "unknown variable"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"BW\",0,0],0,0]", "unknown variable"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"\\u0042\",0,0],0,0]", "unknown word"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"0F\",\"0B\",0,0],0,0]", "unknown variable"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"B\",0],0,0]", "not a list of six"},
      {ZB_BAD_INPUT, "[[\"n\",1,\"F\",\"B\",0,0,0],0,0]", "not a list of six"},
      {ZB_BAD_INPUT, "[[\"fused\",1,\"W\",\"\",0,0],0,0]", "unknown variable"},
      {ZB_BAD_INPUT, "[[\"offset\",1,\"\",\"\",0,5],0,0]", "an offset that is fixed"},
      {ZB_BAD_INPUT, "[[\"sixteen letters!\",1,\"\",\"\",0,5],0,0]", "unknown word"},
  };
  struct zb_profile *p = small_profile();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct zb_proof_list list = {NULL, 0};
    struct zb_error error = {0};
    enum zb_status status = zb_proof_parse(cases[i].text, strlen(cases[i].text), p, ZB_SPAN, &list, &error);
    expect(status == cases[i].status && strstr(error.text, cases[i].says), "%s: %s: %s", cases[i].text,
           zb_status_word(status), error.text);
    assert_true((status == ZB_OK) == (list.count > 0));
    zb_proof_list_free(&list);
  }
  zb_profile_free(p);
}

static struct zb_result solve(const struct zb_profile *p, enum zb_objective objective) {
  struct zb_problem problem = {.profile = p,
                               .objective = objective,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 20)};
  struct zb_result result = {0};
  struct zb_error error = {0};
  enum zb_status status = zb_engine_window.solve(&problem, NULL, &result, &error);
  expect(status == ZB_OK, "%s", error.text);
  return result;
}

static enum zb_status check(const struct zb_profile *p, enum zb_objective objective, int64_t bound_ns,
                            const struct zb_proof_list *tree, struct zb_error *error) {
  *error = (struct zb_error){0};
  return zb_proof_check(p, objective, bound_ns, tree, NULL, NULL, error);
}

// One split, two leaves; the leaf that the walk says is open.
static int open_leaf(const struct zb_profile *p, int64_t bound_ns, struct zb_proof_item split) {
  struct zb_proof_item items[] = {split, {.kind = ZB_ITEM_LEAF}, {.kind = ZB_ITEM_LEAF}};
  const struct zb_proof_list tree = {items, 3};
  struct zb_error error;
  enum zb_status status = check(p, ZB_SPAN, bound_ns, &tree, &error);
  expect(status == ZB_WRONG, "a target that is met was refuted: %s", error.text);
  return strstr(error.text, "leaf 1 ") ? 1 : 2;
}

// Every count of a schedule's order against the split that should hold it.
static void check_splits(const struct zb_profile *p, const struct zb_schedule *schedule, int64_t cost_ns) {
  for (int d = 0; d < p->devices; d++) {
    int32_t done[ZB_CLASS_COUNT] = {0};
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const enum zb_kind kind = schedule->ops[i].kind;
      const bool is[ZB_CLASS_COUNT] = {kind == ZB_F, kind == ZB_B || kind == ZB_BW,
                                       kind == ZB_W || kind == ZB_BW};
      for (uint8_t starting = 0; starting < ZB_CLASS_COUNT; starting++)
        for (uint8_t counted = 0; counted < ZB_CLASS_COUNT && is[starting]; counted++) {
          if (counted == starting) continue;
          struct zb_proof_item split = {
              done[counted], d, done[starting], ZB_ITEM_COUNT, counted, starting, 0, 0};
          expect(open_leaf(p, cost_ns + 1, split) == 1, "device %d, position %zu: class %d when %d starts", d,
                 i - schedule->first[d], counted, starting);
          split.value--;
          const int leaf = open_leaf(p, cost_ns + 1, split);
          assert_true(leaf == 2 || split.value >= 0);
          split.value = -1;
          assert_int_equal(open_leaf(p, cost_ns + 1, split), 2);
          split.value = p->microbatches;
          assert_int_equal(open_leaf(p, cost_ns + 1, split), 1);
        }
      for (int class = 0; class < ZB_CLASS_COUNT; class ++) done[class] += is[class];
    }
  }
}

// The engine's bounds hold, one more never does where a schedule meets it.
static void test_random(void **state) {
  (void)state;
  struct generate_random random = {20240};
  int optimal = 0, trees = 0;
  for (int n = 0; n < 50; n++) {
    struct zb_profile *p = instance_profile(&random, ZB_CHAIN, 3, 4);
    assert_non_null(p);
    const enum zb_objective objective = (enum zb_objective)(n % ZB_OBJECTIVE_COUNT);
    struct zb_result result = solve(p, objective);
    if (result.schedule) {
      struct zb_proof_list tree = {NULL, 0};
      struct zb_error error = {0};
      if (result.proof) {
        trees++;
        assert_int_equal(zb_proof_parse(result.proof, strlen(result.proof), p, objective, &tree, &error),
                         ZB_OK);
      }
      enum zb_status status = check(p, objective, result.bound_ns, &tree, &error);
      expect(status == ZB_OK, "number %d: bound %lld: %s", n, (long long)result.bound_ns, error.text);
      status = check(p, objective, result.cost_ns + 1, &tree, &error);
      expect(status == ZB_WRONG, "number %d: cost + 1 as a bound: %s", n, zb_status_word(status));
      optimal += result.status == ZB_OPTIMAL;
      if (objective == ZB_SPAN) check_splits(p, result.schedule, result.cost_ns);
      zb_proof_list_free(&tree);
    }
    zb_result_free(&result);
    zb_profile_free(p);
  }
  print_message("%d optimal, %d with trees\n", optimal, trees);
  assert_true(optimal > 20);
}

static void test_shape(void **state) {
  (void)state;
  struct zb_profile *p = small_profile();
  struct zb_result result = solve(p, ZB_SPAN);
  assert_int_equal(result.status, ZB_OPTIMAL);
  const struct zb_proof_item split = {1, 0, 1, ZB_ITEM_COUNT, ZB_CLASS_F, ZB_CLASS_B, 0, 0};
  struct zb_proof_item items[] = {split, {0}, split, {0}, {0}, {0}};
  struct zb_proof_list tree = {items, 5};
  struct zb_error error;
  assert_int_equal(check(p, ZB_SPAN, result.bound_ns, &tree, &error), ZB_OK);
  tree.count = 6;
  assert_int_equal(check(p, ZB_SPAN, result.bound_ns, &tree, &error), ZB_WRONG);
  assert_non_null(strstr(error.text, "proof[5]: items after the end"));
  tree.count = 4;
  assert_int_equal(check(p, ZB_SPAN, result.bound_ns, &tree, &error), ZB_WRONG);
  assert_non_null(strstr(error.text, "a half missing"));
  assert_int_equal(check(p, ZB_SPAN, 0, NULL, &error), ZB_OK);
  const struct zb_deadline passed = {0, 1};
  assert_int_equal(zb_proof_check(p, ZB_SPAN, result.bound_ns, NULL, NULL, &passed, &error), ZB_NOT_PROVEN);
  zb_result_free(&result);
  zb_profile_free(p);
}

// What solve does before it writes.
static void test_own_bound(void **state) {
  (void)state;
  struct zb_profile *p = small_profile();
  struct zb_problem problem = {.profile = p, .objective = ZB_SPAN};
  struct zb_answer answer = {0};
  struct zb_error error = {0};
  const struct zb_deadline none = {0, INT64_MAX}, passed = {0, 1};
  struct zb_result result = solve(p, ZB_SPAN);
  assert_int_equal(zb_answer_from_result(&problem, "window", &result, &answer, &error), ZB_OK);
  assert_int_equal(zb_redo_own_bound(&answer, &none, &error), ZB_OK);
  answer.bound_ns++;
  assert_int_equal(zb_redo_own_bound(&answer, &none, &error), ZB_SELF_CHECK);
  assert_non_null(strstr(error.text, "window claims a bound of"));
  assert_int_equal(zb_redo_own_bound(&answer, &passed, &error), ZB_OK);
  zb_answer_free(&answer);
  zb_profile_free(p);
}

// Files.

static char directory[] = "/tmp/zbsolve-proof-XXXXXX";
static char schedule_path[64], proof_path[80];

static int make_directory(void **state) {
  (void)state;
  if (!mkdtemp(directory)) return -1;
  snprintf(schedule_path, sizeof schedule_path, "%s/s.json", directory);
  snprintf(proof_path, sizeof proof_path, "%s.proof", schedule_path);
  return 0;
}

static int remove_directory(void **state) {
  (void)state;
  unlink(schedule_path);
  unlink(proof_path);
  return rmdir(directory);
}

// A chain of splits about one variable that nothing needs, `splits` deep.
static char *long_proof(int splits) {
  struct zb_text text = {0};
  zb_text_put(&text, "[");
  for (int i = 0; i < splits; i++) zb_text_put(&text, "[\"n\",0,\"F\",\"B\",1,1],0,");
  zb_text_put(&text, "0]");
  assert_false(text.failed);
  return text.data;
}

// Writes an optimal answer with that proof, reads it back and redoes the bound from what it finds.
static void write_and_redo(int splits, bool expect_file) {
  struct zb_profile *p = small_profile();
  struct zb_result result = solve(p, ZB_SPAN);
  struct zb_problem problem = {.profile = p, .objective = ZB_SPAN};
  struct zb_answer answer = {0}, again = {0};
  struct zb_error error = {0};
  struct zb_proof_list tree = {NULL, 0};
  assert_int_equal(zb_answer_from_result(&problem, "window", &result, &answer, &error), ZB_OK);
  free(answer.proof);
  answer.proof = long_proof(splits);
  expect(zb_write_answer(schedule_path, NULL, &answer, &error) == ZB_OK, "%s", error.text);
  assert_int_equal(access(proof_path, F_OK) == 0, expect_file);
  assert_int_equal(zb_answer_read(schedule_path, &again, &error), ZB_OK);
  assert_int_equal(zb_answer_verify(&again, &error), ZB_OK);
  assert_true((again.proof[0] == '{') == expect_file);
  expect(zb_proof_load(&again, schedule_path, &tree, &error) == ZB_OK, "%s", error.text);
  assert_int_equal(tree.count, 2 * splits + 1);
  expect(check(p, ZB_SPAN, again.bound_ns, &tree, &error) == ZB_OK, "%s", error.text);
  if (expect_file) {
    assert_int_equal(unlink(proof_path), 0);
    zb_proof_list_free(&tree);
    assert_int_equal(zb_proof_load(&again, schedule_path, &tree, &error), ZB_NOT_PROVEN);
  }
  zb_proof_list_free(&tree);
  zb_answer_free(&answer);
  zb_answer_free(&again);
  zb_profile_free(p);
}

static void test_files(void **state) {
  (void)state;
  write_and_redo(3, false);
  write_and_redo(60000, true);
  write_and_redo(60000, true);
  write_and_redo(3, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sha256), cmocka_unit_test(test_parse),     cmocka_unit_test(test_random),
      cmocka_unit_test(test_shape),  cmocka_unit_test(test_own_bound), cmocka_unit_test(test_files),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
