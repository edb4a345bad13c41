// fluid_table.h - what one device of a chain has to keep to from each state on, where W is fluid.
//
// W is fluid if it runs in pieces of any size, whenever no F or B does. Then a device that has ended nF F and
// nB B is known by its clock and by how much W it has poured, and what is left of its order can be kept to if
//   clock <= latest  and  clock - poured <= lead
// for one of a few points (latest, lead). From the end, where W is all that is left:
//   (horizon, horizon - m w).
// A point (latest, lead) behind an F that may end at `late` and needs `need` W done before it becomes
//   latest' = min(latest, late) - f,  lead' = min(lead - f, latest' - need w),
// behind a B the same with b and no need; and as no more than nB w can be poured, latest' <= lead' + nB w.
#ifndef ZB_FLUID_TABLE_H
#define ZB_FLUID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/lanes.h"

struct zb_fluid_point {
  int64_t latest, lead;
};

// Of one state. Its points are none where nothing meets the target.
struct zb_fluid_cell {
  uint32_t point;
  int16_t points;
  uint16_t need; // W that have to be done before the next F starts; only where that can be
};

struct zb_fluid_table {
  int microbatches;
  int *least_b; // [microbatches + 1] B without which so many F never fit
  int *most_f;  // [microbatches + 1] F that so many B leave memory for
  size_t *row;  // [microbatches + 1] cell of (nF, least_b[nF])
  struct zb_fluid_cell *cell;
  struct zb_fluid_point *point;
  size_t cells, points, point_room;
};

// Sizes and memory needs of a device; false where memory ran out, or for more than `most` states.
// zb_fluid_table_close what was opened either way.
bool zb_fluid_table_open(const struct zb_lanes *lanes, int device, size_t most, struct zb_fluid_table *table);
void zb_fluid_table_close(struct zb_fluid_table *table);
// All points, for the latest ends in `lanes`. False where memory ran out.
bool zb_fluid_table_fill(const struct zb_lanes *lanes, int device, struct zb_fluid_table *table);

// least_b[f] <= b <= f.
static inline const struct zb_fluid_cell *zb_fluid_cell(const struct zb_fluid_table *table, int f, int b) {
  return &table->cell[table->row[f] + (size_t)(b - table->least_b[f])];
}

#endif
