// guide.h - what the windows know, at every node of GLPK's tree; and what every solution is really worth.
//
// A node fixes orders. The guide gives them to the windows, propagates, and hands back all orders and times
// that follow, or prunes the node where nothing is left. Every relaxation and every solution is read as an
// order, timed exactly, and kept if it is the best so far: GLPK's own costs decide nothing.
#ifndef ZB_GUIDE_H
#define ZB_GUIDE_H

#include "ilp/formulate.h"
#include "ilp/glpk_solve.h"
#include "ilp/reduce.h"
#include "solver/exact/window.h"
#include "solver/model/engine.h"

// The chain that a guide works on: a tick is what divides all times, but 1 ns for the period, which may lie
// between.
enum zb_status zb_guide_chain(const struct zb_problem *problem, struct zb_chain **chain,
                              struct zb_error *error);

struct zb_guide {
  const struct zb_problem *problem; // borrowed
  const struct zb_chain *chain;     // borrowed
  struct zb_schedule_builder builder;
  struct zb_timeline timeline;
  struct zb_schedule *best; // owned
  int64_t best_cost;        // ticks; INT64_MAX without one
  int64_t bound;            // ticks, proven by windows alone
  // The program that is being solved.
  const struct zb_formulation *formulation; // borrowed
  const struct zb_reduction *reduction;     // of its program, borrowed
  struct zb_state *state;                   // windows at its root, at a fixpoint; NULL: none are used
  struct zb_state *spare;                   // scratch of the same kind
  bool restricted; // the program leaves schedules out on purpose: that it is empty proves nothing
  bool aside;      // GLPK's tree ends by itself, whatever the windows have proven
};

// `problem`, `chain` and the states are borrowed for as long as the guide is used. Close it also after a
// failure.
enum zb_status zb_guide_open(const struct zb_problem *problem, const struct zb_chain *chain,
                             struct zb_guide *guide, struct zb_error *error);
void zb_guide_close(struct zb_guide *guide);

// What the guide has found, as a result: its best schedule is handed over.
void zb_guide_hand_over(struct zb_guide *guide, int64_t nodes, struct zb_result *result);

// Times the schedule (taken over) and keeps it if it holds and beats the best; returns whether it did.
bool zb_guide_offer(struct zb_guide *guide, struct zb_schedule *schedule);

// Solves the formulation's program, reduced where it is restricted, with the guide's hooks and current state.
// `options` are the solver's, without hooks. FAILED only when memory runs out; `result` says how it went.
enum zb_status zb_guide_solve(struct zb_guide *guide, struct zb_formulation *formulation,
                              struct zb_mip_options options, struct zb_mip_result *result,
                              struct zb_error *error);

#endif
