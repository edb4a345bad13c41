/* zbcheck: the relaxation `fluid-fronts`, a complete search in layers for more than schedules.
 *
 * It is for what `fronts` is for (zbcheck_front.c): one stage a device on a chain, span or makespan, no stage
 * where a BW could pay; then, on a limited device, B and W only give memory back. The search is for orders of
 * the F and B of every device, in the order of microbatches. W has no place in them: it is poured, at rate 1,
 * whenever no F or B runs on the device, but never beyond w for each B that has ended there. F waits for
 * memory with as many W given back as are poured, in whole W. Sought is a pouring in which every F and B ends
 * inside its window (zbcheck_window.c) and every device has all W poured by the horizon, S on its own clock.
 * From a schedule of cost S or less comes one, with the same F and B: at every time as much W is poured as
 * the schedule has done, or more. So if there is no pouring, S is refuted.
 *
 * Of a device, `clock` is when it is free and `lag` the clock less what is poured. Nothing is lost if both
 * are less, or if an op starts earlier: what was waited for before can be waited for after, and W poured
 * then, up to a limit that is no lower. So of an order only the pouring counts in which every op starts as
 * early as can be. A node is, on every device, a beginning of its order, run so: how many F and B are done,
 * the clock, the lag, and the inputs that came and were not taken, a queue for each boundary and direction.
 * It is good if what is left can be added.
 *
 * Moving ahead. Let o be the next F, or B, of device d, which can start now (its input is there, or on its
 * way; an F has, or will have, enough poured without another B) and ends at e. Let a good node go on with the
 * other kind on d, not before e. Is the node in which o has run good, too? Put it in front and leave all else
 * in its place: nothing of the others comes later. W that was poured before e is displaced by as much as o
 * takes at most, and all of it is back once the old place of o is over, where nothing runs now. Until then
 * - there are only B, if o is an F: they do not ask for memory. So F may go ahead.
 * - there are only F, if o is a B. Each has one more B done, and asks for that much less W than it did, and
 *   was possible with one less. Let D be the W that the last F needs that could come before this B
 * (`displaced`; an earlier one needs less, and so does one that starts later). If the lag behind o, and D,
 * are no more than the time t at which the first of them starts, D is poured by then. So B may go ahead if
 * lag + D <= t. It may, too, if no F can come before it, since none is left or memory asks for another B. So
 * a device has to do o (`forced`) if it has no choice but that, or the other kind could start no earlier than
 * e and o may go ahead. That is so whatever the clocks of other devices say, and stays so when they go on:
 * what has to run is run at once and makes no nodes, and where that ends up does not depend on the order.
 *
 * Choices. If the next F and the next B of a device can both start now, one of them is the next to run: the
 * two children. Whose choice comes first does not matter; it is the first device's. If there is no such
 * device, let o be the op with the least end, e, of all that can start now, on the first device's clock.
 * Every op that is not done ends at e or later, as the first of them to end can start now; so the other kind
 * on o's device, which cannot, starts at e or later, as it waits for one of them. If o may go ahead, it does.
 * Otherwise it is a B, and an F whose input is not there could come before it: one child has run o, and in
 * the other it is held back until that F has run. Held B are part of what a node is: it is good if what is
 * left can be added so.
 *
 * What is implied (`settle`). The next F of each device, from the first down, and the next B, from the last
 * up, can start no earlier than their inputs can come; an F not before memory allows it, by whatever is
 * poured or by the B that it has to wait for; a B that is held, or has no F to follow, not before the next F
 * is done. Where one of them would end after its window, or a device's clock and lag miss all that it could
 * finish from (zbcheck_fluid_table.c), the node is not good. A device is free no earlier than its next F or B
 * can start, and pours till then; inputs that queue take turns. Times are raised to that, so that nodes alike
 * in what can follow look alike. A device with no F or B left has met the horizon, and its clock counts no
 * more. Nor does a lag count where as much is poured as any F to come asks for, and lag and all ops to come
 * meet the horizon: an op adds as much to the clock as to the lag, and what else raises a lag, that no W is
 * left to pour, does not depend on it. The lag is raised that far, too.
 *
 * Covering. Of two nodes with the same F and B done, and B held, on every device X covers Y if no clock, lag
 * or input of X is later: what can follow Y can follow X. Covered nodes are dropped; of equal ones one stays.
 *
 * Layers go by F and B done in all, then by B held. A child is in a later one than its node. Of the last
 * layer that was ever given a good node, before the end, take one that no other there covers; it had its
 * children made, and one of those is good, in a later layer. So if none is left with all F and B done, the
 * first node was not good. */
#include "zbcheck_fluid.h"

#include <string.h>

enum { RUN_F, RUN_B, RUN_NONE };

/* ---- the node at work ---- */

/* Inputs that queue. */
static inline int32_t f_queued(const struct fluid *s, int32_t i) {
  return i > 0 ? s->at[i - 1].f - s->at[i].f : 0;
}

static inline int32_t b_queued(const struct fluid *s, int32_t i) {
  return i < s->devices - 1 ? s->at[i + 1].b - s->at[i].b : 0;
}

static inline void find_state(struct fluid *s, int32_t i) {
  struct fluid_at *at = &s->at[i];

  at->state = &s->device[i].state[(int64_t)at->f * (s->m + 1) + at->b];
}

static void hold(struct fluid *s, int32_t i, bool held) {
  if (held == s->at[i].held) return;
  s->at[i].held = held;
  s->hash += held ? s->mark[2 * s->devices + i] : -s->mark[2 * s->devices + i];
}

/* Whether one of the device's points can still be met. With no F and B left it is met for good. */
static inline bool can_finish(struct fluid *s, int32_t i) {
  struct fluid_at *at = &s->at[i];

  for (int32_t k = 0; k < at->state->points; k++) {
    if (at->clock > at->state->point[k].clock || at->lag > at->state->point[k].lag) continue;
    if (at->b == s->m) at->clock = at->lag = 0;
    return true;
  }
  return false;
}

/* When the next F, or B, of a device starts if it is its next op; zc_never if it cannot be. */
static inline int64_t f_start(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  if (at->f == s->m || at->state->ready == zc_never || (i > 0 && f_queued(s, i) == 0)) return zc_never;
  return zc_most(zc_most(at->clock, at->lag + at->state->ready), i > 0 ? at->f_in[at->f] : 0);
}

static inline int64_t b_start(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  if (at->b == at->f || at->held || (i < s->devices - 1 && b_queued(s, i) == 0)) return zc_never;
  return zc_most(at->clock, i < s->devices - 1 ? at->b_in[at->b] : 0);
}

/* The lag of device i once an op that starts there at `start` and takes `takes` is done. */
static inline int64_t lag_after(const struct fluid *s, int32_t i, int64_t start, int64_t takes) {
  return zc_most(s->at[i].lag + takes, start + takes - s->at[i].b * s->device[i].w);
}

/* The next F or B of device i starts. False if that is too late. */
static bool run_op(struct fluid *s, int32_t i, int kind, int64_t start) {
  const struct fluid_device *d = &s->device[i];
  struct fluid_at *at = &s->at[i];
  int64_t takes = kind == RUN_F ? d->f : d->b;

  at->lag = lag_after(s, i, start, takes);
  at->clock = start + takes;
  s->done++;
  if (kind == RUN_F) {
    if (at->clock > d->f_end[at->f]) return false;
    if (i < s->devices - 1) at[1].f_in[at->f] = at->clock + d->down;
    if (++at->f == s->m) at->f_next = zc_never;
    s->hash += s->mark[i];
    hold(s, i, false);
  } else {
    if (at->clock > d->b_end[at->b]) return false;
    if (i > 0) at[-1].b_in[at->b] = at->clock + d->up;
    if (++at->b == s->m) at->b_next = zc_never;
    s->hash += s->mark[s->devices + i];
  }
  find_state(s, i);
  return can_finish(s, i);
}

/* ---- what has to run ---- */

/* The earliest input of the next F, or B, of device i. */
static inline int64_t f_input(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  if (i == 0) return 0;
  return at[-1].f > at->f ? at->f_in[at->f] : at[-1].f_next + s->device[i - 1].f + s->device[i - 1].down;
}

static inline int64_t b_input(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  if (i == s->devices - 1) return 0;
  return at[1].b > at->b ? at->b_in[at->b] : at[1].b_next + s->device[i + 1].b + s->device[i + 1].up;
}

/* The next F, or B, starts no earlier than this if it is the next op of its device; zc_never if it cannot be.
 */
static inline int64_t f_first(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  if (at->f == s->m || at->state->ready == zc_never) return zc_never;
  return zc_most(zc_most(at->f_next, f_input(s, i)), zc_most(at->clock, at->lag + at->state->ready));
}

static inline int64_t b_first(const struct fluid *s, int32_t i) {
  const struct fluid_at *at = &s->at[i];

  return at->b == at->f || at->held ? zc_never : zc_most(at->clock, b_input(s, i));
}

/* Whether the B of device i that could start at `start` may go ahead of F that start at `other` or later. */
static inline bool harmless(const struct fluid *s, int32_t i, int64_t start, int64_t other) {
  int64_t end = start + s->device[i].b;

  return other == zc_never || (other >= end && other >= lag_after(s, i, start, s->device[i].b) +
                                                            s->device[i].displaced[s->at[i].b]);
}

/* What device i has to do next. */
static inline int forced(const struct fluid *s, int32_t i, int64_t *start) {
  int64_t f = f_start(s, i), b;

  if (f != zc_never && b_first(s, i) >= f + s->device[i].f) {
    *start = f;
    return RUN_F;
  }
  b = b_start(s, i);
  if (b == zc_never || !harmless(s, i, b, f_first(s, i))) return RUN_NONE;
  *start = b;
  return RUN_B;
}

/* Runs all of that. False if the node at work is not good. */
static bool run_forced(struct fluid *s, int32_t i, bool *ran) {
  int64_t start;

  for (int kind; (kind = forced(s, i, &start)) != RUN_NONE; *ran = true)
    if (!run_op(s, i, kind, start)) return false;
  return true;
}

/* ---- what is implied ---- */

/* Inputs that queue, the first of them taken at `start` at the earliest. False if one has to end too late. */
static inline bool settle_queue(int64_t *queue, int32_t length, int64_t start, int64_t takes,
                                const int64_t *end) {
  for (int32_t k = 0; k < length; k++, start += takes) {
    start = queue[k] = zc_most(queue[k], start);
    if (start + takes > end[k]) return false;
  }
  return true;
}

/* The earliest end of the B, `more` from here, that the next F of device i has to wait for. */
static inline int64_t b_end_after(const struct fluid *s, int32_t i, int32_t more) {
  const struct fluid_at *at = &s->at[i];
  int32_t known = (int32_t)zc_least(b_queued(s, i), more);
  int64_t takes = s->device[i].b;

  if (known == 0) return at->b_next + more * takes;
  return at->b_in[at->b + known - 1] + (1 + more - known) * takes;
}

/* The next B of device i, and those that queue behind it. */
static inline bool settle_b(struct fluid *s, int32_t i) {
  const struct fluid_device *d = &s->device[i];
  struct fluid_at *at = &s->at[i];

  at->b_next = zc_never;
  if (at->b == s->m) return true;
  int64_t start = zc_most(at->clock, b_input(s, i));
  if (at->b == at->f || at->held) start = zc_most(start, at->f_next + d->f);
  at->b_next = start;
  return start + d->b <= d->b_end[at->b] &&
         settle_queue(at->b_in + at->b, b_queued(s, i), start, d->b, d->b_end + at->b);
}

/* The next F likewise; then the device's clock. */
static inline bool settle_f(struct fluid *s, int32_t i) {
  const struct fluid_device *d = &s->device[i];
  struct fluid_at *at = &s->at[i];

  if (at->b == s->m) return true;
  if (at->f < s->m) {
    int64_t start = zc_most(at->f_next, f_input(s, i));
    if (at->b < at->state->first_b)
      start = zc_most(start, b_end_after(s, i, at->state->first_b - at->b) + d->after_b[at->f]);
    at->f_next = start;
    if (start + d->f > d->f_end[at->f] ||
        !settle_queue(at->f_in + at->f, f_queued(s, i), start, d->f, d->f_end + at->f))
      return false;
  }
  int64_t next = zc_least(at->f_next, at->b_next);
  if (next > at->clock) {
    at->clock = next;
    at->lag = zc_most(at->lag, next - at->b * d->w);
    if (!can_finish(s, i)) return false;
  }
  at->lag = zc_most(at->lag, zc_least(at->clock - at->state->enough, at->state->late));
  return true;
}

/* Raises the times of the node at work to what they imply, and runs on the way what has to. False if the node
 * is not good. */
static bool settle(struct fluid *s, bool *ran) {
  for (int32_t i = 0; i < s->devices; i++) {
    struct fluid_at *at = &s->at[i];
    at->f_next =
        at->f == s->m ? zc_never : zc_most(zc_most(at->clock, at->lag + at->state->wait), f_input(s, i));
  }
  for (int32_t i = s->devices - 1; i >= 0; i--)
    if (!settle_b(s, i)) return false;
  for (int32_t i = 0; i < s->devices; i++)
    if (!settle_f(s, i) || !run_forced(s, i, ran)) return false;
  return true;
}

/* ---- choices ---- */

/* The first device whose F and B can both run, -1 if there is none. */
static int32_t find_both(const struct fluid *s) {
  for (int32_t i = 0; i < s->devices; i++)
    if (f_start(s, i) != zc_never && b_start(s, i) != zc_never) return i;
  return -1;
}

/* The device of the op that can end first, -1 if none can run. */
static int32_t find_first(const struct fluid *s, int *kind, int64_t *start) {
  int64_t least = zc_never;
  int32_t first = -1;

  for (int32_t i = 0; i < s->devices; i++) {
    const struct fluid_device *d = &s->device[i];
    int64_t f = f_start(s, i), b = b_start(s, i), end = zc_least(f + d->f, b + d->b);
    if (zc_least(f, b) == zc_never || d->offset + end >= least) continue;
    least = d->offset + end;
    *kind = f < b ? RUN_F : RUN_B;
    *start = zc_least(f, b);
    first = i;
  }
  return first;
}

/* Runs what has to until only choices are left; then *node has the one to make, if any F or B are left. False
 * if the node at work is not good. */
static bool advance(struct fluid *s, struct fluid_node *node) {
  int kind = RUN_NONE;
  int64_t start = 0;

  for (;;) {
    bool ran = false;
    if (!settle(s, &ran)) return false;
    if (ran) continue;
    *node = (struct fluid_node){.device = find_both(s)};
    if (node->device >= 0) return true;
    int32_t i = find_first(s, &kind, &start);
    if (i < 0) return s->done == 2 * s->devices * s->m;
    int64_t other = kind == RUN_B ? f_first(s, i) : zc_never;
    if (other != zc_never) other = zc_most(other, start + s->device[i].b);
    if (!harmless(s, i, start, other)) {
      *node = (struct fluid_node){.device = i, .holding = true};
      return true;
    }
    if (!run_op(s, i, kind, start)) return false;
  }
}

/* The node at work as it is kept. */
static void pack(struct fluid *s) {
  int32_t p = s->devices;
  int64_t *to = s->times + 2 * p;

  s->holds = 0;
  for (int32_t i = 0; i < p; i++) {
    const struct fluid_at *at = &s->at[i];
    s->times[i] = at->clock;
    s->times[p + i] = at->lag;
    s->count[i] = (uint16_t)at->f;
    s->count[p + i] = (uint16_t)at->b;
    s->count[2 * p + i] = at->held;
    s->holds += at->held;
    for (int32_t k = 0; k < f_queued(s, i); k++) *to++ = at->f_in[at->f + k];
    for (int32_t k = 0; k < b_queued(s, i); k++) *to++ = at->b_in[at->b + k];
  }
  s->length = (int32_t)(to - s->times);
}

/* A kept node is the one at work. */
static void unpack(struct fluid *s, const struct fluid_group *group, struct fluid_node *node) {
  int32_t p = s->devices;
  const int64_t *times = zc_fluid_times(node), *from = times + 2 * p;

  s->hash = group->hash;
  s->done = 0;
  for (int32_t i = 0; i < p; i++) {
    s->at[i].f = group->count[i];
    s->at[i].b = group->count[p + i];
    s->at[i].held = group->count[2 * p + i];
    s->at[i].clock = times[i];
    s->at[i].lag = times[p + i];
    s->done += s->at[i].f + s->at[i].b;
    find_state(s, i);
  }
  for (int32_t i = 0; i < p; i++) {
    struct fluid_at *at = &s->at[i];
    for (int32_t k = 0; k < f_queued(s, i); k++) at->f_in[at->f + k] = *from++;
    for (int32_t k = 0; k < b_queued(s, i); k++) at->b_in[at->b + k] = *from++;
  }
}

static void keep(struct fluid *s) {
  struct fluid_node node;

  if (!advance(s, &node)) return;
  pack(s);
  zc_fluid_keep(s, &node);
}

static void expand(struct fluid *s, const struct fluid_group *group, struct fluid_node *node) {
  int32_t i = node->device;

  s->expanded++;
  unpack(s, group, node);
  if (run_op(s, i, RUN_B, b_start(s, i))) keep(s);
  unpack(s, group, node);
  if (node->holding)
    hold(s, i, true);
  else if (!run_op(s, i, RUN_F, f_start(s, i)))
    return;
  keep(s);
}

/* ---- the search ---- */

static enum zc_outcome begin(struct fluid *s, const struct zc_windows *w) {
  size_t p = (size_t)w->devices, m = (size_t)w->m, layers = (2 * p * m + 1) * (p + 1);
  uint64_t state = 1;
  int64_t longest = 0, *inputs;

  if (w->m > UINT16_MAX || !zc_fluid_hold(s, layers * sizeof *s->layer)) return ZC_TOO_LARGE;
  s->devices = w->devices;
  s->m = w->m;
  if (!(s->device = zc_alloc(s->run, p, sizeof *s->device)) ||
      !(s->at = zc_alloc(s->run, p, sizeof *s->at)) ||
      !(s->mark = zc_alloc(s->run, 3 * p, sizeof *s->mark)) ||
      !(s->count = zc_alloc(s->run, 3 * p, sizeof *s->count)) ||
      !(s->times = zc_alloc(s->run, 2 * p + 2 * m, sizeof *s->times)) ||
      !(inputs = zc_alloc(s->run, 2 * p * m, sizeof *inputs)) ||
      !(s->layer = zc_alloc(s->run, layers, sizeof *s->layer)))
    return ZC_NO_MEMORY;
  for (size_t i = 0; i < 3 * p; i++) s->mark[i] = state = state * 6364136223846793005u + 1442695040888963407u;
  for (int32_t i = 0; i < s->devices; i++, inputs += 2 * m) {
    enum zc_outcome outcome = zc_fluid_device(s, w, i);
    if (outcome != ZC_OPEN) return outcome;
    s->at[i].f_in = inputs;
    s->at[i].b_in = inputs + m;
    find_state(s, i);
    longest += s->device[i].f + s->device[i].b + s->device[i].w;
  }
  while ((int64_t)1024 << s->lane_shift < longest) s->lane_shift++;
  return ZC_OPEN;
}

/* Whether a node is left in which all F and B are done. True, too, without room. */
static bool search(struct fluid *s) {
  struct fluid_layer *layer = s->layer, *end = layer + 2 * (int64_t)s->devices * s->m * (s->devices + 1);

  keep(s);
  for (; layer < end; layer++) {
    for (struct fluid_group *group = layer->groups; group; group = group->next) {
      for (int32_t k = 0; k < group->entries; k++) {
        expand(s, group, group->entry[k].node);
        if (s->too_large || s->out_of_memory) return true;
      }
    }
    zc_fluid_forget(s, layer);
  }
  return end->groups != NULL;
}

enum zc_outcome zc_fluid_search(struct zc_windows *w) {
  struct fluid s = {.run = w->run};
  enum zc_outcome outcome = begin(&s, w);

  if (outcome == ZC_OPEN) {
    bool open = search(&s);
    outcome = s.out_of_memory ? ZC_NO_MEMORY : s.too_large ? ZC_TOO_LARGE : open ? ZC_OPEN : ZC_REFUTED;
    zc_note(s.run, "fluid-fronts: %lld nodes, %lld expanded, %lld bytes at most", (long long)s.nodes,
            (long long)s.expanded, (long long)s.most_held);
  }
  zc_fluid_free(&s);
  return outcome;
}
