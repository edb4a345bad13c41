// ilp_engine.c - rounds of programs with rising targets.
//
// A round with target T decides whether a schedule of cost <= T exists, as far as its nodes go. Small targets
// come first: their programs are small, and a schedule found there needs no further proof. Rounds that ran
// out of nodes are tried again with more once every target has had its turn.
//
// Invariant: by GLPK's trees, which are claims, nothing costs less than `open_from`; by the windows, which
// are proofs, nothing costs less than guide.bound.
#include "ilp/ilp_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ilp/formulate.h"
#include "ilp/glpk_solve.h"
#include "ilp/guide.h"
#include "ilp/lp_write.h"
#include "ilp/refine.h"
#include "solver/exact/halt.h"
#include "solver/exact/root.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

static const int64_t most_terms = 2000000;
static const int64_t most_open = 1200; // GLPK gets nowhere in a larger tree
static const size_t most_states = (size_t)1 << 26;

struct run {
  const struct zb_problem *problem;
  struct zb_ilp_options options;
  struct zb_chain *chain;
  struct zb_halt halt;
  struct zb_lattice lattice;
  struct zb_state state, spare, ceiling;
  struct zb_guide guide;
  struct zb_ilp_report report;
  struct zb_deadline deadline; // of whole programs
  int64_t open_from;           // ticks
  int64_t tree_from;           // likewise, by trees that GLPK used up
};

static void tell(const struct run *run, const char *what) {
  const struct zb_problem *problem = run->problem;
  if (!problem->progress) return;
  const int64_t tick = run->chain->tick_ns;
  problem->progress(problem->progress_context, what,
                    run->guide.best_cost == INT64_MAX ? INT64_MAX : run->guide.best_cost * tick,
                    run->guide.bound * tick);
}

static enum zb_status open_run(const struct zb_problem *problem, const struct zb_ilp_options *options,
                               struct run *run, struct zb_error *error) {
  *run = (struct run){.problem = problem, .halt = {.deadline = &problem->deadline}};
  if (options) run->options = *options;
  run->lattice.most_states = most_states;
  run->lattice.halt = &run->halt;
  enum zb_status status = zb_guide_chain(problem, &run->chain, error);
  if (status == ZB_OK)
    status = zb_state_open(run->chain, problem->objective, &run->lattice, &run->state, error);
  if (status == ZB_OK)
    status = zb_state_open(run->chain, problem->objective, &run->lattice, &run->spare, error);
  if (status == ZB_OK)
    status = zb_state_open(run->chain, problem->objective, &run->lattice, &run->ceiling, error);
  if (status == ZB_OK) status = zb_guide_open(problem, run->chain, &run->guide, error);
  run->guide.aside = run->options.no_windows || run->options.no_guide;
  return status;
}

static void close_run(struct run *run) {
  zb_guide_close(&run->guide);
  zb_state_close(&run->ceiling);
  zb_state_close(&run->spare);
  zb_state_close(&run->state);
  zb_lattice_free(&run->lattice);
  zb_chain_free(run->chain);
}

// The schedules to start from: the caller's, and one that always fits.
static enum zb_status start(struct run *run, const struct zb_schedule *incumbent, struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  enum zb_status status = zb_schedule_sequential(run->problem->profile, &schedule, error);
  if (status == ZB_OK) zb_guide_offer(&run->guide, schedule);
  if (status != ZB_OK || !incumbent) return status;
  status = zb_schedule_copy(incumbent, &schedule, error);
  if (status == ZB_OK) zb_guide_offer(&run->guide, schedule);
  return status;
}

// Raises guide.bound to the windows' root bound, as far as time allows.
static void root_bound(struct run *run) {
  const int64_t tick = run->chain->tick_ns;
  const int64_t closed =
      (zb_bound_closed_form(run->problem->profile, run->problem->objective) + tick - 1) / tick;
  int64_t bound = 0;
  zb_root_bound(&run->state, &run->spare, &run->ceiling, closed, run->guide.best_cost, &bound);
  run->guide.bound = zb_max(run->guide.bound, zb_max(bound, closed));
}

// One program: every schedule that costs at most `target`.
static enum zb_status solve_round(struct run *run, int64_t target, int64_t nodes, struct zb_mip_result *mip,
                                  struct zb_error *error) {
  struct zb_formulate_options formulate = {
      .objective = run->problem->objective, .target = target, .most_terms = most_terms};
  *mip = (struct zb_mip_result){.end = ZB_MIP_DONE};
  run->guide.state = NULL;
  if (!run->options.no_windows) {
    zb_state_reset(&run->state, target);
    const enum zb_sweep swept = zb_state_propagate(&run->state);
    if (swept == ZB_SWEEP_REFUTED) {
      run->guide.bound = zb_max(run->guide.bound, target + 1);
      return ZB_OK;
    }
    if (swept != ZB_SWEEP_KEPT) {
      mip->end = swept == ZB_SWEEP_STOPPED ? ZB_MIP_TIME : ZB_MIP_TROUBLE;
      return ZB_OK;
    }
    formulate.state = &run->state;
    if (!run->options.no_guide) {
      run->guide.state = &run->state;
      run->guide.spare = &run->spare;
    }
  }
  struct zb_formulation formulation;
  enum zb_status status = zb_formulate(run->chain, &formulate, &formulation, error);
  run->report.orders = formulation.pairs;
  run->report.open = formulation.binaries;
  if (status == ZB_OK && formulation.binaries > most_open)
    status = zb_fail(error, ZB_OVER_LIMIT, "more than %lld orders are open", (long long)most_open);
  if (status == ZB_OK) {
    const struct zb_mip_options options = {.deadline = &run->deadline, .most_nodes = nodes};
    status = zb_guide_solve(&run->guide, &formulation, options, mip, error);
    run->report.programs++;
    run->report.nodes += mip->nodes;
    run->report.pruned += mip->pruned;
    if (mip->end == ZB_MIP_TROUBLE)
      snprintf(run->report.trouble, sizeof run->report.trouble, "%s", mip->trouble);
  }
  zb_formulation_free(&formulation);
  return status;
}

static enum zb_status all_rounds(struct run *run, struct zb_error *error) {
  struct zb_guide *guide = &run->guide;
  const int64_t first_step = zb_max(1, guide->bound / 4096);
  int64_t step = first_step, nodes = guide->aside ? 0 : 200;
  run->open_from = guide->bound;
  int64_t target = run->options.no_windows ? INT64_MAX : run->open_from;
  int troubles = 0;
  while (run->open_from < guide->best_cost && guide->bound < guide->best_cost &&
         !zb_deadline_passed(&run->deadline)) {
    const int64_t best_before = guide->best_cost;
    const int programs_before = run->report.programs;
    target = zb_min(target, best_before - 1);
    struct zb_mip_result mip;
    const enum zb_status status = solve_round(run, target, nodes, &mip, error);
    if (status == ZB_OVER_LIMIT) {
      run->report.too_large = true;
      return ZB_OK;
    }
    if (status != ZB_OK) return status;
    run->open_from = zb_max(run->open_from, guide->bound);
    const bool proven = guide->bound >= guide->best_cost;
    if (mip.end == ZB_MIP_DONE) {
      const int64_t none_below = zb_min(target + 1, guide->best_cost);
      run->open_from = zb_max(run->open_from, none_below);
      if (run->report.programs > programs_before) run->tree_from = none_below;
    } else if (mip.end == ZB_MIP_TIME) {
      return ZB_OK;
    } else if (mip.end == ZB_MIP_TROUBLE || (mip.end == ZB_MIP_STOPPED && !proven)) {
      if (++troubles == 3) return ZB_OK;
    }
    if (guide->best_cost < best_before) tell(run, "ilp");
    // A target that ran out of nodes at the top: all of them again, with more nodes.
    if (mip.end != ZB_MIP_DONE && target >= guide->best_cost - 1) {
      nodes *= 4;
      step = first_step;
      target = run->open_from;
    } else {
      target += step;
      step *= 2;
    }
  }
  return ZB_OK;
}

// Where whole programs were too large or took too long, the rest of the time goes into pieces of the best.
static enum zb_status refine(struct run *run, struct zb_error *error) {
  struct zb_result result;
  struct zb_refine_report report;
  const enum zb_status status = zb_ilp_refine(run->problem, run->guide.best, &result, &report, error);
  if (status != ZB_OK) return status;
  run->report.pieces = report.pieces;
  run->report.programs += (int)report.programs;
  run->report.nodes += report.nodes;
  run->guide.bound = zb_max(run->guide.bound, result.bound_ns / run->chain->tick_ns);
  if (result.cost_ns / run->chain->tick_ns < run->guide.best_cost) {
    zb_guide_offer(&run->guide, result.schedule);
    result.schedule = NULL;
  }
  zb_result_free(&result);
  return ZB_OK;
}

static void write_line(struct run *run) {
  struct zb_ilp_report *report = &run->report;
  report->seconds = zb_deadline_elapsed_s(&run->problem->deadline);
  if (report->too_large || report->pieces > 0) {
    snprintf(report->line, sizeof report->line,
             "ilp: %" PRId64 " of %" PRId64 " orders open, too many to decide at once; %" PRId64
             " pieces tried, %" PRId64 " nodes in %d programs",
             report->open, report->orders, report->pieces, report->nodes, report->programs);
  } else if (report->programs == 0) {
    snprintf(report->line, sizeof report->line, "ilp: windows alone, no program was solved");
  } else {
    snprintf(report->line, sizeof report->line,
             "ilp: %" PRId64 " of %" PRId64 " orders open, %" PRId64 " nodes in %d programs, %" PRId64
             " refuted by windows%s",
             report->open, report->orders, report->nodes, report->programs, report->pruned,
             run->guide.best_cost == run->guide.bound ? "; the windows prove the bound"
             : report->claimed                        ? "; that nothing is better is GLPK's word only"
                                                      : "");
  }
}

enum zb_status zb_ilp_solve(const struct zb_problem *problem, const struct zb_ilp_options *options,
                            const struct zb_schedule *incumbent, struct zb_result *result,
                            struct zb_ilp_report *report, struct zb_error *error) {
  if (report) *report = (struct zb_ilp_report){0};
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  if (!zb_mip_available()) return zb_fail(error, ZB_FAILED, "method ilp: %s", zb_mip_version());
  struct run run;
  enum zb_status status = open_run(problem, options, &run, error);
  if (status == ZB_OK) status = start(&run, incumbent, error);
  if (status == ZB_OK && !run.options.no_windows) root_bound(&run);
  const bool plain = run.options.no_windows || run.options.no_guide;
  if (status == ZB_OK) {
    run.deadline = problem->deadline;
    if (!plain && run.deadline.end_ns != INT64_MAX)
      run.deadline.end_ns = zb_clock_ns() + (int64_t)(zb_deadline_left_s(&problem->deadline) * 0.5e9);
    status = all_rounds(&run, error);
  }
  if (status == ZB_OK && !plain && run.open_from < run.guide.best_cost &&
      run.guide.bound < run.guide.best_cost)
    status = refine(&run, error);
  if (status == ZB_OK) {
    run.report.claimed = run.report.programs > 0 && run.tree_from >= run.guide.best_cost;
    if (run.options.no_windows) root_bound(&run); // the claim counts only where the windows agree
    write_line(&run);
    tell(&run, run.report.line);
    zb_guide_hand_over(&run.guide, run.report.nodes, result);
    if (report) *report = run.report;
  }
  close_run(&run);
  return status;
}

enum zb_status zb_ilp_write_lp(const struct zb_problem *problem, const struct zb_ilp_options *options,
                               int64_t most_ns, FILE *file, struct zb_error *error) {
  struct run run;
  struct zb_formulation formulation = {0};
  enum zb_status status = open_run(problem, options, &run, error);
  if (status == ZB_OK) status = start(&run, NULL, error);
  if (status == ZB_OK) {
    const int64_t target = most_ns > 0 ? most_ns / run.chain->tick_ns : run.guide.best_cost;
    struct zb_formulate_options formulate = {
        .objective = problem->objective, .target = target, .most_terms = most_terms};
    bool refuted = false;
    if (!run.options.no_windows) {
      zb_state_reset(&run.state, target);
      refuted = zb_state_propagate(&run.state) != ZB_SWEEP_KEPT;
      formulate.state = refuted ? NULL : &run.state;
    }
    status = zb_formulate(run.chain, &formulate, &formulation, error);
    if (refuted) formulation.program.contradiction = true;
  }
  if (status == ZB_OK) {
    char comment[160];
    snprintf(comment, sizeof comment, "%s of a pipeline schedule, in ticks of %lld ns; windows %s",
             zb_objective_word(problem->objective), (long long)run.chain->tick_ns,
             run.options.no_windows ? "off" : "on");
    status = zb_lp_write(&formulation.program, comment, file, error);
  }
  zb_formulation_free(&formulation);
  close_run(&run);
  return status;
}

static enum zb_status solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                            struct zb_result *result, struct zb_error *error) {
  return zb_ilp_solve(problem, NULL, incumbent, result, NULL, error);
}

const struct zb_engine zb_engine_ilp = {
    .name = "ilp",
    .help = "the integer program of the paper, written from the windows and solved by GLPK",
    .need = ZB_NEED_CHAIN,
    .solve = solve,
};
