// front.c - the layers, and which children a partial schedule has.
//
// A layer is all kept partial schedules with as many F and B done. Those of the next layer come from an F or
// a B; a W stays in its layer, at the end of the list that is worked through.
//
// Invariant: whatever schedule meets the target and starts with a node that was ever made also starts, but
// for the order of what is free to move, with one that is not covered or was expanded; until something is
// left out.
#include "solver/exact/front.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/front_hand.h"
#include "solver/exact/layer.h"

const char *const zb_word_fronts = "fronts";

enum { NOBODY = -1 };

// Most bytes of nodes in two layers.
static const size_t most_bytes = (size_t)1 << 29;

struct zb_front {
  struct zb_front_hand hand; // the node at hand
  struct zb_layer_shape shape;
  struct zb_paths paths;
  struct zb_layer now, next;
  int layer_number, layers; // of F and B in all
  size_t worked, most;      // worked: of now
  int64_t work;
  bool whole;
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

// Packs the node at hand and keeps it. False where memory ran out.
static bool keep(struct zb_front *front, struct zb_layer *layer, uint32_t before, uint32_t choice) {
  int64_t score;
  const size_t words = zb_front_hand_pack(&front->hand, &score);
  return words == 0 || zb_layer_add(layer, &front->shape, front->hand.packed, words, score, before, choice) !=
                           ZB_LAYER_MEMORY;
}

static bool expand(struct zb_front *front, const struct zb_kept *kept) {
  struct zb_front_hand *hand = &front->hand;
  const struct zb_lanes *lanes = &hand->lanes;
  zb_front_hand_unpack(hand, kept->word);
  int64_t first_end = INT64_MAX, start;
  int chosen = NOBODY;
  for (int l = 0; l < lanes->lanes; l++) {
    if (!zb_front_hand_can_come_next(hand, l, &start) || start + lanes->lane[l].time >= first_end) continue;
    first_end = start + lanes->lane[l].time;
    chosen = l;
  }
  if (chosen == NOBODY) return true;
  const int d = lanes->lane[chosen].device;
  int child[ZB_MOST_CLASSES], children = 0;
  int64_t end[ZB_MOST_CLASSES];
  for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++) {
    if (!zb_front_hand_can_come_next(hand, l, &start) || (start >= first_end && l != chosen)) continue;
    child[children] = l;
    end[children++] = start + lanes->lane[l].time;
  }
  for (int i = 0; i < children; i++) {
    if (i > 0) zb_front_hand_unpack(hand, kept->word);
    if (!zb_front_hand_run(hand, child[i], end[i])) continue;
    struct zb_layer *layer = lanes->lane[child[i]].kind == ZB_W ? &front->now : &front->next;
    if (!keep(front, layer, kept->path, (uint32_t)child[i])) return false;
  }
  return true;
}

// Layer by layer.

static int by_weights(const void *left, const void *right) {
  const struct zb_kept *x = *(struct zb_kept *const *)left, *y = *(struct zb_kept *const *)right;
  // W done in all are what comes first.
  if (x->word[0] != y->word[0]) return x->word[0] < y->word[0] ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

// The next layer becomes the current one.
static void go_on(struct zb_front *front) {
  zb_layer_free(&front->now, &front->shape);
  front->now = front->next;
  front->next = (struct zb_layer){0};
  if (zb_layer_trim(&front->now, &front->shape, front->most)) front->whole = false;
  // Those that have done least W first: what may cover one is there, mostly, before it is expanded.
  if (front->now.count > 1) qsort(front->now.kept, front->now.count, sizeof(struct zb_kept *), by_weights);
  front->worked = 0;
  front->layer_number++;
}

static void write_op(const struct zb_lanes *lanes, int l, struct zb_orders *orders) {
  const struct zb_lane *lane = &lanes->lane[l];
  zb_orders_word(orders, lane->device)[orders->count[lane->device]++] = lane->letter;
}

// What a device still had to do when only W were left comes last. False where memory ran out.
static bool write_orders(struct zb_front *front, uint32_t path, struct zb_orders *orders) {
  const struct zb_lanes *lanes = &front->hand.lanes;
  const size_t length = zb_paths_length(&front->paths, path);
  uint16_t *const count = front->hand.count;
  uint32_t *choice = malloc((length + 1) * sizeof *choice);
  if (!choice) return false;
  zb_paths_read(&front->paths, path, length, choice);
  for (int d = 0; d < lanes->devices; d++) orders->count[d] = 0;
  memset(count, 0, (size_t)lanes->lanes * sizeof *count);
  // The first choice is what leads to the first node: none.
  for (size_t i = 1; i < length; i++) {
    write_op(lanes, (int)choice[i], orders);
    count[choice[i]]++;
  }
  free(choice);
  for (int l = 0; l < lanes->lanes; l++)
    for (int k = count[l]; k < lanes->lane[l].count; k++) write_op(lanes, l, orders);
  return true;
}

enum zb_front_end zb_front_run(struct zb_front *front, int64_t work, const struct zb_halt *halt,
                               struct zb_orders *orders) {
  const int64_t enough = work < INT64_MAX - front->work ? front->work + work : INT64_MAX;
  for (;;) {
    if (front->now.count == 0) return front->whole ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN;
    if (front->layer_number == front->layers) {
      // Where all is done only costs differ, and the least covers the others.
      return write_orders(front, front->now.kept[0]->path, orders) ? ZB_FRONT_SOLVED : ZB_FRONT_MEMORY;
    }
    while (front->worked < front->now.count) {
      if (front->work >= enough) return ZB_FRONT_OPEN;
      if (front->work % 256 == 0 && zb_halted(halt)) return ZB_FRONT_STOPPED;
      const struct zb_kept *kept = front->now.kept[front->worked++];
      if (kept->covered) continue;
      front->work++;
      if (!expand(front, kept)) return ZB_FRONT_MEMORY;
      if (zb_layer_bytes(&front->now) + zb_layer_bytes(&front->next) > most_bytes) return ZB_FRONT_MEMORY;
    }
    go_on(front);
  }
}

int64_t zb_front_work(const struct zb_front *front) { return front->work; }
bool zb_front_whole(const struct zb_front *front) { return front->whole; }

// Beginning and end.

struct zb_front *zb_front_create(const struct zb_chain *chain, enum zb_objective objective) {
  struct zb_front *front = calloc(1, sizeof *front);
  if (!front) return NULL;
  if (!zb_front_hand_open(chain, objective, &front->hand)) {
    zb_front_free(front);
    return NULL;
  }
  const struct zb_lanes *lanes = &front->hand.lanes;
  for (int i = 0; i < lanes->flows; i++) front->layers += lanes->lane[lanes->flow[i]].count;
  // Rows are of clocks, W and the cost.
  front->shape = (struct zb_layer_shape){.aside = front->hand.aside_words,
                                         .key = front->hand.key_words,
                                         .numbers = (size_t)lanes->devices + 2,
                                         .paths = &front->paths};
  return front;
}

static void empty_layers(struct zb_front *front) {
  zb_layer_free(&front->now, &front->shape);
  zb_layer_free(&front->next, &front->shape);
}

void zb_front_free(struct zb_front *front) {
  if (!front) return;
  empty_layers(front);
  zb_paths_free(&front->paths);
  zb_front_hand_close(&front->hand);
  free(front);
}

enum zb_front_end zb_front_begin(struct zb_front *front, struct zb_state *state, size_t most) {
  const struct zb_lanes *lanes = &front->hand.lanes;
  empty_layers(front);
  front->most = most;
  front->whole = true;
  front->work = 0;
  front->worked = 0;
  front->layer_number = 0;
  switch (zb_front_hand_aim(&front->hand, state)) {
  case ZB_SWEEP_REFUTED:
    return ZB_FRONT_REFUTED;
  case ZB_SWEEP_STOPPED:
    return ZB_FRONT_STOPPED;
  default:
    break;
  }
  front->shape.coarse = zb_lanes_coarse(lanes);
  zb_front_hand_start(&front->hand);
  return keep(front, &front->now, 0, 0) ? ZB_FRONT_OPEN : ZB_FRONT_MEMORY;
}
