// The true optimum of tiny profiles: no heuristic beats it, none gives up where it exists, no bound exceeds
// it.
#include "tests/brute.h"

#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "solver/model/bound.h"
#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/naive.h"
#include "tests/unit/unit.h"

enum { MOST = 20000000 };

static const struct {
  const struct zb_engine *engine;
  bool has_own_order; // may need more memory than there is
} engines[] = {
    {&zb_engine_gpipe, true},  {&zb_engine_1f1b, true},   {&zb_engine_1f1b_interleaved, true},
    {&zb_engine_zb_h1, true},  {&zb_engine_zb_h2, true},  {&zb_engine_greedy, false},
    {&zb_engine_zb_1p, false}, {&zb_engine_zb_2p, false},
};

static int64_t checked_cost(const struct zb_profile *p, const struct zb_schedule *schedule,
                            enum zb_objective objective, const char *who, int index) {
  struct zb_timeline t = {0};
  struct zb_error error = {0};
  enum zb_status status = zb_check_schedule(p, schedule, &t, &error);
  expect(status == ZB_OK, "%s, number %d: %s", who, index, error.text);
  int64_t cost = zb_timeline_cost(&t, objective);
  zb_timeline_free(&t);
  return cost;
}

static void check_engine(const struct zb_profile *p, enum zb_objective objective, const struct brute *truth,
                         size_t which, int index) {
  const struct zb_engine *engine = engines[which].engine;
  struct zb_problem problem = {.profile = p,
                               .objective = objective,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  struct zb_result result = {0};
  struct zb_error error = {0};
  enum zb_status status = engine->solve(&problem, NULL, &result, &error);
  expect(status == ZB_OK, "%s, number %d: %s", engine->name, index, error.text);
  if (!truth->feasible)
    expect(result.status == ZB_INFEASIBLE || (result.status == ZB_OVER_LIMIT && engines[which].has_own_order),
           "%s, number %d: %s, but no order fits", engine->name, index, zb_status_word(result.status));
  else
    expect(result.status == ZB_FEASIBLE || result.status == ZB_OPTIMAL ||
               (result.status == ZB_OVER_LIMIT && engines[which].has_own_order),
           "%s, number %d: %s, but an order costs %lld", engine->name, index, zb_status_word(result.status),
           (long long)truth->cost_ns);
  if (result.status == ZB_INFEASIBLE) {
    int d = result.reason.device;
    assert_true(d >= 0 && d < p->devices && result.reason.limit_bytes == p->limit_bytes[d]);
    assert_true(result.reason.least_peak_bytes == zb_profile_least_peak(p, d) &&
                result.reason.least_peak_bytes > p->limit_bytes[d]);
  }
  if (result.status == ZB_FEASIBLE || result.status == ZB_OPTIMAL) {
    int64_t cost = checked_cost(p, result.schedule, objective, engine->name, index);
    expect(cost == result.cost_ns, "%s, number %d: says %lld, costs %lld", engine->name, index,
           (long long)result.cost_ns, (long long)cost);
    expect(cost >= truth->cost_ns, "%s, number %d: %s %lld, but brute force finds no less than %lld",
           engine->name, index, zb_objective_word(objective), (long long)cost, (long long)truth->cost_ns);
    assert_true(result.bound_ns <= truth->cost_ns);
  }
  zb_result_free(&result);
}

static bool runs_on(const struct zb_engine *engine, const struct zb_profile *p) {
  switch (engine->need) {
  case ZB_NEED_ANY:
    return true;
  case ZB_NEED_CHAIN:
    return p->chunks == 1 && p->placement != ZB_LIST;
  case ZB_NEED_LOOP:
    return p->placement == ZB_LOOP;
  case ZB_NEED_V:
    return p->placement == ZB_V;
  }
  return false;
}

// Everything that must hold of a profile and its optimum; false where it is too large to try all orders.
static bool check_profile(const struct zb_profile *p, int index, int *tight) {
  int64_t optimum[ZB_OBJECTIVE_COUNT];
  for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) {
    enum zb_objective objective = (enum zb_objective)o;
    struct brute truth;
    if (!brute_solve(p, objective, MOST, &truth)) return false;
    struct zb_problem problem = {.profile = p, .objective = objective};
    struct zb_result impossible = {0};
    assert_int_equal(zb_result_if_infeasible(&problem, &impossible), !truth.feasible);
    zb_result_free(&impossible);
    if (truth.feasible) {
      int64_t bound = zb_bound_closed_form(p, objective);
      expect_equal(checked_cost(p, truth.schedule, objective, "brute force", index), truth.cost_ns,
                   "cost of brute force's own order");
      expect(bound <= truth.cost_ns, "number %d: bound %lld above the optimum %s %lld", index,
             (long long)bound, zb_objective_word(objective), (long long)truth.cost_ns);
      *tight += bound == truth.cost_ns;
    }
    optimum[o] = truth.cost_ns;
    for (size_t k = 0; k < sizeof engines / sizeof *engines; k++)
      if (runs_on(engines[k].engine, p)) check_engine(p, objective, &truth, k, index);
    brute_free(&truth);
  }
  assert_true(optimum[ZB_PERIOD] <= optimum[ZB_SPAN] && optimum[ZB_SPAN] <= optimum[ZB_MAKESPAN]);
  return true;
}

static void test_tiny_chains(void **state) {
  (void)state;
  enum { SEED = 7 };
  int tight = 0, count = getenv("ZB_LONG") ? 20000 : part_of(600);
  for (int i = 0; i < count; i++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_TINY, SEED, (uint64_t)i);
    struct zb_profile *p = instance_from_generated(&generated);
    assert_non_null(p);
    assert_true(check_profile(p, i, &tight));
    zb_profile_free(p);
  }
  assert_true(tight > count); // of 3 a profile
}

// Several stages a device, in a loop, a v, or anywhere.
static void test_tiny_placements(void **state) {
  (void)state;
  struct generate_random random = {71};
  int tight = 0, tried = 0;
  for (int i = 0; i < 300; i++) {
    static const enum zb_placement placements[3] = {ZB_LOOP, ZB_V, ZB_LIST};
    struct zb_profile *p = instance_profile(&random, placements[i % 3], 2, 2);
    assert_non_null(p);
    if (p->chunks * p->microbatches <= 4 && p->devices * p->chunks * p->microbatches <= 6)
      tried += check_profile(p, i, &tight);
    zb_profile_free(p);
  }
  assert_true(tried > 150);
}

// The next permutation in lexicographic order; false after the last.
static bool next_permutation(int *values, int count) {
  int i = count - 2, j = count - 1, low = count - 1;
  while (i >= 0 && values[i] > values[i + 1]) i--;
  if (i < 0) return false;
  while (values[j] < values[i]) j--;
  int held = values[i];
  values[i] = values[j];
  values[j] = held;
  for (i++; i < low; i++, low--) {
    held = values[i];
    values[i] = values[low];
    values[low] = held;
  }
  return true;
}

// Every order of 2 microbatches' F, B, W on one stage in which F, B, W follow each other, microbatches in any
// order.
static int list_orders(int orders[20][6]) {
  int values[6] = {0, 1, 2, 3, 4, 5}, count = 0;
  do {
    int place[6];
    for (int k = 0; k < 6; k++) place[values[k]] = k;
    if (place[0] < place[1] && place[1] < place[2] && place[3] < place[4] && place[4] < place[5])
      memcpy(orders[count++], values, sizeof values);
  } while (next_permutation(values, 6));
  return count;
}

// Sorting microbatches loses nothing: all labelled orders of two devices have the optimum that the sorted
// have.
static void test_labels_do_not_matter(void **state) {
  (void)state;
  int orders[20][6];
  assert_int_equal(list_orders(orders), 20);
  struct generate_random random = {72};
  for (int i = 0; i < 60; i++) {
    struct zb_profile *p = instance_profile(&random, ZB_CHAIN, 2, 2);
    assert_non_null(p);
    if (p->devices == 2 && p->microbatches == 2) {
      struct zb_schedule_builder builder;
      int64_t best[ZB_OBJECTIVE_COUNT] = {INT64_MAX, INT64_MAX, INT64_MAX};
      for (int s = 0; s < 2; s++) { // fused never helps
        p->bw_ns[s] = p->b_ns[s] + p->w_ns[s];
        p->w_bytes[s] = zb_profile_least_peak(p, s) > p->static_bytes[s] + 4 ? -2 : 0;
        p->b_bytes[s] = -p->f_bytes[s] - p->w_bytes[s];
      }
      assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
      for (int k = 0; k < 400; k++) {
        const int *rows[2] = {orders[k / 20], orders[k % 20]};
        struct zb_schedule *schedule = NULL;
        struct naive_times times;
        zb_builder_clear(&builder);
        for (int s = 0; s < 2; s++)
          for (int l = 0; l < 6; l++)
            zb_builder_append(&builder, s, (enum zb_kind)(rows[s][l] % 3), rows[s][l] / 3);
        assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
        bool fits = naive_peak(p, schedule, 0, NULL) <= p->limit_bytes[0] &&
                    naive_peak(p, schedule, 1, NULL) <= p->limit_bytes[1];
        if (fits && naive_time(p, schedule, &times)) {
          const int64_t costs[ZB_OBJECTIVE_COUNT] = {times.span_ns, times.makespan_ns, times.period_ns};
          for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) best[o] = costs[o] < best[o] ? costs[o] : best[o];
        }
        zb_schedule_free(schedule);
      }
      zb_builder_free(&builder);
      for (int o = 0; o < ZB_OBJECTIVE_COUNT; o++) {
        struct brute truth;
        assert_true(brute_solve(p, (enum zb_objective)o, MOST, &truth));
        expect(truth.feasible == (best[o] < INT64_MAX) && (!truth.feasible || truth.cost_ns == best[o]),
               "number %d, %s: %lld by words, %lld by labelled orders", i,
               zb_objective_word((enum zb_objective)o), (long long)truth.cost_ns, (long long)best[o]);
        brute_free(&truth);
      }
    }
    zb_profile_free(p);
  }
}

// Known optima: 72 with split backwards only, 70 where some are fused.
static void test_known(void **state) {
  (void)state;
  for (int fused = 0; fused < 2; fused++) {
    struct zb_profile *p = NULL;
    struct brute truth;
    assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
    p->has_bw = true;
    for (int s = 0; s < 2; s++) {
      p->f_ns[s] = p->b_ns[s] = p->w_ns[s] = 10;
      p->bw_ns[s] = fused ? 18 : 20;
      p->comm_forward_ns[s] = p->comm_backward_ns[s] = 1;
    }
    assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
    assert_true(brute_solve(p, ZB_SPAN, MOST, &truth));
    expect_equal(truth.cost_ns, fused ? 70 : 72, "the optimum");
    brute_free(&truth);
    assert_false(brute_solve(p, ZB_SPAN, 10, &truth)); // more orders than it may try
    zb_profile_free(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_labels_do_not_matter),
      cmocka_unit_test(test_tiny_chains),
      cmocka_unit_test(test_tiny_placements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
