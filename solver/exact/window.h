// window.h - what is known of all devices together under a target cost, propagated to a fixpoint.
//
// The rules are those of design.md section 3 and no others, so that a second program reaches the same
// fixpoint: device sweeps, precedences along the chain, start offsets between neighbours, and the
// round-trip lag. All are monotone: a refutation does not depend on the order in which they run. Every
// change goes on a trail, so that a search takes back what it tried.
#ifndef ZB_WINDOW_H
#define ZB_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/chain.h"
#include "solver/exact/lattice.h"
#include "solver/exact/rules.h"

struct zb_trail_entry {
  size_t cell;
  int64_t before;
};

struct zb_state {
  const struct zb_chain *chain; // borrowed
  enum zb_objective objective;
  int64_t target;     // ticks
  unsigned rules_off; // of solver/exact/rules.h
  // Windows of device d at cell[d * stride], ZB_WINDOWS arrays of m, or those of chunked.h; then the offsets
  // of device d's first start against that of device d - 1, least and most, at [offset_cell + 2d] and
  // [offset_cell + 2d + 1].
  int64_t *cell;
  size_t cells, stride, offset_cell;
  bool *moved;    // [devices] windows that changed since the device was last swept
  int refuted_by; // device of the last refutation, for learned weights
  struct zb_trail_entry *trail;
  size_t trail_count, trail_capacity;
  bool recording; // changes go on the trail
  bool out_of_memory;
  struct zb_lattice *lattice;  // borrowed scratch of this thread; NULL in a state that is only kept
  int64_t sweeps, most_sweeps; // done; stop at most_sweeps (0: no limit)
  int64_t enough_states; // swept, after which a propagation of large tables may end; 0: chunked_window.c's
  bool to_fixpoint;      // however long it takes: a proof is redone from nothing
};

// Owned by the caller: zb_state_close. States of one thread may share a lattice.
enum zb_status zb_state_open(const struct zb_chain *chain, enum zb_objective objective,
                             struct zb_lattice *lattice, struct zb_state *state, struct zb_error *error);
void zb_state_close(struct zb_state *state);

// Forgets everything: the windows before anything is known under `target`, trail empty.
void zb_state_reset(struct zb_state *state, int64_t target);
// Goes on from another state of the same chain under the same or a smaller target: what held for the
// larger one holds, and what had to end by a time must end the difference earlier.
void zb_state_derive(struct zb_state *state, const struct zb_state *from, int64_t target);

// Runs all rules until nothing changes, or has run them long enough (chunked_window.c). On REFUTED the
// windows are unusable until undone.
enum zb_sweep zb_state_propagate(struct zb_state *state);

// Cells. A change marks its device as moved; a window that becomes empty is found by propagate.
static inline size_t zb_state_cell(const struct zb_state *state, int device, enum zb_window window,
                                   int index) {
  const size_t m = (size_t)state->chain->microbatches;
  return ((size_t)device * ZB_WINDOWS + (size_t)window) * m + (size_t)index;
}
static inline int64_t zb_state_get(const struct zb_state *state, int device, enum zb_window window,
                                   int index) {
  return state->cell[zb_state_cell(state, device, window, index)];
}
static inline size_t zb_state_offset_lo(const struct zb_state *state, int device) {
  return state->offset_cell + 2 * (size_t)device;
}
static inline size_t zb_state_offset_hi(const struct zb_state *state, int device) {
  return state->offset_cell + 2 * (size_t)device + 1;
}
void zb_state_set(struct zb_state *state, size_t cell, int64_t value);
// First cell of an array of chunked.h.
static inline size_t zb_state_array(const struct zb_state *state, int device, int array) {
  return (size_t)device * state->stride + (size_t)array * (size_t)state->chain->microbatches;
}
void zb_state_tighten(struct zb_state *state, int device, enum zb_window window, int index, int64_t value);

// Undo: everything set since the mark.
static inline size_t zb_state_mark(const struct zb_state *state) { return state->trail_count; }
void zb_state_undo(struct zb_state *state, size_t mark);

// Sweeps one device so that zb_lattice_latest answers for it; KEPT after a fixpoint.
enum zb_sweep zb_state_sweep(struct zb_state *state, int device);

#endif
