// fluid_table.c - points from the last state to the first.
#include "solver/exact/fluid_table.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// No state of a chain was seen with more than 3 points; more are merged, which only lets more pass.
enum { MOST_POINTS = 16 };

void zb_fluid_device_list(const struct zb_lanes *lanes, int device, struct zb_fluid_device *list) {
  const int first = lanes->first[device], weight = lanes->first_weight[device];
  *list = (struct zb_fluid_device){.count = weight - first,
                                   .room_bytes = lanes->room_bytes[device],
                                   .limited = lanes->room_bytes[device] != ZB_NO_LIMIT,
                                   .w = lanes->lane[weight].time,
                                   .gives = -lanes->lane[weight].bytes};
  for (int i = 0; i < list->count; i++) {
    // Of a chain F comes first.
    const int number = lanes->chunked ? first + i : first + 1 - i;
    const struct zb_lane *lane = &lanes->lane[number];
    list->lane[i] = number;
    list->time[i] = lane->time;
    list->bytes[i] = lane->bytes;
    if (lane->kind == ZB_B)
      list->weight[i] = lanes->lane[lanes->lane[weight].any_weight ? weight : weight + i].time;
  }
}

// The states.

static bool add_branch(struct zb_fluid_table *table, int level, struct zb_fluid_branch branch) {
  if (table->filled[level] == table->room[level]) {
    const size_t room = table->room[level] ? 2 * table->room[level] : 64;
    struct zb_fluid_branch *grown = realloc(table->level[level], room * sizeof *grown);
    if (!grown) return false;
    table->level[level] = grown;
    table->room[level] = room;
  }
  table->level[level][table->filled[level]++] = branch;
  return true;
}

// Whether memory lets n[0 .. set - 1] be, with all other counts as small as they can be; so where it does
// not, it does not for greater n[set - 1] either.
static bool fits(const struct zb_fluid_device *device, const uint16_t *n, int set) {
  if (!device->limited) return true;
  int64_t over = -device->room_bytes, there = 0;
  for (int i = 0; i < device->count; i++) {
    const int count = n[i < set ? i : set - 1];
    over += count * device->bytes[i];
    if (i < device->count / 2) there += count;
  }
  return over <= there * device->gives;
}

// The branches below n[0 .. level - 1].
static bool lay_out(struct zb_fluid_table *table, uint16_t *n, int level, size_t most) {
  const int lo = level > 0 ? n[level - 1] : 0;
  int hi = lo;
  while (hi <= table->microbatches) {
    n[level] = (uint16_t)hi;
    if (!fits(&table->device, n, level + 1)) break;
    hi++;
  }
  const bool leaf = level + 1 == table->device.count;
  const size_t at = leaf ? table->cells : table->filled[level + 1];
  if (at > UINT32_MAX) return false;
  if (!add_branch(table, level, (struct zb_fluid_branch){(uint32_t)at, (uint16_t)lo, (uint16_t)(hi - lo)}))
    return false;
  if (leaf) {
    table->cells += (size_t)(hi - lo);
    return table->cells <= most;
  }
  for (int k = lo; k < hi; k++) {
    n[level] = (uint16_t)k;
    if (!lay_out(table, n, level + 1, most)) return false;
  }
  return true;
}

bool zb_fluid_table_open(const struct zb_lanes *lanes, int device, size_t most,
                         struct zb_fluid_table *table) {
  uint16_t n[ZB_MOST_CLASSES];
  *table = (struct zb_fluid_table){.microbatches = lanes->microbatches};
  zb_fluid_device_list(lanes, device, &table->device);
  if (!lay_out(table, n, 0, most)) return false;
  table->cell = malloc((table->cells + 1) * sizeof *table->cell);
  if (table->device.limited)
    table->displaced = malloc((table->cells + 1) * (size_t)table->device.count * sizeof *table->displaced);
  return table->cell && (table->displaced || !table->device.limited);
}

void zb_fluid_table_close(struct zb_fluid_table *table) {
  for (int i = 0; i < ZB_MOST_CLASSES; i++) free(table->level[i]);
  free(table->cell);
  free(table->displaced);
  free(table->point);
  *table = (struct zb_fluid_table){0};
}

// The points.

struct points {
  struct zb_fluid_point point[ZB_MOST_CLASSES * MOST_POINTS];
  int count;
};

static void add_point(struct points *points, struct zb_fluid_point made) {
  int left = 0;
  for (int i = 0; i < points->count; i++) {
    const struct zb_fluid_point *other = &points->point[i];
    if (other->latest >= made.latest && other->lead >= made.lead) return;
    if (other->latest > made.latest || other->lead > made.lead) points->point[left++] = *other;
  }
  points->count = left;
  points->point[points->count++] = made;
}

static void behind(const struct zb_fluid_table *table, const struct zb_fluid_cell *next, int64_t time,
                   int64_t late, int64_t needed, int64_t most_poured, int64_t zero, struct points *points) {
  for (int i = 0; i < next->points; i++) {
    struct zb_fluid_point point = zb_fluid_point(table, next, i);
    point.latest = zb_min(point.latest, late) - time;
    point.lead = zb_min(point.lead - time, point.latest - needed);
    point.latest = zb_min(point.latest, point.lead + most_poured);
    if (point.latest >= zero) add_point(points, point);
  }
}

static bool keep_points(struct zb_fluid_table *table, struct points *points, struct zb_fluid_cell *cell) {
  if (points->count > MOST_POINTS) {
    for (int i = MOST_POINTS; i < points->count; i++) {
      struct zb_fluid_point *last = &points->point[MOST_POINTS - 1];
      last->latest = zb_max(last->latest, points->point[i].latest);
      last->lead = zb_max(last->lead, points->point[i].lead);
    }
    points->count = MOST_POINTS;
  }
  if (table->points + MOST_POINTS > table->point_room) {
    const size_t room = table->point_room ? 2 * table->point_room : 1024;
    struct zb_fluid_point *grown = realloc(table->point, room * sizeof *grown);
    if (!grown || table->points > UINT32_MAX - MOST_POINTS) return false;
    table->point = grown;
    table->point_room = room;
  }
  cell->others = (uint32_t)table->points;
  cell->points = (uint16_t)points->count;
  if (points->count > 0) cell->first = points->point[0];
  for (int i = 1; i < points->count; i++) table->point[table->points++] = points->point[i];
  return true;
}

static int64_t weight_of(const struct zb_fluid_device *device, const uint16_t *n) {
  int64_t sum = 0;
  for (int i = 0; i < device->count / 2; i++) sum += n[i] * device->weight[i];
  return sum;
}

// `over`: bytes above the limit; `next`: the cell behind an op of each lane, NULL where nothing meets the
// target.
static void fill_displaced(struct zb_fluid_table *table, const struct zb_fluid_cell *cell, int64_t over,
                           const struct zb_fluid_cell *const *next) {
  const struct zb_fluid_device *device = &table->device;
  int32_t *here = table->displaced + (cell - table->cell) * device->count;
  for (int o = 0; o < device->count; o++) {
    here[o] = 0;
    for (int i = 0; i < device->count; i++) {
      if (i == o || !next[i]) continue;
      const int32_t behind = table->displaced[(next[i] - table->cell) * device->count + o];
      if (behind > here[o]) here[o] = behind;
      if (i < device->count / 2) continue;
      const int32_t need = zb_fluid_weights(device->gives, over + device->bytes[o] + device->bytes[i]);
      if (need > here[o]) here[o] = need;
    }
  }
}

static bool fill_cell(const struct zb_lanes *lanes, int d, struct zb_fluid_table *table, uint16_t *n,
                      struct zb_fluid_cell *cell) {
  const struct zb_fluid_device *device = &table->device;
  const int m = table->microbatches, count = device->count;
  const int64_t poured = weight_of(device, n);
  const struct zb_fluid_cell *next[ZB_MOST_CLASSES] = {NULL};
  struct points points;
  int64_t over = -device->room_bytes;
  for (int i = 0; i < count && device->limited; i++) over += n[i] * device->bytes[i];
  points.count = 0;
  if (n[0] == m) add_point(&points, (struct zb_fluid_point){lanes->horizon[d], lanes->horizon[d] - poured});
  for (int i = 0; i < count; i++) {
    if (n[i] == (i + 1 < count ? n[i + 1] : m)) continue;
    int64_t need = 0;
    if (i >= count / 2 && device->limited)
      need = zb_fluid_weights(device->gives, over + device->bytes[i]) * device->w;
    const int64_t late = zb_lane_late(lanes, device->lane[i], n[i]);
    n[i]++;
    next[i] = zb_fluid_cell(table, n);
    n[i]--;
    if (!next[i]) continue;
    behind(table, next[i], device->time[i], late, need, poured, lanes->frame[d], &points);
    if (next[i]->points == 0) next[i] = NULL;
  }
  if (device->limited) fill_displaced(table, cell, over, next);
  return keep_points(table, &points, cell);
}

// All cells below n[0 .. level - 1], the last first: what an op leads to comes after it.
static bool fill_below(const struct zb_lanes *lanes, int d, struct zb_fluid_table *table, uint16_t *n,
                       int level, size_t at) {
  const struct zb_fluid_branch branch = table->level[level][at];
  for (int k = branch.count - 1; k >= 0; k--) {
    n[level] = (uint16_t)(branch.lo + k);
    const size_t below = branch.at + (size_t)k;
    const bool leaf = level + 1 == table->device.count;
    if (!(leaf ? fill_cell(lanes, d, table, n, &table->cell[below])
               : fill_below(lanes, d, table, n, level + 1, below)))
      return false;
  }
  return true;
}

bool zb_fluid_table_fill(const struct zb_lanes *lanes, int device, struct zb_fluid_table *table) {
  uint16_t n[ZB_MOST_CLASSES];
  table->points = 0;
  return fill_below(lanes, device, table, n, 0, 0);
}
