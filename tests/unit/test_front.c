// Layers of partial schedules: nothing below an optimum, the optimum at and above it, whatever is left out.
#include <stdlib.h>

#include "solver/exact/front.h"
#include "solver/exact/rules.h"
#include "solver/exact/window_engine.h"
#include "tests/brute.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

// One search under a target; *cost_ns of what it finds. It starts from windows that know nothing but the
// target, so that all is up to it.
static enum zb_front_end search(const struct zb_profile *profile, enum zb_objective objective,
                                const struct zb_chain *chain, int64_t target, size_t most, int64_t *cost_ns) {
  struct zb_lattice lattice = {0};
  struct zb_state state;
  struct zb_orders orders;
  struct zb_timer timer;
  assert_int_equal(zb_state_open(chain, objective, &lattice, &state, NULL), ZB_OK);
  assert_int_equal(zb_orders_create(chain, &orders, NULL), ZB_OK);
  assert_int_equal(zb_timer_open(profile, &timer, NULL), ZB_OK);
  struct zb_front *front = zb_front_create(chain, objective);
  assert_non_null(front);
  zb_state_reset(&state, target);
  enum zb_front_end end = ZB_FRONT_REFUTED;
  if (target >= 0) end = zb_front_begin(front, &state, most);
  // In small pieces, as the rounds of a search have it.
  while (end == ZB_FRONT_OPEN) end = zb_front_run(front, 7, NULL, &orders);
  if (end == ZB_FRONT_SOLVED)
    assert_int_equal(zb_timer_cost(&timer, objective, &orders, cost_ns, NULL, NULL), ZB_OK);
  zb_front_free(front);
  zb_timer_close(&timer);
  zb_orders_free(&orders);
  zb_state_close(&state);
  zb_lattice_free(&lattice);
  return end;
}

// What a whole search must say around an optimum, and what narrow ones may. Returns how many targets below
// it were refuted as proofs are. Targets above lie up to 2 / wide above.
static int try_around(const struct zb_profile *profile, enum zb_objective objective, int64_t optimum_ns,
                      int64_t wide) {
  struct zb_chain *chain = NULL;
  int64_t cost_ns = 0;
  assert_int_equal(zb_chain_create(profile, 0, &chain, NULL), ZB_OK);
  int refuted = 0;
  if (zb_front_applies(chain, objective)) {
    const int64_t optimum = optimum_ns / chain->tick_ns;
    const bool proves = zb_front_proves(chain, objective);
    for (int part = 0; part < 3; part++) {
      const int64_t below = optimum - 1 - part * (optimum / 40);
      const enum zb_front_end end = search(profile, objective, chain, below, SIZE_MAX, &cost_ns);
      assert_int_equal(end, ZB_FRONT_REFUTED);
      refuted += proves;
      const int64_t above = optimum + part * (optimum / wide);
      const enum zb_front_end found = search(profile, objective, chain, above, SIZE_MAX, &cost_ns);
      if (proves) assert_int_equal(found, ZB_FRONT_SOLVED);
      if (found == ZB_FRONT_SOLVED && proves) expect_equal(cost_ns, optimum_ns, "cost");
      if (found == ZB_FRONT_SOLVED) assert_true(cost_ns >= optimum_ns && cost_ns <= above * chain->tick_ns);
    }
    for (size_t most = 1; most <= 3; most++) {
      const enum zb_front_end end =
          search(profile, objective, chain, optimum + optimum / wide, most, &cost_ns);
      if (proves) assert_true(end == ZB_FRONT_SOLVED || end == ZB_FRONT_BARREN);
      if (end == ZB_FRONT_SOLVED) assert_true(cost_ns >= optimum_ns);
    }
  }
  zb_chain_free(chain);
  return refuted;
}

static void test_equals_brute_force(void **state) {
  (void)state;
  int refuted = 0, compared = 0;
  struct generate_random random = {2401};
  for (int i = 0; i < part_of(1000); i++) {
    const bool chain = i % 4 != 3;
    struct zb_profile *profile = instance_profile(&random,
                                                  chain        ? ZB_CHAIN
                                                  : i % 8 == 3 ? ZB_V
                                                               : ZB_LOOP,
                                                  chain ? 4 : 2, chain ? 4 : 3);
    assert_non_null(profile);
    for (int objective = ZB_SPAN; objective <= ZB_MAKESPAN; objective++) {
      struct brute brute;
      if (!brute_solve(profile, (enum zb_objective)objective, 30000, &brute)) continue;
      if (brute.feasible) {
        refuted += try_around(profile, (enum zb_objective)objective, brute.cost_ns, 6);
        compared++;
      }
      brute_free(&brute);
    }
    zb_profile_free(profile);
  }
  expect(compared > part_of(500) && refuted > part_of(500), "%d compared, %d targets refuted", compared,
         refuted);
}

// Beyond what brute force reaches: what trees prove without layers.
static void test_equals_trees(void **state) {
  (void)state;
  int refuted = 0, compared = 0;
  for (uint64_t i = 0; i < 110; i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_UNEVEN, 15362, i);
    if (generated.devices > 5) continue;
    struct zb_profile *profile = instance_from_generated(&generated);
    assert_non_null(profile);
    profile->microbatches = 5 + (int)(i % 4);
    assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
    const struct zb_problem problem = {.profile = profile,
                                       .objective = i % 3 == 0 ? ZB_MAKESPAN : ZB_SPAN,
                                       .threads = 2,
                                       .seed = 1,
                                       .rounds = 4,
                                       .rules_off = ZB_RULE_BIT(ZB_RULE_FRONT),
                                       .deadline = zb_deadline_in(zb_clock_ns(), 20)};
    struct zb_result result;
    assert_int_equal(zb_engine_window.solve(&problem, NULL, &result, NULL), ZB_OK);
    if (result.status == ZB_OPTIMAL) {
      refuted += try_around(profile, problem.objective, result.cost_ns, 100);
      compared++;
    }
    zb_result_free(&result);
    zb_profile_free(profile);
  }
  expect(compared > 12 && refuted > 36, "%d compared, %d targets refuted", compared, refuted);
}

// More microbatches than a count holds are left to the other searches.
static void test_too_many(void **state) {
  (void)state;
  for (int microbatches = 65535; microbatches <= 65536; microbatches++) {
    struct zb_profile *profile = NULL;
    struct zb_chain *chain = NULL;
    assert_int_equal(zb_profile_create(1, 1, microbatches, ZB_CHAIN, &profile, NULL), ZB_OK);
    profile->f_ns[0] = profile->b_ns[0] = profile->w_ns[0] = 1;
    assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
    assert_int_equal(zb_chain_create(profile, 0, &chain, NULL), ZB_OK);
    assert_int_equal(zb_front_proves(chain, ZB_SPAN), microbatches == 65535);
    zb_chain_free(chain);
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equals_brute_force),
      cmocka_unit_test(test_equals_trees),
      cmocka_unit_test(test_too_many),
  };
  return cmocka_run_group_tests_name("front", tests, NULL, NULL);
}
