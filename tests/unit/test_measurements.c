// Numbers as logs write them, and what becomes of samples: medians, dropped repeats, devices from ranks.
#include "solver/io/measurements.h"

#include <string.h>

#include "tests/unit/unit.h"

static void expect_number(const char *text, int power, int64_t wanted) {
  int64_t value = -77;
  expect(zb_measured_number(text, strlen(text), power, &value), "%s is no number", text);
  expect_equal(value, wanted, text);
}

static void test_numbers(void **state) {
  (void)state;
  expect_number("12.3456", 3, 12346);
  expect_number("0.0005", 3, 1);
  expect_number("0.0004999999999999999999999", 3, 0);
  expect_number("-2.5", 0, -3);
  expect_number("1e3", 3, 1000000);
  expect_number("1.5E-3", 6, 1500);
  expect_number("1.", 3, 1000);
  expect_number("1718123456789012.345", 3, 1718123456789012340);
  expect_number("0.00000000000000000000000001", 9, 0);
  expect_number("1e-999999", 9, 0);
  static const char *const none[] = {"",      "-",  ".",    "abc",  "1e",
                                     "1.2.3", "1 ", "0x10", "1e30", "9999999999999999999"};
  int64_t value = -77;
  for (size_t k = 0; k < sizeof none / sizeof *none; k++)
    expect(!zb_measured_number(none[k], strlen(none[k]), 0, &value) && value == -77, "%s is a number",
           none[k]);
}

static void add(struct zb_measurements *m, enum zb_measure measure, int stage, int microbatch, int64_t order,
                int64_t value) {
  struct zb_error error = {0};
  const struct zb_sample sample = {measure, stage, microbatch, order, value};
  assert_int_equal(zb_measurements_add(m, sample, &error), ZB_OK);
}

static enum zb_status make(const struct zb_measurements *m, int skip, struct zb_measured *measured,
                           struct zb_error *error) {
  const struct zb_measured_options options = {
      .name = "n", .source = "s", .skip = skip, .warms_up = true, .comm_ns = -1};
  return zb_measurements_profile(m, &options, measured, error);
}

// Three iterations of two microbatches, the first of which is slow.
static void test_skip_and_median(void **state) {
  (void)state;
  struct zb_measurements m = {0};
  struct zb_measured measured = {0};
  struct zb_error error = {0};
  static const int64_t f[] = {900, 910, 10, 11, 12, 15};
  for (int k = 5; k >= 0; k--) { // the order in the file does not matter
    add(&m, ZB_MEASURE_F, 0, k % 2, k, f[k]);
    add(&m, ZB_MEASURE_BW, 0, k % 2, k, 40);
  }
  assert_int_equal(make(&m, -1, &measured, &error), ZB_OK);
  expect_equal(measured.profile->f_ns[0], 11, "median of 10 11 12 15");
  expect_equal(measured.rows[0].low, 10, "lower quartile");
  expect_equal(measured.rows[0].high, 12, "upper quartile");
  expect_equal(measured.profile->microbatches, 2, "microbatches");
  expect_equal(measured.profile->b_ns[0] + measured.profile->w_ns[0], 40, "b + w");
  zb_measured_free(&measured);
  assert_int_equal(make(&m, 0, &measured, &error), ZB_OK);
  expect_equal(measured.profile->f_ns[0], 13, "median of 10 11 12 15 900 910");
  zb_measured_free(&measured);
  assert_int_equal(make(&m, 3, &measured, &error), ZB_BAD_INPUT);
  zb_measurements_free(&m);
}

static enum zb_status place(const int (*homes)[2], size_t count, int stages, struct zb_measured *measured) {
  struct zb_measurements m = {0};
  struct zb_error error = {0};
  for (int s = 0; s < stages; s++) {
    add(&m, ZB_MEASURE_F, s, 0, 0, 5);
    add(&m, ZB_MEASURE_BW, s, 0, 0, 9);
  }
  for (size_t k = 0; k < count; k++)
    assert_int_equal(zb_measurements_home(&m, homes[k][0], homes[k][1], &error), ZB_OK);
  const enum zb_status status = make(&m, -1, measured, &error);
  zb_measurements_free(&m);
  return status;
}

static void test_devices(void **state) {
  (void)state;
  struct zb_measured measured = {0};
  // Two replicas of a V over ranks that are not 0 and 1.
  static const int v[][2] = {{0, 4}, {3, 4}, {1, 6}, {2, 6}, {0, 8}, {3, 8}, {2, 9}, {1, 9}};
  assert_int_equal(place(v, 8, 4, &measured), ZB_OK);
  assert_int_equal(measured.profile->placement, ZB_V);
  assert_int_equal(measured.profile->devices, 2);
  zb_measured_free(&measured);
  static const int loop[][2] = {{0, 0}, {1, 1}, {2, 0}, {3, 1}};
  assert_int_equal(place(loop, 4, 4, &measured), ZB_OK);
  assert_int_equal(measured.profile->placement, ZB_LOOP);
  zb_measured_free(&measured);
  static const int list[][2] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}};
  assert_int_equal(place(list, 4, 4, &measured), ZB_OK);
  assert_int_equal(measured.profile->placement, ZB_LIST);
  assert_int_equal(measured.profile->device_of[2], 1);
  zb_measured_free(&measured);
  static const int apart[][2] = {{0, 0}, {1, 1}, {2, 0}, {3, 1}, {0, 2}, {1, 2}};
  assert_int_equal(place(apart, 6, 4, &measured), ZB_BAD_INPUT);
  static const int uneven[][2] = {{0, 0}, {1, 0}, {2, 1}};
  assert_int_equal(place(uneven, 3, 3, &measured), ZB_BAD_INPUT);
  static const int unknown[][2] = {{0, 0}, {1, 1}};
  assert_int_equal(place(unknown, 2, 3, &measured), ZB_BAD_INPUT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_skip_and_median),
      cmocka_unit_test(test_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
