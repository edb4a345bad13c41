// guide.c - the hooks.
//
// Invariant: between two nodes the state is the fixpoint at the root of the program, at a target below the
// best cost; what a node adds is on the trail and is undone before the next.
#include "ilp/guide.h"

#include <stdlib.h>

#include "solver/model/number.h"

enum zb_status zb_guide_chain(const struct zb_problem *problem, struct zb_chain **chain,
                              struct zb_error *error) {
  return zb_chain_create(problem->profile, problem->objective == ZB_PERIOD, chain, error);
}

void zb_guide_hand_over(struct zb_guide *guide, int64_t nodes, struct zb_result *result) {
  const int64_t tick_ns = guide->chain->tick_ns;
  *result = (struct zb_result){.status = guide->best_cost == guide->bound ? ZB_OPTIMAL : ZB_FEASIBLE,
                               .schedule = guide->best,
                               .cost_ns = guide->best_cost * tick_ns,
                               .bound_ns = guide->bound * tick_ns,
                               .work = nodes};
  guide->best = NULL;
}

enum zb_status zb_guide_open(const struct zb_problem *problem, const struct zb_chain *chain,
                             struct zb_guide *guide, struct zb_error *error) {
  *guide = (struct zb_guide){.problem = problem, .chain = chain, .best_cost = INT64_MAX};
  return zb_builder_create(problem->profile, &guide->builder, error);
}

void zb_guide_close(struct zb_guide *guide) {
  zb_builder_free(&guide->builder);
  zb_timeline_free(&guide->timeline);
  zb_schedule_free(guide->best);
  guide->best = NULL;
}

bool zb_guide_offer(struct zb_guide *guide, struct zb_schedule *schedule) {
  const struct zb_profile *profile = guide->problem->profile;
  const enum zb_objective objective = guide->problem->objective;
  bool holds = zb_timeline_compute(profile, schedule, &guide->timeline, NULL) == ZB_OK;
  for (int d = 0; holds && d < profile->devices; d++)
    holds = guide->timeline.peak_bytes[d] <= profile->limit_bytes[d];
  if (holds && objective == ZB_PERIOD)
    holds = zb_timeline_period(profile, schedule, &guide->timeline, NULL) == ZB_OK;
  const int64_t cost =
      holds ? zb_timeline_cost(&guide->timeline, objective) / guide->chain->tick_ns : INT64_MAX;
  if (cost >= guide->best_cost) {
    zb_schedule_free(schedule);
    return false;
  }
  zb_schedule_free(guide->best);
  guide->best = schedule;
  guide->best_cost = cost;
  return true;
}

static void offer_values(struct zb_guide *guide, const double *value, bool by_time) {
  struct zb_schedule *schedule = NULL;
  if (zb_formulation_decode(guide->formulation, guide->problem->profile, value, by_time, &guide->builder,
                            &schedule, NULL) == ZB_OK)
    zb_guide_offer(guide, schedule);
}

static bool is_proven(const struct zb_guide *guide) {
  return !guide->aside && guide->best_cost <= guide->bound;
}

// Windows at the program's root for a target below the best; STOP when none is left.
static enum zb_mip_answer follow_best(struct zb_guide *guide) {
  if (is_proven(guide)) return ZB_MIP_STOP;
  if (!guide->state || guide->best_cost > guide->state->target) return ZB_MIP_GO;
  zb_state_derive(guide->spare, guide->state, guide->best_cost - 1);
  const enum zb_sweep swept = zb_state_propagate(guide->spare);
  if (swept == ZB_SWEEP_REFUTED) {
    if (!guide->restricted) guide->bound = guide->best_cost;
    return ZB_MIP_STOP;
  }
  if (swept != ZB_SWEEP_KEPT) return ZB_MIP_STOP;
  zb_state_derive(guide->state, guide->spare, guide->spare->target);
  return ZB_MIP_GO;
}

static const enum zb_window least[ZB_PAIRS] = {ZB_X_LO, ZB_Y_LO, ZB_Z_LO};
static const enum zb_window most[ZB_PAIRS] = {ZB_X_HI, ZB_Y_HI, ZB_Z_HI};

// Tells the windows how an open order is decided.
static void tell_order(struct zb_state *state, const struct zb_open_order *order, bool before) {
  if (before) {
    zb_state_tighten(state, order->device, least[order->pair], order->second, order->first + 1);
  } else {
    zb_state_tighten(state, order->device, most[order->pair], order->second, order->first);
  }
}

// W of a device where fusing is open are not counted in turn, so their orders mean nothing to the windows.
static bool is_told(const struct zb_formulation *f, const struct zb_open_order *order) {
  return order->pair == ZB_PAIR_X || !f->identity[order->device];
}

static void tell_node(const struct zb_formulation *f, struct zb_state *state, const int64_t *lower,
                      const int64_t *upper) {
  const int m = f->chain->microbatches;
  for (int d = 0; d < f->chain->devices; d++) {
    for (int i = 0; i < m && f->identity[d]; i++) {
      const int column = f->fused[(size_t)d * (size_t)m + (size_t)i];
      if (column < 0 || lower[column] < upper[column]) continue;
      zb_state_tighten(state, d, lower[column] == 1 ? ZB_FUSED_LO : ZB_FUSED_HI, i, lower[column]);
    }
  }
  for (size_t i = 0; i < f->open_orders; i++) {
    const struct zb_open_order *order = &f->open[i];
    if (is_told(f, order) && lower[order->column] == upper[order->column])
      tell_order(state, order, lower[order->column] == 1);
  }
}

static void learn_range(int64_t *lower, int64_t *upper, int column, int64_t lo, int64_t hi) {
  lower[column] = zb_max(lower[column], lo);
  upper[column] = zb_min(upper[column], hi);
}

static void learn_node(const struct zb_formulation *f, const struct zb_state *state, int64_t *lower,
                       int64_t *upper) {
  const int m = f->chain->microbatches;
  for (int d = 0; d < f->chain->devices; d++) {
    if (f->offset[d] >= 0)
      learn_range(lower, upper, f->offset[d], state->cell[zb_state_offset_lo(state, d)],
                  state->cell[zb_state_offset_hi(state, d)]);
    for (int i = 0; i < m; i++) {
      learn_range(lower, upper, f->end[zb_formulation_op(f, d, ZB_CLASS_F, i)],
                  zb_state_get(state, d, ZB_F_EARLY, i) + f->chain->device[d].f,
                  zb_state_get(state, d, ZB_F_LATE, i));
      learn_range(lower, upper, f->end[zb_formulation_op(f, d, ZB_CLASS_B, i)],
                  zb_state_get(state, d, ZB_B_EARLY_END, i), zb_state_get(state, d, ZB_B_LATE, i));
      const int fused = f->fused[(size_t)d * (size_t)m + (size_t)i];
      if (fused >= 0)
        learn_range(lower, upper, fused, zb_state_get(state, d, ZB_FUSED_LO, i),
                    zb_state_get(state, d, ZB_FUSED_HI, i));
    }
  }
  for (size_t i = 0; i < f->open_orders; i++) {
    const struct zb_open_order *order = &f->open[i];
    if (!is_told(f, order)) continue;
    learn_range(lower, upper, order->column,
                order->first < zb_state_get(state, order->device, least[order->pair], order->second),
                order->first < zb_state_get(state, order->device, most[order->pair], order->second));
  }
}

static enum zb_mip_answer enter_node(void *context, int64_t *lower, int64_t *upper) {
  struct zb_guide *guide = context;
  const struct zb_formulation *f = guide->formulation;
  if (follow_best(guide) == ZB_MIP_STOP) return ZB_MIP_STOP;
  const int cost = f->program.cost;
  if (guide->best_cost != INT64_MAX) upper[cost] = zb_min(upper[cost], guide->best_cost - 1);
  if (!guide->state) return ZB_MIP_GO;
  guide->state->recording = true;
  const size_t mark = zb_state_mark(guide->state);
  tell_node(f, guide->state, lower, upper);
  const enum zb_sweep swept = zb_state_propagate(guide->state);
  if (swept == ZB_SWEEP_KEPT) learn_node(f, guide->state, lower, upper);
  zb_state_undo(guide->state, mark);
  guide->state->recording = false;
  return swept == ZB_SWEEP_REFUTED ? ZB_MIP_PRUNE : ZB_MIP_GO;
}

static enum zb_mip_answer node_relaxed(void *context, double *value) {
  struct zb_guide *guide = context;
  zb_reduction_restore(guide->reduction, value);
  offer_values(guide, value, true);
  offer_values(guide, value, false);
  return is_proven(guide) ? ZB_MIP_STOP : ZB_MIP_GO;
}

static enum zb_mip_answer solution_found(void *context, double *value) {
  struct zb_guide *guide = context;
  zb_reduction_restore(guide->reduction, value);
  offer_values(guide, value, false);
  return is_proven(guide) ? ZB_MIP_STOP : ZB_MIP_GO;
}

enum zb_status zb_guide_solve(struct zb_guide *guide, struct zb_formulation *formulation,
                              struct zb_mip_options options, struct zb_mip_result *result,
                              struct zb_error *error) {
  // A program that keeps most of an order is mostly paths; one that does not is solved as well without.
  struct zb_reduction reduction = {0};
  const enum zb_status status =
      guide->restricted ? zb_ilp_program_reduce(&formulation->program, &reduction, error) : ZB_OK;
  if (status != ZB_OK) return status;
  guide->formulation = formulation;
  guide->reduction = &reduction;
  options.hooks = (struct zb_mip_hooks){guide, enter_node, node_relaxed, solution_found};
  zb_mip_solve(&formulation->program, &options, result);
  guide->formulation = NULL;
  guide->reduction = NULL;
  zb_reduction_free(&reduction);
  return ZB_OK;
}
