// The exact engine: equal to every order tried, equal to the published optima, the same for any threads.
#include <string.h>

#include "solver/exact/rules.h"
#include "solver/exact/window_engine.h"
#include "solver/io/profile_json.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static struct zb_problem problem_of(const struct zb_profile *profile, enum zb_objective objective,
                                    int threads) {
  return (struct zb_problem){.profile = profile,
                             .objective = objective,
                             .threads = threads,
                             .seed = 1,
                             .deadline = zb_deadline_in(zb_clock_ns(), 60)};
}

// Solves, and checks everything that does not depend on which instance it is.
static struct zb_result solve(const struct zb_problem *problem, const struct zb_schedule *incumbent) {
  struct zb_result result;
  struct zb_error error = {0};
  const enum zb_status status = zb_engine_window.solve(problem, incumbent, &result, &error);
  expect(status == ZB_OK, "%s", error.text);
  if (result.schedule) {
    struct zb_timeline timeline = {0};
    expect(zb_check_schedule(problem->profile, result.schedule, &timeline, &error) == ZB_OK, "%s",
           error.text);
    expect_equal(result.cost_ns, zb_timeline_cost(&timeline, problem->objective), "cost");
    expect(result.bound_ns <= result.cost_ns, "bound %lld above the schedule's %lld",
           (long long)result.bound_ns, (long long)result.cost_ns);
    assert_int_equal(result.status, result.bound_ns == result.cost_ns ? ZB_OPTIMAL : ZB_FEASIBLE);
    zb_timeline_free(&timeline);
  }
  return result;
}

// Tiny profiles with every oddity the generator knows.
static void test_equals_brute_force(void **state) {
  (void)state;
  int compared = 0, fused = 0, infeasible = 0;
  for (int i = 0; i < part_of(1000); i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_TINY, 41, (uint64_t)i);
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) {
      const enum zb_objective objective = (enum zb_objective)o;
      struct brute brute;
      if (!brute_solve(profile, objective, 100000, &brute)) continue;
      const struct zb_problem problem = problem_of(profile, objective, 1);
      struct zb_result result = solve(&problem, NULL);
      if (!brute.feasible) {
        assert_int_equal(result.status, ZB_INFEASIBLE);
        infeasible++;
      } else {
        expect(result.cost_ns == brute.cost_ns && result.bound_ns == brute.cost_ns,
               "number %d, %s: cost %lld, bound %lld, but the optimum is %lld", i,
               zb_objective_word(objective), (long long)result.cost_ns, (long long)result.bound_ns,
               (long long)brute.cost_ns);
      }
      compared++;
      fused += generated.has_bw;
      zb_result_free(&result);
      brute_free(&brute);
    }
    zb_profile_free(profile);
  }
  assert_true(compared > part_of(2000) && fused > part_of(300) && infeasible > 0);
}

static struct zb_profile *config(const char *path) {
  struct zb_profile *profile = NULL;
  struct zb_error error = {0};
  expect(zb_profile_read(path, &profile, &error) == ZB_OK, "%s: %s", path, error.text);
  return profile;
}

static void set_limit(struct zb_profile *profile, int times) {
  for (int d = 0; d < profile->devices; d++) {
    profile->limit_bytes[d] = times * profile->devices * zb_profile_activation(profile);
  }
}

// Optima of design.md section 5, in us.
static void test_published_optima(void **state) {
  (void)state;
  static const struct {
    const char *path;
    int64_t optimum_us[2]; // at 1x, 2x
  } rows[] = {
      {"configs/table5-1.5b-p8-m24.json", {1310405, 1152599}},
      {"configs/table5-1.5b-p8-m32.json", {1678164, 1472235}},
      {"configs/table5-6.2b-p8-m24.json", {2187537, 1900476}},
      {"configs/table5-6.2b-p8-m64.json", {5348572, 5054684}},
      {"configs/table5-14.6b-p16-m48.json", {1714461, 1479481}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct zb_profile *profile = config(rows[i].path);
    for (int times = 1; times <= 2; times++) {
      set_limit(profile, times);
      const struct zb_problem problem = problem_of(profile, ZB_SPAN, 2);
      struct zb_result result = solve(&problem, NULL);
      expect_equal(result.cost_ns, rows[i].optimum_us[times - 1] * 1000, rows[i].path);
      expect_equal(result.bound_ns, rows[i].optimum_us[times - 1] * 1000, rows[i].path);
      zb_result_free(&result);
    }
    zb_profile_free(profile);
  }
}

// p=4 m=12, f/b/w 5/6/4, no comm, memory 2/-1/-1, limit 7: the root bound is 219, the optimum 221, so a
// tree is needed, and its proof is handed out.
static struct zb_profile *profile_with_tree(void) {
  struct zb_profile *profile = NULL;
  assert_int_equal(zb_profile_create(4, 1, 12, ZB_CHAIN, &profile, NULL), ZB_OK);
  profile->has_memory = true;
  for (int s = 0; s < 4; s++) {
    profile->f_ns[s] = 5, profile->b_ns[s] = 6, profile->w_ns[s] = 4;
    profile->f_bytes[s] = 2, profile->b_bytes[s] = -1, profile->w_bytes[s] = -1;
    profile->limit_bytes[s] = 7;
  }
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  return profile;
}

// No rule cuts off the optimum: each can be left out, alone and with all others.
static int solve_without_rules(struct zb_problem problem, int64_t optimum_ns) {
  static const char *const words[] = {
#define X(name, word) word,
      ZB_RULE_TABLE(X)
#undef X
  };
  for (int rule = 0; rule <= ZB_RULE_COUNT; rule++) {
    problem.rules_off = rule < ZB_RULE_COUNT ? ZB_RULE_BIT(rule) : ZB_RULE_BIT(ZB_RULE_COUNT) - 1;
    struct zb_result without = solve(&problem, NULL);
    expect(without.status == ZB_OPTIMAL && without.cost_ns == optimum_ns, "without %s: %lld, not %lld",
           rule < ZB_RULE_COUNT ? words[rule] : "any", (long long)without.cost_ns, (long long)optimum_ns);
    zb_result_free(&without);
  }
  return ZB_RULE_COUNT + 1;
}

static void test_rules_off(void **state) {
  (void)state;
  int compared = 0;
  for (uint64_t i = 0; i < 60; i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_TINY, 77, i);
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, (enum zb_objective)(i % ZB_OBJECTIVE_COUNT), 1);
    struct zb_result whole = solve(&problem, NULL);
    if (whole.status == ZB_OPTIMAL) compared += solve_without_rules(problem, whole.cost_ns);
    zb_result_free(&whole);
    zb_profile_free(profile);
  }
  struct zb_profile *profile = profile_with_tree();
  compared += solve_without_rules(problem_of(profile, ZB_SPAN, 2), 221);
  zb_profile_free(profile);
  assert_true(compared > 200);
}

static bool same_schedule(const struct zb_schedule *a, const struct zb_schedule *b) {
  if (a->first[a->devices] != b->first[b->devices]) return false;
  for (size_t i = 0; i < a->first[a->devices]; i++) {
    if (a->ops[i].kind != b->ops[i].kind || a->ops[i].microbatch != b->ops[i].microbatch) return false;
  }
  return true;
}

static void test_same_for_any_threads(void **state) {
  (void)state;
  struct zb_profile *profile = profile_with_tree();
  struct zb_problem problem = problem_of(profile, ZB_SPAN, 1);
  struct zb_result one = solve(&problem, NULL);
  expect_equal(one.cost_ns, 221, "cost");
  expect_equal(one.bound_ns, 221, "bound");
  assert_non_null(one.proof);
  for (int threads = 2; threads <= 4; threads++) {
    problem.threads = threads;
    struct zb_result more = solve(&problem, NULL);
    expect_equal(more.cost_ns, one.cost_ns, "cost");
    assert_string_equal(more.proof, one.proof);
    assert_true(same_schedule(more.schedule, one.schedule));
    zb_result_free(&more);
  }
  zb_result_free(&one);
  zb_profile_free(profile);
}

// A preorder list in which every inner node has two subtrees: one leaf more than splits.
static void test_proof_is_a_tree(void **state) {
  (void)state;
  struct zb_profile *profile = profile_with_tree();
  const struct zb_problem problem = problem_of(profile, ZB_SPAN, 1);
  struct zb_result result = solve(&problem, NULL);
  assert_non_null(result.proof);
  int splits = 0, leaves = 0;
  for (const char *at = result.proof + 1; *at; at++) {
    if (*at == '[') {
      splits++;
      at = strchr(at, ']');
      assert_non_null(at);
    } else if (*at == '0') {
      leaves++;
    }
    if (leaves <= splits) continue;
    assert_string_equal(at + 1, "]");
    break;
  }
  assert_true(splits > 0 && leaves == splits + 1);
  zb_result_free(&result);
  zb_profile_free(profile);
}

// An optimal start is kept and proven; a limit below one microbatch is refused with its reason.
static void test_start_and_infeasible(void **state) {
  (void)state;
  struct zb_profile *profile = config("configs/table5-1.5b-p8-m24.json");
  set_limit(profile, 2);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN, 1);
  struct zb_result first = solve(&problem, NULL);
  struct zb_result again = solve(&problem, first.schedule);
  assert_int_equal(again.status, ZB_OPTIMAL);
  assert_true(same_schedule(first.schedule, again.schedule));
  zb_result_free(&first);
  zb_result_free(&again);
  profile->limit_bytes[3] = zb_profile_least_peak(profile, 3) - 1;
  struct zb_result none = solve(&problem, NULL);
  assert_int_equal(none.status, ZB_INFEASIBLE);
  assert_null(none.schedule);
  assert_int_equal(none.reason.device, 3);
  zb_result_free(&none);
  zb_profile_free(profile);
}

// A deadline that has passed still leaves a schedule and a bound that holds.
static void test_no_time(void **state) {
  (void)state;
  struct zb_profile *profile = config("configs/table5-14.6b-p16-m48.json");
  set_limit(profile, 1);
  struct zb_problem problem = problem_of(profile, ZB_SPAN, 2);
  problem.deadline = (struct zb_deadline){zb_clock_ns() - 2, zb_clock_ns() - 1};
  struct zb_result result = solve(&problem, NULL);
  assert_non_null(result.schedule);
  zb_result_free(&result);
  zb_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equals_brute_force),
      cmocka_unit_test(test_rules_off),
      cmocka_unit_test(test_published_optima),
      cmocka_unit_test(test_same_for_any_threads),
      cmocka_unit_test(test_proof_is_a_tree),
      cmocka_unit_test(test_start_and_infeasible),
      cmocka_unit_test(test_no_time),
  };
  return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
