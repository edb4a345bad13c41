// Bounds and search for several stages a device: equal to every order tried, equal to what is known.
#include "solver/exact/chunked.h"

#include <string.h>

#include "solver/exact/grid.h"
#include "solver/exact/proof_check.h"
#include "solver/exact/root.h"
#include "solver/exact/window_engine.h"
#include "solver/io/proof_json.h"
#include "solver/model/bound.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static struct zb_result solve(const struct zb_profile *profile, enum zb_objective objective, double seconds) {
  const struct zb_problem problem = {.profile = profile,
                                     .objective = objective,
                                     .threads = 2,
                                     .seed = 1,
                                     .deadline = zb_deadline_in(zb_clock_ns(), seconds)};
  struct zb_result result;
  struct zb_error error = {0};
  expect(zb_engine_window.solve(&problem, NULL, &result, &error) == ZB_OK, "%s", error.text);
  if (result.schedule) {
    struct zb_timeline timeline = {0};
    expect(zb_check_schedule(profile, result.schedule, &timeline, &error) == ZB_OK, "%s", error.text);
    expect_equal(result.cost_ns, zb_timeline_cost(&timeline, objective), "cost");
    zb_timeline_free(&timeline);
  }
  return result;
}

// The least target that propagation does not refute, in ns; W counted, or poured. The way there, which a
// known cost changes, does not matter.
static int64_t root_bound(const struct zb_profile *profile, enum zb_objective objective, bool fluid) {
  struct zb_chain *chain = NULL;
  struct zb_lattice lattice = {0};
  struct zb_state state[3];
  struct zb_error error = {0};
  expect(zb_chain_create(profile, 0, &chain, &error) == ZB_OK, "%s", error.text);
  assert_non_null(chain->chunked);
  chain->chunked->fluid = fluid;
  for (int i = 0; i < 3; i++)
    assert_int_equal(zb_state_open(chain, objective, &lattice, &state[i], &error), ZB_OK);
  int64_t bound = 0;
  const int64_t hint = zb_chain_ticks(chain, zb_bound_closed_form(profile, objective));
  assert_int_equal(zb_root_bound(&state[0], &state[1], &state[2], hint, INT64_MAX, &bound), ZB_SWEEP_KEPT);
  int64_t again = 0;
  const int64_t costs[] = {bound, bound + 1, bound + bound / 8, 2 * bound + 1};
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++, again = 0) {
    const enum zb_sweep swept = zb_root_bound(&state[0], &state[1], &state[2], hint, costs[i], &again);
    assert_int_equal(swept, ZB_SWEEP_KEPT);
    expect_equal(again, bound, "bound below a known cost");
  }
  bound *= chain->tick_ns;
  for (int i = 0; i < 3; i++) zb_state_close(&state[i]);
  zb_lattice_free(&lattice);
  zb_chain_free(chain);
  return bound;
}

// Whether the result's bound is redone by its own proof, and the optimum plus 1 by none.
static void check_proof(const struct zb_profile *profile, enum zb_objective objective,
                        const struct zb_result *result, int64_t optimum_ns) {
  struct zb_proof_list tree = {NULL, 0};
  struct zb_error error = {0};
  if (result->proof)
    expect(zb_proof_parse(result->proof, strlen(result->proof), profile, objective, &tree, &error) == ZB_OK,
           "%s", error.text);
  if (result->bound_ns > zb_bound_closed_form(profile, objective))
    expect(zb_proof_check(profile, objective, result->bound_ns, &tree, result->relaxation, NULL, &error) ==
               ZB_OK,
           "%s", error.text);
  assert_int_equal(
      zb_proof_check(profile, objective, optimum_ns + 1, &tree, result->relaxation, NULL, &error), ZB_WRONG);
  zb_proof_list_free(&tree);
}

// 300 placements, all objectives in turn.
static void test_equals_brute_force(void **state) {
  (void)state;
  enum { SEED = 5, MOST = 100000 };
  static const enum zb_placement placements[4] = {ZB_LIST, ZB_V, ZB_LIST, ZB_LOOP};
  struct generate_random random = {SEED};
  int compared = 0, above_closed_form = 0, poured = 0, several[7][5] = {{0}};
  for (int i = 0; compared < part_of(300); i++) {
    struct zb_profile *profile =
        instance_profile_of(&random, placements[i % 4], 4, i % 3 == 0 ? 6 : 3, i % 3 == 0 ? 1 : 3);
    assert_non_null(profile);
    const enum zb_objective objective = (enum zb_objective)(i % ZB_OBJECTIVE_COUNT);
    struct brute brute;
    if ((profile->chunks == 1 && profile->placement != ZB_LIST) ||
        !brute_solve(profile, objective, MOST, &brute)) {
      zb_profile_free(profile);
      continue;
    }
    if (brute.feasible) {
      struct zb_result result = solve(profile, objective, 0);
      expect(result.cost_ns == brute.cost_ns && result.bound_ns == brute.cost_ns,
             "seed %d, number %d, %s: cost %lld, bound %lld, but the optimum is %lld", SEED, i,
             zb_objective_word(objective), (long long)result.cost_ns, (long long)result.bound_ns,
             (long long)brute.cost_ns);
      check_proof(profile, objective, &result, brute.cost_ns);
      above_closed_form += brute.cost_ns > zb_bound_closed_form(profile, objective);
      if (profile->chunks > 1) {
        const int64_t counted = root_bound(profile, objective, false);
        const int64_t fluid = root_bound(profile, objective, true);
        expect(fluid <= counted && counted <= brute.cost_ns,
               "seed %d, number %d, %s: poured %lld, counted %lld, optimum %lld", SEED, i,
               zb_objective_word(objective), (long long)fluid, (long long)counted, (long long)brute.cost_ns);
        poured += fluid > zb_bound_closed_form(profile, objective);
      }
      several[profile->devices][profile->chunks]++;
      compared++;
      zb_result_free(&result);
    }
    brute_free(&brute);
    zb_profile_free(profile);
  }
  assert_true(above_closed_form > part_of(50) && poured > part_of(20));
  assert_true(several[2][2] > 0 && several[3][2] > 0 && several[2][3] > 0 && several[2][4] > 0 &&
              several[5][1] > 0);
}

// f/b/w 3/4/2 a chunk on a V, comm 0, memory 1/0/-1.
static struct zb_profile *unit_v(int devices, int microbatches, int64_t limit) {
  struct zb_profile *profile = NULL;
  assert_int_equal(zb_profile_create(devices, 2, microbatches, ZB_V, &profile, NULL), ZB_OK);
  profile->has_memory = true;
  for (int s = 0; s < 2 * devices; s++) {
    profile->f_ns[s] = 3;
    profile->b_ns[s] = 4;
    profile->w_ns[s] = 2;
    profile->f_bytes[s] = 1;
    profile->w_bytes[s] = -1;
  }
  for (int d = 0; d < devices; d++) profile->limit_bytes[d] = limit;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  return profile;
}

static void test_known_bounds(void **state) {
  (void)state;
  static const struct {
    int devices, microbatches;
    int64_t limit, bound, optimum; // optimum 0: not asked for
  } rows[] = {{4, 8, 4, 199, 200}, {4, 8, 5, 179, 183}, {4, 8, 6, 169, 169}, {4, 8, 7, 160, 160},
              {4, 8, 8, 154, 154}, {8, 16, 8, 382, 0},  {8, 16, 9, 370, 0},  {8, 16, 10, 361, 0},
              {8, 16, 12, 343, 0}, {8, 16, 14, 325, 0}, {8, 16, 16, 314, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (left_out((int)i, 4)) continue;
    struct zb_profile *profile = unit_v(rows[i].devices, rows[i].microbatches, rows[i].limit);
    expect_equal(root_bound(profile, ZB_SPAN, false), rows[i].bound, "bound");
    const int64_t fluid = root_bound(profile, ZB_SPAN, true);
    assert_true(fluid <= rows[i].bound && fluid >= rows[i].bound - 1);
    if (rows[i].optimum > 0) {
      struct zb_result result = solve(profile, ZB_SPAN, 0);
      expect_equal(result.cost_ns, rows[i].optimum, "optimum");
      expect_equal(result.bound_ns, rows[i].optimum, "its bound");
      check_proof(profile, ZB_SPAN, &result, rows[i].optimum);
      // Splits or fluid W, whichever came first.
      assert_int_equal(result.proof != NULL || result.relaxation != NULL, rows[i].optimum > rows[i].bound);
      zb_result_free(&result);
    }
    zb_profile_free(profile);
  }
}

// Same answer for any number of threads, and a stage count that is not worth counting is no failure.
static void test_threads_and_many_stages(void **state) {
  (void)state;
  struct zb_profile *profile = unit_v(4, 8, 5);
  struct zb_result one, four;
  struct zb_error error = {0};
  struct zb_problem problem = {.profile = profile,
                               .objective = ZB_SPAN,
                               .threads = 1,
                               .seed = 3,
                               .rounds = 2,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  assert_int_equal(zb_engine_window.solve(&problem, NULL, &one, &error), ZB_OK);
  problem.threads = 4;
  assert_int_equal(zb_engine_window.solve(&problem, NULL, &four, &error), ZB_OK);
  assert_true(one.cost_ns == four.cost_ns && one.bound_ns == four.bound_ns && one.work == four.work);
  assert_int_equal(one.schedule->first[4], four.schedule->first[4]);
  assert_memory_equal(one.schedule->ops, four.schedule->ops,
                      one.schedule->first[4] * sizeof *one.schedule->ops);
  zb_result_free(&one);
  zb_result_free(&four);
  zb_profile_free(profile);
  assert_int_equal(zb_profile_create(2, ZB_MOST_CLASSES, 2, ZB_LOOP, &profile, NULL), ZB_OK);
  for (int s = 0; s < profile->stages; s++) profile->f_ns[s] = profile->b_ns[s] = profile->w_ns[s] = 1;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  one = solve(profile, ZB_SPAN, 1);
  assert_int_equal(one.status, ZB_UNKNOWN);
  zb_result_free(&one);
  zb_profile_free(profile);
}

// The states of a device with four stages fill any table: laying them out ends with the deadline, and where
// the memory does.
static void test_large_devices(void **state) {
  (void)state;
  enum { MOST = 1 << 20 };
  struct zb_profile *profile = NULL;
  struct zb_chain *chain = NULL;
  assert_int_equal(zb_profile_create(4, 4, 64, ZB_LOOP, &profile, NULL), ZB_OK);
  for (int s = 0; s < profile->stages; s++) profile->f_ns[s] = profile->b_ns[s] = profile->w_ns[s] = 10 + s;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  assert_int_equal(zb_chain_create(profile, 0, &chain, NULL), ZB_OK);
  for (int fluid = 0; fluid < 2; fluid++) {
    const struct zb_deadline passed = {0, 1};
    const struct zb_halt halt = {.deadline = &passed};
    struct zb_lattice lattice = {.most_states = MOST};
    struct zb_state large;
    chain->chunked->fluid = fluid == 1;
    assert_int_equal(zb_state_open(chain, ZB_SPAN, &lattice, &large, NULL), ZB_OK);
    zb_state_reset(&large, 2 * zb_chain_ticks(chain, zb_bound_closed_form(profile, ZB_SPAN)));
    assert_int_equal(zb_state_sweep(&large, 0), ZB_SWEEP_MEMORY);
    size_t entries = 0;
    for (int i = 0; i < lattice.grid->levels; i++) entries += lattice.grid->filled[i];
    assert_true(entries > 0 && entries <= MOST);
    lattice.halt = &halt;
    assert_int_equal(zb_state_sweep(&large, 0), ZB_SWEEP_STOPPED);
    zb_state_close(&large);
    zb_lattice_free(&lattice);
  }
  zb_chain_free(chain);
  zb_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equals_brute_force),
      cmocka_unit_test(test_known_bounds),
      cmocka_unit_test(test_threads_and_many_stages),
      cmocka_unit_test(test_large_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
