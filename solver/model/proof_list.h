// proof_list.h - a proof tree as a schedule file has it: a flat list in preorder (contract.md section 3,
// `proof`). What io reads and exact walks.
#ifndef ZB_PROOF_LIST_H
#define ZB_PROOF_LIST_H

#include <stddef.h>
#include <stdint.h>

enum zb_item_kind {
  ZB_ITEM_LEAF,   // propagation refutes it; the rest of the item is 0
  ZB_ITEM_COUNT,  // splits the number of ops of class `counted` done when op `index` of `starting` starts
  ZB_ITEM_FUSED,  // splits 0 and 1: backward `index` is fused
  ZB_ITEM_OFFSET, // splits the start against the device before, in ns
};

enum zb_item_class { ZB_CLASS_F, ZB_CLASS_B, ZB_CLASS_W, ZB_CLASS_COUNT }; // a BW is a B and a W

// An inner node is followed by the subtree of "<= value", then by that of "> value".
struct zb_proof_item {
  int64_t value;
  int32_t device, index;
  uint8_t kind, counted, starting; // enum zb_item_kind; enum zb_item_class
  // Positions of their stages on the device; ZB_CHUNK_ALL: the W of all its stages together.
  int16_t counted_chunk, starting_chunk;
};
enum { ZB_CHUNK_ALL = -1 };

struct zb_proof_list {
  struct zb_proof_item *item; // owned
  size_t count;
};

void zb_proof_list_free(struct zb_proof_list *list); // the items, not the struct

#endif
