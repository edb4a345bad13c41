// unit.h - the pieces of work that a search hands to its threads.
//
// A unit starts from what is known when its round begins, or, where search.c links it to the units before it,
// from the best schedule that they found; it reads nothing else that units of the round write. So a round has
// one outcome, whatever the number of threads.
#ifndef ZB_UNIT_H
#define ZB_UNIT_H

#include "solver/exact/flow_front.h"
#include "solver/exact/front.h"
#include "solver/exact/orders.h"
#include "solver/exact/proof.h"
#include "solver/exact/tree.h"
#include "solver/exact/window.h"
#include "solver/model/engine.h"

#define ZB_NO_COST INT64_MAX

// What all units of a round may read.
struct zb_known {
  const struct zb_chain *chain;
  const struct zb_profile *profile;
  enum zb_objective objective;
  int64_t bound, cost;            // ticks; cost ZB_NO_COST: no schedule yet
  int64_t barren;                 // targets below this have no schedule, proven or not
  const struct zb_orders *best;   // of that cost
  unsigned rules_off;             // of solver/exact/rules.h
  const struct zb_state *ceiling; // a fixpoint at the largest target of interest
};

enum zb_unit_kind {
  ZB_UNIT_RAISE,     // complete trees that narrow in on the best bound they can prove
  ZB_UNIT_CLIMB,     // one tree at the bound: if that is the optimum, dives inside a tree mostly find it
  ZB_UNIT_NEIGHBOUR, // small trees around the best orders
  ZB_UNIT_FRONT,     // partial schedules layer by layer, below the cost
  ZB_UNIT_FRONT_UP,  // the same from the bound up
  ZB_UNIT_FLOW,      // partial schedules by orders of F and B, below the cost
  ZB_UNIT_FLOW_UP,   // the same with fluid W, from the bound up
  ZB_UNIT_IMPROVE,   // somebody else's search for schedules
};

struct zb_unit {
  enum zb_unit_kind kind;
  const struct zb_improver *improver; // IMPROVE: borrowed
  struct zb_tree_rule rule;           // of each tree
  int64_t work;                       // states to sweep before it is enough
  double *weight;                     // [devices] of this unit's stream; kept from round to round
  uint64_t random;                    // likewise
  double part;                        // RAISE: of the gap, to where the next target is; kept
  int share;                          // of a round's work, in sixteenths
  // RAISE: the tree that rounds go on with, its state, and the states that it may sweep, in all and still;
  // kept.
  struct zb_state state;
  struct zb_tree tree;
  struct zb_proof tree_proof;
  bool tree_open, probed; // probed: `part` comes from trees with probes
  int64_t tree_most, tree_left;
  // FRONT: the search that rounds go on with, its target, how many a layer it keeps below the cost, the most
  // that there is room for, and whether that has found all that it can. From the bound: the part of the way
  // to the cost, the work after which a target is given up, and what is left of it. All kept.
  struct zb_front *front;
  int64_t front_target, front_work, front_left;
  size_t front_width, front_most;
  double front_part;
  bool front_open, front_done;
  // FLOW, FLOW_UP: likewise. `flow_part`: of the gap, from where it starts to the target. `flow_rises`: the
  // last target was refuted. `flow_refuted`, `flow_took`: the last that was, and what it took; 0: none.
  struct zb_flow_front *flow;
  int64_t flow_target, flow_work, flow_left, flow_refuted, flow_took;
  size_t flow_width;
  double flow_part;
  bool flow_open, flow_done, flow_rises;
  int flow_manner;
  int level, failures; // NEIGHBOUR: how wide neighbourhoods are, tries since the last success; kept
  struct zb_halt halt;

  int64_t bound;         // found: every target below it is refuted
  struct zb_proof proof; // of bound - 1, where it rose
  int64_t barren;
  int64_t cost;            // ZB_NO_COST: nothing better
  struct zb_orders orders; // of that cost
  int64_t nodes;
  enum zb_status status; // ZB_OK, or the failure that ended it
};

// Scratch of one thread.
struct zb_worker {
  struct zb_lattice lattice;
  struct zb_state state;
  struct zb_tree tree;
  struct zb_timer timer;
  struct zb_orders trial;
};
enum zb_status zb_worker_open(const struct zb_known *known, size_t most_states, struct zb_worker *worker,
                              struct zb_error *error);
void zb_worker_close(struct zb_worker *worker);

void zb_unit_run(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);

// The kinds of work, in files of their names.
void zb_unit_raise(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);
void zb_unit_climb(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);
void zb_unit_front(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);
void zb_unit_flow(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);
void zb_unit_neighbour(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);
void zb_unit_improve(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);

// The fixpoint of `state` under a target: OPEN where it stands, else how a tree would end.
enum zb_tree_end zb_unit_aim(struct zb_state *state, const struct zb_known *known, int64_t target);
// The same for the searches by layers: how one would begin or end.
enum zb_front_end zb_unit_aim_front(struct zb_state *state, const struct zb_known *known, int64_t target);
// Notes how a tree under `target` ended; takes `proof` over where it is one.
void zb_unit_take_end(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker,
                      int64_t target, enum zb_tree_end end, struct zb_proof *proof);

// Raises the unit's bound: nothing below it meets, and `search` says so again.
void zb_unit_raise_bound(struct zb_unit *unit, int64_t bound, enum zb_proof_search search);

// Takes worker->trial as the unit's result if it is better than what the unit knows.
void zb_unit_offer(struct zb_unit *unit, const struct zb_known *known, struct zb_worker *worker);

#endif
