// The solver's layers by F and B with several stages a device. With W poured they refute a target if and only
// if it is below the optimum of all orders with W poured, and otherwise find that optimum; whatever is left
// out, and with windows, they say nothing else. With whole W they find schedules that cost what they say.
#include <stdlib.h>

#include "solver/exact/chunked_orders.h"
#include "solver/exact/flow_front.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/pouring_placed.h"
#include "tests/unit/unit.h"

enum { ENOUGH = 60000 }; // partial schedules expanded; of a search that takes more nothing is asked

// A placement, and what its searches need.
struct trial {
  const struct zb_profile *profile;
  enum zb_objective objective;
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

// False, and nothing to close, where the search is not for the placement.
static bool open_trial(const struct zb_profile *profile, enum zb_objective objective, struct trial *trial) {
  *trial = (struct trial){.profile = profile, .objective = objective};
  assert_int_equal(zb_chain_create(profile, 0, &trial->chain, NULL), ZB_OK);
  if (!zb_flow_front_applies(trial->chain, objective)) {
    // Nothing else is in the way of these profiles.
    assert_true(trial->chain->chunked && trial->chain->chunked->open_offsets);
    zb_chain_free(trial->chain);
    return false;
  }
  assert_int_equal(zb_state_open(trial->chain, objective, &trial->lattice, &trial->state, NULL), ZB_OK);
  assert_int_equal(zb_orders_create(trial->chain, &trial->orders, NULL), ZB_OK);
  assert_int_equal(zb_timer_open(profile, &trial->timer, NULL), ZB_OK);
  trial->front = zb_flow_front_create(trial->chain, objective);
  assert_non_null(trial->front);
  return true;
}

static void close_trial(struct trial *trial) {
  zb_flow_front_free(trial->front);
  zb_timer_close(&trial->timer);
  zb_orders_free(&trial->orders);
  zb_state_close(&trial->state);
  zb_lattice_free(&trial->lattice);
  zb_chain_free(trial->chain);
}

static const char *text(const struct trial *trial) { return placed_text(trial->profile, trial->objective); }

// What orders of F and B cost with W poured, in ticks.
static int64_t poured_cost(const struct trial *trial) {
  static struct placed_word word[PLACED_DEVICES];
  const struct zb_chunked *chunked = trial->chain->chunked;
  for (int d = 0; d < trial->profile->devices; d++) {
    word[d].count = trial->orders.count[d];
    for (int k = 0; k < word[d].count; k++) {
      const int letter = zb_orders_word(&trial->orders, d)[k];
      if (chunked) {
        const struct zb_op_class *class = &chunked->device[d].class[letter];
        assert_true(letter < chunked->device[d].classes && class->kind != ZB_W);
        word[d].op[k] = (struct placed_op){class->stage, class->kind == ZB_B};
      } else {
        assert_true(letter == ZB_F || letter == ZB_B);
        word[d].op[k] = (struct placed_op){d, letter == ZB_B};
      }
    }
  }
  return placed_cost(trial->profile, trial->objective, word) / trial->chain->tick_ns;
}

// What complete orders cost, in ticks; they are a schedule that fits.
static int64_t whole_cost(struct trial *trial) {
  struct zb_schedule *schedule = NULL;
  struct zb_timeline timeline = {0};
  struct zb_error error = {0};
  int64_t cost_ns = 0;
  assert_int_equal(zb_timer_cost(&trial->timer, trial->objective, &trial->orders, &cost_ns, &schedule, NULL),
                   ZB_OK);
  expect(zb_check_schedule(trial->profile, schedule, &timeline, &error) == ZB_OK, "%s: %s", error.text,
         text(trial));
  expect_equal(zb_timeline_cost(&timeline, trial->objective), cost_ns, text(trial));
  assert_int_equal(cost_ns % trial->chain->tick_ns, 0);
  zb_timeline_free(&timeline);
  zb_schedule_free(schedule);
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

// All that searches with W poured say around the optimum, and far above it.
static void try_poured(struct trial *trial, int64_t optimum) {
  static const int64_t away[] = {-3, -1, 0, 1, 2, 1000};
  for (size_t k = 0; k < sizeof away / sizeof *away; k++) {
    const int64_t target = optimum + away[k];
    const bool below = away[k] < 0;
    expect_found(trial, search(trial, target, false, fluid, SIZE_MAX), below, optimum, target, "");
    if (below)
      expect_found(trial, search(trial, target, true, fluid, SIZE_MAX), true, optimum, target, ", windows");
    for (size_t most = 1; most <= 3; most++) {
      const struct found narrow = search(trial, target, false, fluid, most);
      const bool allowed =
          below ? narrow.end != ZB_FRONT_SOLVED
                : narrow.end == ZB_FRONT_BARREN || (narrow.end == ZB_FRONT_SOLVED && narrow.cost >= optimum);
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

// How many targets were asked of what.
struct tally {
  int applied, known, several, bare, whole, reached;
};

static void try_placement(const struct zb_profile *profile, enum zb_objective objective,
                          struct tally *tally) {
  enum { MOST_WHOLE = 20000, MOST_STEPS = 20000 };
  struct trial trial;
  struct brute brute;
  if (!open_trial(profile, objective, &trial)) return;
  const int64_t tick_ns = trial.chain->tick_ns, poured = placed_optimum(profile, objective);
  tally->applied++;
  if (poured != placed_never) {
    const int64_t all = placed_optimum_of_all(profile, objective, MOST_STEPS);
    if (all != placed_never) expect_equal(poured, all, text(&trial));
    tally->bare += all != placed_never;
    assert_int_equal(poured % tick_ns, 0);
    try_poured(&trial, poured / tick_ns);
    tally->known++;
    tally->several += profile->chunks > 1 && profile->devices > 1 && profile->microbatches > 1;
    if (brute_solve(profile, objective, MOST_WHOLE, &brute)) {
      expect(brute.feasible && poured <= brute.cost_ns, "%lld poured, %lld whole: %s", (long long)poured,
             (long long)brute.cost_ns, text(&trial));
      tally->whole++;
      tally->reached += try_whole(&trial, poured / tick_ns, brute.cost_ns / tick_ns) > 0;
      brute_free(&brute);
    }
  }
  close_trial(&trial);
}

static void test_every_order(void **state) {
  const bool longer = getenv("ZB_LONG") != NULL;
  const int count = longer ? 20000 : part_of(800), passes = longer ? 12 : 10;
  const char *given = getenv("FLOW_SEED");
  struct generate_random random = {given ? strtoull(given, NULL, 10) : 7411};
  struct tally tally = {0};
  (void)state;
  print_message("# FLOW_SEED=%llu\n", (unsigned long long)random.state);
  for (int k = 0; k < count; k++) {
    struct zb_profile *profile = placed_random(&random, passes);
    assert_non_null(profile);
    try_placement(profile, ZB_SPAN, &tally);
    try_placement(profile, ZB_MAKESPAN, &tally);
    zb_profile_free(profile);
  }
  expect(
      tally.applied > count && tally.known > tally.applied / 2 && tally.several > count / 8 &&
          tally.bare > count / 2 && tally.whole > count / 2 && tally.reached > tally.whole / 2,
      "of %d placements %d optima are known, %d of them large, %d by all orders, %d with whole W, of which "
      "%d were reached",
      tally.applied, tally.known, tally.several, tally.bare, tally.whole, tally.reached);
}

static void test_pinned(void **state) {
  (void)state;
  for (int k = 0; k < placed_pins; k++) {
    struct zb_profile *profile = placed_profile(&placed_pinned[k]);
    assert_non_null(profile);
    for (int o = ZB_SPAN; o <= ZB_MAKESPAN; o++) {
      struct trial trial;
      assert_true(open_trial(profile, (enum zb_objective)o, &trial));
      expect_equal(placed_optimum(profile, (enum zb_objective)o), placed_pinned[k].cost, text(&trial));
      try_poured(&trial, placed_pinned[k].cost / trial.chain->tick_ns);
      close_trial(&trial);
    }
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order), cmocka_unit_test(test_pinned)};
  return cmocka_run_group_tests_name("flow placed", tests, NULL, NULL);
}
