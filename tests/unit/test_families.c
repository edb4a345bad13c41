// test_families.c - the schedule families against what was published and what can be derived.
//
// Table 5 and Table 8 are those of arXiv 2401.10241: inputs and bubble rates as printed (times x1000,
// so whole us; memory in bytes a token), the costs in us are the ones that reproduce those rates. The
// interleaved rate is the one with every dependency enforced. Closed forms: (cost - m(f+b+w)) of uniform
// profiles, derived by hand and valid within the conditions at each.
//
// Every schedule goes through zb_check_schedule, and what an engine says of it is compared with that.
#include <stdio.h>
#include <stdlib.h>

#include "heuristic/families.h"
#include "solver/model/check.h"
#include "solver/model/number.h"
#include "tests/unit/unit.h"

struct table5_row {
  int p, m;
  int64_t f_us, b_us, w_us, comm_us, mb_bytes, mw_bytes;
  int64_t cost_us[5]; // 1f1b, zb-h1, zb-h2, zb-1p, zb-2p
  double rate[5];
  int interleaved_chunks;
  double interleaved_rate;
};

// clang-format off
static const struct table5_row table5[] = {
    {8, 24, 18522, 18086, 9337, 601, 201216, 73728,
     {1456749, 1310405, 1236632, 1310405, 1152599},
     {0.2431, 0.1585, 0.1083, 0.1585, 0.0433}, 3, 0.1090},
    {8, 32, 18513, 18086, 9331, 626, 201216, 73728,
     {1833838, 1678164, 1604083, 1678164, 1475535},
     {0.1985, 0.1242, 0.0837, 0.1242, 0.0039}, 3, 0.0847},
    {8, 64, 18546, 18097, 9321, 762, 201216, 73728,
     {3357932, 3154286, 3078371, 3154286, 2949221},
     {0.1240, 0.0674, 0.0444, 0.0674, 0.0026}, 3, 0.0461},
    {8, 24, 29718, 29444, 19927, 527, 303104, 131072,
     {2480217, 2187537, 2040670, 2187537, 1903596},
     {0.2347, 0.1323, 0.0698, 0.1323, 0.0029}, 4, 0.0827},
    {8, 32, 29802, 29428, 19530, 577, 303104, 131072,
     {3110876, 2814376, 2669588, 2814376, 2525780},
     {0.1898, 0.1045, 0.0559, 0.1045, 0.0022}, 4, 0.0644},
    {8, 64, 29935, 29621, 19388, 535, 303104, 131072,
     {5671364, 5348572, 5205366, 5348572, 5057708},
     {0.1091, 0.0554, 0.0294, 0.0554, 0.0010}, 4, 0.0328},
    {16, 48, 11347, 11248, 8132, 377, 378880, 163840,
     {1980287, 1714461, 1581171, 1714461, 1484721},
     {0.2552, 0.1397, 0.0672, 0.1397, 0.0066}, 3, 0.1136},
    {16, 64, 11307, 11254, 8101, 379, 378880, 163840,
     {2478390, 2202008, 2069123, 2202008, 1972943},
     {0.2082, 0.1088, 0.0516, 0.1088, 0.0054}, 3, 0.0878},
    {16, 128, 11325, 11308, 8109, 378, 378880, 163840,
     {4497410, 4175516, 4042541, 4175516, 3946061},
     {0.1251, 0.0576, 0.0266, 0.0576, 0.0028}, 3, 0.0459},
    {32, 96, 10419, 10207, 7715, 408, 454656, 196608,
     {3699675, 3171569, 2907108, 3171569, 2731004},
     {0.2646, 0.1421, 0.0641, 0.1421, 0.0038}, 2, 0.1528},
    {32, 128, 10408, 10204, 7703, 408, 454656, 196608,
     {4627749, 4075091, 3811002, 4075091, 3634724},
     {0.2168, 0.1106, 0.0490, 0.1106, 0.0029}, 2, 0.1192},
    {32, 256, 10402, 10248, 7698, 460, 454656, 196608,
     {8391636, 7715640, 7448482, 7715640, 7270432},
     {0.1352, 0.0594, 0.0257, 0.0594, 0.0018}, 2, 0.0641},
};
// clang-format on

struct table8_row {
  int p, m;
  int64_t f_us, b_us, w_us, comm_us; // of both chunks of a device together, comm of one hop
  double rate[3];                    // 1f1b, zb-h1, zb-h2
};

// clang-format off
static const struct table8_row table8[] = {
    {16, 48, 28814, 28760, 19352, 1610, {0.2668, 0.1536, 0.0823}},
    {16, 64, 28824, 28786, 19376, 1621, {0.2206, 0.1198, 0.0630}},
    {16, 128, 28632, 28612, 19278, 1619, {0.1390, 0.0637, 0.0325}},
    {24, 72, 13526, 13938, 10502, 755, {0.2699, 0.1439, 0.0628}},
    {24, 96, 13566, 13968, 10518, 758, {0.2229, 0.1121, 0.0480}},
    {24, 192, 13570, 13980, 10520, 770, {0.1403, 0.0595, 0.0247}},
    {32, 96, 18916, 19496, 14576, 879, {0.2676, 0.1429, 0.0629}},
    {32, 128, 18938, 19488, 14612, 892, {0.2204, 0.1111, 0.0478}},
    {32, 256, 18894, 19288, 14386, 887, {0.1362, 0.0593, 0.0251}},
};
// clang-format on

static const struct zb_engine *const chain_engines[] = {&zb_engine_gpipe, &zb_engine_1f1b,  &zb_engine_zb_h1,
                                                        &zb_engine_zb_h2, &zb_engine_zb_1p, &zb_engine_zb_2p,
                                                        &zb_engine_greedy};
enum { GPIPE, ONE_F_ONE_B, ZB_H1, ZB_H2, ZB_1P, ZB_2P, GREEDY, CHAIN_ENGINES, FIRST_GREEDY = ZB_1P };

#define COUNT(table) (sizeof(table) / sizeof *(table))

// xorshift64*: the same numbers everywhere.
static uint64_t random_state;
static int64_t random_between(int64_t low, int64_t high) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return low + (int64_t)((random_state * 2685821657736338717u >> 1) % (uint64_t)(high - low + 1));
}

static struct zb_profile *uniform_profile(int p, int m, int64_t f_ns, int64_t b_ns, int64_t w_ns,
                                          int64_t comm_ns, int64_t mb_bytes, int64_t mw_bytes) {
  struct zb_profile *profile = NULL;
  struct zb_error error;
  assert_int_equal(zb_profile_create(p, 1, m, ZB_CHAIN, &profile, &error), ZB_OK);
  for (int s = 0; s < p; s++) {
    profile->f_ns[s] = f_ns;
    profile->b_ns[s] = b_ns;
    profile->w_ns[s] = w_ns;
    profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = s + 1 < p ? comm_ns : 0;
    profile->f_bytes[s] = mb_bytes;
    profile->b_bytes[s] = mw_bytes - mb_bytes;
    profile->w_bytes[s] = -mw_bytes;
  }
  profile->has_memory = mb_bytes > 0;
  assert_int_equal(zb_profile_finish(profile, &error), ZB_OK);
  return profile;
}

static void set_limit(struct zb_profile *profile, int64_t bytes) {
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = bytes;
}

// Solves, checks the result against its schedule, and returns its cost; `timeline` (may be NULL) is filled.
static int64_t solve(const struct zb_engine *engine, const struct zb_profile *profile,
                     enum zb_objective objective, enum zb_status expected, struct zb_timeline *timeline) {
  struct zb_problem problem = {.profile = profile, .objective = objective, .threads = 1, .seed = 1};
  problem.deadline.end_ns = INT64_MAX;
  struct zb_result result = {0};
  struct zb_error error;
  struct zb_timeline own = {0};
  assert_int_equal(engine->solve(&problem, NULL, &result, &error), ZB_OK);
  if (result.status != expected) print_error("%s: %s\n", engine->name, zb_status_word(result.status));
  assert_int_equal(result.status, expected);
  int64_t cost_ns = INT64_MAX;
  if (expected == ZB_INFEASIBLE) {
    assert_null(result.schedule);
  } else {
    enum zb_status status = zb_check_schedule(profile, result.schedule, &own, &error);
    if (status != (expected == ZB_OVER_LIMIT ? ZB_OVER_LIMIT : ZB_OK))
      fail_msg("%s: %s", engine->name, error.text);
    cost_ns = zb_timeline_cost(&own, objective);
    assert_int_equal(result.cost_ns, cost_ns);
    assert_true(result.bound_ns <= cost_ns);
  }
  zb_result_free(&result);
  if (timeline) {
    *timeline = own;
  } else {
    zb_timeline_free(&own);
  }
  return cost_ns;
}

static void assert_rate(int64_t cost_ns, int64_t work_ns, double published) {
  const double difference = zb_ratio(cost_ns, work_ns) - published;
  if (!(difference <= 0.00005 && difference >= -0.00005))
    fail_msg("bubble rate is %.6f, not %.4f", published + difference, published);
}

static struct zb_profile *table5_profile(const struct table5_row *row) {
  return uniform_profile(row->p, row->m, row->f_us * 1000, row->b_us * 1000, row->w_us * 1000,
                         row->comm_us * 1000, row->mb_bytes, row->mw_bytes);
}

static void test_table5(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(table5); k++) {
    const struct table5_row *row = &table5[k];
    struct zb_profile *profile = table5_profile(row);
    const int64_t work_ns = row->m * (row->f_us + row->b_us + row->w_us) * 1000;
    for (int e = 0; e < 5; e++) {
      const int64_t cost_ns = solve(chain_engines[ONE_F_ONE_B + e], profile, ZB_SPAN, ZB_FEASIBLE, NULL);
      assert_int_equal(cost_ns, row->cost_us[e] * 1000);
      assert_rate(cost_ns, work_ns, row->rate[e]);
    }
    for (int multiple = 1; multiple <= 2; multiple++) {
      set_limit(profile, multiple * row->p * row->mb_bytes);
      assert_int_equal(solve(&zb_engine_greedy, profile, ZB_SPAN, ZB_FEASIBLE, NULL),
                       row->cost_us[2 + multiple] * 1000);
    }
    zb_profile_free(profile);
  }
}

static void test_table5_interleaved(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(table5); k++) {
    const struct table5_row *row = &table5[k];
    struct zb_profile *profile = table5_profile(row), *loop = NULL;
    struct zb_error error;
    assert_int_equal(zb_profile_derive(profile, ZB_LOOP, row->interleaved_chunks, &loop, &error), ZB_OK);
    struct zb_timeline timeline;
    const int64_t cost_ns = solve(&zb_engine_1f1b_interleaved, loop, ZB_SPAN, ZB_FEASIBLE, &timeline);
    assert_int_equal(timeline.work_ns, row->m * (row->f_us + row->b_us + row->w_us) * 1000);
    assert_rate(cost_ns, timeline.work_ns, row->interleaved_rate);
    zb_timeline_free(&timeline);
    zb_profile_free(loop);
    zb_profile_free(profile);
  }
}

static void test_table8(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(table8); k++) {
    const struct table8_row *row = &table8[k];
    struct zb_profile *profile = uniform_profile(row->p, row->m, row->f_us * 1000, row->b_us * 1000,
                                                 row->w_us * 1000, row->comm_us * 1000, 0, 0);
    for (int e = 0; e < 3; e++) {
      const int64_t cost_ns = solve(chain_engines[ONE_F_ONE_B + e], profile, ZB_SPAN, ZB_FEASIBLE, NULL);
      assert_rate(cost_ns, row->m * (row->f_us + row->b_us + row->w_us) * 1000, row->rate[e]);
    }
    zb_profile_free(profile);
  }
}

// A uniform profile within the conditions that all closed forms share: p >= 2, m a multiple of p, m >= 2p.
struct uniform {
  int64_t p, m, f, b, w, c;
};

static struct uniform random_uniform(void) {
  struct uniform u = {.p = random_between(2, 9), .f = random_between(0, 1000), .b = random_between(0, 1000)};
  u.m = u.p * random_between(2, 6);
  u.w = random_between(0, 1000);
  u.c = random_between(0, 300);
  return u;
}

static int64_t uniform_excess(const struct zb_engine *engine, const struct uniform *u, int v) {
  struct zb_profile *chain = uniform_profile((int)u->p, (int)u->m, u->f * v, u->b * v, u->w * v, u->c, 0, 0),
                    *profile = NULL;
  struct zb_error error;
  if (engine->need == ZB_NEED_LOOP) {
    assert_int_equal(zb_profile_derive(chain, ZB_LOOP, v, &profile, &error), ZB_OK);
  } else {
    assert_int_equal(zb_profile_copy(chain, &profile, &error), ZB_OK);
  }
  const int64_t excess_ns =
      solve(engine, profile, ZB_SPAN, ZB_FEASIBLE, NULL) - u->m * v * (u->f + u->b + u->w);
  zb_profile_free(profile);
  zb_profile_free(chain);
  return excess_ns;
}

static void test_closed_form_1f1b(void **state) {
  (void)state;
  random_state = 3001;
  for (int k = 0; k < 200; k++) {
    const struct uniform u = random_uniform();
    assert_int_equal(uniform_excess(&zb_engine_1f1b, &u, 1),
                     (u.p - 1) * (u.f + u.b + u.w) + (2 * (u.p - 1) * u.m / u.p + 2 * (u.p - 2)) * u.c);
  }
}

// w <= min(f, b) and 2c <= w.
static void test_closed_form_zb(void **state) {
  (void)state;
  random_state = 3002;
  for (int k = 0; k < 200; k++) {
    struct uniform u = random_uniform();
    u.w = random_between(0, zb_min(u.f, u.b));
    u.c = random_between(0, u.w / 2);
    assert_int_equal(uniform_excess(&zb_engine_zb_h1, &u, 1), (u.p - 1) * (u.f + u.b - u.w + 4 * u.c));
    assert_int_equal(uniform_excess(&zb_engine_zb_h2, &u, 1), (u.p - 1) * (u.f + u.b - 2 * u.w + 2 * u.c));
  }
}

// vc <= min(f, b + w), f, b and w being those of a whole device.
static void test_closed_form_interleaved(void **state) {
  (void)state;
  random_state = 3003;
  for (int k = 0; k < 200; k++) {
    struct uniform u = random_uniform();
    const int v = (int)random_between(1, 5);
    u.c = random_between(0, zb_min(u.f, u.b + u.w));
    assert_int_equal(uniform_excess(&zb_engine_1f1b_interleaved, &u, v),
                     (u.p - 1) * (u.f + u.b + u.w) + (2 * v * u.p - 2) * u.c);
  }
}

// In units of M_B for what waits for its B, and of M_W for what waits for its W: gpipe m, 1f1b p-i,
// zb-h1 p-i and i, zb-h2 2(p-i)-1 and 2i (arXiv 2401.10241, section 2).
static void test_peaks(void **state) {
  (void)state;
  random_state = 3004;
  for (int k = 0; k < 60; k++) {
    const int p = (int)random_between(1, 9), m = p * (int)random_between(2, 4);
    const int64_t mb = random_between(1, 1000), mw = random_between(0, mb);
    struct zb_profile *profile = uniform_profile(p, m, 10, 11, 5, 1, mb, mw);
    for (int e = 0; e < CHAIN_ENGINES; e++) {
      struct zb_timeline timeline;
      solve(chain_engines[e], profile, ZB_SPAN, ZB_FEASIBLE, &timeline);
      for (int i = 0; i < p; i++) {
        const int64_t h2 = (2 * (p - i) - 1) * mb + 2 * i * mw;
        const int64_t exact[] = {m * mb, (p - i) * mb, (p - i) * mb + i * mw, h2};
        if (e < FIRST_GREEDY) assert_int_equal(timeline.peak_bytes[i], exact[e]);
        if (e == ZB_H2) assert_true(timeline.peak_bytes[i] <= (2 * p - 1) * mb);
        if (e == ZB_1P) assert_true(timeline.peak_bytes[i] <= p * mb);
        if (e == ZB_2P) assert_true(timeline.peak_bytes[i] <= 2 * p * mb);
      }
      zb_timeline_free(&timeline);
    }
    zb_profile_free(profile);
  }
}

// A family that needs more than the limit says so and still shows its schedule.
static void test_over_limit(void **state) {
  (void)state;
  struct zb_profile *profile = uniform_profile(4, 8, 10, 10, 10, 1, 100, 40);
  set_limit(profile, 399);
  for (int e = 0; e < CHAIN_ENGINES; e++) {
    solve(chain_engines[e], profile, ZB_SPAN, e < FIRST_GREEDY ? ZB_OVER_LIMIT : ZB_FEASIBLE, NULL);
  }
  set_limit(profile, 99);
  for (int e = 0; e < CHAIN_ENGINES; e++) solve(chain_engines[e], profile, ZB_SPAN, ZB_INFEASIBLE, NULL);
  zb_profile_free(profile);
}

// Every number of devices, chunks and microbatches; zero times; comm none or as large as f.
static void test_odd_sizes(void **state) {
  (void)state;
  static const int64_t times[][4] = {{10, 11, 5, 1}, {0, 11, 5, 1},  {10, 0, 5, 1},  {10, 11, 0, 1},
                                     {0, 0, 0, 0},   {10, 11, 5, 0}, {10, 11, 5, 10}};
  for (int p = 1; p <= 5; p++) {
    for (int m = 1; m <= 11; m++) {
      for (size_t k = 0; k < COUNT(times); k++) {
        struct zb_profile *profile =
            uniform_profile(p, m, times[k][0], times[k][1], times[k][2], times[k][3], 10, 4);
        for (int e = 0; e < CHAIN_ENGINES; e++)
          solve(chain_engines[e], profile, (enum zb_objective)(m % 3), ZB_FEASIBLE, NULL);
        for (int v = 1; v <= 4; v++) {
          struct zb_profile *loop = NULL;
          struct zb_error error;
          assert_int_equal(zb_profile_derive(profile, ZB_LOOP, v, &loop, &error), ZB_OK);
          solve(&zb_engine_1f1b_interleaved, loop, ZB_SPAN, ZB_FEASIBLE, NULL);
          zb_profile_free(loop);
        }
        zb_profile_free(profile);
      }
    }
  }
  struct zb_profile *wide = uniform_profile(32, 16, 10, 11, 5, 1, 10, 4);
  for (int e = 0; e < CHAIN_ENGINES; e++) solve(chain_engines[e], wide, ZB_SPAN, ZB_FEASIBLE, NULL);
  zb_profile_free(wide);
}

// Anything a profile may hold on a chain, with limits from the least that one order can meet upwards.
static struct zb_profile *random_tight(int largest_p, int largest_m) {
  const int p = (int)random_between(1, largest_p), m = (int)random_between(1, largest_m);
  struct zb_profile *profile = NULL;
  struct zb_error error;
  assert_int_equal(zb_profile_create(p, 1, m, ZB_CHAIN, &profile, &error), ZB_OK);
  profile->has_memory = true;
  profile->has_bw = random_between(0, 2) == 0;
  for (int s = 0; s < p; s++) {
    profile->f_ns[s] = random_between(0, 20);
    profile->b_ns[s] = random_between(0, 20);
    profile->w_ns[s] = random_between(0, 20);
    if (profile->has_bw) profile->bw_ns[s] = random_between(0, profile->b_ns[s] + profile->w_ns[s] + 3);
    profile->comm_forward_ns[s] = s + 1 < p ? random_between(0, 5) : 0;
    profile->comm_backward_ns[s] = s + 1 < p ? random_between(0, 20) : 0;
    profile->f_bytes[s] = random_between(0, 10);
    profile->w_bytes[s] = -random_between(0, 12);
    profile->b_bytes[s] = -profile->f_bytes[s] - profile->w_bytes[s];
    profile->static_bytes[s] = random_between(0, 5);
  }
  assert_int_equal(zb_profile_finish(profile, &error), ZB_OK);
  for (int s = 0; s < p; s++) {
    const int64_t least = zb_profile_least_peak(profile, s);
    profile->limit_bytes[s] =
        random_between(0, 4) == 0 ? ZB_NO_LIMIT : least + random_between(0, 3) * random_between(0, 12);
  }
  return profile;
}

// Greedy finds a schedule wherever there is one, within every limit, and none where there is none.
static void test_greedy_tight(void **state) {
  (void)state;
  random_state = 3005;
  for (int k = 0; k < part_of(3000); k++) {
    struct zb_profile *profile = random_tight(k % 10 ? 5 : 17, k % 10 ? 9 : 40);
    for (int e = FIRST_GREEDY; e < CHAIN_ENGINES; e++) {
      solve(chain_engines[e], profile, (enum zb_objective)(k % 3), ZB_FEASIBLE, NULL);
    }
    const int device = (int)random_between(0, profile->devices - 1);
    const int64_t least = zb_profile_least_peak(profile, device);
    if (least > 0) {
      profile->limit_bytes[device] = least - 1;
      solve(&zb_engine_greedy, profile, (enum zb_objective)(k % 3), ZB_INFEASIBLE, NULL);
    }
    zb_profile_free(profile);
  }
}

// Under its own objective greedy is never worse than the schedule it finds for another.
static void test_greedy_objectives(void **state) {
  (void)state;
  random_state = 3006;
  for (int k = 0; k < part_of(300); k++) {
    struct zb_profile *profile = random_tight(6, 12);
    for (int a = 0; a < ZB_OBJECTIVE_COUNT; a++) {
      struct zb_timeline timeline;
      solve(&zb_engine_greedy, profile, (enum zb_objective)a, ZB_FEASIBLE, &timeline);
      for (int b = 0; b < ZB_OBJECTIVE_COUNT; b++) {
        const int64_t cost_ns = solve(&zb_engine_greedy, profile, (enum zb_objective)b, ZB_FEASIBLE, NULL);
        assert_true(cost_ns <= zb_timeline_cost(&timeline, (enum zb_objective)b));
      }
      zb_timeline_free(&timeline);
    }
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table5),
      cmocka_unit_test(test_table5_interleaved),
      cmocka_unit_test(test_table8),
      cmocka_unit_test(test_closed_form_1f1b),
      cmocka_unit_test(test_closed_form_zb),
      cmocka_unit_test(test_closed_form_interleaved),
      cmocka_unit_test(test_peaks),
      cmocka_unit_test(test_over_limit),
      cmocka_unit_test(test_odd_sizes),
      cmocka_unit_test(test_greedy_tight),
      cmocka_unit_test(test_greedy_objectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
