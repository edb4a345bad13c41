// The optimizer: AdamW against its formula in double, its inverse, the norm's verdict, and exact rollback.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/adamw.h"
#include "runtime/random.h"
#include "runtime/stage.h"
#include "tests/unit/unit.h"

static const struct zb_adamw usual = {0.003, 0.9, 0.95, 1e-8, 0.1, 1.0};

// The update of arXiv 1711.05101 as it is written there, in double.
static void test_formula(void **state) {
  (void)state;
  double value = 0.7, mean = 0, square = 0;
  zb_real got = (zb_real)0.7, got_mean = 0, got_square = 0;
  for (int t = 1; t <= 50; t++) {
    double g = 0.5 * zb_random_even(9, (uint64_t)t);
    struct zb_adamw_step step = zb_adamw_step(&usual, t, 0.5);
    zb_adamw_forward(&step, (zb_real)g, &got, &got_mean, &got_square);
    mean = 0.9 * mean + 0.1 * (g / 2);
    square = 0.95 * square + 0.05 * (g / 2) * (g / 2);
    value -=
        0.003 * 0.1 * value + 0.003 * (mean / (1 - pow(0.9, t))) / (sqrt(square / (1 - pow(0.95, t))) + 1e-8);
    expect(fabs((double)got - value) <= 1e-6 * t, "step %d: %.9g, expected %.9g", t, (double)got, value);
    expect(fabs((double)got_mean - mean) <= 1e-6, "step %d: mean %.9g, expected %.9g", t, (double)got_mean,
           mean);
    expect(fabs((double)got_square - square) <= 1e-6, "step %d: square", t);
  }
}

// Algorithm 1 gives back what was there, within a few roundings of the largest number involved.
static void test_inverse(void **state) {
  (void)state;
  const uint64_t seed = 21;
  for (uint64_t k = 0; k < 20000; k++) {
    double size = pow(10, 3 * zb_random_even(seed, 4 * k));
    zb_real value = (zb_real)zb_random_even(seed, 4 * k + 1),
            mean = (zb_real)(size * zb_random_even(seed, 4 * k + 2));
    zb_real square = mean * mean * (zb_real)1.5, gradient = (zb_real)(size * zb_random_even(seed, 4 * k + 3));
    struct zb_adamw_step step = zb_adamw_step(&usual, (int64_t)(k % 100) + 1, 0.25);
    zb_real new_value = value, new_mean = mean, new_square = square;
    zb_adamw_forward(&step, gradient, &new_value, &new_mean, &new_square);
    zb_adamw_inverse(&step, gradient, &new_value, &new_mean, &new_square);
    double g = 0.25 * fabs((double)gradient);
    expect(fabs((double)(new_value - value)) <= 4e-7 * (fabs((double)value) + 0.1),
           "%llu: value %.9g, was %.9g", (unsigned long long)k, (double)new_value, (double)value);
    expect(fabs((double)(new_mean - mean)) <= 4e-7 * (fabs((double)mean) + g), "%llu: mean %.9g, was %.9g",
           (unsigned long long)k, (double)new_mean, (double)mean);
    expect(new_square >= 0 && fabs((double)(new_square - square)) <= 4e-7 * ((double)square + g * g),
           "%llu: square %.9g, was %.9g", (unsigned long long)k, (double)new_square, (double)square);
  }
}

static void test_verdict(void **state) {
  (void)state;
  const double unknown = ZB_PARTIAL_UNKNOWN, huge = INFINITY, none = (double)NAN;
  const struct {
    double partial[3], clip;
    enum zb_verdict verdict;
    double norm;
  } cases[] = {
      {{1, 4, 4}, 3, ZB_STEP_WHOLE, 3},
      {{1, 4, 4}, 2.9, ZB_STEP_CLIPPED, 3},
      {{1, 4, 4}, 0, ZB_STEP_WHOLE, 3},
      {{unknown, 4, unknown}, 2, ZB_STEP_WHOLE, 2},
      {{unknown, 9, unknown}, 2, ZB_STEP_CLIPPED, 3},
      {{1, none, 1}, 2, ZB_STEP_SKIPPED, 0},
      {{1, 1, huge}, 0, ZB_STEP_SKIPPED, 0},
      {{unknown, unknown, none}, 0, ZB_STEP_SKIPPED, 0},
      {{0, 0, 0}, 1, ZB_STEP_WHOLE, 0},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct zb_judgement judgement = zb_adamw_judge(cases[k].partial, 3, cases[k].clip);
    expect(judgement.verdict == cases[k].verdict, "case %zu: %s, expected %s", k,
           zb_verdict_word[judgement.verdict], zb_verdict_word[cases[k].verdict]);
    if (judgement.verdict != ZB_STEP_SKIPPED) assert_true(judgement.norm == cases[k].norm);
    if (judgement.verdict == ZB_STEP_CLIPPED) assert_true(judgement.scale == cases[k].clip / cases[k].norm);
  }
}

// What is above the limit with some of the terms is above it with all of them.
static void test_partial_verdict_is_safe(void **state) {
  (void)state;
  for (uint64_t k = 0; k < 100000; k++) {
    double all[6], some[6];
    for (uint64_t u = 0; u < 6; u++) {
      all[u] = pow(10, 12 * zb_random_even(k, u));
      some[u] = zb_random_mix(k, 50 + u) & 1 ? all[u] : ZB_PARTIAL_UNKNOWN;
    }
    // A limit as near to the partial sum as can be.
    double clip = zb_adamw_judge(some, 6, 0).norm * (1 - 1e-16 * (double)(k & 3));
    if (zb_adamw_judge(some, 6, clip).verdict == ZB_STEP_CLIPPED)
      expect(zb_adamw_judge(all, 6, clip).verdict == ZB_STEP_CLIPPED, "seed %llu", (unsigned long long)k);
  }
}

static struct zb_stage *stage_with_gradient(const struct zb_gpt *gpt, unsigned room, uint64_t seed) {
  struct zb_stage *stage = NULL;
  assert_int_equal(zb_stage_create(gpt, NULL, 1, 3, 1, seed, room, &stage, NULL), ZB_OK);
  for (int t = 0; t < 3; t++) {
    for (size_t k = 0; k < stage->count; k++)
      stage->gradient[k] = (zb_real)(0.1 * zb_random_even(seed + 1 + (uint64_t)t, k));
    if (t < 2) zb_stage_step(stage, 1);
  }
  return stage;
}

// A step made, undone and made again with another scale ends where the right step alone ends: to the bit from
// a copy, within the tolerance that zb_adamw_inverse states in place.
static void test_rollback(void **state) {
  (void)state;
  struct zb_gpt gpt;
  zb_gpt_smallest(3, &gpt);
  struct zb_stage *right = stage_with_gradient(&gpt, 0, 3),
                  *copied = stage_with_gradient(&gpt, ZB_STAGE_COPY, 3);
  struct zb_stage *inverted = stage_with_gradient(&gpt, 0, 3);
  zb_stage_step(right, 0.125);

  zb_stage_save(copied);
  zb_stage_step(copied, 1);
  assert_memory_not_equal(copied->parameters, right->parameters, right->count * sizeof(zb_real));
  zb_stage_restore(copied);
  zb_stage_step(copied, 0.125);
  size_t bytes = right->count * sizeof(zb_real);
  assert_memory_equal(copied->parameters, right->parameters, bytes);
  assert_memory_equal(copied->mean, right->mean, bytes);
  assert_memory_equal(copied->square, right->square, bytes);
  expect_equal(copied->steps_made, right->steps_made, "steps made");

  zb_stage_step(inverted, 1);
  zb_stage_unstep(inverted, 1);
  zb_stage_step(inverted, 0.125);
  for (size_t k = 0; k < right->count; k++)
    expect(fabs((double)(inverted->parameters[k] - right->parameters[k])) <=
               1e-5 * (fabs((double)right->parameters[k]) + 0.01),
           "parameter %zu is %.9g, expected %.9g", k, (double)inverted->parameters[k],
           (double)right->parameters[k]);
  expect_equal(inverted->steps_made, right->steps_made, "steps made");
  zb_stage_free(right, NULL);
  zb_stage_free(copied, NULL);
  zb_stage_free(inverted, NULL);
}

// One partial a unit, each the sum of the unit's own squares, whatever stage holds it.
static void test_partials(void **state) {
  (void)state;
  struct zb_gpt gpt;
  zb_gpt_smallest(3, &gpt);
  struct zb_stage *stage = stage_with_gradient(&gpt, 0, 3);
  double partial[5] = {-1, -1, -1, -1, -1};
  zb_stage_norm(stage, partial);
  assert_true(partial[0] == -1 && partial[3] == -1 && partial[4] == -1);
  for (int u = 1; u < 3; u++) {
    double sum = 0;
    for (size_t k = stage->offset[u - 1]; k < stage->offset[u]; k++)
      sum += (double)stage->gradient[k] * (double)stage->gradient[k];
    expect(fabs(partial[u] - sum) <= 1e-12 * sum, "unit %d: %.15g, expected %.15g", u, partial[u], sum);
  }
  stage->gradient[stage->offset[1]] = (zb_real)NAN;
  zb_stage_norm(stage, partial);
  assert_true(isfinite(partial[1]) && isnan(partial[2]));
  zb_stage_free(stage, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_formula),  cmocka_unit_test(test_inverse),
      cmocka_unit_test(test_verdict),  cmocka_unit_test(test_partial_verdict_is_safe),
      cmocka_unit_test(test_rollback), cmocka_unit_test(test_partials),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
