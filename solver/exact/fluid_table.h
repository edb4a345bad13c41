// fluid_table.h - what one device has to keep to from each state on, where W is fluid.
//
// W is fluid if it runs in pieces of any size, whenever no F or B does. Then a device is known by how many F
// and B of each of its stages it has ended (n), by its clock, and by how much W it has poured, and what is
// left of its order can be kept to if
//   clock <= latest  and  clock - poured <= lead
// for one of a few points (latest, lead). From the end, where W is all that is left:
//   (horizon, horizon - all W).
// A point (latest, lead) behind an F that may end at `late` and needs `need` W done before it becomes
//   latest' = min(latest, late) - f,  lead' = min(lead - f, latest' - need),
// behind a B the same with b and no need; and as no more W can be poured than that of the B in n,
// latest' <= lead' + that.
#ifndef ZB_FLUID_TABLE_H
#define ZB_FLUID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/lanes.h"
#include "solver/model/number.h"

struct zb_fluid_point {
  int64_t latest, lead;
};

// A device's lanes of F and B, B of its first stage .. B of its last, F of its last .. F of its first: as
// each op needs that of the same microbatch behind it, no count is greater than the next.
struct zb_fluid_device {
  int count;                 // of lanes; 0 .. count / 2 - 1 are those of B
  int lane[ZB_MOST_CLASSES]; // in zb_lanes
  int64_t time[ZB_MOST_CLASSES], bytes[ZB_MOST_CLASSES];
  int64_t weight[ZB_MOST_CLASSES / 2]; // ticks that the W of a B takes
  bool limited;
  int64_t room_bytes, w, gives; // where limited: all its W are alike; what one takes, and gives back
};
void zb_fluid_device_list(const struct zb_lanes *lanes, int device, struct zb_fluid_device *list);

// W that have to be done for `over` bytes above the limit to be given back; more than there are where that
// cannot be.
static inline int32_t zb_fluid_weights(int64_t gives, int64_t over) {
  if (over <= 0) return 0;
  return gives > 0 ? (int32_t)zb_min((over + gives - 1) / gives, INT32_MAX) : INT32_MAX;
}

// The states, as a tree: a level for each lane, at the end the cells.
struct zb_fluid_branch {
  uint32_t at; // of the first in the next level
  uint16_t lo, count;
};
struct zb_fluid_cell {
  struct zb_fluid_point first;
  uint32_t others; // where those behind the first are
  uint16_t points; // none where nothing meets the target
};

struct zb_fluid_table {
  struct zb_fluid_device device;
  int microbatches;
  struct zb_fluid_branch *level[ZB_MOST_CLASSES];
  size_t filled[ZB_MOST_CLASSES], room[ZB_MOST_CLASSES];
  struct zb_fluid_cell *cell;
  // [cells][lanes] of a device with a limit: most W that any F may need that runs from there on and before
  // the next op of the lane, had that run already. Only through states that have points.
  int32_t *displaced;
  struct zb_fluid_point *point; // all but the first ones of cells
  size_t cells, points, point_room;
};

// Memory for a device; false where it ran out, or for more than `most` states. zb_fluid_table_close what was
// opened either way.
bool zb_fluid_table_open(const struct zb_lanes *lanes, int device, size_t most, struct zb_fluid_table *table);
void zb_fluid_table_close(struct zb_fluid_table *table);
// All points, for the latest ends in `lanes`. False where memory ran out.
bool zb_fluid_table_fill(const struct zb_lanes *lanes, int device, struct zb_fluid_table *table);

// NULL: memory forbids that state.
static inline const struct zb_fluid_cell *zb_fluid_cell(const struct zb_fluid_table *table,
                                                        const uint16_t *n) {
  size_t at = 0;
  for (int i = 0; i < table->device.count; i++) {
    const struct zb_fluid_branch *branch = &table->level[i][at];
    const unsigned step = (unsigned)n[i] - branch->lo;
    if (step >= branch->count) return NULL;
    at = branch->at + step;
  }
  return &table->cell[at];
}

static inline struct zb_fluid_point zb_fluid_point(const struct zb_fluid_table *table,
                                                   const struct zb_fluid_cell *cell, int i) {
  return i == 0 ? cell->first : table->point[cell->others + (uint32_t)i - 1];
}

#endif
