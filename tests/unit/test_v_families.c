// test_v_families.c - the families on a V against what was published, what can be derived and what is
// optimal.
//
// Peaks and bubbles: arXiv 2405.15362, in chunk passes at equal times. Table 8: arXiv 2401.10241, chunk times
// from the authors' public code, costs in us those of the published zb-v schedules. Optima for f/b/w 3/4/2:
// an exact solver's. Every schedule goes through zb_check_schedule, and what an engine says of it is
// compared.
#include <stdio.h>
#include <stdlib.h>

#include "heuristic/families.h"
#include "solver/model/check.h"
#include "solver/model/number.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const struct zb_engine *const engines[] = {&zb_engine_1f1b_v, &zb_engine_zb_v, &zb_engine_v_half,
                                                  &zb_engine_v_min, &zb_engine_v_blocks};
enum { ONE_F_ONE_B_V, ZB_V_ENGINE, V_HALF, V_MIN, V_BLOCKS, ENGINES };

struct chunk {
  int64_t f_ns, b_ns, w_ns, comm_ns, f_bytes, b_bytes;
};
static const struct chunk unit_chunk = {1, 1, 1, 0, 1, 0};

static struct zb_profile *v_profile(int p, int m, struct chunk chunk, int64_t limit_bytes) {
  struct zb_profile *profile = NULL;
  struct zb_error error;
  assert_int_equal(zb_profile_create(p, 2, m, ZB_V, &profile, &error), ZB_OK);
  for (int s = 0; s < 2 * p; s++) {
    profile->f_ns[s] = chunk.f_ns;
    profile->b_ns[s] = chunk.b_ns;
    profile->w_ns[s] = chunk.w_ns;
    profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = s + 1 < 2 * p ? chunk.comm_ns : 0;
    profile->f_bytes[s] = chunk.f_bytes;
    profile->b_bytes[s] = chunk.b_bytes;
    profile->w_bytes[s] = -chunk.f_bytes - chunk.b_bytes;
  }
  profile->has_memory = true;
  for (int d = 0; d < p; d++) profile->limit_bytes[d] = limit_bytes;
  assert_int_equal(zb_profile_finish(profile, &error), ZB_OK);
  return profile;
}

struct outcome {
  enum zb_status status;
  int64_t cost_ns, span_ns, most_bytes;
};

// `hurried`: the deadline has passed before the engine starts, so that it takes what it finds first.
static struct outcome solve(const struct zb_engine *engine, const struct zb_profile *profile,
                            enum zb_objective objective, bool hurried) {
  struct zb_problem problem = {.profile = profile, .objective = objective, .threads = 1, .seed = 1};
  problem.deadline.end_ns = hurried ? 0 : INT64_MAX;
  struct zb_result result = {0};
  struct zb_error error;
  struct zb_timeline timeline = {0};
  assert_int_equal(engine->solve(&problem, NULL, &result, &error), ZB_OK);
  struct outcome outcome = {.status = result.status, .cost_ns = result.cost_ns};
  if (result.schedule) {
    enum zb_status status = zb_check_schedule(profile, result.schedule, &timeline, &error);
    expect(status == (result.status == ZB_FEASIBLE ? ZB_OK : result.status), "%s: %s", engine->name,
           error.text);
    expect_equal(result.cost_ns, zb_timeline_cost(&timeline, objective), engine->name);
    outcome.span_ns = timeline.span_ns;
    for (int d = 0; d < profile->devices; d++)
      outcome.most_bytes = zb_max(outcome.most_bytes, timeline.peak_bytes[d]);
  } else {
    expect(result.status == ZB_INFEASIBLE, "%s: no schedule", engine->name);
  }
  zb_timeline_free(&timeline);
  zb_result_free(&result);
  return outcome;
}

// At equal times, for m = p, 2p and 4p; the bubbles from 2p on.
static void test_peaks_and_bubbles(void **state) {
  (void)state;
  for (int p = 2; p <= 16; p++) {
    const int64_t peak[] = {2 * ((2 * p + 3) / 3), 2 * p, (p + 2) / 2 * 2, (p + 4) / 3 * 2};
    const int64_t bubble[] = {INT64_MAX, 0, p % 2 ? 3 * p - 4 : 3 * p - 7, p % 3 ? 4 * p - 5 : 4 * p - 7};
    for (int m = p; m <= 4 * p; m *= 2) {
      struct zb_profile *profile = v_profile(p, m, unit_chunk, ZB_NO_LIMIT);
      for (int e = 0; e < V_BLOCKS; e++) {
        const struct outcome outcome = solve(engines[e], profile, ZB_SPAN, false);
        expect(outcome.most_bytes <= peak[e], "%s p=%d m=%d keeps %lld", engines[e]->name, p, m,
               (long long)outcome.most_bytes);
        if (m == p || p < 3) continue;
        expect(outcome.cost_ns - 6 * m <= bubble[e], "%s p=%d m=%d: bubble %lld", engines[e]->name, p, m,
               (long long)outcome.cost_ns - 6 * m);
      }
      zb_profile_free(profile);
    }
  }
}

// Neither zb-v nor v-blocks is above the published zb-v. Ours is held to what it is: within 0.1% of a bound
// that window proves for these profiles, m 2(f+b+w) + (p-1)(f+b-2w+6c) - w, in the memory of 1F1B; and a
// microbatch more costs its work and nothing else.
static void test_table8(void **state) {
  (void)state;
  // clang-format off
  static const struct {
    int p, m;
    struct chunk chunk; // in us
    int64_t published_us, zb_v_us;
  } rows[] = {
      {16, 48, {14407, 14380, 9676, 1610, 303104, -172032}, 3969197, 3969197},
      {16, 64, {14412, 14393, 9688, 1621, 303104, -172032}, 5204741, 5204741},
      {16, 128, {14316, 14306, 9639, 1619, 303104, -172032}, 10071047, 10071047},
      {24, 72, {6763, 6969, 5251, 755, 378880, -215040}, 2919856, 2908291},
      {24, 96, {6783, 6984, 5259, 758, 378880, -215040}, 3838352, 3828446},
      {24, 192, {6785, 6990, 5260, 770, 378880, -215040}, 7496545, 7486750},
      {32, 96, {9458, 9748, 7288, 879, 454656, -258048}, 5407444, 5391356},
      {32, 128, {9469, 9744, 7306, 892, 454656, -258048}, 7109550, 7094404},
      {32, 256, {9447, 9644, 7193, 887, 454656, -258048}, 13782480, 13762934},
  };
  // clang-format on
  for (size_t k = 0; k < COUNT(rows); k++) {
    if (left_out((int)k, 4)) continue;
    struct zb_profile *profile =
        v_profile(rows[k].p, rows[k].m, rows[k].chunk, 2 * rows[k].p * rows[k].chunk.f_bytes);
    const struct outcome zb_v = solve(&zb_engine_zb_v, profile, ZB_SPAN, false);
    const struct outcome best = solve(&zb_engine_v_blocks, profile, ZB_SPAN, false);
    assert_true(zb_v.status == ZB_FEASIBLE && best.status == ZB_FEASIBLE);
    expect(zb_v.cost_ns <= rows[k].zb_v_us, "zb-v p=%d m=%d: %lld us", rows[k].p, rows[k].m,
           (long long)zb_v.cost_ns);
    const struct chunk c = rows[k].chunk;
    const int64_t work = 2 * (c.f_ns + c.b_ns + c.w_ns), hop = c.f_ns + c.b_ns - 2 * c.w_ns + 6 * c.comm_ns;
    const int64_t bound = rows[k].m * work + (rows[k].p - 1) * hop - c.w_ns;
    expect(zb_v.cost_ns - bound <= bound / 1000, "zb-v p=%d m=%d is not near the bound", rows[k].p,
           rows[k].m);
    struct zb_profile *longer = v_profile(rows[k].p, rows[k].m + rows[k].p, c, 2 * rows[k].p * c.f_bytes);
    expect_equal(solve(&zb_engine_zb_v, longer, ZB_SPAN, false).cost_ns, zb_v.cost_ns + rows[k].p * work,
                 "zb-v with p microbatches more");
    zb_profile_free(longer);
    expect(best.cost_ns <= rows[k].published_us, "v-blocks p=%d m=%d: %lld us", rows[k].p, rows[k].m,
           (long long)best.cost_ns);
    zb_profile_free(profile);
  }
}

// With m microbatches more the order takes so much longer: never more than the published period for each.
static void test_repeating_period(void **state) {
  (void)state;
  struct generate_random random = {5001};
  for (int k = 0; k < part_of(100); k++) {
    const int p = (int)generate_between(&random, 3, 12);
    const int64_t f = generate_between(&random, 1, 20), b = generate_between(&random, 1, 20),
                  w = generate_between(&random, 1, 20), work = 2 * (f + b + w);
    const int64_t period[] = {zb_max(work, zb_max(4 * b + w, 4 * f + w)), zb_max(work, 6 * zb_max(f, b))};
    for (int e = V_HALF; e <= V_MIN; e++) {
      int64_t span_ns[2];
      for (int long_run = 0; long_run < 2; long_run++) {
        struct zb_profile *profile =
            v_profile(p, long_run ? 12 * p : 6 * p, (struct chunk){f, b, w, 0, 1, 0}, ZB_NO_LIMIT);
        span_ns[long_run] = solve(engines[e], profile, ZB_SPAN, false).cost_ns;
        zb_profile_free(profile);
      }
      expect(span_ns[1] - span_ns[0] <= 6 * p * period[e - V_HALF], "%s p=%d %lld/%lld/%lld",
             engines[e]->name, p, (long long)f, (long long)b, (long long)w);
    }
  }
}

// No schedule of unit passes on a V is shorter than 6m+6p-3k-1 with k chunks a device (arXiv 2405.15362,
// appendix E): v-blocks comes within 2.
static void test_v_blocks_units(void **state) {
  (void)state;
  const int most = getenv("ZB_LONG") ? 16 : 6;
  for (int p = 2; p <= most; p++) {
    for (int k = (p + 4) / 3 * 2; k <= 2 * p; k++) {
      if (left_out(k + p, 2)) continue;
      const int64_t m = 2 * p, bound = zb_max(6 * m, 6 * m + 6 * p - 3 * k - 1);
      struct zb_profile *profile = v_profile(p, 2 * p, unit_chunk, k);
      const struct outcome outcome = solve(&zb_engine_v_blocks, profile, ZB_SPAN, false);
      expect(outcome.status == ZB_FEASIBLE && outcome.cost_ns >= bound && outcome.cost_ns <= bound + 2,
             "p=%d, %d chunks: %lld, bound %lld", p, k, (long long)outcome.cost_ns, (long long)bound);
      zb_profile_free(profile);
    }
  }
}

static void test_v_blocks_known(void **state) {
  (void)state;
  static const struct chunk chunk = {3, 4, 2, 0, 1, 0};
  static const struct {
    int p, m, limit;
    int64_t bound_ns, most_ns, published_ns;
  } rows[] = {{4, 8, 4, 200, 203, 216},   {4, 8, 5, 183, 188, 207},   {4, 8, 6, 169, 169, 172},
              {4, 8, 7, 160, 160, 165},   {4, 8, 8, 154, 154, 154},   {8, 16, 8, 382, 397, 417},
              {8, 16, 9, 370, 385, 417},  {8, 16, 10, 361, 364, 369}, {8, 16, 12, 343, 345, 352},
              {8, 16, 14, 325, 326, 329}, {8, 16, 16, 314, 314, 314}};
  for (size_t k = 0; k < COUNT(rows); k++) {
    if (left_out((int)k, 4)) continue;
    struct zb_profile *profile = v_profile(rows[k].p, rows[k].m, chunk, rows[k].limit);
    const int64_t cost_ns = solve(&zb_engine_v_blocks, profile, ZB_SPAN, false).cost_ns;
    expect(cost_ns >= rows[k].bound_ns && cost_ns <= rows[k].most_ns, "p=%d limit %d: %lld", rows[k].p,
           rows[k].limit, (long long)cost_ns);
    assert_true(cost_ns <= rows[k].published_ns);
    zb_profile_free(profile);
  }
}

// From one microbatch to 4p chunks: a schedule; below one microbatch: none.
static void test_every_limit(void **state) {
  (void)state;
  static const struct chunk chunk = {3, 4, 2, 1, 100, -60};
  const bool whole = getenv("ZB_LONG") != NULL;
  for (int p = 2; p <= 16; p++) {
    const int sizes[] = {1, p / 2, p, 2 * p, 160};
    for (size_t k = 0; k < COUNT(sizes); k++) {
      for (int limit = 1; limit <= 4 * p; limit += whole || p < 6 ? 1 : 3) {
        struct zb_profile *profile = v_profile(p, sizes[k], chunk, limit * chunk.f_bytes);
        const struct outcome outcome = solve(&zb_engine_v_blocks, profile, ZB_SPAN, true);
        expect(outcome.status == (limit < 2 ? ZB_INFEASIBLE : ZB_FEASIBLE), "p=%d m=%d limit %d", p, sizes[k],
               limit);
        for (int e = 0; e < V_BLOCKS && limit % 5 == 1; e++) solve(engines[e], profile, ZB_SPAN, false);
        zb_profile_free(profile);
      }
    }
  }
}

// Whatever a profile may hold: stages that differ, times of zero, its own bw, a B that adds memory, limits a
// device from the least that one microbatch needs.
static void test_random(void **state) {
  (void)state;
  struct generate_random random = {5002};
  for (int k = 0; k < part_of(4000); k++) {
    struct zb_profile *profile = instance_profile(&random, ZB_V, k % 10 ? 4 : 9, k % 10 ? 6 : 24);
    assert_non_null(profile);
    bool feasible = true;
    for (int d = 0; d < profile->devices; d++) {
      const int64_t least = zb_profile_least_peak(profile, d);
      if (k % 4 && profile->limit_bytes[d] < least)
        profile->limit_bytes[d] = least + generate_between(&random, 0, 12);
      if (profile->limit_bytes[d] < least) feasible = false;
    }
    for (int e = 0; e < ENGINES; e++) {
      const enum zb_objective objective = (enum zb_objective)(k % ZB_OBJECTIVE_COUNT);
      const struct outcome outcome = solve(engines[e], profile, objective, k % 80 != 0);
      const bool may_exceed = e == ONE_F_ONE_B_V || e == V_HALF || e == V_MIN;
      expect(outcome.status == (feasible ? ZB_FEASIBLE : ZB_INFEASIBLE) ||
                 (feasible && may_exceed && outcome.status == ZB_OVER_LIMIT),
             "instance %d, %s: %s", k, engines[e]->name, zb_status_word(outcome.status));
    }
    zb_profile_free(profile);
  }
}

// Times near the largest that a profile may hold, all on one device.
static void test_huge_times(void **state) {
  (void)state;
  struct zb_profile *profile = v_profile(40, 2, unit_chunk, ZB_NO_LIMIT);
  struct zb_error error;
  profile->f_ns[17] = profile->b_ns[17] = (int64_t)1 << 50;
  assert_int_equal(zb_profile_finish(profile, &error), ZB_OK);
  for (int e = 0; e < ENGINES; e++) solve(engines[e], profile, ZB_SPAN, false);
  zb_profile_free(profile);
}

// Random instances with time to search, and the same answer twice.
static void test_search(void **state) {
  (void)state;
  struct generate_random random = {5003};
  for (int k = 0; k < 12; k++) {
    struct zb_profile *profile = instance_profile(&random, ZB_V, 5, 8);
    const enum zb_objective objective = (enum zb_objective)(k % ZB_OBJECTIVE_COUNT);
    const struct outcome once = solve(&zb_engine_v_blocks, profile, objective, false);
    const struct outcome again = solve(&zb_engine_v_blocks, profile, objective, false);
    const struct outcome first = solve(&zb_engine_v_blocks, profile, objective, true);
    expect_equal(again.cost_ns, once.cost_ns, "the second answer");
    if (objective != ZB_PERIOD && profile->microbatches <= 2 * profile->devices)
      assert_true(once.cost_ns <= first.cost_ns);
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_peaks_and_bubbles),
      cmocka_unit_test(test_table8),
      cmocka_unit_test(test_repeating_period),
      cmocka_unit_test(test_v_blocks_units),
      cmocka_unit_test(test_v_blocks_known),
      cmocka_unit_test(test_every_limit),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_huge_times),
      cmocka_unit_test(test_search),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
