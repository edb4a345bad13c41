// Exchanges on critical paths: valid on every placement, never worse than the start, never below the optimum;
// and the graph under them: what is undone is as before, what is committed is timed as the timeline does.
#include "heuristic/critical.h"
#include "heuristic/critical_move.h"
#include "heuristic/order_graph.h"
#include "solver/cli/engines.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

enum { SEED = 20240 };

static struct zb_problem problem_of(const struct zb_profile *profile, enum zb_objective objective) {
  struct zb_problem problem = {.profile = profile, .objective = objective, .threads = 1, .seed = 7};
  problem.deadline = zb_deadline_in(zb_clock_ns(), 0);
  return problem;
}

// Valid, within the limits, and of the cost that it claims.
static void expect_holds(const struct zb_problem *problem, const struct zb_result *result, int number) {
  struct zb_error error = {0};
  struct zb_timeline timeline = {0};
  const struct zb_profile *profile = problem->profile;
  expect(result->status == ZB_FEASIBLE, "seed %d, instance %d: %s", SEED, number,
         zb_status_word(result->status));
  expect(zb_check_schedule(profile, result->schedule, &timeline, &error) == ZB_OK, "seed %d, instance %d: %s",
         SEED, number, error.text);
  if (problem->objective == ZB_PERIOD)
    expect(zb_timeline_period(profile, result->schedule, &timeline, &error) == ZB_OK, "%s", error.text);
  expect_equal(result->cost_ns, zb_timeline_cost(&timeline, problem->objective), "cost");
  zb_timeline_free(&timeline);
}

static struct zb_result improve(const struct zb_problem *problem, const struct zb_schedule *start,
                                int64_t work, int number) {
  struct zb_result result;
  struct zb_error error = {0};
  expect(zb_critical_improve(problem, start, work, 0, &result, &error) == ZB_OK, "seed %d, instance %d: %s",
         SEED, number, error.text);
  expect_holds(problem, &result, number);
  return result;
}

// From one microbatch after another, where there is the most to gain, to beside the optimum.
static void test_against_brute_force(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  int compared = 0, reached = 0, better = 0;
  for (int i = 0; i < part_of(400); i++) {
    const enum zb_placement placement = (enum zb_placement)(i % ZB_PLACEMENT_COUNT);
    const enum zb_objective objective = (enum zb_objective)(i / 4 % ZB_OBJECTIVE_COUNT);
    struct zb_profile *profile = instance_profile(&random, placement, 3, 3);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, objective);
    struct zb_schedule *start = NULL;
    struct zb_result first, infeasible;
    struct brute brute;
    if (!zb_result_if_infeasible(&problem, &infeasible) && brute_solve(profile, objective, 20000, &brute)) {
      struct zb_schedule *copy = NULL;
      assert_int_equal(zb_schedule_sequential(profile, &start, NULL), ZB_OK);
      assert_int_equal(zb_schedule_copy(start, &copy, NULL), ZB_OK);
      assert_int_equal(zb_result_from_schedule(&problem, copy, &first, NULL), ZB_OK);
      struct zb_result result = improve(&problem, start, 100000, i);
      expect(result.cost_ns <= first.cost_ns, "seed %d, instance %d: worse than its start", SEED, i);
      expect(brute.feasible && result.cost_ns >= brute.cost_ns, "seed %d, instance %d: below the optimum",
             SEED, i);
      compared++;
      reached += result.cost_ns <= brute.cost_ns;
      better += result.cost_ns < first.cost_ns;
      zb_result_free(&first);
      zb_result_free(&result);
      brute_free(&brute);
    }
    zb_schedule_free(start);
    zb_profile_free(profile);
  }
  expect(compared > part_of(100) && better > compared / 5 && reached > compared - compared / 10,
         "seed %d: of %d compared %d became better and %d optimal", SEED, compared, better, reached);
}

// From the heuristics' best, twice: the same both times.
static void test_same_again(void **state) {
  (void)state;
  struct generate_random random = {SEED + 1};
  for (int i = 0; i < part_of(40); i++) {
    const enum zb_placement placement = (enum zb_placement)(i % ZB_PLACEMENT_COUNT);
    struct zb_profile *profile = instance_profile(&random, placement, 5, 8);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, (enum zb_objective)(i / 4 % ZB_OBJECTIVE_COUNT));
    struct zb_result start, infeasible;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      assert_int_equal(zb_auto_heuristics(&problem, NULL, &start, NULL), ZB_OK);
      struct zb_result once = improve(&problem, start.schedule, 200000, i);
      struct zb_result again = improve(&problem, start.schedule, 200000, i);
      expect(once.cost_ns <= start.cost_ns, "seed %d, instance %d: worse than its start", SEED, i);
      expect_equal(once.cost_ns, again.cost_ns, "the same again");
      expect_equal(once.work, again.work, "work, the same again");
      zb_result_free(&start);
      zb_result_free(&once);
      zb_result_free(&again);
    }
    zb_profile_free(profile);
  }
}

// p=4 m=8 on a V, 3/4/2, no comm, 4 chunk activations: optimum 200 (design), published frameworks 216.
static void test_known_optimum(void **state) {
  (void)state;
  struct zb_profile *profile = NULL;
  assert_int_equal(zb_profile_create(4, 2, 8, ZB_V, &profile, NULL), ZB_OK);
  for (int s = 0; s < profile->stages; s++) {
    profile->f_ns[s] = 3;
    profile->b_ns[s] = 4;
    profile->w_ns[s] = 2;
    profile->f_bytes[s] = 1;
    profile->w_bytes[s] = -1;
  }
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = 4;
  profile->has_memory = true;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN);
  struct zb_result start;
  assert_int_equal(zb_auto_heuristics(&problem, NULL, &start, NULL), ZB_OK);
  struct zb_result result = improve(&problem, start.schedule, 20000000, 0);
  expect(result.cost_ns >= 200 && result.cost_ns <= 202, "cost is %lld", (long long)result.cost_ns);
  zb_result_free(&start);
  zb_result_free(&result);
  zb_profile_free(profile);
}

// Random exchanges, committed or undone: starts stay those of the timeline, kept bytes below the limits.
static void test_graph_agrees_with_timeline(void **state) {
  (void)state;
  struct generate_random random = {SEED + 2};
  int64_t committed = 0, undone = 0;
  for (int i = 0; i < 60; i++) {
    struct zb_profile *profile = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 4, 6);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, ZB_SPAN);
    struct zb_result infeasible;
    struct zb_schedule *start = NULL;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      struct zb_graph graph;
      assert_int_equal(zb_schedule_sequential(profile, &start, NULL), ZB_OK);
      assert_int_equal(zb_graph_create(profile, start, true, &graph, NULL), ZB_OK);
      for (int k = 0; k < 50; k++) {
        for (int n = 0; n < 3; n++) {
          const int64_t drawn = generate_between(&random, 0, graph.nodes - 1);
          zb_graph_swap(&graph, (int32_t)drawn);
        }
        int64_t most = 0;
        for (int d = 0; d < graph.devices; d++)
          if (zb_graph_length(&graph, d) > most) most = zb_graph_length(&graph, d);
        const bool holds = zb_graph_time(&graph, most + most / 4 + 1, INT64_MAX);
        const bool keep = holds && generate_between(&random, 0, 3) > 0;
        if (keep)
          zb_graph_commit(&graph);
        else
          zb_graph_undo(&graph);
        committed += keep;
        undone += !keep;
        struct zb_schedule *schedule = NULL;
        struct zb_timeline timeline = {0};
        struct zb_error error = {0};
        assert_int_equal(zb_graph_write(&graph, &schedule, NULL), ZB_OK);
        expect(zb_check_schedule(profile, schedule, &timeline, &error) == ZB_OK, "seed %d, instance %d: %s",
               SEED, i, error.text);
        for (int d = 0; d < graph.devices; d++)
          expect_equal(zb_graph_length(&graph, d) / graph.scale,
                       timeline.last_end_ns[d] - timeline.first_start_ns[d], "length of a device");
        zb_timeline_free(&timeline);
        zb_schedule_free(schedule);
      }
      zb_graph_free(&graph);
    }
    zb_schedule_free(start);
    zb_profile_free(profile);
  }
  assert_true(committed > 200 && undone > 200);
}

// A turn. What it found, which must hold and cost less than cost_ns, or NULL.
static struct zb_schedule *turn(struct zb_exchanger *exchanger, const struct zb_problem *problem,
                                const struct zb_schedule *best, int64_t *cost_ns, int number) {
  struct zb_schedule *found = NULL, *copy = NULL;
  struct zb_result result;
  assert_int_equal(zb_exchanger_improve(exchanger, best, *cost_ns, 20000, &found, NULL), ZB_OK);
  if (!found) return NULL;
  assert_int_equal(zb_schedule_copy(found, &copy, NULL), ZB_OK);
  assert_int_equal(zb_result_from_schedule(problem, copy, &result, NULL), ZB_OK);
  expect_holds(problem, &result, number);
  expect(result.cost_ns < *cost_ns, "seed %d, instance %d: no better", SEED, number);
  *cost_ns = result.cost_ns;
  zb_result_free(&result);
  return found;
}

// Turns go on where the last one stopped, the same again for the same turns; a better order given from
// outside is taken up, so that what follows is better still or nothing.
static void test_turns(void **state) {
  (void)state;
  enum { TURNS = 8 };
  struct generate_random random = {SEED + 4};
  int late = 0, adopted = 0;
  for (int i = 0; i < part_of(40); i++) {
    const enum zb_placement placement = (enum zb_placement)(i % ZB_PLACEMENT_COUNT);
    struct zb_profile *profile = instance_profile(&random, placement, 5, 8);
    assert_non_null(profile);
    const struct zb_problem problem = problem_of(profile, (enum zb_objective)(i / 4 % ZB_OBJECTIVE_COUNT));
    struct zb_result start, better, infeasible;
    struct zb_schedule *sequential = NULL, *copy = NULL;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      assert_int_equal(zb_schedule_sequential(profile, &sequential, NULL), ZB_OK);
      assert_int_equal(zb_schedule_copy(sequential, &copy, NULL), ZB_OK);
      assert_int_equal(zb_result_from_schedule(&problem, copy, &start, NULL), ZB_OK);
      assert_int_equal(zb_auto_heuristics(&problem, NULL, &better, NULL), ZB_OK);
      struct zb_exchanger *exchanger[2];
      int64_t cost_ns[2] = {start.cost_ns, start.cost_ns};
      for (int k = 0; k < 2; k++) assert_int_equal(zb_exchanger_create(&problem, &exchanger[k], NULL), ZB_OK);
      for (int n = 0; n < 2 * TURNS; n++) {
        const bool outside = n >= TURNS && better.cost_ns < cost_ns[0];
        adopted += outside;
        for (int k = 0; k < 2; k++) {
          if (outside) cost_ns[k] = better.cost_ns;
          struct zb_schedule *found =
              turn(exchanger[k], &problem, outside ? better.schedule : sequential, &cost_ns[k], i);
          late += found && n > 0;
          zb_schedule_free(found);
        }
        expect_equal(cost_ns[0], cost_ns[1], "the same again");
      }
      for (int k = 0; k < 2; k++) zb_exchanger_free(exchanger[k]);
      zb_result_free(&start);
      zb_result_free(&better);
    }
    zb_schedule_free(sequential);
    zb_profile_free(profile);
  }
  expect(late > part_of(10) && adopted > 0, "seed %d: %d found after a pause, %d taken up", SEED, late,
         adopted);
}

// A deadline that has passed leaves the start.
static void test_no_time(void **state) {
  (void)state;
  struct generate_random random = {SEED + 3};
  for (int i = 0; i < 40; i++) {
    struct zb_profile *profile = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 4, 4);
    assert_non_null(profile);
    struct zb_problem problem = problem_of(profile, ZB_SPAN);
    problem.deadline = zb_deadline_in(1, 1e-9);
    struct zb_result infeasible;
    struct zb_schedule *start = NULL;
    if (!zb_result_if_infeasible(&problem, &infeasible)) {
      assert_int_equal(zb_schedule_sequential(profile, &start, NULL), ZB_OK);
      struct zb_result result = improve(&problem, start, INT64_MAX, i);
      zb_result_free(&result);
    }
    zb_schedule_free(start);
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_brute_force),
      cmocka_unit_test(test_same_again),
      cmocka_unit_test(test_known_optimum),
      cmocka_unit_test(test_graph_agrees_with_timeline),
      cmocka_unit_test(test_turns),
      cmocka_unit_test(test_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
