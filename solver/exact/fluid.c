// fluid.c - sweeps over counts of F and B, with two numbers a state.
//
// chunked.h has the rules and the names: T and I forward, L and J backward. W has no place in the order; what
// is known of it is how much can be done in a state (most) and how much must be for the state to fit (least).
// The time that is not spent on work may not exceed the slack, before a state and after it together; that is
// what the first input's way down the pipe and the last gradient's way back take from it.
//
// The table holds T, then L, of all states, and after those I, then J.
#include "solver/exact/fluid.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/grid_tree.h"
#include "solver/model/number.h"

struct fluid {
  struct zb_grid_sweep sweep;      // first: rows are visited through it
  int64_t work, total, slack;      // base(all), all W, and what is left of the horizon
  int64_t weight[ZB_MOST_CLASSES]; // [chunks] w'
  bool may_fuse[ZB_MOST_CLASSES];  // [chunks]
  int64_t *second;                 // I or J
};

// What one state of a row is, whatever the times.
struct place {
  int64_t base, rest, most, least, over;
};

static const int64_t unfit = -1;

static int64_t whole_weights(int64_t lack, int64_t bytes, int64_t ticks) {
  return lack <= 0 ? 0 : (lack + bytes - 1) / bytes * ticks;
}

// least(n) of chunked.h for the counts of B in done[0 .. chunks-1]; `unfit` where it does not fit.
static int64_t least_weights(const struct fluid *fluid, int64_t over, const int *done) {
  const struct zb_chunked_device *device = fluid->sweep.device;
  if (over <= 0) return 0;
  int64_t all = 0, least = 0;
  for (int c = 0; c < device->chunks; c++) all -= done[c] * device->class[zb_class_of_w(device, c)].bytes;
  if (over > all) return unfit;
  if (device->weights_merged)
    return whole_weights(over, -device->class[zb_class_of_w(device, 0)].bytes, fluid->weight[0]);
  for (int c = 0; c < device->chunks; c++) {
    const int64_t bytes = -device->class[zb_class_of_w(device, c)].bytes;
    if (bytes > 0) least += whole_weights(over - (all - done[c] * bytes), bytes, fluid->weight[c]);
  }
  return least;
}

static int64_t step_time(const struct fluid *fluid, int class) {
  const struct zb_op_class *at = &fluid->sweep.device->class[class];
  return at->kind == ZB_F ? at->time : fluid->sweep.chunked->stage[at->stage].gradient;
}

// The place of the row's state with no op of its own class.
static struct place row_start(const struct fluid *fluid) {
  const struct zb_grid_sweep *sweep = &fluid->sweep;
  const struct zb_chunked_device *device = sweep->device;
  struct place place = {0};
  for (int i = 0; i < sweep->row; i++) {
    place.base += sweep->n[i] * step_time(fluid, i);
    place.over += sweep->n[i] * device->class[i].bytes;
  }
  for (int c = 0; c < device->chunks; c++) place.most += sweep->n[c] * fluid->weight[c];
  place.over -= device->room_bytes == ZB_NO_LIMIT ? 0 : device->room_bytes;
  return place;
}

// With `count` ops of the row's class done.
static struct place place_at(const struct fluid *fluid, const struct place *start, int count) {
  const struct zb_op_class *class = &fluid->sweep.device->class[fluid->sweep.row];
  struct place place = *start;
  place.base += count * class->time;
  place.over += count * class->bytes;
  place.rest = fluid->work - place.base;
  const bool limited = fluid->sweep.device->room_bytes != ZB_NO_LIMIT;
  place.least = limited ? least_weights(fluid, place.over, fluid->sweep.n) : 0;
  return place;
}

// Where a step forward starts at the earliest, and the time lost until then.
struct start {
  int64_t start, lost;
  bool possible;
};

static struct start start_from(const struct fluid *fluid, const struct zb_grid_step *step, int64_t base,
                               int64_t most, int64_t least_after, int64_t entered, int64_t lost, int k) {
  const bool is_b = fluid->sweep.device->class[step->first].kind == ZB_B;
  const int64_t release = step->early[k];
  int64_t need = least_after;
  if (is_b && fluid->may_fuse[step->chunk]) need = zb_max(0, need - fluid->weight[step->chunk]);
  struct start found;
  found.lost = zb_max(lost, release - base - most);
  found.start = zb_max(zb_max(entered, release), base + need + found.lost);
  found.possible = found.start + step->time <= step->late[k] && found.lost <= fluid->slack;
  return found;
}

static int64_t weight_of(const struct fluid *fluid, const struct zb_grid_step *step) {
  return fluid->sweep.device->class[step->first].kind == ZB_B ? fluid->weight[step->chunk] : 0;
}

static void forward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                        const struct zb_grid_way *way) {
  struct fluid *fluid = (struct fluid *)sweep;
  int64_t *const entered = sweep->grid->table, *const lost = fluid->second;
  const int64_t *row_late = sweep->late_start[sweep->row];
  const struct place start = row_start(fluid);
  const bool origin = start.base == 0 && start.most == 0;
  int head = 0, tail = 0;
  for (int i = 0; i < row->count; i++) {
    const int count = row->lo + i;
    const struct place here = place_at(fluid, &start, count);
    int64_t best = ZB_NEVER, least_lost = ZB_NEVER;
    bool first = origin && count == 0;
    for (int c = 0; c < sweep->row && first; c++) first = sweep->n[c] == 0;
    if (first) best = least_lost = 0;
    for (int s = 0; s < sweep->steps && here.least != unfit; s++) {
      const struct zb_grid_step *step = &sweep->step[s];
      const struct zb_grid_entry *from = step->row_step ? row : way->other[s];
      const int before = count - step->row_step;
      const int k = (step->row_step ? count : sweep->n[step->first]) - 1;
      if (!from || before < from->lo || before >= from->lo + from->count || k < 0) continue;
      const int64_t at = from->at + (before - from->lo);
      if (entered[at] == ZB_NEVER) continue;
      const struct start found =
          start_from(fluid, step, here.base - step->time, here.most - weight_of(fluid, step), here.least,
                     entered[at], lost[at], k);
      if (!found.possible) continue;
      best = zb_min(best, found.start + step->time);
      least_lost = zb_min(least_lost, found.lost);
    }
    if (best != ZB_NEVER) best = zb_max(best, here.base + here.least + least_lost);
    int64_t late = zb_min(way->late, sweep->horizon - here.rest - fluid->total + here.most);
    if (count < sweep->m) late = zb_min(late, row_late[count] - sweep->late_time[sweep->row]);
    if (best > late) best = ZB_NEVER;
    entered[row->at + i] = best;
    lost[row->at + i] = least_lost;
    tail = best == ZB_NEVER ? tail + 1 : 0;
    if (tail == i + 1) head = i + 1;
  }
  if (head == row->count) tail = 0;
  zb_grid_trim(row, head, tail);
}

static void backward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                         const struct zb_grid_way *way) {
  struct fluid *fluid = (struct fluid *)sweep;
  int64_t *const table = sweep->grid->table, *const second = fluid->second;
  const struct place start = row_start(fluid);
  bool complete = true;
  for (int c = 0; c < sweep->row && complete; c++) complete = sweep->n[c] == sweep->m;
  int head = 0, tail = 0;
  for (int i = row->count - 1; i >= 0; i--) {
    const int count = row->lo + i;
    const int64_t entered = table[row->at + i], lost = second[row->at + i];
    int64_t leave = ZB_DEAD, least_lost = ZB_NEVER;
    if (complete && count == sweep->m) leave = sweep->horizon, least_lost = 0;
    const struct place here = place_at(fluid, &start, count);
    for (int s = 0; s < sweep->steps && entered != ZB_NEVER; s++) {
      const struct zb_grid_step *step = &sweep->step[s];
      const struct zb_grid_entry *to = step->row_step ? row : way->other[s];
      const int after = count + step->row_step, k = step->row_step ? count : sweep->n[step->first];
      if (!to || after < to->lo || after >= to->lo + to->count || k >= sweep->m) continue;
      const int64_t at = to->at + (after - to->lo);
      if (table[at] == ZB_DEAD) continue;
      sweep->n[step->first] += 1 - step->row_step;
      const int64_t least =
          least_weights(fluid, here.over + sweep->device->class[step->first].bytes, sweep->n);
      sweep->n[step->first] -= 1 - step->row_step;
      const int64_t least_after = sweep->device->room_bytes == ZB_NO_LIMIT ? 0 : least;
      if (least_after == unfit) continue;
      const struct start found = start_from(fluid, step, here.base, here.most, least_after, entered, lost, k);
      if (!found.possible) continue;
      const int64_t late = step->late[k], ahead = zb_min(table[at], late);
      const int64_t rest = here.rest - step->time;
      const int64_t lost_after =
          zb_max(second[at], sweep->horizon - late - rest - fluid->total + least_after);
      const int64_t last = zb_min(ahead - step->time, here.base + here.most + fluid->slack - lost_after);
      if (found.start > last || found.lost + lost_after > fluid->slack) continue;
      leave = zb_max(leave, last);
      least_lost = zb_min(least_lost, lost_after);
      int64_t end = last + step->time;
      if (weight_of(fluid, step) >= 0 && sweep->device->class[step->first].kind == ZB_B &&
          fluid->may_fuse[step->chunk])
        end = zb_min(ahead, here.base + step->time + here.most + fluid->weight[step->chunk] + fluid->slack -
                                lost_after);
      zb_grid_note(sweep, step, k, found.start, last, end);
      if (!step->row_step) zb_grid_widen(sweep, step->first, sweep->row, k, count, count);
    }
    if (entered > leave || lost + least_lost > fluid->slack) leave = ZB_DEAD;
    table[row->at + i] = leave;
    second[row->at + i] = least_lost;
    head = leave == ZB_DEAD ? head + 1 : 0;
    if (head == row->count - i) tail = head;
  }
  if (tail == row->count) head = 0;
  zb_grid_trim(row, head, tail);
}

// W and `fused` stay as they are known.
static void keep_unknown(struct zb_grid_sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  const size_t bytes = 2 * (size_t)sweep->m * sizeof *sweep->out;
  for (int c = 0; c < device->chunks; c++) {
    const int array = zb_stage_array(c, ZB_STAGE_FUSED_LO);
    memcpy(zb_grid_out(sweep, array), sweep->windows + (ptrdiff_t)array * sweep->m, bytes);
  }
  for (int i = 0; i <= sweep->row; i++) {
    for (int j = sweep->row + 1; j < device->classes; j++) {
      const int array = zb_pair_array(device, i, j);
      memcpy(zb_grid_out(sweep, array), sweep->windows + (ptrdiff_t)array * sweep->m, bytes);
    }
  }
}

enum zb_sweep zb_fluid_sweep(struct zb_lattice *lattice, const struct zb_chunked *chunked, int d,
                             int64_t horizon, const int64_t *windows) {
  if (!lattice->grid) lattice->grid = calloc(1, sizeof *lattice->grid);
  if (!lattice->grid) return ZB_SWEEP_MEMORY;
  struct fluid fluid;
  struct zb_grid_sweep *sweep = &fluid.sweep;
  zb_grid_start(sweep, lattice, chunked, d, 2 * chunked->device[d].chunks - 1, horizon, windows);
  fluid.work = fluid.total = 0;
  for (int i = 0; i <= sweep->row; i++) {
    const struct zb_op_class *class = &sweep->device->class[i];
    const struct zb_stage *at = &chunked->stage[class->stage];
    zb_grid_add_step(sweep, class->chunk, i, -1, step_time(&fluid, i));
    sweep->step[sweep->steps - 1].row_step = i == sweep->row;
    fluid.work += sweep->m * step_time(&fluid, i);
    if (class->kind != ZB_B) continue;
    fluid.may_fuse[class->chunk] = at->fused;
    fluid.weight[class->chunk] = at->fused ? at->backward - at->gradient : at->w;
    fluid.total += sweep->m * fluid.weight[class->chunk];
  }
  fluid.slack = horizon - fluid.work - fluid.total;
  if (fluid.slack < 0) return ZB_SWEEP_REFUTED;
  const enum zb_sweep laid = zb_grid_lay_out(sweep, 2);
  if (laid != ZB_SWEEP_KEPT) return laid;
  fluid.second = sweep->grid->table + sweep->states;
  zb_grid_forward(sweep, forward_row);
  if (sweep->stopped) return ZB_SWEEP_STOPPED;
  zb_grid_forget(sweep);
  zb_grid_backward(sweep, backward_row);
  if (sweep->stopped) return ZB_SWEEP_STOPPED;
  const int nothing[ZB_MOST_CLASSES] = {0};
  if (zb_grid_latest(sweep->grid, nothing) < 0) return ZB_SWEEP_REFUTED;
  keep_unknown(sweep);
  return ZB_SWEEP_KEPT;
}
