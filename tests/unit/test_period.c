// The steady period against all simple cycles of devices, and its place among the costs.
#include "solver/model/timeline.h"

#include "tests/instances.h"
#include "tests/naive.h"
#include "tests/unit/unit.h"

static struct zb_schedule *built(struct zb_schedule_builder *builder) {
  struct zb_schedule *schedule = NULL;
  assert_int_equal(zb_builder_finish(builder, &schedule, NULL), ZB_OK);
  zb_builder_free(builder);
  return schedule;
}

// Like 1F1B on a chain, with a warm-up a device that never grows downstream and each W some backwards behind.
static struct zb_schedule *regular_order(const struct zb_profile *p, struct generate_random *random) {
  struct zb_schedule_builder builder;
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  int m = p->microbatches, warmup = 1;
  for (int d = p->devices - 1; d >= 0; d--) {
    int lag = (int)generate_between(random, 0, m), f = 0, w = 0;
    for (int j = 0; j < m; j++) {
      for (; f < m && f < j + warmup; f++) zb_builder_append(&builder, d, ZB_F, f);
      zb_builder_append(&builder, d, ZB_B, j);
      if (j >= lag) zb_builder_append(&builder, d, ZB_W, w++);
    }
    while (w < m) zb_builder_append(&builder, d, ZB_W, w++);
    warmup += (int)generate_between(random, 0, 2);
  }
  return built(&builder);
}

static int below_span, above_own;

static void check(const struct zb_profile *p, const struct zb_schedule *schedule, struct zb_timeline *t,
                  int index) {
  struct naive_times truth;
  assert_true(naive_time(p, schedule, &truth));
  assert_int_equal(zb_timeline_compute(p, schedule, t, NULL), ZB_OK);
  assert_int_equal(zb_timeline_period(p, schedule, t, NULL), ZB_OK);
  expect(t->period_ns == truth.period_ns, "number %d: period %lld, expected %lld", index,
         (long long)t->period_ns, (long long)truth.period_ns);
  expect_equal(zb_timeline_cost(t, ZB_PERIOD), truth.period_ns, "cost by period");
  expect(t->work_ns <= t->period_ns && t->period_ns <= t->span_ns && t->span_ns <= t->makespan_ns,
         "number %d: work %lld, period %lld, span %lld, makespan %lld", index, (long long)t->work_ns,
         (long long)t->period_ns, (long long)t->span_ns, (long long)t->makespan_ns);
  below_span += t->period_ns < t->span_ns;
  above_own += t->period_ns > truth.own_ns;
}

static void test_random_orders(void **state) {
  (void)state;
  struct generate_random random = {41};
  struct zb_timeline t = {0};
  below_span = 0;
  for (int i = 0; i < 3000; i++) {
    enum zb_placement placement = (enum zb_placement)(i % ZB_PLACEMENT_COUNT);
    struct zb_profile *p = instance_profile(&random, placement, 6, placement == ZB_CHAIN ? 8 : 4);
    assert_non_null(p);
    struct zb_schedule *schedule =
        instance_order(p, (enum instance_backward)(i / ZB_PLACEMENT_COUNT % INSTANCE_BACKWARDS), &random);
    assert_non_null(schedule);
    check(p, schedule, &t, i);
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
  assert_true(below_span > 10);
  zb_timeline_free(&t);
}

// Orders as solvers make them, with comm as long as the ops.
static void test_regular_orders(void **state) {
  (void)state;
  struct generate_random random = {42};
  struct zb_timeline t = {0};
  below_span = 0;
  for (int i = 0; i < 3000; i++) {
    struct zb_profile *p = NULL;
    int devices = (int)generate_between(&random, 2, 7);
    assert_int_equal(zb_profile_create(devices, 1, (int)generate_between(&random, 2, 12), ZB_CHAIN, &p, NULL),
                     ZB_OK);
    for (int s = 0; s < devices; s++) {
      p->f_ns[s] = generate_between(&random, 0, 20);
      p->b_ns[s] = generate_between(&random, 0, 4);
      p->w_ns[s] = generate_between(&random, 0, 30);
      p->comm_forward_ns[s] = generate_between(&random, 0, 20);
      p->comm_backward_ns[s] = generate_between(&random, 0, 20);
    }
    assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
    struct zb_schedule *schedule = regular_order(p, &random);
    check(p, schedule, &t, i);
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
  assert_true(below_span > 50);
  zb_timeline_free(&t);
}

// Repeats the order `rounds` times, each device going on from where it was, and returns when the last op
// ends.
static int64_t end_of_rounds(const struct zb_profile *p, const struct zb_schedule *schedule, int rounds) {
  struct zb_profile *longer = NULL;
  struct zb_schedule_builder builder;
  struct zb_timeline t = {0};
  assert_int_equal(zb_profile_copy(p, &longer, NULL), ZB_OK);
  longer->microbatches *= rounds;
  assert_int_equal(zb_builder_create(longer, &builder, NULL), ZB_OK);
  for (int round = 0; round < rounds; round++)
    for (size_t i = 0; i < schedule->first[p->devices]; i++)
      zb_builder_append(&builder, schedule->ops[i].stage, schedule->ops[i].kind,
                        schedule->ops[i].microbatch + round * p->microbatches);
  struct zb_schedule *repeated = built(&builder);
  assert_int_equal(zb_timeline_compute(longer, repeated, &t, NULL), ZB_OK);
  int64_t end = t.makespan_ns;
  zb_timeline_free(&t);
  zb_schedule_free(repeated);
  zb_profile_free(longer);
  return end;
}

// A second view that knows no cycles: many rounds without a barrier take, a round, the period and no less.
static void test_against_repetition(void **state) {
  (void)state;
  enum { ROUNDS = 120 };
  struct generate_random random = {43};
  struct zb_timeline t = {0};
  for (int i = 0; i < 300; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 5, 3);
    assert_non_null(p);
    struct zb_schedule *schedule =
        instance_order(p, (enum instance_backward)(i % INSTANCE_BACKWARDS), &random);
    assert_non_null(schedule);
    assert_int_equal(zb_timeline_compute(p, schedule, &t, NULL), ZB_OK);
    assert_int_equal(zb_timeline_period(p, schedule, &t, NULL), ZB_OK);
    // 120 is a multiple of every cycle's length here, so over 120 rounds growth is 120 times the exact mean.
    int64_t grown = end_of_rounds(p, schedule, 2 * ROUNDS) - end_of_rounds(p, schedule, ROUNDS);
    int64_t mean = (grown + ROUNDS - 1) / ROUNDS;
    expect(t.period_ns == mean, "number %d: period %lld, a round takes %lld", i, (long long)t.period_ns,
           (long long)mean);
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
  zb_timeline_free(&t);
}

// By hand: device 1 starts when the first of two long forwards arrives and waits for the second, so its span
// has that wait in it. In the steady state it may as well start later.
static void test_start_is_free(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  struct zb_schedule_builder builder;
  struct zb_timeline t = {0};
  assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  p->f_ns[0] = 100;
  p->w_ns[1] = 100;
  p->f_ns[1] = p->b_ns[0] = p->b_ns[1] = 1;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  for (int s = 0; s < 2; s++)
    for (int kind = ZB_F; kind <= ZB_W; kind++)
      for (int j = 0; j < 2; j++) zb_builder_append(&builder, s, (enum zb_kind)kind, j);
  struct zb_schedule *schedule = built(&builder);
  assert_int_equal(zb_timeline_compute(p, schedule, &t, NULL), ZB_OK);
  assert_int_equal(zb_timeline_period(p, schedule, &t, NULL), ZB_OK);
  expect_equal(t.makespan_ns, 403, "makespan_ns");
  expect_equal(t.span_ns, 303, "span_ns");
  expect_equal(t.period_ns, 204, "period_ns");
  zb_timeline_free(&t);
  zb_schedule_free(schedule);
  zb_profile_free(p);
}

// Cycles through two devices bind only where comm is just so; this order with times about these shows many.
// By hand, with all noise at 0: device 0 runs F F B W B W, device 1 F B F B W W. From its first op to its own
// last either needs 48. From device 0's first to device 1's last it is 76 (both F, comm, F B W W), back from
// there 24 (F B, comm, B W B W): twice around is 100, so no less than 50 can repeat.
static void test_two_devices_bind(void **state) {
  (void)state;
  static const struct zb_op ops[] = {{0, 0, ZB_F}, {0, 1, ZB_F}, {0, 0, ZB_B}, {0, 0, ZB_W},
                                     {0, 1, ZB_B}, {0, 1, ZB_W}, {1, 0, ZB_F}, {1, 0, ZB_B},
                                     {1, 1, ZB_F}, {1, 1, ZB_B}, {1, 0, ZB_W}, {1, 1, ZB_W}};
  struct generate_random random = {44};
  struct zb_timeline t = {0};
  above_own = 0;
  for (int i = 0; i < 1000; i++) {
    struct zb_profile *p = NULL;
    struct zb_schedule_builder builder;
    int64_t noise = i == 0 ? 0 : 3;
    assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
    p->f_ns[0] = 10 + generate_between(&random, -noise, noise);
    p->b_ns[0] = 3 + generate_between(&random, -noise, noise);
    p->w_ns[0] = 3 + generate_between(&random, -noise, noise);
    p->f_ns[1] = 1 + generate_between(&random, 0, noise);
    p->b_ns[1] = 1 + generate_between(&random, 0, noise);
    p->w_ns[1] = 22 + generate_between(&random, -noise, noise);
    p->comm_forward_ns[0] = 10 + generate_between(&random, -noise, noise);
    p->comm_backward_ns[0] = 10 + generate_between(&random, -noise, noise);
    assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
    assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
      zb_builder_append(&builder, ops[k].stage, ops[k].kind, ops[k].microbatch);
    struct zb_schedule *schedule = built(&builder);
    check(p, schedule, &t, i);
    if (i == 0) {
      expect_equal(t.work_ns, 48, "work_ns");
      expect_equal(t.makespan_ns, 76, "makespan_ns");
      expect_equal(t.span_ns, 56, "span_ns");
      expect_equal(t.period_ns, 50, "period_ns");
    }
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
  expect(above_own > 100, "only %d above either device's own", above_own);
  zb_timeline_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_start_is_free),      cmocka_unit_test(test_two_devices_bind),
      cmocka_unit_test(test_random_orders),      cmocka_unit_test(test_regular_orders),
      cmocka_unit_test(test_against_repetition),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
