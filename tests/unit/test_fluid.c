// zbcheck's search of `fluid-fronts` against every order of F and B with W poured, or every state of any
// placement, and against every order of F, B and W: it refutes a target if and only if it is below the first
// optimum, so never one that the second reaches.
#include <stdlib.h>
#include <string.h>

#include "tests/brute.h"
#include "tests/pouring_placed.h"
#include "tests/unit/checker_search.h"
#include "tests/unit/unit.h"

static void try_poured(const struct pouring_chain *c, enum zb_objective objective, int64_t optimum) {
  for (int64_t more = -3; more <= 2; more++) {
    const enum zc_outcome wanted = more < 0 ? ZC_REFUTED : ZC_OPEN;
    expect(checker_search(c, objective, optimum + more, false) == wanted,
           "poured optimum %lld, not so at %+lld: %s", (long long)optimum, (long long)more,
           pouring_text(c, objective));
    if (more >= 0) continue;
    expect(checker_search(c, objective, optimum + more, true) == wanted,
           "poured optimum %lld, not so with windows at %+lld: %s", (long long)optimum, (long long)more,
           pouring_text(c, objective));
  }
}

static void try_real(const struct pouring_chain *c, enum zb_objective objective, int64_t optimum) {
  for (int64_t more = 0; more <= 3; more++)
    expect(checker_search(c, objective, optimum + more, true) == ZC_OPEN,
           "optimum %lld, refuted at %+lld: %s", (long long)optimum, (long long)more,
           pouring_text(c, objective));
}

static struct generate_random begin_random(uint64_t seed) {
  const char *given = getenv("FLUID_SEED");
  if (given) seed = strtoull(given, NULL, 10);
  print_message("# FLUID_SEED=%llu\n", (unsigned long long)seed);
  return (struct generate_random){seed};
}

static void test_every_order(void **state) {
  static const int sizes[][2] = {{1, 7}, {2, 5}, {2, 7}, {3, 4}, {3, 5}, {4, 3}, {4, 4}, {5, 3}, {6, 2}};
  const int count = getenv("ZB_LONG") ? 20000 : part_of(1600);
  struct generate_random random = begin_random(10241);
  int known = 0, equal = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof sizes[0]);
    const enum zb_objective objective = k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN;
    const int64_t poured = pouring_optimum(&chain, objective),
                  real = pouring_whole_optimum(&chain, objective);
    assert_true(poured < pouring_never);
    try_poured(&chain, objective, poured);
    if (k % 4 == 0) expect_equal(pouring_optimum_by_states(&chain, objective), poured, "optimum by states");
    if (real < 0) continue;
    assert_true(real >= poured);
    try_real(&chain, objective, real);
    known++;
    equal += real == poured;
  }
  expect(known > count / 4 && equal < known, "%d real optima known, %d of them equal to the poured one",
         known, equal);
}

static void test_every_state(void **state) {
  static const int sizes[][2] = {{2, 13}, {3, 9}, {4, 7}, {5, 5}, {6, 4}};
  const int count = getenv("ZB_LONG") ? 2000 : part_of(100);
  struct generate_random random = begin_random(5162);
  int known = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof sizes[0]);
    const enum zb_objective objective = k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN;
    const int64_t poured = pouring_optimum_by_states(&chain, objective);
    if (poured == pouring_never) continue;
    try_poured(&chain, objective, poured);
    known++;
  }
  expect(known > count / 2, "%d optima known", known);
}

// ---- several stages a device ----

static void try_placed(const struct zb_profile *profile, enum zb_objective objective, int64_t optimum) {
  for (int64_t more = -3; more <= 2; more++) {
    const enum zc_outcome wanted = more < 0 ? ZC_REFUTED : ZC_OPEN;
    expect(checker_search_profile(profile, objective, optimum + more, false) == wanted,
           "poured optimum %lld, not so at %+lld: %s", (long long)optimum, (long long)more,
           placed_text(profile, objective));
    if (more >= 0) continue;
    expect(checker_search_profile(profile, objective, optimum + more, true) == wanted,
           "poured optimum %lld, not so with windows at %+lld: %s", (long long)optimum, (long long)more,
           placed_text(profile, objective));
  }
}

// Whether every device is fed by the first stage of another; only then its start, and the span, is known.
static bool prompt(const struct zb_profile *profile) {
  for (int d = 0; d < profile->devices; d++) {
    const int first = profile->stage_at[d * profile->chunks];
    if (first > 0 && profile->chunk_of[first - 1] > 0) return false;
  }
  return true;
}

// A schedule that there is leaves the search open.
static bool try_placed_whole(const struct zb_profile *profile, enum zb_objective objective, int64_t poured) {
  struct brute brute;
  if (!brute_solve(profile, objective, 20000, &brute)) return false;
  assert_true(brute.feasible && brute.cost_ns >= poured);
  for (int64_t more = 0; more <= 3; more++)
    expect(checker_search_profile(profile, objective, brute.cost_ns + more, true) == ZC_OPEN,
           "optimum %lld, refuted at %+lld: %s", (long long)brute.cost_ns, (long long)more,
           placed_text(profile, objective));
  brute_free(&brute);
  return true;
}

static void test_placed(void **state) {
  const int count = getenv("ZB_LONG") ? 20000 : part_of(1200);
  struct generate_random random = begin_random(20116);
  int known = 0, whole = 0, span = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    struct zb_profile *profile = placed_random(&random, k % 4 == 0 ? 20 : 12);
    assert_non_null(profile);
    const enum zb_objective objective = k % 2 == 0 && prompt(profile) ? ZB_SPAN : ZB_MAKESPAN;
    const int64_t poured = placed_optimum(profile, objective);
    if (poured != placed_never) {
      known++;
      span += objective == ZB_SPAN;
      try_placed(profile, objective, poured);
      whole += try_placed_whole(profile, objective, poured);
    }
    zb_profile_free(profile);
  }
  expect(known > count / 2 && span > known / 5 && whole > known / 10,
         "%d optima known, %d of them of spans, %d real ones", known, span, whole);
  for (int k = 0; k < placed_pins; k++) {
    struct zb_profile *profile = placed_profile(&placed_pinned[k]);
    assert_non_null(profile);
    for (int objective = 0; objective < 2; objective++)
      try_placed(profile, objective == 0 ? ZB_SPAN : ZB_MAKESPAN,
                 placed_optimum(profile, objective == 0 ? ZB_SPAN : ZB_MAKESPAN));
    zb_profile_free(profile);
  }
}

static void test_pinned(void **state) {
  (void)state;
  for (int k = 0; k < pouring_pins; k++) {
    const struct pouring_pinned *pinned = &pouring_pinned[k];
    expect_equal(pouring_optimum_by_states(&pinned->chain, ZB_SPAN), pinned->span, pinned->why);
    try_poured(&pinned->chain, ZB_SPAN, pinned->span);
  }
}

// ---- what is kept ----

enum { STORE_DEVICES = 5, STORE_LANES = 14, STORE_M = 9, STORE_LENGTH = 13, GROUPS = 9000, EACH = 12 };

struct offered {
  int32_t key[STORE_DEVICES], done, holds;
  int64_t times[EACH][STORE_LENGTH];
};

static bool none_later(const int64_t *x, const int64_t *y) {
  for (int32_t k = 0; k < STORE_LENGTH; k++)
    if (x[k] > y[k]) return false;
  return true;
}

static void offer(struct fluid *s, const int32_t *mark, const struct offered *group, int32_t k) {
  const struct fluid_node node = {.device = k};
  s->done = group->done;
  s->holds = group->holds;
  s->hash = 0;
  for (int32_t i = 0; i < STORE_DEVICES; i++) s->hash += (uint64_t)(group->key[i] * mark[i]);
  memcpy(s->key, group->key, sizeof group->key);
  memcpy(s->times, group->times[k], sizeof group->times[k]);
  s->length = STORE_LENGTH;
  zc_fluid_keep(s, &node);
}

// Those kept are offered, each other is covered by one of them, and none of them by another.
static void expect_least(const struct fluid_group *group, const struct offered *offered) {
  assert_memory_equal(group->key, offered->key, sizeof offered->key);
  for (int32_t k = 0; k < group->entries; k++) {
    struct fluid_node *node = group->entry[k].node;
    assert_memory_equal(zc_fluid_times(node), offered->times[node->device], sizeof offered->times[0]);
    for (int32_t l = 0; l < group->entries; l++)
      assert_true(l == k || !none_later(zc_fluid_times(group->entry[l].node), zc_fluid_times(node)));
  }
  for (int32_t k = 0; k < EACH; k++) {
    bool covered = false;
    for (int32_t l = 0; l < group->entries; l++)
      covered = covered || none_later(zc_fluid_times(group->entry[l].node), offered->times[k]);
    assert_true(covered);
  }
}

static void draw_group(struct generate_random *random, struct offered *group, uint16_t number) {
  const int64_t most = generate_between(random, 1, 3),
                far = generate_between(random, 0, 3) == 0 ? 1 << 20 : 0;
  group->done = (int32_t)generate_between(random, 0, STORE_LANES * STORE_M);
  group->holds = (int32_t)generate_between(random, 0, STORE_DEVICES);
  for (int32_t i = 0; i < STORE_DEVICES; i++, number /= 9) group->key[i] = number % 9; // no two alike
  for (int32_t k = 0; k < EACH; k++)
    for (int32_t l = 0; l < STORE_LENGTH; l++) // few apart, so that some cover others
      group->times[k][l] = generate_between(random, 0, 3) > 0 ? 1 : generate_between(random, 0, most) + far;
}

// Many groups at once, their nodes in turn, some layers forgotten and filled again.
static void test_store(void **state) {
  struct zc_run run = {.verbose = false};
  const int32_t layers = (STORE_LANES * STORE_M + 1) * (STORE_DEVICES + 1);
  struct generate_random random = begin_random(77);
  struct fluid s = {.run = &run, .devices = STORE_DEVICES, .lanes = STORE_LANES, .m = STORE_M};
  struct offered *offered = zc_alloc(&run, GROUPS, sizeof *offered);
  int32_t mark[STORE_DEVICES];
  (void)state;
  s.key = zc_alloc(&run, STORE_DEVICES, sizeof *s.key);
  s.times = zc_alloc(&run, STORE_LENGTH, sizeof *s.times);
  s.layer = zc_alloc(&run, (size_t)layers, sizeof *s.layer);
  // hashes that meet, too
  for (int32_t i = 0; i < STORE_DEVICES; i++) mark[i] = (int32_t)generate_between(&random, 0, 40);
  for (int32_t g = 0; g < GROUPS; g++) draw_group(&random, &offered[g], (uint16_t)g);
  for (int32_t round = 0; round < 2; round++) {
    s.lane_shift = 2 * round;
    for (int32_t k = 0; k < EACH; k++)
      for (int32_t g = 0; g < GROUPS; g++) offer(&s, mark, &offered[g], k);
    int32_t groups = 0;
    for (int32_t l = 0; l < layers; l++) {
      for (const struct fluid_group *group = s.layer[l].groups; group; group = group->next, groups++) {
        int32_t number = 0;
        for (int32_t i = 4; i >= 0; i--) number = 9 * number + group->key[i];
        expect_least(group, &offered[number]);
      }
      zc_fluid_forget(&s, &s.layer[l]);
    }
    assert_int_equal(groups, GROUPS);
  }
  zc_fluid_free(&s);
  checker_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order), cmocka_unit_test(test_every_state),
                                     cmocka_unit_test(test_placed), cmocka_unit_test(test_pinned),
                                     cmocka_unit_test(test_store)};
  return cmocka_run_group_tests_name("fluid", tests, NULL, NULL);
}
