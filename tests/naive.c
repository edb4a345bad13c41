// See naive.h.
#include "tests/naive.h"

#include <assert.h>
#include <string.h>

#define NEVER (INT64_MIN / 4) // a start that nothing has forced yet

// An op and what it waits for: at most the op before it on its device, its own stage, and a neighbour.
struct waiting {
  int64_t duration;
  int count;
  size_t on[3];
  int64_t delay[3];
};

struct graph {
  size_t ops;
  struct waiting op[NAIVE_MAX_OPS];
};

static int64_t duration_of(const struct zb_profile *p, struct zb_op op) {
  switch (op.kind) {
  case ZB_F:
    return p->f_ns[op.stage];
  case ZB_B:
    return p->b_ns[op.stage];
  case ZB_W:
    return p->w_ns[op.stage];
  case ZB_BW:
    return p->bw_ns[op.stage];
  }
  return 0;
}

// Position of the op of this stage and microbatch whose kind is one of two; there is exactly one.
static size_t find(const struct zb_schedule *schedule, int stage, int microbatch, enum zb_kind a,
                   enum zb_kind b) {
  size_t i = 0;
  for (;; i++) {
    assert(i < schedule->first[schedule->devices]);
    const struct zb_op op = schedule->ops[i];
    if (op.stage == stage && op.microbatch == microbatch && (op.kind == a || op.kind == b)) return i;
  }
}

static void wait_for(struct waiting *op, size_t position, int64_t delay) {
  op->on[op->count] = position;
  op->delay[op->count++] = delay;
}

static void build(const struct zb_profile *p, const struct zb_schedule *schedule, struct graph *graph) {
  graph->ops = schedule->first[schedule->devices];
  assert(graph->ops <= NAIVE_MAX_OPS && p->devices <= NAIVE_MAX_DEVICES);
  for (int d = 0; d < schedule->devices; d++) {
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const struct zb_op op = schedule->ops[i];
      int s = op.stage, j = op.microbatch;
      struct waiting *to = &graph->op[i];
      *to = (struct waiting){.duration = duration_of(p, op)};
      if (i > schedule->first[d]) wait_for(to, i - 1, 0);
      if (op.kind == ZB_F) {
        if (s > 0) wait_for(to, find(schedule, s - 1, j, ZB_F, ZB_F), p->comm_forward_ns[s - 1]);
      } else if (op.kind == ZB_W) {
        wait_for(to, find(schedule, s, j, ZB_B, ZB_B), 0);
      } else {
        wait_for(to, find(schedule, s, j, ZB_F, ZB_F), 0);
        if (s < p->stages - 1) wait_for(to, find(schedule, s + 1, j, ZB_B, ZB_BW), p->comm_backward_ns[s]);
      }
    }
  }
}

// Raises starts until every op waits for all it must; false if that never ends.
static bool relax(const struct graph *graph, int64_t *start) {
  for (size_t round = 0; round <= graph->ops; round++) {
    bool moved = false;
    for (size_t i = 0; i < graph->ops; i++) {
      for (int k = 0; k < graph->op[i].count; k++) {
        size_t before = graph->op[i].on[k];
        if (start[before] == NEVER) continue;
        int64_t earliest = start[before] + graph->op[before].duration + graph->op[i].delay[k];
        if (earliest > start[i]) {
          start[i] = earliest;
          moved = true;
        }
      }
    }
    if (!moved) return true;
  }
  return false;
}

// Whether some ops wait for each other in a ring; durations of zero would hide that from `relax`.
static bool has_ring(const struct graph *graph) {
  bool done[NAIVE_MAX_OPS] = {false};
  for (size_t finished = 0, before = 1; finished != before;) {
    before = finished;
    for (size_t i = 0; i < graph->ops; i++) {
      bool ready = !done[i];
      for (int k = 0; k < graph->op[i].count; k++) ready = ready && done[graph->op[i].on[k]];
      if (ready) {
        done[i] = true;
        finished++;
      }
    }
    if (finished == graph->ops) return false;
  }
  return graph->ops > 0;
}

typedef int64_t between[NAIVE_MAX_DEVICES][NAIVE_MAX_DEVICES];

// The largest mean, rounded up, of the simple cycles that go on from `path` and close at `root`, its least
// device.
static int64_t largest_mean(const between length, int devices, int root, int at, unsigned visited,
                            int64_t total, int count) {
  int64_t best = 0;
  if (length[at][root] != NEVER) best = (total + length[at][root] + count - 1) / count;
  for (int next = root + 1; next < devices; next++) {
    if (visited >> next & 1 || length[at][next] == NEVER) continue;
    int64_t mean =
        largest_mean(length, devices, root, next, visited | 1u << next, total + length[at][next], count + 1);
    if (mean > best) best = mean;
  }
  return best;
}

// From each device's first op to each device's last end, the longest way; then all simple cycles.
static int64_t period_of(const struct zb_schedule *schedule, const struct graph *graph, int64_t *own) {
  between length;
  int64_t start[NAIVE_MAX_OPS], best = 0;
  int devices = schedule->devices;
  for (int from = 0; from < devices; from++) {
    for (size_t i = 0; i < graph->ops; i++) start[i] = NEVER;
    start[schedule->first[from]] = 0;
    relax(graph, start);
    for (int to = 0; to < devices; to++) {
      size_t last = schedule->first[to + 1] - 1;
      length[from][to] = start[last] == NEVER ? NEVER : start[last] + graph->op[last].duration;
    }
    if (length[from][from] > *own) *own = length[from][from];
  }
  for (int root = 0; root < devices; root++) {
    int64_t mean = largest_mean((const int64_t(*)[NAIVE_MAX_DEVICES])length, devices, root, root, 0, 0, 1);
    if (mean > best) best = mean;
  }
  return best;
}

bool naive_time(const struct zb_profile *profile, const struct zb_schedule *schedule,
                struct naive_times *times) {
  static struct graph graph; // large, and tests have one thread
  build(profile, schedule, &graph);
  if (has_ring(&graph)) return false;
  memset(times, 0, sizeof *times);
  relax(&graph, times->start_ns);
  for (int d = 0; d < schedule->devices; d++) {
    size_t first = schedule->first[d], last = schedule->first[d + 1] - 1;
    int64_t end = times->start_ns[last] + graph.op[last].duration;
    if (end > times->makespan_ns) times->makespan_ns = end;
    if (end - times->start_ns[first] > times->span_ns) times->span_ns = end - times->start_ns[first];
  }
  times->period_ns = period_of(schedule, &graph, &times->own_ns);
  return true;
}

int64_t naive_peak(const struct zb_profile *p, const struct zb_schedule *schedule, int device,
                   size_t *position) {
  int64_t kept = 0, peak = 0;
  size_t at = schedule->first[device];
  for (size_t i = schedule->first[device]; i < schedule->first[device + 1]; i++) {
    int s = schedule->ops[i].stage;
    switch (schedule->ops[i].kind) {
    case ZB_F:
      kept += p->f_bytes[s];
      break;
    case ZB_B:
      kept += p->b_bytes[s];
      break;
    case ZB_W:
      kept += p->w_bytes[s];
      break;
    case ZB_BW:
      kept += p->b_bytes[s] + p->w_bytes[s];
      break;
    }
    if (kept > peak) {
      peak = kept;
      at = i;
    }
  }
  if (position) *position = at;
  return p->static_bytes[device] + peak;
}
