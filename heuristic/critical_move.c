// critical_move.c - moves: one op by some places, and the same for its kin.
//
// A path gets shorter only where an op leaves a block, a run of ops without idling on one device, or goes to
// its end (Nowicki and Smutnicki 1996; Balas and Vazacopoulos 1998); most moves are of that kind. An op that
// memory keeps from going earlier takes a release with it. A pipeline is regular, so one op alone is rarely
// in the wrong place: what helps is to move the same microbatch on neighbouring devices as well, or the next
// microbatches on the same one. Such compound moves are dear to time, but without them the search soon stops.
#include "heuristic/critical_move.h"

#include "solver/model/number.h"
#include "solver/model/random.h"

enum {
  ON_PATH = 60,       // percent of moves that begin with an op of the critical path
  COMPOUND = 60,      // percent of moves that take others with them
  MOST_ALIKE = 4,     // microbatches that do
  MOST_RELEASES = 2,  // that go ahead of an op which needs room
  RELEASE_WITHIN = 40 // ops in which one is looked for
};

int zb_mover_below(struct zb_mover *mover, int count) {
  return (int)((zb_random(&mover->random) >> 16) % (uint64_t)count);
}

void zb_mover_trace(struct zb_mover *mover) {
  const struct zb_graph *g = mover->graph;
  int64_t longest = -1;
  int32_t at = ZB_NO_NODE;
  for (int d = 0, ties = 1; d < g->devices; d++) {
    const int64_t length = zb_graph_length(g, d);
    if (length < longest || (length == longest && zb_mover_below(mover, ++ties) > 0)) continue;
    if (length > longest) ties = 1;
    longest = length;
    at = g->last[d];
  }
  mover->length = 0;
  while (at != ZB_NO_NODE) {
    const struct zb_graph_node *x = &g->node[at];
    mover->path[mover->length++] = at;
    const bool by_device = x->before != ZB_NO_NODE && zb_graph_end(g, x->before) == x->start;
    const bool by_input = x->input != ZB_NO_NODE && zb_graph_end(g, x->input) + x->lag == x->start;
    const bool device_first = !by_input || (by_device && zb_mover_below(mover, 2));
    at = by_device && device_first ? x->before : by_input ? x->input : ZB_NO_NODE;
  }
}

// 1 or more, with the chance of one more always the same.
static int few(struct zb_mover *mover, int eighths_more) {
  int count = 1;
  while (zb_mover_below(mover, 8) < eighths_more && count < 40) count++;
  return count;
}

static void move_later(struct zb_graph *g, int32_t x, int places) {
  while (places-- > 0 && zb_graph_swap(g, x)) continue;
}

// Brings the next release behind `x` to the place before `y`, which is right before `x`.
static bool bring_release(struct zb_graph *g, int32_t y, int32_t x) {
  int32_t z = g->node[x].after;
  for (int k = 0; z != ZB_NO_NODE && g->node[z].delta >= 0; k++) {
    if (k == RELEASE_WITHIN) return false;
    z = g->node[z].after;
  }
  if (z == ZB_NO_NODE) return false;
  while (g->node[y].before != z)
    if (!zb_graph_swap(g, g->node[z].before)) return false;
  return true;
}

static void move_earlier(struct zb_graph *g, int32_t x, int places, int releases) {
  while (places > 0) {
    const int32_t y = g->node[x].before;
    if (y == ZB_NO_NODE) return;
    if (zb_graph_swap(g, y)) {
      places--;
      continue;
    }
    const struct zb_graph_node *left = &g->node[y];
    const bool by_memory = left->class != g->node[x].class && left->follows[0] != x && left->follows[1] != x;
    if (!by_memory || releases-- == 0 || !bring_release(g, y, x)) return;
  }
}

static void move(struct zb_graph *g, int32_t x, bool later, int places, int releases) {
  if (later)
    move_later(g, x, places);
  else
    move_earlier(g, x, places, releases);
}

// Places from the path's op at `from` to the end of its block, at least 1.
static int to_block_end(const struct zb_mover *mover, int from, bool later) {
  const struct zb_graph *g = mover->graph;
  int places = 0;
  if (later)
    for (int k = from; k > 0 && mover->path[k - 1] == g->node[mover->path[k]].after; k--) places++;
  else
    for (int k = from; k + 1 < mover->length && mover->path[k + 1] == g->node[mover->path[k]].before; k++)
      places++;
  return places > 0 ? places : 1;
}

// The same microbatch upstream or downstream, as far as the move can be made there.
static void follow_stages(struct zb_mover *mover, int32_t x, bool later) {
  struct zb_graph *g = mover->graph;
  const int places = g->swaps;
  const bool forth = zb_mover_below(mover, 2);
  for (int hops = 1 + zb_mover_below(mover, g->devices); hops > 0; hops--) {
    const int before = g->swaps;
    x = forth ? g->node[x].output : g->node[x].input;
    if (x == ZB_NO_NODE || g->swaps + places > g->most_swaps) return;
    move(g, x, later, places, 1);
    if (g->swaps == before) return;
  }
}

static void follow_microbatches(struct zb_mover *mover, int32_t x, bool later) {
  struct zb_graph *g = mover->graph;
  const int places = g->swaps, m = g->profile->microbatches;
  const int step = zb_mover_below(mover, 2) ? 1 : -1;
  for (int more = 1 + zb_mover_below(mover, MOST_ALIKE); more > 0; more--) {
    const int before = g->swaps, microbatch = g->op[x].microbatch + step;
    if (microbatch < 0 || microbatch >= m || g->swaps + places > g->most_swaps) return;
    x = g->at[(size_t)g->node[x].class * (size_t)m + (size_t)microbatch];
    if (x == ZB_NO_NODE) return;
    move(g, x, later, places, 1);
    if (g->swaps == before) return;
  }
}

bool zb_mover_move(struct zb_mover *mover) {
  struct zb_graph *g = mover->graph;
  const bool later = zb_mover_below(mover, 2);
  int32_t x;
  if (zb_mover_below(mover, 100) < ON_PATH) {
    const int from = zb_mover_below(mover, mover->length);
    const bool to_end = zb_mover_below(mover, 2);
    x = mover->path[from];
    move(g, x, later, to_end ? to_block_end(mover, from, later) : few(mover, 5), MOST_RELEASES);
  } else {
    x = zb_mover_below(mover, g->nodes);
    move(g, x, later, few(mover, 4), 1);
  }
  if (g->swaps == 0 || zb_mover_below(mover, 100) >= COMPOUND) return false;
  if (zb_mover_below(mover, 2))
    follow_stages(mover, x, later);
  else
    follow_microbatches(mover, x, later);
  return true;
}
