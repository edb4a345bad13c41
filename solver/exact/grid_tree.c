// grid_tree.c - layout and visits.
//
// For each choice of the first i counts the tree has the range of the next one. The order of its rows is
// topological, since every op adds 1 to a count. The way down to the rows one op away is kept beside the way
// down to the row itself, one cursor a step: they leave it at the class that the step counts.
#include "solver/exact/grid_tree.h"

#include <stdlib.h>

#include "solver/model/number.h"

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

static const int64_t *stage_window(const struct zb_grid_sweep *sweep, int chunk,
                                   enum zb_stage_window window) {
  return sweep->windows + (ptrdiff_t)zb_stage_array(chunk, window) * sweep->m;
}

void zb_grid_add_step(struct zb_grid_sweep *sweep, int chunk, int first, int second, int64_t time) {
  struct zb_grid_step step = {
      .first = first, .second = second, .chunk = chunk, .time = time, .fuses = second >= 0};
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

void zb_grid_start(struct zb_grid_sweep *sweep, struct zb_lattice *lattice, const struct zb_chunked *chunked,
                   int d, int row, int64_t horizon, const int64_t *windows) {
  *sweep = (struct zb_grid_sweep){.lattice = lattice,
                                  .grid = lattice->grid,
                                  .chunked = chunked,
                                  .device = &chunked->device[d],
                                  .windows = windows,
                                  .m = chunked->microbatches,
                                  .row = row,
                                  .horizon = horizon};
  for (int i = 0; i <= row; i++) {
    const struct zb_op_class *class = &sweep->device->class[i];
    const struct zb_stage *at = &chunked->stage[class->stage];
    sweep->least_time[i] = class->time;
    if (class->kind == ZB_F) {
      sweep->early_end[i] = stage_window(sweep, class->chunk, ZB_STAGE_F_EARLY);
      sweep->early_time[i] = class->time;
      sweep->late_start[i] = stage_window(sweep, class->chunk, ZB_STAGE_F_LATE);
      sweep->late_time[i] = class->time;
    }
    if (class->kind == ZB_B) {
      sweep->early_end[i] = stage_window(sweep, class->chunk, ZB_STAGE_B_EARLY_END);
      sweep->late_start[i] = stage_window(sweep, class->chunk, ZB_STAGE_B_LATE_START);
      // A W is counted in full: what is less than that in a fused pass comes off its B.
      sweep->least_time[i] = at->backward - at->w;
    }
  }
}

// Range of the next count that order bounds leave.
static void bound_count(const struct zb_grid_sweep *sweep, int depth, int64_t *lo, int64_t *hi) {
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

static struct zb_grid_entry *add_entries(struct zb_grid_sweep *sweep, int depth, int64_t count) {
  struct zb_grid *grid = sweep->grid;
  const size_t wanted = grid->filled[depth] + (size_t)count;
  if ((size_t)count > sweep->most_entries - sweep->entries) return NULL;
  sweep->entries += (size_t)count;
  if (wanted > grid->capacity[depth]) {
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

// Least bytes that the W which could be done give back.
static int64_t weight_bytes(const struct zb_grid_sweep *sweep) {
  const struct zb_chunked_device *device = sweep->device;
  int64_t bytes = 0;
  for (int c = 0; c < device->chunks; c++)
    bytes += sweep->n[c] * device->class[zb_class_of_w(device, c)].bytes;
  return bytes;
}

// Most F of a class that can fit: all F of later stages are counted, and each earlier stage has done at least
// as many as this one.
static int64_t most_forwards(const struct zb_grid_sweep *sweep, int depth, const struct prefix *prefix) {
  const struct zb_chunked_device *device = sweep->device;
  if (device->room_bytes == ZB_NO_LIMIT) return INT64_MAX;
  int64_t each = 0;
  for (int i = depth; i < 2 * device->chunks; i++) each += device->class[i].bytes;
  const int64_t room = device->room_bytes - prefix->bytes - weight_bytes(sweep);
  return room < 0 ? -1 : each > 0 ? room / each : INT64_MAX;
}

// Counts of the row's class at which it fits and the work ends in time.
static void lay_out_row(struct zb_grid_sweep *sweep, const struct prefix *prefix, struct zb_grid_entry *row) {
  const struct zb_op_class *class = &sweep->device->class[sweep->row];
  int64_t lo, hi;
  bound_count(sweep, sweep->row, &lo, &hi);
  const int64_t over =
      sweep->device->room_bytes == ZB_NO_LIMIT ? 0 : prefix->bytes - sweep->device->room_bytes;
  if (class->kind == ZB_F)
    hi = zb_min(hi, most_forwards(sweep, sweep->row, prefix));
  else if (over > 0)
    lo = class->bytes == 0 ? hi + 1 : zb_max(lo, (over - class->bytes - 1) / -class->bytes);
  if (prefix->work > prefix->late) hi = -1;
  if (class->time > 0) hi = zb_min(hi, (prefix->late - prefix->work) / class->time);
  *row = (struct zb_grid_entry){sweep->states, (int32_t)lo, lo <= hi ? (int32_t)(hi - lo + 1) : 0};
  sweep->states += row->count;
  sweep->memory |= sweep->states > sweep->most_states;
}

static bool halted(struct zb_grid_sweep *sweep) {
  if (++sweep->rows_seen % 4096 == 0 && zb_halted(sweep->lattice->halt)) sweep->stopped = true;
  return sweep->stopped;
}

static void lay_out(struct zb_grid_sweep *sweep, int depth, size_t index, const struct prefix *prefix) {
  const struct zb_chunked_device *device = sweep->device;
  struct zb_grid *grid = sweep->grid;
  if (halted(sweep)) return;
  if (depth == sweep->row) {
    lay_out_row(sweep, prefix, &grid->level[depth][index]);
    return;
  }
  const struct zb_op_class *class = &device->class[depth];
  int64_t lo, hi;
  bound_count(sweep, depth, &lo, &hi);
  if (class->kind == ZB_F) hi = zb_min(hi, most_forwards(sweep, depth, prefix));
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
  for (int64_t k = lo; k <= hi && !sweep->memory && !sweep->stopped; k++) {
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

static int step_of(const struct zb_grid_step *step, int class) {
  return step->first == class || step->second == class;
}

static bool descend(const struct zb_grid_sweep *sweep, const struct zb_grid_way *way, int depth,
                    int direction, int k, struct zb_grid_way *next) {
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

static void go_forward(struct zb_grid_sweep *sweep, int depth, const struct zb_grid_way *way,
                       zb_grid_row *visit) {
  if (depth == sweep->row) {
    struct zb_grid_entry *rows = sweep->grid->level[depth];
    if (!halted(sweep)) visit(sweep, &rows[way->own - rows], way);
    return;
  }
  struct zb_grid_way next;
  for (int i = 0; i < way->own->count && !sweep->stopped; i++) {
    const int k = way->own->lo + i;
    sweep->n[depth] = k;
    if (descend(sweep, way, depth, -1, k, &next)) go_forward(sweep, depth + 1, &next, visit);
  }
}

static void go_backward(struct zb_grid_sweep *sweep, int depth, const struct zb_grid_way *way,
                        zb_grid_row *visit) {
  if (depth == sweep->row) {
    struct zb_grid_entry *rows = sweep->grid->level[depth];
    if (!halted(sweep)) visit(sweep, &rows[way->own - rows], way);
    return;
  }
  struct zb_grid_way next;
  for (int i = way->own->count - 1; i >= 0 && !sweep->stopped; i--) {
    const int k = way->own->lo + i;
    sweep->n[depth] = k;
    if (descend(sweep, way, depth, 1, k, &next)) go_backward(sweep, depth + 1, &next, visit);
  }
}

static struct zb_grid_way way_from_root(const struct zb_grid_sweep *sweep) {
  struct zb_grid_way way = {.own = sweep->grid->level[0], .late = sweep->horizon};
  for (int s = 0; s < sweep->steps; s++) way.other[s] = way.own;
  return way;
}

void zb_grid_forward(struct zb_grid_sweep *sweep, zb_grid_row *visit) {
  const struct zb_grid_way way = way_from_root(sweep);
  go_forward(sweep, 0, &way, visit);
}

void zb_grid_backward(struct zb_grid_sweep *sweep, zb_grid_row *visit) {
  const struct zb_grid_way way = way_from_root(sweep);
  go_backward(sweep, 0, &way, visit);
}

enum zb_sweep zb_grid_lay_out(struct zb_grid_sweep *sweep, size_t numbers) {
  struct zb_grid *grid = sweep->grid;
  const struct zb_chunked_device *device = sweep->device;
  const size_t most = sweep->lattice->most_states;
  // Entries take twice what a number does.
  sweep->most_entries = most > 0 ? most : SIZE_MAX;
  sweep->most_states = most > 0 ? (int64_t)(most / numbers) : INT64_MAX;
  for (int i = 0; i <= sweep->row; i++) grid->filled[i] = 0;
  grid->levels = sweep->row + 1;
  const size_t arrays = (size_t)zb_device_arrays(device) * (size_t)sweep->m;
  const size_t longest = (size_t)device->class[sweep->row].count + 1;
  if (!reserve(&grid->out, &grid->out_capacity, arrays) ||
      !reserve(&grid->base, &grid->base_capacity, 3 * longest) || !add_entries(sweep, 0, 1))
    return ZB_SWEEP_MEMORY;
  grid->filled[0] = 1;
  const struct prefix nothing = {.late = sweep->horizon};
  lay_out(sweep, 0, 0, &nothing);
  const size_t states = (size_t)sweep->states;
  if (sweep->stopped) return ZB_SWEEP_STOPPED;
  if (sweep->memory) return ZB_SWEEP_MEMORY;
  if (!reserve(&grid->table, &grid->table_capacity, numbers * states)) return ZB_SWEEP_MEMORY;
  sweep->lattice->work += (int64_t)states;
  sweep->out = grid->out;
  return ZB_SWEEP_KEPT;
}

void zb_grid_forget(const struct zb_grid_sweep *sweep) {
  const int arrays = zb_device_arrays(sweep->device);
  for (int array = 0; array < arrays; array++) {
    int64_t *values = zb_grid_out(sweep, array);
    for (int k = 0; k < sweep->m; k++) values[k] = array % 2 == 0 ? ZB_NEVER : ZB_DEAD;
  }
}

void zb_grid_widen(const struct zb_grid_sweep *sweep, int starting, int counted, int k, int least, int most) {
  int64_t *lo = zb_grid_out(sweep, zb_pair_array(sweep->device, starting, counted)), *hi = lo + sweep->m;
  if (least < lo[k]) lo[k] = least;
  if (most > hi[k]) hi[k] = most;
}

void zb_grid_note(const struct zb_grid_sweep *sweep, const struct zb_grid_step *step, int k, int64_t start,
                  int64_t latest_start, int64_t latest_end) {
  const bool forward_op = sweep->device->class[step->first].kind == ZB_F;
  int64_t *early =
      zb_grid_out(sweep, zb_stage_array(step->chunk, forward_op ? ZB_STAGE_F_EARLY : ZB_STAGE_B_EARLY));
  int64_t *late =
      zb_grid_out(sweep, zb_stage_array(step->chunk, forward_op ? ZB_STAGE_F_LATE : ZB_STAGE_B_LATE));
  early[k] = zb_min(early[k], start);
  late[k] = zb_max(late[k], latest_end);
  if (!forward_op) {
    int64_t *early_end = zb_grid_out(sweep, zb_stage_array(step->chunk, ZB_STAGE_B_EARLY_END));
    int64_t *late_start = zb_grid_out(sweep, zb_stage_array(step->chunk, ZB_STAGE_B_LATE_START));
    int64_t *lo = zb_grid_out(sweep, zb_stage_array(step->chunk, ZB_STAGE_FUSED_LO)), *hi = lo + sweep->m;
    early_end[k] = zb_min(early_end[k], start + step->time);
    late_start[k] = zb_max(late_start[k], latest_start);
    lo[k] = zb_min(lo[k], step->fuses);
    hi[k] = zb_max(hi[k], step->fuses);
  }
  for (int j = step->first + 1; j < sweep->row; j++)
    zb_grid_widen(sweep, step->first, j, k, sweep->n[j], sweep->n[j]);
}

int64_t zb_grid_latest(const struct zb_grid *grid, const int *counts) {
  int64_t at = 0;
  for (int i = 0; i < grid->levels; i++) {
    const struct zb_grid_entry *entry = &grid->level[i][at];
    if (counts[i] < entry->lo || counts[i] >= entry->lo + entry->count) return ZB_DEAD;
    at = entry->at + (counts[i] - entry->lo);
  }
  return grid->table[at];
}
