// tree.c - depth-first search over the order variables.
//
// A node is a fixpoint of propagation; it splits one variable in two, and a side that propagation refutes
// is a leaf. Wide offsets (the period's) are split first, then x, which fixes how F and B interleave, y and
// z, which say where W goes, fused, and last what is left of the offsets. Where memory is tight, probing
// extreme values of x before each split is what makes refutations short. The recorded tree is a proof by the
// rules of propagation alone.
//
// Invariant: the two sides of every recorded node cover all schedules that its own splits allow.
#include "solver/exact/tree.h"

#include <stdlib.h>

struct zb_tree_frame {
  struct zb_split split;
  size_t mark;
  int32_t node; // in the proof
  int tried;    // sides
  int side;     // the one being searched
};

void zb_tree_free(struct zb_tree *tree) {
  free(tree->frame);
  *tree = (struct zb_tree){0};
}

// Offset intervals wider than this part of the target are split before any order.
static const int64_t wide_offset = 16384;

// Best variable of one kind; false if all are fixed.
static bool pick_order(const struct zb_state *state, const struct zb_tree_rule *rule, const double *weight,
                       enum zb_split_kind kind, struct zb_split *split) {
  const int m = state->chain->microbatches;
  double best = -1;
  for (int d = 0; d < state->chain->devices; d++) {
    const double lead = (double)zb_chain_lead(state->chain, state->objective, d);
    const int arrays = zb_split_arrays(state, kind, d);
    for (int a = 0; a < arrays; a++) {
      const struct zb_variables at = zb_split_variables(state, kind, d, a);
      for (int i = 0; i < m; i++) {
        if (at.lo[i] == at.hi[i]) continue;
        const double score = rule->pick == ZB_PICK_SMALLEST ? (double)(at.hi[i] - at.lo[i]) / weight[d]
                                                            : (double)at.early[i] + lead;
        if (best >= 0 && score >= best) continue;
        best = score;
        *split = (struct zb_split){kind, d, i, rule->more_first ? at.hi[i] - 1 : at.lo[i], at.array};
      }
    }
  }
  return best >= 0;
}

// Widest offset interval of more than `width` ticks.
static bool pick_offset(const struct zb_state *state, int64_t width, struct zb_split *split) {
  int64_t widest = width;
  for (int d = 0; d < state->chain->devices; d++) {
    const int64_t lo = state->cell[zb_state_offset_lo(state, d)],
                  hi = state->cell[zb_state_offset_hi(state, d)];
    if (hi - lo <= widest) continue;
    widest = hi - lo;
    *split = (struct zb_split){ZB_SPLIT_OFFSET, d, 0, lo + (hi - lo) / 2, 0};
  }
  return widest > width;
}

// Wide offsets first: orders say little while they are.
static bool pick(const struct zb_state *state, const struct zb_tree_rule *rule, const double *weight,
                 struct zb_split *split) {
  if (pick_offset(state, state->target / wide_offset, split)) return true;
  // Where W is poured, nothing is gained by saying when it runs.
  const bool fluid = state->chain->chunked && state->chain->chunked->fluid;
  for (int kind = ZB_SPLIT_X; kind <= (fluid ? ZB_SPLIT_X : ZB_SPLIT_Z); kind++) {
    if (pick_order(state, rule, weight, (enum zb_split_kind)kind, split)) return true;
  }
  return !fluid && state->chain->any_fused && pick_order(state, rule, weight, ZB_SPLIT_FUSED, split);
}

static bool meets_target(const struct zb_state *state, struct zb_timer *timer,
                         const struct zb_orders *orders) {
  int64_t cost_ns;
  return zb_timer_cost(timer, state->objective, orders, &cost_ns, NULL, NULL) == ZB_OK &&
         cost_ns <= state->target * state->chain->tick_ns;
}

// All orders are fixed: their only word on every device, and whether it meets the target.
static enum zb_tree_end finish(struct zb_state *state, struct zb_timer *timer, uint64_t *random,
                               struct zb_orders *orders) {
  for (int d = 0; d < state->chain->devices; d++) {
    const enum zb_sweep swept = zb_state_sweep(state, d);
    if (swept == ZB_SWEEP_STOPPED) return ZB_TREE_STOPPED;
    if (swept == ZB_SWEEP_MEMORY) return ZB_TREE_MEMORY;
    if (!zb_walk(state, d, &zb_preferences[0], random, orders)) return ZB_TREE_REFUTED;
  }
  return meets_target(state, timer, orders) ? ZB_TREE_SOLVED : ZB_TREE_REFUTED;
}

static bool reserve_frame(struct zb_tree *tree) {
  if (tree->depth < tree->frame_capacity) return true;
  const size_t capacity = tree->frame_capacity ? 2 * tree->frame_capacity : 256;
  struct zb_tree_frame *grown = realloc(tree->frame, capacity * sizeof *grown);
  if (!grown) return false;
  tree->frame = grown;
  tree->frame_capacity = capacity;
  return true;
}

static bool spent(const struct zb_tree *tree) {
  return tree->nodes >= tree->rule.nodes || tree->state->lattice->work >= tree->enough_work;
}

// A dive from a fixpoint; SOLVED, or what stopped it, or CAPPED: nothing found.
static enum zb_tree_end try_dive(struct zb_tree *tree) {
  const struct zb_dive dive = {
      .from = tree->dives % 4 == 3 ? ZB_DIVE_FIRST : ZB_DIVE_LAST,
      .preference = tree->dives / 2 % 2,
      .tries = 3,
      .noise = tree->dives < 4   ? 0
               : tree->dives % 2 ? 8
                                 : 32,
  };
  tree->dives++;
  const enum zb_sweep swept = zb_dive(tree->state, &dive, tree->random, tree->orders);
  if (swept == ZB_SWEEP_STOPPED) return ZB_TREE_STOPPED;
  if (swept == ZB_SWEEP_MEMORY) return ZB_TREE_MEMORY;
  // Where offsets are open, orders that propagation keeps may still miss the target.
  return swept == ZB_SWEEP_KEPT && meets_target(tree->state, tree->timer, tree->orders) ? ZB_TREE_SOLVED
                                                                                        : ZB_TREE_CAPPED;
}

// Everything is fixed and nothing refutes it, but the orders cannot run: ops without duration wait for
// each other in a cycle.
static enum zb_tree_end close_barren(struct zb_tree *tree) {
  tree->barren = true;
  if (tree->depth == 0) return ZB_TREE_BARREN;
  zb_state_undo(tree->state, tree->frame[tree->depth - 1].mark);
  return ZB_TREE_OPEN;
}

// Records a split at the state's fixpoint as the deepest frame.
static enum zb_tree_end push_frame(struct zb_tree *tree, const struct zb_split *split) {
  struct zb_tree_frame frame = {.split = *split, .mark = zb_state_mark(tree->state), .node = ZB_PROOF_LEAF};
  if (!reserve_frame(tree)) return ZB_TREE_MEMORY;
  if (tree->proof) {
    frame.node = zb_proof_add(tree->proof, split);
    if (frame.node == ZB_PROOF_LEAF) return ZB_TREE_MEMORY;
    if (tree->depth > 0) {
      const struct zb_tree_frame *parent = &tree->frame[tree->depth - 1];
      tree->proof->node[parent->node].child[parent->side] = frame.node;
    }
  }
  tree->frame[tree->depth++] = frame;
  return ZB_TREE_OPEN;
}

static enum zb_tree_end end_of(enum zb_sweep swept) {
  return swept == ZB_SWEEP_STOPPED  ? ZB_TREE_STOPPED
         : swept == ZB_SWEEP_MEMORY ? ZB_TREE_MEMORY
                                    : ZB_TREE_REFUTED;
}

// Tries one extreme value of a variable. Refuted, the other side becomes the node: KEPT, or REFUTED with it.
static enum zb_tree_end probe(struct zb_tree *tree, const struct zb_split *split, int side, bool *refuted,
                              size_t *impact) {
  struct zb_state *state = tree->state;
  const size_t mark = zb_state_mark(state);
  tree->nodes++;
  zb_split_apply(state, split, side);
  enum zb_sweep swept = zb_state_propagate(state);
  *impact = zb_state_mark(state) - mark;
  zb_state_undo(state, mark);
  *refuted = swept == ZB_SWEEP_REFUTED;
  if (swept == ZB_SWEEP_KEPT) return ZB_TREE_OPEN;
  if (!*refuted) return end_of(swept);
  const enum zb_tree_end pushed = push_frame(tree, split);
  if (pushed != ZB_TREE_OPEN) return pushed;
  struct zb_tree_frame *frame = &tree->frame[tree->depth - 1];
  frame->tried = 2;
  frame->side = 1 - side;
  zb_split_apply(state, split, 1 - side);
  swept = zb_state_propagate(state);
  return swept == ZB_SWEEP_KEPT ? ZB_TREE_OPEN : end_of(swept);
}

// Probes the extremes of open x until a whole pass refutes none: all of them the first time, then those
// with two values left, where a refutation decides. CAPPED with tree->probe.running: it goes on there when
// the tree is run again, since without its first pass the tree that follows is hopeless. Otherwise OPEN, with
// the split whose sides both changed most, CAPPED where none is open, or how the search ends.
static enum zb_tree_end probe_all(struct zb_tree *tree, struct zb_split *best) {
  struct zb_state *state = tree->state;
  struct zb_tree_probe *pass = &tree->probe;
  const int m = state->chain->microbatches, p = state->chain->devices;
  int count = 0;
  for (int d = 0; d < p; d++) count += zb_split_arrays(state, ZB_SPLIT_X, d) * m;
  if (!pass->running) {
    pass->at = pass->from;
    pass->quiet = 0;
    pass->most = -1;
  }
  pass->running = true;
  for (; pass->quiet < count; pass->at = (pass->at + 1) % count, pass->quiet++) {
    int d = 0, a = pass->at / m;
    const int k = pass->at % m;
    for (int arrays; a >= (arrays = zb_split_arrays(state, ZB_SPLIT_X, d)); d++) a -= arrays;
    const struct zb_variables at = zb_split_variables(state, ZB_SPLIT_X, d, a);
    size_t impact[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
      for (bool refuted = true; refuted;) {
        const int64_t lo = at.lo[k], hi = at.hi[k];
        if (lo == hi || (!pass->thorough && hi - lo > 1)) break;
        const struct zb_split split = {ZB_SPLIT_X, d, k, side == 0 ? lo : hi - 1, at.array};
        if (spent(tree)) return ZB_TREE_CAPPED;
        const enum zb_tree_end end = probe(tree, &split, side, &refuted, &impact[side]);
        if (refuted) pass->from = pass->at;
        if (end != ZB_TREE_OPEN) {
          pass->running = pass->thorough = false;
          return end;
        }
        if (refuted) pass->quiet = 0, pass->most = -1;
      }
    }
    if (at.lo[k] == at.hi[k]) continue;
    const double score = ((double)impact[0] + 1) * ((double)impact[1] + 1);
    if (score > pass->most) {
      pass->most = score;
      pass->best = (struct zb_split){ZB_SPLIT_X, d, k, at.lo[k], at.array};
    }
  }
  pass->running = pass->thorough = false;
  *best = pass->best;
  return pass->most >= 0 ? ZB_TREE_OPEN : ZB_TREE_CAPPED;
}

// Opens a frame for the node that the state is at: its split, and its place in the proof. OPEN, or how the
// search ends.
static enum zb_tree_end open_node(struct zb_tree *tree) {
  struct zb_state *state = tree->state;
  struct zb_split split;
  bool chosen = false;
  if (tree->rule.probing && !pick_offset(state, state->target / wide_offset, &split)) {
    const enum zb_tree_end probed = probe_all(tree, &split);
    if (probed == ZB_TREE_REFUTED) return ZB_TREE_OPEN;
    if (tree->probe.running || (probed != ZB_TREE_OPEN && probed != ZB_TREE_CAPPED)) return probed;
    chosen = probed == ZB_TREE_OPEN;
  }
  if (tree->rule.dive_every > 0 && tree->nodes >= tree->next_dive) {
    tree->next_dive = tree->nodes + tree->rule.dive_every;
    const enum zb_tree_end dived = try_dive(tree);
    if (dived != ZB_TREE_CAPPED) return dived;
  }
  if (!chosen && !pick(state, &tree->rule, tree->weight, &split)) {
    const enum zb_tree_end end = finish(state, tree->timer, tree->random, tree->orders);
    if (end != ZB_TREE_REFUTED) return end;
    if (state->chain->chunked && state->chain->chunked->fluid) return ZB_TREE_CAPPED;
    // Fixed orders are exact where offsets are; only the period has offsets left to split.
    if (!pick_offset(state, 0, &split)) return close_barren(tree);
  }
  return push_frame(tree, &split);
}

// Goes to the next side that propagation keeps, closing nodes whose sides are both refuted. OPEN: the
// state is at a new node.
static enum zb_tree_end next_side(struct zb_tree *tree) {
  struct zb_state *state = tree->state;
  for (;;) {
    struct zb_tree_frame *frame = &tree->frame[tree->depth - 1];
    if (frame->tried == 2) {
      if (--tree->depth == 0) return tree->barren ? ZB_TREE_BARREN : ZB_TREE_REFUTED;
      zb_state_undo(state, tree->frame[tree->depth - 1].mark);
      continue;
    }
    if (spent(tree)) return ZB_TREE_CAPPED;
    tree->nodes++;
    frame->side = tree->rule.more_first ? 1 - frame->tried : frame->tried;
    frame->tried++;
    zb_split_apply(state, &frame->split, frame->side);
    switch (zb_state_propagate(state)) {
    case ZB_SWEEP_KEPT:
      return ZB_TREE_OPEN;
    case ZB_SWEEP_STOPPED:
      return ZB_TREE_STOPPED;
    case ZB_SWEEP_MEMORY:
      return ZB_TREE_MEMORY;
    case ZB_SWEEP_REFUTED:
      tree->weight[state->refuted_by] += 1;
      zb_state_undo(state, frame->mark);
    }
  }
}

void zb_tree_begin(struct zb_tree *tree, struct zb_state *state, const struct zb_tree_rule *rule,
                   double *weight, uint64_t *random, struct zb_proof *proof) {
  *tree = (struct zb_tree){.frame = tree->frame,
                           .frame_capacity = tree->frame_capacity,
                           .state = state,
                           .rule = *rule,
                           .weight = weight,
                           .random = random,
                           .proof = proof,
                           .at_node = true,
                           .probe = {.thorough = true},
                           .mark = zb_state_mark(state),
                           .recording = state->recording};
  state->recording = true;
}

enum zb_tree_end zb_tree_run(struct zb_tree *tree, int64_t work, struct zb_timer *timer,
                             struct zb_orders *orders) {
  const int64_t done = tree->state->lattice->work;
  tree->timer = timer;
  tree->orders = orders;
  tree->enough_work = work < INT64_MAX - done ? done + work : INT64_MAX;
  enum zb_tree_end end = ZB_TREE_OPEN;
  while (end == ZB_TREE_OPEN) {
    end = tree->at_node ? open_node(tree) : next_side(tree);
    if (end == ZB_TREE_OPEN) tree->at_node = !tree->at_node;
  }
  return end;
}

void zb_tree_end(struct zb_tree *tree) {
  zb_state_undo(tree->state, tree->mark);
  tree->state->recording = tree->recording;
}

enum zb_tree_end zb_tree_search(struct zb_tree *tree, struct zb_state *state, const struct zb_tree_rule *rule,
                                int64_t work, struct zb_timer *timer, double *weight, uint64_t *random,
                                struct zb_orders *orders, struct zb_proof *proof) {
  zb_tree_begin(tree, state, rule, weight, random, proof);
  const enum zb_tree_end end = zb_tree_run(tree, work, timer, orders);
  zb_tree_end(tree);
  return end;
}
