/* zbcheck: can any schedule cost at most S? Windows of every op, propagated until nothing moves.
 *
 * One stage a device. Stages are numbered along the pipe, and with them their devices.
 *
 * The schedules spoken about. Microbatches are interchangeable: in any schedule, keep the start times and
 * call, on every device, the k-th forward to start the forward of microbatch k, and likewise the k-th
 * backward and weight pass. The k-th of m sorted ends on one device is still followed, `comm` later, by the
 * k-th of m sorted starts on the next; memory depends on counts only. So it is enough to refute the schedules
 * in which every device works in the order of microbatches, with starts anywhere (not only as early as
 * possible). A device's order is then a word over F, B, W and BW, a path through states (F done, B done, W
 * done) from (0,0,0) to (m,m,m) with F >= B >= W; a BW counts as a B and a W.
 *
 * Clocks. Each stage has its own clock, and `offset` of stage s is how much later it starts than that of
 * stage s - 1. makespan  one clock for all: every offset is 0, everything lies in [0, S]. period    a
 * device's clock starts with its first op; from there to its last end is at most S, or the order could not
 *             come round every S. A device's first op is F0, which waits for F0 of the stage before: the
 * offset is at least f + comm. How long the device may wait beyond that is unknown: an interval. span the
 * same clocks and the same S, and the offset is exactly f + comm: with every op as early as possible, F0 of a
 * stage starts as F0 of the stage before arrives. This holds where every device begins with the same
 *             microbatch, and the bound is one over those orders. A device that begins with another one
 * starts later than it has to, and that can shorten its span: see the period, whose bound is one over all
 * orders.
 *
 * What is kept of every F and B, on its stage's clock, and holds in every schedule of cost <= S that a
 * proof's inner nodes have not put aside: the earliest start and the latest end. Of a B also the earliest
 * end, the latest start and the least time, since it may be a BW that takes longer or less.
 *
 * The rules, each of which only narrows what is kept, so that the order of application does not matter:
 *   sweep   One device, all paths at once. E(state) = the earliest time at which a path can be there with
 * every op on it inside its window, memory within the limit in every state, and the nodes' restrictions
 * obeyed. Being earlier never hurts, so one number a state says all. L(state) = the latest time at which it
 * can be left and the end reached by S. A step is possible if it starts, at its earliest, no later than at
 * its latest; any schedule uses possible steps only, so the windows of an op are the extremes over the
 * possible steps that do it. If the first state cannot be left in time, S is refuted. link    Between
 * neighbours: F of stage s starts after F of s - 1 has ended and travelled; B of s - 1 after B of s. Starts
 * go down and ends come up, shifted by the end of the offset's interval that claims less; where they cross
 * they narrow the interval. lag     A microbatch's B on a stage starts only after its F there has ended and
 * the microbatch has been through every stage behind, in both directions. (Where offsets are fixed the links
 * say this already.)
 *
 * BW is a step where it could pay: where it is faster than B and W, or where B alone adds to memory and there
 * is a limit. Elsewhere a B and its W right after it can take its place: B ends no later, and memory is never
 * above what it was. */
#include "zbcheck.h"

#include <stdlib.h>

enum { CLASSES = 3 }; /* F, B, W */

static const int64_t never = INT64_MAX / 4; /* later than any time, with room to add to it */

struct stage {
  int64_t f, b, w, bw, full;            /* times; full: the least of a whole backward */
  int64_t keep_f, keep_b, keep_w, room; /* memory; room: the limit less what is always there */
  bool limited, fusing;
  bool dirty; /* its windows have moved since it was swept */
  int64_t *f_start, *f_end;
  int64_t *b_start, *b_end, *b_first_end, *b_last_start, *b_least;
  int64_t *fused_low, *fused_high;                         /* 0 or 1: is B number k a BW */
  int64_t *low[CLASSES][CLASSES], *high[CLASSES][CLASSES]; /* [counted][starting][index] */
  int64_t offset_low, offset_high, forward,
      backward; /* against the stage before, and the boundary's delays */
};

/* The states (i, j, low..high) of one pair (F done, B done); state l is at times[base + l]. */
struct row {
  int64_t base;
  int32_t low, high;
};

/* The extremes over the possible steps that do one op. */
struct found {
  int64_t first_start, last_start, first_end, last_end, least_time;
};

struct change {
  int64_t *cell;
  int64_t old;
};

struct zc_windows {
  struct zc_run *run;
  int32_t stages, m;
  int64_t target;
  bool empty; /* target below 0: nothing costs that little */
  struct stage *stage;
  struct row *rows;
  int64_t *times; /* E while sweeping forwards, L from behind */
  size_t times_room;
  int64_t *lag;            /* [m] */
  struct found *found_ops; /* [2 * m]: F, then B */
  struct change *changes;  /* what to put back on the way up the tree */
  size_t changes_count, changes_room;
  size_t *levels;
  size_t levels_count, levels_room;
  int64_t sweeps, states;
  bool out_of_memory;
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- narrowing, and undoing it ---- */

static void put(struct zc_windows *w, int64_t *cell, int64_t value) {
  if (w->levels_count > 0) {
    void *table = w->changes;
    if (!zc_grow(w->run, &table, &w->changes_room, w->changes_count + 1, sizeof *w->changes)) {
      w->out_of_memory = true;
      return;
    }
    w->changes = table;
    w->changes[w->changes_count++] = (struct change){cell, *cell};
  }
  *cell = value;
}

/* Both say whether anything moved. */
static bool at_least(struct zc_windows *w, int64_t *cell, int64_t value) {
  bool moves = value > *cell;

  if (moves) put(w, cell, value);
  return moves;
}

static bool at_most(struct zc_windows *w, int64_t *cell, int64_t value) {
  bool moves = value < *cell;

  if (moves) put(w, cell, value);
  return moves;
}

/* ---- the sweep ---- */

static struct row *row_of(const struct zc_windows *w, int32_t i, int32_t j) {
  return &w->rows[(int64_t)i * (w->m + 1) + j];
}

/* Which l of (i, j, l) are worth a place: an interval outside of which no path can be. All of this follows
 * from the sweep itself; it only saves touching the states. */
static struct row useful(const struct zc_windows *w, const struct stage *s, int32_t i, int32_t j) {
  const struct row none = {0, 1, 0};
  int32_t m = w->m;
  int64_t from = s->f_start[0], to = w->target, low = 0, high = j;

  /* The state lies between the ends of the ops before it and the starts of those after it. */
  if (i > 0) from = most(from, s->f_start[i - 1] + s->f);
  if (j > 0) from = most(from, s->b_first_end[j - 1]);
  if (i < m) to = least(to, s->f_end[i] - s->f);
  if (j < m) to = least(to, s->b_last_start[j]);
  if (from > to) return none;
  /* What is still to do has to fit behind it, what is done in front: j BWs at best, else W by W. */
  int64_t behind = w->target - from - (m - i) * s->f - (m - j) * s->full;
  int64_t front = to - s->f_start[0] - i * s->f - j * (s->fusing ? least(s->b, s->bw) : s->b);
  int64_t each = s->fusing ? least(s->w, s->bw - s->b) : s->w;
  if (behind < 0 || front < 0) return none;
  if (s->w > 0) low = most(low, j - behind / s->w);
  if (each > 0) high = least(high, front / each);
  if (s->limited) {
    int64_t excess = i * s->keep_f + j * s->keep_b - s->room;
    if (excess > 0 && s->keep_w == 0) return none;
    if (excess > 0) low = most(low, (excess - s->keep_w - 1) / -s->keep_w);
  }
  return low > high ? none : (struct row){0, (int32_t)low, (int32_t)high};
}

static bool lay_out(struct zc_windows *w, const struct stage *s) {
  int64_t total = 0;
  void *table = w->times;

  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      struct row *row = row_of(w, i, j);
      *row = useful(w, s, i, j);
      row->base = total - row->low;
      total += row->high - row->low + 1;
    }
  }
  w->states += total;
  if (!zc_grow(w->run, &table, &w->times_room, (size_t)total, sizeof *w->times)) return false;
  w->times = table;
  return true;
}

static bool within(int64_t value, const int64_t *low, const int64_t *high, int32_t index) {
  return low[index] <= value && value <= high[index];
}

/* Whether W number l may be done with i F and j B done. */
static bool weight_allowed(const struct stage *s, int32_t i, int32_t j, int32_t l) {
  return within(i, s->low[ZC_F][ZC_W], s->high[ZC_F][ZC_W], l) &&
         within(j, s->low[ZC_B][ZC_W], s->high[ZC_B][ZC_W], l);
}

/* The l for which a step from row `from` to row `to`, l -> l + more, exists and its restriction on W done
 * holds. */
static void step_range(const struct row *from, const struct row *to, int32_t more, int64_t low, int64_t high,
                       int32_t *first, int32_t *last) {
  *first = (int32_t)most(most(from->low, to->low - more), low);
  *last = (int32_t)least(least(from->high, to->high - more), high);
}

/* The steps out of a row that are not ruled out before any time is looked at. A step of none has first >
 * last. */
struct steps {
  const struct row *f_to, *b_to;
  int32_t f_first, f_last, b_first, b_last, x_first, x_last; /* x: BW */
};

static struct steps steps_from(const struct zc_windows *w, const struct stage *s, int32_t i, int32_t j) {
  const struct row *from = row_of(w, i, j);
  struct steps steps = {.f_last = -1, .b_last = -1, .x_last = -1};

  if (i < w->m && within(j, s->low[ZC_B][ZC_F], s->high[ZC_B][ZC_F], i)) {
    steps.f_to = row_of(w, i + 1, j);
    step_range(from, steps.f_to, 0, s->low[ZC_W][ZC_F][i], s->high[ZC_W][ZC_F][i], &steps.f_first,
               &steps.f_last);
  }
  if (j < i && within(i, s->low[ZC_F][ZC_B], s->high[ZC_F][ZC_B], j)) {
    int64_t low = s->low[ZC_W][ZC_B][j], high = s->high[ZC_W][ZC_B][j];
    steps.b_to = row_of(w, i, j + 1);
    if (s->fused_low[j] == 0) step_range(from, steps.b_to, 0, low, high, &steps.b_first, &steps.b_last);
    if (s->fusing && s->fused_high[j] == 1)
      step_range(from, steps.b_to, 1, low, high, &steps.x_first, &steps.x_last);
  }
  return steps;
}

static void reach(int64_t *time, int64_t from, int64_t release, int64_t takes, int64_t deadline) {
  int64_t end = most(from, release) + takes;

  if (end <= deadline && end < *time) *time = end;
}

/* E: pushes every state's time along its steps, rows in an order in which all that leads to a row is before
 * it. */
static void sweep_forward(struct zc_windows *w, const struct stage *s) {
  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      const struct row *row = row_of(w, i, j);
      for (int64_t l = row->low; l <= row->high; l++) w->times[row->base + l] = never;
    }
  }
  if (row_of(w, 0, 0)->high == 0) w->times[0] = 0;
  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      const struct row *row = row_of(w, i, j);
      struct steps steps = steps_from(w, s, i, j);
      int64_t *at = w->times + row->base;
      for (int32_t l = row->low; l < row->high; l++)
        if (weight_allowed(s, i, j, l)) reach(&at[l + 1], at[l], 0, s->w, w->target);
      for (int32_t l = steps.f_first; l <= steps.f_last; l++)
        reach(&w->times[steps.f_to->base + l], at[l], s->f_start[i], s->f, s->f_end[i]);
      for (int32_t l = steps.b_first; l <= steps.b_last; l++)
        reach(&w->times[steps.b_to->base + l], at[l], s->b_start[j], s->b, s->b_end[j]);
      for (int32_t l = steps.x_first; l <= steps.x_last; l++)
        if (weight_allowed(s, i, j, l))
          reach(&w->times[steps.b_to->base + l + 1], at[l], s->b_start[j], s->bw, s->b_end[j]);
    }
  }
}

/* A step into a state that must be left by `leave`. Returns its latest start, or -1 where it is not possible.
 */
static int64_t back(struct found *found, int64_t from, int64_t leave, int64_t release, int64_t takes,
                    int64_t deadline) {
  int64_t first = most(from, release), last = least(leave, deadline) - takes;

  if (first > last) return -1;
  if (found) {
    found->first_start = least(found->first_start, first);
    found->last_start = most(found->last_start, last);
    found->first_end = least(found->first_end, first + takes);
    found->last_end = most(found->last_end, last + takes);
    found->least_time = least(found->least_time, takes);
  }
  return last;
}

/* L over E: each state's E is needed only until its own L is known. -1 is a state that leads nowhere. */
static void sweep_back(struct zc_windows *w, const struct stage *s, struct found *f_found,
                       struct found *b_found) {
  for (int32_t i = w->m; i >= 0; i--) {
    for (int32_t j = i; j >= 0; j--) {
      const struct row *row = row_of(w, i, j);
      struct steps steps = steps_from(w, s, i, j);
      int64_t *at = w->times + row->base;
      for (int32_t l = row->high; l >= row->low; l--) {
        int64_t from = at[l], leave = -1;
        if (from == never) {
          at[l] = -1;
          continue;
        }
        if (i == w->m && j == w->m && l == w->m) leave = from <= w->target ? w->target : -1;
        if (l < row->high && weight_allowed(s, i, j, l))
          leave = most(leave, back(NULL, from, at[l + 1], 0, s->w, w->target));
        if (l >= steps.f_first && l <= steps.f_last)
          leave = most(leave, back(&f_found[i], from, w->times[steps.f_to->base + l], s->f_start[i], s->f,
                                   s->f_end[i]));
        if (l >= steps.b_first && l <= steps.b_last)
          leave = most(leave, back(&b_found[j], from, w->times[steps.b_to->base + l], s->b_start[j], s->b,
                                   s->b_end[j]));
        if (l >= steps.x_first && l <= steps.x_last && weight_allowed(s, i, j, l))
          leave = most(leave, back(&b_found[j], from, w->times[steps.b_to->base + l + 1], s->b_start[j],
                                   s->bw, s->b_end[j]));
        at[l] = leave;
      }
    }
  }
}

static enum zc_outcome sweep(struct zc_windows *w, struct stage *s) {
  struct found *f_found = w->found_ops, *b_found = f_found + w->m;

  w->sweeps++;
  if (!lay_out(w, s)) return ZC_NO_MEMORY;
  if (row_of(w, 0, 0)->high != 0 || row_of(w, w->m, w->m)->high != w->m) return ZC_REFUTED;
  for (int32_t k = 0; k < 2 * w->m; k++) w->found_ops[k] = (struct found){never, -1, never, -1, never};
  sweep_forward(w, s);
  sweep_back(w, s, f_found, b_found);
  if (w->times[0] < 0) return ZC_REFUTED;
  for (int32_t k = 0; k < w->m; k++) {
    at_least(w, &s->f_start[k], f_found[k].first_start);
    at_most(w, &s->f_end[k], f_found[k].last_end);
    at_least(w, &s->b_start[k], b_found[k].first_start);
    at_most(w, &s->b_end[k], b_found[k].last_end);
    at_least(w, &s->b_first_end[k], b_found[k].first_end);
    at_most(w, &s->b_last_start[k], b_found[k].last_start);
    at_least(w, &s->b_least[k], b_found[k].least_time);
  }
  s->dirty = false; /* a second sweep would find the same */
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}

/* ---- between stages ---- */

/* Stage number `below` and the one before it. False where they contradict each other. */
static bool link_stages(struct zc_windows *w, int32_t below) {
  if (below < 1 || below >= w->stages) return true;
  struct stage *up = &w->stage[below - 1], *down = &w->stage[below];

  for (int32_t k = 0; k < w->m; k++) {
    at_least(w, &down->offset_low, up->f_start[k] + up->f + down->forward - (down->f_end[k] - down->f));
    at_most(w, &down->offset_high, up->b_last_start[k] - down->backward - down->b_first_end[k]);
  }
  if (down->offset_low > down->offset_high) return false;
  for (int32_t k = 0; k < w->m; k++) {
    down->dirty |= at_least(w, &down->f_start[k], up->f_start[k] + up->f + down->forward - down->offset_high);
    up->dirty |= at_most(w, &up->f_end[k], down->f_end[k] - down->f + down->offset_high - down->forward);
    up->dirty |= at_least(w, &up->b_start[k], down->b_first_end[k] + down->offset_low + down->backward);
    down->dirty |= at_most(w, &down->b_end[k], up->b_last_start[k] - down->offset_low - down->backward);
  }
  return true;
}

static void apply_lags(struct zc_windows *w) {
  for (int32_t k = 0; k < w->m; k++) w->lag[k] = 0;
  for (int32_t i = w->stages - 1; i >= 0; i--) {
    struct stage *s = &w->stage[i];
    for (int32_t k = 0; k < w->m; k++) {
      s->dirty |= at_least(w, &s->b_start[k], s->f_start[k] + s->f + w->lag[k]);
      s->dirty |= at_most(w, &s->f_end[k], s->b_last_start[k] - w->lag[k]);
      w->lag[k] += s->forward + s->f + s->b_least[k] + s->backward;
    }
  }
}

static enum zc_outcome sweep_dirty(struct zc_windows *w, int32_t number) {
  if (!w->stage[number].dirty) return ZC_OPEN;
  enum zc_outcome outcome = sweep(w, &w->stage[number]);
  if (outcome == ZC_OPEN && (!link_stages(w, number) || !link_stages(w, number + 1))) outcome = ZC_REFUTED;
  return outcome;
}

enum zc_outcome zc_windows_propagate(struct zc_windows *w) {
  bool dirty = true;

  if (w->empty) return ZC_REFUTED;
  while (dirty) {
    apply_lags(w);
    /* Up the pipe for backwards, then down for forwards: what moves on one stage is used on the next. */
    for (int32_t i = 2 * w->stages - 1; i >= 0; i--) {
      enum zc_outcome outcome = sweep_dirty(w, i >= w->stages ? i - w->stages : w->stages - 1 - i);
      if (outcome != ZC_OPEN) return outcome;
    }
    apply_lags(w);
    dirty = false;
    for (int32_t i = 0; i < w->stages; i++) dirty = dirty || w->stage[i].dirty;
  }
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}

/* ---- down and up the tree ---- */

enum zc_outcome zc_windows_enter(struct zc_windows *w, const struct zc_variable *variable, int64_t value,
                                 bool above) {
  struct stage *s = &w->stage[variable->stage];
  int64_t *low, *high;
  void *table = w->levels;

  if (!zc_grow(w->run, &table, &w->levels_room, w->levels_count + 1, sizeof *w->levels)) return ZC_NO_MEMORY;
  w->levels = table;
  w->levels[w->levels_count++] = w->changes_count;
  if (w->empty) return ZC_REFUTED;
  if (variable->what == ZC_OFFSET) {
    low = &s->offset_low;
    high = &s->offset_high;
  } else if (variable->what == ZC_FUSED) {
    low = &s->fused_low[variable->index];
    high = &s->fused_high[variable->index];
  } else {
    low = &s->low[variable->counted][variable->starting][variable->index];
    high = &s->high[variable->counted][variable->starting][variable->index];
  }
  bool moves = above ? at_least(w, low, value + 1) : at_most(w, high, value);
  if (variable->what != ZC_OFFSET)
    s->dirty |= moves;
  else if (!link_stages(w, variable->stage))
    return ZC_REFUTED;
  return zc_windows_propagate(w);
}

void zc_windows_leave(struct zc_windows *w) {
  size_t mark = w->levels[--w->levels_count];

  while (w->changes_count > mark) {
    w->changes_count--;
    *w->changes[w->changes_count].cell = w->changes[w->changes_count].old;
  }
  for (int32_t i = 0; i < w->stages; i++) w->stage[i].dirty = false; /* the level above had come to rest */
}

/* ---- the start ---- */

static bool allocate_stage(struct zc_windows *w, struct stage *s) {
  size_t m = (size_t)w->m;
  int64_t **cells[] = {&s->f_start,      &s->f_end,   &s->b_start,   &s->b_end,     &s->b_first_end,
                       &s->b_last_start, &s->b_least, &s->fused_low, &s->fused_high};
  int64_t *block =
      zc_alloc(w->run, (sizeof cells / sizeof cells[0] + 2 * CLASSES * CLASSES) * m, sizeof *block);

  if (!block) return false;
  for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++, block += m) *cells[i] = block;
  for (int counted = 0; counted < CLASSES; counted++) {
    for (int starting = 0; starting < CLASSES; starting++, block += 2 * m) {
      s->low[counted][starting] = block;
      s->high[counted][starting] = block + m;
    }
  }
  return true;
}

/* What holds before any rule: everything lies in [0, S]. */
static void start_stage(struct zc_windows *w, const struct zc_profile *p, enum zc_objective objective,
                        int32_t number) {
  struct stage *s = &w->stage[number];
  int32_t device = p->device_of[number];

  s->f = p->f[number];
  s->b = p->b[number];
  s->w = p->w[number];
  s->bw = p->bw[number];
  s->keep_f = p->keep_f[number];
  s->keep_b = p->keep_b[number];
  s->keep_w = p->keep_w[number];
  s->limited = p->limit[device] != ZC_NO_LIMIT;
  s->room = s->limited ? p->limit[device] - p->standing[device] : 0;
  s->fusing = s->bw < s->b + s->w || (s->keep_b > 0 && s->limited);
  s->full = s->fusing ? least(s->b + s->w, s->bw) : s->b + s->w;
  s->dirty = true;
  for (int32_t k = 0; k < w->m; k++) {
    s->b_least[k] = s->fusing ? least(s->b, s->bw) : s->b;
    s->f_end[k] = s->b_end[k] = w->target;
    s->b_first_end[k] = s->b_least[k];
    s->b_last_start[k] = w->target - s->b_least[k];
    s->fused_high[k] = 1;
    for (int counted = 0; counted < CLASSES; counted++)
      for (int starting = 0; starting < CLASSES; starting++) s->high[counted][starting][k] = w->m;
  }
  if (objective != ZC_MAKESPAN) s->f_end[0] = s->f; /* its start is where the clock starts */
  if (number > 0) {
    s->forward = p->forward[number - 1];
    s->backward = p->backward[number - 1];
    if (objective != ZC_MAKESPAN) s->offset_low = s->offset_high = p->f[number - 1] + s->forward;
    if (objective == ZC_PERIOD)
      s->offset_high = w->target; /* the stage before does a B later than this stage does its own, and by S */
  }
}

struct zc_windows *zc_windows_new(struct zc_run *run, const struct zc_profile *profile,
                                  enum zc_objective objective, int64_t target) {
  struct zc_windows *w = zc_alloc(run, 1, sizeof *w);
  size_t m = (size_t)profile->microbatches;

  if (!w) return NULL;
  w->run = run;
  w->stages = profile->stages;
  w->m = profile->microbatches;
  w->target = target;
  w->empty = target < 0;
  if (!(w->stage = zc_alloc(run, (size_t)w->stages, sizeof *w->stage)) ||
      !(w->rows = zc_alloc(run, (m + 1) * (m + 1), sizeof *w->rows)) ||
      !(w->lag = zc_alloc(run, m, sizeof *w->lag)) ||
      !(w->found_ops = zc_alloc(run, 2 * m, sizeof *w->found_ops)))
    return NULL;
  for (int32_t i = 0; i < w->stages; i++) {
    if (!allocate_stage(w, &w->stage[i])) return NULL;
    start_stage(w, profile, objective, i);
  }
  return w;
}

void zc_windows_free(struct zc_windows *w) {
  if (!w) return;
  zc_note(w->run, "%lld device sweeps, %lld states", (long long)w->sweeps, (long long)w->states);
  free(w->times);
  free(w->changes);
  free(w->levels);
}
