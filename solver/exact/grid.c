// grid.c - the two sweeps over the states of a device with several stages.
//
// The tree is laid out first: for each choice of the first i counts, the range of the next one that order
// bounds, time windows and memory leave. Its order is topological, since every op adds 1 to a count. The
// forward sweep visits the rows in that order and pulls the earliest time E from the rows one op earlier; the
// way down to those is kept beside the way down to the row itself, one cursor an op. The backward sweep goes
// the other way and replaces E by the latest time L in place.
//
// Invariant: a state holds E only if it is reachable within the windows, and L only if moreover E <= L;
// otherwise it holds `never` (forward) or `dead` (backward).
#include "solver/exact/grid.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

static const int64_t never = INT64_MAX / 4;
static const int64_t dead = -(INT64_MAX / 4);

enum { MOST_STEPS = 2 * ZB_MOST_CLASSES };

// What a device can do next: one op, which adds 1 to one count, or to two for a BW.
struct step {
  int first, second; // classes; second -1: none
  int chunk;
  int64_t time;
  const int64_t *early, *late, *fused_lo, *fused_hi; // windows of F and B; NULL for W
  bool fuses;
  int row_step; // what it adds to the row's class
};

struct sweep {
  struct zb_lattice *lattice;
  struct zb_grid *grid;
  const struct zb_chunked *chunked;
  const struct zb_chunked_device *device;
  const int64_t *windows;
  int64_t *out;
  int m, row; // row: the last class
  int64_t horizon;
  struct step step[MOST_STEPS];
  int steps;
  const int64_t *early_end[ZB_MOST_CLASSES]; // [m] of F and B; NULL for W
  int64_t early_time[ZB_MOST_CLASSES];       // what to add to it
  const int64_t *late_start[ZB_MOST_CLASSES];
  int64_t late_time[ZB_MOST_CLASSES];
  int64_t least_time[ZB_MOST_CLASSES]; // of an op of the class
  int64_t states;
  int n[ZB_MOST_CLASSES];
  int64_t rows_seen;
  bool stopped, memory;
};

void zb_grid_free(struct zb_grid *grid) {
  if (!grid) return;
  for (int i = 0; i < ZB_MOST_CLASSES; i++) free(grid->level[i]);
  free(grid->table);
  free(grid->out);
  free(grid->base);
  free(grid);
}

static bool reserve(int64_t **array, size_t *capacity, size_t wanted) {
  if (wanted <= *capacity) return true;
  free(*array);
  *capacity = 0;
  *array = malloc((wanted + wanted / 4) * sizeof **array);
  if (!*array) return false;
  *capacity = wanted + wanted / 4;
  return true;
}

static const int64_t *stage_window(const struct sweep *sweep, int chunk, enum zb_stage_window window) {
  return sweep->windows + (ptrdiff_t)zb_stage_array(chunk, window) * sweep->m;
}

static void add_step(struct sweep *sweep, int chunk, int first, int second, int64_t time) {
  struct step step = {.first = first, .second = second, .chunk = chunk, .time = time, .fuses = second >= 0};
  const struct zb_op_class *class = &sweep->device->class[first];
  if (class->kind == ZB_F) {
    step.early = stage_window(sweep, chunk, ZB_STAGE_F_EARLY);
    step.late = stage_window(sweep, chunk, ZB_STAGE_F_LATE);
  } else if (class->kind == ZB_B) {
    step.early = stage_window(sweep, chunk, ZB_STAGE_B_EARLY);
    step.late = stage_window(sweep, chunk, ZB_STAGE_B_LATE);
    step.fused_lo = stage_window(sweep, chunk, ZB_STAGE_FUSED_LO);
    step.fused_hi = stage_window(sweep, chunk, ZB_STAGE_FUSED_HI);
  }
  step.row_step = second == sweep->row;
  sweep->step[sweep->steps++] = step;
}

static void list_steps(struct sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  for (int i = 0; i < device->classes; i++) {
    const struct zb_op_class *class = &device->class[i];
    sweep->least_time[i] = class->time;
    sweep->early_end[i] = NULL;
    if (i < sweep->row) add_step(sweep, class->chunk, i, -1, class->time);
    if (class->kind == ZB_F) {
      sweep->early_end[i] = stage_window(sweep, class->chunk, ZB_STAGE_F_EARLY);
      sweep->early_time[i] = class->time;
      sweep->late_start[i] = stage_window(sweep, class->chunk, ZB_STAGE_F_LATE);
      sweep->late_time[i] = class->time;
    }
    if (class->kind != ZB_B) continue;
    const struct zb_stage *at = &sweep->chunked->stage[class->stage];
    sweep->early_end[i] = stage_window(sweep, class->chunk, ZB_STAGE_B_EARLY_END);
    sweep->early_time[i] = 0;
    sweep->late_start[i] = stage_window(sweep, class->chunk, ZB_STAGE_B_LATE_START);
    sweep->late_time[i] = 0;
    // A W is counted in full: what is less than that in a fused pass comes off its B.
    sweep->least_time[i] = at->backward - at->w;
    if (at->fused) add_step(sweep, class->chunk, i, zb_class_of_w(device, class->chunk), at->bw);
  }
}

// Range of the next count that order bounds leave.
static void bound_count(const struct sweep *sweep, int depth, int64_t *lo, int64_t *hi) {
  const struct zb_chunked_device *device = sweep->device;
  const struct zb_op_class *class = &device->class[depth];
  const int starting = depth < 2 * device->chunks ? depth : 2 * device->chunks;
  *lo = 0;
  *hi = class->count;
  for (int i = 0; i < starting; i++) {
    const int64_t *least = sweep->windows + (ptrdiff_t)zb_pair_array(device, i, depth) * sweep->m;
    const int64_t *most = least + sweep->m;
    const int done = sweep->n[i];
    if (done > 0) *lo = zb_max(*lo, least[done - 1]);
    if (done < sweep->m) *hi = zb_min(*hi, most[done]);
  }
  if (class->kind != ZB_W) return;
  int64_t backwards = 0;
  for (int c = 0; c < device->chunks; c++)
    backwards += class->chunk < 0 || class->chunk == c ? sweep->n[c] : 0;
  *hi = zb_min(*hi, backwards);
}

static struct zb_grid_entry *add_entries(struct sweep *sweep, int depth, int64_t count) {
  struct zb_grid *grid = sweep->grid;
  const size_t wanted = grid->filled[depth] + (size_t)count;
  if (wanted > grid->capacity[depth]) {
    const size_t most = sweep->lattice->most_states;
    if (most > 0 && wanted > most) return NULL;
    struct zb_grid_entry *grown = realloc(grid->level[depth], 2 * wanted * sizeof *grown);
    if (!grown) return NULL;
    grid->level[depth] = grown;
    grid->capacity[depth] = 2 * wanted;
  }
  return grid->level[depth];
}

// What is known at a choice of the first counts.
struct prefix {
  int64_t early, late; // no state of it is reached before, none left after
  int64_t work, bytes; // of the ops counted so far
};

// Least nW at which a row fits, and the most that ends in time.
static void lay_out_row(struct sweep *sweep, const struct prefix *prefix, struct zb_grid_entry *row) {
  const struct zb_op_class *class = &sweep->device->class[sweep->row];
  int64_t lo, hi;
  bound_count(sweep, sweep->row, &lo, &hi);
  const int64_t over =
      sweep->device->room_bytes == ZB_NO_LIMIT ? 0 : prefix->bytes - sweep->device->room_bytes;
  if (over > 0) lo = class->bytes == 0 ? hi + 1 : zb_max(lo, (over - class->bytes - 1) / -class->bytes);
  if (prefix->work > prefix->late) hi = -1;
  if (class->time > 0) hi = zb_min(hi, (prefix->late - prefix->work) / class->time);
  *row = (struct zb_grid_entry){sweep->states, (int32_t)lo, lo <= hi ? (int32_t)(hi - lo + 1) : 0};
  sweep->states += row->count;
}

// Least bytes that the W which could be done give back.
static int64_t weight_bytes(const struct sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  int64_t bytes = 0;
  for (int c = 0; c < device->chunks; c++)
    bytes += sweep->n[c] * device->class[zb_class_of_w(device, c)].bytes;
  return bytes;
}

static void lay_out(struct sweep *sweep, int depth, size_t index, const struct prefix *prefix) {
  const struct zb_chunked_device *device = sweep->device;
  struct zb_grid *grid = sweep->grid;
  if (depth == sweep->row) {
    lay_out_row(sweep, prefix, &grid->level[depth][index]);
    return;
  }
  const struct zb_op_class *class = &device->class[depth];
  int64_t lo, hi;
  bound_count(sweep, depth, &lo, &hi);
  if (class->kind == ZB_F && device->room_bytes != ZB_NO_LIMIT) {
    // All F of later stages are counted; each earlier stage has done at least as many as this one.
    int64_t each = 0;
    for (int i = depth; i < 2 * device->chunks; i++) each += device->class[i].bytes;
    const int64_t room = device->room_bytes - prefix->bytes - weight_bytes(sweep);
    if (room < 0)
      hi = -1;
    else if (each > 0)
      hi = zb_min(hi, room / each);
  }
  const size_t first = grid->filled[depth + 1];
  const int64_t count = lo <= hi ? hi - lo + 1 : 0;
  grid->level[depth][index] = (struct zb_grid_entry){(int64_t)first, (int32_t)lo, (int32_t)count};
  if (count == 0) return;
  if (!add_entries(sweep, depth + 1, count)) {
    sweep->memory = true;
    return;
  }
  grid->filled[depth + 1] += (size_t)count;
  const int64_t *early_end = sweep->early_end[depth], *late_start = sweep->late_start[depth];
  for (int64_t k = lo; k <= hi && !sweep->memory; k++) {
    const size_t child = first + (size_t)(k - lo);
    grid->level[depth + 1][child] = (struct zb_grid_entry){0, 0, 0};
    struct prefix next = *prefix;
    if (early_end && k > 0) next.early = zb_max(next.early, early_end[k - 1] + sweep->early_time[depth]);
    if (early_end && k < sweep->m) next.late = zb_min(next.late, late_start[k] - sweep->late_time[depth]);
    if (next.early > next.late) continue;
    next.work += k * sweep->least_time[depth];
    next.bytes += k * class->bytes;
    sweep->n[depth] = (int)k;
    lay_out(sweep, depth + 1, child, &next);
  }
}

// The way down to a row and to those one op away.
struct way {
  const struct zb_grid_entry *own;
  const struct zb_grid_entry *other[MOST_STEPS]; // NULL: outside the bounds
  int64_t late;                                  // the next op of a class must still start in time
};

static int step_of(const struct step *step, int class) {
  return step->first == class || step->second == class;
}

static bool descend(const struct sweep *sweep, const struct way *way, int depth, int direction, int k,
                    struct way *next) {
  const struct zb_grid_entry *below = sweep->grid->level[depth + 1];
  next->own = below + way->own->at + (k - way->own->lo);
  if (next->own->count == 0) return false;
  next->late = way->late;
  if (sweep->early_end[depth] && k < sweep->m)
    next->late = zb_min(next->late, sweep->late_start[depth][k] - sweep->late_time[depth]);
  for (int s = 0; s < sweep->steps; s++) {
    const struct zb_grid_entry *from = way->other[s];
    const int at = k + direction * step_of(&sweep->step[s], depth);
    const bool inside = from && at >= from->lo && at < from->lo + from->count;
    next->other[s] = inside ? below + from->at + (at - from->lo) : NULL;
  }
  return true;
}

static bool halted(struct sweep *sweep) {
  if (++sweep->rows_seen % 4096 == 0 && zb_halted(sweep->lattice->halt)) sweep->stopped = true;
  return sweep->stopped;
}

// Ticks that the ops take which the row has not counted as done, but for W of its own class.
static int64_t work_left(const struct sweep *sweep) {
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
static int weights_open(const struct sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  int open = 0;
  for (int c = 0; c < device->chunks; c++)
    open += device->weights_merged || device->class[sweep->row].chunk == c ? sweep->n[c] : 0;
  return open;
}

// Whether the windows let op `k` of the step's class be split, or fused.
static bool allowed(const struct step *step, int k) {
  if (!step->fused_lo) return true;
  return step->fuses ? step->fused_hi[k] == 1 : step->fused_lo[k] == 0;
}

// Least nW that a fused pass may start from.
static int fused_from(const struct sweep *sweep, const struct step *step, int k) {
  return (int)
      sweep->windows[(ptrdiff_t)zb_pair_array(sweep->device, step->first, step->second) * sweep->m + k];
}

// Whether a fused pass may start where its W, counted apart from the row, stands.
static bool fused_may_start(const struct sweep *sweep, const struct step *step, int done, int k) {
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

static void forward_row(struct sweep *sweep, const struct way *way) {
  struct zb_grid_entry *row = &sweep->grid->level[sweep->row][way->own - sweep->grid->level[sweep->row]];
  int64_t *const table = sweep->grid->table, *const to = table + row->at - row->lo;
  const int lo = row->lo, hi = row->lo + row->count - 1;
  const int64_t w = sweep->device->class[sweep->row].time;
  for (int i = lo; i <= hi; i++) to[i] = never;
  bool first = lo == 0;
  for (int i = 0; i < sweep->row && first; i++) first = sweep->n[i] == 0;
  if (first) to[0] = 0;
  for (int s = 0; s < sweep->steps; s++) {
    const struct step *step = &sweep->step[s];
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
  row->at += from - lo;
  row->lo = from;
  row->count = last - from + 1;
}

static void forward(struct sweep *sweep, int depth, const struct way *way) {
  if (depth == sweep->row) {
    if (!halted(sweep)) forward_row(sweep, way);
    return;
  }
  struct way next;
  for (int i = 0; i < way->own->count && !sweep->stopped; i++) {
    const int k = way->own->lo + i;
    sweep->n[depth] = k;
    if (descend(sweep, way, depth, -1, k, &next)) forward(sweep, depth + 1, &next);
  }
}

// What the surviving transitions of one op have said so far.
struct survivors {
  int64_t earliest;     // least E of a state it starts from
  int64_t latest_start; // largest
};

// base[i] = max(base[i], latest start of an op from state here[i] to next[i]) where it survives.
static struct survivors push_latest(int64_t *restrict base, const int64_t *restrict here,
                                    const int64_t *restrict next, int count, int64_t release, int64_t time,
                                    int64_t late) {
  int64_t earliest = never, latest = dead;
  for (int i = 0; i < count; i++) {
    int64_t start = (next[i] < late ? next[i] : late) - time;
    const int64_t ready = here[i] > release ? here[i] : release;
    const bool survives = start >= ready;
    start = survives ? start : dead;
    const int64_t from = survives ? here[i] : never;
    earliest = from < earliest ? from : earliest;
    latest = start > latest ? start : latest;
    base[i] = start > base[i] ? start : base[i];
  }
  return (struct survivors){earliest, latest};
}

static int64_t *out_array(const struct sweep *sweep, int array) {
  return sweep->out + (ptrdiff_t)array * sweep->m;
}

static void widen_pair(const struct sweep *sweep, int starting, int counted, int k, int least, int most) {
  int64_t *lo = out_array(sweep, zb_pair_array(sweep->device, starting, counted)), *hi = lo + sweep->m;
  if (least < lo[k]) lo[k] = least;
  if (most > hi[k]) hi[k] = most;
}

// First and last nW from which the op survives, looked for only outside what is known.
static void widen_row(const struct sweep *sweep, const struct step *step, int k, const int64_t *here,
                      const int64_t *next, struct overlap in, int64_t release, int64_t late) {
  int64_t *lo = out_array(sweep, zb_pair_array(sweep->device, step->first, sweep->row)), *hi = lo + sweep->m;
  for (int w = in.lo; w <= in.hi && w < lo[k]; w++) {
    if (zb_min(next[w], late) - step->time >= zb_max(here[w], release)) lo[k] = w;
  }
  for (int w = in.hi; w >= in.lo && w > hi[k]; w--) {
    if (zb_min(next[w], late) - step->time >= zb_max(here[w], release)) hi[k] = w;
  }
}

static void note_op(const struct sweep *sweep, const struct step *step, int k, int64_t start,
                    int64_t latest_start) {
  const bool forward_op = sweep->device->class[step->first].kind == ZB_F;
  int64_t *early =
      out_array(sweep, zb_stage_array(step->chunk, forward_op ? ZB_STAGE_F_EARLY : ZB_STAGE_B_EARLY));
  int64_t *late =
      out_array(sweep, zb_stage_array(step->chunk, forward_op ? ZB_STAGE_F_LATE : ZB_STAGE_B_LATE));
  early[k] = zb_min(early[k], start);
  late[k] = zb_max(late[k], latest_start + step->time);
  if (!forward_op) {
    int64_t *early_end = out_array(sweep, zb_stage_array(step->chunk, ZB_STAGE_B_EARLY_END));
    int64_t *late_start = out_array(sweep, zb_stage_array(step->chunk, ZB_STAGE_B_LATE_START));
    int64_t *lo = out_array(sweep, zb_stage_array(step->chunk, ZB_STAGE_FUSED_LO)), *hi = lo + sweep->m;
    early_end[k] = zb_min(early_end[k], start + step->time);
    late_start[k] = zb_max(late_start[k], latest_start);
    lo[k] = zb_min(lo[k], step->fuses);
    hi[k] = zb_max(hi[k], step->fuses);
  }
  for (int j = step->first + 1; j < sweep->row; j++)
    widen_pair(sweep, step->first, j, k, sweep->n[j], sweep->n[j]);
}

static void backward_step(struct sweep *sweep, const struct step *step, const struct zb_grid_entry *row,
                          const struct zb_grid_entry *to, int64_t *base) {
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
  note_op(sweep, step, k, zb_max(seen.earliest, release), seen.latest_start);
  widen_row(sweep, step, k, here, next, in, release, late);
}

static void backward_row(struct sweep *sweep, const struct way *way) {
  struct zb_grid_entry *row = &sweep->grid->level[sweep->row][way->own - sweep->grid->level[sweep->row]];
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
  row->at += from;
  row->lo += from;
  row->count = end - from;
}

static void backward(struct sweep *sweep, int depth, const struct way *way) {
  if (depth == sweep->row) {
    if (!halted(sweep)) backward_row(sweep, way);
    return;
  }
  struct way next;
  for (int i = way->own->count - 1; i >= 0 && !sweep->stopped; i--) {
    const int k = way->own->lo + i;
    sweep->n[depth] = k;
    if (descend(sweep, way, depth, 1, k, &next)) backward(sweep, depth + 1, &next);
  }
}

static struct way way_from_root(const struct sweep *sweep) {
  struct way way = {.own = sweep->grid->level[0], .late = sweep->horizon};
  for (int s = 0; s < sweep->steps; s++) way.other[s] = way.own;
  return way;
}

static enum zb_sweep lay_out_all(struct sweep *sweep) {
  struct zb_grid *grid = sweep->grid;
  const struct zb_chunked_device *device = sweep->device;
  for (int i = 0; i < device->classes; i++) grid->filled[i] = 0;
  grid->levels = device->classes;
  const size_t arrays = (size_t)zb_device_arrays(device) * (size_t)sweep->m;
  const size_t longest = (size_t)device->class[sweep->row].count + 1;
  if (!reserve(&grid->out, &grid->out_capacity, arrays) ||
      !reserve(&grid->base, &grid->base_capacity, longest) || !add_entries(sweep, 0, 1))
    return ZB_SWEEP_MEMORY;
  grid->filled[0] = 1;
  const struct prefix nothing = {.late = sweep->horizon};
  lay_out(sweep, 0, 0, &nothing);
  const size_t most = sweep->lattice->most_states, states = (size_t)sweep->states;
  if (sweep->memory || (most > 0 && states > most)) return ZB_SWEEP_MEMORY;
  if (!reserve(&grid->table, &grid->table_capacity, states)) return ZB_SWEEP_MEMORY;
  sweep->lattice->work += (int64_t)states;
  sweep->out = grid->out;
  return ZB_SWEEP_KEPT;
}

static void forget_results(const struct sweep *sweep) {
  const int arrays = zb_device_arrays(sweep->device);
  for (int array = 0; array < arrays; array++) {
    int64_t *values = out_array(sweep, array);
    for (int k = 0; k < sweep->m; k++) values[k] = array % 2 == 0 ? never : dead;
  }
}

enum zb_sweep zb_grid_sweep(struct zb_lattice *lattice, const struct zb_chunked *chunked, int d,
                            int64_t horizon, const int64_t *windows) {
  if (!lattice->grid) lattice->grid = calloc(1, sizeof *lattice->grid);
  if (!lattice->grid) return ZB_SWEEP_MEMORY;
  struct sweep sweep = {.lattice = lattice,
                        .grid = lattice->grid,
                        .chunked = chunked,
                        .device = &chunked->device[d],
                        .windows = windows,
                        .m = chunked->microbatches,
                        .row = chunked->device[d].classes - 1,
                        .horizon = horizon};
  list_steps(&sweep);
  const enum zb_sweep laid = lay_out_all(&sweep);
  if (laid != ZB_SWEEP_KEPT) return laid;
  struct way way = way_from_root(&sweep);
  forward(&sweep, 0, &way);
  if (sweep.stopped) return ZB_SWEEP_STOPPED;
  int all[ZB_MOST_CLASSES];
  for (int i = 0; i < sweep.device->classes; i++) all[i] = sweep.device->class[i].count;
  if (zb_grid_latest(sweep.grid, all) < 0) return ZB_SWEEP_REFUTED;
  forget_results(&sweep);
  way = way_from_root(&sweep);
  backward(&sweep, 0, &way);
  if (sweep.stopped) return ZB_SWEEP_STOPPED;
  const int nothing[ZB_MOST_CLASSES] = {0};
  return zb_grid_latest(sweep.grid, nothing) >= 0 ? ZB_SWEEP_KEPT : ZB_SWEEP_REFUTED;
}

int64_t zb_grid_latest(const struct zb_grid *grid, const int *counts) {
  int64_t at = 0;
  for (int i = 0; i < grid->levels; i++) {
    const struct zb_grid_entry *entry = &grid->level[i][at];
    if (counts[i] < entry->lo || counts[i] >= entry->lo + entry->count) return dead;
    at = entry->at + (counts[i] - entry->lo);
  }
  return grid->table[at];
}
