// Every way an order can be wrong, and that the check says which device, position and op.
#include "solver/model/check.h"

#include <stdio.h>
#include <string.h>

#include "tests/instances.h"
#include "tests/naive.h"
#include "tests/unit/unit.h"

// 2 devices, 2 microbatches, and one text a device for its ops.
static const struct {
  const char *what, *orders[2];
  enum zb_status status;
  const char *says;
} cases[] = {
    {"sound, split", {"0F0 0F1 0B0 0W0 0B1 0W1", "1F0 1B0 1W0 1F1 1B1 1W1"}, ZB_OK, ""},
    {"sound, fused", {"0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1"}, ZB_OK, ""},
    {"sound, mixed", {"0F0 0F1 0BW0 0B1 0W1", "1F0 1B0 1F1 1BW1 1W0"}, ZB_OK, ""},
    {"an F is missing",
     {"0F0 0B0 0W0 0B1 0W1", "1F0 1B0 1W0 1F1 1B1 1W1"},
     ZB_WRONG,
     "device 0, 0F1: is missing"},
    {"a B is missing",
     {"0F0 0F1 0B0 0W0 0B1 0W1", "1F0 1W0 1F1 1B1 1W1"},
     ZB_WRONG,
     "device 1, 1B0: is missing"},
    {"a W is missing",
     {"0F0 0F1 0B0 0W0 0B1", "1F0 1B0 1W0 1F1 1B1 1W1"},
     ZB_WRONG,
     "device 0, 0W1: is missing"},
    {"a BW is missing", {"0F0 0F1 0BW1", "1F0 1BW0 1F1 1BW1"}, ZB_WRONG, "device 0, 0B0: is missing"},
    {"F and BW, F missing", {"0F0 0F1 0BW0 0BW1", "1F0 1BW0 1BW1"}, ZB_WRONG, "device 1, 1F1: is missing"},
    {"nothing at all", {"", "1F0 1BW0 1F1 1BW1"}, ZB_WRONG, "device 0, 0F0: is missing"},
    {"F twice",
     {"0F0 0F1 0F0 0BW0 0BW1", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 2, 0F0: comes twice"},
    {"W twice",
     {"0F0 0F1 0BW0 0BW1", "1F0 1B0 1W0 1W0 1F1 1BW1"},
     ZB_WRONG,
     "device 1, position 3, 1W0: comes twice"},
    {"BW twice",
     {"0F0 0F1 0BW0 0BW1 0BW1", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 4, 0BW1: comes twice"},
    {"BW and B",
     {"0F0 0F1 0BW0 0BW1", "1F0 1BW0 1F1 1BW1 1B1"},
     ZB_WRONG,
     "device 1, position 4, 1B1: its backward is both split and fused"},
    {"W and BW",
     {"0F0 0F1 0BW0 0BW1 0W0", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 4, 0W0: its backward is both split and fused"},
    {"another device's stage",
     {"0F0 0F1 1F0 0BW0 0BW1", "1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 2, 1F0: its stage is on another device"},
    {"no such stage",
     {"0F0 0F1 0BW0 0BW1", "1F0 2F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 1, position 1, 2F0: there is no such stage"},
    {"no such microbatch",
     {"0F0 0F1 0F2 0BW0 0BW1", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 2, 0F2: there is no such microbatch"},
    {"B before F",
     {"0F0 0F1 0BW0 0BW1", "1B0 1F0 1W0 1F1 1BW1"},
     ZB_WRONG,
     "device 1, position 0, 1B0: waits for ever for 1F0, behind 1B0 on device 1"},
    {"B before F on the first device",
     {"0B0 0F0 0W0 0F1 0BW1", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 0, 0B0: waits for ever for 0F0, behind 0B0 on device 0"},
    {"W before B",
     {"0F0 0F1 0W0 0B0 0BW1", "1F0 1BW0 1F1 1BW1"},
     ZB_WRONG,
     "device 0, position 2, 0W0: waits for ever for 0B0, behind 0W0 on device 0"},
    {"a ring over both devices",
     {"0F0 0BW0 0F1 0BW1", "1F1 1F0 1BW0 1BW1"},
     ZB_WRONG,
     "device 0, position 1, 0BW0: waits for ever for 1BW0, behind 1F1 on device 1, which waits for 0F1, "
     "behind 0BW0 on device 0"},
    {"the last device is stuck alone",
     {"0F0 0F1", "1F0 1F1 1W0 1B0 1B1 1W1"},
     ZB_WRONG,
     "device 0, 0B0: is missing"},
};

static struct zb_schedule *read_orders(const struct zb_profile *p, const char *const orders[2]) {
  struct zb_schedule *schedule = NULL;
  struct zb_schedule_builder builder;
  assert_int_equal(zb_builder_create(p, &builder, NULL), ZB_OK);
  for (int d = 0; d < 2; d++) {
    size_t length;
    for (const char *c = orders[d]; *c; c += length + (c[length] == ' ')) {
      struct zb_op op;
      length = zb_op_parse(c, &op);
      assert_true(length > 0);
      builder.ops[(size_t)d * builder.capacity + builder.count[d]++] = op; // wherever its stage is
    }
  }
  assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
  zb_builder_free(&builder);
  return schedule;
}

static struct zb_profile *two_by_two(void) {
  struct zb_profile *p = NULL;
  assert_int_equal(zb_profile_create(2, 1, 2, ZB_CHAIN, &p, NULL), ZB_OK);
  for (int s = 0; s < 2; s++) {
    p->f_ns[s] = 2;
    p->b_ns[s] = 3;
    p->w_ns[s] = 1;
    p->f_bytes[s] = 10;
    p->b_bytes[s] = -4;
    p->w_bytes[s] = -6;
  }
  assert_int_equal(zb_profile_finish(p, NULL), ZB_OK);
  return p;
}

static void test_cases(void **state) {
  (void)state;
  struct zb_profile *p = two_by_two();
  struct zb_timeline t = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct zb_error error = {0};
    struct zb_schedule *schedule = read_orders(p, cases[i].orders);
    enum zb_status status = zb_check_schedule(p, schedule, &t, &error);
    expect(status == cases[i].status, "%s: %s: %s", cases[i].what, zb_status_word(status), error.text);
    expect(strcmp(error.text, cases[i].says) == 0, "%s: \"%s\", expected \"%s\"", cases[i].what, error.text,
           cases[i].says);
    assert_int_equal(zb_check_schedule(p, schedule, &t, NULL), status);
    zb_schedule_free(schedule);
  }
  zb_timeline_free(&t);
  zb_profile_free(p);
}

static void test_other_profile(void **state) {
  (void)state;
  struct zb_profile *p = two_by_two(), *three = NULL;
  struct zb_timeline t = {0};
  struct zb_error error = {0};
  struct zb_schedule *schedule = read_orders(p, cases[0].orders);
  assert_int_equal(zb_profile_create(3, 1, 2, ZB_CHAIN, &three, NULL), ZB_OK);
  assert_int_equal(zb_profile_finish(three, NULL), ZB_OK);
  assert_int_equal(zb_check_schedule(three, schedule, &t, &error), ZB_WRONG);
  assert_non_null(strstr(error.text, "2 orders, expected 3"));
  zb_timeline_free(&t);
  zb_schedule_free(schedule);
  zb_profile_free(three);
  zb_profile_free(p);
}

// The peak may be the limit, not one byte more; what is over it is still timed.
static void test_limit(void **state) {
  (void)state;
  struct zb_profile *p = two_by_two();
  struct zb_timeline t = {0};
  struct zb_error error = {0};
  static const char *const orders[2] = {"0F0 0F1 0B0 0W0 0B1 0W1", "1F0 1B0 1F1 1W0 1B1 1W1"};
  struct zb_schedule *schedule = read_orders(p, orders);
  p->static_bytes[1] = 5;
  p->limit_bytes[0] = 20;
  p->limit_bytes[1] = 5 + 10 - 4 + 10;
  assert_int_equal(zb_check_schedule(p, schedule, &t, &error), ZB_OK);
  p->limit_bytes[1]--;
  int64_t span = t.span_ns;
  t.span_ns = t.peak_bytes[1] = -7;
  assert_int_equal(zb_check_schedule(p, schedule, &t, &error), ZB_OVER_LIMIT);
  assert_string_equal(error.text, "device 1: peak 21 B, limit 20 B");
  expect_equal(t.span_ns, span, "span_ns over the limit");
  expect_equal(t.peak_bytes[1], 21, "peak_bytes over the limit");
  assert_true(t.period_ns > 0);
  p->limit_bytes[0]--;
  assert_int_equal(zb_check_schedule(p, schedule, &t, &error), ZB_OVER_LIMIT);
  assert_string_equal(error.text, "device 0: peak 20 B, limit 19 B");
  zb_timeline_free(&t);
  zb_schedule_free(schedule);
  zb_profile_free(p);
}

enum mutation { DROP, COPY, RENAME, SWAP, MUTATIONS };

// A copy of `from` with op `at` of device d dropped, put in the place of op `other` too, given another name,
// or exchanged with op `other`.
static struct zb_schedule *mutate(const struct zb_schedule *from, enum mutation mutation, int d, size_t at,
                                  size_t other, struct zb_op name) {
  struct zb_schedule *to = NULL;
  size_t ops = from->first[from->devices];
  assert_int_equal(zb_schedule_copy(from, &to, NULL), ZB_OK);
  at += from->first[d];
  other += from->first[d];
  switch (mutation) {
  case DROP:
    memmove(to->ops + at, to->ops + at + 1, (ops - at - 1) * sizeof *to->ops);
    for (int k = d + 1; k <= to->devices; k++) to->first[k]--;
    break;
  case SWAP:
    to->ops[at] = from->ops[other]; // fall through
  case COPY:
    to->ops[other] = from->ops[at];
    break;
  case RENAME:
    to->ops[at] = name;
    break;
  case MUTATIONS:
    break;
  }
  return to;
}

// Any change of an order that has every op once is either still one, and then timed as tests/naive.c times
// it, or refused.
static void test_mutations(void **state) {
  (void)state;
  struct generate_random random = {51};
  struct zb_timeline t = {0};
  int refused[MUTATIONS] = {0}, held[MUTATIONS] = {0};
  for (int i = 0; i < 4000; i++) {
    struct zb_profile *p = instance_profile(&random, (enum zb_placement)(i % ZB_PLACEMENT_COUNT), 4, 3);
    assert_non_null(p);
    for (int d = 0; d < p->devices; d++) p->limit_bytes[d] = ZB_NO_LIMIT;
    struct zb_schedule *sound = instance_order(p, (enum instance_backward)(i % INSTANCE_BACKWARDS), &random);
    assert_non_null(sound);
    struct zb_error error = {0};
    assert_int_equal(zb_check_schedule(p, sound, &t, &error), ZB_OK);
    int d = (int)generate_between(&random, 0, p->devices - 1);
    int64_t count = (int64_t)(sound->first[d + 1] - sound->first[d]);
    size_t at = (size_t)generate_between(&random, 0, count - 1),
           other = (size_t)generate_between(&random, 0, count - 1);
    struct zb_op name = sound->ops[sound->first[d] + at];
    name.stage = (int32_t)generate_between(&random, -1, p->stages);
    name.microbatch = (int32_t)generate_between(&random, -1, p->microbatches);
    name.kind = (enum zb_kind)generate_between(&random, 0, 3);
    enum mutation mutation = (enum mutation)(i / 12 % MUTATIONS);
    struct zb_schedule *changed = mutate(sound, mutation, d, at, other, name);
    enum zb_status status = zb_check_schedule(p, changed, &t, &error);
    const struct zb_op was = sound->ops[sound->first[d] + at];
    bool same =
        (mutation == COPY && at == other) || (mutation == RENAME && name.stage == was.stage &&
                                              name.microbatch == was.microbatch && name.kind == was.kind);
    struct naive_times truth;
    bool holds = (mutation == SWAP && naive_time(p, changed, &truth)) || same;
    expect(status == (holds ? ZB_OK : ZB_WRONG), "number %d, mutation %d: %s: %s", i, (int)mutation,
           zb_status_word(status), error.text);
    if (holds && mutation == SWAP) expect_equal(t.span_ns, truth.span_ns, "span_ns");
    if (!holds) expect(strncmp(error.text, "device ", 7) == 0, "number %d: \"%s\"", i, error.text);
    refused[mutation] += !holds;
    held[mutation] += holds;
    zb_schedule_free(changed);
    zb_schedule_free(sound);
    zb_profile_free(p);
  }
  for (int k = 0; k < MUTATIONS; k++) assert_true(refused[k] > 100);
  assert_true(held[SWAP] > 100);
  zb_timeline_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),
      cmocka_unit_test(test_other_profile),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_mutations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
