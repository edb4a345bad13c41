// lattice.h - one device, exactly: every order it can run its ops in, swept at once.
//
// A device's order is a path through the states (nF, nB, nW): how many forwards, backwards and weight
// passes are done (design.md section 2). Given windows for its ops, a sweep forward finds the earliest
// time at which each state can be reached, a sweep back the latest time at which it can be left, and
// the transitions that survive both say how far each window and each order bound can be tightened
// without losing a single order that meets them.
#ifndef ZB_LATTICE_H
#define ZB_LATTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/chain.h"
#include "solver/exact/halt.h"
#include "solver/model/status.h"

// What is known of one device: for every entry an array over microbatches, times in ticks since the
// device's own first op. `x`, `y`, `z` are contract.md's order variables `n`: x = F done when backward
// number k starts, y = W done then, z = W done when forward number j starts.
enum zb_window {
  ZB_F_EARLY,      // earliest start of forward j
  ZB_F_LATE,       // latest end
  ZB_B_EARLY,      // earliest start of backward k, split or fused
  ZB_B_EARLY_END,  // earliest end of what hands its gradient on: B, or the whole BW
  ZB_B_LATE_START, // latest start
  ZB_B_LATE,       // latest end
  ZB_X_LO,
  ZB_X_HI,
  ZB_Y_LO,
  ZB_Y_HI,
  ZB_Z_LO,
  ZB_Z_HI,
  ZB_FUSED_LO,
  ZB_FUSED_HI, // 1: backward k is fused
  ZB_WINDOWS
};

// Whether larger values of a window leave less: a lower bound rises, an upper bound falls.
static inline bool zb_window_rises(int window) {
  return window == ZB_F_EARLY || window == ZB_B_EARLY || window == ZB_B_EARLY_END || window == ZB_X_LO ||
         window == ZB_Y_LO || window == ZB_Z_LO || window == ZB_FUSED_LO;
}

enum zb_sweep {
  ZB_SWEEP_KEPT,    // some order meets the windows
  ZB_SWEEP_REFUTED, // none does
  ZB_SWEEP_STOPPED, // halted first
  ZB_SWEEP_MEMORY,  // the table would not fit, or could not be allocated
};

// Scratch of one thread, reused by every sweep of any device. Zero-initialise, then set the limits.
struct zb_lattice {
  const struct zb_halt *halt; // may be NULL
  size_t most_states;         // a larger table is refused; 0: no limit
  int64_t *table;             // [capacity] after a sweep: latest time at which a state can be entered
  size_t capacity;
  struct zb_row *row; // one per (nB, nF) inside the order bounds
  size_t row_capacity;
  size_t *plane;        // [microbatches + 2] first row of each nB
  int *plane_lo;        // [microbatches + 1] its least nF
  int64_t *out;         // [ZB_WINDOWS * microbatches] the tightened windows
  int64_t *base;        // [microbatches + 1] one row's work
  int microbatches;     // what the last four are sized for
  int64_t work;         // states swept so far
  struct zb_grid *grid; // of devices with several stages (grid.h); NULL until one is swept
};
void zb_lattice_free(struct zb_lattice *lattice);

// Sweeps a device with `microbatches` to do within `horizon` ticks, under `windows` (laid out as
// [ZB_WINDOWS][microbatches]). On KEPT, lattice->out holds windows at least as tight, and the table
// serves zb_lattice_latest until the next sweep.
enum zb_sweep zb_lattice_sweep(struct zb_lattice *lattice, const struct zb_chain_device *device,
                               int microbatches, int64_t horizon, const int64_t *windows);

// Latest time at which the state can be entered so that the rest still meets the windows of the last
// sweep; negative where no way on exists.
int64_t zb_lattice_latest(const struct zb_lattice *lattice, int forwards, int backwards, int weights);

// The windows before anything is known: ops anywhere within the horizon, in any order.
void zb_windows_init(const struct zb_chain_device *device, int microbatches, int64_t horizon,
                     int64_t *windows);

#endif
