// List scheduling tuned device by device: valid, within the limits, and better than what it is asked to beat.
#include "heuristic/families.h"
#include "heuristic/tuned.h"
#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

// One call; what it found, checked, or INT64_MAX.
static int64_t improve(struct zb_tuner *tuner, const struct zb_problem *problem, int64_t below_ns,
                       int64_t work) {
  struct zb_error error = {0};
  struct zb_timeline timeline = {0};
  struct zb_schedule *found = NULL;
  int64_t cost_ns = INT64_MAX;
  expect(zb_tuner_improve(tuner, NULL, below_ns, work, &found, &error) == ZB_OK, "%s", error.text);
  if (found) {
    expect(zb_check_schedule(problem->profile, found, &timeline, &error) == ZB_OK, "%s", error.text);
    cost_ns = zb_timeline_cost(&timeline, problem->objective == ZB_MAKESPAN ? ZB_MAKESPAN : ZB_SPAN);
    assert_true(cost_ns < below_ns);
  }
  zb_timeline_free(&timeline);
  zb_schedule_free(found);
  return cost_ns;
}

static struct zb_tuner *create(const struct zb_problem *problem) {
  struct zb_tuner *tuner = NULL;
  assert_int_equal(zb_tuner_create(problem, &tuner, NULL), ZB_OK);
  return tuner;
}

// Calls go on where the last one stopped, through every level of parts and into the next chain.
static void test_beats_greedy(void **state) {
  (void)state;
  enum { CALLS = 10 };
  int better = 0, compared = 0;
  for (uint64_t i = 0; i < 4; i++) {
    if (left_out((int)i, 2)) continue;
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_UNEVEN, 5, i);
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    const struct zb_problem problem = {
        .profile = profile, .objective = ZB_SPAN, .threads = 1, .deadline = zb_deadline_in(zb_clock_ns(), 0)};
    struct zb_result greedy, infeasible;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      assert_int_equal(zb_engine_greedy.solve(&problem, NULL, &greedy, NULL), ZB_OK);
      struct zb_tuner *tuner = create(&problem), *again = create(&problem);
      int64_t best_ns = INT64_MAX;
      for (int call = 0; call < CALLS; call++) {
        const int64_t cost_ns = improve(tuner, &problem, best_ns, 1000000);
        expect_equal(cost_ns, improve(again, &problem, best_ns, 1000000), "the same again");
        if (cost_ns < best_ns) best_ns = cost_ns;
      }
      better += best_ns < greedy.cost_ns;
      compared++;
      zb_tuner_free(tuner);
      zb_tuner_free(again);
      zb_result_free(&greedy);
    }
    zb_profile_free(profile);
  }
  assert_true(compared >= 2 && better >= compared / 2);
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
    struct zb_result infeasible;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      struct zb_tuner *tuner = create(&problem);
      const int64_t cost_ns = improve(tuner, &problem, INT64_MAX, 1000000);
      assert_true(cost_ns < INT64_MAX);
      // Nothing new.
      expect_equal(improve(tuner, &problem, INT64_MAX, 1000000), INT64_MAX, "told twice");
      zb_tuner_free(tuner);
    }
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_beats_greedy),
      cmocka_unit_test(test_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
