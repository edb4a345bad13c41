// grid_tree.h - the states of a device as a tree over its classes, and visits of its rows both ways.
//
// What the exact sweep (grid.c) and the one that pours W (fluid.c) share: the layout, which keeps only what
// order bounds, time windows and memory leave, and the way down to a row and to those one op away from it.
#ifndef ZB_GRID_TREE_H
#define ZB_GRID_TREE_H

#include "solver/exact/grid.h"

enum { ZB_MOST_STEPS = 2 * ZB_MOST_CLASSES };

#define ZB_NEVER (INT64_MAX / 4)
#define ZB_DEAD (-(INT64_MAX / 4))

// What a device can do next: one op, which adds 1 to one count, or to two for a BW.
struct zb_grid_step {
  int first, second; // classes; second -1: none
  int chunk;
  int64_t time;
  const int64_t *early, *late, *fused_lo, *fused_hi; // windows of F and B; NULL for W
  bool fuses;
  int row_step; // what it adds to the row's class
};

struct zb_grid_sweep {
  struct zb_lattice *lattice;
  struct zb_grid *grid;
  const struct zb_chunked *chunked;
  const struct zb_chunked_device *device;
  const int64_t *windows;
  int64_t *out;
  int m;
  int row; // the class that rows run over, the last of the tree
  int64_t horizon;
  struct zb_grid_step step[ZB_MOST_STEPS];
  int steps;
  int64_t least_time[ZB_MOST_CLASSES]; // of an op of the class
  int64_t states, most_states;         // laid out so far, and at most
  size_t entries, most_entries;        // of all levels together
  int n[ZB_MOST_CLASSES];              // counts of the row being visited, but for its own class
  int64_t rows_seen;
  bool stopped, memory;
  const int64_t *early_end[ZB_MOST_CLASSES], *late_start[ZB_MOST_CLASSES]; // [m] of F and B; NULL for W
  int64_t early_time[ZB_MOST_CLASSES], late_time[ZB_MOST_CLASSES];         // to add, to take off
};

// The way down to a row and to those one op away.
struct zb_grid_way {
  const struct zb_grid_entry *own;
  const struct zb_grid_entry *other[ZB_MOST_STEPS]; // NULL: outside the bounds
  int64_t late;                                     // the next op of a class must still start in time
};

typedef void zb_grid_row(struct zb_grid_sweep *sweep, struct zb_grid_entry *row,
                         const struct zb_grid_way *way);

void zb_grid_start(struct zb_grid_sweep *sweep, struct zb_lattice *lattice, const struct zb_chunked *chunked,
                   int d, int row, int64_t horizon, const int64_t *windows);
void zb_grid_add_step(struct zb_grid_sweep *sweep, int chunk, int first, int second, int64_t time);

// The tree, and a table of `numbers` for each state. KEPT, STOPPED or MEMORY.
enum zb_sweep zb_grid_lay_out(struct zb_grid_sweep *sweep, size_t numbers);

// In topological order with way->other the rows one op before, or in reverse with those one op after.
void zb_grid_forward(struct zb_grid_sweep *sweep, zb_grid_row *visit);
void zb_grid_backward(struct zb_grid_sweep *sweep, zb_grid_row *visit);

// Where results go: empty windows first, then widened by what survives.
void zb_grid_forget(const struct zb_grid_sweep *sweep);
static inline int64_t *zb_grid_out(const struct zb_grid_sweep *sweep, int array) {
  return sweep->out + (ptrdiff_t)array * sweep->m;
}
// The counts of one class at which op k of another starts.
void zb_grid_widen(const struct zb_grid_sweep *sweep, int starting, int counted, int k, int least, int most);
// Op k of the step's class: its earliest start, and the latest start and end; the counts of all classes
// before the row's as sweep->n has them.
void zb_grid_note(const struct zb_grid_sweep *sweep, const struct zb_grid_step *step, int k, int64_t start,
                  int64_t latest_start, int64_t latest_end);

// Cuts `head` and `tail` states off a row.
static inline void zb_grid_trim(struct zb_grid_entry *row, int head, int tail) {
  row->at += head;
  row->lo += head;
  row->count -= head + tail;
}

#endif
