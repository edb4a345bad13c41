// grid.h - one device with any classes of ops, exactly: every order it can run them in, swept at once.
//
// What lattice.h does for F, B and W of one stage, for the classes of chunked.h: a state is how many of each
// class are done. The states are kept sparse, as a tree over the classes whose leaves are rows over the last
// class, W: only what windows, order bounds and memory allow is stored.
#ifndef ZB_GRID_H
#define ZB_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "solver/exact/chunked.h"
#include "solver/exact/halt.h"
#include "solver/exact/lattice.h"

struct zb_grid_entry {
  int64_t at; // first child in the next level, or in the table
  int32_t lo, count;
};

// Scratch of one thread, reused by every sweep of any device; made by the first. Owned by its lattice.
struct zb_grid {
  struct zb_grid_entry *level[ZB_MOST_CLASSES]; // level[i]: one entry for each choice of the first i counts
  size_t filled[ZB_MOST_CLASSES], capacity[ZB_MOST_CLASSES];
  int levels;     // of the last sweep: the device's classes
  int64_t *table; // after a sweep: latest time at which a state can be entered
  size_t table_capacity;
  int64_t *out; // the tightened windows, arrays as in chunked.h
  size_t out_capacity;
  int64_t *base; // work of rows: three of the longest
  size_t base_capacity;
};
void zb_grid_free(struct zb_grid *grid);

// Sweeps device `d` within `horizon` ticks under `windows`; as zb_lattice_sweep.
enum zb_sweep zb_grid_sweep(struct zb_lattice *lattice, const struct zb_chunked *chunked, int d,
                            int64_t horizon, const int64_t *windows);

// Latest time at which the state `counts` [classes] can be entered so that the rest still meets the windows
// of the last sweep; negative where no way on exists.
int64_t zb_grid_latest(const struct zb_grid *grid, const int *counts);

#endif
