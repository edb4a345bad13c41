/* zbcheck: the tables of one device for the search of `fluid-fronts`, see zbcheck_fluid.c.
 *
 * A state is how many F and B of each of the device's stages are done, none more than of the op before it on
 * the way of a microbatch. States are found from the first one on, by steps that memory allows.
 *
 * Memory. Where there is a limit all W are alike: each takes w and gives back the same. F number i of a stage
 * fits once need W are done, the least number that makes up for what is kept beyond the limit; with need
 * above the B done it has to wait for a B. B only give back, so with each B more the need is no greater, and
 * it is least with those that give back most. A W that takes no time is done with its B.
 *
 * Ends. From the state with all done the rest of W is poured in time if the clock is at most the horizon, S,
 * and the lag at most S less all W: the lag stays what it is while W is poured. Backwards from there, one op
 * at a time. Let (C, G) be a point of the state behind the op: from there the end is reached if clock <= C
 * and lag <= G. The op, which takes t, starts as early as can be, at s: not before the clock; an F not before
 * lag + need w, when enough is poured. It ends at s + t, with min(all W of the B done, s - lag) poured by
 * then, so the lag is then the greater of lag + t and s + t - those W. That it ends in time and meets (C, G)
 * is
 *
 *   s <= A,  lag <= G - t,  where A = min(C, latest end, G + those W) - t,
 *
 * and s <= A is clock <= A and, for an F, lag <= A - need w: again a point. A state's points are those of all
 * its ops; one that asks for more in both parts than another is left out. No input is asked about, so this is
 * necessary, not sufficient, for the end to be reached. Steps to a state without points are none. */
#include "zbcheck_fluid.h"

#include <stdlib.h>

struct table {
  struct fluid *search;
  struct fluid_device *device;
  struct zc_windows *windows;
  bool limited;
  int64_t room, gives, short_b, best_b; /* the least time of a B, the most that one gives back, below 0 */
  int64_t keep[ZC_MOST_CLASSES];        /* by lane, what an op adds to memory */
  int64_t weight[ZC_MOST_CLASSES];      /* what the W of a B takes, 0 for an F */
  int64_t all_weights;
  int32_t states, ops; /* ops of the device, F and B */
  struct fluid_state *state;
  struct fluid_step *step;
  uint16_t *count;
  int64_t *from;             /* [states] where the points of a state begin */
  struct fluid_point *point; /* of all states, from the last one back */
  size_t points, points_room;
};

/* The least number of W that give back `excess`; zc_never where none do. */
static int64_t need(const struct table *t, int64_t excess) {
  if (!t->limited || excess <= 0) return 0;
  return t->gives > 0 ? (excess + t->gives - 1) / t->gives : zc_never;
}

static struct fluid_step *step_of(const struct table *t, int32_t state, int32_t e) {
  return &t->step[(int64_t)state * t->device->lanes + e];
}

/* ---- states ---- */

/* Lanes go along the way of a microbatch; classes of nodes are all F, then all B, both by stage. */
static int32_t class_of(const struct fluid_device *d, int32_t e) {
  return e < d->lanes / 2 ? e : d->lanes / 2 + d->lanes - 1 - e;
}

/* Whether a lane can go on from these counts of classes. */
static bool step_fits(const struct table *t, const int32_t *counts, int32_t e) {
  const struct fluid_device *d = t->device;
  int32_t done = counts[class_of(d, e)];
  int64_t kept = t->keep[e] - t->room, weights = 0;

  if (done >= (e > 0 ? counts[class_of(d, e - 1)] : t->search->m)) return false;
  if (e >= d->lanes / 2) return true;
  for (int32_t k = 0; k < d->lanes; k++) {
    kept += counts[class_of(d, k)] * t->keep[k];
    weights += k >= d->lanes / 2 ? counts[class_of(d, k)] : 0;
  }
  return need(t, kept) <= weights;
}

static bool find_steps(struct table *t, int32_t node) {
  struct zc_nodes *n = t->windows->nodes;
  int32_t counts[ZC_MOST_CLASSES], lanes = t->device->lanes;

  zc_nodes_counts(n, node, counts);
  for (int32_t e = 0; e < lanes; e++) {
    if (!step_fits(t, counts, e)) continue;
    counts[class_of(t->device, e)]++;
    int32_t to = zc_nodes_find(n, counts);
    if (to < 0) {
      if (!zc_fluid_hold(t->search,
                         sizeof *t->state + (size_t)lanes * (sizeof *t->step + sizeof *t->count)) ||
          (to = zc_nodes_add(t->windows, counts)) < 0)
        return false;
    }
    n->to[(int64_t)node * lanes + e] = to;
    counts[class_of(t->device, e)]--;
  }
  return true;
}

/* All states, in an order in which steps lead on. */
static enum zc_outcome find_states(struct table *t, const struct zc_device *device) {
  struct zc_windows *w = t->windows;
  int32_t first[ZC_MOST_CLASSES] = {0};
  enum zc_outcome outcome = zc_nodes_begin(w, device, t->device->lanes, 1);

  if (outcome != ZC_OPEN) return outcome;
  if (zc_nodes_add(w, first) < 0) return ZC_NO_MEMORY;
  for (int32_t node = 0; node < (int32_t)w->nodes->count; node++)
    if (!find_steps(t, node)) return w->out_of_memory ? ZC_NO_MEMORY : ZC_TOO_LARGE;
  t->states = (int32_t)w->nodes->count;
  return ZC_OPEN;
}

static bool place_states(struct table *t) {
  const struct zc_nodes *n = t->windows->nodes;
  size_t states = (size_t)t->states, lanes = (size_t)t->device->lanes;
  int32_t counts[ZC_MOST_CLASSES];

  if (!(t->state = zc_alloc(t->search->run, states, sizeof *t->state)) ||
      !(t->step = zc_alloc(t->search->run, states * lanes, sizeof *t->step)) ||
      !(t->count = zc_alloc(t->search->run, states * lanes, sizeof *t->count)) ||
      !(t->from = calloc(states, sizeof *t->from)))
    return false;
  for (size_t k = 0; k < states; k++) {
    zc_nodes_counts(n, (int32_t)k, counts);
    t->state[k].kept = -t->room;
    for (size_t e = 0; e < lanes; e++) {
      int32_t done = counts[class_of(t->device, (int32_t)e)];
      t->count[k * lanes + e] = (uint16_t)done;
      t->step[k * lanes + e].to = n->to[k * lanes + e];
      t->state[k].kept += done * t->keep[e];
      t->state[k].poured += done * t->weight[e];
      if (e >= lanes / 2) t->state[k].weights += done;
    }
  }
  return true;
}

/* ---- what memory asks ---- */

/* Of the next F of a lane, with any B more, as if all were such as give back most and take least. */
static void fill_needs(struct table *t, int32_t k, int32_t e) {
  struct fluid_step *step = step_of(t, k, e);
  int64_t excess = t->state[k].kept + t->keep[e], done = t->state[k].weights, w = t->device->w;
  int32_t left = t->ops / 2 - t->state[k].weights;

  step->ready = step->wait = step->after = zc_never;
  if (need(t, excess) <= done) step->ready = need(t, excess) * w;
  while (step->more <= left && need(t, excess + step->more * t->best_b) > done + step->more) step->more++;
  for (int32_t x = step->more; x <= left; x++) {
    int64_t weights = need(t, excess + x * t->best_b), since = x - step->more;
    step->wait = zc_least(step->wait, x * t->short_b + weights * w);
    step->after = zc_least(step->after,
                           since * t->short_b + zc_most(0, weights - done - zc_most(0, step->more - 1)) * w);
    if (x * t->short_b >= step->wait || weights == 0) break;
  }
}

/* What any F asks for that can come before the next op of lane e, if that has run. */
static int32_t displaced(const struct table *t, int32_t k, int32_t e) {
  int32_t most = 0;

  for (int32_t u = 0; u < t->device->lanes; u++) {
    int32_t to = step_of(t, k, u)->to;
    if (to < 0 || u == e) continue;
    most = (int32_t)zc_most(most, step_of(t, to, e)->displaced);
    if (u < t->device->lanes / 2)
      most = (int32_t)zc_most(most, zc_least(need(t, t->state[k].kept + t->keep[e] + t->keep[u]), INT32_MAX));
  }
  return most;
}

static void fill_memory(struct table *t, int32_t k) {
  struct fluid_state *state = &t->state[k];

  for (int32_t e = 0; e < t->device->lanes; e++) {
    struct fluid_step *step = step_of(t, k, e);
    if (e < t->device->lanes / 2)
      fill_needs(t, k, e);
    else
      step->ready = -zc_never;
    step->displaced = displaced(t, k, e);
    if (step->to < 0) continue;
    state->enough = zc_most(state->enough, zc_most(step->ready, t->state[step->to].enough));
  }
}

/* ---- what ends ask ---- */

/* Adds a point of the state at work, whose points begin at `first`. */
static bool add_point(struct table *t, size_t first, int64_t clock, int64_t lag) {
  size_t kept = first;
  void *point = t->point;

  if (clock < 0 || lag < 0) return true;
  for (size_t k = first; k < t->points; k++)
    if (t->point[k].clock >= clock && t->point[k].lag >= lag) return true;
  for (size_t k = first; k < t->points; k++)
    if (t->point[k].clock > clock || t->point[k].lag > lag) t->point[kept++] = t->point[k];
  t->points = kept;
  if (!zc_grow(t->search->run, &point, &t->points_room, t->points + 1, sizeof *t->point)) return false;
  t->point = point;
  t->point[t->points++] = (struct fluid_point){clock, lag};
  return true;
}

/* The points of a state by one of its steps. */
static bool add_points(struct table *t, int32_t k, int32_t e) {
  const struct fluid_step *step = step_of(t, k, e);
  const struct fluid_lane *lane = &t->search->lane[t->device->lane[e]];
  int64_t end = lane->end[t->count[(int64_t)k * t->device->lanes + e]];

  for (int32_t i = 0; i < t->state[step->to].points; i++) {
    struct fluid_point behind = t->point[t->from[step->to] + i];
    int64_t clock = zc_least(zc_least(behind.clock, end), behind.lag + t->state[k].poured) - lane->takes;
    if (!add_point(t, (size_t)t->from[k], clock, zc_least(behind.lag - lane->takes, clock - step->ready)))
      return false;
  }
  return true;
}

static bool fill_ends(struct table *t, int32_t k) {
  struct fluid_state *state = &t->state[k];
  int64_t horizon = t->windows->target;
  int32_t done = 0;

  t->from[k] = (int64_t)t->points;
  state->late = horizon - t->all_weights;
  for (int32_t e = 0; e < t->device->lanes; e++) {
    int32_t count = t->count[(int64_t)k * t->device->lanes + e];
    state->late -= (t->search->m - count) * t->search->lane[t->device->lane[e]].takes;
    done += count;
  }
  if (done == t->ops && !add_point(t, t->points, horizon, horizon - t->all_weights)) return false;
  for (int32_t e = 0; e < t->device->lanes; e++) {
    int32_t to = step_of(t, k, e)->to;
    if (to >= 0 && !add_points(t, k, e)) return false;
  }
  state->points = (int32_t)(t->points - (size_t)t->from[k]);
  return true;
}

/* From the end back; a step to a state that leads nowhere is none. */
static bool fill_states(struct table *t) {
  for (int32_t k = t->states - 1; k >= 0; k--) {
    for (int32_t e = 0; e < t->device->lanes; e++) {
      int32_t *to = &step_of(t, k, e)->to;
      if (*to >= 0 && t->state[*to].points == 0) *to = -1;
    }
    fill_memory(t, k);
    if (!fill_ends(t, k)) return false;
  }
  return true;
}

/* Their final place. */
static enum zc_outcome place_points(struct table *t) {
  struct fluid_point *point;

  if (!zc_fluid_hold(t->search, t->points * sizeof *point)) return ZC_TOO_LARGE;
  if (!(point = zc_alloc(t->search->run, t->points, sizeof *point))) return ZC_NO_MEMORY;
  for (size_t k = 0; k < t->points; k++) point[k] = t->point[k];
  for (int32_t k = 0; k < t->states; k++) t->state[k].point = point + t->from[k];
  t->device->state = t->state;
  t->device->step = t->step;
  t->device->count = t->count;
  return ZC_OPEN;
}

enum zc_outcome zc_fluid_device(struct fluid *s, struct zc_windows *w, int32_t i) {
  const struct zc_device *device = &w->device[i];
  struct fluid_device *d = &s->device[i];
  struct table t = {.search = s, .device = d, .windows = w, .limited = device->limited, .room = device->room};
  enum zc_outcome outcome;

  if (!w->nodes && !(w->nodes = zc_alloc(s->run, 1, sizeof *w->nodes))) return ZC_NO_MEMORY;
  t.ops = d->lanes * s->m;
  t.short_b = zc_never;
  d->limited = device->limited;
  for (int32_t c = 0; c < device->chunks; c++) {
    const struct zc_stage *stage = &w->stage[device->stages[c]];
    t.keep[c] = stage->keep_f;
    t.keep[d->lanes - 1 - c] = stage->keep_b;
    t.weight[d->lanes - 1 - c] = stage->w;
    t.all_weights += s->m * stage->w;
    t.short_b = zc_least(t.short_b, stage->b);
    t.best_b = zc_least(t.best_b, stage->keep_b);
    t.gives = -stage->keep_w;
    d->w = stage->w;
    d->longest += stage->f + stage->b + stage->w;
  }
  for (int32_t e = 0; e < d->lanes; e++) d->keep[e] = t.keep[e];
  d->gives = t.gives;
  outcome = find_states(&t, device);
  if (outcome == ZC_OPEN) outcome = place_states(&t) && fill_states(&t) ? place_points(&t) : ZC_NO_MEMORY;
  free(t.from);
  free(t.point);
  return outcome;
}
