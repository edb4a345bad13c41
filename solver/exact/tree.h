// tree.h - complete search under one target: either orders that meet it, or a proof that none do.
#ifndef ZB_TREE_H
#define ZB_TREE_H

#include "solver/exact/dive.h"
#include "solver/exact/orders.h"
#include "solver/exact/proof.h"
#include "solver/exact/window.h"

// Which open variable a node splits.
enum zb_pick {
  ZB_PICK_SMALLEST, // fewest values left, over the weight of its device: refutes best
  ZB_PICK_EARLIEST, // the op that can start soonest: finds some orders at once that the other misses
};

struct zb_tree_rule {
  enum zb_pick pick;
  bool more_first; // the > side first
  int64_t nodes;   // propagations before the tree is given up
  int dive_every;  // nodes between dives; 0: none
  bool probing;    // try extreme values of open x at every node before it is split
};

enum zb_tree_end {
  ZB_TREE_SOLVED,  // orders that meet the target
  ZB_TREE_REFUTED, // none exist below the node the search started from
  ZB_TREE_BARREN,  // none exist, but some leaf is refuted by timing alone, which is no proof: orders that
                   // wait for each other in a cycle of ops that take no time
  ZB_TREE_CAPPED,
  ZB_TREE_STOPPED,
  ZB_TREE_MEMORY,
  ZB_TREE_OPEN, // not an end: the search goes on
};

// Where probing stands (tree.c).
struct zb_tree_probe {
  bool running;         // in the middle of a pass
  bool thorough;        // the next pass tries every open x
  int from;             // where probing refuted last
  int at, quiet;        // where the pass is, variables since it last refuted one
  double most;          // score of `best`, below 0: none
  struct zb_split best; // so far
};

// One search, and memory that the next one uses again. Zero-initialise; between begin and end only `nodes`
// and `probe` are for others to read.
struct zb_tree {
  struct zb_tree_frame *frame; // [frame_capacity]
  size_t frame_capacity, depth;
  int64_t nodes; // propagations
  struct zb_state *state;
  struct zb_tree_rule rule;
  struct zb_timer *timer;
  double *weight;
  uint64_t *random;
  struct zb_orders *orders;
  struct zb_proof *proof;
  size_t mark; // of the state when the search began
  bool recording;
  bool at_node; // the state is at a new node's fixpoint; otherwise on the way to the next side
  bool barren;
  int dives;
  int64_t next_dive;
  struct zb_tree_probe probe;
  int64_t enough_work; // of the lattice, where this run pauses
};
void zb_tree_free(struct zb_tree *tree);

// A search that can pause: begin, run until it ends, end. It starts from a fixpoint of `state`, which nobody
// else may change in between and which end leaves as it was. `weight` [devices] grows with refutations;
// `proof` (may be NULL: not recorded) is complete on REFUTED. All are borrowed until the end.
void zb_tree_begin(struct zb_tree *tree, struct zb_state *state, const struct zb_tree_rule *rule,
                   double *weight, uint64_t *random, struct zb_proof *proof);
// Sweeps about `work` states. CAPPED: it can be run again, with another timer or lattice. `orders` is written
// on SOLVED.
enum zb_tree_end zb_tree_run(struct zb_tree *tree, int64_t work, struct zb_timer *timer,
                             struct zb_orders *orders);
void zb_tree_end(struct zb_tree *tree);

// The same in one go.
enum zb_tree_end zb_tree_search(struct zb_tree *tree, struct zb_state *state, const struct zb_tree_rule *rule,
                                int64_t work, struct zb_timer *timer, double *weight, uint64_t *random,
                                struct zb_orders *orders, struct zb_proof *proof);

#endif
