/* zbcheck: the sweep of a device with several stages, see zbcheck_window.c.
 *
 * A node is a state without its last class, which is a W: all W of the device where they are alike, else that
 * of the last chunk. How many of these are done is an interval beside the node, a row of times: most steps go
 * from a row to another, number by number, and the inner loops are over numbers next to each other. */
#include "zbcheck_window.h"

/* The states (node, low..high); state l is at times[base + l]. */
struct span {
  int64_t base;
  int32_t low, high;
};

struct sweep {
  struct zc_windows *w;
  const struct zc_device *d;
  const struct zc_step *dense_step;            /* the W that nodes leave out: its time alone */
  int32_t dense;                               /* its class */
  int64_t dense_time, dense_keep, dense_least; /* least: what one adds to a path at least, BW counted too */
  int64_t total;                               /* states laid out */
};

static struct span *span_of(const struct sweep *x, int32_t node) {
  return (struct span *)x->w->nodes->data + node;
}

/* Which l of a node are worth a place: an interval outside of which no path can be. All of this follows from
 * the sweep itself; it only saves touching the states. */
static struct span useful(const struct sweep *x, const int32_t *n) {
  const struct span none = {0, 1, 0};
  const struct zc_windows *w = x->w;
  const struct zc_device *d = x->d;
  int32_t v = d->chunks, m = w->m;
  int64_t start = w->stage[d->stages[0]].f_start[0], from = start, to = w->target, left = 0, done = 0,
          excess = -d->room, low = 0, high = 0;

  for (int32_t c = 0; c < v; c++) {
    const struct zc_stage *s = &w->stage[d->stages[c]];
    int32_t f = n[c], b = n[v + c], apart = d->merged || c == v - 1 ? 0 : n[2 * v + c];
    /* The state lies between the ends of the ops before it and the starts of those after it. */
    if (f > 0) from = zc_most(from, s->f_start[f - 1] + s->f);
    if (b > 0) from = zc_most(from, s->b_first_end[b - 1]);
    if (f < m) to = zc_least(to, s->f_end[f] - s->f);
    if (b < m) to = zc_least(to, s->b_last_start[b]);
    left += (m - f) * s->f + (m - b) * s->full;
    if (!d->merged && c < v - 1) left += (b - apart) * s->w;
    done += f * s->f + b * s->gradient + apart * (s->full - s->gradient);
    excess += f * s->keep_f + b * s->keep_b + apart * s->keep_w;
    if (d->merged || c == v - 1) high += b;
  }
  int64_t behind = w->target - from - left, front = to - start - done;
  if (from > to || behind < 0 || front < 0) return none;
  if (x->dense_time > 0) low = zc_most(low, high - behind / x->dense_time);
  if (x->dense_least > 0) high = zc_least(high, front / x->dense_least);
  if (d->limited && excess > 0) {
    if (x->dense_keep == 0) return none;
    low = zc_most(low, (excess - x->dense_keep - 1) / -x->dense_keep);
  }
  return low > high ? none : (struct span){0, (int32_t)low, (int32_t)high};
}

/* A new node, with none of its states reached. -1 where it has none that is worth a place, or there is no
 * room. */
static int32_t add_node(struct sweep *x, const int32_t *counts) {
  struct zc_windows *w = x->w;
  struct span span = useful(x, counts);
  void *table = w->times;

  if (span.low > span.high) return -1;
  int64_t size = span.high - span.low + 1;
  if (x->total + size > ZC_MOST_STATES) {
    w->too_large = true;
    return -1;
  }
  if (!zc_grow(w->run, &table, &w->times_room, (size_t)(x->total + size), sizeof *w->times)) {
    w->out_of_memory = true;
    return -1;
  }
  w->times = table;
  int32_t node = zc_nodes_add(w, counts);
  if (node < 0) return -1;
  for (int64_t i = 0; i < size; i++) w->times[x->total + i] = zc_never;
  span.base = x->total - span.low;
  x->total += size;
  *span_of(x, node) = span;
  return node;
}

/* Whether number l of the dense class may start, by the restrictions. */
static bool dense_allowed(const struct sweep *x, const int32_t *counts, int32_t l) {
  const struct zc_device *d = x->d;

  if (!d->weights_split) return true;
  for (int32_t c = 0; c < x->dense; c++)
    if (!zc_within(counts[c], zc_low(d, c, x->dense), zc_high(d, c, x->dense), l)) return false;
  return true;
}

/* When a step may start and must have ended. */
static void step_window(const struct sweep *x, const struct zc_step *step, const int32_t *counts,
                        int64_t *release, int64_t *deadline) {
  const struct zc_stage *s = step->stage;
  int32_t k = counts[step->first];

  *release = step->kind == ZC_W ? 0 : step->kind == ZC_F ? s->f_start[k] : s->b_start[k];
  *deadline = step->kind == ZC_W ? x->w->target : step->kind == ZC_F ? s->f_end[k] : s->b_end[k];
}

/* The l from which a step out of a node is not ruled out before any time is looked at. */
static void step_range(const struct sweep *x, const struct zc_step *step, const int32_t *counts,
                       const struct span *span, int32_t *first, int32_t *last) {
  const struct zc_device *d = x->d;
  int32_t class[2] = {step->first, step->second};

  *first = span->low;
  *last = span->high;
  for (int i = 0; i < 2; i++) {
    if (class[i] < 0) continue;
    int32_t k = counts[class[i]];
    *first = (int32_t)zc_most(*first, zc_low(d, x->dense, class[i])[k]);
    *last = (int32_t)zc_least(*last, zc_high(d, x->dense, class[i])[k]);
  }
}

/* ---- forwards ---- */

static bool step_forward(struct sweep *x, int32_t node, const struct zc_step *step, const int32_t *counts) {
  struct zc_windows *w = x->w;
  struct zc_nodes *n = w->nodes;
  struct span span = *span_of(x, node);
  int32_t first, last, there[ZC_MOST_CLASSES];
  int64_t release, deadline;

  step_window(x, step, counts, &release, &deadline);
  step_range(x, step, counts, &span, &first, &last);
  const int64_t *at = w->times + span.base;
  while (first <= last && (zc_most(at[first], release) + step->time > deadline ||
                           (step->kind == ZC_BW && step->dense && !dense_allowed(x, counts, first))))
    first++;
  if (first > last) return true;
  int32_t *edge = &n->to[(int64_t)node * n->edges + step->edge], to = *edge;
  if (to < 0) to = zc_step_to(n, step, counts, there);
  if (to < 0) to = add_node(x, there);
  if (to < 0) return !w->out_of_memory && !w->too_large;
  n->to[(int64_t)node * n->edges + step->edge] = to;

  const struct span *next = span_of(x, to);
  first = (int32_t)zc_most(first, next->low - step->dense);
  last = (int32_t)zc_least(last, next->high - step->dense);
  int64_t *reach = w->times + next->base + step->dense;
  at = w->times + span.base;
  for (int32_t l = first; l <= last; l++) {
    int64_t end = zc_most(at[l], release) + step->time;
    if (end > deadline || end >= reach[l]) continue;
    if (step->kind == ZC_BW && step->dense && !dense_allowed(x, counts, l)) continue;
    reach[l] = end;
  }
  return true;
}

static enum zc_outcome sweep_forward(struct sweep *x) {
  struct zc_windows *w = x->w;
  struct zc_nodes *n = w->nodes;
  int32_t counts[ZC_MOST_CLASSES] = {0};
  int32_t root = add_node(x, counts);

  if (w->out_of_memory) return ZC_NO_MEMORY;
  if (root < 0 || span_of(x, root)->low > 0) return ZC_REFUTED;
  w->times[span_of(x, root)->base] = 0;
  for (int64_t level = 0; level < n->levels; level++) {
    for (int32_t node = n->head[level]; node >= 0; node = n->node[node].next) {
      struct span span = *span_of(x, node);
      int64_t *at = w->times + span.base;
      zc_nodes_counts(n, node, counts);
      for (int32_t l = span.low; l < span.high; l++) {
        int64_t end = at[l] + x->dense_time;
        if (end <= w->target && end < at[l + 1] && dense_allowed(x, counts, l)) at[l + 1] = end;
      }
      for (int32_t i = 0; i < n->steps; i++) {
        if (!zc_step_allowed(w, x->d, &n->step[i], counts)) continue;
        if (!step_forward(x, node, &n->step[i], counts)) return w->too_large ? ZC_TOO_LARGE : ZC_NO_MEMORY;
      }
    }
  }
  return ZC_OPEN;
}

/* ---- backwards ---- */

/* L of a row by one step, where it is better than what `leave` has; and what the step finds. */
static void step_back(struct sweep *x, int32_t node, const struct zc_step *step, const int32_t *counts,
                      int64_t *leave) {
  struct zc_windows *w = x->w;
  const struct zc_nodes *n = w->nodes;
  const struct zc_device *d = x->d;
  const struct span *span = span_of(x, node);
  int32_t first, last, to = n->to[(int64_t)node * n->edges + step->edge], least = INT32_MAX, most = -1;
  int64_t release, deadline;

  if (to < 0 || !zc_step_allowed(w, d, step, counts)) return;
  const struct span *next = span_of(x, to);
  const int64_t *at = w->times + span->base, *left = w->times + next->base + step->dense;
  int64_t first_start = zc_never, last_start = -1;
  step_window(x, step, counts, &release, &deadline);
  step_range(x, step, counts, span, &first, &last);
  first = (int32_t)zc_most(first, next->low - step->dense);
  last = (int32_t)zc_least(last, next->high - step->dense);
  for (int32_t l = first; l <= last; l++) {
    int64_t early = zc_most(at[l], release), late = zc_least(left[l], deadline) - step->time;
    if (early > late || (step->kind == ZC_BW && step->dense && !dense_allowed(x, counts, l))) continue;
    first_start = zc_least(first_start, early);
    last_start = zc_most(last_start, late);
    leave[l - span->low] = zc_most(leave[l - span->low], late);
    if (most < 0) least = l;
    most = l;
  }
  if (most < 0 || step->kind == ZC_W) return;
  int32_t class = step->first, k = counts[class];
  zc_find(&w->found_ops[class * w->m + k], first_start, last_start, step->time);
  zc_counts_found(w, d, class, k, counts, n->classes);
  int64_t *dense = zc_counts_at(w, d, class, k, x->dense);
  dense[0] = zc_least(dense[0], least);
  dense[1] = zc_most(dense[1], most);
}

/* L over E: each state's E is needed only until its own L is known. -1 is a state that leads nowhere. */
static void sweep_back(struct sweep *x, int64_t *leave) {
  struct zc_windows *w = x->w;
  struct zc_nodes *n = w->nodes;
  int32_t counts[ZC_MOST_CLASSES];

  for (int64_t level = n->levels - 1; level >= 0; level--) {
    for (int32_t node = n->head[level]; node >= 0; node = n->node[node].next) {
      struct span span = *span_of(x, node);
      int64_t *at = w->times + span.base;
      zc_nodes_counts(n, node, counts);
      for (int32_t l = span.low; l <= span.high; l++) leave[l - span.low] = -1;
      if (level == n->levels - 1 && span.high == x->d->count[x->dense] && at[span.high] <= w->target)
        leave[span.high - span.low] = w->target;
      for (int32_t i = 0; i < n->steps; i++) step_back(x, node, &n->step[i], counts, leave);
      for (int32_t l = span.high; l >= span.low; l--) {
        int64_t late = l < span.high ? zc_least(at[l + 1], w->target) - x->dense_time : -1;
        if (late > leave[l - span.low] && at[l] <= late && dense_allowed(x, counts, l))
          leave[l - span.low] = late;
        at[l] = at[l] == zc_never ? -1 : leave[l - span.low];
      }
    }
  }
}

enum zc_outcome zc_sweep_states(struct zc_windows *w, int32_t device) {
  struct zc_device *d = &w->device[device];
  const struct zc_stage *last = &w->stage[d->stages[d->chunks - 1]];
  struct sweep x = {.w = w,
                    .d = d,
                    .dense = d->classes - 1,
                    .dense_time = last->w,
                    .dense_keep = last->keep_w,
                    .dense_least = last->full - last->gradient};
  enum zc_outcome outcome;

  w->sweeps++;
  zc_clear_found(w->found_ops, (int64_t)2 * d->chunks * w->m);
  zc_clear_counts(w, d);
  if ((outcome = zc_nodes_begin(w, d, x.dense, sizeof(struct span))) != ZC_OPEN) return outcome;
  outcome = sweep_forward(&x);
  w->states += x.total;
  if (outcome != ZC_OPEN) return outcome;
  sweep_back(&x, w->leave);
  if (w->times[span_of(&x, 0)->base] < 0) return ZC_REFUTED;
  zc_take_device(w, d, d->classes);
  d->dirty = false; /* a second sweep would find the same */
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}
