// List scheduling tuned device by device: valid, within the limits, no worse than the orders it starts from.
#include "heuristic/families.h"
#include "heuristic/tuned.h"
#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static struct zb_result solve(const struct zb_problem *problem) {
  struct zb_result result;
  struct zb_error error = {0};
  struct zb_timeline timeline = {0};
  expect(zb_tuned_solve(problem, &result, &error) == ZB_OK, "%s", error.text);
  expect(zb_check_schedule(problem->profile, result.schedule, &timeline, &error) == ZB_OK, "%s", error.text);
  expect_equal(result.cost_ns, zb_timeline_cost(&timeline, problem->objective), "cost");
  zb_timeline_free(&timeline);
  return result;
}

static void test_no_worse_than_its_start(void **state) {
  (void)state;
  int better = 0, compared = 0;
  for (uint64_t i = 0; i < 8; i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_UNEVEN, 5, i);
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    struct zb_problem problem = {.profile = profile, .objective = ZB_SPAN, .threads = 1};
    problem.deadline = zb_deadline_in(zb_clock_ns(), 0);
    struct zb_result greedy, infeasible;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      struct zb_result tuned = solve(&problem), again = solve(&problem);
      assert_int_equal(zb_engine_greedy.solve(&problem, NULL, &greedy, NULL), ZB_OK);
      expect_equal(tuned.cost_ns, again.cost_ns, "the same again");
      better += tuned.cost_ns < greedy.cost_ns;
      compared++;
      zb_result_free(&tuned);
      zb_result_free(&again);
      zb_result_free(&greedy);
    }
    zb_profile_free(profile);
  }
  assert_true(compared >= 4 && better >= compared / 2);
}

// A deadline that has passed still leaves a schedule, under every objective, whatever fits.
static void test_no_time(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 200; i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_TINY, 6, i);
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    struct zb_problem problem = {.profile = profile,
                                 .objective = (enum zb_objective)(i % ZB_OBJECTIVE_COUNT)};
    problem.deadline = zb_deadline_in(1, 1e-9);
    struct zb_result result;
    if (!zb_result_if_infeasible(&problem, &result)) {
      result = solve(&problem);
      zb_result_free(&result);
    }
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_worse_than_its_start),
      cmocka_unit_test(test_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
