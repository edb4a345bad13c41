/* zbcheck: the tables of one device for the search of `fluid-fronts`, see zbcheck_fluid.c.
 *
 * Memory. F number i with j B done fits once need(i, j) W are done, the least number that makes up for what
 * is kept beyond the limit; with need(i, j) > j it has to wait for a B. B and W only give memory back, so
 * need falls as j grows. A W that takes no time is done with its B.
 *
 * Ends. From a state with all F and B done the rest of W is poured in time if the clock is at most the
 * horizon, S, and the lag at most S - m w: the lag stays what it is while W is poured. Backwards from there,
 * one op at a time. Let (C, G) be a point of the state behind the op: from there the end is reached if clock
 * <= C and lag <= G. The op, which takes t, starts as early as can be, at s: not before the clock; an F not
 * before lag + need w, when enough is poured. It ends at s + t, with min(j w, s - lag) poured by then, so the
 * lag is then the greater of lag + t and s + t - j w. That it ends in time and meets (C, G) is
 *
 *   s <= A,  lag <= G - t,  where A = min(C, latest end, G + j w) - t,
 *
 * and s <= A is clock <= A and, for an F, lag <= A - need w: again a point. A state's points are those of
 * both its ops; one that asks for more in both parts than another is left out. No input is asked about, so
 * this is necessary, not sufficient, for the end to be reached. */
#include "zbcheck_fluid.h"

#include <stdlib.h>

struct table {
  struct fluid *search;
  struct fluid_device *device;
  const struct zc_stage *stage;
  bool limited;
  int64_t room;
  struct fluid_state *state;
  int64_t *from;             /* [(m + 1) * (m + 1)] where the points of a state begin */
  struct fluid_point *point; /* of all states, from the last one back */
  size_t points, points_room;
};

static int64_t at(const struct table *t, int32_t i, int32_t j) { return (int64_t)i * (t->search->m + 1) + j; }

/* The least W done with which F number i can start with j B done; more than m where no W help. */
static int64_t need(const struct table *t, int32_t i, int32_t j) {
  const struct zc_stage *s = t->stage;
  int64_t excess = t->limited ? (i + 1) * s->keep_f + j * s->keep_b - t->room : 0;

  if (excess <= 0) return 0;
  return s->keep_w < 0 ? (excess - s->keep_w - 1) / -s->keep_w : (int64_t)t->search->m + 1;
}

/* What memory asks of F number i: in every state, the B to wait for and what to wait for then. */
static void fill_needs(struct table *t, int32_t i, int64_t *after_b) {
  int64_t b = t->stage->b, w = t->stage->w;
  int32_t first = 0;

  while (first <= i && need(t, i, first) > first) first++;
  /* With `more` B after that one; their W are not done when it ends, nor is its own. */
  *after_b = zc_never;
  for (int32_t more = 0; first + more <= i; more++) {
    int64_t missing = zc_most(0, need(t, i, first + more) - zc_most(0, first - 1));
    *after_b = zc_least(*after_b, more * b + missing * w);
  }
  for (int32_t j = i; j >= 0; j--) {
    struct fluid_state *state = &t->state[at(t, i, j)];
    *state = (struct fluid_state){.ready = zc_never, .wait = zc_never, .first_b = first};
    if (need(t, i, j) <= j) state->ready = state->wait = need(t, i, j) * w;
    if (j < i) state->wait = zc_least(state->wait, t->state[at(t, i, j + 1)].wait + b);
  }
}

/* Of the F that could start with j B done the last one needs most. */
static void fill_displaced(struct table *t, int64_t *displaced) {
  int32_t m = t->search->m;

  for (int32_t j = 0, i = 0; j < m; j++) {
    while (i < m && need(t, i, j) <= j) i++;
    displaced[j] = i > 0 ? need(t, i - 1, j + 1) * t->stage->w : 0;
  }
}

/* Adds a point of the state at work, whose points begin at `first`. */
static bool add_point(struct table *t, size_t first, int64_t clock, int64_t lag) {
  size_t kept = first;
  void *point = t->point;

  if (clock < 0) return true;
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

/* The points of (i, j) by the op that leads to `to`, takes `takes`, has to end by `end`, and to wait until
 * `ready` of W are poured. */
static bool add_points(struct table *t, int32_t i, int32_t j, int64_t to, int64_t takes, int64_t end,
                       int64_t ready) {
  size_t first = (size_t)t->from[at(t, i, j)];

  for (int32_t k = 0; k < t->state[to].points; k++) {
    struct fluid_point behind = t->point[t->from[to] + k];
    int64_t clock = zc_least(zc_least(behind.clock, end), behind.lag + j * t->stage->w) - takes;
    if (!add_point(t, first, clock, zc_least(behind.lag - takes, clock - ready))) return false;
  }
  return true;
}

/* What is known of (i, j) from both states that it leads to. */
static void fill_enough(struct table *t, int32_t i, int32_t j, int64_t horizon) {
  const struct zc_stage *s = t->stage;
  struct fluid_state *state = &t->state[at(t, i, j)];
  int32_t m = t->search->m;

  state->late = horizon - m * s->w - (m - i) * s->f - (m - j) * s->b;
  if (i < m && state->ready != zc_never)
    state->enough = zc_most(state->ready, t->state[at(t, i + 1, j)].enough);
  if (j < i) state->enough = zc_most(state->enough, t->state[at(t, i, j + 1)].enough);
}

static bool fill_points(struct table *t, int64_t horizon) {
  const struct zc_stage *s = t->stage;
  int32_t m = t->search->m;

  for (int32_t i = m; i >= 0; i--) {
    for (int32_t j = i; j >= 0; j--) {
      struct fluid_state *state = &t->state[at(t, i, j)];
      size_t first = t->points;
      t->from[at(t, i, j)] = (int64_t)first;
      fill_enough(t, i, j, horizon);
      if (j == m && !add_point(t, first, horizon, horizon - m * s->w)) return false;
      if (i < m && state->ready != zc_never &&
          !add_points(t, i, j, at(t, i + 1, j), s->f, s->f_end[i], state->ready))
        return false;
      if (j < i && !add_points(t, i, j, at(t, i, j + 1), s->b, s->b_end[j], -zc_never)) return false;
      state->points = (int32_t)(t->points - first);
    }
  }
  return true;
}

/* Their final place. */
static enum zc_outcome place_points(struct table *t, size_t states) {
  struct fluid_point *point;

  if (!zc_fluid_hold(t->search, t->points * sizeof *point)) return ZC_TOO_LARGE;
  if (!(point = zc_alloc(t->search->run, t->points, sizeof *point))) return ZC_NO_MEMORY;
  for (size_t k = 0; k < t->points; k++) point[k] = t->point[k];
  for (size_t k = 0; k < states; k++) t->state[k].point = point + t->from[k];
  return ZC_OPEN;
}

enum zc_outcome zc_fluid_device(struct fluid *s, const struct zc_windows *w, int32_t i) {
  struct fluid_device *d = &s->device[i];
  size_t side = (size_t)s->m + 1, states = side * side;
  struct table t = {.search = s,
                    .device = d,
                    .stage = &w->stage[i],
                    .limited = w->device[i].limited,
                    .room = w->device[i].room};
  int64_t *after_b, *displaced;
  enum zc_outcome outcome = ZC_NO_MEMORY;

  if (!zc_fluid_hold(s, states * sizeof *t.state + 2 * side * sizeof *after_b)) return ZC_TOO_LARGE;
  if (!(t.state = zc_alloc(s->run, states, sizeof *t.state)) ||
      !(after_b = zc_alloc(s->run, side, sizeof *after_b)) ||
      !(displaced = zc_alloc(s->run, side, sizeof *displaced)) || !(t.from = calloc(states, sizeof *t.from)))
    goto done;
  for (int32_t k = 0; k < s->m; k++) fill_needs(&t, k, &after_b[k]);
  fill_displaced(&t, displaced);
  if (!fill_points(&t, w->target)) goto done;
  *d = (struct fluid_device){.f = t.stage->f,
                             .b = t.stage->b,
                             .w = t.stage->w,
                             .f_end = t.stage->f_end,
                             .b_end = t.stage->b_end,
                             .state = t.state,
                             .after_b = after_b,
                             .displaced = displaced};
  if (i + 1 < s->devices) d->down = t.stage[1].forward - w->device[i + 1].offset_low;
  if (i > 0) d->offset = d[-1].offset + w->device[i].offset_low;
  if (i > 0) d->up = t.stage->backward + w->device[i].offset_low;
  outcome = place_points(&t, states);
done:
  free(t.from);
  free(t.point);
  return outcome;
}
