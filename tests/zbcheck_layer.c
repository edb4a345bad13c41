/* zbcheck: the layers of the search of `fronts`, see zbcheck_front.c: which nodes are kept, and where.
 *
 * A new node is compared with all of its group. Most comparisons end at a glance at two sketches: a lane is a
 * sum over some of the devices' clocks, or how few W are done in all, in steps of a power of two around what
 * the group's first node has there. A node that covers another has no lane that is above the other's.
 *
 * Layers take their room from blocks, which go from one to the next; nothing in them is freed alone. */
#include "zbcheck_front.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, FIRST_SLOTS = 1 << 10, FIRST_ENTRIES = 2, MIDDLE = 64 };

static const int64_t most_bytes = (int64_t)1 << 31;
static const uint64_t lane_tops = 0x8080808080808080u;

struct front_block {
  struct front_block *next;
  size_t used, room;
  max_align_t bytes[];
};

bool zc_front_hold(struct fronts *s, size_t bytes) {
  s->bytes += (int64_t)bytes;
  s->most_held = zc_most(s->most_held, s->bytes);
  s->too_large |= s->bytes > most_bytes;
  return !s->too_large;
}

static struct front_block *new_block(struct fronts *s, size_t room) {
  struct front_block *block = s->free_blocks;

  if (block && room == BLOCK_BYTES) {
    s->free_blocks = block->next;
    return block;
  }
  if (!zc_front_hold(s, sizeof *block + room)) return NULL;
  block = malloc(sizeof *block + room);
  if (block)
    block->room = room;
  else
    s->out_of_memory = true;
  return block;
}

/* Room that lasts as long as a layer. NULL where there is none left. */
static void *take_room(struct fronts *s, struct front_layer *layer, size_t size) {
  struct front_block *block = layer->blocks;

  size = (size + 7) / 8 * 8;
  if (!block || block->used + size > block->room) {
    block = new_block(s, size > BLOCK_BYTES ? size : BLOCK_BYTES);
    if (!block) return NULL;
    block->used = 0;
    block->next = layer->blocks;
    layer->blocks = block;
  }
  block->used += size;
  return (char *)block->bytes + block->used - size;
}

/* ---- groups ---- */

/* What the lanes of the child's sketch are made of, in steps. */
static void find_lanes(const struct fronts *s, int32_t lane[FRONT_LANES]) {
  const int64_t *clock = zc_front_times(s, s->child);
  int64_t sum[FRONT_LANES - 1] = {0};

  for (int32_t i = 0; i < s->devices; i++) sum[i * (FRONT_LANES - 1) / s->devices] += clock[i];
  for (int32_t i = 0; i < FRONT_LANES - 1; i++)
    lane[i] = (int32_t)zc_least(sum[i] >> s->lane_shift, INT32_MAX / 2);
  lane[FRONT_LANES - 1] = -s->child->weights;
}

static uint64_t child_sketch(const struct fronts *s, const struct front_group *group) {
  int32_t lane[FRONT_LANES];
  uint64_t sketch = 0;

  find_lanes(s, lane);
  for (int32_t i = 0; i < FRONT_LANES; i++) {
    int32_t value = lane[i] - group->middle[i] + MIDDLE, most = 2 * MIDDLE - 1;
    sketch = sketch << 8 | (uint64_t)(value < 0 ? 0 : value > most ? most : value);
  }
  return sketch;
}

/* The group of the next layer with the F and B done in s->count, a new one where there is none. NULL without
 * room. */
static struct front_group *find_group(struct fronts *s, uint64_t hash, int32_t queued) {
  size_t mask = s->slots - 1, at = (size_t)(hash >> 32 ^ hash) & mask;
  size_t size = 2 * (size_t)s->devices * sizeof *s->count;

  for (; s->slot[at]; at = (at + 1) & mask)
    if (s->slot[at]->hash == hash && memcmp(s->slot[at]->count, s->count, size) == 0) return s->slot[at];
  struct front_group *group = take_room(s, &s->next, sizeof *group + size);
  if (!group) return NULL;
  *group = (struct front_group){.next = s->next.groups, .hash = hash, .queued = queued};
  find_lanes(s, group->middle);
  memcpy(group->count, s->count, size);
  s->next.groups = s->slot[at] = group;
  s->used++;
  return group;
}

/* Twice as many slots, once half of them are used. */
static bool widen(struct fronts *s) {
  struct front_group **old = s->slot;

  if (old && 2 * s->used < s->slots) return true;
  size_t slots = old ? 2 * s->slots : FIRST_SLOTS;
  if (!zc_front_hold(s, (slots - s->slots) * sizeof(struct front_group *))) return false;
  s->slot = calloc(slots, sizeof(struct front_group *));
  free(old);
  s->slots = slots;
  s->out_of_memory |= !s->slot;
  if (!s->slot) return false;
  for (struct front_group *group = s->next.groups; group; group = group->next) {
    size_t at = (size_t)(group->hash >> 32 ^ group->hash) & (slots - 1);
    while (s->slot[at]) at = (at + 1) & (slots - 1);
    s->slot[at] = group;
  }
  return true;
}

static bool covers(const struct fronts *s, int64_t queued, struct front_node *x, struct front_node *y) {
  if (x->weights < y->weights || x->total > y->total) return false; /* clocks and inputs are no later */
  const int64_t *x_time = zc_front_times(s, x), *y_time = zc_front_times(s, y);
  const uint16_t *x_weights = zc_front_weights(x), *y_weights = zc_front_weights(y);
  for (int64_t i = 0; i < s->devices + queued; i++)
    if (x_time[i] > y_time[i]) return false;
  for (int32_t i = 0; i < s->devices; i++)
    if (x_weights[i] < y_weights[i] && x_time[i] + (y_weights[i] - x_weights[i]) * s->device[i].w > y_time[i])
      return false;
  return true;
}

/* Whether no lane of x is above y's. */
static bool lanes_within(uint64_t x, uint64_t y) { return (((y | lane_tops) - x) & lane_tops) == lane_tops; }

/* Takes what the child covers out of its group. False if something there covers the child. */
static bool compare(struct fronts *s, const struct front_layer *layer, struct front_group *group,
                    uint64_t sketch) {
  for (int32_t i = 0; i < group->entries; i++) {
    struct front_entry *entry = &group->entry[i];
    if (lanes_within(entry->sketch, sketch) && covers(s, group->queued, entry->node, s->child)) return false;
    if (!lanes_within(sketch, entry->sketch) || !covers(s, group->queued, s->child, entry->node)) continue;
    if (layer == &s->next) {
      entry->node->next = group->spare;
      group->spare = entry->node;
    } else {
      entry->node->dropped = true; /* and stays in its list */
    }
    *entry = group->entry[--group->entries];
    i--;
  }
  return true;
}

static bool widen_group(struct fronts *s, struct front_layer *layer, struct front_group *group) {
  int32_t room = group->room > 0 ? 2 * group->room : FIRST_ENTRIES;

  if (group->entries < group->room) return true;
  struct front_entry *entry = take_room(s, layer, (size_t)room * sizeof *entry);
  if (!entry) return false;
  if (group->entries > 0) memcpy(entry, group->entry, (size_t)group->entries * sizeof *entry);
  group->entry = entry;
  group->room = room;
  return true;
}

static void wait(struct fronts *s, struct front_node *node) {
  node->next = s->waiting[node->weights];
  s->waiting[node->weights] = node;
  if (s->waiting_first > node->weights) s->waiting_first = node->weights;
  if (s->waiting_last < node->weights) s->waiting_last = node->weights;
}

void zc_layer_keep(struct fronts *s, struct front_group *group, uint64_t hash, int32_t queued) {
  struct front_layer *layer = group ? &s->layer : &s->next;
  const int64_t *times = zc_front_times(s, s->child);
  const uint16_t *weights = zc_front_weights(s->child);
  struct front_node *node;

  s->child->total = s->child->weights = 0;
  s->child->dropped = false;
  for (int64_t i = 0; i < s->devices + queued; i++) s->child->total += times[i];
  for (int32_t i = 0; i < s->devices; i++) s->child->weights += weights[i];
  if (!group && (!widen(s) || !(group = find_group(s, hash, queued)))) return;
  uint64_t sketch = child_sketch(s, group);
  if (!compare(s, layer, group, sketch) || !widen_group(s, layer, group)) return;
  if ((node = group->spare))
    group->spare = node->next;
  else if (!(node = take_room(s, layer, zc_front_size(s, queued))))
    return;
  memcpy(node, s->child, zc_front_size(s, queued));
  group->entry[group->entries++] = (struct front_entry){sketch, node};
  if (layer == &s->layer) wait(s, node);
  s->nodes++;
}

/* ---- layers ---- */

void zc_layer_open(struct fronts *s, struct front_group *group) {
  s->waiting_first = s->devices * s->m;
  s->waiting_last = 0;
  for (int32_t i = 0; i < group->entries; i++) wait(s, group->entry[i].node);
}

bool zc_layer_take(struct fronts *s, struct front_group *group) {
  while (s->waiting_first <= s->waiting_last) {
    struct front_node *node = s->waiting[s->waiting_first];
    if (!node) {
      s->waiting_first++;
      continue;
    }
    s->waiting[s->waiting_first] = node->next;
    if (!node->dropped) {
      memcpy(s->parent, node, zc_front_size(s, group->queued));
      return true;
    }
    node->next = group->spare;
    group->spare = node;
  }
  return false;
}

void zc_layer_turn(struct fronts *s) {
  while (s->layer.blocks) {
    struct front_block *block = s->layer.blocks;
    s->layer.blocks = block->next;
    if (block->room == BLOCK_BYTES) {
      block->next = s->free_blocks;
      s->free_blocks = block;
    } else {
      s->bytes -= (int64_t)(sizeof *block + block->room);
      free(block);
    }
  }
  s->layer = s->next;
  s->next = (struct front_layer){NULL, NULL};
  if (s->slot) memset(s->slot, 0, s->slots * sizeof(struct front_group *));
  s->used = 0;
}

void zc_layers_free(struct fronts *s) {
  struct front_block *lists[] = {s->layer.blocks, s->next.blocks, s->free_blocks};

  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    while (lists[i]) {
      struct front_block *next = lists[i]->next;
      free(lists[i]);
      lists[i] = next;
    }
  }
  free(s->slot);
}
