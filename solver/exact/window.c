// window.c - the rules between devices, and the loop that runs them to a fixpoint.
//
// Each device keeps its own clock, zero at its first op. With the start offset between neighbours in
// [lo, hi], what comes from upstream is earlier by up to hi, what goes back is later by at least lo. Span
// and makespan have lo == hi (a device starts when microbatch 0 arrives, and waiting longer helps
// nobody); only the period leaves it open.
#include "solver/exact/window.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/chunked_window.h"
#include "solver/exact/fluid.h"
#include "solver/exact/grid.h"
#include "solver/model/number.h"

enum zb_status zb_state_open(const struct zb_chain *chain, enum zb_objective objective,
                             struct zb_lattice *lattice, struct zb_state *state, struct zb_error *error) {
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  *state = (struct zb_state){.chain = chain, .objective = objective, .lattice = lattice};
  state->stride = (chain->chunked ? zb_chunked_arrays(chain->chunked) : ZB_WINDOWS) * m;
  state->offset_cell = p * state->stride;
  state->cells = state->offset_cell + 2 * p;
  state->cell = malloc(state->cells * sizeof *state->cell);
  state->moved = malloc(p * sizeof *state->moved);
  if (!state->cell || !state->moved) {
    zb_state_close(state);
    return zb_fail_memory(error);
  }
  return ZB_OK;
}

void zb_state_close(struct zb_state *state) {
  free(state->cell);
  free(state->moved);
  free(state->trail);
  *state = (struct zb_state){0};
}

void zb_state_reset(struct zb_state *state, int64_t target) {
  const struct zb_chain *chain = state->chain;
  state->target = target;
  state->trail_count = 0;
  state->recording = false;
  if (chain->chunked) {
    zb_chunked_reset(state);
    return;
  }
  for (int d = 0; d < chain->devices; d++) {
    const struct zb_chain_device *device = &chain->device[d];
    zb_windows_init(device, chain->microbatches, zb_chain_horizon(chain, state->objective, d, target),
                    &state->cell[zb_state_cell(state, d, (enum zb_window)0, 0)]);
    const int64_t least = d > 0 ? device[-1].f + device->forward_comm : 0;
    state->cell[zb_state_offset_lo(state, d)] = least;
    // Below the round trip of microbatch 0 nothing bounds the offset yet; the target always does.
    state->cell[zb_state_offset_hi(state, d)] =
        state->objective == ZB_PERIOD && d > 0 ? zb_max(least, target) : least;
    // The device's clock starts at its first op.
    state->cell[zb_state_cell(state, d, ZB_F_LATE, 0)] = device->f;
    state->moved[d] = true;
  }
}

void zb_state_derive(struct zb_state *state, const struct zb_state *from, int64_t target) {
  const struct zb_chain *chain = state->chain;
  const int64_t less = from->target - target;
  memcpy(state->cell, from->cell, state->cells * sizeof *state->cell);
  state->target = target;
  state->trail_count = 0;
  state->recording = false;
  if (less == 0) {
    memcpy(state->moved, from->moved, (size_t)chain->devices * sizeof *state->moved);
    return;
  }
  if (chain->chunked) {
    zb_chunked_lower(state, less);
    return;
  }
  for (int d = 0; d < chain->devices; d++) {
    state->moved[d] = true;
    if (state->objective == ZB_PERIOD) continue;
    for (int i = 0; i < chain->microbatches; i++) {
      if (i > 0) state->cell[zb_state_cell(state, d, ZB_F_LATE, i)] -= less;
      state->cell[zb_state_cell(state, d, ZB_B_LATE_START, i)] -= less;
      state->cell[zb_state_cell(state, d, ZB_B_LATE, i)] -= less;
    }
  }
}

static size_t cell_device(const struct zb_state *state, size_t cell) {
  return cell < state->offset_cell ? cell / state->stride : (cell - state->offset_cell) / 2;
}

void zb_state_set(struct zb_state *state, size_t cell, int64_t value) {
  if (state->recording) {
    if (state->trail_count == state->trail_capacity) {
      const size_t capacity = state->trail_capacity ? 2 * state->trail_capacity : 1024;
      struct zb_trail_entry *grown = realloc(state->trail, capacity * sizeof *grown);
      if (!grown) {
        state->out_of_memory = true;
        return;
      }
      state->trail = grown;
      state->trail_capacity = capacity;
    }
    state->trail[state->trail_count++] = (struct zb_trail_entry){cell, state->cell[cell]};
  }
  state->cell[cell] = value;
  state->moved[cell_device(state, cell)] = true;
}

void zb_state_tighten(struct zb_state *state, int device, enum zb_window window, int index, int64_t value) {
  const size_t cell = zb_state_cell(state, device, window, index);
  const int64_t now = state->cell[cell];
  if (zb_window_rises((int)window) ? value > now : value < now) zb_state_set(state, cell, value);
}

void zb_state_undo(struct zb_state *state, size_t mark) {
  while (state->trail_count > mark) {
    const struct zb_trail_entry *entry = &state->trail[--state->trail_count];
    state->cell[entry->cell] = entry->before;
  }
  memset(state->moved, 0, (size_t)state->chain->devices * sizeof *state->moved);
}

enum zb_sweep zb_state_sweep(struct zb_state *state, int device) {
  const struct zb_chain *chain = state->chain;
  state->sweeps++;
  if (chain->chunked) {
    const bool fluid = chain->chunked->fluid;
    return (fluid ? zb_fluid_sweep : zb_grid_sweep)(state->lattice, chain->chunked, device, state->target,
                                                    &state->cell[zb_state_array(state, device, 0)]);
  }
  return zb_lattice_sweep(state->lattice, &chain->device[device], chain->microbatches,
                          zb_chain_horizon(chain, state->objective, device, state->target),
                          &state->cell[zb_state_cell(state, device, (enum zb_window)0, 0)]);
}

// Takes over what the last sweep of the device found. Its own findings need no new sweep.
static void adopt_sweep(struct zb_state *state, int device) {
  const int m = state->chain->microbatches;
  const int64_t *out = state->lattice->out;
  for (int window = 0; window < ZB_WINDOWS; window++) {
    for (int i = 0; i < m; i++) zb_state_tighten(state, device, (enum zb_window)window, i, *out++);
  }
  state->moved[device] = false;
}

// The round trip: between a microbatch's F and its B lies everything below in the pipe.
static void apply_lag(struct zb_state *state, int d) {
  if (state->rules_off & ZB_RULE_BIT(ZB_RULE_LAG)) return;
  const struct zb_chain_device *device = &state->chain->device[d];
  for (int i = 0; i < state->chain->microbatches; i++) {
    zb_state_tighten(state, d, ZB_B_EARLY, i,
                     zb_state_get(state, d, ZB_F_EARLY, i) + device->f + device->lag);
    zb_state_tighten(state, d, ZB_F_LATE, i, zb_state_get(state, d, ZB_B_LATE_START, i) - device->lag);
  }
}

// Precedences and offset between device `d` and the one after it, either way.
static void apply_boundary(struct zb_state *state, int d) {
  const struct zb_chain_device *up = &state->chain->device[d], *down = up + 1;
  const int m = state->chain->microbatches;
  const size_t hi_cell = zb_state_offset_hi(state, d + 1);
  if (state->objective == ZB_PERIOD) {
    const int64_t most = zb_state_get(state, d, ZB_B_LATE_START, 0) -
                         zb_state_get(state, d + 1, ZB_B_EARLY_END, 0) - down->backward_comm;
    if (most < state->cell[hi_cell]) zb_state_set(state, hi_cell, most);
  }
  const int64_t lo = state->cell[zb_state_offset_lo(state, d + 1)], hi = state->cell[hi_cell];
  for (int i = 0; i < m; i++) {
    zb_state_tighten(state, d + 1, ZB_F_EARLY, i,
                     zb_state_get(state, d, ZB_F_EARLY, i) + up->f + down->forward_comm - hi);
    zb_state_tighten(state, d, ZB_F_LATE, i,
                     zb_state_get(state, d + 1, ZB_F_LATE, i) - down->f + hi - down->forward_comm);
    zb_state_tighten(state, d, ZB_B_EARLY, i,
                     zb_state_get(state, d + 1, ZB_B_EARLY_END, i) + down->backward_comm + lo);
    zb_state_tighten(state, d + 1, ZB_B_LATE, i,
                     zb_state_get(state, d, ZB_B_LATE_START, i) - lo - down->backward_comm);
  }
}

static bool offsets_empty(const struct zb_state *state) {
  for (int d = 1; d < state->chain->devices; d++) {
    if (state->cell[zb_state_offset_lo(state, d)] > state->cell[zb_state_offset_hi(state, d)]) return true;
  }
  return false;
}

// Every rule but the sweeps, once down the chain and once up: from wide windows this spares the first
// sweeps much, later it has nothing to add to what follows a sweep.
static void apply_all(struct zb_state *state) {
  const int p = state->chain->devices;
  for (int d = 0; d < p; d++) apply_lag(state, d);
  for (int d = 0; d + 1 < p; d++) apply_boundary(state, d);
  for (int d = p - 2; d >= 0; d--) apply_boundary(state, d);
}

// Passes run down the chain and up in turn, so that what moved at one end crosses it in one pass.
enum zb_sweep zb_state_propagate(struct zb_state *state) {
  const int p = state->chain->devices;
  bool again = true;
  if (zb_halted(state->lattice->halt)) return ZB_SWEEP_STOPPED;
  if (state->chain->chunked) return zb_chunked_propagate(state);
  if (state->moved[0] && state->moved[p / 2] && state->moved[p - 1]) apply_all(state);
  for (int pass = 0; again; pass++) {
    again = false;
    for (int i = 0; i < p; i++) {
      const int d = pass % 2 == 0 ? i : p - 1 - i;
      if (!state->moved[d]) continue;
      again = true;
      if (state->most_sweeps > 0 && state->sweeps >= state->most_sweeps) return ZB_SWEEP_STOPPED;
      const enum zb_sweep swept = zb_state_sweep(state, d);
      if (swept != ZB_SWEEP_KEPT) {
        state->refuted_by = d;
        return swept;
      }
      adopt_sweep(state, d);
      apply_lag(state, d);
      if (d > 0) apply_boundary(state, d - 1);
      if (d + 1 < p) apply_boundary(state, d);
      if (state->out_of_memory) return ZB_SWEEP_MEMORY;
      if (state->objective == ZB_PERIOD && offsets_empty(state)) {
        state->refuted_by = d;
        return ZB_SWEEP_REFUTED;
      }
    }
  }
  return ZB_SWEEP_KEPT;
}
