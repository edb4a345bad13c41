// Turns of single ops: valid, within the limits, never below the optimum, better than where they start, and
// the same again.
#include "heuristic/families.h"
#include "heuristic/v_turns.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

enum { SEED = 20260 };

static struct zb_problem problem_of(const struct zb_profile *profile, enum zb_objective objective) {
  return (struct zb_problem){.profile = profile,
                             .objective = objective,
                             .threads = 1,
                             .seed = 3,
                             .deadline = zb_deadline_in(zb_clock_ns(), 0)};
}

// A few calls, each going on where the last one stopped. The last cost, no more than start_ns.
static int64_t improve(const struct zb_problem *problem, const struct zb_schedule *start, int64_t start_ns,
                       int64_t work) {
  enum { CALLS = 3 };
  const struct zb_profile *profile = problem->profile;
  struct zb_turner *turner = NULL;
  struct zb_schedule *best = NULL;
  struct zb_error error = {0};
  int64_t cost_ns = start_ns;
  expect(zb_turner_create(problem, &turner, &error) == ZB_OK, "%s", error.text);
  for (int call = 0; call < CALLS; call++) {
    struct zb_schedule *found = NULL;
    struct zb_timeline timeline = {0};
    expect(zb_turner_improve(turner, best ? best : start, cost_ns, work, &found, &error) == ZB_OK, "%s",
           error.text);
    if (!found) continue;
    expect(zb_check_schedule(profile, found, &timeline, &error) == ZB_OK, "seed %d: %s", SEED, error.text);
    if (problem->objective == ZB_PERIOD)
      expect(zb_timeline_period(profile, found, &timeline, &error) == ZB_OK, "%s", error.text);
    const int64_t found_ns = zb_timeline_cost(&timeline, problem->objective);
    assert_true(found_ns < cost_ns);
    cost_ns = found_ns;
    zb_timeline_free(&timeline);
    zb_schedule_free(best);
    best = found;
  }
  zb_schedule_free(best);
  zb_turner_free(turner);
  return cost_ns;
}

// From one microbatch after another. Whatever a profile may hold.
static void test_random(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  int compared = 0, better = 0, brutes = 0;
  for (int i = 0; i < part_of(600); i++) {
    const enum zb_objective objective = (enum zb_objective)(i % ZB_OBJECTIVE_COUNT);
    struct zb_profile *profile = instance_profile(&random, ZB_V, i % 2 ? 3 : 6, i % 2 ? 3 : 9);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, objective);
    struct zb_schedule *start = NULL;
    struct zb_result first, infeasible;
    struct brute brute;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      assert_int_equal(zb_schedule_sequential(profile, &start, NULL), ZB_OK);
      assert_int_equal(zb_result_from_schedule(&problem, start, &first, NULL), ZB_OK);
      const int64_t cost_ns = improve(&problem, first.schedule, first.cost_ns, 20000);
      expect_equal(cost_ns, improve(&problem, first.schedule, first.cost_ns, 20000), "the same again");
      compared++;
      better += cost_ns < first.cost_ns;
      if (i % 2 && brute_solve(profile, objective, 20000, &brute)) {
        expect(brute.feasible && cost_ns >= brute.cost_ns, "seed %d, instance %d: below the optimum", SEED,
               i);
        brutes++;
        brute_free(&brute);
      }
      zb_result_free(&first);
    }
    zb_profile_free(profile);
  }
  expect(better > compared / 3 && brutes > part_of(20), "seed %d: %d of %d better, %d brute", SEED, better,
         compared, brutes);
}

static struct zb_profile *v_profile(int p, int m, int64_t f_ns, int64_t b_ns, int64_t w_ns, int64_t comm_ns,
                                    int64_t chunks) {
  struct zb_profile *profile = NULL;
  assert_int_equal(zb_profile_create(p, 2, m, ZB_V, &profile, NULL), ZB_OK);
  for (int s = 0; s < profile->stages; s++) {
    profile->f_ns[s] = f_ns;
    profile->b_ns[s] = b_ns;
    profile->w_ns[s] = w_ns;
    profile->f_bytes[s] = 1;
    profile->w_bytes[s] = -1;
    if (s + 1 < profile->stages) profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = comm_ns;
  }
  for (int d = 0; d < p; d++) profile->limit_bytes[d] = chunks;
  profile->has_memory = true;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  return profile;
}

// 28.3B's chunk times on 16 devices: zb-v is 0.4% above the optimum of 2684696 us, exchanges alone take long.
static void test_below_zb_v(void **state) {
  (void)state;
  struct zb_profile *profile = v_profile(16, 48, 9458, 9748, 7288, 879, 32);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN);
  struct zb_result zb_v;
  assert_int_equal(zb_engine_zb_v.solve(&problem, NULL, &zb_v, NULL), ZB_OK);
  const int64_t cost_ns = improve(&problem, zb_v.schedule, zb_v.cost_ns, 3000000);
  expect(cost_ns < zb_v.cost_ns && cost_ns >= 2684696, "%lld from %lld", (long long)cost_ns,
         (long long)zb_v.cost_ns);
  zb_result_free(&zb_v);
  zb_profile_free(profile);
}

// Times near the largest that a profile may hold, and none at all.
static void test_extreme_times(void **state) {
  (void)state;
  const int64_t times_ns[] = {0, (int64_t)1 << 44};
  for (int k = 0; k < 2; k++) {
    struct zb_profile *profile = v_profile(6, 4, times_ns[k], times_ns[k], 0, 0, 6);
    const struct zb_problem problem = problem_of(profile, ZB_SPAN);
    struct zb_schedule *start = NULL;
    struct zb_result first;
    assert_int_equal(zb_schedule_sequential(profile, &start, NULL), ZB_OK);
    assert_int_equal(zb_result_from_schedule(&problem, start, &first, NULL), ZB_OK);
    const int64_t cost_ns = improve(&problem, first.schedule, first.cost_ns, 20000);
    assert_true(k == 0 ? cost_ns == 0 : cost_ns < first.cost_ns);
    zb_result_free(&first);
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_below_zb_v),
      cmocka_unit_test(test_extreme_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
