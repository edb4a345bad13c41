// front.c - the layers, and what is kept of each.
//
// A layer is all kept partial schedules with as many F and B done. Those of the next layer come from an F or
// a B; a W stays in its layer, at the end of the list that is worked through. Nodes lie packed in blocks that
// go back when their layer is done; how a node came about is on a trail of its own, from which dead ends are
// swept out now and then.
//
// Invariant: whatever schedule meets the target and starts with a node that was ever made also starts, but
// for the order of what is free to move, with one that is alive or expanded; until something is left out.
#include "solver/exact/front.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/grid.h"
#include "solver/exact/lanes.h"
#include "solver/model/number.h"

const char *const zb_word_fronts = "fronts";

enum { BLOCK_BYTES = 1 << 20, NOBODY = -1 };

// Most bytes of nodes in two layers, and least entries of a trail before it is swept.
static const size_t most_bytes = (size_t)1 << 29, least_trail = (size_t)1 << 20;

// Of a device that is done.
static const int64_t finished = 0;

struct node {
  uint64_t hash; // of how many F and B are done
  int64_t cost;  // of the devices that are done
  int64_t hand;  // time in hand
  uint32_t trail;
  int32_t weights; // W done in all
  bool killed;
  // Counts of all lanes [lanes], 16 bits each; then when devices are free [devices], and the arrivals that
  // wait, lane by lane.
  int64_t data[];
};

// Four numbers compared at once.
typedef int32_t four __attribute__((vector_size(16)));
typedef int64_t two __attribute__((vector_size(16)));

// Nodes that have done the same F and B, with what tells most of them apart side by side: of each a row of
// when devices are free, in coarse units, and of -W done in all. X kills Y only if no number of its row is
// greater.
struct group {
  uint64_t hash;
  struct node **node;
  four *row; // [rows each of front->row_fours]
  int count, room;
};

struct layer {
  struct node **node;
  size_t nodes, room, alive;
  struct group *group;       // open addressing; empty: no nodes
  size_t groups, group_room; // group_room: a power of two
  char **block;
  size_t blocks, block_room, used; // used: bytes of the last block
};

struct step {
  uint32_t before;
  int32_t lane;
};

struct zb_front {
  struct zb_lanes lanes;
  struct zb_lattice *lattice; // [devices] each with its device's table
  bool has_tables;
  int64_t work;
  size_t most;
  bool whole;
  int layer_number, layers; // of F and B in all
  struct layer now, next;
  size_t worked; // of now
  struct step *step;
  size_t steps, step_room, sweep_at;
  // The node at hand, and what a child changes of it.
  uint16_t *count;       // [lanes]
  int64_t *clock;        // [devices]
  int64_t *estimate;     // [lanes]
  const int64_t **queue; // [lanes] arrivals of the node at hand
  int *queued;           // [lanes]
  int64_t *packed;
  size_t packed_room;
  int taken, sent; // lanes whose queue a child shortens and lengthens
  int64_t sent_at;
  four *row; // of what is packed [row_fours]
  size_t row_fours;
  int coarse; // bits of a time that a row leaves out
};

bool zb_front_applies(const struct zb_chain *chain, enum zb_objective objective) {
  // A count of 16 bits is of one lane, at most all W of a device.
  const int64_t most_count = (int64_t)chain->microbatches * (chain->chunked ? ZB_MOST_CLASSES : 1);
  if (chain->devices > ZB_MOST_LANE_DEVICES || most_count > UINT16_MAX) return false;
  return objective == ZB_MAKESPAN ||
         (objective == ZB_SPAN && !(chain->chunked && chain->chunked->open_offsets));
}

bool zb_front_proves(const struct zb_chain *chain, enum zb_objective objective) {
  if (!zb_front_applies(chain, objective) || chain->chunked) return false;
  for (int d = 0; d < chain->devices; d++) {
    const struct zb_chain_device *device = &chain->device[d];
    if (device->fused) return false;
    if (device->room_bytes == ZB_NO_LIMIT) continue;
    if (device->f_bytes < 0 || device->b_bytes > 0 || device->w_bytes > 0) return false;
  }
  return true;
}

// Layers.

static void empty_groups(struct layer *layer) {
  for (size_t i = 0; i < layer->group_room; i++) {
    free(layer->group[i].node);
    free(layer->group[i].row);
    layer->group[i] = (struct group){0};
  }
  layer->groups = 0;
}

static void empty_layer(struct layer *layer) {
  for (size_t i = 1; i < layer->blocks; i++) free(layer->block[i]);
  if (layer->blocks > 1) layer->blocks = 1;
  layer->used = 0;
  layer->nodes = layer->alive = 0;
  empty_groups(layer);
}

static void free_layer(struct layer *layer) {
  for (size_t i = 0; i < layer->blocks; i++) free(layer->block[i]);
  free(layer->block);
  free(layer->node);
  empty_groups(layer);
  free(layer->group);
  *layer = (struct layer){0};
}

static void *take_bytes(struct layer *layer, size_t bytes) {
  if (layer->blocks == 0 || layer->used + bytes > BLOCK_BYTES) {
    if (layer->blocks == layer->block_room) {
      const size_t room = layer->block_room ? 2 * layer->block_room : 16;
      char **grown = realloc(layer->block, room * sizeof *grown);
      if (!grown) return NULL;
      layer->block = grown;
      layer->block_room = room;
    }
    if (!(layer->block[layer->blocks] = malloc(BLOCK_BYTES))) return NULL;
    layer->blocks++;
    layer->used = 0;
  }
  void *taken = layer->block[layer->blocks - 1] + layer->used;
  layer->used += (bytes + 7) / 8 * 8;
  return taken;
}

static bool grow_groups(struct layer *layer) {
  if (layer->group_room > 2 * layer->groups) return true;
  const size_t room = layer->group_room ? 4 * layer->group_room : 1024;
  struct group *grown = calloc(room, sizeof *grown);
  if (!grown) return false;
  for (size_t i = 0; i < layer->group_room; i++) {
    if (layer->group[i].count == 0) continue;
    size_t at = layer->group[i].hash & (room - 1);
    while (grown[at].count > 0) at = (at + 1) & (room - 1);
    grown[at] = layer->group[i];
  }
  free(layer->group);
  layer->group = grown;
  layer->group_room = room;
  return true;
}

static bool grow_nodes(struct layer *layer) {
  if (layer->nodes < layer->room) return true;
  const size_t room = layer->room ? 2 * layer->room : 1024;
  struct node **grown = realloc(layer->node, room * sizeof(struct node *));
  if (!grown) return false;
  layer->node = grown;
  layer->room = room;
  return true;
}

// The trail.

static bool note_step(struct zb_front *front, uint32_t before, int lane, uint32_t *at) {
  if (front->steps == front->step_room) {
    if (front->steps >= UINT32_MAX / 2) return false;
    const size_t room = front->step_room ? 2 * front->step_room : 4096;
    struct step *grown = realloc(front->step, room * sizeof *grown);
    if (!grown) return false;
    front->step = grown;
    front->step_room = room;
  }
  *at = (uint32_t)front->steps;
  front->step[front->steps++] = (struct step){before, lane};
  return true;
}

// Keeps only the steps that lead to a node of the current layer.
static bool sweep_trail(struct zb_front *front) {
  uint32_t *moved = calloc(front->steps, sizeof *moved);
  if (!moved) return false;
  for (size_t i = 0; i < front->now.nodes; i++)
    for (uint32_t at = front->now.node[i]->trail; !moved[at]; at = front->step[at].before) moved[at] = 1;
  size_t kept = 0;
  for (size_t i = 0; i < front->steps; i++) {
    if (!moved[i]) continue;
    const struct step step = {moved[front->step[i].before], front->step[i].lane};
    moved[i] = (uint32_t)kept;
    front->step[kept++] = step;
  }
  // The first step leads nowhere: itself.
  front->step[0].before = 0;
  for (size_t i = 0; i < front->now.nodes; i++) front->now.node[i]->trail = moved[front->now.node[i]->trail];
  front->steps = kept;
  front->sweep_at = kept > least_trail / 2 ? 2 * kept : least_trail;
  free(moved);
  return true;
}

// The node at hand.

static const uint16_t *counts_of(const struct node *node) { return (const uint16_t *)node->data; }

static size_t count_words(const struct zb_front *front) {
  return ((size_t)front->lanes.lanes * sizeof(uint16_t) + sizeof(int64_t) - 1) / sizeof(int64_t);
}

static void unpack(struct zb_front *front, const struct node *node) {
  const struct zb_lanes *lanes = &front->lanes;
  memcpy(front->count, counts_of(node), (size_t)lanes->lanes * sizeof *front->count);
  const int64_t *word = node->data + count_words(front);
  for (int d = 0; d < lanes->devices; d++) front->clock[d] = word[d];
  word += lanes->devices;
  for (int l = 0; l < lanes->lanes; l++) {
    const int source = lanes->lane[l].source;
    front->queue[l] = word;
    front->queued[l] = source < 0 ? 0 : front->count[source] - front->count[l];
    word += front->queued[l];
  }
  front->taken = front->sent = NOBODY;
}

static int waiting(const struct zb_front *front, int lane) {
  return front->queued[lane] - (lane == front->taken) + (lane == front->sent);
}

static int64_t arrival(const struct zb_front *front, int lane, int number) {
  const int at = number + (lane == front->taken);
  return at < front->queued[lane] ? front->queue[lane][at] : front->sent_at;
}

static bool memory_fits(const struct zb_front *front, const struct zb_lane *lane) {
  const int64_t room = front->lanes.room_bytes[lane->device];
  if (room == ZB_NO_LIMIT) return true;
  int64_t bytes = lane->bytes;
  for (int l = front->lanes.first[lane->device]; l < front->lanes.first[lane->device + 1]; l++)
    bytes += front->count[l] * front->lanes.lane[l].bytes;
  return bytes <= room;
}

// Whether an op of a lane can come next on its device, and when.
static bool can_come_next(const struct zb_front *front, int number, int64_t *start) {
  const struct zb_lane *lane = &front->lanes.lane[number];
  if (front->count[number] == lane->count || !zb_lane_is_ready(&front->lanes, number, front->count))
    return false;
  *start = front->clock[lane->device];
  if (lane->source >= 0) {
    if (waiting(front, number) == 0) return false;
    *start = zb_max(*start, arrival(front, number, 0));
  }
  return lane->bytes <= 0 || memory_fits(front, lane);
}

// Latest time at which device d may be in its state; negative: never.
static int64_t latest(const struct zb_front *front, int d) {
  const struct zb_lanes *lanes = &front->lanes;
  const uint16_t *count = &front->count[lanes->first[d]];
  if (!front->has_tables) return lanes->horizon[d];
  int64_t by;
  if (lanes->chunked) {
    int counts[ZB_MOST_CLASSES];
    for (int i = 0; i < lanes->first[d + 1] - lanes->first[d]; i++) counts[i] = count[i];
    by = zb_grid_latest(front->lattice[d].grid, counts);
  } else {
    by = zb_lattice_latest(&front->lattice[d], count[0], count[1], count[2]);
  }
  return by < 0 ? by : by + lanes->frame[d];
}

// What does not fit now comes behind an op of its device that gives memory back.
static bool wait_for_memory(struct zb_front *front) {
  const struct zb_lanes *lanes = &front->lanes;
  for (int l = 0; l < lanes->lanes; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    const int d = lane->device, k = front->count[l];
    if (lane->bytes <= 0 || lane->kind == ZB_W || k == lane->count || memory_fits(front, lane)) continue;
    int64_t least = INT64_MAX;
    for (int other = lanes->first[d]; other < lanes->first[d + 1]; other++) {
      const struct zb_lane *gives = &lanes->lane[other];
      if (other == l || front->count[other] == gives->count) continue;
      if (gives->kind != ZB_W)
        least = zb_min(least, front->estimate[other] + gives->time);
      else if (zb_lane_is_ready(lanes, other, front->count))
        least = zb_min(least, front->clock[d] + gives->time);
    }
    if (least == INT64_MAX) return false;
    front->estimate[l] = zb_max(front->estimate[l], least);
    if (front->estimate[l] + lane->time > zb_lane_late(lanes, l, k)) return false;
  }
  return true;
}

// Earliest starts of the next F and B of every stage, if all before them comes at once.
static bool estimate(struct zb_front *front) {
  const struct zb_lanes *lanes = &front->lanes;
  for (int i = 0; i < lanes->flows; i++) {
    const int number = lanes->flow[i];
    const struct zb_lane *lane = &lanes->lane[number];
    const int k = front->count[number];
    if (k == lane->count) continue;
    int64_t start = front->clock[lane->device];
    if (lane->source >= 0) {
      start = zb_max(start, waiting(front, number) > 0 ? arrival(front, number, 0)
                                                       : front->estimate[lane->source] +
                                                             lanes->lane[lane->source].time + lane->delay);
    }
    for (int j = 0; j < 2; j++) {
      const int before = lane->before[j];
      if (before >= 0 && front->count[before] == k)
        start = zb_max(start, front->estimate[before] + lanes->lane[before].time);
    }
    if (start + lane->time > zb_lane_late(lanes, number, k)) return false;
    front->estimate[number] = start;
  }
  return wait_for_memory(front);
}

// Raises when a device counts as free; one that has only W left runs them. False: too late.
static bool settle_device(struct zb_front *front, int d, int64_t *cost, bool *done) {
  const struct zb_lanes *lanes = &front->lanes;
  bool flows_left = false, weights_wait = false;
  int64_t least = INT64_MAX, rest = 0;
  for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    const int left = lane->count - front->count[l];
    if (lane->kind == ZB_W) {
      rest += left * lane->time;
      weights_wait = weights_wait || (left > 0 && zb_lane_is_ready(lanes, l, front->count));
    } else if (left > 0) {
      flows_left = true;
      least = zb_min(least, front->estimate[l]);
    }
  }
  *done = !flows_left;
  if (flows_left) {
    if (!weights_wait) front->clock[d] = zb_max(front->clock[d], least);
    return true;
  }
  if (rest > 0) {
    front->clock[d] += rest;
    for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++)
      front->count[l] = (uint16_t)lanes->lane[l].count;
  }
  *cost = zb_max(*cost, front->clock[d] - lanes->origin[d]);
  return front->clock[d] <= lanes->horizon[d];
}

// The node at hand, packed.
struct candidate {
  uint64_t hash;
  int64_t cost, hand;
  int32_t weights;
  size_t words;
};

static bool pack_queues(struct zb_front *front, struct candidate *node, int64_t *word) {
  const struct zb_lanes *lanes = &front->lanes;
  for (int l = 0; l < lanes->lanes; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    if (lane->source < 0) continue;
    int64_t from = front->count[l] < lane->count ? front->estimate[l] : 0;
    const int queued = waiting(front, l), k = front->count[l];
    for (int i = 0; i < queued; i++) {
      const int64_t at = zb_max(from, arrival(front, l, i));
      from = at + lane->time;
      if (from > zb_lane_late(lanes, l, k + i)) return false;
      *word++ = at;
    }
  }
  node->words = (size_t)(word - front->packed);
  return true;
}

static bool pack(struct zb_front *front, struct candidate *node) {
  const struct zb_lanes *lanes = &front->lanes;
  if (!estimate(front)) return false;
  bool done[ZB_MOST_LANE_DEVICES];
  int64_t hand = INT64_MAX, sum = 0;
  int open = 0;
  for (int d = 0; d < lanes->devices; d++) {
    if (!settle_device(front, d, &node->cost, &done[d])) return false;
    if (done[d]) continue;
    const int64_t left = latest(front, d) - front->clock[d];
    if (left < 0) return false;
    hand = zb_min(hand, left);
    sum += left;
    open++;
  }
  node->hand = open ? 4 * hand + sum / open : 0;
  memcpy(front->packed, front->count, (size_t)lanes->lanes * sizeof *front->count);
  node->hash = 1469598103934665603u;
  node->weights = 0;
  for (int l = 0; l < lanes->lanes; l++) {
    if (lanes->lane[l].kind == ZB_W) {
      node->weights += front->count[l];
    } else {
      node->hash = (node->hash ^ front->count[l]) * 1099511628211u;
      node->hash ^= node->hash >> 29;
    }
  }
  int64_t *word = front->packed + count_words(front);
  for (int d = 0; d < lanes->devices; d++) *word++ = done[d] ? finished : front->clock[d];
  return pack_queues(front, node, word);
}

// Whether whatever completes Y completes X. Both have done the same F and B.
static bool kills(const struct zb_front *front, const struct candidate *x, const int64_t *x_data,
                  const struct candidate *y, const int64_t *y_data) {
  const struct zb_lanes *lanes = &front->lanes;
  if (x->weights < y->weights || x->cost > y->cost) return false;
  const size_t clocks = count_words(front), queues = clocks + (size_t)lanes->devices;
  for (size_t i = queues; i < x->words; i++)
    if (x_data[i] > y_data[i]) return false;
  const uint16_t *x_count = (const uint16_t *)x_data, *y_count = (const uint16_t *)y_data;
  for (int d = 0; d < lanes->devices; d++) {
    const int64_t free_at = x_data[clocks + (size_t)d];
    if (free_at == finished) continue;
    int64_t after = free_at;
    for (int l = lanes->first_weight[d]; l < lanes->first[d + 1]; l++)
      if (y_count[l] > x_count[l]) after += (y_count[l] - x_count[l]) * lanes->lane[l].time;
    if (after > y_data[clocks + (size_t)d]) return false;
  }
  return true;
}

static void write_row(struct zb_front *front, const int64_t *data, int32_t weights) {
  const int64_t *free_at = data + count_words(front);
  const int devices = front->lanes.devices;
  for (int d = 0; d < devices; d++) front->row[d / 4][d % 4] = (int32_t)(free_at[d] >> front->coarse);
  front->row[devices / 4][devices % 4] = -weights;
}

static bool same_flows(const struct zb_front *front, const uint16_t *x, const uint16_t *y) {
  const struct zb_lanes *lanes = &front->lanes;
  for (int i = 0; i < lanes->flows; i++)
    if (x[lanes->flow[i]] != y[lanes->flow[i]]) return false;
  return true;
}

static bool any(four x) {
  const two halves = (two)x;
  return (halves[0] | halves[1]) != 0;
}

// Whether no number of row x is greater than that of y, and the other way round.
static void compare_rows(const four *x, const four *y, size_t fours, bool *not_above, bool *not_below) {
  four above = {0}, below = {0};
  for (size_t i = 0; i < fours; i++) {
    above |= x[i] > y[i];
    below |= x[i] < y[i];
  }
  *not_above = !any(above);
  *not_below = !any(below);
}

static struct group *find_group(struct zb_front *front, struct layer *layer, uint64_t hash,
                                const uint16_t *count) {
  size_t at = hash & (layer->group_room - 1);
  for (;; at = (at + 1) & (layer->group_room - 1)) {
    struct group *group = &layer->group[at];
    if (group->count == 0) return group;
    if (group->hash == hash && same_flows(front, counts_of(group->node[0]), count)) return group;
  }
}

static bool put(struct zb_front *front, struct layer *layer, struct group *group, struct node *node,
                const four *row) {
  const size_t fours = front->row_fours;
  if (group->count == group->room) {
    const size_t room = group->room ? 2 * (size_t)group->room : 4;
    struct node **nodes = realloc(group->node, room * sizeof(struct node *));
    if (!nodes) return false;
    group->node = nodes;
    four *rows = realloc(group->row, room * fours * sizeof *rows);
    if (!rows) return false;
    group->row = rows;
    group->room = (int)room;
  }
  if (group->count == 0) layer->groups++;
  group->hash = node->hash;
  memcpy(group->row + (size_t)group->count * fours, row, fours * sizeof *row);
  group->node[group->count++] = node;
  return true;
}

static void swap_nodes(struct group *group, int i, int j, size_t fours) {
  struct node *const node = group->node[i];
  group->node[i] = group->node[j];
  group->node[j] = node;
  four *const x = group->row + (size_t)i * fours, *const y = group->row + (size_t)j * fours;
  for (size_t k = 0; k < fours; k++) {
    const four row = x[k];
    x[k] = y[k];
    y[k] = row;
  }
}

// Adds what is packed to a layer, unless a node of it kills it; and takes out what it kills.
static bool add(struct zb_front *front, struct layer *layer, const struct candidate *made, uint32_t before,
                int lane) {
  if (!grow_groups(layer) || !grow_nodes(layer)) return false;
  const size_t fours = front->row_fours;
  write_row(front, front->packed, made->weights);
  struct group *group = find_group(front, layer, made->hash, (const uint16_t *)front->packed);
  // A group never gets empty here: what is added takes the place of the last that is taken out.
  for (int i = 0; i < group->count; i++) {
    bool may_kill, may_die;
    compare_rows(group->row + (size_t)i * fours, front->row, fours, &may_kill, &may_die);
    if (!may_kill && !may_die) continue;
    struct node *node = group->node[i];
    const struct candidate known = {node->hash, node->cost, node->hand, node->weights, made->words};
    if (may_kill && kills(front, &known, node->data, made, front->packed)) {
      // What has killed kills again: it moves ahead.
      if (i > 0) swap_nodes(group, i, i / 2, fours);
      return true;
    }
    if (!may_die || !kills(front, made, front->packed, &known, node->data)) continue;
    node->killed = true;
    layer->alive--;
    if (group->count == 1) {
      // Stays until it is written over.
      group->count = 0;
      layer->groups--;
      break;
    }
    group->count--;
    group->node[i] = group->node[group->count];
    memcpy(group->row + (size_t)i * fours, group->row + (size_t)group->count * fours, fours * sizeof(four));
    i--;
  }
  struct node *node = take_bytes(layer, sizeof *node + made->words * sizeof *node->data);
  if (!node) return false;
  *node = (struct node){.hash = made->hash, .cost = made->cost, .hand = made->hand, .weights = made->weights};
  memcpy(node->data, front->packed, made->words * sizeof *node->data);
  if (!note_step(front, before, lane, &node->trail) || !put(front, layer, group, node, front->row))
    return false;
  layer->node[layer->nodes++] = node;
  layer->alive++;
  return true;
}

// The child that runs a lane's next op.
static bool run_op(struct zb_front *front, const struct node *parent, int number, int64_t end) {
  const struct zb_lanes *lanes = &front->lanes;
  const struct zb_lane *lane = &lanes->lane[number];
  const int d = lane->device;
  if (end > zb_lane_late(lanes, number, front->count[number])) return true;
  front->count[number]++;
  front->clock[d] = end;
  front->taken = lane->source >= 0 ? number : NOBODY;
  front->sent = lane->target;
  if (lane->target >= 0) front->sent_at = end + lanes->lane[lane->target].delay;
  struct candidate made = {.cost = parent->cost};
  if (!pack(front, &made)) return true;
  return add(front, lane->kind == ZB_W ? &front->now : &front->next, &made, parent->trail, number);
}

static bool expand(struct zb_front *front, const struct node *node) {
  const struct zb_lanes *lanes = &front->lanes;
  unpack(front, node);
  int64_t first_end = INT64_MAX, start;
  int chosen = NOBODY;
  for (int l = 0; l < lanes->lanes; l++) {
    if (!can_come_next(front, l, &start) || start + lanes->lane[l].time >= first_end) continue;
    first_end = start + lanes->lane[l].time;
    chosen = l;
  }
  if (chosen == NOBODY) return true;
  const int d = lanes->lane[chosen].device;
  int child[ZB_MOST_CLASSES], children = 0;
  int64_t end[ZB_MOST_CLASSES];
  for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++) {
    if (!can_come_next(front, l, &start) || (start >= first_end && l != chosen)) continue;
    child[children] = l;
    end[children++] = start + lanes->lane[l].time;
  }
  for (int i = 0; i < children; i++) {
    if (i > 0) unpack(front, node);
    if (!run_op(front, node, child[i], end[i])) return false;
  }
  return true;
}

// Layer by layer.

static int by_hand(const void *left, const void *right) {
  const struct node *x = *(struct node *const *)left, *y = *(struct node *const *)right;
  if (x->hand != y->hand) return x->hand > y->hand ? -1 : 1;
  return x->trail < y->trail ? -1 : x->trail > y->trail;
}

static int by_weights(const void *left, const void *right) {
  const struct node *x = *(struct node *const *)left, *y = *(struct node *const *)right;
  if (x->weights != y->weights) return x->weights < y->weights ? -1 : 1;
  return x->trail < y->trail ? -1 : x->trail > y->trail;
}

// The next layer becomes the current one, without what was killed and the worst of what is too much.
static bool go_on(struct zb_front *front) {
  const struct layer done = front->now;
  front->now = front->next;
  front->next = done;
  empty_layer(&front->next);
  struct layer *layer = &front->now;
  size_t alive = 0;
  for (size_t i = 0; i < layer->nodes; i++)
    if (!layer->node[i]->killed) layer->node[alive++] = layer->node[i];
  layer->nodes = alive;
  if (alive > front->most) {
    front->whole = false;
    qsort(layer->node, alive, sizeof(struct node *), by_hand);
    layer->nodes = front->most;
    layer->alive = front->most;
    // What was left out kills nothing.
    empty_groups(layer);
    for (size_t i = 0; i < layer->nodes; i++) {
      struct node *node = layer->node[i];
      write_row(front, node->data, node->weights);
      struct group *group = find_group(front, layer, node->hash, counts_of(node));
      if (!put(front, layer, group, node, front->row)) return false;
    }
  }
  // Those that have done least W first: what may kill one is there, mostly, before it is expanded.
  if (layer->nodes > 1) qsort(layer->node, layer->nodes, sizeof(struct node *), by_weights);
  front->worked = 0;
  front->layer_number++;
  return front->steps < front->sweep_at || sweep_trail(front);
}

// Word by word from behind; what a device still had to do when only W were left comes last.
static void write_orders(struct zb_front *front, const struct node *node, struct zb_orders *orders) {
  const struct zb_lanes *lanes = &front->lanes;
  for (int d = 0; d < lanes->devices; d++) orders->count[d] = 0;
  memset(front->count, 0, (size_t)lanes->lanes * sizeof *front->count);
  for (uint32_t at = node->trail; at != 0; at = front->step[at].before)
    orders->count[lanes->lane[front->step[at].lane].device]++;
  int left[ZB_MOST_LANE_DEVICES];
  memcpy(left, orders->count, (size_t)lanes->devices * sizeof *left);
  for (uint32_t at = node->trail; at != 0; at = front->step[at].before) {
    const int l = front->step[at].lane, d = lanes->lane[l].device;
    zb_orders_word(orders, d)[--left[d]] = lanes->lane[l].letter;
    front->count[l]++;
  }
  for (int l = 0; l < lanes->lanes; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    for (int k = front->count[l]; k < lane->count; k++)
      zb_orders_word(orders, lane->device)[orders->count[lane->device]++] = lane->letter;
  }
}

static enum zb_front_end end_of(struct zb_front *front, struct zb_orders *orders) {
  const struct node *best = NULL;
  for (size_t i = 0; i < front->now.nodes; i++) {
    const struct node *node = front->now.node[i];
    if (!node->killed && (!best || node->cost < best->cost)) best = node;
  }
  write_orders(front, best, orders);
  return ZB_FRONT_SOLVED;
}

enum zb_front_end zb_front_run(struct zb_front *front, int64_t work, const struct zb_halt *halt,
                               struct zb_orders *orders) {
  const int64_t enough = work < INT64_MAX - front->work ? front->work + work : INT64_MAX;
  for (;;) {
    if (front->now.alive == 0) return front->whole ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN;
    if (front->layer_number == front->layers) return end_of(front, orders);
    while (front->worked < front->now.nodes) {
      if (front->work >= enough) return ZB_FRONT_OPEN;
      if (front->work % 256 == 0 && zb_halted(halt)) return ZB_FRONT_STOPPED;
      const struct node *node = front->now.node[front->worked++];
      if (node->killed) continue;
      front->work++;
      if (!expand(front, node)) return ZB_FRONT_MEMORY;
      if ((front->now.blocks + front->next.blocks) * BLOCK_BYTES > most_bytes) return ZB_FRONT_MEMORY;
    }
    if (!go_on(front)) return ZB_FRONT_MEMORY;
  }
}

int64_t zb_front_work(const struct zb_front *front) { return front->work; }
bool zb_front_whole(const struct zb_front *front) { return front->whole; }

// Beginning and end.

struct zb_front *zb_front_create(const struct zb_chain *chain, enum zb_objective objective) {
  struct zb_front *front = calloc(1, sizeof *front);
  if (!front) return NULL;
  struct zb_lanes *lanes = &front->lanes;
  if (!zb_lanes_create(chain, objective, lanes)) {
    zb_front_free(front);
    return NULL;
  }
  const size_t devices = (size_t)lanes->devices, n = (size_t)lanes->lanes;
  // Every arrival that can wait: an op of each lane and microbatch at most.
  front->packed_room = count_words(front) + devices + n * (size_t)lanes->microbatches;
  front->lattice = calloc(devices, sizeof *front->lattice);
  front->count = calloc(n, sizeof *front->count);
  front->clock = calloc(devices, sizeof *front->clock);
  front->estimate = calloc(n, sizeof *front->estimate);
  front->queue = calloc(n, sizeof *front->queue);
  front->queued = calloc(n, sizeof *front->queued);
  front->packed = calloc(front->packed_room, sizeof *front->packed);
  front->row_fours = devices / 4 + 1;
  front->row = calloc(front->row_fours, sizeof *front->row);
  for (int i = 0; i < lanes->flows; i++) front->layers += lanes->lane[lanes->flow[i]].count;
  if (front->lattice && front->count && front->clock && front->estimate && front->queue && front->queued &&
      front->packed && front->row)
    return front;
  zb_front_free(front);
  return NULL;
}

void zb_front_free(struct zb_front *front) {
  if (!front) return;
  for (int d = 0; front->lattice && d < front->lanes.devices; d++) zb_lattice_free(&front->lattice[d]);
  free(front->lattice);
  free_layer(&front->now);
  free_layer(&front->next);
  free(front->step);
  free(front->count);
  free(front->clock);
  free(front->estimate);
  free(front->queue);
  free(front->queued);
  free(front->packed);
  free(front->row);
  zb_lanes_free(&front->lanes);
  free(front);
}

// Every device's table at the fixpoint.
static enum zb_sweep read_tables(struct zb_front *front, struct zb_state *state) {
  struct zb_lattice *const before = state->lattice;
  enum zb_sweep swept = ZB_SWEEP_KEPT;
  for (int d = 0; d < front->lanes.devices && swept == ZB_SWEEP_KEPT; d++) {
    front->lattice[d].halt = before->halt;
    front->lattice[d].most_states = before->most_states / (size_t)front->lanes.devices;
    state->lattice = &front->lattice[d];
    swept = zb_state_sweep(state, d);
    front->lattice[d].halt = NULL;
  }
  state->lattice = before;
  return swept;
}

enum zb_front_end zb_front_begin(struct zb_front *front, struct zb_state *state, size_t most) {
  struct zb_lanes *lanes = &front->lanes;
  empty_layer(&front->now);
  empty_layer(&front->next);
  front->most = most;
  front->whole = true;
  front->work = 0;
  front->worked = 0;
  front->layer_number = 0;
  front->steps = 0;
  front->sweep_at = least_trail;
  const bool poured = lanes->chunked && lanes->chunked->fluid;
  front->has_tables = false;
  if (!poured) {
    switch (read_tables(front, state)) {
    case ZB_SWEEP_KEPT:
      front->has_tables = true;
      break;
    case ZB_SWEEP_REFUTED:
      return ZB_FRONT_REFUTED;
    case ZB_SWEEP_STOPPED:
      return ZB_FRONT_STOPPED;
    default:
      break;
    }
  }
  zb_lanes_aim(lanes, state);
  int64_t horizon = 0;
  for (int d = 0; d < lanes->devices; d++) horizon = zb_max(horizon, lanes->horizon[d]);
  for (front->coarse = 0; horizon >> front->coarse > INT32_MAX;) front->coarse++;
  uint32_t nowhere;
  memset(front->count, 0, (size_t)lanes->lanes * sizeof *front->count);
  memset(front->queued, 0, (size_t)lanes->lanes * sizeof *front->queued);
  for (int d = 0; d < lanes->devices; d++) front->clock[d] = lanes->frame[d];
  front->taken = front->sent = NOBODY;
  struct candidate made = {.cost = 0};
  if (!note_step(front, 0, NOBODY, &nowhere)) return ZB_FRONT_MEMORY;
  if (pack(front, &made) && !add(front, &front->now, &made, 0, NOBODY)) return ZB_FRONT_MEMORY;
  // What starts from nothing is the trail's first step.
  if (front->now.nodes) front->now.node[0]->trail = 0;
  return ZB_FRONT_OPEN;
}
