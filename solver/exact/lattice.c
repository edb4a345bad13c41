// lattice.c - the two sweeps over one device's states.
//
// States are stored as rows: for each (nB, nF) inside the order bounds, the values over the nW that
// memory (from below), nB (from above) and the order bounds allow; nothing else is ever touched. The
// forward sweep pulls the earliest time E into a row from the rows that lead to it; the backward sweep
// replaces E by the latest time L in place, since E of a state is last needed for the transitions that
// leave it. Inner loops run over nW, contiguous and without branches, so that they vectorise; only the
// W steps inside a row form a chain.
//
// Invariant: a state holds E only if it is reachable within the windows, and L only if moreover
// E <= L; otherwise it holds `never` (forward) or `dead` (backward).
#include "solver/exact/lattice.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/grid.h"
#include "solver/exact/survivors.h"
#include "solver/model/number.h"

static const int64_t never = ZB_NEVER;
static const int64_t dead = ZB_DEAD;

// Values of states (nF, nB, lo..hi) are at table[base + nW].
struct zb_row {
  ptrdiff_t base;
  int lo, hi; // empty: lo > hi
};

// The arguments of a sweep, at hand for its parts.
struct sweep {
  struct zb_lattice *lattice;
  const struct zb_chain_device *device;
  const int64_t *in[ZB_WINDOWS];
  int64_t *out[ZB_WINDOWS];
  int m;
  int64_t horizon;
};

void zb_lattice_free(struct zb_lattice *lattice) {
  free(lattice->table);
  free(lattice->row);
  free(lattice->plane);
  free(lattice->plane_lo);
  free(lattice->out);
  free(lattice->base);
  zb_grid_free(lattice->grid);
  *lattice = (struct zb_lattice){0};
}

static bool reserve_scratch(struct zb_lattice *lattice, int m) {
  if (lattice->microbatches == m) return true;
  free(lattice->plane);
  free(lattice->plane_lo);
  free(lattice->out);
  free(lattice->base);
  const size_t n = (size_t)m;
  lattice->plane = malloc((n + 2) * sizeof *lattice->plane);
  lattice->plane_lo = malloc((n + 1) * sizeof *lattice->plane_lo);
  lattice->out = malloc(ZB_WINDOWS * n * sizeof *lattice->out);
  lattice->base = malloc((n + 1) * sizeof *lattice->base);
  lattice->microbatches = m;
  if (lattice->plane && lattice->plane_lo && lattice->out && lattice->base) return true;
  lattice->microbatches = 0;
  return false;
}

// nW below which (nF, nB) does not fit the memory, found by stepping from the value at a smaller nF.
static int64_t least_weights(const struct zb_chain_device *device, int forwards, int backwards, int m,
                             int64_t from) {
  if (device->room_bytes == ZB_NO_LIMIT) return 0;
  const int64_t over = forwards * device->f_bytes + backwards * device->b_bytes - device->room_bytes;
  while (from <= m && over + from * device->w_bytes > 0) {
    if (device->w_bytes == 0) return m + 1;
    from++;
  }
  return from;
}

static bool reserve_rows(struct zb_lattice *lattice, size_t rows) {
  if (rows <= lattice->row_capacity) return true;
  struct zb_row *grown = realloc(lattice->row, 2 * rows * sizeof *grown);
  if (!grown) return false;
  lattice->row = grown;
  lattice->row_capacity = 2 * rows;
  return true;
}

// Lays out the rows of every (nB, nF) inside the order bounds. W done cannot fall below what an earlier
// op already saw, nor exceed what the next op may see.
static enum zb_sweep lay_out(struct sweep *sweep) {
  struct zb_lattice *lattice = sweep->lattice;
  const int m = sweep->m;
  const int64_t *const z_lo = sweep->in[ZB_Z_LO], *const z_hi = sweep->in[ZB_Z_HI];
  size_t rows = 0;
  ptrdiff_t states = 0;
  for (int backwards = 0; backwards <= m; backwards++) {
    const int64_t first = backwards > 0 ? zb_max(backwards, sweep->in[ZB_X_LO][backwards - 1]) : 0;
    const int64_t last = backwards < m ? sweep->in[ZB_X_HI][backwards] : m;
    const int64_t y_lo = backwards > 0 ? sweep->in[ZB_Y_LO][backwards - 1] : 0;
    const int64_t y_hi = backwards < m ? zb_min(backwards, sweep->in[ZB_Y_HI][backwards]) : m;
    lattice->plane[backwards] = rows;
    lattice->plane_lo[backwards] = (int)first;
    if (first > last) return ZB_SWEEP_REFUTED;
    if (!reserve_rows(lattice, rows + (size_t)(last - first + 1))) return ZB_SWEEP_MEMORY;
    int64_t fits = 0;
    for (int forwards = (int)first; forwards <= last; forwards++) {
      fits = least_weights(sweep->device, forwards, backwards, m, fits);
      const int64_t seen = forwards > 0 ? zb_max(y_lo, z_lo[forwards - 1]) : y_lo;
      const int lo = (int)zb_max(fits, seen), hi = (int)(forwards < m ? zb_min(y_hi, z_hi[forwards]) : y_hi);
      lattice->row[rows++] = (struct zb_row){states - lo, lo, hi};
      if (lo <= hi) states += hi - lo + 1;
    }
  }
  lattice->plane[m + 1] = rows;
  const size_t wanted = (size_t)states;
  if (lattice->most_states > 0 && wanted > lattice->most_states) return ZB_SWEEP_MEMORY;
  if (wanted > lattice->capacity) {
    free(lattice->table);
    lattice->capacity = 0;
    size_t roomy = wanted + wanted / 4;
    if (lattice->most_states > 0 && roomy > lattice->most_states) roomy = lattice->most_states;
    lattice->table = malloc(roomy * sizeof *lattice->table);
    if (!lattice->table) return ZB_SWEEP_MEMORY;
    lattice->capacity = roomy;
  }
  lattice->work += (int64_t)states;
  return ZB_SWEEP_KEPT;
}

// One value of nB: its rows, nF = lo .. lo + count - 1.
struct plane {
  struct zb_row *row;
  int lo, count;
};

static struct plane plane_at(const struct zb_lattice *lattice, int backwards) {
  const size_t first = lattice->plane[backwards];
  return (struct plane){&lattice->row[first], lattice->plane_lo[backwards],
                        (int)(lattice->plane[backwards + 1] - first)};
}

// NULL outside the bounds.
static struct zb_row *row_in(const struct plane *plane, int forwards) {
  const int at = forwards - plane->lo;
  return at >= 0 && at < plane->count ? &plane->row[at] : NULL;
}

// to[i] = min(to[i], end of an op that starts in state from[i]) where it ends by `late`.
static void pull_earliest(int64_t *restrict to, const int64_t *restrict from, int count, int64_t release,
                          int64_t time, int64_t late) {
  for (int i = 0; i < count; i++) {
    int64_t end = (from[i] > release ? from[i] : release) + time;
    end = end <= late ? end : never;
    to[i] = end < to[i] ? end : to[i];
  }
}

// States of two rows that an op connects: nW = lo .. hi of the one it starts from.
struct overlap {
  int lo, hi;
};

static struct overlap overlap(const struct zb_row *from, const struct zb_row *to, int step) {
  return (struct overlap){from->lo > to->lo - step ? from->lo : to->lo - step,
                          from->hi < to->hi - step ? from->hi : to->hi - step};
}

// All rows of a plane, from the plane below it (NULL for nB = 0). Returns whether any state is reached.
static bool forward_plane(struct sweep *sweep, int backwards, const struct plane *plane,
                          const struct plane *below) {
  int64_t *const table = sweep->lattice->table;
  const struct zb_chain_device *const device = sweep->device;
  const int64_t *const f_early = sweep->in[ZB_F_EARLY], *const f_late = sweep->in[ZB_F_LATE];
  const int m = sweep->m, k = backwards - 1;
  const bool split = k >= 0 && sweep->in[ZB_FUSED_LO][k] == 0,
             fused = k >= 0 && sweep->in[ZB_FUSED_HI][k] == 1;
  const int64_t release = k >= 0 ? sweep->in[ZB_B_EARLY][k] : 0, late = k >= 0 ? sweep->in[ZB_B_LATE][k] : 0;
  // What comes next must still start in time, and the rest must fit.
  const int64_t next_backward = backwards < m ? sweep->in[ZB_B_LATE_START][backwards] : sweep->horizon;
  const int64_t rest = sweep->horizon - (m - backwards) * device->backward;
  bool any = false;
  for (int i = 0; i < plane->count; i++) {
    const int forwards = plane->lo + i;
    struct zb_row *const row = &plane->row[i];
    if (row->lo > row->hi) continue;
    int64_t *const to = table + row->base;
    int64_t cutoff =
        zb_min(next_backward, rest - (m - forwards) * device->f - (backwards - row->hi) * device->w);
    if (forwards < m) cutoff = zb_min(cutoff, f_late[forwards] - device->f);
    for (int w = row->lo; w <= row->hi; w++) to[w] = never;
    if (forwards == 0 && cutoff >= 0) to[0] = 0;
    if (i > 0) {
      const struct overlap in = overlap(row - 1, row, 0);
      pull_earliest(to + in.lo, table + row[-1].base + in.lo, in.hi - in.lo + 1, f_early[forwards - 1],
                    device->f, zb_min(cutoff, f_late[forwards - 1]));
    }
    const struct zb_row *from = below ? row_in(below, forwards) : NULL;
    if (from && split) {
      const struct overlap in = overlap(from, row, 0);
      pull_earliest(to + in.lo, table + from->base + in.lo, in.hi - in.lo + 1, release, device->b,
                    zb_min(cutoff, late));
    }
    if (from && fused) {
      struct overlap in = overlap(from, row, 1);
      if (in.lo < sweep->in[ZB_Y_LO][k]) in.lo = (int)sweep->in[ZB_Y_LO][k];
      pull_earliest(to + in.lo + 1, table + from->base + in.lo, in.hi - in.lo + 1, release, device->bw,
                    zb_min(cutoff, late));
    }
    int64_t reached = never;
    for (int w = row->lo; w <= row->hi; w++) {
      reached += device->w;
      reached = to[w] < reached ? to[w] : reached;
      to[w] = reached > cutoff ? never : reached;
    }
    while (row->lo <= row->hi && to[row->lo] == never) row->lo++;
    while (row->lo <= row->hi && to[row->hi] == never) row->hi--;
    any |= row->lo <= row->hi;
  }
  return any;
}

// An op between two rows, as both backward parts need it.
struct step {
  const int64_t *here, *next; // by nW before the op
  struct overlap range;
  int64_t release, time, late;
};

// First and last nW from which the op survives, looked for only outside what is known.
static void widen(const struct step *step, int64_t *least, int64_t *most) {
  for (int w = step->range.lo; w <= step->range.hi && w < *least; w++) {
    if (zb_min(step->next[w], step->late) - step->time >= zb_max(step->here[w], step->release)) *least = w;
  }
  for (int w = step->range.hi; w >= step->range.lo && w > *most; w--) {
    if (zb_min(step->next[w], step->late) - step->time >= zb_max(step->here[w], step->release)) *most = w;
  }
}

static struct survivors push_step(const struct sweep *sweep, const struct step *step) {
  const int lo = step->range.lo;
  return push_latest(sweep->lattice->base + lo, step->here + lo, step->next + lo, step->range.hi - lo + 1,
                     step->release, step->time, step->late);
}

static void backward_f(struct sweep *sweep, int j, const struct step *step) {
  const struct survivors seen = push_step(sweep, step);
  if (seen.earliest == never) return;
  sweep->out[ZB_F_EARLY][j] = zb_min(sweep->out[ZB_F_EARLY][j], zb_max(seen.earliest, step->release));
  sweep->out[ZB_F_LATE][j] = zb_max(sweep->out[ZB_F_LATE][j], seen.latest_start + step->time);
  widen(step, &sweep->out[ZB_Z_LO][j], &sweep->out[ZB_Z_HI][j]);
}

static void backward_b(struct sweep *sweep, int k, int forwards, int fused, const struct step *step) {
  const struct survivors seen = push_step(sweep, step);
  if (seen.earliest == never) return;
  int64_t *const *const out = sweep->out;
  const int64_t start = zb_max(seen.earliest, step->release);
  out[ZB_B_EARLY][k] = zb_min(out[ZB_B_EARLY][k], start);
  out[ZB_B_EARLY_END][k] = zb_min(out[ZB_B_EARLY_END][k], start + step->time);
  out[ZB_B_LATE_START][k] = zb_max(out[ZB_B_LATE_START][k], seen.latest_start);
  out[ZB_B_LATE][k] = zb_max(out[ZB_B_LATE][k], seen.latest_start + step->time);
  out[ZB_X_LO][k] = zb_min(out[ZB_X_LO][k], forwards);
  out[ZB_X_HI][k] = zb_max(out[ZB_X_HI][k], forwards);
  out[ZB_FUSED_LO][k] = zb_min(out[ZB_FUSED_LO][k], fused);
  out[ZB_FUSED_HI][k] = zb_max(out[ZB_FUSED_HI][k], fused);
  widen(step, &out[ZB_Y_LO][k], &out[ZB_Y_HI][k]);
}

// All rows of a plane, from the plane above it (NULL for nB = m).
static void backward_plane(struct sweep *sweep, int backwards, const struct plane *plane,
                           const struct plane *above) {
  int64_t *const table = sweep->lattice->table, *const base = sweep->lattice->base;
  const struct zb_chain_device *const device = sweep->device;
  const int m = sweep->m, k = backwards;
  const bool split = k < m && sweep->in[ZB_FUSED_LO][k] == 0, fused = k < m && sweep->in[ZB_FUSED_HI][k] == 1;
  for (int i = plane->count - 1; i >= 0; i--) {
    const int forwards = plane->lo + i;
    struct zb_row *const row = &plane->row[i];
    if (row->lo > row->hi) continue;
    int64_t *const here = table + row->base;
    for (int w = row->lo; w <= row->hi; w++) base[w] = dead;
    if (forwards == m && backwards == m && row->hi == m) base[m] = sweep->horizon;
    if (i + 1 < plane->count) {
      const struct step step = {
          here,      table + row[1].base,           overlap(row, row + 1, 0), sweep->in[ZB_F_EARLY][forwards],
          device->f, sweep->in[ZB_F_LATE][forwards]};
      if (step.range.lo <= step.range.hi) backward_f(sweep, forwards, &step);
    }
    const struct zb_row *next = above ? row_in(above, forwards) : NULL;
    if (next && split) {
      const struct step step = {
          here,      table + next->base,     overlap(row, next, 0), sweep->in[ZB_B_EARLY][k],
          device->b, sweep->in[ZB_B_LATE][k]};
      if (step.range.lo <= step.range.hi) backward_b(sweep, k, forwards, 0, &step);
    }
    if (next && fused) {
      struct step step = {here,       table + next->base + 1, overlap(row, next, 1), sweep->in[ZB_B_EARLY][k],
                          device->bw, sweep->in[ZB_B_LATE][k]};
      if (step.range.lo < sweep->in[ZB_Y_LO][k]) step.range.lo = (int)sweep->in[ZB_Y_LO][k];
      if (step.range.lo <= step.range.hi) backward_b(sweep, k, forwards, 1, &step);
    }
    int64_t leave = dead;
    for (int w = row->hi; w >= row->lo; w--) {
      leave -= device->w;
      leave = base[w] > leave ? base[w] : leave;
      leave = leave >= here[w] ? leave : dead;
      here[w] = leave;
    }
    while (row->lo <= row->hi && here[row->lo] == dead) row->lo++;
    while (row->lo <= row->hi && here[row->hi] == dead) row->hi--;
  }
}

static void forget_results(const struct sweep *sweep) {
  for (int window = 0; window < ZB_WINDOWS; window++) {
    const int64_t nothing = zb_window_rises(window) ? never : dead;
    for (int i = 0; i < sweep->m; i++) sweep->out[window][i] = nothing;
  }
}

enum zb_sweep zb_lattice_sweep(struct zb_lattice *lattice, const struct zb_chain_device *device, int m,
                               int64_t horizon, const int64_t *windows) {
  if (!reserve_scratch(lattice, m)) return ZB_SWEEP_MEMORY;
  struct sweep sweep = {.lattice = lattice, .device = device, .m = m, .horizon = horizon};
  for (int window = 0; window < ZB_WINDOWS; window++) {
    sweep.in[window] = windows + (ptrdiff_t)window * m;
    sweep.out[window] = lattice->out + (ptrdiff_t)window * m;
  }
  const enum zb_sweep laid = lay_out(&sweep);
  if (laid != ZB_SWEEP_KEPT) return laid;
  struct plane plane, other = {NULL, 0, 0};
  for (int backwards = 0; backwards <= m; backwards++) {
    plane = plane_at(lattice, backwards);
    if (!forward_plane(&sweep, backwards, &plane, backwards > 0 ? &other : NULL)) return ZB_SWEEP_REFUTED;
    if (backwards % 16 == 15 && zb_halted(lattice->halt)) return ZB_SWEEP_STOPPED;
    other = plane;
  }
  const struct zb_row *end = row_in(&other, m);
  if (!end || end->lo > end->hi || end->hi < m) return ZB_SWEEP_REFUTED;
  forget_results(&sweep);
  for (int backwards = m; backwards >= 0; backwards--) {
    plane = plane_at(lattice, backwards);
    backward_plane(&sweep, backwards, &plane, backwards < m ? &other : NULL);
    if (backwards % 16 == 15 && zb_halted(lattice->halt)) return ZB_SWEEP_STOPPED;
    other = plane;
  }
  return zb_lattice_latest(lattice, 0, 0, 0) >= 0 ? ZB_SWEEP_KEPT : ZB_SWEEP_REFUTED;
}

int64_t zb_lattice_latest(const struct zb_lattice *lattice, int forwards, int backwards, int weights) {
  const struct plane plane = plane_at(lattice, backwards);
  const struct zb_row *row = row_in(&plane, forwards);
  if (!row || weights < row->lo || weights > row->hi) return dead;
  return lattice->table[row->base + weights];
}

void zb_windows_init(const struct zb_chain_device *device, int m, int64_t horizon, int64_t *windows) {
  for (int i = 0; i < m; i++) {
    const int64_t values[ZB_WINDOWS] = {
        [ZB_F_EARLY] = 0,
        [ZB_F_LATE] = horizon,
        [ZB_B_EARLY] = 0,
        [ZB_B_EARLY_END] = 0,
        [ZB_B_LATE_START] = horizon,
        [ZB_B_LATE] = horizon,
        [ZB_X_LO] = i + 1,
        [ZB_X_HI] = m,
        [ZB_Y_LO] = 0,
        [ZB_Y_HI] = i,
        [ZB_Z_LO] = 0,
        [ZB_Z_HI] = i,
        [ZB_FUSED_LO] = 0,
        [ZB_FUSED_HI] = device->fused ? 1 : 0,
    };
    for (int window = 0; window < ZB_WINDOWS; window++) windows[window * m + i] = values[window];
  }
}
