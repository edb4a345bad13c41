// grid.c - the two sweeps over the states of a device with several stages.
//
// The forward sweep pulls the earliest time E of each row's states from the rows one op earlier; the backward
// sweep goes the other way and replaces E by the latest time L in place. Rows run over the last class, W, so
// that the inner loops are those of lattice.c.
//
// Invariant: a state holds E only if it is reachable within the windows, and L only if moreover E <= L;
// otherwise it holds `never` (forward) or `dead` (backward).
#include <stdlib.h>

#include "solver/exact/grid_tree.h"
#include "solver/exact/survivors.h"
#include "solver/model/number.h"

static const int64_t never = ZB_NEVER, dead = ZB_DEAD;

static void list_steps(struct zb_grid_sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  for (int i = 0; i < sweep->row; i++) {
    const struct zb_op_class *class = &device->class[i];
    const struct zb_stage *at = &sweep->chunked->stage[class->stage];
    zb_grid_add_step(sweep, class->chunk, i, -1, class->time);
    if (class->kind == ZB_B && at->fused)
      zb_grid_add_step(sweep, class->chunk, i, zb_class_of_w(device, class->chunk), at->bw);
  }
}

// Ticks that the ops take which the row has not counted as done, but for W of its own class.
static int64_t work_left(const struct zb_grid_sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  int64_t ticks = 0;
  for (int i = 0; i < sweep->row; i++) {
    const struct zb_op_class *class = &device->class[i];
    if (class->kind == ZB_F) ticks += (sweep->m - sweep->n[i]) * class->time;
    if (class->kind == ZB_B) ticks += (sweep->m - sweep->n[i]) * sweep->chunked->stage[class->stage].backward;
    if (class->kind == ZB_W) ticks += (sweep->n[class->chunk] - sweep->n[i]) * class->time;
  }
  return ticks;
}

// W of the row's class whose B is done.
static int weights_open(const struct zb_grid_sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  int open = 0;
  for (int c = 0; c < device->chunks; c++)
    open += device->weights_merged || device->class[sweep->row].chunk == c ? sweep->n[c] : 0;
  return open;
}

// Whether the windows let op `k` of the step's class be split, or fused.
static bool allowed(const struct zb_grid_step *step, int k) {
  if (!step->fused_lo) return true;
  return step->fuses ? step->fused_hi[k] == 1 : step->fused_lo[k] == 0;
}

// Least nW that a fused pass may start from.
static int fused_from(const struct zb_grid_sweep *sweep, const struct zb_grid_step *step, int k) {
  return (int)
      sweep->windows[(ptrdiff_t)zb_pair_array(sweep->device, step->first, step->second) * sweep->m + k];
}

// Whether a fused pass may start where its W, counted apart from the row, stands.
static bool fused_may_start(const struct zb_grid_sweep *sweep, const struct zb_grid_step *step, int done,
                            int k) {
  return !step->fuses || step->row_step || done >= fused_from(sweep, step, k);
}

// to[i] = min(to[i], end of an op that starts from from[i]), where it ends by `late`.
static void pull_earliest(int64_t *restrict to, const int64_t *restrict from, int count, int64_t release,
                          int64_t time, int64_t late) {
  for (int i = 0; i < count; i++) {
    int64_t end = (from[i] > release ? from[i] : release) + time;
    end = end <= late ? end : never;
    to[i] = end < to[i] ? end : to[i];
  }
}

// nW from which a step leads from one row to the other.
struct overlap {
  int lo, hi;
};

static struct overlap overlap(const struct zb_grid_entry *from, const struct zb_grid_entry *to, int step) {
  const int from_hi = from->lo + from->count - 1, to_hi = to->lo + to->count - 1 - step;
  return (struct overlap){from->lo > to->lo - step ? from->lo : to->lo - step,
                          from_hi < to_hi ? from_hi : to_hi};
}

static void forward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                        const struct zb_grid_way *way) {
  int64_t *const table = sweep->grid->table, *const to = table + row->at - row->lo;
  const int lo = row->lo, hi = row->lo + row->count - 1;
  const int64_t w = sweep->device->class[sweep->row].time;
  for (int i = lo; i <= hi; i++) to[i] = never;
  bool first = lo == 0;
  for (int i = 0; i < sweep->row && first; i++) first = sweep->n[i] == 0;
  if (first) to[0] = 0;
  for (int s = 0; s < sweep->steps; s++) {
    const struct zb_grid_step *step = &sweep->step[s];
    const struct zb_grid_entry *from = way->other[s];
    const int k = sweep->n[step->first] - 1;
    if (!from || from->count == 0 || !allowed(step, k)) continue;
    if (step->fuses && !fused_may_start(sweep, step, sweep->n[step->second] - 1, k)) continue;
    struct overlap in = overlap(from, row, step->row_step);
    if (step->row_step) in.lo = in.lo > fused_from(sweep, step, k) ? in.lo : fused_from(sweep, step, k);
    pull_earliest(to + in.lo + step->row_step, table + from->at + (in.lo - from->lo), in.hi - in.lo + 1,
                  step->early ? step->early[k] : 0, step->time,
                  step->late ? zb_min(way->late, step->late[k]) : way->late);
  }
  int64_t cutoff = sweep->horizon - work_left(sweep) - (weights_open(sweep) - lo) * w;
  int64_t reached = never;
  for (int i = lo; i <= hi; i++, cutoff += w) {
    reached += w;
    reached = to[i] < reached ? to[i] : reached;
    to[i] = reached > cutoff || reached > way->late ? never : reached;
    reached = to[i];
  }
  int from = lo, last = hi;
  while (from <= last && to[from] == never) from++;
  while (from <= last && to[last] == never) last--;
  zb_grid_trim(row, from - lo, hi - last);
}

// First and last nW from which the op survives, looked for only outside what is known.
static void widen_row(const struct zb_grid_sweep *sweep, const struct zb_grid_step *step, int k,
                      const int64_t *here, const int64_t *next, struct overlap in, int64_t release,
                      int64_t late) {
  int64_t *lo = zb_grid_out(sweep, zb_pair_array(sweep->device, step->first, sweep->row)),
          *hi = lo + sweep->m;
  for (int w = in.lo; w <= in.hi && w < lo[k]; w++) {
    if (zb_min(next[w], late) - step->time >= zb_max(here[w], release)) lo[k] = w;
  }
  for (int w = in.hi; w >= in.lo && w > hi[k]; w--) {
    if (zb_min(next[w], late) - step->time >= zb_max(here[w], release)) hi[k] = w;
  }
}

static void backward_step(struct zb_grid_sweep *sweep, const struct zb_grid_step *step,
                          const struct zb_grid_entry *row, const struct zb_grid_entry *to, int64_t *base) {
  const int k = sweep->n[step->first];
  if (!to || to->count == 0 || !allowed(step, k)) return;
  if (step->fuses && !fused_may_start(sweep, step, sweep->n[step->second], k)) return;
  struct overlap in = overlap(row, to, step->row_step);
  if (step->row_step) in.lo = in.lo > fused_from(sweep, step, k) ? in.lo : fused_from(sweep, step, k);
  if (in.lo > in.hi) return;
  const int64_t *here = sweep->grid->table + row->at - row->lo;
  const int64_t *next = sweep->grid->table + to->at - to->lo + step->row_step;
  const int64_t release = step->early ? step->early[k] : 0,
                late = step->late ? step->late[k] : sweep->horizon;
  const struct survivors seen = push_latest(base + (in.lo - row->lo), here + in.lo, next + in.lo,
                                            in.hi - in.lo + 1, release, step->time, late);
  if (seen.earliest == never || !step->early) return;
  zb_grid_note(sweep, step, k, zb_max(seen.earliest, release), seen.latest_start,
               seen.latest_start + step->time);
  widen_row(sweep, step, k, here, next, in, release, late);
}

static void backward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                         const struct zb_grid_way *way) {
  int64_t *const here = sweep->grid->table + row->at, *const base = sweep->grid->base;
  const struct zb_op_class *weights = &sweep->device->class[sweep->row];
  for (int i = 0; i < row->count; i++) base[i] = dead;
  bool last = row->lo + row->count - 1 == weights->count;
  for (int i = 0; i < sweep->row && last; i++) last = sweep->n[i] == sweep->device->class[i].count;
  if (last) base[row->count - 1] = sweep->horizon;
  for (int s = 0; s < sweep->steps; s++) backward_step(sweep, &sweep->step[s], row, way->other[s], base);
  int64_t leave = dead;
  for (int i = row->count - 1; i >= 0; i--) {
    leave -= weights->time;
    leave = base[i] > leave ? base[i] : leave;
    leave = leave >= here[i] ? leave : dead;
    here[i] = leave;
  }
  int from = 0, end = row->count;
  while (from < end && here[from] == dead) from++;
  while (from < end && here[end - 1] == dead) end--;
  zb_grid_trim(row, from, row->count - end);
}

enum zb_sweep zb_grid_sweep(struct zb_lattice *lattice, const struct zb_chunked *chunked, int d,
                            int64_t horizon, const int64_t *windows) {
  if (!lattice->grid) lattice->grid = calloc(1, sizeof *lattice->grid);
  if (!lattice->grid) return ZB_SWEEP_MEMORY;
  struct zb_grid_sweep sweep;
  zb_grid_start(&sweep, lattice, chunked, d, chunked->device[d].classes - 1, horizon, windows);
  list_steps(&sweep);
  const enum zb_sweep laid = zb_grid_lay_out(&sweep, 1);
  if (laid != ZB_SWEEP_KEPT) return laid;
  zb_grid_forward(&sweep, forward_row);
  if (sweep.stopped) return ZB_SWEEP_STOPPED;
  int all[ZB_MOST_CLASSES];
  for (int i = 0; i < sweep.device->classes; i++) all[i] = sweep.device->class[i].count;
  if (zb_grid_latest(sweep.grid, all) < 0) return ZB_SWEEP_REFUTED;
  zb_grid_forget(&sweep);
  zb_grid_backward(&sweep, backward_row);
  if (sweep.stopped) return ZB_SWEEP_STOPPED;
  const int nothing[ZB_MOST_CLASSES] = {0};
  return zb_grid_latest(sweep.grid, nothing) >= 0 ? ZB_SWEEP_KEPT : ZB_SWEEP_REFUTED;
}
