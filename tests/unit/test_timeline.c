// Times, costs and memory of random orders against the slow timing of tests/naive.c.
#include "solver/model/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/instances.h"
#include "tests/naive.h"
#include "tests/unit/unit.h"

struct instance {
  struct zb_profile *profile;
  struct zb_schedule *schedule;
};

// Number `index` goes through all placements and kinds of backward.
static struct instance draw(struct generate_random *random, int index, int devices, int microbatches) {
  struct instance in;
  in.profile =
      instance_profile(random, (enum zb_placement)(index % ZB_PLACEMENT_COUNT), devices, microbatches);
  assert_non_null(in.profile);
  in.schedule = instance_order(
      in.profile, (enum instance_backward)(index / ZB_PLACEMENT_COUNT % INSTANCE_BACKWARDS), random);
  assert_non_null(in.schedule);
  return in;
}

static void release(struct instance in) {
  zb_schedule_free(in.schedule);
  zb_profile_free(in.profile);
}

// The order that a timeline leaves for others: all positions once, each after what it waits for.
static void check_order(const struct instance in, const struct zb_timeline *t) {
  const struct zb_profile *p = in.profile;
  int m = p->microbatches;
  size_t next[NAIVE_MAX_DEVICES];
  bool *f = calloc((size_t)(p->stages * m), sizeof *f),
       *gradient = calloc((size_t)(p->stages * m), sizeof *gradient);
  assert_true(f && gradient);
  memcpy(next, in.schedule->first, (size_t)p->devices * sizeof *next);
  for (size_t i = 0; i < t->ops; i++) {
    const struct zb_op op = in.schedule->ops[t->order[i]];
    int pass = op.stage * m + op.microbatch;
    assert_true(t->order[i] == next[p->device_of[op.stage]]++);
    if (op.kind == ZB_F) {
      assert_true(op.stage == 0 || f[pass - m]);
      f[pass] = true;
    } else if (op.kind == ZB_W) {
      assert_true(gradient[pass]);
    } else {
      assert_true(f[pass] && (op.stage == p->stages - 1 || gradient[pass + m]));
      gradient[pass] = true;
    }
  }
  free(f);
  free(gradient);
}

static void check_devices(const struct instance in, const struct zb_timeline *t, int index) {
  int64_t work = 0;
  for (int d = 0; d < in.profile->devices; d++) {
    size_t first = in.schedule->first[d], end = in.schedule->first[d + 1];
    int64_t busy = 0;
    for (size_t i = first; i < end; i++) busy += zb_op_time(in.profile, in.schedule->ops[i]);
    expect_equal(t->busy_ns[d], busy, "busy_ns");
    expect_equal(t->first_start_ns[d], t->start_ns[first], "first_start_ns");
    expect_equal(t->last_end_ns[d], t->start_ns[end - 1] + zb_op_time(in.profile, in.schedule->ops[end - 1]),
                 "last_end_ns");
    expect(t->peak_bytes[d] == naive_peak(in.profile, in.schedule, d, NULL), "number %d: peak of device %d",
           index, d);
    work = busy > work ? busy : work;
  }
  expect_equal(t->work_ns, work, "work_ns");
}

static void test_against_naive(void **state) {
  (void)state;
  struct generate_random random = {31};
  struct zb_timeline t = {0}; // one for all sizes
  for (int i = 0; i < 3000; i++) {
    struct instance in = draw(&random, i, 5, 4);
    struct naive_times truth;
    struct zb_error error = {0};
    assert_true(naive_time(in.profile, in.schedule, &truth));
    enum zb_status status = zb_timeline_compute(in.profile, in.schedule, &t, &error);
    expect(status == ZB_OK, "number %d: %s", i, error.text);
    assert_true(t.ops == in.schedule->first[in.profile->devices] && t.devices == in.profile->devices);
    for (size_t k = 0; k < t.ops; k++)
      expect(t.start_ns[k] == truth.start_ns[k], "number %d, op %zu: starts at %lld, expected %lld", i, k,
             (long long)t.start_ns[k], (long long)truth.start_ns[k]);
    expect_equal(t.span_ns, truth.span_ns, "span_ns");
    expect_equal(t.makespan_ns, truth.makespan_ns, "makespan_ns");
    expect_equal(t.period_ns, -1, "period_ns before it is asked for");
    expect_equal(zb_timeline_cost(&t, ZB_SPAN), truth.span_ns, "cost by span");
    expect_equal(zb_timeline_cost(&t, ZB_MAKESPAN), truth.makespan_ns, "cost by makespan");
    check_devices(in, &t, i);
    check_order(in, &t);
    release(in);
  }
  zb_timeline_free(&t);
}

// Two ops of a device change places: the sweep says "for ever" exactly where there is a ring, and names an op
// that is really stuck.
static void test_deadlock(void **state) {
  (void)state;
  struct generate_random random = {32};
  struct zb_timeline t = {0};
  int stuck = 0, fine = 0;
  for (int i = 0; i < 3000; i++) {
    struct instance in = draw(&random, i, 4, 3);
    int d = (int)generate_between(&random, 0, in.profile->devices - 1);
    size_t first = in.schedule->first[d], count = in.schedule->first[d + 1] - first;
    for (int64_t swaps = generate_between(&random, 1, 2); swaps > 0; swaps--) {
      size_t a = first + (size_t)generate_between(&random, 0, (int64_t)count - 1);
      size_t b = first + (size_t)generate_between(&random, 0, (int64_t)count - 1);
      struct zb_op op = in.schedule->ops[a];
      in.schedule->ops[a] = in.schedule->ops[b];
      in.schedule->ops[b] = op;
    }
    struct naive_times truth;
    struct zb_error error = {0};
    bool finishes = naive_time(in.profile, in.schedule, &truth);
    enum zb_status status = zb_timeline_compute(in.profile, in.schedule, &t, &error);
    expect(status == (finishes ? ZB_OK : ZB_WRONG), "number %d: %s", i, zb_status_word(status));
    fine += finishes;
    stuck += !finishes;
    if (finishes) {
      expect_equal(t.span_ns, truth.span_ns, "span_ns");
    } else {
      int device, read = 0;
      size_t position;
      char text[ZB_OP_TEXT];
      assert_int_equal(sscanf(error.text, "device %d, position %zu, %n", &device, &position, &read), 2);
      assert_true(device >= 0 && device < in.profile->devices);
      assert_true(position < in.schedule->first[device + 1] - in.schedule->first[device]);
      zb_op_print(in.schedule->ops[in.schedule->first[device] + position], text);
      expect(strncmp(error.text + read, text, strlen(text)) == 0 &&
                 strstr(error.text, ": waits for ever for "),
             "number %d: \"%s\", but the op is %s", i, error.text, text);
      // Once around: it ends where it began.
      char closes[64];
      snprintf(closes, sizeof closes, "behind %s on device %d", text, device);
      const size_t length = strlen(error.text), tail = strlen(closes);
      expect(length > tail && strcmp(error.text + length - tail, closes) == 0, "number %d: no cycle: %s", i,
             error.text);
    }
    release(in);
  }
  assert_true(stuck > 300 && fine > 300);
  zb_timeline_free(&t);
}

static void test_alive_at_peak(void **state) {
  (void)state;
  struct generate_random random = {33};
  for (int i = 0; i < 2000; i++) {
    struct instance in = draw(&random, i, 3, 4);
    const struct zb_profile *p = in.profile;
    struct zb_op alive[3 * 4];
    for (int d = 0; d < p->devices; d++) {
      size_t peak_at, count = zb_timeline_alive_at_peak(p, in.schedule, d, alive), wanted = 0;
      bool kept = naive_peak(p, in.schedule, d, &peak_at) > p->static_bytes[d];
      for (size_t k = in.schedule->first[d]; kept && k <= peak_at; k++) {
        const struct zb_op op = in.schedule->ops[k];
        bool ended = false;
        for (size_t l = k; l < peak_at; l++) {
          const struct zb_op last = in.schedule->ops[l];
          ended = ended || (last.stage == op.stage && last.microbatch == op.microbatch &&
                            (last.kind == ZB_W || last.kind == ZB_BW));
        }
        if (op.kind != ZB_F || ended) continue;
        expect(wanted < count && alive[wanted].stage == op.stage && alive[wanted].microbatch == op.microbatch,
               "number %d, device %d: %dF%d is alive at the peak", i, d, op.stage, op.microbatch);
        wanted++;
      }
      expect(count == wanted, "number %d, device %d: %zu alive, expected %zu", i, d, count, wanted);
    }
    release(in);
  }
}

// By hand: 2 devices, 2 microbatches, f b w = 1 2 3, comm 1 forward and 2 backward.
static void test_by_hand(void **state) {
  (void)state;
  struct zb_profile *p = NULL;
  struct zb_schedule_builder builder;
  struct zb_schedule *schedule = NULL;
  struct zb_timeline t = {0};
  assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  for (int s = 0; s < 2; s++) {
    p->f_ns[s] = 1;
    p->b_ns[s] = 2;
    p->w_ns[s] = 3;
    p->comm_forward_ns[s] = 1;
    p->comm_backward_ns[s] = 2;
    p->f_bytes[s] = 4;
    p->b_bytes[s] = -1;
    p->w_bytes[s] = -3;
  }
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  static const struct zb_op ops[] = {{0, 0, ZB_F}, {0, 1, ZB_F},  {0, 0, ZB_B}, {0, 1, ZB_B},
                                     {0, 0, ZB_W}, {0, 1, ZB_W},  {1, 0, ZB_F}, {1, 0, ZB_B},
                                     {1, 1, ZB_F}, {1, 1, ZB_BW}, {1, 0, ZB_W}};
  static const int64_t starts[] = {0, 1, 7, 13, 15, 18, 2, 3, 5, 6, 11};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    zb_builder_append(&builder, ops[i].stage, ops[i].kind, ops[i].microbatch);
  assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
  assert_int_equal(zb_timeline_compute(p, schedule, &t, NULL), ZB_OK);
  for (size_t i = 0; i < t.ops; i++)
    expect(t.start_ns[i] == starts[i], "op %zu starts at %lld, expected %lld", i, (long long)t.start_ns[i],
           (long long)starts[i]);
  expect_equal(t.span_ns, 21, "span_ns");
  expect_equal(t.makespan_ns, 21, "makespan_ns");
  expect_equal(t.work_ns, 12, "work_ns");
  expect_equal(t.busy_ns[1], 12, "busy_ns of device 1");
  expect_equal(t.peak_bytes[0], 8, "peak_bytes of device 0");
  expect_equal(t.peak_bytes[1], 7, "peak_bytes of device 1");
  zb_timeline_free(&t);
  zb_schedule_free(schedule);
  zb_builder_free(&builder);
  zb_profile_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_hand),
      cmocka_unit_test(test_against_naive),
      cmocka_unit_test(test_deadlock),
      cmocka_unit_test(test_alive_at_peak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
