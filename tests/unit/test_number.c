// Decimal text to exact integers, and sums that refuse to overflow.
#include "solver/model/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/generate.h"
#include "tests/unit/unit.h"

static const struct {
  const char *text;
  int64_t scale;
  enum zb_decimal status;
  int64_t value;
} cases[] = {
    {"0", 1, ZB_DECIMAL_OK, 0},
    {"-0", 1, ZB_DECIMAL_OK, 0},
    {"0.0", 1, ZB_DECIMAL_OK, 0},
    {"0e0", 1, ZB_DECIMAL_OK, 0},
    {"0e400", 1, ZB_DECIMAL_OK, 0},
    {"0e-99999999999999999999", 1, ZB_DECIMAL_OK, 0},
    {"0.000000000000000000000000000000", 1, ZB_DECIMAL_OK, 0},
    {"1", 1, ZB_DECIMAL_OK, 1},
    {"-1", 1, ZB_DECIMAL_OK, -1},
    {"18.522", 1000000, ZB_DECIMAL_OK, 18522000},
    {"-20.0", 1048576, ZB_DECIMAL_OK, -20971520},
    {"18.5225", 1000, ZB_DECIMAL_FRACTION, 0},
    {"18.5225", 10000, ZB_DECIMAL_OK, 185225},
    {"0.000001", 1000000, ZB_DECIMAL_OK, 1},
    {"0.0000001", 1000000, ZB_DECIMAL_FRACTION, 0},
    {"0.0000010", 1000000, ZB_DECIMAL_OK, 1},
    {"0.5", 1, ZB_DECIMAL_FRACTION, 0},
    {"0.5", 2, ZB_DECIMAL_OK, 1},
    {"0.25", 1024, ZB_DECIMAL_OK, 256},
    {"0.0009765625", 1024, ZB_DECIMAL_OK, 1},
    {"0.00048828125", 1024, ZB_DECIMAL_FRACTION, 0},
    {"0.1", 1024, ZB_DECIMAL_FRACTION, 0},
    {"0.3", 1073741824, ZB_DECIMAL_FRACTION, 0},
    {"1e3", 1, ZB_DECIMAL_OK, 1000},
    {"1E3", 1, ZB_DECIMAL_OK, 1000},
    {"1e+3", 1, ZB_DECIMAL_OK, 1000},
    {"1.5e3", 1, ZB_DECIMAL_OK, 1500},
    {"1500e-3", 1, ZB_DECIMAL_FRACTION, 0},
    {"1500e-2", 1, ZB_DECIMAL_OK, 15},
    {"1e-3", 1000, ZB_DECIMAL_OK, 1},
    {"1e003", 1, ZB_DECIMAL_OK, 1000},
    {"1e-0", 1, ZB_DECIMAL_OK, 1},
    {"1e400", 1, ZB_DECIMAL_RANGE, 0},
    {"-1e400", 1, ZB_DECIMAL_RANGE, 0},
    {"1e-400", 1, ZB_DECIMAL_FRACTION, 0},
    {"1e99999999999999999999", 1, ZB_DECIMAL_RANGE, 0},
    {"1e-99999999999999999999", 1, ZB_DECIMAL_FRACTION, 0},
    {"9007199254740990", 1, ZB_DECIMAL_OK, INT64_C(9007199254740990)},
    {"9007199254740.99", 1000, ZB_DECIMAL_OK, INT64_C(9007199254740990)},
    {"9007199254741", 1000, ZB_DECIMAL_RANGE, 0},
    {"8388608", 1073741824, ZB_DECIMAL_OK, ZB_NUMBER_MAX},
    {"-8388608", 1073741824, ZB_DECIMAL_OK, -ZB_NUMBER_MAX},
    {"8388608.5", 1073741824, ZB_DECIMAL_RANGE, 0},
    {"9223372036854775808", 1, ZB_DECIMAL_DIGITS, 0},
    {"9223372036854775807", 1, ZB_DECIMAL_DIGITS, 0},
    {"123456789012345", 1, ZB_DECIMAL_OK, INT64_C(123456789012345)},
    {"123456789012345", 1000, ZB_DECIMAL_RANGE, 0},
    {"1234567890123456", 1, ZB_DECIMAL_DIGITS, 0},
    {"1.234567890123456", 1000000, ZB_DECIMAL_DIGITS, 0},
    {"0.000000000000000000123456789012345", 1, ZB_DECIMAL_FRACTION, 0},
    {"0.0000000000000001234567890123456", 1, ZB_DECIMAL_DIGITS, 0},
    {"1.00000000000000000000000", 1, ZB_DECIMAL_OK, 1},
    {"10000000000000000000000e-22", 1, ZB_DECIMAL_OK, 1},
    {"100000000000000000000000", 1, ZB_DECIMAL_RANGE, 0},
    {"", 1, ZB_DECIMAL_MALFORMED, 0},
    {"-", 1, ZB_DECIMAL_MALFORMED, 0},
    {"+1", 1, ZB_DECIMAL_MALFORMED, 0},
    {" 1", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1 ", 1, ZB_DECIMAL_MALFORMED, 0},
    {".5", 1, ZB_DECIMAL_MALFORMED, 0},
    {"5.", 1, ZB_DECIMAL_MALFORMED, 0},
    {"5.e3", 1, ZB_DECIMAL_MALFORMED, 0},
    {"-.5", 1, ZB_DECIMAL_MALFORMED, 0},
    {"00", 1, ZB_DECIMAL_MALFORMED, 0},
    {"01", 1, ZB_DECIMAL_MALFORMED, 0},
    {"-01", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1.2.3", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1e", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1e+", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1e-", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1e1.5", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1e3e3", 1, ZB_DECIMAL_MALFORMED, 0},
    {"e3", 1, ZB_DECIMAL_MALFORMED, 0},
    {"0x10", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1,5", 1, ZB_DECIMAL_MALFORMED, 0},
    {"1_000", 1, ZB_DECIMAL_MALFORMED, 0},
    {"NaN", 1, ZB_DECIMAL_MALFORMED, 0},
    {"Infinity", 1, ZB_DECIMAL_MALFORMED, 0},
    {"-Infinity", 1, ZB_DECIMAL_MALFORMED, 0},
    {"--1", 1, ZB_DECIMAL_MALFORMED, 0},
};

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t value = 77;
    enum zb_decimal status = zb_decimal_parse(cases[i].text, cases[i].scale, &value);
    expect(status == cases[i].status, "\"%s\" x %" PRId64 ": status %d, expected %d", cases[i].text,
           cases[i].scale, (int)status, (int)cases[i].status);
    int64_t wanted = status == ZB_DECIMAL_OK ? cases[i].value : 77;
    expect(value == wanted, "\"%s\" x %" PRId64 ": %" PRId64 ", expected %" PRId64, cases[i].text,
           cases[i].scale, value, wanted);
  }
}

// Every value is written in several ways with known digits, so that the result is known without dividing.
static void test_random_literals(void **state) {
  (void)state;
  struct generate_random random = {11};
  for (int i = 0; i < 20000; i++) {
    int64_t whole = generate_between(&random, 0, 999999999), fraction = generate_between(&random, 0, 999999);
    int exponent = (int)generate_between(&random, 0, 6);
    int64_t value = 0, wanted = whole * 1000000 + fraction;
    bool negative = generate_between(&random, 0, 1) == 1;
    char text[64];
    snprintf(text, sizeof text, "%s%" PRId64 ".%06" PRId64, negative ? "-" : "", whole, fraction);
    assert_int_equal(zb_decimal_parse(text, 1000000, &value), ZB_DECIMAL_OK);
    expect(value == (negative ? -wanted : wanted), "%s: %" PRId64, text, value);
    int64_t power = 1;
    for (int k = 0; k < exponent; k++) power *= 10;
    snprintf(text, sizeof text, "%" PRId64 "e-%d", wanted, exponent);
    assert_int_equal(zb_decimal_parse(text, power, &value), ZB_DECIMAL_OK);
    expect(value == wanted, "%s x %" PRId64 ": %" PRId64, text, power, value);
    if (exponent > 0) {
      enum zb_decimal status = zb_decimal_parse(text, power / 10, &value);
      expect(status == (wanted % 10 == 0 ? ZB_DECIMAL_OK : ZB_DECIMAL_FRACTION),
             "%s x %" PRId64 ": status %d", text, power / 10, (int)status);
    }
  }
}

static void test_sums(void **state) {
  (void)state;
  const int64_t most = ZB_NUMBER_MAX;
  int64_t sum = most - 1;
  assert_true(zb_add_checked(&sum, 1));
  assert_true(sum == most);
  assert_false(zb_add_checked(&sum, 1));
  assert_false(zb_add_checked(&sum, INT64_MAX));
  assert_true(sum == most);
  assert_true(zb_add_checked(&sum, -2 * most));
  assert_true(sum == -most);
  assert_false(zb_add_checked(&sum, -1));
  assert_false(zb_add_checked(&sum, INT64_MIN));
  assert_true(sum == -most);
  sum = 0;
  assert_true(zb_add_product_checked(&sum, 0, most));
  assert_true(sum == 0);
  assert_true(zb_add_product_checked(&sum, 1, most));
  assert_false(zb_add_product_checked(&sum, INT64_MAX, 1));
  assert_false(zb_add_product_checked(&sum, INT64_MAX, -1));
  assert_false(zb_add_product_checked(&sum, most, most));
  assert_true(sum == most);
  assert_true(zb_add_product_checked(&sum, 2, -most));
  assert_true(sum == -most);
  assert_false(zb_add_product_checked(&sum, 3, -1));
}

static void test_ratio(void **state) {
  (void)state;
  assert_true(zb_ratio(0, 0) == 0.0);
  assert_true(zb_ratio(0, 5) == 0.0);
  assert_true(zb_ratio(100, 100) == 0.0);
  assert_true(zb_ratio(4, 3) == 0.25);
  assert_true(zb_ratio(ZB_NUMBER_MAX, 0) == 1.0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),
      cmocka_unit_test(test_random_literals),
      cmocka_unit_test(test_sums),
      cmocka_unit_test(test_ratio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
