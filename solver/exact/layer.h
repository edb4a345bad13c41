// layer.h - partial schedules that have done the same amount, those that no other of them covers.
//
// A partial schedule is packed into words: what nothing compares, a key (what it has done), then numbers
// (times). Of two with the same key one covers the other if none of its numbers is greater; a layer keeps
// what nothing covers. Those with one key are a group. In a group the numbers that tell most apart lie side
// by side in 32 bits each, so that four are compared at once.
#ifndef ZB_LAYER_H
#define ZB_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/paths.h"

struct zb_kept {
  uint64_t hash;   // of the key
  int64_t score;   // the more, the better
  uint32_t path;   // that leads to it
  uint32_t number; // in the order in which they came
  bool covered;    // or left out
  int64_t word[];  // aside, key, numbers
};

// Alike for all layers of a search.
struct zb_layer_shape {
  size_t aside;   // words that nothing compares
  size_t key;     // words of a key
  size_t numbers; // the first ones, which all have, and which are compared in 32 bits
  int coarse;     // bits of a number that the 32 leave out
  struct zb_paths *paths;
};

struct zb_layer_group;

// All zero: empty. zb_layer_free what was added to.
struct zb_layer {
  struct zb_kept **kept; // [count], covered ones among them
  size_t count, room;
  size_t added;                 // in all
  struct zb_layer_group *group; // open addressing
  size_t groups, group_room;    // group_room: a power of two, or 0
  char **block;
  size_t blocks, block_room, used; // used: bytes of the last block
};

enum zb_layer_end { ZB_LAYER_ADDED, ZB_LAYER_COVERED, ZB_LAYER_MEMORY };

// Adds what is packed in `words` words, `choice` after the path `before`, unless something covers it, and
// marks what it covers.
enum zb_layer_end zb_layer_add(struct zb_layer *layer, const struct zb_layer_shape *shape,
                               const int64_t *packed, size_t words, int64_t score, uint32_t before,
                               uint32_t choice);
// Takes out what is covered, and all but the `most` with the greatest scores; what is left out for that
// covers nothing from then on. Returns whether something was left out.
bool zb_layer_trim(struct zb_layer *layer, const struct zb_layer_shape *shape, size_t most);
// The same where nothing more will be added.
bool zb_layer_close(struct zb_layer *layer, const struct zb_layer_shape *shape, size_t most);
size_t zb_layer_bytes(const struct zb_layer *layer);
void zb_layer_free(struct zb_layer *layer, const struct zb_layer_shape *shape); // leaves it empty

#endif
