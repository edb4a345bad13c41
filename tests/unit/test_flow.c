// The solver's layers by F and B. With W poured they refute a target if and only if it is below the optimum
// of all orders with W poured, and otherwise find that optimum; whatever is left out, and with windows, they
// say nothing else. Where there is no brute force they agree with zbcheck's search. With whole W they find
// orders that cost what they say.
#include <stdlib.h>

#include "solver/exact/flow_front.h"
#include "tests/unit/checker_search.h"
#include "tests/unit/unit.h"

enum { ENOUGH = 60000 }; // partial schedules expanded; of a search that takes more nothing is asked

// A chain, and what its searches need.
struct trial {
  const struct pouring_chain *from;
  enum zb_objective objective;
  struct zb_profile *profile;
  struct zb_chain *chain;
  struct zb_lattice lattice;
  struct zb_state state;
  struct zb_orders orders;
  struct zb_timer timer;
  struct zb_flow_front *front;
};

struct found {
  enum zb_front_end end;
  int64_t cost; // ticks, where SOLVED
};

static const struct zb_flow_weights fluid = {.fluid = true};

static void open_trial(const struct pouring_chain *from, enum zb_objective objective, struct trial *trial) {
  *trial = (struct trial){.from = from, .objective = objective, .profile = pouring_profile(from)};
  assert_non_null(trial->profile);
  assert_int_equal(zb_chain_create(trial->profile, 0, &trial->chain, NULL), ZB_OK);
  assert_int_equal(zb_state_open(trial->chain, objective, &trial->lattice, &trial->state, NULL), ZB_OK);
  assert_int_equal(zb_orders_create(trial->chain, &trial->orders, NULL), ZB_OK);
  assert_int_equal(zb_timer_open(trial->profile, &trial->timer, NULL), ZB_OK);
  assert_true(zb_flow_front_applies(trial->chain, objective));
  trial->front = zb_flow_front_create(trial->chain, objective);
  assert_non_null(trial->front);
}

static void close_trial(struct trial *trial) {
  zb_flow_front_free(trial->front);
  zb_timer_close(&trial->timer);
  zb_orders_free(&trial->orders);
  zb_state_close(&trial->state);
  zb_lattice_free(&trial->lattice);
  zb_chain_free(trial->chain);
  zb_profile_free(trial->profile);
}

static const char *text(const struct trial *trial) { return pouring_text(trial->from, trial->objective); }

// What orders of F and B cost with W poured, in ticks.
static int64_t poured_cost(const struct trial *trial) {
  struct pouring_word words[POURING_DEVICES];
  const struct pouring_word *word[POURING_DEVICES];
  const int m = trial->from->microbatches;
  for (int d = 0; d < trial->from->devices; d++) {
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
  return pouring_cost(trial->from, trial->objective, word) / trial->chain->tick_ns;
}

// What complete orders cost, in ticks; every F of them fits.
static int64_t whole_cost(struct trial *trial) {
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

// One search under a target in ticks, in small pieces, as the rounds of a search have it. From windows that
// propagation leaves, or those that know nothing but the target. What it finds costs what it says. OPEN where
// it takes too long.
static struct found search(struct trial *trial, int64_t target, bool propagate,
                           struct zb_flow_weights weights, size_t most) {
  struct found found = {.end = ZB_FRONT_REFUTED};
  if (target < 0) return found;
  zb_state_reset(&trial->state, target);
  if (propagate && zb_state_propagate(&trial->state) == ZB_SWEEP_REFUTED) return found;
  found.end = zb_flow_front_begin(trial->front, &trial->state, weights, most);
  while (found.end == ZB_FRONT_OPEN && zb_flow_front_work(trial->front) < ENOUGH)
    found.end = zb_flow_front_run(trial->front, 7, NULL, &trial->orders, &found.cost);
  if (found.end == ZB_FRONT_SOLVED) {
    expect(found.cost <= target, "cost %lld under %lld: %s", (long long)found.cost, (long long)target,
           text(trial));
    expect_equal(weights.fluid ? poured_cost(trial) : whole_cost(trial), found.cost, text(trial));
  } else if (found.end != ZB_FRONT_OPEN) {
    assert_int_equal(found.end, zb_flow_front_whole(trial->front) ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN);
  }
  return found;
}

static void expect_found(const struct trial *trial, struct found found, bool refuted, int64_t optimum,
                         int64_t target, const char *how) {
  const enum zb_front_end wanted = refuted ? ZB_FRONT_REFUTED : ZB_FRONT_SOLVED;
  expect(found.end == wanted && (refuted || found.cost == optimum),
         "optimum %lld, target %lld%s, end %d, cost %lld: %s", (long long)optimum, (long long)target, how,
         (int)found.end, (long long)found.cost, text(trial));
}

// All that searches with W poured say around the optimum.
static void try_poured(struct trial *trial, int64_t optimum) {
  for (int64_t more = -3; more <= 2; more++) {
    const int64_t target = optimum + more;
    expect_found(trial, search(trial, target, false, fluid, SIZE_MAX), more < 0, optimum, target, "");
    if (more < 0)
      expect_found(trial, search(trial, target, true, fluid, SIZE_MAX), true, optimum, target, ", windows");
    for (size_t most = 1; most <= 3; most++) {
      const struct found narrow = search(trial, target, false, fluid, most);
      const bool allowed = more < 0 ? narrow.end != ZB_FRONT_SOLVED
                                    : narrow.end == ZB_FRONT_BARREN ||
                                          (narrow.end == ZB_FRONT_SOLVED && narrow.cost >= optimum);
      expect(allowed, "optimum %lld, target %lld, at most %zu, end %d, cost %lld: %s", (long long)optimum,
             (long long)target, most, (int)narrow.end, (long long)narrow.cost, text(trial));
    }
  }
}

// A target that a schedule meets: windows keep what meets it, with W poured and mostly with whole W, too.
// Returns how many searches found the optimum.
static int try_whole(struct trial *trial, int64_t poured, int64_t optimum) {
  int reached = 0;
  for (int more = 0; more <= 4; more += 2) {
    const int64_t target = optimum + more;
    const struct found above = search(trial, target, true, fluid, SIZE_MAX);
    expect(above.end == ZB_FRONT_SOLVED && above.cost >= poured && above.cost <= optimum,
           "optimum %lld, target %lld, end %d, cost %lld: %s", (long long)optimum, (long long)target,
           (int)above.end, (long long)above.cost, text(trial));
    for (int many = 1; many <= 4; many++) {
      const struct zb_flow_weights whole = {.nearly = many == 2 ? 100 : 4, .many = many};
      const struct found laid = search(trial, target, many % 2 == 0, whole, many == 3 ? 4 : SIZE_MAX);
      expect(laid.end == ZB_FRONT_BARREN || (laid.end == ZB_FRONT_SOLVED && laid.cost >= optimum),
             "optimum %lld, target %lld, %d W, end %d, cost %lld: %s", (long long)optimum, (long long)target,
             many, (int)laid.end, (long long)laid.cost, text(trial));
      reached += laid.end == ZB_FRONT_SOLVED && laid.cost == optimum;
    }
  }
  return reached;
}

static struct generate_random begin_random(uint64_t seed) {
  const char *given = getenv("FLOW_SEED");
  if (given) seed = strtoull(given, NULL, 10);
  print_message("# FLOW_SEED=%llu\n", (unsigned long long)seed);
  return (struct generate_random){seed};
}

static void test_every_order(void **state) {
  static const int sizes[][2] = {{1, 7}, {2, 5}, {2, 7}, {3, 4}, {3, 5}, {4, 3}, {4, 4}, {5, 3}, {6, 2}};
  const int count = getenv("ZB_LONG") ? 20000 : part_of(1000);
  struct generate_random random = begin_random(4409);
  int known = 0, reached = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct trial trial;
    open_trial(&chain, k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN, &trial);
    const int64_t tick_ns = trial.chain->tick_ns, poured = pouring_optimum(&chain, trial.objective);
    const int64_t whole = pouring_whole_optimum(&chain, trial.objective);
    assert_int_equal(poured % tick_ns, 0);
    try_poured(&trial, poured / tick_ns);
    if (whole >= 0) {
      known++;
      reached += try_whole(&trial, poured / tick_ns, whole / tick_ns) > 0;
    }
    close_trial(&trial);
  }
  expect(known > count / 4 && reached > known / 2, "%d optima known, %d of them reached", known, reached);
}

static void test_every_state(void **state) {
  static const int sizes[][2] = {{2, 13}, {3, 9}, {4, 7}, {5, 5}, {6, 4}};
  const int count = getenv("ZB_LONG") ? 2000 : part_of(60);
  struct generate_random random = begin_random(881);
  int known = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct trial trial;
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
    struct trial trial;
    open_trial(&pouring_pinned[k].chain, ZB_SPAN, &trial);
    try_poured(&trial, pouring_pinned[k].span / trial.chain->tick_ns);
    for (size_t most = 1; most <= 16; most++)
      assert_int_equal(search(&trial, 1 << 20, false, fluid, most).end, ZB_FRONT_SOLVED);
    close_trial(&trial);
  }
}

// Both programs on one target, and on the windows that each has propagated.
static bool agree(struct trial *trial, int64_t target, bool propagate) {
  const struct found found = search(trial, target, propagate, fluid, SIZE_MAX);
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
  struct generate_random random = begin_random(60217);
  int compared = 0, refuted = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    const struct pouring_chain chain =
        (k / 2 % 2 == 0 ? pouring_random : pouring_tight)(&random, sizes, sizeof sizes / sizeof *sizes);
    struct trial trial;
    open_trial(&chain, k % 2 == 0 ? ZB_SPAN : ZB_MAKESPAN, &trial);
    // Narrow layers find a cost, from which a whole search goes down to the least.
    struct found best = search(&trial, 1 << 20, false, fluid, 16);
    if (best.end == ZB_FRONT_SOLVED) {
      const struct found less = search(&trial, best.cost - 1, false, fluid, SIZE_MAX);
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
