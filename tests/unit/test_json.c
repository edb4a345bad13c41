// test_json.c - profiles and schedules as JSON: exact numbers, round trips, long files.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/io/schedule_json.h"

static const char example[] =
    "{\n"
    "  \"zbsolve_profile\": 1,\n"
    "  \"name\": \"GPT 1.5B on 8 devices\",\n"
    "  \"devices\": 8,\n"
    "  \"microbatches\": 24,\n"
    "  \"chunks\": 1,\n"
    "  \"placement\": \"chain\",\n"
    "  \"time\":   {\"unit\": \"ms\", \"f\": 18.522, \"b\": 18.086, \"w\": 9.337, \"comm\": 0.601},\n"
    "  \"memory\": {\"unit\": \"MiB\", \"f\": 90.0, \"b\": -20.0, \"w\": -70.0, \"limit\": 1440, \"static\": "
    "0}\n"
    "}\n";

static const char example_printed[] =
    "{\n"
    "  \"zbsolve_profile\": 1,\n"
    "  \"name\": \"GPT 1.5B on 8 devices\",\n"
    "  \"devices\": 8,\n"
    "  \"microbatches\": 24,\n"
    "  \"chunks\": 1,\n"
    "  \"placement\": \"chain\",\n"
    "  \"time\":   {\"unit\": \"ns\", \"f\": 18522000, \"b\": 18086000, \"w\": 9337000, \"comm\": 601000},\n"
    "  \"memory\": {\"unit\": \"B\", \"f\": 94371840, \"b\": -20971520, \"w\": -73400320, \"limit\": "
    "1509949440, "
    "\"static\": 0}\n"
    "}";

static struct zb_profile *read_profile(const char *text) {
  struct zb_profile *profile = NULL;
  struct zb_error error = {0};
  if (zb_profile_read_text(text, strlen(text), &profile, &error) != ZB_OK)
    fail_msg("%d:%d: %s\n%s", error.line, error.column, error.text, text);
  return profile;
}

static void test_profile_example(void **state) {
  (void)state;
  struct zb_profile *profile = read_profile(example);
  assert_int_equal(profile->stages, 8);
  assert_int_equal(profile->f_ns[7], 18522000);
  assert_int_equal(profile->bw_ns[0], 27423000);
  assert_int_equal(profile->comm_backward_ns[6], 601000);
  assert_int_equal(profile->limit_bytes[3], INT64_C(1440) << 20);
  struct zb_text text = {0};
  zb_profile_print(profile, 0, &text);
  assert_string_equal(text.data, example_printed);
  zb_text_free(&text);
  zb_profile_free(profile);
}

static void test_profile_forms(void **state) {
  (void)state;
  struct zb_profile *p = read_profile(
      "{\"zbsolve_profile\":1,\"devices\":2,\"microbatches\":1,\"chunks\":2,\"placement\":[0,1,1,0],"
      "\"samples\":4,"
      "\"source\":\"\\u00e9\\ud83d\\ude00\",\"note\":\"\",\"time\":{\"unit\":\"unit\",\"f\":[1e1,2,3,0.004],"
      "\"b\":0,"
      "\"w\":1E-3,\"bw\":2,\"comm\":{\"forward\":[1,2,3],\"backward\":5}},"
      "\"memory\":{\"f\":1,\"b\":0.000001,\"w\":-1.000001,\"limit\":[null,2.5],\"static\":[0,7]}}");
  assert_null(p->name);
  assert_string_equal(p->source, "\xC3\xA9\xF0\x9F\x98\x80");
  assert_string_equal(p->note, "");
  assert_int_equal(p->samples, 4);
  assert_int_equal(p->placement, ZB_LIST);
  assert_int_equal(p->f_ns[0], 10000);
  assert_int_equal(p->f_ns[3], 4);
  assert_int_equal(p->w_ns[1], 1);
  assert_true(p->has_bw);
  assert_int_equal(p->comm_forward_ns[0], 1000);
  assert_int_equal(p->comm_forward_ns[1], 0); // both stages on device 1
  assert_int_equal(p->comm_backward_ns[2], 5000);
  assert_int_equal(p->b_bytes[0], 1);
  assert_true(p->limit_bytes[0] == ZB_NO_LIMIT);
  assert_int_equal(p->limit_bytes[1], 2500000);
  assert_int_equal(p->static_bytes[1], 7000000);
  zb_profile_free(p);
  p = read_profile(
      "{\"zbsolve_profile\":1,\"devices\":1,\"microbatches\":3,\"time\":{\"unit\":\"s\",\"f\":1,\"b\":[2],"
      "\"w\":0,\"comm\":[]}}");
  assert_false(p->has_memory);
  assert_true(p->limit_bytes[0] == ZB_NO_LIMIT);
  assert_int_equal(p->b_ns[0], 2000000000);
  zb_profile_free(p);
  p = read_profile(
      "{\"zbsolve_profile\":1,\"devices\":2,\"microbatches\":1,\"time\":{\"unit\":\"ns\",\"f\":1,\"b\":1,"
      "\"w\":1,\"comm\":0},\"memory\":{\"f\":1,\"b\":0,\"w\":-1,\"limit\":null}}");
  assert_true(p->has_memory && p->limit_bytes[1] == ZB_NO_LIMIT);
  zb_profile_free(p);
}

static uint64_t next_random(uint64_t *seed) { // xorshift64*
  *seed ^= *seed >> 12;
  *seed ^= *seed << 25;
  *seed ^= *seed >> 27;
  return *seed * UINT64_C(2685821657736338717);
}

static int64_t below(uint64_t *seed, int64_t bound) { return (int64_t)(next_random(seed) % (uint64_t)bound); }

static void fill_random(uint64_t *seed, int64_t *values, int count, int64_t bound) {
  int64_t same = below(seed, bound);
  bool uneven = below(seed, 2) == 0;
  for (int i = 0; i < count; i++) values[i] = uneven ? below(seed, bound) : same;
}

static struct zb_profile *random_profile(uint64_t *seed) {
  struct zb_profile *p = NULL;
  enum zb_placement placement = (enum zb_placement)below(seed, ZB_PLACEMENT_COUNT);
  int chunks = placement == ZB_CHAIN ? 1 : placement == ZB_V ? 2 : 1 + (int)below(seed, 3);
  int devices = 1 + (int)below(seed, 5), microbatches = 1 + (int)below(seed, 9);
  assert_int_equal(zb_profile_create(devices, chunks, microbatches, placement, &p, NULL), ZB_OK);
  if (placement == ZB_LIST)
    for (int s = 0; s < p->stages; s++) p->device_of[s] = p->devices - 1 - s / chunks;
  p->samples = 1 + below(seed, 3);
  p->has_bw = below(seed, 2) == 0;
  p->has_memory = below(seed, 3) != 0;
  if (below(seed, 2) == 0) p->name = strdup("a \"name\"\\ with \n\x01 and \xC3\xBC");
  fill_random(seed, p->f_ns, p->stages, 100000);
  fill_random(seed, p->b_ns, p->stages, 100000);
  fill_random(seed, p->w_ns, p->stages, INT64_C(1) << 40);
  fill_random(seed, p->bw_ns, p->stages, 3);
  fill_random(seed, p->comm_forward_ns, p->stages, 50);
  if (below(seed, 2) == 0)
    memcpy(p->comm_backward_ns, p->comm_forward_ns, (size_t)p->stages * sizeof(int64_t));
  else
    fill_random(seed, p->comm_backward_ns, p->stages, 50);
  if (p->has_memory) {
    fill_random(seed, p->f_bytes, p->stages, INT64_C(1) << 36);
    fill_random(seed, p->w_bytes, p->stages, INT64_C(1) << 36);
    fill_random(seed, p->limit_bytes, p->devices, INT64_C(1) << 40);
    fill_random(seed, p->static_bytes, p->devices, 2);
    if (below(seed, 2) == 0) p->limit_bytes[below(seed, p->devices)] = ZB_NO_LIMIT;
    for (int s = 0; s < p->stages; s++) {
      p->w_bytes[s] = -p->w_bytes[s];
      p->b_bytes[s] = -p->f_bytes[s] - p->w_bytes[s];
    }
  }
  struct zb_error error = {0};
  if (zb_profile_finish(p, &error) != ZB_OK) fail_msg("%s", error.text);
  return p;
}

#define ASSERT_LIST(a, b, field, count)                                                                      \
  assert_memory_equal(a->field, b->field, (size_t)(count) * sizeof *a->field)

static void assert_same_profile(const struct zb_profile *a, const struct zb_profile *b) {
  assert_int_equal(a->devices, b->devices);
  assert_int_equal(a->chunks, b->chunks);
  assert_int_equal(a->microbatches, b->microbatches);
  assert_int_equal(a->samples, b->samples);
  assert_int_equal(a->placement, b->placement);
  assert_true(a->has_bw == b->has_bw && a->has_memory == b->has_memory);
  assert_true((a->name == NULL) == (b->name == NULL));
  if (a->name) assert_string_equal(a->name, b->name);
  ASSERT_LIST(a, b, device_of, a->stages);
  ASSERT_LIST(a, b, stage_at, a->stages);
  ASSERT_LIST(a, b, f_ns, a->stages);
  ASSERT_LIST(a, b, b_ns, a->stages);
  ASSERT_LIST(a, b, w_ns, a->stages);
  ASSERT_LIST(a, b, bw_ns, a->stages);
  ASSERT_LIST(a, b, comm_forward_ns, a->stages);
  ASSERT_LIST(a, b, comm_backward_ns, a->stages);
  ASSERT_LIST(a, b, f_bytes, a->stages);
  ASSERT_LIST(a, b, b_bytes, a->stages);
  ASSERT_LIST(a, b, w_bytes, a->stages);
  ASSERT_LIST(a, b, limit_bytes, a->devices);
  ASSERT_LIST(a, b, static_bytes, a->devices);
}

static void test_profile_round_trip(void **state) {
  (void)state;
  uint64_t seed = 20240110;
  print_message("seed %" PRIu64 "\n", seed);
  for (int i = 0; i < 1000; i++) {
    struct zb_profile *profile = random_profile(&seed);
    struct zb_text text = {0};
    zb_profile_print(profile, 2 * (i % 3), &text);
    struct zb_profile *again = read_profile(text.data);
    assert_same_profile(profile, again);
    zb_profile_free(profile);
    zb_profile_free(again);
    zb_text_free(&text);
  }
}

static void test_decimals(void **state) {
  (void)state;
  static const struct {
    const char *literal;
    int64_t scale;
    enum zb_decimal expected;
    int64_t value;
  } cases[] = {
      {"18.522", 1000000, ZB_DECIMAL_OK, 18522000},
      {"-20.0", 1048576, ZB_DECIMAL_OK, -20971520},
      {"1e1", 1, ZB_DECIMAL_OK, 10},
      {"10E-1", 1, ZB_DECIMAL_OK, 1},
      {"0.5", 2, ZB_DECIMAL_OK, 1},
      {"-0", 7, ZB_DECIMAL_OK, 0},
      {"0e300", 1, ZB_DECIMAL_OK, 0},
      {"0.0000000000000000000000000000000000000000", 1, ZB_DECIMAL_OK, 0},
      {"0.1", 1000000000, ZB_DECIMAL_OK, 100000000},
      {"0.000000001", 1000000000, ZB_DECIMAL_OK, 1},
      {"123456.123456789", 1000000000, ZB_DECIMAL_OK, 123456123456789},
      {"999999999999999", 1, ZB_DECIMAL_OK, 999999999999999},
      {"99999999999999.9", 10, ZB_DECIMAL_OK, 999999999999999},
      {"9007199254740.99", 1000, ZB_DECIMAL_OK, 9007199254740990},
      {"9007199254741", 1000, ZB_DECIMAL_RANGE, 0},
      {"9007199254740992", 1, ZB_DECIMAL_OK, INT64_C(1) << 53},
      {"9e15", 1, ZB_DECIMAL_OK, 9000000000000000},
      {"1e16", 1, ZB_DECIMAL_RANGE, 0},
      {"-1e200", 1, ZB_DECIMAL_RANGE, 0},
      {"18.5225", 1, ZB_DECIMAL_FRACTION, 0},
      {"0.1", 1048576, ZB_DECIMAL_FRACTION, 0},
      {"1e-200", 1000000000, ZB_DECIMAL_FRACTION, 0},
      {"0.999999999999999", 1, ZB_DECIMAL_FRACTION, 0},
      {"99999999999999.9", 1, ZB_DECIMAL_FRACTION, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct zb_json *root = NULL;
    int64_t value = -1;
    assert_int_equal(zb_json_parse(cases[i].literal, strlen(cases[i].literal), ZB_JSON_INTEGERS, &root, NULL),
                     ZB_OK);
    enum zb_decimal decimal = zb_json_scaled(root, cases[i].scale, &value);
    zb_json_free(root);
    if (decimal != cases[i].expected || (decimal == ZB_DECIMAL_OK && value != cases[i].value))
      fail_msg("%s * %" PRId64 ": %d, %" PRId64, cases[i].literal, cases[i].scale, (int)decimal, value);
  }
}

static void test_wide_integers(void **state) {
  (void)state;
  static const struct {
    const char *literal;
    enum zb_status decimals, integers;
  } cases[] = {
      {"999999999999999", ZB_OK, ZB_OK},
      {"1000000000000000000000", ZB_OK, ZB_OK}, // one significant digit
      {"1000000000000001", ZB_BAD_INPUT, ZB_OK},
      {"-9007199254740992", ZB_BAD_INPUT, ZB_OK},
      {"9007199254740993", ZB_BAD_INPUT, ZB_BAD_INPUT},
      {"1000000000000001.0", ZB_BAD_INPUT, ZB_BAD_INPUT},
      {"0.1234567890123456", ZB_BAD_INPUT, ZB_BAD_INPUT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t size = strlen(cases[i].literal);
    assert_int_equal(zb_json_scan(cases[i].literal, size, ZB_JSON_DECIMALS, NULL), cases[i].decimals);
    assert_int_equal(zb_json_scan(cases[i].literal, size, ZB_JSON_INTEGERS, NULL), cases[i].integers);
  }
}

static struct zb_answer solve(const struct zb_profile *profile) {
  struct zb_problem problem = {.profile = profile, .objective = ZB_SPAN, .threads = 1};
  struct zb_result result = {0};
  struct zb_answer answer = {0};
  struct zb_schedule *schedule = NULL;
  struct zb_error error = {0};
  enum zb_status status = ZB_OK;
  if (!zb_result_if_infeasible(&problem, &result)) {
    status = zb_schedule_sequential(profile, &schedule, &error);
    if (status == ZB_OK) status = zb_result_from_schedule(&problem, schedule, &result, &error);
  }
  if (status == ZB_OK) status = zb_answer_from_result(&problem, "greedy", &result, &answer, &error);
  if (status != ZB_OK) fail_msg("%s", error.text);
  return answer;
}

static void assert_reads_back(const struct zb_answer *answer) {
  struct zb_text text = {0}, again = {0};
  struct zb_answer read = {0};
  struct zb_error error = {0};
  zb_answer_print(answer, &text);
  if (zb_answer_read_text(text.data, text.size, &read, &error) != ZB_OK ||
      zb_answer_verify(&read, &error) != ZB_OK)
    fail_msg("%s\n%s", error.text, text.data);
  assert_int_equal(read.status, answer->status);
  zb_answer_print(&read, &again);
  assert_string_equal(text.data, again.data);
  zb_answer_free(&read);
  zb_text_free(&text);
  zb_text_free(&again);
}

static void test_schedule_round_trip(void **state) {
  (void)state;
  uint64_t seed = 20240515;
  print_message("seed %" PRIu64 "\n", seed);
  int infeasible = 0;
  for (int i = 0; i < 300; i++) {
    struct zb_profile *profile = random_profile(&seed);
    struct zb_answer answer = solve(profile);
    infeasible += answer.status == ZB_INFEASIBLE;
    assert_reads_back(&answer);
    zb_answer_free(&answer);
    zb_profile_free(profile);
  }
  assert_in_range(infeasible, 1, 299);
}

static void test_schedule_extras(void **state) {
  (void)state;
  struct zb_profile *profile = read_profile(example);
  struct zb_answer answer = solve(profile);
  answer.proof = strdup("[[\"n\",3,\"F\",\"B\",12,9],0,[\"offset\",1,\"\",\"\",0,1152599000],0,0]");
  answer.relaxation = strdup("merged \"W\"");
  assert_reads_back(&answer);
  free(answer.proof);
  answer.proof = strdup("{\"file\":\"a.proof.json\",\"sha256\":\"00ff\"}");
  assert_reads_back(&answer);
  zb_answer_free(&answer);
  zb_profile_free(profile);
}

// 196,608 ops: a reader that looks entries up by index would need minutes.
static void test_long_lists(void **state) {
  (void)state;
  struct zb_profile *profile = read_profile("{\"zbsolve_profile\":1,\"devices\":64,\"microbatches\":1024,"
                                            "\"time\":{\"unit\":\"us\",\"f\":10,\"b\":10,"
                                            "\"w\":10,\"comm\":1}}");
  struct zb_answer answer = solve(profile);
  assert_reads_back(&answer);
  zb_answer_free(&answer);
  zb_profile_free(profile);
}

static void test_many_keys(void **state) {
  (void)state;
  struct zb_text text = {0};
  struct zb_json *root = NULL;
  struct zb_error error = {0};
  for (int i = 0; i < 100000; i++) zb_text_print(&text, "%s\"%d\": %d", i == 0 ? "{" : ", ", i, i);
  size_t size = text.size;
  zb_text_put(&text, "}");
  assert_int_equal(zb_json_parse(text.data, text.size, ZB_JSON_DECIMALS, &root, &error), ZB_OK);
  zb_json_free(root);
  text.size = size;
  zb_text_put(&text, ", \"777\": 0}");
  assert_int_equal(zb_json_parse(text.data, text.size, ZB_JSON_DECIMALS, &root, &error), ZB_BAD_INPUT);
  assert_string_equal(error.text, "777: this key is written twice, expected once");
  zb_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_decimals),           cmocka_unit_test(test_wide_integers),
      cmocka_unit_test(test_profile_example),    cmocka_unit_test(test_profile_forms),
      cmocka_unit_test(test_profile_round_trip), cmocka_unit_test(test_schedule_round_trip),
      cmocka_unit_test(test_schedule_extras),    cmocka_unit_test(test_long_lists),
      cmocka_unit_test(test_many_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
