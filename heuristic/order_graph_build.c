// order_graph_build.c - from a schedule to its graph, and back.
#include <stdlib.h>

#include "heuristic/order_graph.h"
#include "solver/model/number.h"
#include "solver/model/timeline.h"

enum { MOST_SWAPS = 256 };

static size_t slot(const struct zb_graph *g, int class, int microbatch) {
  return (size_t) class * (size_t)g->profile->microbatches + (size_t)microbatch;
}

// Where some op takes no time, every op gets a little more, less than a ns in all, so that no cycle is free.
// False where paths, times the devices, could pass int64.
static bool choose_units(struct zb_graph *g, const struct zb_schedule *schedule, int64_t *sum) {
  const struct zb_profile *p = g->profile;
  const int64_t n = g->nodes, most = INT64_MAX / 8 / (g->devices + 1);
  int64_t least = INT64_MAX;
  *sum = 1;
  for (int64_t k = 0; k < n; k++) {
    const struct zb_op op = schedule->ops[k];
    const int64_t time = zb_op_time(p, op);
    const int64_t lag = op.kind == ZB_F ? p->comm_forward_ns[op.stage] : p->comm_backward_ns[op.stage];
    least = zb_min(least, time);
    if (time > most - *sum || lag > most - *sum - time) return false;
    *sum += time + lag;
  }
  g->scale = least > 0 ? 1 : n + 1;
  if (*sum > most / g->scale) return false;
  *sum *= g->scale;
  return true;
}

static void number_op(struct zb_graph *g, int32_t n, int device, struct zb_op op, int32_t *count) {
  const int class = 3 * op.stage + (op.kind == ZB_F ? 0 : op.kind == ZB_W ? 2 : 1);
  if (op.kind == ZB_W) // of those that are not fused
    while (g->op[g->at[slot(g, class - 1, count[class])]].kind == ZB_BW) count[class]++;
  op.microbatch = count[class]++;
  g->at[slot(g, class, op.microbatch)] = n;
  g->op[n] = op;
  g->node[n] = (struct zb_graph_node){
      .time = zb_op_time(g->profile, op) * g->scale + (g->scale > 1),
      .delta = zb_op_memory(g->profile, op),
      .before = ZB_NO_NODE,
      .after = ZB_NO_NODE,
      .input = ZB_NO_NODE,
      .output = ZB_NO_NODE,
      .follows = {ZB_NO_NODE, ZB_NO_NODE},
      .device = device,
      .class = class,
      .next_dirty = ZB_NOT_DIRTY,
  };
}

// Weight passes come second, since their numbers depend on which backwards are fused.
static void add_nodes(struct zb_graph *g, const struct zb_schedule *schedule, int32_t *count) {
  for (int weights = 0; weights < 2; weights++)
    for (int d = 0; d < g->devices; d++)
      for (size_t k = schedule->first[d]; k < schedule->first[d + 1]; k++)
        if ((schedule->ops[k].kind == ZB_W) == weights) number_op(g, (int32_t)k, d, schedule->ops[k], count);
}

static void add_arc(struct zb_graph *g, int32_t from, int32_t to, int64_t lag_ns) {
  struct zb_graph_node *x = &g->node[from], *y = &g->node[to];
  if (x->device == y->device) {
    x->follows[x->follows[0] != ZB_NO_NODE] = to;
    return;
  }
  x->output = to;
  y->input = from;
  y->lag = lag_ns * g->scale;
}

static void add_arcs(struct zb_graph *g) {
  const struct zb_profile *p = g->profile;
  for (int s = 0; s < p->stages; s++) {
    for (int j = 0; j < p->microbatches; j++) {
      const int32_t f = g->at[slot(g, 3 * s, j)], b = g->at[slot(g, 3 * s + 1, j)];
      const int32_t w = g->at[slot(g, 3 * s + 2, j)];
      add_arc(g, f, b, 0);
      if (w != ZB_NO_NODE) add_arc(g, b, w, 0);
      if (s + 1 == p->stages) continue;
      add_arc(g, f, g->at[slot(g, 3 * s + 3, j)], p->comm_forward_ns[s]);
      add_arc(g, g->at[slot(g, 3 * s + 4, j)], b, p->comm_backward_ns[s]);
    }
  }
}

static void add_order(struct zb_graph *g, const struct zb_schedule *schedule) {
  for (int d = 0; d < g->devices; d++) {
    const int32_t first = (int32_t)schedule->first[d], end = (int32_t)schedule->first[d + 1];
    int64_t kept = 0, rest = 0;
    g->first[d] = first;
    g->last[d] = end - 1;
    g->limit[d] = g->profile->limit_bytes[d];
    if (g->limit[d] != ZB_NO_LIMIT) g->limit[d] -= g->profile->static_bytes[d];
    for (int32_t k = first; k < end; k++) {
      struct zb_graph_node *x = &g->node[k];
      x->before = k > first ? k - 1 : ZB_NO_NODE;
      x->after = k + 1 < end ? k + 1 : ZB_NO_NODE;
      x->kept = kept += x->delta;
    }
    for (int32_t k = end - 1; k >= first; k--) g->node[k].rest = rest += g->node[k].time;
  }
}

// The timeline's order of the renumbered schedule, whose positions are the nodes, lists successors later.
static enum zb_status add_times(struct zb_graph *g, struct zb_error *error) {
  struct zb_timeline timeline = {0};
  struct zb_schedule *renumbered = NULL;
  enum zb_status status = zb_graph_write(g, &renumbered, error);
  if (status == ZB_OK) status = zb_timeline_compute(g->profile, renumbered, &timeline, error);
  if (status == ZB_OK) {
    for (int k = 0; k < g->nodes; k++) {
      struct zb_graph_node *x = &g->node[timeline.order[k]];
      x->start = x->before == ZB_NO_NODE ? 0 : zb_graph_end(g, x->before);
      if (x->input != ZB_NO_NODE) x->start = zb_max(x->start, zb_graph_end(g, x->input) + x->lag);
      g->sorted[k] = (int32_t)timeline.order[k];
    }
    zb_graph_tails(g);
  }
  zb_timeline_free(&timeline);
  zb_schedule_free(renumbered);
  return status;
}

enum zb_status zb_graph_create(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               bool from_first, struct zb_graph *g, struct zb_error *error) {
  const size_t n = schedule->first[schedule->devices], d = (size_t)schedule->devices;
  const size_t classes = (size_t)3 * (size_t)profile->stages, slots = classes * (size_t)profile->microbatches;
  int64_t sum;
  *g = (struct zb_graph){.profile = profile, .devices = schedule->devices, .from_first = from_first};
  if (n == 0 || n > INT32_MAX / 16) return ZB_OK;
  g->nodes = (int)n;
  if (!choose_units(g, schedule, &sum)) {
    g->nodes = 0;
    return ZB_OK;
  }
  // About a bucket for half an op of each device.
  g->buckets = (int)(2 * n / d) + 64;
  g->words = (g->buckets + 63) / 64;
  g->width = sum / (int64_t)d / g->buckets + 1;
  g->lowest = g->words;
  g->most_swaps = MOST_SWAPS;
  g->most_moveds = (int)(8 * n);
  g->node = malloc(n * sizeof *g->node);
  g->op = malloc(n * sizeof *g->op);
  g->at = malloc(slots * sizeof *g->at);
  g->first = malloc(d * sizeof *g->first);
  g->last = malloc(d * sizeof *g->last);
  g->limit = malloc(d * sizeof *g->limit);
  g->swap = malloc((size_t)g->most_swaps * sizeof *g->swap);
  g->moved = malloc((size_t)g->most_moveds * sizeof *g->moved);
  g->sorted = malloc(n * sizeof *g->sorted);
  g->bucket = malloc((size_t)g->buckets * sizeof *g->bucket);
  g->filled = calloc((size_t)g->words, sizeof *g->filled);
  int32_t *count = calloc(classes, sizeof *count);
  enum zb_status status = ZB_OK;
  if (!g->node || !g->op || !g->at || !g->first || !g->last || !g->limit || !g->swap || !g->moved ||
      !g->sorted || !g->bucket || !g->filled || !count) {
    status = zb_fail_memory(error);
    goto done;
  }
  for (size_t k = 0; k < slots; k++) g->at[k] = ZB_NO_NODE;
  for (int k = 0; k < g->buckets; k++) g->bucket[k] = ZB_NO_NODE;
  add_nodes(g, schedule, count);
  add_arcs(g);
  add_order(g, schedule);
  status = add_times(g, error);

done:
  free(count);
  return status;
}

void zb_graph_free(struct zb_graph *g) {
  free(g->node);
  free(g->op);
  free(g->at);
  free(g->first);
  free(g->last);
  free(g->limit);
  free(g->swap);
  free(g->moved);
  free(g->sorted);
  free(g->bucket);
  free(g->filled);
  *g = (struct zb_graph){0};
}

enum zb_status zb_graph_write(const struct zb_graph *g, struct zb_schedule **schedule,
                              struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  enum zb_status status = zb_builder_create(g->profile, &builder, error);
  if (status != ZB_OK) return status;
  for (int d = 0; d < g->devices; d++)
    for (int32_t at = g->first[d]; at != ZB_NO_NODE; at = g->node[at].after)
      zb_builder_append(&builder, g->op[at].stage, g->op[at].kind, g->op[at].microbatch);
  status = zb_builder_finish(&builder, schedule, error);
  zb_builder_free(&builder);
  return status;
}
