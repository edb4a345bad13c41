// The walk over JSON text: what it tells, in which order, and where it stops.
#include "solver/io/json_scan.h"

#include <string.h>

#include "solver/io/text.h"
#include "tests/unit/unit.h"

// Writes what is visited as one line: depth, kind, key and text.
static enum zb_status record(void *context, const struct zb_json_visit *visit, struct zb_error *error) {
  struct zb_text *said = context;
  zb_text_print(said, "%d%c", visit->depth, "<>="[visit->what]);
  if (visit->key) zb_text_print(said, "%.*s:", (int)visit->key_size, visit->key);
  zb_text_print(said, visit->is_string ? "'%.*s' " : "%.*s ", (int)visit->size, visit->text);
  if (visit->size == 4 && memcmp(visit->text, "stop", 4) == 0)
    return zb_fail(error, ZB_WRONG, "told to stop");
  return ZB_OK;
}

static enum zb_status walk(const char *text, enum zb_json_literals literals, struct zb_text *said,
                           struct zb_error *error) {
  zb_text_clear(said);
  return zb_json_walk(text, strlen(text), literals, record, said, error);
}

static void test_walk(void **state) {
  (void)state;
  struct zb_text said = {0};
  struct zb_error error = {0};
  const char *text = "{\"a\": [1, \"x\\n\", {}], \"b\": {\"c\": null, \"d\": [[]]}, \"\": -2.5e3}";
  assert_int_equal(walk(text, ZB_JSON_DECIMALS, &said, &error), ZB_OK);
  assert_string_equal(said.data, "0<{ 1<a:[ 2=1 2='x\\n' 2<{ 2>} 1>] 1<b:{ 2=c:null 2<d:[ 3<[ 3>] 2>] 1>} "
                                 "1=:-2.5e3 0>} ");
  assert_int_equal(walk(" \"alone\" ", ZB_JSON_DECIMALS, &said, &error), ZB_OK);
  assert_string_equal(said.data, "0='alone' ");
  zb_text_free(&said);
}

static void test_digits(void **state) {
  (void)state;
  struct zb_text said = {0};
  struct zb_error error = {0};
  assert_int_equal(walk("[1718123456789012.345]", ZB_JSON_MEASURED, &said, &error), ZB_OK);
  assert_int_equal(walk("[1718123456789012.345]", ZB_JSON_DECIMALS, &said, &error), ZB_BAD_INPUT);
  assert_int_equal(walk("[1e400]", ZB_JSON_MEASURED, &said, &error), ZB_BAD_INPUT);
  assert_int_equal(walk("[01]", ZB_JSON_MEASURED, &said, &error), ZB_BAD_INPUT);
  zb_text_free(&said);
}

// The visit's own status and words, at the place of what it was told of.
static void test_stop(void **state) {
  (void)state;
  struct zb_text said = {0};
  struct zb_error error = {0};
  assert_int_equal(walk("{\"a\": 1,\n  \"b\": \"stop\", \"c\": 2}", ZB_JSON_DECIMALS, &said, &error),
                   ZB_WRONG);
  assert_string_equal(error.text, "told to stop");
  assert_int_equal(error.line, 2);
  assert_int_equal(error.column, 9);
  assert_string_equal(said.data, "0<{ 1=a:1 1=b:'stop' ");
  assert_int_equal(walk("[1, 2", ZB_JSON_DECIMALS, &said, &error), ZB_BAD_INPUT);
  assert_int_equal(error.column, 6);
  zb_text_free(&said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_walk),
      cmocka_unit_test(test_digits),
      cmocka_unit_test(test_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
