/* zbcheck: the nodes that the search of `fluid-fronts` keeps, see zbcheck_fluid.c.
 *
 * Groups of all layers are found by the hash of what their nodes have done. A new node is compared with all
 * of its group. Most comparisons end at a glance at two sketches: a lane is a sum over an eighth of the
 * times, in steps of a power of two around what the group's first node has there. A node that covers another
 * has no lane that is above the other's.
 *
 * Layers take their room from blocks, which go from one to another; nothing in them is freed alone. */
#include "zbcheck_fluid.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, FIRST_SLOTS = 1 << 12, FIRST_ENTRIES = 2, LANES = 8, MIDDLE = 64 };

static const int64_t most_bytes = (int64_t)1 << 31;
static const uint64_t lane_tops = 0x8080808080808080u;

struct fluid_block {
  struct fluid_block *next;
  size_t used, room;
  max_align_t bytes[];
};

bool zc_fluid_hold(struct fluid *s, size_t bytes) {
  s->bytes += (int64_t)bytes;
  s->most_held = zc_most(s->most_held, s->bytes);
  s->too_large |= s->bytes > most_bytes;
  return !s->too_large;
}

static struct fluid_block *new_block(struct fluid *s, size_t room) {
  struct fluid_block *block = s->free_blocks;

  if (block && room == BLOCK_BYTES) {
    s->free_blocks = block->next;
    return block;
  }
  if (!zc_fluid_hold(s, sizeof *block + room)) return NULL;
  block = malloc(sizeof *block + room);
  if (block)
    block->room = room;
  else
    s->out_of_memory = true;
  return block;
}

/* Room that lasts as long as a layer. NULL where there is none left. */
static void *take_room(struct fluid *s, struct fluid_layer *layer, size_t size) {
  struct fluid_block *block = layer->blocks;

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

static size_t slot_of(const struct fluid *s, uint64_t hash) {
  return (size_t)(hash >> 32 ^ hash) & (s->slots - 1);
}

/* Twice as many slots, once there are as many groups. */
static bool widen(struct fluid *s) {
  struct fluid_group **old = s->slot, **slot;
  size_t old_slots = s->slots, slots = old ? 2 * old_slots : FIRST_SLOTS;

  if (s->groups < old_slots) return true;
  if (!zc_fluid_hold(s, (slots - old_slots) * sizeof(struct fluid_group *))) return false;
  slot = calloc(slots, sizeof(struct fluid_group *));
  s->out_of_memory |= !slot;
  if (!slot) return false;
  s->slot = slot;
  s->slots = slots;
  for (size_t k = 0; k < old_slots; k++) {
    for (struct fluid_group *group = old[k], *next; group; group = next) {
      size_t at = slot_of(s, group->hash);
      next = group->chain;
      group->chain = slot[at];
      slot[at] = group;
    }
  }
  free(old);
  return true;
}

/* The group of the packed node, a new one where there is none. NULL without room. */
static struct fluid_group *find_group(struct fluid *s, struct fluid_layer *layer) {
  size_t size = (size_t)s->devices * sizeof *s->key;

  if (!widen(s)) return NULL;
  struct fluid_group **slot = &s->slot[slot_of(s, s->hash)];
  for (struct fluid_group *group = *slot; group; group = group->chain)
    if (group->hash == s->hash && memcmp(group->key, s->key, size) == 0) return group;
  struct fluid_group *group = take_room(s, layer, sizeof *group + size);
  if (!group) return NULL;
  *group = (struct fluid_group){.next = layer->groups, .chain = *slot, .hash = s->hash, .times = s->length};
  memcpy(group->key, s->key, size);
  layer->groups = *slot = group;
  s->groups++;
  return group;
}

/* The sketch of the packed node, and the sum of its times. */
static uint64_t find_sketch(const struct fluid *s, struct fluid_group *group, int64_t *total) {
  uint64_t sketch = 0;

  *total = 0;
  for (int32_t lane = 0, at = 0; lane < LANES; lane++) {
    int64_t sum = 0;
    for (int32_t end = group->times * (lane + 1) / LANES; at < end; at++) sum += s->times[at];
    *total += sum;
    sum >>= s->lane_shift;
    if (group->entries == 0) group->middle[lane] = sum;
    int64_t value = zc_most(sum - group->middle[lane] + MIDDLE, 0);
    sketch = sketch << 8 | (uint64_t)zc_least(value, 2 * MIDDLE - 1);
  }
  return sketch;
}

static bool none_later(const int64_t *x, const int64_t *y, int32_t length) {
  for (int32_t k = 0; k < length; k++)
    if (x[k] > y[k]) return false;
  return true;
}

/* Whether no lane of x is above y's. */
static bool lanes_within(uint64_t x, uint64_t y) { return (((y | lane_tops) - x) & lane_tops) == lane_tops; }

/* Takes what the packed node covers out of its group. False if something there covers it. */
static bool compare(struct fluid *s, struct fluid_group *group, uint64_t sketch, int64_t total) {
  for (int32_t k = 0; k < group->entries; k++) {
    struct fluid_entry *entry = &group->entry[k];
    if (entry->total <= total) {
      if (lanes_within(entry->sketch, sketch) &&
          none_later(zc_fluid_times(entry->node), s->times, group->times))
        return false;
    } else if (lanes_within(sketch, entry->sketch) &&
               none_later(s->times, zc_fluid_times(entry->node), group->times)) {
      entry->node->next = group->spare;
      group->spare = entry->node;
      *entry = group->entry[--group->entries];
      k--;
    }
  }
  return true;
}

static bool widen_group(struct fluid *s, struct fluid_layer *layer, struct fluid_group *group) {
  int32_t room = group->room > 0 ? 2 * group->room : FIRST_ENTRIES;

  if (group->entries < group->room) return true;
  struct fluid_entry *entry = take_room(s, layer, (size_t)room * sizeof *entry);
  if (!entry) return false;
  if (group->entries > 0) memcpy(entry, group->entry, (size_t)group->entries * sizeof *entry);
  group->entry = entry;
  group->room = room;
  return true;
}

void zc_fluid_keep(struct fluid *s, const struct fluid_node *node) {
  size_t size = (size_t)s->length * sizeof *s->times;
  struct fluid_layer *layer = &s->layer[(int64_t)s->done * (s->devices + 1) + s->holds];
  struct fluid_group *group = find_group(s, layer);
  struct fluid_node *kept;
  int64_t total;

  if (!group) return;
  uint64_t sketch = find_sketch(s, group, &total);
  if (!compare(s, group, sketch, total) || !widen_group(s, layer, group)) return;
  if ((kept = group->spare))
    group->spare = kept->next;
  else if (!(kept = take_room(s, layer, sizeof *kept + size)))
    return;
  *kept = *node;
  memcpy(zc_fluid_times(kept), s->times, size);
  group->entry[group->entries++] = (struct fluid_entry){sketch, total, kept};
  s->nodes++;
}

void zc_fluid_forget(struct fluid *s, struct fluid_layer *layer) {
  for (struct fluid_group *group = layer->groups; group; group = group->next) {
    struct fluid_group **link = &s->slot[slot_of(s, group->hash)];
    while (*link != group) link = &(*link)->chain;
    *link = group->chain;
    s->groups--;
  }
  while (layer->blocks) {
    struct fluid_block *block = layer->blocks;
    layer->blocks = block->next;
    if (block->room == BLOCK_BYTES) {
      block->next = s->free_blocks;
      s->free_blocks = block;
    } else {
      s->bytes -= (int64_t)(sizeof *block + block->room);
      free(block);
    }
  }
  *layer = (struct fluid_layer){NULL, NULL};
}

static void free_blocks(struct fluid_block *block) {
  while (block) {
    struct fluid_block *next = block->next;
    free(block);
    block = next;
  }
}

void zc_fluid_free(struct fluid *s) {
  size_t layers = s->layer ? ((size_t)s->lanes * (size_t)s->m + 1) * ((size_t)s->devices + 1) : 0;

  for (size_t k = 0; k < layers; k++) free_blocks(s->layer[k].blocks);
  free_blocks(s->free_blocks);
  free(s->slot);
}
