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
  struct zb_grid_sweep sweep;          // first: rows are visited through it
  int64_t work, total, slack;          // base(all), all W, and what is left of the horizon
  int64_t weight[ZB_MOST_CLASSES];     // [chunks] w'
  bool may_fuse[ZB_MOST_CLASSES];      // [chunks]
  int64_t *second;                     // I or J
  int64_t *leave, *lost_after, *least; // [longest row] of the row being swept
};

// What is alike in all states of a row, or grows evenly along it: with none of the row's own ops.
struct place {
  int64_t base, most, over;
};

static int64_t whole_weights(int64_t lack, int64_t bytes, int64_t ticks) {
  return lack <= 0 ? 0 : (lack + bytes - 1) / bytes * ticks;
}

// least(n) of chunked.h for the counts of B in done[0 .. chunks-1]; ZB_NEVER where it does not fit.
static int64_t least_weights(const struct fluid *fluid, int64_t over, const int *done) {
  const struct zb_chunked_device *device = fluid->sweep.device;
  if (over <= 0) return 0;
  int64_t all = 0, least = 0;
  for (int c = 0; c < device->chunks; c++) all -= done[c] * device->class[zb_class_of_w(device, c)].bytes;
  if (over > all) return ZB_NEVER;
  if (device->weights_merged)
    return whole_weights(over, -device->class[zb_class_of_w(device, 0)].bytes, fluid->weight[0]);
  for (int c = 0; c < device->chunks; c++) {
    const int64_t bytes = -device->class[zb_class_of_w(device, c)].bytes;
    if (bytes > 0) least += whole_weights(over - (all - done[c] * bytes), bytes, fluid->weight[c]);
  }
  return least;
}

// least(n) of the states lo .. lo+count-1 along a row whose other counts are in sweep.n.
static void fill_least(const struct fluid *fluid, int64_t over, int lo, int count, int64_t *least) {
  const struct zb_grid_sweep *sweep = &fluid->sweep;
  const int64_t each = sweep->device->class[sweep->row].bytes;
  const bool limited = sweep->device->room_bytes != ZB_NO_LIMIT;
  int64_t now = limited ? over + lo * each : 0;
  for (int i = 0; i < count; i++, now += each) {
    // Neighbours mostly need the same.
    if (i > 0 && (now <= 0 || each == 0 || !limited)) {
      least[i] = least[i - 1];
      continue;
    }
    least[i] = limited ? least_weights(fluid, now, sweep->n) : 0;
  }
}

static int64_t step_time(const struct fluid *fluid, int class) {
  const struct zb_op_class *at = &fluid->sweep.device->class[class];
  return at->kind == ZB_F ? at->time : fluid->sweep.chunked->stage[at->stage].gradient;
}

static struct place row_place(const struct fluid *fluid) {
  const struct zb_grid_sweep *sweep = &fluid->sweep;
  const struct zb_chunked_device *device = sweep->device;
  struct place place = {0, 0, device->room_bytes == ZB_NO_LIMIT ? 0 : -device->room_bytes};
  for (int i = 0; i < sweep->row; i++) {
    place.base += sweep->n[i] * sweep->step[i].time;
    place.over += sweep->n[i] * device->class[i].bytes;
  }
  for (int c = 0; c < device->chunks; c++) place.most += sweep->n[c] * fluid->weight[c];
  return place;
}

static bool is_backward(const struct fluid *fluid, const struct zb_grid_step *step) {
  return fluid->sweep.device->class[step->first].kind == ZB_B;
}

// What of least(n') may be done within the step itself.
static int64_t own_weight(const struct fluid *fluid, const struct zb_grid_step *step) {
  return is_backward(fluid, step) && fluid->may_fuse[step->chunk] ? fluid->weight[step->chunk] : 0;
}

static int64_t max3(int64_t a, int64_t b, int64_t c) { return zb_max(a, zb_max(b, c)); }

// Pulls T and I of `count` states from those one op before.
static void pull(int64_t *restrict entered, int64_t *restrict lost, const int64_t *restrict from_entered,
                 const int64_t *restrict from_lost, const int64_t *restrict least, int count, int64_t base,
                 int64_t each, int64_t most, int64_t own, int64_t release, int64_t time, int64_t late,
                 int64_t slack) {
  for (int i = 0; i < count; i++, base += each) {
    const int64_t i_lost = zb_max(from_lost[i], release - base - most);
    const int64_t need = zb_max(0, least[i] - own);
    const int64_t end = max3(from_entered[i], release, base + need + i_lost) + time;
    const bool possible = end <= late && i_lost <= slack;
    entered[i] = possible && end < entered[i] ? end : entered[i];
    lost[i] = possible && i_lost < lost[i] ? i_lost : lost[i];
  }
}

static void forward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                        const struct zb_grid_way *way) {
  struct fluid *fluid = (struct fluid *)sweep;
  int64_t *const table = sweep->grid->table, *const entered = table + row->at;
  int64_t *const lost = fluid->second + row->at, *const least = fluid->least;
  const struct zb_grid_step *own = &sweep->step[sweep->row];
  const int64_t *row_late = sweep->late_start[sweep->row];
  const struct place place = row_place(fluid);
  const int count = row->count;
  fill_least(fluid, place.over, row->lo, count, least);
  for (int i = 0; i < count; i++) entered[i] = lost[i] = ZB_NEVER;
  bool origin = row->lo == 0;
  for (int c = 0; c < sweep->row && origin; c++) origin = sweep->n[c] == 0;
  if (origin) entered[0] = lost[0] = 0;
  for (int s = 0; s < sweep->row; s++) {
    const struct zb_grid_step *step = &sweep->step[s];
    const struct zb_grid_entry *from = way->other[s];
    const int k = sweep->n[step->first] - 1;
    if (!from || from->count == 0) continue;
    const int lo = from->lo > row->lo ? from->lo : row->lo;
    const int from_end = from->lo + from->count, end = row->lo + count;
    const int64_t most = place.most - (is_backward(fluid, step) ? fluid->weight[step->chunk] : 0);
    pull(entered + (lo - row->lo), lost + (lo - row->lo), table + from->at + (lo - from->lo),
         fluid->second + from->at + (lo - from->lo), least + (lo - row->lo),
         (end < from_end ? end : from_end) - lo, place.base - step->time + lo * own->time, own->time, most,
         own_weight(fluid, step), step->early[k], step->time, step->late[k], fluid->slack);
  }
  // Before it ends, what is left must still fit.
  const int64_t behind = sweep->horizon - fluid->work - fluid->total + place.most;
  int head = 0, tail = 0;
  for (int i = 0; i < count; i++) {
    const int done = row->lo + i;
    const int64_t base = place.base + done * own->time;
    if (i > 0)
      pull(&entered[i], &lost[i], &entered[i - 1], &lost[i - 1], &least[i], 1, base - own->time, 0,
           place.most, 0, own->early[done - 1], own->time, own->late[done - 1], fluid->slack);
    if (entered[i] != ZB_NEVER) entered[i] = zb_max(entered[i], base + least[i] + lost[i]);
    int64_t late = zb_min(way->late, behind + base);
    if (done < sweep->m) late = zb_min(late, row_late[done] - own->time);
    if (entered[i] > late) entered[i] = lost[i] = ZB_NEVER;
    tail = entered[i] == ZB_NEVER ? tail + 1 : 0;
    if (tail == i + 1) head = i + 1;
  }
  if (head == count) tail = 0;
  zb_grid_trim(row, head, tail);
}

// One step between two rows, or along one, as the backward sweep needs it.
struct push {
  const int64_t *entered, *lost;         // T and I before it
  const int64_t *next_leave, *next_lost; // L and J after it
  const int64_t *least;                  // least(n') after it
  int64_t base, each, most, own, release, time, late;
  int64_t tail; // S - latest end - rest(n') - total at the first state
  bool fuses;
};

// What the surviving steps of one op have said.
struct pushed {
  int64_t start, last, end;
  int from, to; // positions; none: from > to
};

static struct pushed push_all(const struct fluid *fluid, const struct push *push, int count,
                              int64_t *restrict leave, int64_t *restrict lost_after) {
  struct pushed found = {ZB_NEVER, ZB_DEAD, ZB_DEAD, count, -1};
  int64_t base = push->base, tail = push->tail;
  for (int i = 0; i < count; i++, base += push->each, tail += push->each) {
    const int64_t before = zb_max(push->lost[i], push->release - base - push->most);
    const int64_t need = zb_max(0, push->least[i] - push->own);
    const int64_t start = max3(push->entered[i], push->release, base + need + before);
    const int64_t ahead = zb_min(push->next_leave[i], push->late);
    const int64_t after = zb_max(push->next_lost[i], tail + push->least[i]);
    const int64_t room = base + push->most + fluid->slack - after;
    const int64_t last = zb_min(ahead - push->time, room);
    if (start > last || before + after > fluid->slack) continue;
    leave[i] = zb_max(leave[i], last);
    lost_after[i] = zb_min(lost_after[i], after);
    const int64_t end = push->fuses ? zb_min(ahead, room + push->time + push->own) : last + push->time;
    found.start = zb_min(found.start, start);
    found.last = zb_max(found.last, last);
    found.end = zb_max(found.end, end);
    found.from = i < found.from ? i : found.from;
    found.to = i;
  }
  return found;
}

static void note(const struct fluid *fluid, const struct zb_grid_step *step, int k, int from,
                 const struct pushed *found) {
  if (found->from > found->to) return;
  zb_grid_note(&fluid->sweep, step, k, found->start, found->last, found->end);
  if (!step->row_step)
    zb_grid_widen(&fluid->sweep, step->first, fluid->sweep.row, k, from + found->from, from + found->to);
}

static void backward_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                         const struct zb_grid_way *way) {
  struct fluid *fluid = (struct fluid *)sweep;
  int64_t *const table = sweep->grid->table, *const entered = table + row->at;
  int64_t *const lost = fluid->second + row->at, *const leave = fluid->leave,
                 *const after = fluid->lost_after;
  const struct zb_grid_step *own = &sweep->step[sweep->row];
  const struct place place = row_place(fluid);
  const int count = row->count;
  const int64_t end_tail = sweep->horizon - fluid->work - fluid->total;
  bool complete = row->lo + count - 1 == sweep->m;
  for (int c = 0; c < sweep->row && complete; c++) complete = sweep->n[c] == sweep->m;
  for (int i = 0; i < count; i++) {
    leave[i] = ZB_DEAD;
    after[i] = ZB_NEVER;
  }
  if (complete) {
    leave[count - 1] = sweep->horizon;
    after[count - 1] = 0;
  }
  for (int s = 0; s < sweep->row; s++) {
    const struct zb_grid_step *step = &sweep->step[s];
    const struct zb_grid_entry *to = way->other[s];
    if (!to || to->count == 0) continue;
    const int lo = to->lo > row->lo ? to->lo : row->lo, to_end = to->lo + to->count, end = row->lo + count;
    const int steps = (end < to_end ? end : to_end) - lo, k = sweep->n[step->first];
    if (steps <= 0) continue;
    sweep->n[step->first]++;
    fill_least(fluid, place.over + sweep->device->class[step->first].bytes, lo, steps, fluid->least);
    sweep->n[step->first]--;
    const int64_t base = place.base + lo * own->time;
    const struct push push = {.entered = entered + (lo - row->lo),
                              .lost = lost + (lo - row->lo),
                              .next_leave = table + to->at + (lo - to->lo),
                              .next_lost = fluid->second + to->at + (lo - to->lo),
                              .least = fluid->least,
                              .base = base,
                              .each = own->time,
                              .most = place.most,
                              .own = own_weight(fluid, step),
                              .release = step->early[k],
                              .time = step->time,
                              .late = step->late[k],
                              .tail = end_tail - step->late[k] + base + step->time,
                              .fuses = is_backward(fluid, step) && fluid->may_fuse[step->chunk]};
    const struct pushed found = push_all(fluid, &push, steps, leave + (lo - row->lo), after + (lo - row->lo));
    note(fluid, step, k, lo, &found);
  }
  fill_least(fluid, place.over, row->lo, count, fluid->least);
  int head = 0, tail = 0;
  for (int i = count - 1; i >= 0; i--) {
    const int k = row->lo + i;
    if (i + 1 < count) {
      const int64_t base = place.base + k * own->time;
      const struct push push = {.entered = &entered[i],
                                .lost = &lost[i],
                                .next_leave = &entered[i + 1],
                                .next_lost = &lost[i + 1],
                                .least = &fluid->least[i + 1],
                                .base = base,
                                .most = place.most,
                                .release = own->early[k],
                                .time = own->time,
                                .late = own->late[k],
                                .tail = end_tail - own->late[k] + base + own->time};
      const struct pushed found = push_all(fluid, &push, 1, &leave[i], &after[i]);
      note(fluid, own, k, 0, &found);
    }
    if (entered[i] > leave[i] || lost[i] + after[i] > fluid->slack) leave[i] = ZB_DEAD, after[i] = ZB_NEVER;
    entered[i] = leave[i];
    lost[i] = after[i];
    head = leave[i] == ZB_DEAD ? head + 1 : 0;
    if (head == count - i) tail = head;
  }
  if (tail == count) head = 0;
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
  fluid.leave = sweep->grid->base;
  fluid.lost_after = fluid.leave + sweep->m + 1;
  fluid.least = fluid.lost_after + sweep->m + 1;
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
