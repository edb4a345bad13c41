// The solver's layers by F and B. With W poured they refute a target if and only if it is below the optimum
// of all orders with W poured, and otherwise find that optimum; whatever is left out, and with windows, they
// say nothing else. Where there is no brute force they agree with zbcheck's search. With whole W they find
// orders that cost what they say.
#include <stdlib.h>

#include "tests/unit/checker_search.h"
#include "tests/unit/flow_trial.h"

static const int64_t away[] = {-3, -2, -1, 0, 1, 2};

static const char *text(const struct flow_trial *trial) {
  return pouring_text(trial->from, trial->objective);
}

// What orders of F and B cost with W poured, in ticks.
static int64_t poured_cost(const struct flow_trial *trial) {
  struct pouring_word words[POURING_DEVICES];
  const struct pouring_word *word[POURING_DEVICES];
  const struct pouring_chain *from = trial->from;
  const int m = from->microbatches;
  for (int d = 0; d < from->devices; d++) {
    int count[2] = {0};
    assert_int_equal(trial->orders.count[d], 2 * m);
    for (int k = 0; k < 2 * m; k++) {
      const unsigned char kind = zb_orders_word(&trial->orders, d)[k];
      assert_true(kind == ZB_F || kind == ZB_B);
      count[kind]++;
      words[d].is_b[k] = kind == ZB_B;
    }
    assert_int_equal(count[ZB_F], m);
    word[d] = &words[d];
  }
  return pouring_cost(from, trial->objective, word) / trial->chain->tick_ns;
}

// What complete orders cost, in ticks; every F of them fits.
static int64_t whole_cost(struct flow_trial *trial) {
  const struct pouring_chain *from = trial->from;
  int64_t cost_ns = 0;
  for (int d = 0; d < from->devices; d++) {
    const int64_t bytes[] = {from->f_bytes[d], from->b_bytes[d], from->w_bytes[d]};
    int64_t kept = from->standing[d];
    assert_int_equal(trial->orders.count[d], 3 * from->microbatches);
    for (int k = 0; k < trial->orders.count[d]; k++) {
      kept += bytes[zb_orders_word(&trial->orders, d)[k]];
      expect(kept <= from->limit[d], "memory of device %d: %s", d, text(trial));
    }
  }
  assert_int_equal(zb_timer_cost(&trial->timer, trial->objective, &trial->orders, &cost_ns, NULL, NULL),
                   ZB_OK);
  assert_int_equal(cost_ns % trial->chain->tick_ns, 0);
  return cost_ns / trial->chain->tick_ns;
}

static void open_trial(const struct pouring_chain *from, enum zb_objective objective,
                       struct flow_trial *trial) {
  struct zb_profile *profile = pouring_profile(from);
  assert_non_null(profile);
  assert_true(flow_trial_open(profile, objective, trial));
  trial->from = from;
  trial->text = text;
  trial->poured_cost = poured_cost;
  trial->whole_cost = whole_cost;
}

static void close_trial(struct flow_trial *trial) {
  struct zb_profile *profile = (struct zb_profile *)trial->profile;
  flow_trial_close(trial);
  zb_profile_free(profile);
}

static void try_poured(struct flow_trial *trial, int64_t optimum) {
  flow_try_poured(trial, optimum, away, sizeof away / sizeof *away);
}

static void test_every_order(void **state) {
  static const int sizes[][2] = {{1, 7}, {2, 5}, {2, 7}, {3, 4}, {3, 5}, {4, 3}, {4, 4}, {5, 3}, {6, 2}};
  const int count = getenv("ZB_LONG") ? 20000 : part_of(1000);
  struct generate_random random = flow_random(4409);
  int known = 0, reached = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct flow_trial trial;
    open_trial(&chain, k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN, &trial);
    const int64_t tick_ns = trial.chain->tick_ns, poured = pouring_optimum(&chain, trial.objective);
    const int64_t whole = pouring_whole_optimum(&chain, trial.objective);
    assert_int_equal(poured % tick_ns, 0);
    try_poured(&trial, poured / tick_ns);
    if (whole >= 0) {
      known++;
      reached += flow_try_whole(&trial, poured / tick_ns, whole / tick_ns) > 0;
    }
    close_trial(&trial);
  }
  expect(known > count / 4 && reached > known / 2, "%d optima known, %d of them reached", known, reached);
}

static void test_every_state(void **state) {
  static const int sizes[][2] = {{2, 13}, {3, 9}, {4, 7}, {5, 5}, {6, 4}};
  const int count = getenv("ZB_LONG") ? 2000 : part_of(60);
  struct generate_random random = flow_random(881);
  int known = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct flow_trial trial;
    open_trial(&chain, k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN, &trial);
    const int64_t poured = pouring_optimum_by_states(&chain, trial.objective);
    if (poured != pouring_never) {
      try_poured(&trial, poured / trial.chain->tick_ns);
      known++;
    }
    close_trial(&trial);
  }
  expect(known > count / 2, "%d optima known", known);
}

static void test_pinned(void **state) {
  (void)state;
  for (int k = 0; k < pouring_pins; k++) {
    struct flow_trial trial;
    open_trial(&pouring_pinned[k].chain, ZB_SPAN, &trial);
    try_poured(&trial, pouring_pinned[k].span / trial.chain->tick_ns);
    for (size_t most = 1; most <= 16; most++)
      assert_int_equal(flow_search(&trial, 1 << 20, false, flow_fluid, most).end, ZB_FRONT_SOLVED);
    close_trial(&trial);
  }
}

// Both programs on one target, and on the windows that each has propagated.
static bool agree(struct flow_trial *trial, int64_t target, bool propagate) {
  const struct flow_found found = flow_search(trial, target, propagate, flow_fluid, SIZE_MAX);
  if (found.end == ZB_FRONT_OPEN) return false;
  const enum zc_outcome outcome =
      checker_search(trial->from, trial->objective, target * trial->chain->tick_ns, propagate);
  expect((found.end == ZB_FRONT_SOLVED) == (outcome == ZC_OPEN) &&
             (found.end == ZB_FRONT_REFUTED) == (outcome == ZC_REFUTED),
         "target %lld%s: here end %d, in zbcheck %d: %s", (long long)target, propagate ? ", windows" : "",
         (int)found.end, (int)outcome, text(trial));
  return true;
}

static void test_equals_checker(void **state) {
  static const int sizes[][2] = {{4, 16}, {5, 14}, {6, 12}, {7, 10}, {8, 8}, {8, 16}};
  const int count = getenv("ZB_LONG") ? 3000 : part_of(120);
  struct generate_random random = flow_random(60217);
  int compared = 0, refuted = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct flow_trial trial;
    open_trial(&chain, k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN, &trial);
    // Narrow layers find a cost, from which a whole search goes down to the least.
    struct flow_found best = flow_search(&trial, 1 << 20, false, flow_fluid, 16);
    if (best.end == ZB_FRONT_SOLVED) {
      const struct flow_found less = flow_search(&trial, best.cost - 1, false, flow_fluid, SIZE_MAX);
      if (less.end == ZB_FRONT_SOLVED || less.end == ZB_FRONT_OPEN) best = less;
    }
    for (int64_t more = -3; best.end == ZB_FRONT_SOLVED && more <= 2; more++) {
      if (best.cost + more < 0) continue;
      const bool bare = agree(&trial, best.cost + more, false);
      compared += bare;
      refuted += bare && more < 0;
      compared += agree(&trial, best.cost + more, true);
    }
    close_trial(&trial);
  }
  expect(compared > 4 * count && refuted > count, "%d targets compared, %d refuted", compared, refuted);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order), cmocka_unit_test(test_every_state),
                                     cmocka_unit_test(test_pinned), cmocka_unit_test(test_equals_checker)};
  return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
