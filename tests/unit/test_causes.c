// test_causes.c - what binds a schedule is found within the time there is.
#include <time.h>

#include "solver/cli/cause.h"
#include "tests/unit/unit.h"

static double processor_s(const struct zb_profile *profile, double limit_s, int *known) {
  const struct zb_problem problem = {.profile = profile,
                                     .objective = ZB_SPAN,
                                     .threads = 1,
                                     .seed = 1,
                                     .deadline = zb_deadline_in(zb_clock_ns(), limit_s)};
  struct zb_attribution binds = {0};
  const clock_t began = clock();
  assert_int_equal(zb_attribute(profile, &problem, &binds, NULL), ZB_OK);
  const clock_t ended = clock();
  *known = 0;
  for (int k = 0; k < ZB_CAUSE_COUNT; k++) *known += binds.causes[k].known;
  return (double)(ended - began) / CLOCKS_PER_SEC;
}

// The heuristics on a V search for a quarter of a second, and do so once for each cause and once without.
static void test_deadline(void **state) {
  (void)state;
  struct zb_profile *profile = NULL;
  int known;
  assert_int_equal(zb_profile_create(16, 2, 64, ZB_V, &profile, NULL), ZB_OK);
  for (int s = 0; s < profile->stages; s++) {
    profile->f_ns[s] = 300 + s;
    profile->b_ns[s] = 400 - s;
    profile->w_ns[s] = 200;
    profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = 10;
    profile->f_bytes[s] = 100;
    profile->w_bytes[s] = -100;
  }
  profile->has_memory = true;
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = 2000;
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  const double whole_s = processor_s(profile, 0, &known);
  assert_int_equal(known, ZB_CAUSE_COUNT);
  const double cut_s = processor_s(profile, 0.005, &known);
  assert_int_equal(known, 0);
  expect(cut_s < whole_s / 10, "%.3f s of the processor after 5 ms, %.3f s without a limit", cut_s, whole_s);
  zb_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_deadline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
