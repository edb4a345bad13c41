// What must not depend on how a profile is written, or can only go one way: the unit of time, the direction
// of time, and the limit. Every comparison is between proven optima, or between schedules op for op.
#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/model/answer.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

enum { SEED = 4, TINY = 24, SMALL = 20, LONG_FACTOR = 10, LIMIT_S = 20 };

static int long_factor(void) { return getenv("ZB_LONG") ? LONG_FACTOR : 1; }

// Tiny ones as generated; small ones are uneven, cut down to what closes in milliseconds.
static struct zb_profile *instance(enum generate_kind kind, int index) {
  struct generated_profile generated;
  generate_profile(&generated, kind, SEED, (uint64_t)index);
  if (kind == GENERATE_UNEVEN) {
    int devices = 2 + index % 3;
    for (int i = 0; i < devices; i++) generated.limit[i] = generated.limit[i] / generated.devices * devices;
    generated.devices = devices;
    generated.microbatches = devices + index % 5;
  }
  struct zb_profile *profile = instance_from_generated(&generated);
  assert_non_null(profile);
  return profile;
}

static struct zb_answer solved(const struct zb_profile *profile, enum zb_objective objective,
                               const char *what, int index) {
  struct zb_problem problem = {.profile = profile,
                               .objective = objective,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), LIMIT_S)};
  struct zb_result result = {0};
  struct zb_answer answer = {0};
  struct zb_error error = {0};
  enum zb_status status = zb_engine_auto.solve(&problem, NULL, &result, &error);
  if (status == ZB_OK) status = zb_answer_from_result(&problem, "auto", &result, &answer, &error);
  expect(status == ZB_OK, "seed %d, number %d, %s: %s", SEED, index, what, error.text);
  expect(answer.status == ZB_OPTIMAL || answer.status == ZB_INFEASIBLE,
         "seed %d, number %d, %s: %s, cost %lld, bound %lld", SEED, index, what,
         zb_status_word(answer.status), (long long)answer.cost_ns, (long long)answer.bound_ns);
  return answer;
}

// All times of the profile times up / down; whole where down divides them all.
static struct zb_profile *scaled(const struct zb_profile *profile, int64_t up, int64_t down) {
  struct zb_profile *copy = NULL;
  struct zb_error error = {0};
  assert_int_equal(zb_profile_copy(profile, &copy, &error), ZB_OK);
  int64_t *const times[] = {
      copy->f_ns, copy->b_ns, copy->w_ns, copy->bw_ns, copy->comm_forward_ns, copy->comm_backward_ns};
  for (size_t k = 0; k < sizeof times / sizeof *times; k++)
    for (int s = 0; s < copy->stages; s++) times[k][s] = times[k][s] * up / down;
  expect(zb_profile_finish(copy, &error) == ZB_OK, "%s", error.text);
  return copy;
}

static int64_t divisor_of(int64_t a, int64_t b) { return b == 0 ? a : divisor_of(b, a % b); }

static int64_t common_divisor(const struct zb_profile *p) {
  int64_t divisor = 0;
  for (int s = 0; s < p->stages; s++) {
    const int64_t times[] = {
        p->f_ns[s], p->b_ns[s], p->w_ns[s], p->bw_ns[s], p->comm_forward_ns[s], p->comm_backward_ns[s]};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) divisor = divisor_of(divisor, times[k]);
  }
  return divisor == 0 ? 1 : divisor;
}

static void expect_same_orders(const struct zb_answer *a, const struct zb_answer *b, const char *what,
                               int index) {
  expect(a->status == b->status, "seed %d, number %d, %s: %s and %s", SEED, index, what,
         zb_status_word(a->status), zb_status_word(b->status));
  if (!a->schedule) return;
  const struct zb_schedule *x = a->schedule, *y = b->schedule;
  for (int d = 0; d <= x->devices; d++) assert_true(x->first[d] == y->first[d]);
  for (size_t k = 0; k < x->first[x->devices]; k++)
    expect(x->ops[k].kind == y->ops[k].kind && x->ops[k].stage == y->ops[k].stage &&
               x->ops[k].microbatch == y->ops[k].microbatch,
           "seed %d, number %d, %s: op %zu is another one", SEED, index, what, k);
}

static void check_unit_of_time(enum generate_kind kind, int index, enum zb_objective objective) {
  struct zb_profile *profile = instance(kind, index);
  int64_t divisor = common_divisor(profile);
  struct zb_profile *larger = scaled(profile, 1000, 1), *smallest = scaled(profile, 1, divisor);
  struct zb_answer a = solved(profile, objective, "as it is", index);
  struct zb_answer b = solved(larger, objective, "times 1000", index);
  struct zb_answer c = solved(smallest, objective, "divided by the gcd", index);
  expect_same_orders(&a, &b, "times 1000", index);
  expect_same_orders(&a, &c, "divided by the gcd", index);
  if (a.schedule) {
    expect_equal(b.cost_ns, 1000 * a.cost_ns, "cost of times x1000");
    expect_equal(c.cost_ns * divisor, a.cost_ns, "cost of times by their gcd");
  }
  zb_answer_free(&a);
  zb_answer_free(&b);
  zb_answer_free(&c);
  zb_profile_free(profile);
  zb_profile_free(larger);
  zb_profile_free(smallest);
}

// The period of a schedule is rounded up to a whole ns, so it alone does not scale.
static void test_unit_of_time(void **state) {
  (void)state;
  for (int k = 0; k < TINY * long_factor(); k++)
    check_unit_of_time(GENERATE_TINY, k, k % 2 ? ZB_SPAN : ZB_MAKESPAN);
  for (int k = 0; k < SMALL * long_factor(); k++)
    check_unit_of_time(GENERATE_UNEVEN, k, k % 2 ? ZB_SPAN : ZB_MAKESPAN);
}

// Without W a schedule read from its end is one again: every backward becomes a forward and the reverse, and
// what went up the chain goes down. It ends as late as before, and keeps as much.
static struct zb_profile *without_w(const struct zb_profile *profile, bool from_its_end) {
  struct zb_profile *copy = NULL;
  struct zb_error error = {0};
  assert_int_equal(zb_profile_copy(profile, &copy, &error), ZB_OK);
  copy->has_bw = false;
  for (int s = 0; s < copy->stages; s++) {
    copy->w_ns[s] = copy->w_bytes[s] = 0;
    copy->b_bytes[s] = -copy->f_bytes[s];
    // An op that takes no time may run at the very moment at which another ends, in this direction only.
    copy->f_ns[s] = profile->f_ns[s] + 1;
    copy->b_ns[s] = profile->b_ns[s] + 1;
    if (!from_its_end) continue;
    copy->f_ns[s] = profile->b_ns[s] + 1;
    copy->b_ns[s] = profile->f_ns[s] + 1;
    copy->comm_forward_ns[s] = profile->comm_backward_ns[s];
    copy->comm_backward_ns[s] = profile->comm_forward_ns[s];
  }
  expect(zb_profile_finish(copy, &error) == ZB_OK, "%s", error.text);
  return copy;
}

static void check_direction_of_time(enum generate_kind kind, int index) {
  struct zb_profile *profile = instance(kind, index);
  struct zb_profile *forth = without_w(profile, false), *back = without_w(profile, true);
  struct zb_answer a = solved(forth, ZB_MAKESPAN, "forth", index);
  struct zb_answer b = solved(back, ZB_MAKESPAN, "back", index);
  expect(a.status == b.status && a.cost_ns == b.cost_ns,
         "seed %d, number %d: makespan %lld (%s), with F and B exchanged %lld (%s)", SEED, index,
         (long long)a.cost_ns, zb_status_word(a.status), (long long)b.cost_ns, zb_status_word(b.status));
  zb_answer_free(&a);
  zb_answer_free(&b);
  zb_profile_free(profile);
  zb_profile_free(forth);
  zb_profile_free(back);
}

static void test_direction_of_time(void **state) {
  (void)state;
  for (int k = 0; k < TINY * long_factor(); k++) check_direction_of_time(GENERATE_TINY, k);
  for (int k = 0; k < SMALL * long_factor(); k++) check_direction_of_time(GENERATE_UNEVEN, k);
}

// The cost under limits that rise from what one microbatch needs to no limit at all.
static void check_more_memory(enum generate_kind kind, int index, enum zb_objective objective) {
  enum { STEPS = 4 };
  struct zb_profile *profile = instance(kind, index);
  int64_t last_ns = INT64_MAX;
  for (int step = 0; step <= STEPS; step++) {
    for (int d = 0; d < profile->devices; d++)
      profile->limit_bytes[d] = step == STEPS
                                    ? ZB_NO_LIMIT
                                    : zb_profile_least_peak(profile, d) +
                                          step * zb_profile_activation(profile) * profile->devices / 3;
    struct zb_answer answer = solved(profile, objective, "under a rising limit", index);
    expect(answer.status == ZB_OPTIMAL && answer.cost_ns <= last_ns,
           "seed %d, number %d, step %d: %lld (%s) with more memory, %lld with less", SEED, index, step,
           (long long)answer.cost_ns, zb_status_word(answer.status), (long long)last_ns);
    last_ns = answer.cost_ns;
    zb_answer_free(&answer);
  }
  zb_profile_free(profile);
}

static void test_more_memory(void **state) {
  (void)state;
  for (int k = 0; k < TINY * long_factor(); k++)
    check_more_memory(GENERATE_TINY, k, (enum zb_objective)(k % ZB_OBJECTIVE_COUNT));
  for (int k = 0; k < SMALL * long_factor(); k++)
    check_more_memory(GENERATE_UNEVEN, k, k % 2 ? ZB_SPAN : ZB_MAKESPAN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unit_of_time),
      cmocka_unit_test(test_direction_of_time),
      cmocka_unit_test(test_more_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
