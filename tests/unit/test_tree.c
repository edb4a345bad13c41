// Trees that pause come to the same end as those that run in one go, and improvers take part in a search.
#include <stdlib.h>
#include <string.h>

#include "heuristic/critical.h"
#include "heuristic/families.h"
#include "heuristic/tuned.h"
#include "solver/exact/tree.h"
#include "solver/exact/window_engine.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

// Small enough to close, large enough for trees: some of these split.
static struct zb_profile *small_uneven(uint64_t index) {
  struct generated_profile generated;
  generate_profile(&generated, GENERATE_UNEVEN, 8, index);
  if (generated.devices > 6) return NULL;
  if (generated.microbatches > 8) generated.microbatches = 8;
  for (int d = 0; d < generated.devices; d++) generated.limit[d] = 1000 * generated.devices * 6 / 10;
  return instance_from_generated(&generated);
}

// Runs a tree by `work` states at a time. Returns how it ended, and how often it was run.
static enum zb_tree_end run_by(const struct zb_profile *profile, int64_t target_ns, bool probing,
                               int64_t work, int *runs) {
  struct zb_chain *chain = NULL;
  struct zb_lattice lattice = {0};
  struct zb_state state;
  struct zb_tree tree = {0};
  struct zb_timer timer;
  struct zb_orders orders;
  struct zb_proof proof = {0};
  double weight[GENERATE_MAX_DEVICES];
  uint64_t random = 1;
  for (int d = 0; d < GENERATE_MAX_DEVICES; d++) weight[d] = 1;
  assert_int_equal(zb_chain_create(profile, 0, &chain, NULL), ZB_OK);
  assert_int_equal(zb_state_open(chain, ZB_SPAN, &lattice, &state, NULL), ZB_OK);
  assert_int_equal(zb_timer_open(profile, &timer, NULL), ZB_OK);
  assert_int_equal(zb_orders_create(chain, &orders, NULL), ZB_OK);
  zb_state_reset(&state, target_ns / chain->tick_ns);
  enum zb_tree_end end = ZB_TREE_REFUTED;
  *runs = 0;
  if (zb_state_propagate(&state) == ZB_SWEEP_KEPT) {
    int64_t *before = malloc(state.cells * sizeof *before);
    assert_non_null(before);
    memcpy(before, state.cell, state.cells * sizeof *before);
    const struct zb_tree_rule rule = {ZB_PICK_SMALLEST, false, 3000, 20, probing};
    zb_tree_begin(&tree, &state, &rule, weight, &random, &proof);
    do {
      end = zb_tree_run(&tree, work, &timer, &orders);
      ++*runs;
    } while (end == ZB_TREE_CAPPED && tree.nodes < rule.nodes);
    zb_tree_end(&tree);
    assert_memory_equal(before, state.cell, state.cells * sizeof *before);
    free(before);
  }
  if (end == ZB_TREE_SOLVED) {
    int64_t cost_ns;
    assert_int_equal(zb_timer_cost(&timer, ZB_SPAN, &orders, &cost_ns, NULL, NULL), ZB_OK);
    assert_true(cost_ns <= target_ns);
  }
  zb_proof_free(&proof);
  zb_orders_free(&orders);
  zb_timer_close(&timer);
  zb_tree_free(&tree);
  zb_state_close(&state);
  zb_lattice_free(&lattice);
  zb_chain_free(chain);
  return end;
}

static void test_pauses_change_nothing(void **state) {
  (void)state;
  int paused = 0;
  for (uint64_t i = 0; i < 12; i++) {
    struct zb_profile *profile = small_uneven(i);
    if (!profile) continue;
    const struct zb_problem problem = {.profile = profile,
                                       .objective = ZB_SPAN,
                                       .threads = 1,
                                       .rounds = 4,
                                       .deadline = zb_deadline_in(zb_clock_ns(), 0)};
    struct zb_result result;
    assert_int_equal(zb_engine_window.solve(&problem, NULL, &result, NULL), ZB_OK);
    if (result.status == ZB_OPTIMAL) {
      for (int probing = 0; probing < 2; probing++) {
        for (int64_t work = 50; work < 1000000; work *= 1000) {
          int runs = 0;
          const enum zb_tree_end below = run_by(profile, result.cost_ns - 1000, probing, work, &runs);
          paused += runs > 1;
          assert_true(below == ZB_TREE_REFUTED || below == ZB_TREE_CAPPED);
          const enum zb_tree_end at = run_by(profile, result.cost_ns, probing, work, &runs);
          paused += runs > 1;
          assert_true(at == ZB_TREE_SOLVED || at == ZB_TREE_CAPPED);
        }
      }
    }
    zb_result_free(&result);
    zb_profile_free(profile);
  }
  expect(paused >= 2, "only %d trees paused", paused);
}

struct helper {
  const struct zb_schedule *answer; // NULL: none
  int calls, fail_at;
  int64_t shown_ns; // cost of the schedule that the last call was shown
};

static enum zb_status help(void *context, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                           struct zb_schedule **found, struct zb_error *error) {
  struct helper *helper = context;
  assert_non_null(best);
  assert_true(cost_ns > 0 && work > 0);
  *found = NULL;
  helper->shown_ns = cost_ns;
  if (++helper->calls == helper->fail_at) return zb_fail_memory(error);
  return helper->answer ? zb_schedule_copy(helper->answer, found, error) : ZB_OK;
}

// An open instance whose search takes what an improver finds, from the second round on; the one behind it
// goes on from that in the same round, unless it is alone.
static void test_improvers_take_part(void **state) {
  (void)state;
  struct generated_profile generated;
  generate_profile(&generated, GENERATE_UNEVEN, 1, 100);
  struct zb_profile *profile = instance_from_generated(&generated);
  assert_non_null(profile);
  struct zb_problem problem = {
      .profile = profile, .objective = ZB_SPAN, .threads = 1, .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  struct zb_result greedy;
  assert_int_equal(zb_engine_greedy.solve(&problem, NULL, &greedy, NULL), ZB_OK);

  struct zb_tuner *tuner = NULL;
  struct zb_schedule *tuned = NULL;
  assert_int_equal(zb_tuner_create(&problem, &tuner, NULL), ZB_OK);
  assert_int_equal(zb_tuner_improve(tuner, NULL, INT64_MAX, 1000000, &tuned, NULL), ZB_OK);
  assert_non_null(tuned);
  zb_tuner_free(tuner);
  struct zb_timeline timeline = {0};
  assert_int_equal(zb_timeline_compute(profile, tuned, &timeline, NULL), ZB_OK);
  const int64_t tuned_ns = zb_timeline_cost(&timeline, ZB_SPAN);

  struct helper helper = {.answer = tuned}, linked = {0}, alone = {0};
  problem.improver[problem.improvers++] = (struct zb_improver){help, &helper, 16, false};
  problem.improver[problem.improvers++] = (struct zb_improver){help, &linked, 16, false};
  problem.improver[problem.improvers++] = (struct zb_improver){help, &alone, 16, true};
  int64_t first_round_ns = 0;
  for (int rounds = 1; rounds <= 3; rounds++) {
    if (left_out(rounds / 3, 2)) continue;
    helper.calls = 0;
    problem.rounds = rounds;
    struct zb_result result;
    assert_int_equal(zb_engine_window.solve(&problem, greedy.schedule, &result, NULL), ZB_OK);
    assert_int_equal(helper.calls, rounds - 1);
    if (rounds == 1) first_round_ns = result.cost_ns;
    if (rounds > 1) assert_true(result.cost_ns <= tuned_ns);
    if (rounds == 2) {
      assert_true(tuned_ns < first_round_ns);
      assert_true(linked.shown_ns <= tuned_ns);
      expect_equal(alone.shown_ns, first_round_ns, "what an improver of its own is shown");
    }
    zb_result_free(&result);
  }

  helper = (struct helper){.answer = tuned, .fail_at = 1};
  struct zb_result result;
  assert_int_equal(zb_engine_window.solve(&problem, greedy.schedule, &result, NULL), ZB_FAILED);

  zb_timeline_free(&timeline);
  zb_schedule_free(tuned);
  zb_result_free(&greedy);
  zb_profile_free(profile);
}

// Tuning and exchanges beside the search: the same for any number of threads.
static void test_same_for_any_threads(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 3; i++) {
    struct zb_profile *profile = small_uneven(40 + i);
    if (!profile) continue;
    struct zb_result result[3];
    for (int k = 0; k < 3; k++) {
      struct zb_problem problem = {.profile = profile,
                                   .objective = ZB_SPAN,
                                   .threads = k + 1,
                                   .rounds = 4,
                                   .deadline = zb_deadline_in(zb_clock_ns(), 0)};
      struct zb_tuner *tuner = NULL;
      assert_int_equal(zb_tuner_create(&problem, &tuner, NULL), ZB_OK);
      problem.improver[problem.improvers++] = (struct zb_improver){zb_tuner_improve, tuner, 16, true};
      struct zb_exchanger *exchanger = NULL;
      assert_int_equal(zb_exchanger_create(&problem, &exchanger, NULL), ZB_OK);
      problem.improver[problem.improvers++] =
          (struct zb_improver){zb_exchanger_improve, exchanger, 48, false};
      assert_int_equal(zb_engine_window.solve(&problem, NULL, &result[k], NULL), ZB_OK);
      zb_tuner_free(tuner);
      zb_exchanger_free(exchanger);
      expect_equal(result[k].cost_ns, result[0].cost_ns, "cost");
      expect_equal(result[k].bound_ns, result[0].bound_ns, "bound");
      assert_string_equal(result[k].proof ? result[k].proof : "", result[0].proof ? result[0].proof : "");
      const size_t ops = result[0].schedule->first[profile->devices];
      assert_memory_equal(result[k].schedule->ops, result[0].schedule->ops,
                          ops * sizeof *result[0].schedule->ops);
    }
    for (int k = 0; k < 3; k++) zb_result_free(&result[k]);
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pauses_change_nothing),
      cmocka_unit_test(test_improvers_take_part),
      cmocka_unit_test(test_same_for_any_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
