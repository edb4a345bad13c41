/* zbcheck: the relaxation `fronts`, a complete search in layers for a schedule of cost at most S.
 *
 * It is for one stage a device on a chain, span or makespan, no stage where a BW could pay. Then a limited
 * device's B and W only give memory back, which all of the below rests on. As in zbcheck_window.c it is
 * enough to look at schedules in which every stage works in the order of microbatches. Of those it is enough
 * to look at the ones that start every op as early as its device's order lets it: these costs do not fall
 * when an op starts later, and a device's clock is fixed (span) or the common one (makespan).
 *
 * A node is a front: on every device a beginning of its order, run. What counts of it for what can follow:
 * how many F, B and W of each device are done; the time at which each device is free; and for each F and B
 * whose sender is done and which is not, when its input is there. Those of a device are a queue, since
 * senders work in order. A node is good if what is left can be added so that every device ends by S.
 *
 * Children (Giffler and Thompson 1960). Of all ops that could come next now - the sender is done, an F fits
 * into memory - let o be one with the least end, c, on device d, all on the first device's clock. Every op
 * that is not done ends at c or later: the first of them to end could come next now. So an op of d that could
 * not come next now starts at c or later, as it waits for another device. The children add, on d, one op that
 * could come next now and starts before c, or o. One of them is good if the node is: if d goes on with
 * something else, that starts at c or later, and o fits in before it and moves nothing. What o then comes
 * before on d are only B and W if o is an F, and an F that fits now fits there; if o is a B or W it gives
 * back earlier.
 *
 * Not good is a node where an op has to end after its window (zbcheck_window.c), or a device has to leave its
 * state after the sweep's latest time for that. `settle` looks ahead: the next F of each device, from the
 * first down, and the next B, from the last up, can start no earlier than its input can come, and an F that
 * does not fit not before a W or B has run. It also raises what is kept to what is implied - a device that
 * has no W to run is free no earlier than its next F or B can start; inputs that queue take turns - so that
 * nodes alike in what can follow look alike.
 *
 * Covering. Nodes with the same F and B done on every device are a group. In a group X covers Y if nothing in
 * X is later: on each device X, once it has run the W that only Y has done, is free no later than Y, and no
 * input comes later. What can follow Y can follow X then, W that X is ahead with left out: if Y is good, X
 * is. A covered node is dropped, but only for one with at least as many W done in all. Then of the good nodes
 * that a group was ever given one with the most W done in all, and of those the last one to be dropped for,
 * has its children made: a W would have more W done in all in the same group, so its good child is an F or B,
 * and the next layer is given a good node.
 *
 * Layers go by F and B done in all (zbcheck_layer.c). An F or B leads into the next one, and two are held. In
 * a group the nodes with the fewest W come first, so that most of what could cover a node is there before it
 * has its children made. If a layer is empty, the first node was not good. */
#include "zbcheck_front.h"

#include <string.h>

/* ---- nodes ---- */

/* Whether device i of the child can leave its state in time. */
static bool leaves_in_time(const struct fronts *s, int32_t i) {
  const struct front_device *d = &s->device[i];
  const struct zc_row *row = &d->rows[(int64_t)s->count[i] * (s->m + 1) + s->count[s->devices + i]];
  int32_t weights = zc_front_weights(s->child)[i];

  return weights >= row->low && weights <= row->high &&
         zc_front_times(s, s->child)[i] <= d->leave[row->base + weights];
}

/* Inputs that queue, the first of them taken at `start` at the earliest. */
static bool settle_queue(int64_t *queue, int32_t length, int64_t start, int64_t takes, const int64_t *end) {
  for (int32_t k = 0; k < length; k++, start += takes) {
    start = queue[k] = zc_most(queue[k], start);
    if (start + takes > end[k]) return false;
  }
  return true;
}

static bool fits(const struct front_device *d, int64_t f, int64_t b, int64_t w) {
  return !d->limited || f * d->keep_f + b * d->keep_b + w * d->keep_w <= d->room;
}

/* The earliest start of each device's next F, as far as other F say. */
static void find_next_f(struct fronts *s, const int64_t *clock, const int64_t *queue) {
  const uint16_t *f = s->count;

  s->next_f[0] = f[0] < s->m ? clock[0] : zc_never;
  for (int32_t i = 1; i < s->devices; queue += f[i - 1] - f[i], i++) {
    const struct front_device *d = &s->device[i];
    s->next_f[i] =
        f[i] == s->m
            ? zc_never
            : zc_most(clock[i], f[i - 1] > f[i] ? queue[0] : s->next_f[i - 1] + d[-1].f + d[-1].down);
  }
}

/* Raises the times of the child, whose counts are in s->count, to what they imply. False if it is not good.
 * Up the pipe for B, which may have to wait for an F, then down for F, which may have to wait for a B that
 * gives memory back. */
static bool settle(struct fronts *s) {
  const uint16_t *f = s->count, *b = s->count + s->devices;
  uint16_t *weights = zc_front_weights(s->child);
  int64_t *clock = zc_front_times(s, s->child), *queue = clock + s->devices;
  int32_t last = s->devices - 1, length = 0;

  find_next_f(s, clock, queue);
  queue += f[0] - f[last];
  for (int32_t i = last; i >= 0; i--, queue += length) {
    const struct front_device *d = &s->device[i];
    int64_t start = clock[i];
    length = i < last ? b[i + 1] - b[i] : 0;
    s->next_b[i] = zc_never;
    if (b[i] == s->m) continue;
    if (length > 0)
      start = zc_most(start, queue[0]);
    else if (i < last)
      start = zc_most(start, s->next_b[i + 1] + d[1].b + d[1].up);
    if (b[i] == f[i]) start = zc_most(start, s->next_f[i] + d->f);
    if (start + d->b > d->b_end[b[i]] || !settle_queue(queue, length, start, d->b, d->b_end + b[i]))
      return false;
    s->next_b[i] = start;
  }
  queue = clock + s->devices;
  for (int32_t i = 0; i <= last; i++, queue += length) {
    const struct front_device *d = &s->device[i];
    int64_t start = clock[i];
    length = i > 0 ? f[i - 1] - f[i] : 0;
    s->next_f[i] = zc_never;
    if (f[i] < s->m) {
      if (length > 0)
        start = zc_most(start, queue[0]);
      else if (i > 0)
        start = zc_most(start, s->next_f[i - 1] + d[-1].f + d[-1].down);
      if (!fits(d, f[i] + 1, b[i], weights[i])) /* a W or a B comes first */
        start = zc_most(start, zc_least(s->next_b[i] + d->b, weights[i] < b[i] ? clock[i] + d->w : zc_never));
      if (start + d->f > d->f_end[f[i]] || !settle_queue(queue, length, start, d->f, d->f_end + f[i]))
        return false;
      s->next_f[i] = start;
    }
    if (b[i] == s->m) { /* only W are left, which run now and delay nothing */
      weights[i] = (uint16_t)s->m;
      clock[i] = 0;
    } else if (weights[i] == b[i] && zc_least(s->next_f[i], s->next_b[i]) > clock[i]) {
      clock[i] = zc_least(s->next_f[i], s->next_b[i]);
      if (!leaves_in_time(s, i)) return false;
    }
  }
  return true;
}

/* What could come next on a device: starts, zc_never where it cannot. */
struct front_next {
  int64_t start[3]; /* F, B, W */
};

static int64_t time_of(const struct front_device *d, int kind) {
  return kind == ZC_F ? d->f : kind == ZC_B ? d->b : d->w;
}

/* Where the queues of the node at work begin, behind the clocks: those of F, then those of B, then the end.
 */
static void find_queues(struct fronts *s) {
  const uint16_t *f = s->count, *b = s->count + s->devices;
  int32_t p = s->devices, at = 0;

  for (int32_t i = 1; i < p; i++) {
    s->queue[i - 1] = at;
    at += f[i - 1] - f[i];
  }
  for (int32_t i = p - 2; i >= 0; i--) {
    s->queue[2 * p - 3 - i] = at;
    at += b[i + 1] - b[i];
  }
  s->queue[2 * p - 2] = at;
}

static struct front_next next_of(const struct fronts *s, int32_t i) {
  const struct front_device *d = &s->device[i];
  const int64_t *clock = zc_front_times(s, s->parent), *inputs = clock + s->devices;
  int32_t last = s->devices - 1, f = s->count[i], b = s->count[s->devices + i],
          w = zc_front_weights(s->parent)[i];
  int32_t b_queue = 2 * last - 1 - i;
  struct front_next next = {{zc_never, zc_never, zc_never}};

  if (f < s->m && (i == 0 || s->queue[i] > s->queue[i - 1]) && fits(d, f + 1, b, w))
    next.start[ZC_F] = i == 0 ? clock[i] : zc_most(clock[i], inputs[s->queue[i - 1]]);
  if (b < f && (i == last || s->queue[b_queue + 1] > s->queue[b_queue]))
    next.start[ZC_B] = i == last ? clock[i] : zc_most(clock[i], inputs[s->queue[b_queue]]);
  if (w < b) next.start[ZC_W] = clock[i];
  return next;
}

/* The child in which `kind` runs on device i at `start`. */
static void add_child(struct fronts *s, struct front_group *group, int32_t i, int kind, int64_t start) {
  const struct front_device *d = &s->device[i];
  int64_t *clock = zc_front_times(s, s->child), *inputs = clock + s->devices;
  int32_t p = s->devices, queued = group->queued;

  memcpy(s->child, s->parent, zc_front_size(s, queued));
  clock[i] = start + time_of(d, kind);
  if (kind == ZC_W) {
    zc_front_weights(s->child)[i]++;
    if (leaves_in_time(s, i) && settle(s)) zc_layer_keep(s, group, 0, queued);
    return;
  }
  /* Its input leaves queue number `from`, and what it sends goes to the end of the next one. */
  int32_t from = kind == ZC_F ? i - 1 : 2 * p - 3 - i;
  bool takes = i != (kind == ZC_F ? 0 : p - 1), sends = i != (kind == ZC_F ? p - 1 : 0);
  int32_t low = takes ? s->queue[from] : 0, high = sends ? s->queue[from + 2] : 0;
  int64_t there = clock[i] + (kind == ZC_F ? d->down : d->up);
  if (takes && sends)
    memmove(inputs + low, inputs + low + 1, (size_t)(high - low - 1) * sizeof *inputs);
  else if (takes)
    memmove(inputs + low, inputs + low + 1, (size_t)(queued-- - low - 1) * sizeof *inputs);
  else if (sends)
    memmove(inputs + high + 1, inputs + high, (size_t)(queued++ - high) * sizeof *inputs);
  if (sends) inputs[takes ? high - 1 : high] = there;
  int32_t counted = kind == ZC_F ? i : p + i;
  s->count[counted]++;
  if (leaves_in_time(s, i) && settle(s)) zc_layer_keep(s, NULL, group->hash + s->mark[counted], queued);
  s->count[counted]--;
}

static void expand(struct fronts *s, struct front_group *group) {
  struct front_next next, at = {{0}};
  int32_t device = 0;
  int least_kind = ZC_F;
  int64_t least_end = INT64_MAX;

  s->expanded++;
  for (int32_t i = 0; i < s->devices; i++) {
    next = next_of(s, i);
    for (int kind = ZC_F; kind <= ZC_W; kind++) {
      int64_t end = s->device[i].offset + next.start[kind] + time_of(&s->device[i], kind);
      if (next.start[kind] == zc_never || end >= least_end) continue;
      least_end = end;
      least_kind = kind;
      device = i;
      at = next;
    }
  }
  if (least_end == INT64_MAX) return;
  least_end -= s->device[device].offset;
  for (int kind = ZC_F; kind <= ZC_W; kind++)
    if (at.start[kind] < least_end || kind == least_kind) add_child(s, group, device, kind, at.start[kind]);
}

/* All nodes of the layer, which is left empty and becomes the next one. */
static void step(struct fronts *s) {
  for (struct front_group *group = s->layer.groups; group; group = group->next) {
    memcpy(s->count, group->count, 2 * (size_t)s->devices * sizeof *s->count);
    find_queues(s);
    zc_layer_open(s, group);
    while (!s->too_large && !s->out_of_memory && zc_layer_take(s, group)) expand(s, group);
  }
  zc_layer_turn(s);
}

/* ---- the start ---- */

/* The windows have come to rest; a sweep then finds what it found before, and leaves its latest times. */
static enum zc_outcome take_device(struct fronts *s, struct zc_windows *w, int32_t i) {
  struct front_device *d = &s->device[i];
  const struct zc_stage *stage = &w->stage[i];
  size_t rows = ((size_t)s->m + 1) * ((size_t)s->m + 1);
  enum zc_outcome outcome = zc_sweep_chain(w, i);

  if (outcome != ZC_OPEN) return outcome;
  size_t states = (size_t)(w->rows[rows - 1].base + w->rows[rows - 1].high + 1); /* laid out last */
  *d = (struct front_device){.f = stage->f,
                             .b = stage->b,
                             .w = stage->w,
                             .limited = w->device[i].limited,
                             .room = w->device[i].room,
                             .keep_f = stage->keep_f,
                             .keep_b = stage->keep_b,
                             .keep_w = stage->keep_w,
                             .f_end = stage->f_end,
                             .b_end = stage->b_end};
  if (i + 1 < s->devices) d->down = stage[1].forward - w->device[i + 1].offset_low;
  if (i > 0) d->offset = d[-1].offset + w->device[i].offset_low;
  if (i > 0) d->up = stage->backward + w->device[i].offset_low;
  if (!zc_front_hold(s, rows * sizeof *d->rows + states * sizeof *d->leave)) return ZC_TOO_LARGE;
  d->rows = zc_alloc(s->run, rows, sizeof *d->rows);
  d->leave = zc_alloc(s->run, states, sizeof *d->leave);
  if (!d->rows || !d->leave) return ZC_NO_MEMORY;
  memcpy(d->rows, w->rows, rows * sizeof *d->rows);
  memcpy(d->leave, w->times, states * sizeof *d->leave);
  return ZC_OPEN;
}

static enum zc_outcome begin(struct fronts *s, struct zc_windows *w) {
  size_t p = (size_t)w->devices, most = 2 * (size_t)w->m;
  uint64_t state = 1;
  int64_t longest = 0;

  if (w->m > UINT16_MAX) return ZC_TOO_LARGE;
  s->devices = w->devices;
  s->m = w->m;
  s->weights_size = (p * sizeof(uint16_t) + 7) / 8 * 8;
  if (!(s->device = zc_alloc(s->run, p, sizeof *s->device)) ||
      !(s->count = zc_alloc(s->run, 2 * p, sizeof *s->count)) ||
      !(s->queue = zc_alloc(s->run, 2 * p, sizeof *s->queue)) ||
      !(s->next_f = zc_alloc(s->run, p, sizeof *s->next_f)) ||
      !(s->next_b = zc_alloc(s->run, p, sizeof *s->next_b)) ||
      !(s->waiting = zc_alloc(s->run, p * (size_t)w->m + 1, sizeof(struct front_node *))) ||
      !(s->mark = zc_alloc(s->run, 2 * p, sizeof *s->mark)) ||
      !(s->parent = zc_alloc(s->run, 1, zc_front_size(s, (int64_t)most))) ||
      !(s->child = zc_alloc(s->run, 1, zc_front_size(s, (int64_t)most))))
    return ZC_NO_MEMORY;
  for (size_t i = 0; i < 2 * p; i++) s->mark[i] = state = state * 6364136223846793005u + 1442695040888963407u;
  for (int32_t i = 0; i < s->devices; i++) {
    enum zc_outcome outcome = take_device(s, w, i);
    if (outcome != ZC_OPEN) return outcome;
    longest += s->device[i].f + s->device[i].b + s->device[i].w;
  }
  while ((int64_t)1024 << s->lane_shift < longest) s->lane_shift++;
  if (settle(s)) zc_layer_keep(s, NULL, 0, 0);
  return ZC_OPEN;
}

enum zc_outcome zc_fronts_search(struct zc_windows *w) {
  struct fronts s = {.run = w->run};
  enum zc_outcome outcome = begin(&s, w);

  if (outcome == ZC_OPEN) {
    int64_t layers = 2 * (int64_t)s.devices * s.m, layer = 0;
    for (step(&s); s.layer.groups && layer < layers && !s.too_large && !s.out_of_memory; layer++) step(&s);
    outcome = s.out_of_memory  ? ZC_NO_MEMORY
              : s.too_large    ? ZC_TOO_LARGE
              : s.layer.groups ? ZC_OPEN
                               : ZC_REFUTED;
    zc_note(s.run, "fronts: %lld layers, %lld nodes, %lld expanded, %lld bytes at most", (long long)layer,
            (long long)s.nodes, (long long)s.expanded, (long long)s.most_held);
  }
  zc_layers_free(&s);
  return outcome;
}
