// fluid_table.c - points from the last state to the first.
#include "solver/exact/fluid_table.h"

#include <stdlib.h>

#include "solver/model/number.h"

// No state was seen with more than 3 points; more would be merged, which only lets more pass.
enum { MOST_POINTS = 16 };

// W that have to be done before F number f starts after b B, if that is at most b; else b + 1.
static int need_of(const struct zb_lanes *lanes, const struct zb_lane *lane, int f, int b) {
  const int64_t room = lanes->room_bytes[lane->device];
  if (room == ZB_NO_LIMIT) return 0;
  const int64_t over = lane[ZB_F].bytes * (f + 1) + lane[ZB_B].bytes * b - room;
  if (over <= 0) return 0;
  const int64_t gives = -lane[ZB_W].bytes;
  return gives > 0 && over <= gives * b ? (int)((over + gives - 1) / gives) : b + 1;
}

bool zb_fluid_table_open(const struct zb_lanes *lanes, int device, size_t most,
                         struct zb_fluid_table *table) {
  const struct zb_lane *lane = &lanes->lane[3 * (size_t)device];
  const int m = lanes->microbatches;
  *table = (struct zb_fluid_table){.microbatches = m};
  table->least_b = malloc(((size_t)m + 1) * sizeof *table->least_b);
  table->most_f = malloc(((size_t)m + 1) * sizeof *table->most_f);
  table->row = malloc(((size_t)m + 1) * sizeof *table->row);
  if (!table->least_b || !table->most_f || !table->row) return false;
  int b = 0;
  for (int f = 0; f <= m; f++) {
    while (f > 0 && b < f && need_of(lanes, lane, f - 1, b) > b) b++;
    table->least_b[f] = b;
    table->row[f] = table->cells;
    table->cells += (size_t)(f - b) + 1;
  }
  if (table->cells > most) return false;
  for (int f = 0; f <= m; f++)
    for (int k = table->least_b[f]; k <= m; k++) table->most_f[k] = f;
  table->cell = malloc(table->cells * sizeof *table->cell);
  return table->cell != NULL;
}

void zb_fluid_table_close(struct zb_fluid_table *table) {
  free(table->least_b);
  free(table->most_f);
  free(table->row);
  free(table->cell);
  free(table->point);
  *table = (struct zb_fluid_table){0};
}

struct points {
  struct zb_fluid_point point[2 * MOST_POINTS];
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
    struct zb_fluid_point point = table->point[next->point + (uint32_t)i];
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
  cell->point = (uint32_t)table->points;
  cell->points = (int16_t)points->count;
  for (int i = 0; i < points->count; i++) table->point[table->points++] = points->point[i];
  return true;
}

bool zb_fluid_table_fill(const struct zb_lanes *lanes, int device, struct zb_fluid_table *table) {
  const int m = table->microbatches, number = 3 * device;
  const struct zb_lane *lane = &lanes->lane[number];
  const int64_t w = lane[ZB_W].time, horizon = lanes->horizon[device], zero = lanes->frame[device];
  table->points = 0;
  for (int f = m; f >= 0; f--) {
    for (int b = f; b >= table->least_b[f]; b--) {
      struct zb_fluid_cell *cell = &table->cell[table->row[f] + (size_t)(b - table->least_b[f])];
      struct points points = {.count = 0};
      if (b == m) add_point(&points, (struct zb_fluid_point){horizon, horizon - m * w});
      cell->need = 0;
      if (f < m && b >= table->least_b[f + 1]) {
        cell->need = (uint16_t)need_of(lanes, lane, f, b);
        behind(table, zb_fluid_cell(table, f + 1, b), lane[ZB_F].time, zb_lane_late(lanes, number, f),
               cell->need * w, b * w, zero, &points);
      }
      if (b < f) {
        // A B needs no W done before it.
        behind(table, cell + 1, lane[ZB_B].time, zb_lane_late(lanes, number + ZB_B, b), 0, b * w, zero,
               &points);
      }
      if (!keep_points(table, &points, cell)) return false;
    }
  }
  return true;
}
