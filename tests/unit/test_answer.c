// From a result to an answer, and that no altered number of an answer passes.
#include "solver/model/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/bound.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

// A profile with numbers that all differ, and an answer to it, as if read from a file: ratios rounded to 6
// decimals, idle times beside the rest.
static void make_answer(struct zb_answer *answer, enum zb_objective objective, uint64_t seed) {
  struct generate_random random = {seed};
  struct zb_profile *p = NULL;
  struct zb_result result = {.status = ZB_FEASIBLE};
  struct zb_error error = {0};
  do {
    zb_profile_free(p);
    p = instance_profile(&random, ZB_CHAIN, 4, 4);
    assert_non_null(p);
  } while (p->devices < 2 || zb_bound_closed_form(p, objective) == 0);
  for (int d = 0; d < p->devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
  result.schedule = instance_order(p, INSTANCE_MIXED, &random);
  assert_non_null(result.schedule);
  struct zb_problem problem = {.profile = p, .objective = objective};
  enum zb_status status = zb_answer_from_result(&problem, "test", &result, answer, &error);
  expect(status == ZB_OK, "%s", error.text);
  zb_profile_free(p);
  answer->idle_ns = calloc((size_t)answer->profile->devices, sizeof *answer->idle_ns);
  assert_non_null(answer->idle_ns);
  for (int d = 0; d < answer->profile->devices; d++)
    answer->idle_ns[d] = zb_answer_idle_ns(&answer->timeline, d);
  double *const ratios[] = {&answer->gap, &answer->bubble_rate};
  for (int i = 0; i < 2; i++) {
    char text[32];
    snprintf(text, sizeof text, "%.6f", *ratios[i]);
    *ratios[i] = strtod(text, NULL);
  }
}

static void test_true_answers(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    struct zb_answer a;
    struct zb_error error = {0};
    enum zb_objective objective = (enum zb_objective)(seed % ZB_OBJECTIVE_COUNT);
    make_answer(&a, objective, seed);
    enum zb_status status = zb_answer_verify(&a, &error);
    expect(status == ZB_OK, "seed %d: %s", (int)seed, error.text);
    assert_string_equal(a.method, "test");
    expect_equal(a.cost_ns, zb_timeline_cost(&a.timeline, objective), "cost_ns");
    expect_equal(a.bound_ns, zb_bound_closed_form(a.profile, objective), "bound_ns");
    assert_int_equal(a.status, a.cost_ns == a.bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE);
    assert_true(a.timeline.period_ns >= 0);
    int64_t idle = a.timeline.last_end_ns[1] - a.timeline.first_start_ns[1] - a.timeline.busy_ns[1];
    expect_equal(a.idle_ns[1], idle, "idle_ns");
    zb_answer_free(&a);
  }
}

// A number of an answer by name; an altered one must be refused by that name.
struct number {
  const char *name;
  int device; // -1: not a device's
  int64_t *value;
};

static void expect_refused(struct zb_answer *a, const char *name, int device, const char *how) {
  struct zb_error error = {0};
  enum zb_status status = zb_answer_verify(a, &error);
  expect(status == ZB_WRONG && error.status == ZB_WRONG, "%s %s: %s", name, how, zb_status_word(status));
  expect(strstr(error.text, name), "%s %s: \"%s\"", name, how, error.text);
  if (device >= 0) {
    char where[32];
    snprintf(where, sizeof where, "device %d", device);
    expect(strncmp(error.text, where, strlen(where)) == 0, "%s %s on device %d: \"%s\"", name, how, device,
           error.text);
  }
  assert_int_equal(zb_answer_verify(a, NULL), ZB_WRONG);
}

static void test_altered_numbers(void **state) {
  (void)state;
  static const int64_t changes[] = {1, -1, 1000000, -1000000};
  for (uint64_t seed = 0; seed < 60; seed++) {
    struct zb_answer a;
    make_answer(&a, (enum zb_objective)(seed % ZB_OBJECTIVE_COUNT), seed);
    struct zb_timeline *t = &a.timeline;
    int last = a.profile->devices - 1;
    size_t op = t->ops / 2;
    int op_device = 0;
    while (a.schedule->first[op_device + 1] <= op) op_device++;
    const struct number numbers[] = {
        {"span_ns", -1, &t->span_ns},
        {"makespan_ns", -1, &t->makespan_ns},
        {"period_ns", -1, &t->period_ns},
        {"cost_ns", -1, &a.cost_ns},
        {"start_ns", 0, &t->start_ns[0]},
        {"start_ns", op_device, &t->start_ns[op]},
        {"start_ns", last, &t->start_ns[t->ops - 1]},
        {"peak_bytes", last, &t->peak_bytes[last]},
        {"busy_ns", 0, &t->busy_ns[0]},
        {"busy_ns", last, &t->busy_ns[last]},
        {"idle_ns", last, &a.idle_ns[last]},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        *numbers[i].value += changes[k];
        expect_refused(&a, numbers[i].name, numbers[i].device, changes[k] > 0 ? "raised" : "lowered");
        *numbers[i].value -= changes[k];
      }
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_OK);
    zb_answer_free(&a);
  }
}

static void test_altered_ratios(void **state) {
  (void)state;
  static const double changes[] = {1e-6, -1e-6, 0.5, -0.5, 1.0};
  for (uint64_t seed = 0; seed < 60; seed++) {
    struct zb_answer a;
    make_answer(&a, ZB_SPAN, seed);
    double *const ratios[] = {&a.gap, &a.bubble_rate};
    const char *const names[] = {"gap", "bubble_rate"};
    for (int i = 0; i < 2; i++) {
      double kept = *ratios[i];
      for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        *ratios[i] = kept + changes[k]; // the least of them changes the last decimal
        expect_refused(&a, names[i], -1, "altered");
      }
      *ratios[i] = strtod("nan", NULL);
      expect_refused(&a, names[i], -1, "not a number");
      *ratios[i] = kept;
    }
    zb_answer_free(&a);
  }
}

static void test_altered_words(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 60; seed++) {
    struct zb_answer a;
    make_answer(&a, ZB_SPAN, seed);
    int64_t bound = a.bound_ns;
    a.bound_ns = a.cost_ns + 1;
    a.gap = zb_answer_gap(&a);
    expect_refused(&a, "bound_ns", -1, "above the cost");
    a.bound_ns = a.cost_ns - 1;
    a.gap = zb_answer_gap(&a);
    a.status = ZB_OPTIMAL;
    expect_refused(&a, "optimal", -1, "claimed with room left");
    a.bound_ns = a.cost_ns;
    a.gap = 0;
    a.status = ZB_FEASIBLE;
    expect_refused(&a, "feasible", -1, "claimed where cost and bound meet");
    a.bound_ns = bound;
    a.gap = zb_answer_gap(&a);
    a.status = a.cost_ns == bound ? ZB_OPTIMAL : ZB_FEASIBLE;
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_OK);
    if (a.cost_ns != a.timeline.makespan_ns) { // another objective has another cost
      a.objective = ZB_MAKESPAN;
      expect_refused(&a, "cost_ns", -1, "of another objective");
      a.objective = ZB_SPAN;
    }
    a.status = ZB_UNKNOWN; // says that there is no schedule, and there is one
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_WRONG);
    a.status = ZB_OVER_LIMIT; // never written
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_WRONG);
    zb_schedule_free(a.schedule); // and the other way round
    a.schedule = NULL;
    a.status = ZB_FEASIBLE;
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_WRONG);
    a.status = ZB_OPTIMAL;
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_WRONG);
    a.status = ZB_UNKNOWN;
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_OK);
    zb_answer_free(&a);
  }
}

static void test_altered_orders(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 100; seed++) {
    struct zb_answer a;
    make_answer(&a, ZB_SPAN, seed);
    struct zb_op *ops = a.schedule->ops, kept = ops[0];
    ops[0] = ops[1];
    assert_int_equal(zb_answer_verify(&a, NULL), ZB_WRONG);
    ops[0] = kept;
    int64_t peak = a.timeline.peak_bytes[0];
    if (peak > 0) {
      a.profile->limit_bytes[0] = peak - 1;
      expect_refused(&a, "limit", 0, "broken");
    }
    zb_answer_free(&a);
  }
}

static void test_infeasible(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  struct zb_answer a;
  struct zb_result result = {0};
  struct zb_error error = {0};
  assert_int_equal(zb_profile_create(2, 1, 3, ZB_CHAIN, &p, NULL), ZB_OK);
  for (int s = 0; s < 2; s++) {
    p->f_bytes[s] = 10;
    p->b_bytes[s] = -10;
    p->limit_bytes[s] = 11 - 2 * s;
  }
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  struct zb_problem problem = {.profile = p, .objective = ZB_SPAN};
  assert_true(zb_result_if_infeasible(&problem, &result));
  assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_OK);
  assert_int_equal(a.status, ZB_INFEASIBLE);
  assert_null(a.schedule);
  assert_int_equal(zb_answer_verify(&a, &error), ZB_OK);
  assert_true(a.reason.device == 1 && a.reason.limit_bytes == 9 && a.reason.least_peak_bytes == 10);
  a.reason.limit_bytes--;
  expect_refused(&a, "reason.limit_bytes", 1, "lowered");
  a.reason.limit_bytes++;
  a.reason.least_peak_bytes++;
  expect_refused(&a, "reason.least_peak_bytes", 1, "raised");
  a.reason = (struct zb_reason){0, 11, 10};
  expect_refused(&a, "device 0", -1, "is no reason");
  a.reason.device = 2;
  expect_refused(&a, "no device 2", -1, "is no reason");
  a.reason.device = -1;
  expect_refused(&a, "no device -1", -1, "is no reason");
  zb_answer_free(&a);
  zb_profile_free(p);
}

// What an engine must not get away with, and what is derived whatever it says.
static void test_results(void **state) {
  (void)state;
  struct generate_random random = {81};
  for (int i = 0; i < 200; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 3, 3);
    assert_non_null(p);
    for (int d = 0; d < p->devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
    struct zb_problem problem = {.profile = p, .objective = (enum zb_objective)(i % ZB_OBJECTIVE_COUNT)};
    struct zb_answer a;
    struct zb_error error = {0};
    struct zb_schedule *schedule = instance_order(p, INSTANCE_MIXED, &random);
    struct zb_result timed = {0}, result = {0};
    assert_non_null(schedule);
    assert_int_equal(zb_schedule_copy(schedule, &result.schedule, NULL), ZB_OK);
    assert_int_equal(zb_result_from_schedule(&problem, schedule, &timed, NULL), ZB_OK);
    assert_int_equal(timed.status, ZB_FEASIBLE);

    result.status = ZB_FEASIBLE; // a bound that meets the cost makes it optimal, and its proof is kept
    result.bound_ns = timed.cost_ns;
    result.proof = strdup("[0]");
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_OK);
    assert_null(result.schedule);
    assert_int_equal(a.status, ZB_OPTIMAL);
    bool closed = zb_bound_closed_form(p, problem.objective) == timed.cost_ns;
    assert_true(closed ? a.proof == NULL : a.proof != NULL);
    zb_answer_free(&a);

    result = (struct zb_result){.status = ZB_OPTIMAL}; // a word proves nothing
    assert_int_equal(zb_schedule_copy(timed.schedule, &result.schedule, NULL), ZB_OK);
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_OK);
    assert_int_equal(a.status, closed ? ZB_OPTIMAL : ZB_FEASIBLE);
    zb_answer_free(&a);

    result = (struct zb_result){.status = ZB_OPTIMAL, .bound_ns = timed.cost_ns + 1}; // a bound above a cost
    assert_int_equal(zb_schedule_copy(timed.schedule, &result.schedule, NULL), ZB_OK);
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_SELF_CHECK);

    result = (struct zb_result){.status = ZB_FEASIBLE}; // an order that is none
    assert_int_equal(zb_schedule_copy(timed.schedule, &result.schedule, NULL), ZB_OK);
    result.schedule->ops[0].microbatch = p->microbatches;
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_SELF_CHECK);

    result = (struct zb_result){.status = ZB_INFEASIBLE}; // everything fits without a limit
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_SELF_CHECK);

    result = (struct zb_result){.status = ZB_UNKNOWN, .bound_ns = 3};
    assert_int_equal(zb_answer_from_result(&problem, "test", &result, &a, &error), ZB_OK);
    assert_int_equal(a.status, ZB_UNKNOWN);
    expect_equal(a.bound_ns,
                 zb_bound_closed_form(p, problem.objective) > 3 ? zb_bound_closed_form(p, problem.objective)
                                                                : 3,
                 "bound of an unknown answer");
    zb_answer_free(&a);
    zb_result_free(&timed);
    zb_profile_free(p);
  }
}

// Over the limit is told, not hidden: fine where the engine says so, a bug where it says that it fits.
static void test_over_limit(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(1, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  p->f_ns[0] = p->f_bytes[0] = 10;
  p->b_bytes[0] = -10;
  p->limit_bytes[0] = 15;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  struct zb_problem problem = {.profile = p, .objective = ZB_SPAN};
  static const struct zb_op ops[] = {{0, 0, ZB_F}, {0, 1, ZB_F}, {0, 0, ZB_BW}, {0, 1, ZB_BW}};
  static const enum zb_status claims[] = {ZB_OVER_LIMIT, ZB_FEASIBLE};
  for (int i = 0; i < 2; i++) {
    struct zb_schedule_builder builder;
    struct zb_schedule *schedule = NULL;
    struct zb_result result = {0};
    struct zb_answer a;
    struct zb_error error = {0};
    assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
    for (size_t k = 0; k < 4; k++) zb_builder_append(&builder, ops[k].stage, ops[k].kind, ops[k].microbatch);
    assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
    zb_builder_free(&builder);
    assert_int_equal(zb_result_from_schedule(&problem, schedule, &result, &error), ZB_OK);
    assert_int_equal(result.status, ZB_OVER_LIMIT);
    result.status = claims[i];
    enum zb_status status = zb_answer_from_result(&problem, "test", &result, &a, &error);
    assert_int_equal(status, i == 0 ? ZB_OK : ZB_SELF_CHECK);
    if (status == ZB_OK) {
      assert_int_equal(a.status, ZB_OVER_LIMIT);
      expect_equal(a.cost_ns, 20, "cost over the limit");
      expect_equal(a.timeline.peak_bytes[0], 20, "peak over the limit");
      zb_answer_free(&a);
    }
  }
  zb_profile_free(p);
}

// One row a status: the words and codes of the contract.
static void test_statuses(void **state) {
  (void)state;
  static const struct {
    enum zb_status status;
    const char *word;
    int code;
  } rows[] = {{ZB_OPTIMAL, "optimal", 0},        {ZB_FEASIBLE, "feasible", 0},
              {ZB_FAILED, "failed", 1},          {ZB_BAD_INPUT, "bad-input", 2},
              {ZB_SELF_CHECK, "self-check", 3},  {ZB_WRONG, "wrong", 4},
              {ZB_INFEASIBLE, "infeasible", 20}, {ZB_UNKNOWN, "unknown", 30},
              {ZB_OVER_LIMIT, "over-limit", 30}, {ZB_NOT_PROVEN, "not-proven", 10}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_string_equal(zb_status_word(rows[i].status), rows[i].word);
    assert_int_equal(zb_status_exit_code(rows[i].status), rows[i].code);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_statuses),        cmocka_unit_test(test_true_answers),
      cmocka_unit_test(test_altered_numbers), cmocka_unit_test(test_altered_ratios),
      cmocka_unit_test(test_altered_words),   cmocka_unit_test(test_altered_orders),
      cmocka_unit_test(test_infeasible),      cmocka_unit_test(test_results),
      cmocka_unit_test(test_over_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
