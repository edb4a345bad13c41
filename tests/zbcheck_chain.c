/* zbcheck: the sweep of a device with one stage, see zbcheck_window.c.
 *
 * Its states are (F done, B done, W done), and W done is an interval for each of the other two: rows in a
 * table that is dense, since most pairs of F and B done can be. */
#include "zbcheck_window.h"

enum { CLASSES = 3 }; /* F, B, W */

struct lane {
  const struct zc_stage *stage;
  bool limited;
  int64_t room;
  int64_t *low[CLASSES][CLASSES], *high[CLASSES][CLASSES]; /* [counted][starting][index] */
};

static struct zc_row *row_of(const struct zc_windows *w, int32_t i, int32_t j) {
  return &w->rows[(int64_t)i * (w->m + 1) + j];
}

/* Which l of (i, j, l) are worth a place: an interval outside of which no path can be. All of this follows
 * from the sweep itself; it only saves touching the states. */
static struct zc_row useful(const struct zc_windows *w, const struct lane *lane, int32_t i, int32_t j) {
  const struct zc_stage *s = lane->stage;
  const struct zc_row none = {0, 1, 0};
  int32_t m = w->m;
  int64_t from = s->f_start[0], to = w->target, low = 0, high = j;

  /* The state lies between the ends of the ops before it and the starts of those after it. */
  if (i > 0) from = zc_most(from, s->f_start[i - 1] + s->f);
  if (j > 0) from = zc_most(from, s->b_first_end[j - 1]);
  if (i < m) to = zc_least(to, s->f_end[i] - s->f);
  if (j < m) to = zc_least(to, s->b_last_start[j]);
  if (from > to) return none;
  /* What is still to do has to fit behind it, what is done in front: j BWs at best, else W by W. */
  int64_t behind = w->target - from - (m - i) * s->f - (m - j) * s->full;
  int64_t front = to - s->f_start[0] - i * s->f - j * (s->fusing ? zc_least(s->b, s->bw) : s->b);
  int64_t each = s->fusing ? zc_least(s->w, s->bw - s->b) : s->w;
  if (behind < 0 || front < 0) return none;
  if (s->w > 0) low = zc_most(low, j - behind / s->w);
  if (each > 0) high = zc_least(high, front / each);
  if (lane->limited) {
    int64_t excess = i * s->keep_f + j * s->keep_b - lane->room;
    if (excess > 0 && s->keep_w == 0) return none;
    if (excess > 0) low = zc_most(low, (excess - s->keep_w - 1) / -s->keep_w);
  }
  return low > high ? none : (struct zc_row){0, (int32_t)low, (int32_t)high};
}

struct zc_row *zc_chain_rows(struct zc_run *run, int32_t microbatches) {
  size_t side = (size_t)microbatches + 1;

  return zc_alloc(run, side * side, sizeof(struct zc_row));
}

static bool lay_out(struct zc_windows *w, const struct lane *lane) {
  int64_t total = 0;
  void *table = w->times;

  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      struct zc_row *row = row_of(w, i, j);
      *row = useful(w, lane, i, j);
      row->base = total - row->low;
      total += row->high - row->low + 1;
    }
  }
  w->states += total;
  if (!zc_grow(w->run, &table, &w->times_room, (size_t)total, sizeof *w->times)) return false;
  w->times = table;
  return true;
}

/* Whether W number l may be done with i F and j B done. */
static bool weight_allowed(const struct lane *lane, int32_t i, int32_t j, int32_t l) {
  return zc_within(i, lane->low[ZC_F][ZC_W], lane->high[ZC_F][ZC_W], l) &&
         zc_within(j, lane->low[ZC_B][ZC_W], lane->high[ZC_B][ZC_W], l);
}

/* The l for which a step from row `from` to row `to`, l -> l + more, exists and its restriction on W done
 * holds. */
static void step_range(const struct zc_row *from, const struct zc_row *to, int32_t more, int64_t low,
                       int64_t high, int32_t *first, int32_t *last) {
  *first = (int32_t)zc_most(zc_most(from->low, to->low - more), low);
  *last = (int32_t)zc_least(zc_least(from->high, to->high - more), high);
}

/* The steps out of a row that are not ruled out before any time is looked at. A step of none has first >
 * last. */
struct steps {
  const struct zc_row *f_to, *b_to;
  int32_t f_first, f_last, b_first, b_last, x_first, x_last; /* x: BW */
};

static struct steps steps_from(const struct zc_windows *w, const struct lane *lane, int32_t i, int32_t j) {
  const struct zc_stage *s = lane->stage;
  const struct zc_row *from = row_of(w, i, j);
  struct steps steps = {.f_last = -1, .b_last = -1, .x_last = -1};

  if (i < w->m && zc_within(j, lane->low[ZC_B][ZC_F], lane->high[ZC_B][ZC_F], i)) {
    steps.f_to = row_of(w, i + 1, j);
    step_range(from, steps.f_to, 0, lane->low[ZC_W][ZC_F][i], lane->high[ZC_W][ZC_F][i], &steps.f_first,
               &steps.f_last);
  }
  if (j < i && zc_within(i, lane->low[ZC_F][ZC_B], lane->high[ZC_F][ZC_B], j)) {
    int64_t low = lane->low[ZC_W][ZC_B][j], high = lane->high[ZC_W][ZC_B][j];
    steps.b_to = row_of(w, i, j + 1);
    if (s->fused_low[j] == 0) step_range(from, steps.b_to, 0, low, high, &steps.b_first, &steps.b_last);
    if (s->fusing && s->fused_high[j] == 1)
      step_range(from, steps.b_to, 1, low, high, &steps.x_first, &steps.x_last);
  }
  return steps;
}

static void reach(int64_t *time, int64_t from, int64_t release, int64_t takes, int64_t deadline) {
  int64_t end = zc_most(from, release) + takes;

  if (end <= deadline && end < *time) *time = end;
}

/* E: pushes every state's time along its steps, rows in an order in which all that leads to a row is before
 * it. */
static void sweep_forward(struct zc_windows *w, const struct lane *lane) {
  const struct zc_stage *s = lane->stage;

  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      const struct zc_row *row = row_of(w, i, j);
      for (int64_t l = row->low; l <= row->high; l++) w->times[row->base + l] = zc_never;
    }
  }
  if (row_of(w, 0, 0)->high == 0) w->times[0] = 0;
  for (int32_t i = 0; i <= w->m; i++) {
    for (int32_t j = 0; j <= i; j++) {
      const struct zc_row *row = row_of(w, i, j);
      struct steps steps = steps_from(w, lane, i, j);
      int64_t *at = w->times + row->base;
      for (int32_t l = row->low; l < row->high; l++)
        if (weight_allowed(lane, i, j, l)) reach(&at[l + 1], at[l], 0, s->w, w->target);
      for (int32_t l = steps.f_first; l <= steps.f_last; l++)
        reach(&w->times[steps.f_to->base + l], at[l], s->f_start[i], s->f, s->f_end[i]);
      for (int32_t l = steps.b_first; l <= steps.b_last; l++)
        reach(&w->times[steps.b_to->base + l], at[l], s->b_start[j], s->b, s->b_end[j]);
      for (int32_t l = steps.x_first; l <= steps.x_last; l++)
        if (weight_allowed(lane, i, j, l))
          reach(&w->times[steps.b_to->base + l + 1], at[l], s->b_start[j], s->bw, s->b_end[j]);
    }
  }
}

/* A step into a state that must be left by `leave`. Returns its latest start, or -1 where it is not possible.
 */
static int64_t back(struct zc_found *found, int64_t from, int64_t leave, int64_t release, int64_t takes,
                    int64_t deadline) {
  int64_t first = zc_most(from, release), last = zc_least(leave, deadline) - takes;

  if (first > last) return -1;
  if (found) zc_find(found, first, last, takes);
  return last;
}

/* L over E: each state's E is needed only until its own L is known. -1 is a state that leads nowhere. */
static void sweep_back(struct zc_windows *w, const struct lane *lane, struct zc_found *f_found,
                       struct zc_found *b_found) {
  const struct zc_stage *s = lane->stage;

  for (int32_t i = w->m; i >= 0; i--) {
    for (int32_t j = i; j >= 0; j--) {
      const struct zc_row *row = row_of(w, i, j);
      struct steps steps = steps_from(w, lane, i, j);
      int64_t *at = w->times + row->base;
      for (int32_t l = row->high; l >= row->low; l--) {
        int64_t from = at[l], leave = -1;
        if (from == zc_never) {
          at[l] = -1;
          continue;
        }
        if (i == w->m && j == w->m && l == w->m) leave = from <= w->target ? w->target : -1;
        if (l < row->high && weight_allowed(lane, i, j, l))
          leave = zc_most(leave, back(NULL, from, at[l + 1], 0, s->w, w->target));
        if (l >= steps.f_first && l <= steps.f_last)
          leave = zc_most(leave, back(&f_found[i], from, w->times[steps.f_to->base + l], s->f_start[i], s->f,
                                      s->f_end[i]));
        if (l >= steps.b_first && l <= steps.b_last)
          leave = zc_most(leave, back(&b_found[j], from, w->times[steps.b_to->base + l], s->b_start[j], s->b,
                                      s->b_end[j]));
        if (l >= steps.x_first && l <= steps.x_last && weight_allowed(lane, i, j, l))
          leave = zc_most(leave, back(&b_found[j], from, w->times[steps.b_to->base + l + 1], s->b_start[j],
                                      s->bw, s->b_end[j]));
        at[l] = leave;
      }
    }
  }
}

enum zc_outcome zc_sweep_chain(struct zc_windows *w, int32_t device) {
  struct zc_device *d = &w->device[device];
  struct zc_stage *s = &w->stage[d->stages[0]];
  struct zc_found *f_found = w->found_ops, *b_found = f_found + w->m;
  struct lane lane = {.stage = s, .limited = d->limited, .room = d->room};

  for (int32_t counted = 0; counted < CLASSES; counted++) {
    for (int32_t starting = 0; starting < CLASSES; starting++) {
      lane.low[counted][starting] = zc_low(d, counted, starting);
      lane.high[counted][starting] = zc_high(d, counted, starting);
    }
  }
  w->sweeps++;
  if (!lay_out(w, &lane)) return ZC_NO_MEMORY;
  if (row_of(w, 0, 0)->high != 0 || row_of(w, w->m, w->m)->high != w->m) return ZC_REFUTED;
  zc_clear_found(w->found_ops, 2 * (int64_t)w->m);
  sweep_forward(w, &lane);
  sweep_back(w, &lane, f_found, b_found);
  if (w->times[0] < 0) return ZC_REFUTED;
  zc_take_found(w, s, f_found, b_found);
  d->dirty = false; /* a second sweep would find the same */
  return w->out_of_memory ? ZC_NO_MEMORY : ZC_OPEN;
}
