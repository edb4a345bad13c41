// The solver's layers by F and B with several stages a device. With W poured they refute a target if and only
// if it is below the optimum of all orders with W poured, and otherwise find that optimum; whatever is left
// out, and with windows, they say nothing else. With whole W they find schedules that cost what they say.
#include <stdlib.h>

#include "solver/exact/chunked_orders.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/pouring_placed.h"
#include "tests/unit/flow_trial.h"

static const int64_t away[] = {-3, -1, 0, 1, 2, 1000};

static const char *text(const struct flow_trial *trial) {
  return placed_text(trial->profile, trial->objective);
}

// What orders of F and B cost with W poured, in ticks.
static int64_t poured_cost(const struct flow_trial *trial) {
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
static int64_t whole_cost(struct flow_trial *trial) {
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

// False, and nothing to close, where the search is not for the placement.
static bool open_trial(const struct zb_profile *profile, enum zb_objective objective,
                       struct flow_trial *trial) {
  if (!flow_trial_open(profile, objective, trial)) {
    // Nothing else is in the way of these profiles.
    assert_true(trial->chain->chunked && trial->chain->chunked->open_offsets);
    zb_chain_free(trial->chain);
    return false;
  }
  trial->text = text;
  trial->poured_cost = poured_cost;
  trial->whole_cost = whole_cost;
  return true;
}

static void try_poured(struct flow_trial *trial, int64_t optimum) {
  flow_try_poured(trial, optimum, away, sizeof away / sizeof *away);
}

// How many targets were asked of what.
struct tally {
  int applied, known, several, bare, whole, reached;
};

static void try_placement(const struct zb_profile *profile, enum zb_objective objective,
                          struct tally *tally) {
  enum { MOST_WHOLE = 20000, MOST_STEPS = 20000 };
  struct flow_trial trial;
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
      tally->reached += flow_try_whole(&trial, poured / tick_ns, brute.cost_ns / tick_ns) > 0;
      brute_free(&brute);
    }
  }
  flow_trial_close(&trial);
}

static void test_every_order(void **state) {
  const bool longer = getenv("ZB_LONG") != NULL;
  const int count = longer ? 20000 : part_of(800), passes = longer ? 12 : 10;
  struct generate_random random = flow_random(7411);
  struct tally tally = {0};
  (void)state;
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
      struct flow_trial trial;
      assert_true(open_trial(profile, (enum zb_objective)o, &trial));
      expect_equal(placed_optimum(profile, (enum zb_objective)o), placed_pinned[k].cost, text(&trial));
      try_poured(&trial, placed_pinned[k].cost / trial.chain->tick_ns);
      flow_trial_close(&trial);
    }
    zb_profile_free(profile);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order), cmocka_unit_test(test_pinned)};
  return cmocka_run_group_tests_name("flow placed", tests, NULL, NULL);
}
