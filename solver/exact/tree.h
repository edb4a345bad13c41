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
  int64_t work;    // states swept before it is
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

// Scratch of one thread, reused. Zero-initialise.
struct zb_tree {
  struct zb_tree_frame *frame;
  size_t frame_capacity;
  int64_t nodes; // propagations of the last search
};
void zb_tree_free(struct zb_tree *tree);

// From a fixpoint of `state` (left as it was). `weight` [devices] grows with refutations. `orders` is
// written on SOLVED; `proof` (may be NULL: not recorded) is complete on REFUTED.
enum zb_tree_end zb_tree_search(struct zb_tree *tree, struct zb_state *state, const struct zb_tree_rule *rule,
                                struct zb_timer *timer, double *weight, uint64_t *random,
                                struct zb_orders *orders, struct zb_proof *proof);

#endif
