// chunked_window.c - the rules between stages, wherever they stand, run to a fixpoint.
//
// Each device keeps its own clock, zero at its first op; for the makespan all clocks are one. A device's
// start is known against that of the device which feeds it (chunked.h): exactly, or within an interval.
// Between any two devices the intervals on the way add up, and a window that goes from one clock to the other
// takes the end of the sum that claims less.
#include "solver/exact/chunked_window.h"

#include <string.h>

#include "solver/exact/grid.h"
#include "solver/model/number.h"

size_t zb_chunked_arrays(const struct zb_chunked *chunked) {
  int most = 0;
  for (int d = 0; d < chunked->devices; d++) {
    const int arrays = zb_device_arrays(&chunked->device[d]);
    most = arrays > most ? arrays : most;
  }
  return (size_t)most;
}

static int64_t *stage_cells(const struct zb_state *state, int stage, enum zb_stage_window window) {
  const struct zb_stage *at = &state->chain->chunked->stage[stage];
  return &state->cell[zb_state_array(state, at->device, zb_stage_array(at->chunk, window))];
}

static void fill(int64_t *values, int m, int64_t value) {
  for (int k = 0; k < m; k++) values[k] = value;
}

static void reset_device(struct zb_state *state, int d) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[d];
  const int m = chunked->microbatches;
  memset(&state->cell[zb_state_array(state, d, 0)], 0, state->stride * sizeof *state->cell);
  for (int c = 0; c < device->chunks; c++) {
    const int s = device->stage[c];
    fill(stage_cells(state, s, ZB_STAGE_F_LATE), m, state->target);
    fill(stage_cells(state, s, ZB_STAGE_B_LATE_START), m, state->target);
    fill(stage_cells(state, s, ZB_STAGE_B_LATE), m, state->target);
    fill(stage_cells(state, s, ZB_STAGE_FUSED_HI), m, chunked->stage[s].fused);
  }
  for (int i = 0; i < 2 * device->chunks; i++) {
    for (int j = i + 1; j < device->classes; j++) {
      const struct zb_op_class *counted = &device->class[j];
      int64_t *lo = &state->cell[zb_state_array(state, d, zb_pair_array(device, i, j))], *hi = lo + m;
      for (int k = 0; k < m; k++) {
        lo[k] = counted->kind == ZB_W ? 0 : k + 1;
        hi[k] = counted->kind == ZB_W && counted->chunk == i ? k : counted->count;
      }
    }
  }
  // A device's first op is F of microbatch 0 on its first stage.
  const int64_t start = state->objective == ZB_MAKESPAN ? device->lead : 0;
  if (state->objective != ZB_MAKESPAN || device->pinned)
    stage_cells(state, device->stage[0], ZB_STAGE_F_LATE)[0] =
        zb_min(state->target, start + chunked->stage[device->stage[0]].f);
  stage_cells(state, device->stage[0], ZB_STAGE_F_EARLY)[0] = start;
}

void zb_chunked_reset(struct zb_state *state) {
  const struct zb_chunked *chunked = state->chain->chunked;
  for (int d = 0; d < chunked->devices; d++) {
    const struct zb_chunked_device *device = &chunked->device[d];
    const bool apart = state->objective != ZB_MAKESPAN && device->feeder >= 0;
    const int64_t least =
        apart ? chunked->stage[device->feeder].f + chunked->stage[device->stage[0]].forward_comm : 0;
    const bool open = apart && (state->objective == ZB_PERIOD || !device->prompt);
    reset_device(state, d);
    state->cell[zb_state_offset_lo(state, d)] = least;
    state->cell[zb_state_offset_hi(state, d)] = open ? zb_max(least, state->target) : least;
    state->moved[d] = true;
  }
}

// With all offsets fixed, whatever had to end by a time has to end the difference earlier, but for first ops,
// whose time is known.
void zb_chunked_lower(struct zb_state *state, int64_t less) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const int m = chunked->microbatches;
  for (int d = 0; d < chunked->devices; d++) state->moved[d] = true;
  if (state->objective == ZB_PERIOD || (state->objective == ZB_SPAN && chunked->open_offsets)) return;
  for (int s = 0; s < chunked->stages; s++) {
    const struct zb_chunked_device *device = &chunked->device[chunked->stage[s].device];
    const bool known = chunked->stage[s].chunk == 0 && (state->objective == ZB_SPAN || device->pinned);
    for (int k = 0; k < m; k++) {
      if (k > 0 || !known) stage_cells(state, s, ZB_STAGE_F_LATE)[k] -= less;
      stage_cells(state, s, ZB_STAGE_B_LATE_START)[k] -= less;
      stage_cells(state, s, ZB_STAGE_B_LATE)[k] -= less;
    }
  }
}

static void raise(struct zb_state *state, int64_t *cell, int64_t value) {
  if (value > *cell) zb_state_set(state, (size_t)(cell - state->cell), value);
}
static void lower(struct zb_state *state, int64_t *cell, int64_t value) {
  if (value < *cell) zb_state_set(state, (size_t)(cell - state->cell), value);
}

// Start of device `to` against that of device `from`, at least and at most.
struct shift {
  int64_t lo, hi;
};

static int depth_of(const struct zb_chunked *chunked, int d) {
  int depth = 0;
  while (chunked->device[d].parent >= 0) {
    d = chunked->device[d].parent;
    depth++;
  }
  return depth;
}

static struct shift shift_between(const struct zb_state *state, int from, int to) {
  const struct zb_chunked *chunked = state->chain->chunked;
  struct shift shift = {0, 0};
  int from_depth = depth_of(chunked, from), to_depth = depth_of(chunked, to);
  while (from != to) {
    if (to_depth >= from_depth) {
      shift.lo += state->cell[zb_state_offset_lo(state, to)];
      shift.hi += state->cell[zb_state_offset_hi(state, to)];
      to = chunked->device[to].parent;
      to_depth--;
    } else {
      shift.lo -= state->cell[zb_state_offset_hi(state, from)];
      shift.hi -= state->cell[zb_state_offset_lo(state, from)];
      from = chunked->device[from].parent;
      from_depth--;
    }
  }
  return shift;
}

// Precedences between stages s and s + 1, which stand on different devices, either way.
static void apply_boundary(struct zb_state *state, int s) {
  const struct zb_stage *up = &state->chain->chunked->stage[s], *down = up + 1;
  const struct shift shift = shift_between(state, up->device, down->device);
  int64_t *up_f_early = stage_cells(state, s, ZB_STAGE_F_EARLY),
          *up_f_late = stage_cells(state, s, ZB_STAGE_F_LATE);
  int64_t *up_b_early = stage_cells(state, s, ZB_STAGE_B_EARLY);
  int64_t *up_b_late_start = stage_cells(state, s, ZB_STAGE_B_LATE_START);
  int64_t *down_f_early = stage_cells(state, s + 1, ZB_STAGE_F_EARLY);
  int64_t *down_f_late = stage_cells(state, s + 1, ZB_STAGE_F_LATE);
  int64_t *down_b_early_end = stage_cells(state, s + 1, ZB_STAGE_B_EARLY_END);
  int64_t *down_b_late = stage_cells(state, s + 1, ZB_STAGE_B_LATE);
  for (int k = 0; k < state->chain->microbatches; k++) {
    raise(state, &down_f_early[k], up_f_early[k] + up->f + down->forward_comm - shift.hi);
    lower(state, &up_f_late[k], down_f_late[k] - down->f - down->forward_comm + shift.hi);
    raise(state, &up_b_early[k], down_b_early_end[k] + down->backward_comm + shift.lo);
    lower(state, &down_b_late[k], up_b_late_start[k] - down->backward_comm - shift.lo);
  }
}

// Between two ops of a microbatch on one device lies the way through the stages between them.
static void apply_lags(struct zb_state *state, int d) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[d];
  const int m = chunked->microbatches;
  if (state->rules_off & ZB_RULE_BIT(ZB_RULE_LAG)) return;
  for (int c = 0; c < device->chunks; c++) {
    const int s = device->stage[c];
    const struct zb_stage *at = &chunked->stage[s];
    int64_t *f_early = stage_cells(state, s, ZB_STAGE_F_EARLY),
            *f_late = stage_cells(state, s, ZB_STAGE_F_LATE);
    int64_t *b_early = stage_cells(state, s, ZB_STAGE_B_EARLY);
    int64_t *b_late_start = stage_cells(state, s, ZB_STAGE_B_LATE_START);
    if (c == device->chunks - 1) {
      for (int k = 0; k < m; k++) {
        raise(state, &b_early[k], f_early[k] + at->f + at->lag_forward);
        lower(state, &f_late[k], b_late_start[k] - at->lag_forward);
      }
      continue;
    }
    const int next = device->stage[c + 1];
    int64_t *next_f_early = stage_cells(state, next, ZB_STAGE_F_EARLY);
    int64_t *next_f_late = stage_cells(state, next, ZB_STAGE_F_LATE);
    int64_t *next_b_early_end = stage_cells(state, next, ZB_STAGE_B_EARLY_END);
    int64_t *next_b_late = stage_cells(state, next, ZB_STAGE_B_LATE);
    for (int k = 0; k < m; k++) {
      raise(state, &next_f_early[k], f_early[k] + at->f + at->lag_forward);
      lower(state, &f_late[k], next_f_late[k] - chunked->stage[next].f - at->lag_forward);
      raise(state, &b_early[k], next_b_early_end[k] + at->lag_backward);
      lower(state, &next_b_late[k], b_late_start[k] - at->lag_backward);
    }
  }
}

// What the ops between a device and the one that feeds it say of an offset that is not known.
static void apply_offset(struct zb_state *state, int d) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[d];
  if (device->parent < 0 || state->objective == ZB_MAKESPAN) return;
  int64_t *lo = &state->cell[zb_state_offset_lo(state, d)], *hi = &state->cell[zb_state_offset_hi(state, d)];
  if (state->objective == ZB_SPAN && device->prompt) return;
  const struct zb_stage *feeder = &chunked->stage[device->feeder], *first = feeder + 1;
  int64_t *f_early = stage_cells(state, device->feeder, ZB_STAGE_F_EARLY);
  int64_t *f_late = stage_cells(state, device->feeder, ZB_STAGE_F_LATE);
  raise(state, lo, f_early[0] + feeder->f + first->forward_comm);
  lower(state, &f_late[0], *hi - first->forward_comm);
  if (state->objective == ZB_SPAN) {
    // The device starts as its first input arrives.
    lower(state, hi, f_late[0] + first->forward_comm);
    raise(state, &f_early[0], *lo - first->forward_comm - feeder->f);
  }
  lower(state, hi,
        stage_cells(state, device->feeder, ZB_STAGE_B_LATE_START)[0] - first->backward_comm -
            stage_cells(state, device->feeder + 1, ZB_STAGE_B_EARLY_END)[0]);
}

static bool offsets_empty(const struct zb_state *state) {
  for (int d = 0; d < state->chain->devices; d++) {
    if (state->cell[zb_state_offset_lo(state, d)] > state->cell[zb_state_offset_hi(state, d)]) return true;
  }
  return false;
}

static void apply_around(struct zb_state *state, int d) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[d];
  apply_lags(state, d);
  for (int e = 0; e < chunked->devices; e++) {
    if (e == d || chunked->device[e].parent == d) apply_offset(state, e);
  }
  for (int c = 0; c < device->chunks; c++) {
    const int s = device->stage[c];
    if (s > 0 && chunked->stage[s - 1].device != d) apply_boundary(state, s - 1);
    if (s + 1 < chunked->stages && chunked->stage[s + 1].device != d) apply_boundary(state, s);
  }
}

// Every rule but the sweeps, once down the pipe and once up: from wide windows this spares the first sweeps
// much.
static void apply_all(struct zb_state *state) {
  const struct zb_chunked *chunked = state->chain->chunked;
  for (int d = 0; d < chunked->devices; d++) apply_offset(state, d);
  for (int d = 0; d < chunked->devices; d++) apply_lags(state, d);
  for (int s = 0; s + 1 < chunked->stages; s++) {
    if (chunked->stage[s].device != chunked->stage[s + 1].device) apply_boundary(state, s);
  }
  for (int s = chunked->stages - 2; s >= 0; s--) {
    if (chunked->stage[s].device != chunked->stage[s + 1].device) apply_boundary(state, s);
  }
}

static void adopt_sweep(struct zb_state *state, int d) {
  const struct zb_chunked_device *device = &state->chain->chunked->device[d];
  const int arrays = zb_device_arrays(device), m = state->chain->microbatches;
  const int64_t *out = state->lattice->grid->out;
  int64_t *cell = &state->cell[zb_state_array(state, d, 0)];
  for (int array = 0; array < arrays; array++) {
    for (int k = 0; k < m; k++, cell++, out++) {
      if (array % 2 == 0)
        raise(state, cell, *out);
      else
        lower(state, cell, *out);
    }
  }
  state->moved[d] = false;
}

// Large tables creep to their fixpoint in hundreds of sweeps, and the first on each device says nearly all.
// So a search ends a propagation after this many states, with every device swept once; what it left out the
// next one goes on with.
static const int64_t enough_states = 8000000;

static bool has_enough(const struct zb_state *state, int64_t sweeps_before, int64_t work_before) {
  const int64_t enough = state->enough_states > 0 ? state->enough_states : enough_states;
  return !state->to_fixpoint && state->chain->chunked->fluid &&
         state->sweeps - sweeps_before >= state->chain->devices &&
         state->lattice->work - work_before >= enough;
}

enum zb_sweep zb_chunked_propagate(struct zb_state *state) {
  const int64_t sweeps_before = state->sweeps, work_before = state->lattice->work;
  const int p = state->chain->devices;
  const bool open =
      state->objective == ZB_PERIOD || (state->objective == ZB_SPAN && state->chain->chunked->open_offsets);
  bool again = true, all = true;
  for (int d = 0; d < p; d++) all &= state->moved[d];
  if (all) apply_all(state);
  for (int pass = 0; again; pass++) {
    again = false;
    // An open offset that moved concerns boundaries of other devices, too.
    if (open && pass > 0) apply_all(state);
    for (int i = 0; i < p; i++) {
      const int d = pass % 2 == 0 ? i : p - 1 - i;
      if (!state->moved[d]) continue;
      if (has_enough(state, sweeps_before, work_before)) return ZB_SWEEP_KEPT;
      again = true;
      if (state->most_sweeps > 0 && state->sweeps >= state->most_sweeps) return ZB_SWEEP_STOPPED;
      enum zb_sweep swept = zb_state_sweep(state, d);
      if (swept == ZB_SWEEP_KEPT) {
        adopt_sweep(state, d);
        apply_around(state, d);
        if (offsets_empty(state)) swept = ZB_SWEEP_REFUTED;
      }
      if (swept != ZB_SWEEP_KEPT) {
        state->refuted_by = d;
        return swept;
      }
      if (state->out_of_memory) return ZB_SWEEP_MEMORY;
    }
  }
  return ZB_SWEEP_KEPT;
}
