/* zbcheck: the states of a device with several stages, as a sweep finds them.
 *
 * There are far more combinations of counts than any path passes through, so states are kept in a hash table
 * and made when a step leads to one; the few levels that steps can still lead to have a table each. One class
 * of ops is left out of a node: the last W is an interval beside it (zbcheck_sweep.c), or no W is counted at
 * all (zbcheck_pour.c). Nodes of one level, the sum of their counts, are a list, and steps only go up: going
 * through the lists in order has all that leads to a node before it.
 *
 * Here too is what a sweep finds besides windows: how many of each class are done when an op starts. */
#include "zbcheck_window.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64, FIRST_SLOTS = 256 };

/* ---- the set ---- */

/* Counts are packed into two words, each whole in one of them. */
static bool pack_plan(struct zc_nodes *n, const struct zc_device *d) {
  int32_t word = 0, used = 0;

  for (int32_t c = 0; c < n->classes; c++) {
    int32_t width = 1;
    while (width < 31 && d->count[c] >> width) width++;
    if (used + width > WORD) {
      word++;
      used = 0;
    }
    if (word > 1) return false;
    n->word[c] = word;
    n->shift[c] = used;
    n->width[c] = width;
    used += width;
  }
  return true;
}

static void pack(const struct zc_nodes *n, const int32_t *counts, uint64_t key[2]) {
  key[0] = key[1] = 0;
  for (int32_t c = 0; c < n->classes; c++) key[n->word[c]] |= (uint64_t)counts[c] << n->shift[c];
}

static size_t home(const struct zc_table *t, const uint64_t key[2]) {
  uint64_t mix = (key[0] ^ (key[1] * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);

  return (size_t)(mix ^ mix >> 32) & (t->slots - 1);
}

/* Where a key is, or the free slot where it would be. */
static size_t slot_of(const struct zc_nodes *n, const struct zc_table *t, const uint64_t key[2]) {
  size_t at = home(t, key);

  while (t->slot[at] >= 0) {
    const uint64_t *there = n->node[t->slot[at]].key;
    if (there[0] == key[0] && there[1] == key[1]) break;
    at = (at + 1) & (t->slots - 1);
  }
  return at;
}

static int64_t level_of(const struct zc_nodes *n, const int32_t *counts) {
  int64_t level = 0;

  for (int32_t c = 0; c < n->classes; c++) level += counts[c];
  return level;
}

int32_t zc_nodes_find(const struct zc_nodes *n, const int32_t *counts) {
  int64_t level = level_of(n, counts);
  const struct zc_table *t = &n->table[level % ZC_TABLES];
  uint64_t key[2];

  if (t->level != level) return -1;
  pack(n, counts, key);
  return t->slot[slot_of(n, t, key)];
}

/* The table of a level, with a free slot more than it needs. NULL without memory. */
static struct zc_table *table_for(struct zc_nodes *n, int64_t level) {
  struct zc_table *t = &n->table[level % ZC_TABLES];
  size_t slots = t->slots > 0 ? t->slots : FIRST_SLOTS;

  if (t->level == level && (t->used + 1) * 2 > t->slots) slots *= 2;
  if (t->level == level && slots == t->slots) return t;
  if (slots > t->slots) {
    int32_t *table = realloc(t->slot, slots * sizeof *table);
    if (!table) return NULL;
    t->slot = table;
    t->slots = slots;
  }
  memset(t->slot, -1, t->slots * sizeof *t->slot);
  if (t->level != level) t->used = 0;
  t->level = level;
  for (int32_t i = n->head[level]; i >= 0; i = n->node[i].next) t->slot[slot_of(n, t, n->node[i].key)] = i;
  return t;
}

static bool make_room(struct zc_windows *w, struct zc_nodes *n) {
  void *node = n->node, *to = n->to;
  size_t need = n->count + 1;
  bool grown = zc_grow(w->run, &node, &n->node_room, need, sizeof *n->node) &&
               zc_grow(w->run, &to, &n->to_room, need * (size_t)n->edges, sizeof *n->to) &&
               zc_grow(w->run, &n->data, &n->data_room, need, n->data_size);

  n->node = node;
  n->to = to;
  return grown;
}

int32_t zc_nodes_add(struct zc_windows *w, const int32_t *counts) {
  struct zc_nodes *n = w->nodes;
  int64_t level = level_of(n, counts);
  struct zc_table *t;

  if (n->count >= (size_t)ZC_MOST_STATES) {
    w->too_large = true;
    return -1;
  }
  if (!make_room(w, n) || !(t = table_for(n, level))) {
    w->out_of_memory = true;
    return -1;
  }
  struct zc_node_at *node = &n->node[n->count];
  pack(n, counts, node->key);
  node->next = n->head[level];
  n->head[level] = (int32_t)n->count;
  t->slot[slot_of(n, t, node->key)] = (int32_t)n->count;
  t->used++;
  for (int32_t e = 0; e < n->edges; e++) n->to[n->count * (size_t)n->edges + (size_t)e] = -1;
  return (int32_t)n->count++;
}

/* ---- steps ---- */

static void add_step(struct zc_nodes *n, struct zc_step step) {
  step.dense = step.second >= n->classes;
  if (step.dense) step.second = -1;
  step.edge = n->edges;
  for (int32_t i = 0; i < n->steps; i++)
    if (n->step[i].first == step.first && n->step[i].second == step.second) step.edge = n->step[i].edge;
  if (step.edge == n->edges) n->edges++;
  n->step[n->steps++] = step;
}

static void list_steps(struct zc_windows *w, const struct zc_device *d, struct zc_nodes *n) {
  int32_t v = d->chunks;

  n->steps = n->edges = 0;
  for (int32_t c = 0; c < v; c++) {
    struct zc_stage *s = &w->stage[d->stages[c]];
    int32_t weight = 2 * v + (d->merged ? 0 : c);
    add_step(n, (struct zc_step){.kind = ZC_F, .stage = s, .first = c, .second = -1, .time = s->f});
    if (w->poured) {
      add_step(n,
               (struct zc_step){.kind = ZC_B, .stage = s, .first = v + c, .second = -1, .time = s->gradient});
      continue;
    }
    add_step(n, (struct zc_step){.kind = ZC_B, .stage = s, .first = v + c, .second = -1, .time = s->b});
    if (s->fusing)
      add_step(n,
               (struct zc_step){.kind = ZC_BW, .stage = s, .first = v + c, .second = weight, .time = s->bw});
    if (weight < n->classes)
      add_step(n, (struct zc_step){.kind = ZC_W, .stage = s, .first = weight, .second = -1, .time = s->w});
  }
}

enum zc_outcome zc_nodes_begin(struct zc_windows *w, const struct zc_device *d, int32_t classes,
                               size_t data_size) {
  struct zc_nodes *n = w->nodes;

  n->classes = classes;
  n->data_size = data_size;
  n->count = 0;
  n->levels = 1;
  for (int32_t c = 0; c < classes; c++) n->levels += d->count[c];
  if (!pack_plan(n, d)) return ZC_TOO_LARGE;
  list_steps(w, d, n);
  void *head = n->head;
  bool grown = zc_grow(w->run, &head, &n->head_room, (size_t)n->levels, sizeof *n->head);
  n->head = head;
  if (!grown) return ZC_NO_MEMORY;
  memset(n->head, -1, (size_t)n->levels * sizeof *n->head);
  for (int i = 0; i < ZC_TABLES; i++) n->table[i].level = -1;
  return ZC_OPEN;
}

void zc_nodes_free(struct zc_nodes *n) {
  free(n->node);
  free(n->to);
  free(n->data);
  for (int i = 0; i < ZC_TABLES; i++) free(n->table[i].slot);
  free(n->head);
}

/* Whether number counts[starting] of a class may start, by the restrictions on other classes of the node. */
static bool counts_allow(const struct zc_device *d, int32_t classes, int32_t starting,
                         const int32_t *counts) {
  int32_t index = counts[starting];

  for (int32_t c = 0; c < classes; c++)
    if (c != starting && !zc_within(counts[c], zc_low(d, c, starting), zc_high(d, c, starting), index))
      return false;
  return true;
}

bool zc_step_allowed(const struct zc_windows *w, const struct zc_device *d, const struct zc_step *step,
                     const int32_t *counts) {
  const struct zc_nodes *n = w->nodes;
  const struct zc_stage *s = step->stage;
  int32_t v = d->chunks, c = s->chunk, done = counts[step->first], most;

  if (step->kind == ZC_F)
    most = c == 0 ? w->m : counts[c - 1];
  else if (step->kind == ZC_W)
    most = counts[v + c];
  else
    most = c == v - 1 ? counts[c] : counts[v + c + 1];
  if (done >= most) return false;
  if (!w->poured && step->kind == ZC_B && s->fused_low[done] == 1) return false;
  if (step->kind == ZC_BW && s->fused_high[done] == 0) return false;
  return counts_allow(d, n->classes, step->first, counts) &&
         (step->second < 0 || counts_allow(d, n->classes, step->second, counts));
}

int32_t zc_step_to(const struct zc_nodes *n, const struct zc_step *step, const int32_t *counts,
                   int32_t *there) {
  memcpy(there, counts, (size_t)n->classes * sizeof *there);
  there[step->first]++;
  if (step->second >= 0) there[step->second]++;
  return zc_nodes_find(n, there);
}

/* ---- what a sweep finds of counts ---- */

void zc_clear_counts(struct zc_windows *w, const struct zc_device *d) {
  int64_t pairs = (int64_t)2 * d->chunks * w->m * d->classes;

  for (int64_t i = 0; i < pairs; i++) {
    w->found_counts[2 * i] = zc_never;
    w->found_counts[2 * i + 1] = -1;
  }
}

bool zc_take_device(struct zc_windows *w, const struct zc_device *d, int32_t classes) {
  bool narrower = false;

  for (int32_t c = 0; c < d->chunks; c++)
    narrower |= zc_take_found(w, &w->stage[d->stages[c]], w->found_ops + c * w->m,
                              w->found_ops + (d->chunks + c) * w->m);
  for (int32_t starting = 0; starting < 2 * d->chunks; starting++) {
    for (int32_t k = 0; k < w->m; k++) {
      for (int32_t counted = 0; counted < classes; counted++) {
        const int64_t *at = zc_counts_at(w, d, starting, k, counted);
        if (counted == starting) continue;
        narrower |= zc_at_least(w, &zc_low(d, counted, starting)[k], at[0]);
        narrower |= zc_at_most(w, &zc_high(d, counted, starting)[k], at[1]);
      }
    }
  }
  return narrower;
}
