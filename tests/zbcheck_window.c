/* zbcheck: can any schedule cost at most S? Windows of every op, propagated until nothing moves.
 *
 * The schedules spoken about. Microbatches are interchangeable: in any schedule, keep the start times and
 * call, on every stage, the k-th forward to start the forward of microbatch k, and likewise the k-th
 * backward and weight pass. The k-th of m sorted ends on one stage is still followed, `comm` later, by the
 * k-th of m sorted starts on the next; memory depends on counts only. So it is enough to refute the schedules
 * in which every stage works in the order of microbatches, with starts anywhere (not only as early as
 * possible). A device's order is then a path through states: how many F, B and W of each of its stages, its
 * chunks 0, 1, .. along the pipe, are done. In a state F0 >= F1 >= .. >= B1 >= B0 and W <= B of each; a BW
 * counts as a B and a W. Where chunks agree in what a W takes, keeps and can save in a BW, it does not matter
 * whose W is done: then all W of the device are one class, of which there can be as many as there are B.
 *
 * Clocks. Each device has its own, and `offset` is how much later it starts than that of its parent, the
 * device of the stage before its first. Between any two devices the offset is the sum along the parents,
 * subtracted on the way up.
 * - makespan: one clock for all. Every offset is 0, and everything lies in [0, S].
 * - period: a device's clock starts with its first op; from there to its last end is at most S, or the
 *   order could not come round every S. That first op is F0 of chunk 0, which waits for F0 of the stage
 *   before: the offset is at least when that can end, and comm. How long the device may wait beyond that is
 *   unknown: an interval.
 * - span: the same clocks and the same S, but with every op as early as possible F0 starts as F0 of the
 *   stage before arrives. Where that is the first op of its own device the offset is exactly f + comm,
 *   otherwise an interval again, no wider than the window of that F0. This holds where every device begins
 *   with the same microbatch, and the bound is one over those orders. A device that begins with another one
 *   starts later than it has to, and that can shorten its span: see the period, whose bound is one over all
 *   orders.
 *
 * What is kept of every F and B, on its device's clock, and holds in every schedule of cost <= S that a
 * proof's inner nodes have not put aside: the earliest start and the latest end. Of a B also the earliest
 * end, the latest start and the least time, since it may be a BW that takes longer or less. And for pairs of
 * classes how many of one can be done when a number of the other starts.
 *
 * The rules, each of which only narrows what is kept, so that the order of application does not matter:
 * - sweep: one device, all paths at once. E(state) = the earliest time at which a path can be there with
 *   every op on it inside its window, memory within the limit in every state, and the restrictions obeyed.
 *   Being earlier never hurts, so one number a state says all. L(state) = the latest time at which it can
 *   be left and the end reached by S. A step is possible if it starts, at its earliest, no later than at
 *   its latest; any schedule uses possible steps only, so the windows of an op are the extremes over the
 *   possible steps that do it. If the first state cannot be left in time, S is refuted. The relaxation
 *   `fluid-w` changes this rule only: zbcheck_pour.c.
 * - link: between neighbours on two devices. F of stage s starts after F of s - 1 has ended and travelled;
 *   B of s - 1 after B of s. Starts go down and ends come up, shifted by the end of the offset's interval
 *   that claims less; where they cross they narrow the interval.
 * - lag: within a device. A microbatch's F on a chunk starts only after its F on the chunk before and the
 *   way through the stages between; its B on the last chunk after its F there and the way through every
 *   stage behind, in both directions; its B on a chunk after its B on the next one and the way between.
 *   (Where offsets are fixed the links say this already.)
 *
 * All costs of span and makespan are multiples of the common divisor of all times, their tick, and so is S
 * then. Where S is one, what is asked of starts and clocks in given orders is differences of two of them at
 * least some multiple of the tick: if there are any, there are some that are multiples, offsets among them.
 *
 * BW is a step where it could pay: where it is faster than B and W, or where B alone adds to memory and there
 * is a limit. Elsewhere a B and its W right after it can take its place: B ends no later, and memory is never
 * above what it was. */
#include "zbcheck_window.h"

#include <stdlib.h>

/* ---- narrowing, and undoing it ---- */

static void put(struct zc_windows *w, int64_t *cell, int64_t value) {
  w->moved = true;
  if (w->levels_count > 0) {
    void *table = w->changes;
    if (!zc_grow(w->run, &table, &w->changes_room, w->changes_count + 1, sizeof *w->changes)) {
      w->out_of_memory = true;
      return;
    }
    w->changes = table;
    w->changes[w->changes_count++] = (struct zc_change){cell, *cell};
  }
  *cell = value;
}

bool zc_at_least(struct zc_windows *w, int64_t *cell, int64_t value) {
  bool moves = value > *cell;

  if (moves) put(w, cell, value);
  return moves;
}

bool zc_at_most(struct zc_windows *w, int64_t *cell, int64_t value) {
  bool moves = value < *cell;

  if (moves) put(w, cell, value);
  return moves;
}

bool zc_take_found(struct zc_windows *w, struct zc_stage *s, const struct zc_found *f_found,
                   const struct zc_found *b_found) {
  bool moved = false;

  for (int32_t k = 0; k < w->m; k++) {
    moved |= zc_at_least(w, &s->f_start[k], f_found[k].first_start);
    moved |= zc_at_most(w, &s->f_end[k], f_found[k].last_end);
    moved |= zc_at_least(w, &s->b_start[k], b_found[k].first_start);
    moved |= zc_at_most(w, &s->b_end[k], b_found[k].last_end);
    moved |= zc_at_least(w, &s->b_first_end[k], b_found[k].first_end);
    moved |= zc_at_most(w, &s->b_last_start[k], b_found[k].last_start);
    moved |= zc_at_least(w, &s->b_least[k], b_found[k].least_time);
  }
  return moved;
}

/* ---- between devices ---- */

/* The offset of device b against device a, an interval. */
static void offset_between(const struct zc_windows *w, int32_t a, int32_t b, int64_t *low, int64_t *high) {
  *low = *high = 0;
  while (a != b) {
    const struct zc_device *up = &w->device[a], *down = &w->device[b];
    if (down->depth >= up->depth) {
      *low += down->offset_low;
      *high += down->offset_high;
      b = down->parent;
    } else {
      *low -= up->offset_high;
      *high -= up->offset_low;
      a = up->parent;
    }
  }
}

/* What the stages on the two sides of a device's first boundary say about its offset. False where they
 * contradict each other. */
static bool narrow_offset(struct zc_windows *w, struct zc_device *d) {
  if (d->feeder < 0 || w->objective == ZC_MAKESPAN) return true;
  struct zc_stage *up = &w->stage[d->feeder], *down = up + 1;

  for (int32_t k = 0; k < w->m; k++) {
    zc_at_least(w, &d->offset_low, up->f_start[k] + up->f + down->forward - (down->f_end[k] - down->f));
    zc_at_most(w, &d->offset_high, up->b_last_start[k] - down->backward - down->b_first_end[k]);
  }
  if (d->open && w->objective == ZC_SPAN) {
    zc_at_most(w, &d->offset_high, up->f_end[0] + down->forward);
    w->device[up->device].dirty |= zc_at_least(w, &up->f_start[0], d->offset_low - down->forward - up->f);
  }
  return d->offset_low <= d->offset_high;
}

/* Stage number `below` and the one before it, on two devices. */
static void link_stages(struct zc_windows *w, int32_t below) {
  struct zc_stage *up = &w->stage[below - 1], *down = &w->stage[below];
  bool *up_dirty = &w->device[up->device].dirty, *down_dirty = &w->device[down->device].dirty;
  int64_t low, high;

  offset_between(w, up->device, down->device, &low, &high);
  for (int32_t k = 0; k < w->m; k++) {
    *down_dirty |= zc_at_least(w, &down->f_start[k], up->f_start[k] + up->f + down->forward - high);
    *up_dirty |= zc_at_most(w, &up->f_end[k], down->f_end[k] - down->f + high - down->forward);
    *up_dirty |= zc_at_least(w, &up->b_start[k], down->b_first_end[k] + low + down->backward);
    *down_dirty |= zc_at_most(w, &down->b_end[k], up->b_last_start[k] - low - down->backward);
  }
}

/* Chunk `next` of a device, and the one before it. way_down of a stage: from the start of F of stage 0 to the
 * start of F there; way_up: from the gradient that arrives there back to the one that arrives at stage 0. */
static bool lag_chunks(struct zc_windows *w, struct zc_stage *s, struct zc_stage *next, int32_t k) {
  ptrdiff_t from = s - w->stage, to = next - w->stage;
  int64_t down = w->way_down[to] - w->way_down[from], up = w->way_up[to] - w->way_up[from] - s->b_least[k];
  bool dirty = zc_at_least(w, &next->f_start[k], s->f_start[k] + down);

  dirty |= zc_at_most(w, &s->f_end[k], next->f_end[k] - next->f - down + s->f);
  dirty |= zc_at_least(w, &s->b_start[k], next->b_first_end[k] + up);
  dirty |= zc_at_most(w, &next->b_end[k], s->b_last_start[k] - up);
  return dirty;
}

static void apply_lags(struct zc_windows *w) {
  int32_t end = w->stages - 1;

  for (int32_t s = 1; s <= end; s++)
    w->way_down[s] = w->way_down[s - 1] + w->stage[s - 1].f + w->stage[s].forward;
  for (int32_t k = 0; k < w->m; k++) {
    for (int32_t s = 1; s <= end; s++)
      w->way_up[s] = w->way_up[s - 1] + w->stage[s - 1].b_least[k] + w->stage[s].backward;
    for (int32_t i = 0; i < w->devices; i++) {
      struct zc_device *d = &w->device[i];
      int32_t last = d->stages[d->chunks - 1];
      struct zc_stage *s = &w->stage[last];
      int64_t around = w->way_down[end] + w->stage[end].f - w->way_down[last] - s->f + w->way_up[end] +
                       w->stage[end].b_least[k] - w->way_up[last] - s->b_least[k];
      for (int32_t c = 1; c < d->chunks; c++)
        d->dirty |= lag_chunks(w, &w->stage[d->stages[c - 1]], &w->stage[d->stages[c]], k);
      d->dirty |= zc_at_least(w, &s->b_start[k], s->f_start[k] + s->f + around);
      d->dirty |= zc_at_most(w, &s->f_end[k], s->b_last_start[k] - around);
    }
  }
}

/* All that is not a sweep, once. */
static bool settle(struct zc_windows *w) {
  for (int32_t i = 0; i < w->devices; i++)
    if (!narrow_offset(w, &w->device[w->order[i]])) return false;
  for (int32_t s = 1; s < w->stages; s++)
    if (w->stage[s].device != w->stage[s - 1].device) link_stages(w, s);
  apply_lags(w);
  return true;
}

static enum zc_outcome sweep_dirty(struct zc_windows *w, int32_t number) {
  struct zc_device *d = &w->device[number];

  if (!d->dirty) return ZC_OPEN;
  enum zc_outcome outcome = w->poured       ? zc_sweep_poured(w, number)
                            : d->chunks > 1 ? zc_sweep_states(w, number)
                                            : zc_sweep_chain(w, number);
  return outcome != ZC_OPEN ? outcome : settle(w) ? ZC_OPEN : ZC_REFUTED;
}

enum zc_outcome zc_windows_propagate(struct zc_windows *w) {
  if (w->empty) return ZC_REFUTED;
  do {
    w->moved = false;
    if (!settle(w)) return ZC_REFUTED;
    /* Up the pipe for backwards, then down for forwards: what moves on one device is used on the next. */
    for (int32_t i = 2 * w->devices - 1; i >= 0; i--) {
      int32_t at = i >= w->devices ? i - w->devices : w->devices - 1 - i;
      enum zc_outcome outcome = sweep_dirty(w, w->order[at]);
      if (outcome != ZC_OPEN) return outcome;
    }
  } while (w->moved && !w->out_of_memory);
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}

/* ---- down and up the tree ---- */

int32_t zc_windows_class(const struct zc_windows *w, int32_t device, int32_t chunk, enum zc_kind kind) {
  const struct zc_device *d = &w->device[device];

  if (kind == ZC_W && d->merged && d->chunks > 1) return chunk < 0 ? 2 * d->chunks : -1;
  if (d->chunks == 1 ? chunk >= 0 : chunk < 0 || chunk >= d->chunks) return -1;
  return (int32_t)kind * d->chunks + (int32_t)zc_most(chunk, 0);
}

int32_t zc_windows_class_size(const struct zc_windows *w, int32_t device, int32_t class_number) {
  return w->device[device].count[class_number];
}

bool zc_windows_offset_open(const struct zc_windows *w, int32_t device) { return w->device[device].open; }

enum zc_outcome zc_windows_enter(struct zc_windows *w, const struct zc_variable *variable, int64_t value,
                                 bool above) {
  struct zc_device *d = &w->device[variable->device];
  int64_t *low, *high;
  void *table = w->levels;

  if (!zc_grow(w->run, &table, &w->levels_room, w->levels_count + 1, sizeof *w->levels)) return ZC_NO_MEMORY;
  w->levels = table;
  w->levels[w->levels_count++] = w->changes_count;
  if (w->empty) return ZC_REFUTED;
  if (variable->what == ZC_OFFSET) {
    low = &d->offset_low;
    high = &d->offset_high;
  } else if (variable->what == ZC_FUSED) {
    low = &w->stage[d->stages[variable->counted % d->chunks]].fused_low[variable->index];
    high = &w->stage[d->stages[variable->counted % d->chunks]].fused_high[variable->index];
  } else {
    low = &zc_low(d, variable->counted, variable->starting)[variable->index];
    high = &zc_high(d, variable->counted, variable->starting)[variable->index];
    d->weights_split |= variable->starting >= 2 * d->chunks;
  }
  int64_t next = value + 1;
  if (variable->what == ZC_OFFSET && value >= 0) {
    value -= value % w->tick;
    next = value + w->tick;
  }
  bool moves = above ? zc_at_least(w, low, next) : zc_at_most(w, high, value);
  if (variable->what != ZC_OFFSET) d->dirty |= moves;
  return zc_windows_propagate(w);
}

void zc_windows_leave(struct zc_windows *w) {
  size_t mark = w->levels[--w->levels_count];

  while (w->changes_count > mark) {
    w->changes_count--;
    *w->changes[w->changes_count].cell = w->changes[w->changes_count].old;
  }
  for (int32_t i = 0; i < w->devices; i++) w->device[i].dirty = false; /* the level above had come to rest */
}

/* ---- the start ---- */

static bool allocate_stage(struct zc_windows *w, struct zc_stage *s) {
  size_t m = (size_t)w->m;
  int64_t **cells[] = {&s->f_start,      &s->f_end,   &s->b_start,   &s->b_end,     &s->b_first_end,
                       &s->b_last_start, &s->b_least, &s->fused_low, &s->fused_high};
  int64_t *block = zc_alloc(w->run, sizeof cells / sizeof cells[0] * m, sizeof *block);

  if (!block) return false;
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++, block += m) *cells[i] = block;
  return true;
}

/* What holds before any rule: everything lies in [0, S]. */
static bool start_stage(struct zc_windows *w, const struct zc_profile *p, int32_t number) {
  struct zc_stage *s = &w->stage[number];

  if (!allocate_stage(w, s)) return false;
  s->device = p->device_of[number];
  while (p->stages_of[s->device * p->chunks + s->chunk] != number) s->chunk++;
  s->f = p->f[number];
  s->b = p->b[number];
  s->w = p->w[number];
  s->bw = p->bw[number];
  s->keep_f = p->keep_f[number];
  s->keep_b = p->keep_b[number];
  s->keep_w = p->keep_w[number];
  s->fusing = s->bw < s->b + s->w || (s->keep_b > 0 && p->limit[s->device] != ZC_NO_LIMIT);
  s->full = s->fusing ? zc_least(s->b + s->w, s->bw) : s->b + s->w;
  s->gradient = s->fusing ? zc_least(s->b, s->bw) : s->b;
  if (number > 0) {
    s->forward = p->forward[number - 1];
    s->backward = p->backward[number - 1];
  }
  for (int32_t k = 0; k < w->m; k++) {
    s->b_least[k] = s->gradient;
    s->f_end[k] = s->b_end[k] = w->target;
    s->b_first_end[k] = s->b_least[k];
    s->b_last_start[k] = w->target - s->b_least[k];
    s->fused_high[k] = 1;
  }
  if (w->objective != ZC_MAKESPAN && s->chunk == 0) s->f_end[0] = s->f; /* where its device's clock starts */
  return true;
}

/* Counts are anything. */
static bool start_counts(struct zc_windows *w, struct zc_device *d) {
  size_t pairs = (size_t)(d->classes * d->classes), total = 0;

  for (int32_t c = 0; c < d->classes; c++) total += (size_t)d->count[c] * (size_t)d->classes;
  int64_t *block = zc_alloc(w->run, 2 * total, sizeof *block);
  if (!block || !(d->low = zc_alloc(w->run, pairs, sizeof *d->low)) ||
      !(d->high = zc_alloc(w->run, pairs, sizeof *d->high)))
    return false;
  for (int32_t counted = 0; counted < d->classes; counted++) {
    for (int32_t starting = 0; starting < d->classes; starting++) {
      int32_t at = counted * d->classes + starting;
      d->low[at] = block;
      d->high[at] = block + d->count[starting];
      block += 2 * d->count[starting];
      for (int32_t k = 0; k < d->count[starting]; k++) d->high[at][k] = d->count[counted];
    }
  }
  return true;
}

static bool start_device(struct zc_windows *w, const struct zc_profile *p, int32_t number) {
  struct zc_device *d = &w->device[number];
  const struct zc_stage *first;

  d->chunks = p->chunks;
  d->stages = p->stages_of + number * p->chunks;
  d->limited = p->limit[number] != ZC_NO_LIMIT;
  d->room = d->limited ? p->limit[number] - p->standing[number] : 0;
  d->dirty = d->merged = true;
  first = &w->stage[d->stages[0]];
  for (int32_t c = 1; c < d->chunks; c++) {
    const struct zc_stage *s = &w->stage[d->stages[c]];
    d->merged = d->merged && s->w == first->w && s->keep_w == first->keep_w &&
                s->full - s->gradient == first->full - first->gradient;
  }
  d->classes = 2 * d->chunks + (d->merged ? 1 : d->chunks);
  for (int32_t c = 0; c < d->classes; c++) d->count[c] = w->m;
  if (d->merged) d->count[d->classes - 1] = w->m * d->chunks;
  d->feeder = d->stages[0] - 1;
  d->parent = d->feeder < 0 ? -1 : p->device_of[d->feeder];
  if (d->parent >= 0 && w->objective != ZC_MAKESPAN) {
    d->open = w->objective == ZC_PERIOD || w->stage[d->feeder].chunk != 0;
    d->offset_low = d->offset_high = p->f[d->feeder] + p->forward[d->feeder];
    /* The device before does a B later than this one does its own, and by S. */
    if (d->open) d->offset_high = zc_most(d->offset_low, w->target);
  }
  return start_counts(w, d);
}

static bool start_devices(struct zc_windows *w, const struct zc_profile *p) {
  int32_t known = 0;

  for (int32_t s = 0; s < w->stages; s++)
    if (!start_stage(w, p, s)) return false;
  for (int32_t s = 0; s < w->stages; s++) {
    int32_t device = w->stage[s].device;
    if (w->stage[s].chunk > 0) continue;
    w->order[known++] = device;
    if (!start_device(w, p, device)) return false;
    if (s > 0) w->device[device].depth = w->device[w->device[device].parent].depth + 1;
  }
  return true;
}

static int64_t divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The common divisor of all times, 1 where there are none. */
static int64_t profile_tick(const struct zc_profile *p) {
  int64_t tick = 0;

  for (int32_t s = 0; s < p->stages; s++) {
    const int64_t times[] = {
        p->f[s], p->b[s], p->w[s], p->bw[s], s > 0 ? p->forward[s - 1] : 0, s > 0 ? p->backward[s - 1] : 0};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) tick = divisor(tick, times[i]);
  }
  return zc_most(tick, 1);
}

struct zc_windows *zc_windows_new(struct zc_run *run, const struct zc_profile *profile,
                                  enum zc_objective objective, int64_t target, bool poured) {
  struct zc_windows *w = zc_alloc(run, 1, sizeof *w);
  size_t m = (size_t)profile->microbatches, chunks = (size_t)profile->chunks,
         stages = (size_t)profile->stages, devices = (size_t)profile->devices;

  if (!w) return NULL;
  w->run = run;
  w->objective = objective;
  w->devices = profile->devices;
  w->stages = profile->stages;
  w->m = profile->microbatches;
  w->tick = profile_tick(profile);
  w->target = target;
  w->empty = target < 0;
  if (objective != ZC_PERIOD && !w->empty) w->target -= target % w->tick;
  if (w->target % w->tick != 0) w->tick = 1;
  w->poured = poured;
  if (!(w->stage = zc_alloc(run, stages, sizeof *w->stage)) ||
      !(w->device = zc_alloc(run, devices, sizeof *w->device)) ||
      !(w->order = zc_alloc(run, devices, sizeof *w->order)) ||
      !(w->way_down = zc_alloc(run, stages, sizeof *w->way_down)) ||
      !(w->way_up = zc_alloc(run, stages, sizeof *w->way_up)) ||
      !(w->found_ops = zc_alloc(run, 2 * chunks * m, sizeof *w->found_ops)))
    return NULL;
  if (chunks > 1 || poured) {
    w->found_counts = zc_alloc(run, 2 * chunks * m * 3 * chunks * 2, sizeof *w->found_counts);
    w->nodes = zc_alloc(run, 1, sizeof *w->nodes);
    w->leave = zc_alloc(run, chunks * m + 1, sizeof *w->leave);
    if (!w->found_counts || !w->nodes || !w->leave) return NULL;
  } else if (!(w->rows = zc_chain_rows(run, w->m))) {
    return NULL;
  }
  return start_devices(w, profile) ? w : NULL;
}

void zc_windows_free(struct zc_windows *w) {
  if (!w) return;
  zc_note(w->run, "%lld device sweeps, %lld states", (long long)w->sweeps, (long long)w->states);
  if (w->nodes) zc_nodes_free(w->nodes);
  free(w->times);
  free(w->changes);
  free(w->levels);
}
