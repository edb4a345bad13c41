// refine.c - choosing pieces and solving them.
//
// Invariant: `ceiling` is a fixpoint of the windows, nothing kept, for a target below the best cost; a
// piece's windows start from a copy of it.
#include "ilp/refine.h"

#include <stdlib.h>

#include "ilp/formulate.h"
#include "ilp/glpk_solve.h"
#include "ilp/guide.h"
#include "solver/exact/halt.h"
#include "solver/exact/root.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

static const int64_t most_terms = 60000;
static const int64_t first_open = 150,
                     last_open = 2400; // orders in a piece, at first and when those are used up
static const int top_level = 10;       // size of pieces
static const int failures_a_level = 16;
static const size_t most_states = (size_t)1 << 26;

// A place where the schedule loses time.
struct wait {
  int device;
  int64_t at_ns, idle_ns;
};

struct refinement {
  const struct zb_problem *problem;
  struct zb_chain *chain;
  struct zb_halt halt;
  struct zb_lattice lattice;
  struct zb_state ceiling, piece, spare;
  struct zb_guide guide;
  struct zb_timeline timeline; // the best schedule's
  struct wait *wait;           // on its critical path, in time order
  int waits;
  int64_t waited_ns; // in all of them
  uint64_t random;
  int level;         // of pieces, 0 .. top_level
  int64_t most_open; // orders in a piece
  struct zb_refine_report report;
};

// splitmix64
static uint64_t random_bits(struct refinement *r) {
  uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// 0 .. count - 1
static int64_t random_below(struct refinement *r, int64_t count) {
  return count > 1 ? (int64_t)(random_bits(r) % (uint64_t)count) : 0;
}

// Where op `i`'s other input comes from: the same kind of op one device up (F) or down (B, BW); -1: none.
static int input_device(const struct refinement *r, int d, const struct zb_op *op) {
  if (op->kind == ZB_W) return -1;
  const int from = op->kind == ZB_F ? d - 1 : d + 1;
  return from < r->chain->devices ? from : -1;
}

static size_t position_of(const struct zb_schedule *schedule, int d, enum zb_kind kind, int microbatch) {
  size_t i = schedule->first[d];
  for (;; i++) {
    const struct zb_op *op = &schedule->ops[i];
    if (op->microbatch == microbatch &&
        (kind == ZB_F ? op->kind == ZB_F : op->kind == ZB_B || op->kind == ZB_BW))
      return i;
  }
}

// Follows the critical path back from the end of the device that makes the cost, and notes its waits.
static void find_waits(struct refinement *r) {
  const struct zb_schedule *schedule = r->guide.best;
  const struct zb_timeline *timeline = &r->timeline;
  int d = 0;
  int64_t most = -1;
  for (int e = 0; e < r->chain->devices; e++) {
    const int64_t first = r->problem->objective == ZB_MAKESPAN ? 0 : timeline->first_start_ns[e];
    if (timeline->last_end_ns[e] - first <= most) continue;
    most = timeline->last_end_ns[e] - first;
    d = e;
  }
  r->waits = 0;
  r->waited_ns = 0;
  size_t i = schedule->first[d + 1] - 1;
  while (i > schedule->first[d]) {
    const struct zb_op *op = &schedule->ops[i];
    const int64_t before = timeline->start_ns[i - 1] + zb_op_time(r->problem->profile, schedule->ops[i - 1]);
    const int64_t idle = timeline->start_ns[i] - before;
    if (idle > 0) {
      r->wait[r->waits++] = (struct wait){d, timeline->start_ns[i], idle};
      r->waited_ns += idle;
      d = input_device(r, d, op);
      i = position_of(schedule, d, op->kind, op->microbatch);
    } else {
      i--;
    }
  }
}

// After a better schedule: its times, its waits, and windows for what is better still. False: none is.
static bool follow_best(struct refinement *r, struct zb_error *error, enum zb_status *status) {
  *status = zb_timeline_compute(r->problem->profile, r->guide.best, &r->timeline, error);
  if (*status != ZB_OK) return false;
  find_waits(r);
  if (r->guide.best_cost <= r->guide.bound) return false;
  if (r->ceiling.target >= r->guide.best_cost) {
    zb_state_derive(&r->piece, &r->ceiling, r->guide.best_cost - 1);
  } else {
    zb_state_reset(&r->piece, r->guide.best_cost - 1);
  }
  const enum zb_sweep swept = zb_state_propagate(&r->piece);
  if (swept == ZB_SWEEP_REFUTED) r->guide.bound = r->guide.best_cost;
  if (swept != ZB_SWEEP_KEPT) return false;
  zb_state_derive(&r->ceiling, &r->piece, r->piece.target);
  return true;
}

// What a piece sets free.
struct piece {
  int first, last; // devices
  int64_t from_ns, to_ns;
  int radius; // how far counts may move in it, -1: as far as they like
};

static void keep_count(struct zb_state *state, int d, enum zb_window lo, enum zb_window hi, int index,
                       int count, int slack) {
  if (slack < 0) return;
  zb_state_tighten(state, d, lo, index, count - slack);
  zb_state_tighten(state, d, hi, index, count + slack);
}

// Keeps the best orders, but for the piece.
static void keep_outside(struct refinement *r, const struct piece *piece) {
  const struct zb_schedule *schedule = r->guide.best;
  struct zb_state *state = &r->piece;
  for (int d = 0; d < r->chain->devices; d++) {
    int forwards = 0, backwards = 0, weights = 0;
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const int64_t start = r->timeline.start_ns[i];
      const bool inside =
          d >= piece->first && d <= piece->last && start >= piece->from_ns && start < piece->to_ns;
      const int slack = inside ? piece->radius : 0;
      const enum zb_kind kind = schedule->ops[i].kind;
      if (kind == ZB_F) {
        keep_count(state, d, ZB_Z_LO, ZB_Z_HI, forwards++, weights, slack);
      } else if (kind == ZB_W) {
        weights++;
      } else {
        keep_count(state, d, ZB_X_LO, ZB_X_HI, backwards, forwards, slack);
        keep_count(state, d, ZB_Y_LO, ZB_Y_HI, backwards, weights, slack);
        // A fused backward that cannot pay here is as good as B and W.
        const bool fused = kind == ZB_BW && r->chain->device[d].fused;
        if (!inside) keep_count(state, d, ZB_FUSED_LO, ZB_FUSED_HI, backwards, fused, 0);
        weights += kind == ZB_BW;
        backwards++;
      }
    }
  }
}

// Around a wait (three times in four) or anywhere.
static struct piece choose_piece(struct refinement *r) {
  const int p = r->chain->devices;
  const int64_t whole = r->timeline.makespan_ns;
  int device = (int)random_below(r, p);
  int64_t at = random_below(r, whole + 1);
  if (r->waits > 0 && random_below(r, 4) > 0) {
    int64_t mark = random_below(r, r->waited_ns);
    int i = 0;
    while (mark >= r->wait[i].idle_ns) mark -= r->wait[i++].idle_ns;
    device = r->wait[i].device;
    at = r->wait[i].at_ns;
  }
  // Wide and short, narrow and long, or neither: about as many orders in each.
  // Or all of it, but no count far from where it is.
  const int shape = (int)random_below(r, 4);
  int devices = 1 + r->level / 2 + (int)random_below(r, 2 + r->level / 2);
  int64_t stretch = whole / 24 * (1 + r->level + random_below(r, 2 + r->level));
  if (shape == 0) {
    devices = p;
    stretch = whole / 48 * (1 + random_below(r, 2 + r->level));
  } else if (shape == 1) {
    devices = 1 + (int)random_below(r, 2 + r->level / 4);
    stretch = whole;
  } else if (shape == 2) {
    devices = p - (int)random_below(r, p);
    stretch = whole / 4 * (1 + random_below(r, 4));
  }
  struct piece piece = {.radius = shape == 2 ? 1 + r->level / 4 : -1,
                        .first = device - (int)random_below(r, devices),
                        .from_ns = at - random_below(r, stretch + 1)};
  piece.last = piece.first + devices - 1;
  piece.to_ns = piece.from_ns + stretch;
  return piece;
}

// The piece's windows for a target.
static enum zb_sweep enter_piece(struct refinement *r, const struct piece *piece, int64_t target) {
  zb_state_derive(&r->piece, &r->ceiling, target);
  keep_outside(r, piece);
  return zb_state_propagate(&r->piece);
}

// The least target at which the windows leave something of the piece, and them at it: there its program is
// smallest and its gain largest. REFUTED where they leave nothing that is better.
static enum zb_sweep lowest_target(struct refinement *r, const struct piece *piece) {
  int64_t high = r->guide.best_cost - 1, low = r->guide.bound;
  enum zb_sweep swept = enter_piece(r, piece, high);
  if (swept != ZB_SWEEP_KEPT) return swept;
  const int64_t close_enough = (high - low) / 64;
  while (high - low > close_enough) {
    const int64_t middle = low + (high - low) / 2;
    swept = enter_piece(r, piece, middle);
    if (swept == ZB_SWEEP_KEPT)
      high = middle;
    else if (swept == ZB_SWEEP_REFUTED)
      low = middle + 1;
    else
      return swept;
  }
  return r->piece.target == high && swept == ZB_SWEEP_KEPT ? swept : enter_piece(r, piece, high);
}

// Solves the piece's program at the windows' target; *done: GLPK says that nothing (else) is in it.
static enum zb_status solve_piece(struct refinement *r, bool *done, struct zb_error *error) {
  struct zb_formulation formulation;
  const struct zb_formulate_options formulate = {r->problem->objective, r->piece.target, &r->piece,
                                                 most_terms};
  enum zb_status status = zb_formulate(r->chain, &formulate, &formulation, error);
  *done = false;
  if (status == ZB_OVER_LIMIT) {
    status = ZB_OK;
  } else if (status == ZB_OK && formulation.binaries <= r->most_open) {
    // Gains come early in a tree or not at all.
    const int64_t most_nodes = 8 + 2000 / (formulation.binaries + 1);
    const struct zb_mip_options options = {
        .deadline = &r->problem->deadline, .most_nodes = most_nodes, .depth_first = true};
    struct zb_mip_result mip;
    status = zb_guide_solve(&r->guide, &formulation, options, &mip, error);
    r->report.programs++;
    r->report.nodes += mip.nodes;
    *done = mip.end == ZB_MIP_DONE;
  }
  zb_formulation_free(&formulation);
  return status;
}

// One piece; *on is false when there is nothing left to do.
static enum zb_status try_piece(struct refinement *r, bool *on, struct zb_error *error) {
  const int64_t before = r->guide.best_cost;
  const struct piece piece = choose_piece(r);
  enum zb_sweep swept = lowest_target(r, &piece);
  enum zb_status status = ZB_OK;
  r->report.pieces++;
  if (swept == ZB_SWEEP_REFUTED) r->report.refuted++;
  // Where the program at the lowest target is empty, two steps up.
  int64_t step = zb_max(1, (before - r->guide.bound) / 16);
  for (int i = 0; i < 3 && swept == ZB_SWEEP_KEPT && r->guide.best_cost == before && status == ZB_OK; i++) {
    bool done;
    const int64_t target = r->piece.target;
    status = solve_piece(r, &done, error);
    if (!done || target == before - 1 || r->guide.best_cost < before ||
        zb_deadline_passed(&r->problem->deadline))
      break;
    swept = enter_piece(r, &piece, zb_min(before - 1, target + step));
    step *= 4;
  }
  *on = swept == ZB_SWEEP_KEPT || swept == ZB_SWEEP_REFUTED;
  if (status == ZB_OK && r->guide.best_cost < before) {
    r->report.improved++;
    *on = follow_best(r, error, &status);
    const struct zb_problem *problem = r->problem;
    const int64_t tick = r->chain->tick_ns;
    if (problem->progress)
      problem->progress(problem->progress_context, "refine", r->guide.best_cost * tick,
                        r->guide.bound * tick);
  }
  return status;
}

static enum zb_status all_pieces(struct refinement *r, struct zb_error *error) {
  enum zb_status status;
  bool on = follow_best(r, error, &status);
  int failures = 0;
  while (status == ZB_OK && on && !zb_deadline_passed(&r->problem->deadline)) {
    const int64_t improved = r->report.improved;
    status = try_piece(r, &on, error);
    if (r->report.improved > improved) {
      failures = 0;
    } else if (++failures % failures_a_level == 0) {
      if (r->level == top_level) r->most_open = zb_min(last_open, r->most_open * 5 / 4);
      r->level = r->level < top_level ? r->level + 1 : 0;
    }
    if (failures > 20 * failures_a_level * top_level && r->problem->deadline.end_ns == INT64_MAX) break;
  }
  return status;
}

static enum zb_status open_refinement(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                      struct refinement *r, struct zb_error *error) {
  const size_t ops = incumbent->first[incumbent->devices];
  *r = (struct refinement){
      .problem = problem, .halt = {.deadline = &problem->deadline}, .random = problem->seed};
  r->most_open = first_open;
  r->lattice.halt = &r->halt;
  r->lattice.most_states = most_states;
  struct zb_schedule *copy = NULL;
  enum zb_status status = zb_guide_chain(problem, &r->chain, error);
  if (status == ZB_OK) status = zb_state_open(r->chain, problem->objective, &r->lattice, &r->ceiling, error);
  if (status == ZB_OK) status = zb_state_open(r->chain, problem->objective, &r->lattice, &r->piece, error);
  if (status == ZB_OK) status = zb_state_open(r->chain, problem->objective, &r->lattice, &r->spare, error);
  if (status == ZB_OK) status = zb_guide_open(problem, r->chain, &r->guide, error);
  if (status == ZB_OK) status = zb_schedule_copy(incumbent, &copy, error);
  if (status != ZB_OK) return status;
  r->wait = malloc(ops * sizeof *r->wait);
  if (!r->wait) {
    zb_schedule_free(copy);
    return zb_fail_memory(error);
  }
  r->guide.state = &r->piece;
  r->guide.spare = &r->spare;
  r->guide.restricted = true;
  if (zb_guide_offer(&r->guide, copy)) return ZB_OK;
  return zb_fail(error, ZB_FAILED, "refinement was given a schedule that does not hold");
}

static void close_refinement(struct refinement *r) {
  zb_guide_close(&r->guide);
  zb_timeline_free(&r->timeline);
  free(r->wait);
  zb_state_close(&r->ceiling);
  zb_state_close(&r->piece);
  zb_state_close(&r->spare);
  zb_lattice_free(&r->lattice);
  zb_chain_free(r->chain);
}

enum zb_status zb_ilp_refine(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                             struct zb_result *result, struct zb_refine_report *report,
                             struct zb_error *error) {
  if (report) *report = (struct zb_refine_report){0};
  if (!zb_mip_available()) return zb_fail(error, ZB_FAILED, "refinement: %s", zb_mip_version());
  struct refinement r;
  enum zb_status status = open_refinement(problem, incumbent, &r, error);
  if (status == ZB_OK) {
    const int64_t tick = r.chain->tick_ns;
    const int64_t closed = (zb_bound_closed_form(problem->profile, problem->objective) + tick - 1) / tick;
    int64_t bound = 0;
    // A bound is not what refinement is for: at most a quarter of the time.
    struct zb_deadline quarter = problem->deadline;
    if (quarter.end_ns != INT64_MAX)
      quarter.end_ns = zb_clock_ns() + (int64_t)(zb_deadline_left_s(&quarter) * 0.25e9);
    r.halt.deadline = &quarter;
    zb_root_bound(&r.piece, &r.spare, &r.ceiling, closed, r.guide.best_cost, &bound);
    r.halt.deadline = &problem->deadline;
    r.guide.bound = zb_max(bound, closed);
    r.ceiling.target = -1; // nothing to go on from yet
    r.report.start_ns = r.guide.best_cost * tick;
    status = all_pieces(&r, error);
    r.report.end_ns = r.guide.best_cost * tick;
  }
  if (status == ZB_OK) {
    zb_guide_hand_over(&r.guide, r.report.nodes, result);
    if (report) *report = r.report;
  }
  close_refinement(&r);
  return status;
}
