// order_graph.c - exchanges, and timing what they change.
//
// A node whose predecessors changed goes into a bucket by the start that it had, and the earliest bucket is
// emptied first. What it waits for started earlier as a rule, so that nearly every node is timed once; one
// that was timed too soon comes back when its predecessor moves, and the result does not depend on the order.
// Ops of a cycle would start later for ever: the caller's limit ends that, since every op takes time.
#include "heuristic/order_graph.h"

#include <string.h>

#include "solver/model/number.h"

enum { MOST_COLLECTED = 64 };

static int64_t tail_of(const struct zb_graph *g, const struct zb_graph_node *x) {
  int64_t behind = x->after == ZB_NO_NODE ? -zb_graph_origin(g, x->device) : g->node[x->after].tail;
  if (x->output != ZB_NO_NODE) behind = zb_max(behind, g->node[x->output].lag + g->node[x->output].tail);
  return x->time + behind;
}

// Puts `second` right before `first`, behind which it was; what the two leave behind them stays.
static void exchange(struct zb_graph *g, int32_t first, int32_t second) {
  struct zb_graph_node *x = &g->node[first], *y = &g->node[second];
  const int64_t kept = y->kept;
  y->kept = kept - x->delta;
  x->kept = kept;
  y->rest = x->rest;
  x->rest = y->rest - y->time;
  const int32_t before = x->before, after = y->after;
  g->node[before].after = second;
  y->before = before;
  y->after = first;
  x->before = second;
  x->after = after;
  if (after == ZB_NO_NODE)
    g->last[x->device] = first;
  else
    g->node[after].before = first;
}

bool zb_graph_swap(struct zb_graph *g, int32_t left) {
  struct zb_graph_node *x = &g->node[left];
  const int32_t right = x->after;
  if (right == ZB_NO_NODE || left == g->first[x->device] || g->swaps == g->most_swaps) return false;
  const struct zb_graph_node *y = &g->node[right];
  if (x->class == y->class || x->follows[0] == right || x->follows[1] == right) return false;
  if (y->kept - x->delta > g->limit[x->device]) return false;
  g->swap[g->swaps++] = (struct zb_graph_swap){left, right, x->tail, y->tail};
  exchange(g, left, right);
  return true;
}

static void push(struct zb_graph *g, int32_t at) {
  if (at == ZB_NO_NODE || g->node[at].next_dirty != ZB_NOT_DIRTY) return;
  const int64_t exact = g->node[at].start / g->width;
  const int k = exact < g->buckets ? (int)exact : g->buckets - 1;
  g->node[at].next_dirty = g->bucket[k];
  g->bucket[k] = at;
  g->filled[k >> 6] |= UINT64_C(1) << (k & 63);
  if (k >> 6 < g->lowest) g->lowest = k >> 6;
}

static int lowest_bit(uint64_t bits) {
  int bit = 0;
  for (int half = 32; half > 0; half /= 2) {
    if (bits << (64 - half)) continue;
    bits >>= half;
    bit += half;
  }
  return bit;
}

static int32_t pop(struct zb_graph *g) {
  while (g->lowest < g->words && !g->filled[g->lowest]) g->lowest++;
  if (g->lowest == g->words) return ZB_NO_NODE;
  const int k = g->lowest * 64 + lowest_bit(g->filled[g->lowest]);
  const int32_t at = g->bucket[k];
  g->bucket[k] = g->node[at].next_dirty;
  if (g->bucket[k] == ZB_NO_NODE) g->filled[g->lowest] &= g->filled[g->lowest] - 1;
  g->node[at].next_dirty = ZB_NOT_DIRTY;
  return at;
}

static int64_t earliest(const struct zb_graph *g, const struct zb_graph_node *x) {
  int64_t start = x->before == ZB_NO_NODE ? 0 : zb_graph_end(g, x->before);
  if (x->input != ZB_NO_NODE) start = zb_max(start, zb_graph_end(g, x->input) + x->lag);
  return start;
}

// The exchanged nodes, those that come later on their device first, and no more than fit.
static int collect(struct zb_graph *g, int32_t *collected) {
  int count = 0;
  g->stamp++;
  for (int k = 0; k < 2 * g->swaps && count < MOST_COLLECTED; k++) {
    const int32_t at = k % 2 ? g->swap[k / 2].right : g->swap[k / 2].left;
    if (g->node[at].stamp == g->stamp) continue;
    g->node[at].stamp = g->stamp;
    int to = count++;
    for (; to > 0 && g->node[collected[to - 1]].rest > g->node[at].rest; to--)
      collected[to] = collected[to - 1];
    collected[to] = at;
  }
  return count;
}

bool zb_graph_time(struct zb_graph *g, int64_t most, int64_t ceiling) {
  int32_t collected[MOST_COLLECTED];
  bool holds = true;
  const int count = collect(g, collected);
  for (int k = 0; k < count; k++) {
    struct zb_graph_node *x = &g->node[collected[k]];
    x->tail = tail_of(g, x);
  }
  for (int k = 0; k < g->swaps; k++) {
    push(g, g->swap[k].right);
    push(g, g->swap[k].left);
    push(g, g->node[g->swap[k].left].after);
    push(g, g->node[g->swap[k].right].after);
  }
  for (int32_t at; (at = pop(g)) != ZB_NO_NODE;) {
    if (!holds) continue; // only empties the buckets
    struct zb_graph_node *x = &g->node[at];
    const int64_t start = earliest(g, x);
    g->work++;
    if (start == x->start) continue;
    if (g->moveds == g->most_moveds || start + x->tail > ceiling ||
        start + x->rest - zb_graph_origin(g, x->device) > most) {
      holds = false;
      continue;
    }
    g->moved[g->moveds++] = (struct zb_graph_moved){at, x->start};
    x->start = start;
    push(g, x->after);
    push(g, x->output);
  }
  return holds;
}

void zb_graph_commit(struct zb_graph *g) { g->swaps = g->moveds = 0; }

void zb_graph_undo(struct zb_graph *g) {
  while (g->moveds > 0) {
    const struct zb_graph_moved *moved = &g->moved[--g->moveds];
    g->node[moved->node].start = moved->start;
  }
  while (g->swaps > 0) {
    const struct zb_graph_swap *swap = &g->swap[--g->swaps];
    exchange(g, swap->right, swap->left);
    g->node[swap->left].tail = swap->left_tail;
    g->node[swap->right].tail = swap->right_tail;
  }
}

// Starts grow along every arc, so an order by start is one in which successors come later. It is nearly that
// of the last time, for which insertion is fast.
void zb_graph_tails(struct zb_graph *g) {
  for (int i = 1; i < g->nodes; i++) {
    const int32_t at = g->sorted[i];
    const int64_t start = g->node[at].start;
    int to = i;
    for (; to > 0 && g->node[g->sorted[to - 1]].start > start; to--) g->sorted[to] = g->sorted[to - 1];
    g->sorted[to] = at;
  }
  for (int i = g->nodes - 1; i >= 0; i--) {
    struct zb_graph_node *x = &g->node[g->sorted[i]];
    x->tail = tail_of(g, x);
  }
}

void zb_graph_copy(struct zb_graph *g, const struct zb_graph *other) {
  memcpy(g->node, other->node, (size_t)g->nodes * sizeof *g->node);
  memcpy(g->last, other->last, (size_t)g->devices * sizeof *g->last);
  g->stamp = other->stamp;
}
