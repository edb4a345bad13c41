// Links of random orders: each leads where the op's name says, and the one that was waited for was ready
// last.
#include "solver/model/links.h"

#include <stdio.h>

#include "tests/instances.h"
#include "tests/unit/unit.h"

enum { SEED = 20, INSTANCES = 300 };

struct case_ {
  struct zb_profile *profile;
  struct zb_schedule *schedule;
  struct zb_timeline timeline;
  struct zb_links links;
};

static int64_t ready_ns(const struct case_ *c, uint32_t from, size_t to, bool message) {
  const struct zb_op *ops = c->schedule->ops;
  return c->timeline.start_ns[from] + zb_op_time(c->profile, ops[from]) +
         (message ? zb_links_comm_ns(c->profile, ops[from], ops[to]) : 0);
}

static void check_op(const struct case_ *c, int device, size_t i) {
  const struct zb_op *ops = c->schedule->ops, op = ops[i];
  const uint32_t input = c->links.input[i], own = c->links.own[i], waited_for = c->links.waited_for[i];
  const int64_t start_ns = c->timeline.start_ns[i];
  const bool forward = op.kind == ZB_F, weights = op.kind == ZB_W;
  const int giver = forward ? op.stage - 1 : op.stage + 1;
  assert_int_equal(input != ZB_NO_OP, !weights && giver >= 0 && giver < c->profile->stages);
  assert_int_equal(own != ZB_NO_OP, !forward);
  if (input != ZB_NO_OP) {
    assert_int_equal(ops[input].stage, giver);
    assert_int_equal(ops[input].microbatch, op.microbatch);
    assert_true(forward ? ops[input].kind == ZB_F : ops[input].kind == ZB_B || ops[input].kind == ZB_BW);
    assert_true(ready_ns(c, input, i, true) <= start_ns);
  }
  if (own != ZB_NO_OP) {
    assert_true(ops[own].stage == op.stage && ops[own].microbatch == op.microbatch);
    assert_true(ops[own].kind == (weights ? ZB_B : ZB_F));
    assert_true(ready_ns(c, own, i, false) <= start_ns);
  }
  if (waited_for == ZB_NO_OP) {
    assert_true(input == ZB_NO_OP && own == ZB_NO_OP && i == c->schedule->first[device]);
    assert_int_equal(start_ns, 0);
    return;
  }
  const bool before = i > c->schedule->first[device] && waited_for == i - 1;
  assert_true(before || waited_for == input || waited_for == own);
  assert_int_equal(ready_ns(c, waited_for, i, !before && waited_for == input), start_ns);
}

static void test_random_orders(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  for (int index = 0; index < INSTANCES; index++) {
    struct case_ c = {0};
    struct zb_error error = {0};
    c.profile = instance_profile(&random, (enum zb_placement)(index % ZB_PLACEMENT_COUNT), 5, 6);
    assert_non_null(c.profile);
    c.schedule = instance_order(
        c.profile, (enum instance_backward)(index / ZB_PLACEMENT_COUNT % INSTANCE_BACKWARDS), &random);
    assert_non_null(c.schedule);
    assert_int_equal(zb_timeline_compute(c.profile, c.schedule, &c.timeline, &error), ZB_OK);
    assert_int_equal(zb_links_create(c.profile, c.schedule, &c.timeline, &c.links, &error), ZB_OK);
    for (int d = 0; d < c.profile->devices; d++)
      for (size_t i = c.schedule->first[d]; i < c.schedule->first[d + 1]; i++) check_op(&c, d, i);
    zb_links_free(&c.links);
    zb_timeline_free(&c.timeline);
    zb_schedule_free(c.schedule);
    zb_profile_free(c.profile);
  }
}

int main(void) {
  printf("# seed %d\n", SEED);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
