// zbcheck's search of `fluid-fronts` against every order of F and B with W poured, and against every order of
// F, B and W: it refutes a target if and only if it is below the first optimum, so never one that the second
// reaches.
#include <stdlib.h>
#include <string.h>

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

static void test_pinned(void **state) {
  (void)state;
  for (int k = 0; k < pouring_pins; k++) {
    const struct pouring_pinned *pinned = &pouring_pinned[k];
    expect_equal(pouring_optimum_by_states(&pinned->chain, ZB_SPAN), pinned->span, pinned->why);
    try_poured(&pinned->chain, ZB_SPAN, pinned->span);
  }
}

// ---- what is kept ----

enum { STORE_DEVICES = 5, STORE_M = 9, STORE_LENGTH = 13, GROUPS = 9000, EACH = 12 };

struct offered {
  uint16_t count[3 * STORE_DEVICES];
  int64_t times[EACH][STORE_LENGTH];
};

static bool none_later(const int64_t *x, const int64_t *y) {
  for (int32_t k = 0; k < STORE_LENGTH; k++)
    if (x[k] > y[k]) return false;
  return true;
}

static void offer(struct fluid *s, const struct offered *group, int32_t k) {
  const struct fluid_node node = {.device = k};
  s->done = s->holds = 0;
  s->hash = 0;
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++) {
    if (i < 2 * STORE_DEVICES)
      s->done += group->count[i];
    else
      s->holds += group->count[i];
    s->hash += group->count[i] * s->mark[i];
  }
  memcpy(s->count, group->count, sizeof group->count);
  memcpy(s->times, group->times[k], sizeof group->times[k]);
  s->length = STORE_LENGTH;
  zc_fluid_keep(s, &node);
}

// Those kept are offered, each other is covered by one of them, and none of them by another.
static void expect_least(const struct fluid_group *group, const struct offered *offered) {
  assert_memory_equal(group->count, offered->count, sizeof offered->count);
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
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++)
    group->count[i] = (uint16_t)generate_between(random, 0, i < 2 * STORE_DEVICES ? STORE_M : 1);
  for (int32_t i = 0; i < 5; i++, number /= 9) group->count[i] = number % 9; // no two alike
  for (int32_t k = 0; k < EACH; k++)
    for (int32_t l = 0; l < STORE_LENGTH; l++) // few apart, so that some cover others
      group->times[k][l] = generate_between(random, 0, 3) > 0 ? 1 : generate_between(random, 0, most) + far;
}

// Many groups at once, their nodes in turn, some layers forgotten and filled again.
static void test_store(void **state) {
  struct zc_run run = {.verbose = false};
  const int32_t layers = (2 * STORE_DEVICES * STORE_M + 1) * (STORE_DEVICES + 1);
  struct generate_random random = begin_random(77);
  struct fluid s = {.run = &run, .devices = STORE_DEVICES, .m = STORE_M};
  struct offered *offered = zc_alloc(&run, GROUPS, sizeof *offered);
  (void)state;
  s.mark = zc_alloc(&run, 3 * STORE_DEVICES, sizeof *s.mark);
  s.count = zc_alloc(&run, 3 * STORE_DEVICES, sizeof *s.count);
  s.times = zc_alloc(&run, STORE_LENGTH, sizeof *s.times);
  s.layer = zc_alloc(&run, (size_t)layers, sizeof *s.layer);
  // hashes that meet, too
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++) s.mark[i] = (uint64_t)generate_between(&random, 0, 40);
  for (int32_t g = 0; g < GROUPS; g++) draw_group(&random, &offered[g], (uint16_t)g);
  for (int32_t round = 0; round < 2; round++) {
    s.lane_shift = 2 * round;
    for (int32_t k = 0; k < EACH; k++)
      for (int32_t g = 0; g < GROUPS; g++) offer(&s, &offered[g], k);
    int32_t groups = 0;
    for (int32_t l = 0; l < layers; l++) {
      for (const struct fluid_group *group = s.layer[l].groups; group; group = group->next, groups++) {
        int32_t number = 0;
        for (int32_t i = 4; i >= 0; i--) number = 9 * number + group->count[i];
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
                                     cmocka_unit_test(test_pinned), cmocka_unit_test(test_store)};
  return cmocka_run_group_tests_name("fluid", tests, NULL, NULL);
}
