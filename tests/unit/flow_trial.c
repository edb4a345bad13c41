// flow_trial.c - searches around an optimum that is known.
#include "tests/unit/flow_trial.h"

#include <stdlib.h>

enum { ENOUGH = 60000 }; // partial schedules expanded; of a search that takes more nothing is asked

bool flow_trial_open(const struct zb_profile *profile, enum zb_objective objective,
                     struct flow_trial *trial) {
  *trial = (struct flow_trial){.profile = profile, .objective = objective};
  assert_int_equal(zb_chain_create(profile, 0, &trial->chain, NULL), ZB_OK);
  if (!zb_flow_front_applies(trial->chain, objective)) return false;
  assert_int_equal(zb_state_open(trial->chain, objective, &trial->lattice, &trial->state, NULL), ZB_OK);
  assert_int_equal(zb_orders_create(trial->chain, &trial->orders, NULL), ZB_OK);
  assert_int_equal(zb_timer_open(profile, &trial->timer, NULL), ZB_OK);
  trial->front = zb_flow_front_create(trial->chain, objective);
  assert_non_null(trial->front);
  return true;
}

void flow_trial_close(struct flow_trial *trial) {
  zb_flow_front_free(trial->front);
  zb_timer_close(&trial->timer);
  zb_orders_free(&trial->orders);
  zb_state_close(&trial->state);
  zb_lattice_free(&trial->lattice);
  zb_chain_free(trial->chain);
}

struct flow_found flow_search(struct flow_trial *trial, int64_t target, bool propagate,
                              struct zb_flow_weights weights, size_t most) {
  struct flow_found found = {.end = ZB_FRONT_REFUTED};
  if (target < 0) return found;
  zb_state_reset(&trial->state, target);
  if (propagate && zb_state_propagate(&trial->state) == ZB_SWEEP_REFUTED) return found;
  found.end = zb_flow_front_begin(trial->front, &trial->state, weights, most);
  while (found.end == ZB_FRONT_OPEN && zb_flow_front_work(trial->front) < ENOUGH)
    found.end = zb_flow_front_run(trial->front, 7, NULL, &trial->orders, &found.cost);
  if (found.end == ZB_FRONT_SOLVED) {
    expect(found.cost <= target, "cost %lld under %lld: %s", (long long)found.cost, (long long)target,
           trial->text(trial));
    expect_equal(weights.fluid ? trial->poured_cost(trial) : trial->whole_cost(trial), found.cost,
                 trial->text(trial));
  } else if (found.end != ZB_FRONT_OPEN) {
    assert_int_equal(found.end, zb_flow_front_whole(trial->front) ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN);
  }
  return found;
}

static void expect_found(const struct flow_trial *trial, struct flow_found found, bool refuted,
                         int64_t optimum, int64_t target, const char *how) {
  const enum zb_front_end wanted = refuted ? ZB_FRONT_REFUTED : ZB_FRONT_SOLVED;
  expect(found.end == wanted && (refuted || found.cost == optimum),
         "optimum %lld, target %lld%s, end %d, cost %lld: %s", (long long)optimum, (long long)target, how,
         (int)found.end, (long long)found.cost, trial->text(trial));
}

void flow_try_poured(struct flow_trial *trial, int64_t optimum, const int64_t *away, size_t count) {
  for (size_t k = 0; k < count; k++) {
    const int64_t target = optimum + away[k];
    const bool below = away[k] < 0;
    expect_found(trial, flow_search(trial, target, false, flow_fluid, SIZE_MAX), below, optimum, target, "");
    if (below)
      expect_found(trial, flow_search(trial, target, true, flow_fluid, SIZE_MAX), true, optimum, target,
                   ", windows");
    for (size_t most = 1; most <= 3; most++) {
      const struct flow_found narrow = flow_search(trial, target, false, flow_fluid, most);
      const bool allowed =
          below ? narrow.end != ZB_FRONT_SOLVED
                : narrow.end == ZB_FRONT_BARREN || (narrow.end == ZB_FRONT_SOLVED && narrow.cost >= optimum);
      expect(allowed, "optimum %lld, target %lld, at most %zu, end %d, cost %lld: %s", (long long)optimum,
             (long long)target, most, (int)narrow.end, (long long)narrow.cost, trial->text(trial));
    }
  }
}

int flow_try_whole(struct flow_trial *trial, int64_t poured, int64_t optimum) {
  int reached = 0;
  for (int more = 0; more <= 4; more += 2) {
    const int64_t target = optimum + more;
    const struct flow_found above = flow_search(trial, target, true, flow_fluid, SIZE_MAX);
    expect(above.end == ZB_FRONT_SOLVED && above.cost >= poured && above.cost <= optimum,
           "optimum %lld, target %lld, end %d, cost %lld: %s", (long long)optimum, (long long)target,
           (int)above.end, (long long)above.cost, trial->text(trial));
    for (int many = 1; many <= 4; many++) {
      const struct zb_flow_weights whole = {.nearly = many == 2 ? 100 : 4, .many = many};
      const struct flow_found laid =
          flow_search(trial, target, many % 2 == 0, whole, many == 3 ? 4 : SIZE_MAX);
      expect(laid.end == ZB_FRONT_BARREN || (laid.end == ZB_FRONT_SOLVED && laid.cost >= optimum),
             "optimum %lld, target %lld, %d W, end %d, cost %lld: %s", (long long)optimum, (long long)target,
             many, (int)laid.end, (long long)laid.cost, trial->text(trial));
      reached += laid.end == ZB_FRONT_SOLVED && laid.cost == optimum;
    }
  }
  return reached;
}

struct generate_random flow_random(uint64_t seed) {
  const char *given = getenv("FLOW_SEED");
  if (given) seed = strtoull(given, NULL, 10);
  print_message("# FLOW_SEED=%llu\n", (unsigned long long)seed);
  return (struct generate_random){seed};
}
