// Ops as text, the builder, and the sequential order.
#include "solver/model/schedule.h"

#include <string.h>

#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

static const struct {
  const char *text;
  size_t length; // 0: no op
  struct zb_op op;
} ops[] = {
    {"0F0", 3, {0, 0, ZB_F}},
    {"3B12", 4, {3, 12, ZB_B}},
    {"3W12", 4, {3, 12, ZB_W}},
    {"0BW5", 4, {0, 5, ZB_BW}},
    {"0BW5,", 4, {0, 5, ZB_BW}},
    {"10F10F", 5, {10, 10, ZB_F}},
    {"2147483647F2147483647", 21, {INT32_MAX, INT32_MAX, ZB_F}},
    {"2147483648F0", 0, {0, 0, ZB_F}},
    {"0F2147483648", 0, {0, 0, ZB_F}},
    {"0F99999999999999999999", 0, {0, 0, ZB_F}},
    {"00F0", 0, {0, 0, ZB_F}},
    {"0F00", 0, {0, 0, ZB_F}},
    {"0F", 0, {0, 0, ZB_F}},
    {"0BW", 0, {0, 0, ZB_F}},
    {"0WB5", 0, {0, 0, ZB_F}},
    {"0I5", 0, {0, 0, ZB_F}},
    {"0f5", 0, {0, 0, ZB_F}},
    {"F0", 0, {0, 0, ZB_F}},
    {"-1F0", 0, {0, 0, ZB_F}},
    {"0F-1", 0, {0, 0, ZB_F}},
    {" 0F0", 0, {0, 0, ZB_F}},
    {"0 F0", 0, {0, 0, ZB_F}},
    {"", 0, {0, 0, ZB_F}},
};

static void test_op_text(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    struct zb_op op = {7, 7, ZB_W};
    size_t length = zb_op_parse(ops[i].text, &op);
    expect(length == ops[i].length, "\"%s\": %zu, expected %zu", ops[i].text, length, ops[i].length);
    struct zb_op wanted = length ? ops[i].op : (struct zb_op){7, 7, ZB_W};
    expect(op.stage == wanted.stage && op.microbatch == wanted.microbatch && op.kind == wanted.kind,
           "\"%s\": reads as %d, %d, kind %d", ops[i].text, op.stage, op.microbatch, (int)op.kind);
    if (!length) continue;
    char text[ZB_OP_TEXT];
    zb_op_print(op, text);
    expect(strlen(text) == length && strncmp(text, ops[i].text, length) == 0, "\"%s\": prints as \"%s\"",
           ops[i].text, text);
  }
}

static void test_builder(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  struct zb_schedule_builder builder;
  struct zb_schedule *schedule = NULL, *empty = NULL, *copy = NULL;
  assert_int_equal(zb_profile_create(2, 2, 2, ZB_V, &p, NULL), ZB_OK);
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  assert_true(builder.capacity >= 12); // 3 ops a stage and microbatch
  assert_int_equal(zb_builder_finish(&builder, &empty, NULL), ZB_OK);
  assert_true(empty->first[0] == 0 && empty->first[1] == 0 && empty->first[2] == 0);
  zb_schedule_free(empty);

  // Stages 0 and 3 are on device 0, stages 1 and 2 on device 1; each device keeps its own order.
  const struct zb_op appended[] = {{0, 0, ZB_F}, {1, 0, ZB_F}, {3, 0, ZB_F}, {2, 1, ZB_BW}, {0, 1, ZB_F}};
  for (size_t i = 0; i < 5; i++)
    zb_builder_append(&builder, appended[i].stage, appended[i].kind, appended[i].microbatch);
  assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
  assert_int_equal(schedule->devices, 2);
  assert_true(schedule->first[1] == 3 && schedule->first[2] == 5);
  const size_t order[] = {0, 2, 4, 1, 3};
  for (size_t i = 0; i < 5; i++)
    assert_memory_equal(&schedule->ops[i], &appended[order[i]], sizeof(struct zb_op));

  zb_builder_clear(&builder);
  zb_builder_append(&builder, 2, ZB_W, 1);
  assert_int_equal(zb_schedule_copy(schedule, &copy, NULL), ZB_OK);
  zb_schedule_free(schedule);
  assert_true(copy->first[1] == 3 && copy->first[2] == 5);
  for (size_t i = 0; i < 5; i++)
    assert_memory_equal(&copy->ops[i], &appended[order[i]], sizeof(struct zb_op));
  zb_schedule_free(copy);
  assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
  assert_true(schedule->first[1] == 0 && schedule->first[2] == 1 && schedule->ops[0].kind == ZB_W);
  zb_schedule_free(schedule);
  zb_builder_free(&builder);
  zb_schedule_free(NULL);
  zb_profile_free(p);
}

// The sequential order fits whatever any order fits: its peak is the least, and it fuses where only that
// fits.
static void test_sequential(void **state) {
  (void)state;
  struct generate_random random = {12};
  int fused = 0, split = 0;
  for (int i = 0; i < 2000; i++) {
    enum zb_placement placement = (enum zb_placement)(i % ZB_PLACEMENT_COUNT);
    struct zb_profile *p = instance_profile(&random, placement, 4, 4);
    assert_non_null(p);
    for (int d = 0; d < p->devices; d++)
      p->limit_bytes[d] = zb_profile_least_peak(p, d) + generate_between(&random, 0, 2);
    struct zb_schedule *schedule = NULL;
    struct zb_timeline timeline = {0};
    struct zb_error error = {0};
    assert_int_equal(zb_schedule_sequential(p, &schedule, &error), ZB_OK);
    enum zb_status status = zb_check_schedule(p, schedule, &timeline, &error);
    expect(status == ZB_OK, "number %d: %s", i, error.text);
    for (size_t k = 0; k < schedule->first[p->devices]; k++) {
      const struct zb_op op = schedule->ops[k];
      fused += op.kind == ZB_BW;
      split += op.kind == ZB_B;
      int64_t parts = p->b_ns[op.stage] + p->w_ns[op.stage];
      if (op.kind == ZB_BW && p->bw_ns[op.stage] >= parts)
        expect(p->b_bytes[op.stage] > 0, "number %d: fused where split is as short and needs no more", i);
      if (op.kind == ZB_B) expect(p->bw_ns[op.stage] >= parts, "number %d: split where fused is shorter", i);
    }
    for (int d = 0; d < p->devices; d++)
      p->limit_bytes[d] = ZB_NO_LIMIT; // nothing but one microbatch at a time, so the time is their sum
    zb_schedule_free(schedule);
    assert_int_equal(zb_schedule_sequential(p, &schedule, &error), ZB_OK);
    for (int d = 0; d < p->devices; d++) {
      assert_int_equal(zb_timeline_compute(p, schedule, &timeline, &error), ZB_OK);
      expect_equal(timeline.busy_ns[d], zb_profile_least_work(p, d), "busy time of the sequential order");
    }
    zb_timeline_free(&timeline);
    zb_schedule_free(schedule);
    zb_profile_free(p);
  }
  assert_true(fused > 100 && split > 100);
}

static void test_op_numbers(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(2, 1, 1, ZB_CHAIN, &p, NULL), ZB_OK);
  p->f_ns[1] = 3;
  p->b_ns[1] = 4;
  p->w_ns[1] = 5;
  p->bw_ns[1] = 6;
  p->has_bw = true;
  p->f_bytes[1] = 10;
  p->b_bytes[1] = -7;
  p->w_bytes[1] = -3;
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  const int64_t times[4] = {3, 4, 5, 6}, bytes[4] = {10, -7, -3, -10};
  for (int kind = ZB_F; kind <= ZB_BW; kind++) {
    assert_true(zb_op_time(p, (struct zb_op){1, 0, (enum zb_kind)kind}) == times[kind]);
    assert_true(zb_op_memory(p, (struct zb_op){1, 0, (enum zb_kind)kind}) == bytes[kind]);
  }
  zb_profile_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_op_text),
      cmocka_unit_test(test_builder),
      cmocka_unit_test(test_sequential),
      cmocka_unit_test(test_op_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
