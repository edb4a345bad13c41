// window_engine.c - problem in, result out: ticks back to nanoseconds, orders back to a schedule.
#include "solver/exact/window_engine.h"

#include "solver/exact/flow_front.h"
#include "solver/exact/search.h"
#include "solver/model/bound.h"

// Most states of a table that zb_window_refute lays out: 8 bytes each.
static const size_t refuting_states = (size_t)1 << 25;

// Sweeps a device may take to refute a period between two ticks: windows can close in by 1 ns a round.
static const int64_t sharpen_sweeps = 400;

// Whether propagation refutes every period below `cost_ns`, in ticks that divide cost_ns - 1.
static enum zb_status refutes_below(const struct zb_problem *problem, int64_t cost_ns, bool *refuted,
                                    struct zb_error *error) {
  struct zb_chain *chain = NULL;
  struct zb_lattice lattice = {0};
  struct zb_state state = {0};
  const struct zb_halt halt = {.deadline = &problem->deadline};
  enum zb_status status = zb_chain_create(problem->profile, cost_ns - 1, &chain, error);
  if (status == ZB_OK) status = zb_state_open(chain, problem->objective, &lattice, &state, error);
  if (status == ZB_OK) {
    lattice.halt = &halt;
    state.most_sweeps = sharpen_sweeps * chain->devices;
    zb_state_reset(&state, (cost_ns - 1) / chain->tick_ns);
    *refuted = zb_state_propagate(&state) == ZB_SWEEP_REFUTED;
  }
  zb_state_close(&state);
  zb_lattice_free(&lattice);
  zb_chain_free(chain);
  return status;
}

// What was proven, in ns. No target below found->bound ticks can be met. Span and makespan are whole
// ticks; a period is more than the last refuted target, and is then tried once just below its cost.
static enum zb_status bound_in_ns(const struct zb_problem *problem, const struct zb_chain *chain,
                                  const struct zb_search_result *found, int64_t cost_ns, int64_t *bound_ns,
                                  struct zb_error *error) {
  *bound_ns = found->bound * chain->tick_ns;
  if (problem->objective != ZB_PERIOD || found->bound == 0) return ZB_OK;
  *bound_ns = (found->bound - 1) * chain->tick_ns + 1;
  bool refuted = false;
  enum zb_status status = ZB_OK;
  if (*bound_ns < cost_ns && found->bound == found->cost && found->proof.count == 0) {
    status = refutes_below(problem, cost_ns, &refuted, error);
  }
  if (refuted) *bound_ns = cost_ns;
  return status;
}

// A schedule's own timing has the last word: it must cost what the search says, and no less than the bound.
static enum zb_status fill_result(const struct zb_problem *problem, const struct zb_chain *chain,
                                  const struct zb_search_result *found, struct zb_result *result,
                                  struct zb_error *error) {
  struct zb_result filled = {.status = ZB_UNKNOWN, .cost_ns = INT64_MAX, .work = found->nodes};
  enum zb_status status = ZB_OK;
  if (found->cost != INT64_MAX) {
    struct zb_timer timer;
    status = zb_timer_open(problem->profile, &timer, error);
    if (status == ZB_OK) {
      status =
          zb_timer_cost(&timer, problem->objective, &found->orders, &filled.cost_ns, &filled.schedule, error);
    }
    zb_timer_close(&timer);
  }
  if (status == ZB_OK) status = bound_in_ns(problem, chain, found, filled.cost_ns, &filled.bound_ns, error);
  if (status == ZB_OK && found->cost != INT64_MAX) {
    if (zb_chain_ticks(chain, filled.cost_ns) != found->cost || filled.cost_ns < filled.bound_ns) {
      status =
          zb_fail(error, ZB_SELF_CHECK, "window: schedule costs %lld ns, search says %lld ticks, bound %lld",
                  (long long)filled.cost_ns, (long long)found->cost, (long long)filled.bound_ns);
    }
    filled.status = filled.cost_ns == filled.bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE;
  }
  filled.relaxation = found->proof.search == ZB_BY_FRONTS         ? zb_word_fronts
                      : found->proof.search == ZB_BY_FLUID_FRONTS ? zb_word_fluid_fronts
                      : chain->chunked && chain->chunked->fluid   ? zb_word_fluid
                                                                  : NULL;
  if (status == ZB_OK) status = zb_proof_print(&found->proof, chain, &filled.proof, error);
  if (status == ZB_OK) {
    *result = filled;
  } else {
    zb_schedule_free(filled.schedule);
  }
  return status;
}

// Without the dominance rule every backward may be fused.
static void allow_fused(struct zb_chain *chain) {
  chain->any_fused = true;
  if (chain->chunked) {
    zb_chunked_allow_fused(chain->chunked);
    return;
  }
  for (int d = 0; d < chain->devices; d++) chain->device[d].fused = true;
}

// Most states of a device that are worth counting W for: what that adds to the bound is seldom more than what
// the time it takes would.
static const size_t counted_states = (size_t)1 << 19;

// Whether the states of some device are more than that even under the best cost known.
static enum zb_status choose_relaxation(const struct zb_problem *problem, struct zb_chain *chain,
                                        const struct zb_schedule *incumbent, struct zb_error *error) {
  const struct zb_halt halt = {.deadline = &problem->deadline};
  struct zb_lattice lattice = {.most_states = counted_states, .halt = &halt};
  struct zb_state state = {0};
  struct zb_timer timer = {0};
  struct zb_orders orders = {0};
  int64_t cost_ns = zb_bound_closed_form(problem->profile, problem->objective);
  cost_ns += cost_ns / 4;
  enum zb_status status = zb_state_open(chain, problem->objective, &lattice, &state, error);
  if (status == ZB_OK && incumbent) {
    status = zb_timer_open(problem->profile, &timer, error);
    if (status == ZB_OK) status = zb_orders_create(chain, &orders, error);
    if (status == ZB_OK) {
      zb_orders_from_schedule(chain, incumbent, &orders);
      status = zb_timer_cost(&timer, problem->objective, &orders, &cost_ns, NULL, error);
    }
    zb_orders_free(&orders);
    zb_timer_close(&timer);
  }
  if (status == ZB_OK) {
    state.most_sweeps = chain->devices;
    zb_state_reset(&state, zb_chain_ticks(chain, cost_ns));
    chain->chunked->fluid = zb_state_propagate(&state) == ZB_SWEEP_MEMORY;
  }
  zb_state_close(&state);
  zb_lattice_free(&lattice);
  return status;
}

enum zb_status zb_window_refute(const struct zb_problem *problem, const struct zb_schedule *schedule,
                                int64_t cost_ns, struct zb_result *result, struct zb_error *error) {
  struct zb_chain *chain = NULL;
  const struct zb_halt halt = {.deadline = &problem->deadline};
  struct zb_lattice lattice = {.most_states = refuting_states, .halt = &halt};
  struct zb_state state = {0};
  struct zb_result found = {.status = ZB_UNKNOWN, .cost_ns = INT64_MAX};
  if (problem->objective == ZB_PERIOD) {
    *result = found;
    return ZB_OK;
  }
  enum zb_status status = zb_chain_create(problem->profile, 0, &chain, error);
  if (status == ZB_UNKNOWN) {
    *result = found;
    return ZB_OK;
  }
  if (status == ZB_OK && chain->chunked) status = choose_relaxation(problem, chain, schedule, error);
  if (status == ZB_OK) status = zb_state_open(chain, problem->objective, &lattice, &state, error);
  if (status == ZB_OK) {
    zb_state_reset(&state, cost_ns / chain->tick_ns - 1);
    if (zb_state_propagate(&state) == ZB_SWEEP_REFUTED) {
      found.bound_ns = cost_ns;
      found.relaxation = chain->chunked && chain->chunked->fluid ? zb_word_fluid : NULL;
    }
    *result = found;
  }
  zb_state_close(&state);
  zb_lattice_free(&lattice);
  zb_chain_free(chain);
  return status;
}

static enum zb_status solve_window(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                   struct zb_result *result, struct zb_error *error) {
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  struct zb_chain *chain = NULL;
  struct zb_search_result found;
  enum zb_status status = zb_chain_create(problem->profile, 0, &chain, error);
  if (status == ZB_UNKNOWN) {
    // More stages a device than are worth counting: nothing is proven.
    *result = (struct zb_result){.status = ZB_UNKNOWN, .cost_ns = INT64_MAX};
    return ZB_OK;
  }
  if (status != ZB_OK) return status;
  if (problem->rules_off & ZB_RULE_BIT(ZB_RULE_DOMINANCE)) allow_fused(chain);
  if (chain->chunked) status = choose_relaxation(problem, chain, incumbent, error);
  if (status == ZB_OK) status = zb_search_run(problem, chain, incumbent, &found, error);
  if (status == ZB_OK) {
    status = fill_result(problem, chain, &found, result, error);
    zb_search_result_free(&found);
  }
  zb_chain_free(chain);
  return status;
}

const struct zb_engine zb_engine_window = {
    .name = "window",
    .help = "bound and schedule by window propagation and complete search",
    .need = ZB_NEED_ANY,
    .solve = solve_window,
};
