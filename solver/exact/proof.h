// proof.h - a refutation as a tree of splits, and its text (contract.md section 3, `proof`).
#ifndef ZB_PROOF_H
#define ZB_PROOF_H

#include <stddef.h>
#include <stdint.h>

#include "solver/exact/window.h"

// What a split splits: an order variable, or a start offset. With several stages a device X is any count of F
// or B when an F or B starts, Y one of W.
enum zb_split_kind { ZB_SPLIT_X, ZB_SPLIT_Y, ZB_SPLIT_Z, ZB_SPLIT_FUSED, ZB_SPLIT_OFFSET };

// <= value on one side, > value on the other.
struct zb_split {
  enum zb_split_kind kind;
  int device, index;
  int64_t value;
  int array; // of an order variable: its lower windows, those of the chain or of chunked.h
};

// The order variables of one kind on a device, as arrays over the index: how many arrays there are, and one
// of them, with the earliest starts of the ops whose start it speaks of.
struct zb_variables {
  int array;
  const int64_t *lo, *hi, *early;
};
int zb_split_arrays(const struct zb_state *state, enum zb_split_kind kind, int device);
struct zb_variables zb_split_variables(const struct zb_state *state, enum zb_split_kind kind, int device,
                                       int number);

// Restricts the state to one side of a split: 0 for <= value, 1 for > value.
void zb_split_apply(struct zb_state *state, const struct zb_split *split, int side);

// A search that is redone from its word alone: front.h, flow_front.h.
enum zb_proof_search { ZB_NO_SEARCH, ZB_BY_FRONTS, ZB_BY_FLUID_FRONTS };

#define ZB_PROOF_LEAF (-1)
struct zb_proof_node {
  struct zb_split split;
  int32_t child[2]; // inner node, or ZB_PROOF_LEAF
};
// Root at node[0]; empty: propagation alone refutes.
struct zb_proof {
  struct zb_proof_node *node;
  size_t count, capacity;
  enum zb_proof_search search; // empty, and this refutes what propagation leaves
};
// Returns the new node's number, or ZB_PROOF_LEAF if memory ran out.
int32_t zb_proof_add(struct zb_proof *proof, const struct zb_split *split);
void zb_proof_free(struct zb_proof *proof);

// The preorder list as JSON text, owned by the caller; NULL in *text for an empty proof.
enum zb_status zb_proof_print(const struct zb_proof *proof, const struct zb_chain *chain, char **text,
                              struct zb_error *error);

#endif
