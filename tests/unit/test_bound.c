// The closed-form bound: never above a schedule, and exact where the pipe leaves no choice.
#include "solver/model/bound.h"

#include "heuristic/families.h"
#include "solver/model/number.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static int64_t cost_of(const struct zb_profile *p, const struct zb_schedule *schedule,
                       enum zb_objective objective) {
  struct zb_timeline t = {0};
  assert_int_equal(zb_timeline_compute(p, schedule, &t, NULL), ZB_OK);
  assert_int_equal(zb_timeline_period(p, schedule, &t, NULL), ZB_OK);
  int64_t cost = zb_timeline_cost(&t, objective);
  zb_timeline_free(&t);
  return cost;
}

static void test_never_above(void **state) {
  (void)state;
  struct generate_random random = {61};
  int met[ZB_OBJECTIVE_COUNT] = {0};
  for (int i = 0; i < 3000; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 6, 4);
    assert_non_null(p);
    int64_t bound[ZB_OBJECTIVE_COUNT];
    for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) {
      bound[o] = zb_bound_closed_form(p, (enum zb_objective)o);
      for (int d = 0; d < p->devices; d++) assert_true(bound[o] >= zb_profile_least_work(p, d));
    }
    for (int k = 0; k < 4; k++) {
      struct zb_schedule *schedule =
          instance_order(p, (enum instance_backward)(k % INSTANCE_BACKWARDS), &random);
      assert_non_null(schedule);
      for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) {
        int64_t cost = cost_of(p, schedule, (enum zb_objective)o);
        expect(bound[o] <= cost, "number %d, %s of %d x %d, %d microbatches: %s %lld is below the bound %lld",
               i, zb_placement_word(p->placement), p->devices, p->chunks, p->microbatches,
               zb_objective_word((enum zb_objective)o), (long long)cost, (long long)bound[o]);
        met[o] += bound[o] == cost;
      }
      zb_schedule_free(schedule);
    }
    zb_profile_free(p);
  }
  for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) assert_true(met[o] > 100);
}

// One device has only its work; one microbatch on a chain has only its way down and up.
static void test_exact_without_choice(void **state) {
  (void)state;
  struct generate_random random = {62};
  for (int i = 0; i < 600; i++) {
    bool one_device = i % 2 == 0;
    struct zb_profile *p =
        one_device ? instance_profile(&random, (enum zb_placement)(i / 2 % ZB_PLACEMENT_COUNT), 1, 6)
                   : instance_profile(&random, ZB_CHAIN, 6, 1);
    assert_non_null(p);
    for (int s = 0; s < p->stages; s++) // fused would be a choice
      p->bw_ns[s] = p->b_ns[s] + p->w_ns[s];
    for (int d = 0; d < p->devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
    struct zb_schedule *schedule = NULL;
    assert_int_equal(zb_schedule_sequential(p, &schedule, NULL), ZB_OK);
    for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++)
      expect_equal(zb_bound_closed_form(p, (enum zb_objective)o), cost_of(p, schedule, (enum zb_objective)o),
                   "bound of a profile that leaves no choice");
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
}

// Stages alike, f = b = w, no comm: ZB-H2 keeps device 0 busy from its first op to its last.
static void test_exact_for_h2(void **state) {
  (void)state;
  for (int devices = 1; devices <= 8; devices++) {
    struct zb_profile *p = NULL;
    struct zb_result result = {0};
    assert_int_equal(zb_profile_create(devices, 1, 3 * devices, ZB_CHAIN, &p, NULL), ZB_OK);
    for (int s = 0; s < devices; s++) p->f_ns[s] = p->b_ns[s] = p->w_ns[s] = 5;
    assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
    struct zb_problem problem = {.profile = p, .objective = ZB_SPAN, .threads = 1};
    assert_int_equal(zb_engine_zb_h2.solve(&problem, NULL, &result, NULL), ZB_OK);
    expect_equal(zb_bound_closed_form(p, ZB_SPAN), 3 * devices * 15, "bound of uniform stages");
    expect_equal(result.cost_ns, 3 * devices * 15, "span of zb-h2");
    zb_result_free(&result);
    zb_profile_free(p);
  }
}

// By hand: f b w = 1 2 3 on each of 2 devices, 2 microbatches, comm 4 and 5, bw 4.
static void test_by_hand(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  p->has_bw = true;
  for (int s = 0; s < 2; s++) {
    p->f_ns[s] = 1;
    p->b_ns[s] = 2;
    p->w_ns[s] = 3;
    p->bw_ns[s] = 4;
    p->comm_forward_ns[s] = 4;
    p->comm_backward_ns[s] = 5;
  }
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  // Device 0: F, comm, then device 1's two F and two B, comm, and its own last BW.
  expect_equal(zb_bound_closed_form(p, ZB_SPAN), 1 + 4 + 2 * (1 + 2) + 5 + 4, "bound on the span");
  expect_equal(zb_bound_closed_form(p, ZB_PERIOD), 1 + 4 + 2 * (1 + 2) + 5 + 4, "bound on the period");
  p->w_ns[1] = 30;
  p->bw_ns[1] = 31;
  // Device 1: two F and two BW. The makespan has the way to it in front.
  expect_equal(zb_bound_closed_form(p, ZB_SPAN), 2 * (1 + 31), "bound on the span");
  expect_equal(zb_bound_closed_form(p, ZB_MAKESPAN), 1 + 4 + 2 * (1 + 31), "bound on the makespan");
  zb_profile_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_hand),
      cmocka_unit_test(test_never_above),
      cmocka_unit_test(test_exact_without_choice),
      cmocka_unit_test(test_exact_for_h2),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
