// layer.c - groups by key in a hash table, nodes packed in blocks that go back with their layer.
//
// Invariant: a group holds no two of which one covers the other.
#include "solver/exact/layer.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16 };

// Four numbers compared at once.
typedef int32_t four __attribute__((vector_size(16)));
typedef int64_t two __attribute__((vector_size(16)));

struct zb_layer_group {
  uint64_t hash;
  struct zb_kept **kept;
  four *row; // [room] rows of row_fours
  int count, room;
};

static size_t row_fours(const struct zb_layer_shape *shape) { return (shape->numbers + 3) / 4; }

static void write_row(const struct zb_layer_shape *shape, const int64_t *packed, four *row) {
  const int64_t *number_of = packed + shape->aside + shape->key;
  for (size_t i = 0; i < shape->numbers; i++) {
    const int64_t number = number_of[i] >> shape->coarse;
    row[i / 4][i % 4] = (int32_t)number;
  }
  for (size_t i = shape->numbers; i % 4 != 0; i++) row[i / 4][i % 4] = 0;
}

static uint64_t hash_of(const int64_t *key, size_t words) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < words; i++) {
    hash = (hash ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

static bool any(four x) {
  const two halves = (two)x;
  return (halves[0] | halves[1]) != 0;
}

// Whether no number of row x is greater than that of y, and the other way round.
static void compare_rows(const four *x, const four *y, size_t fours, bool *not_above, bool *not_below) {
  four above = {0}, below = {0};
  for (size_t i = 0; i < fours; i++) {
    above |= x[i] > y[i];
    below |= x[i] < y[i];
  }
  *not_above = !any(above);
  *not_below = !any(below);
}

static bool covers(const int64_t *x, const int64_t *y, size_t from, size_t words) {
  // What arrives tells more apart than the rows have not seen yet.
  for (size_t i = words; i-- > from;)
    if (x[i] > y[i]) return false;
  return true;
}

static void *take_bytes(struct zb_layer *layer, size_t bytes) {
  const size_t block_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
  if (layer->blocks == 0 || layer->used + bytes > BLOCK_BYTES) {
    if (layer->blocks == layer->block_room) {
      const size_t room = layer->block_room ? 2 * layer->block_room : 4;
      char **grown = realloc(layer->block, room * sizeof *grown);
      if (!grown) return NULL;
      layer->block = grown;
      layer->block_room = room;
    }
    if (!(layer->block[layer->blocks] = malloc(block_bytes))) return NULL;
    layer->blocks++;
    layer->used = 0;
  }
  void *taken = layer->block[layer->blocks - 1] + layer->used;
  layer->used += (bytes + 7) / 8 * 8;
  return taken;
}

static bool grow_groups(struct zb_layer *layer) {
  if (layer->group_room > 2 * layer->groups) return true;
  const size_t room = layer->group_room ? 4 * layer->group_room : 16;
  struct zb_layer_group *grown = calloc(room, sizeof *grown);
  if (!grown) return false;
  for (size_t i = 0; i < layer->group_room; i++) {
    if (!layer->group[i].kept) continue;
    size_t at = layer->group[i].hash & (room - 1);
    while (grown[at].kept) at = (at + 1) & (room - 1);
    grown[at] = layer->group[i];
  }
  free(layer->group);
  layer->group = grown;
  layer->group_room = room;
  return true;
}

static bool grow_kept(struct zb_layer *layer) {
  if (layer->count < layer->room) return true;
  const size_t room = layer->room ? 2 * layer->room : 16;
  struct zb_kept **grown = realloc(layer->kept, room * sizeof(struct zb_kept *));
  if (!grown) return false;
  layer->kept = grown;
  layer->room = room;
  return true;
}

// The group of a key, or the empty place for it.
static struct zb_layer_group *find_group(struct zb_layer *layer, const struct zb_layer_shape *shape,
                                         uint64_t hash, const int64_t *key) {
  for (size_t at = hash & (layer->group_room - 1);; at = (at + 1) & (layer->group_room - 1)) {
    struct zb_layer_group *group = &layer->group[at];
    if (!group->kept) return group;
    // What is left without members is told by the hash alone: where two keys share it, some that could cover
    // may be overlooked.
    if (group->hash == hash && (group->count == 0 || memcmp(group->kept[0]->word + shape->aside, key,
                                                            shape->key * sizeof *key) == 0))
      return group;
  }
}

static bool grow_group(struct zb_layer_group *group, size_t fours) {
  if (group->count < group->room) return true;
  const size_t room = group->room ? 2 * (size_t)group->room : 2;
  struct zb_kept **kept = realloc(group->kept, room * sizeof(struct zb_kept *));
  if (!kept) return false;
  group->kept = kept;
  four *row = realloc(group->row, room * fours * sizeof *row);
  if (!row) return false;
  group->row = row;
  group->room = (int)room;
  return true;
}

static void copy_member(struct zb_layer_group *group, int to, int from, size_t fours) {
  group->kept[to] = group->kept[from];
  memmove(group->row + (size_t)to * fours, group->row + (size_t)from * fours, fours * sizeof(four));
}

// What has covered covers again: it moves ahead.
static void move_ahead(struct zb_layer_group *group, int i, size_t fours) {
  const int ahead = i / 2;
  struct zb_kept *const kept = group->kept[i];
  group->kept[i] = group->kept[ahead];
  group->kept[ahead] = kept;
  four *const x = group->row + (size_t)i * fours, *const y = group->row + (size_t)ahead * fours;
  for (size_t k = 0; k < fours; k++) {
    const four row = x[k];
    x[k] = y[k];
    y[k] = row;
  }
}

enum zb_layer_end zb_layer_add(struct zb_layer *layer, const struct zb_layer_shape *shape,
                               const int64_t *packed, size_t words, int64_t score, uint32_t before,
                               uint32_t choice) {
  if (!grow_groups(layer) || !grow_kept(layer)) return ZB_LAYER_MEMORY;
  const size_t fours = row_fours(shape),
               from = shape->aside + shape->key + (shape->coarse ? 0 : shape->numbers);
  const int64_t *const key = packed + shape->aside;
  const uint64_t hash = hash_of(key, shape->key);
  struct zb_layer_group *group = find_group(layer, shape, hash, key);
  if (!group->kept) layer->groups++;
  if (!grow_group(group, fours)) return ZB_LAYER_MEMORY;
  // Where the new one's row goes unless something covers it; what it covers may make room before that.
  four *const row = group->row + (size_t)group->count * fours;
  write_row(shape, packed, row);
  for (int i = 0; i < group->count; i++) {
    bool may_cover, may_be_covered;
    compare_rows(group->row + (size_t)i * fours, row, fours, &may_cover, &may_be_covered);
    if (!may_cover && !may_be_covered) continue;
    struct zb_kept *const kept = group->kept[i];
    if (may_cover && covers(kept->word, packed, from, words)) {
      // By the invariant nothing before it was covered.
      if (i > 0) move_ahead(group, i, fours);
      return ZB_LAYER_COVERED;
    }
    if (!may_be_covered || !covers(packed, kept->word, from, words)) continue;
    kept->covered = true;
    group->count--;
    copy_member(group, i, group->count, fours);
    i--;
  }
  struct zb_kept *kept = take_bytes(layer, sizeof *kept + words * sizeof *packed);
  if (!kept) return ZB_LAYER_MEMORY;
  const uint32_t path = zb_paths_add(shape->paths, before, choice);
  if (path == ZB_NO_PATH) return ZB_LAYER_MEMORY;
  *kept = (struct zb_kept){.hash = hash, .score = score, .path = path, .number = (uint32_t)layer->added++};
  memcpy(kept->word, packed, words * sizeof *packed);
  group->hash = hash;
  memmove(group->row + (size_t)group->count * fours, row, fours * sizeof *row);
  group->kept[group->count++] = kept;
  layer->kept[layer->count++] = kept;
  return ZB_LAYER_ADDED;
}

static void free_groups(struct zb_layer *layer) {
  for (size_t i = 0; i < layer->group_room; i++) {
    free(layer->group[i].kept);
    free(layer->group[i].row);
  }
  free(layer->group);
  layer->group = NULL;
  layer->groups = layer->group_room = 0;
}

static int by_score(const void *left, const void *right) {
  const struct zb_kept *x = *(struct zb_kept *const *)left, *y = *(struct zb_kept *const *)right;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static void forget_left_out(struct zb_layer *layer, size_t fours) {
  for (size_t i = 0; i < layer->group_room; i++) {
    struct zb_layer_group *group = &layer->group[i];
    int left = 0;
    for (int k = 0; k < group->count; k++) {
      if (group->kept[k]->covered) continue;
      if (left < k) copy_member(group, left, k, fours);
      left++;
    }
    group->count = left;
  }
}

bool zb_layer_trim(struct zb_layer *layer, const struct zb_layer_shape *shape, size_t most) {
  size_t alive = 0;
  for (size_t i = 0; i < layer->count; i++) {
    if (layer->kept[i]->covered)
      zb_paths_drop(shape->paths, layer->kept[i]->path);
    else
      layer->kept[alive++] = layer->kept[i];
  }
  layer->count = alive;
  if (alive <= most) return false;
  qsort(layer->kept, alive, sizeof(struct zb_kept *), by_score);
  for (size_t i = most; i < alive; i++) {
    zb_paths_drop(shape->paths, layer->kept[i]->path);
    layer->kept[i]->covered = true;
  }
  layer->count = most;
  forget_left_out(layer, row_fours(shape));
  return true;
}

bool zb_layer_close(struct zb_layer *layer, const struct zb_layer_shape *shape, size_t most) {
  free_groups(layer);
  return zb_layer_trim(layer, shape, most);
}

size_t zb_layer_bytes(const struct zb_layer *layer) { return layer->blocks * BLOCK_BYTES; }

void zb_layer_free(struct zb_layer *layer, const struct zb_layer_shape *shape) {
  free_groups(layer);
  for (size_t i = 0; i < layer->count; i++) zb_paths_drop(shape->paths, layer->kept[i]->path);
  for (size_t i = 0; i < layer->blocks; i++) free(layer->block[i]);
  free(layer->block);
  free(layer->kept);
  *layer = (struct zb_layer){0};
}
