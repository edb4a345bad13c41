// flow_front.c - nodes at choices, expanded layer by layer.
//
// A layer is all kept nodes with as many F and B done. Between two choices any number of ops is forced, so a
// child goes to some later layer.
#include "solver/exact/flow_front.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/exact/flow_choice.h"
#include "solver/exact/flow_look.h"
#include "solver/exact/layer.h"

const char *const zb_word_fluid_fronts = "fluid-fronts";

// Most bytes of nodes.
static const size_t most_bytes = (size_t)1 << 30;

struct zb_flow_front {
  struct zb_flow_hand hand; // the node at hand
  int64_t *known;           // what looking ahead found of the node that is expanded
  struct zb_layer_shape shape;
  struct zb_paths paths;
  struct zb_layer *layer; // [layers + 1] by F and B done
  int layers, layer_number;
  size_t worked, most, bytes;
  int64_t work;
  bool begun, whole;
};

// Memory is only taken by F, and all W of a limited device are alike.
static bool stages_apply(const struct zb_chunked *chunked) {
  for (int s = 0; s < chunked->stages; s++) {
    const struct zb_stage *stage = &chunked->stage[s];
    const struct zb_chunked_device *device = &chunked->device[stage->device];
    if (stage->fused || (device->chunks > 1 && !device->weights_merged)) return false;
    if (device->room_bytes == ZB_NO_LIMIT) continue;
    if (stage->f_bytes < 0 || stage->b_bytes > 0 || stage->w_bytes > 0 ||
        stage->f_bytes + stage->b_bytes + stage->w_bytes < 0)
      return false;
  }
  return true;
}

bool zb_flow_front_applies(const struct zb_chain *chain, enum zb_objective objective) {
  if (!chain->chunked) return zb_front_proves(chain, objective);
  return zb_front_applies(chain, objective) && stages_apply(chain->chunked);
}

// Settles the node at hand and keeps it. False where memory ran out.
static bool keep(struct zb_flow_front *front, uint32_t before, struct zb_flow_choice choice) {
  int64_t score = 0;
  if (!zb_flow_settle(&front->hand)) return true;
  // Where all are kept, none is told apart.
  const size_t words = zb_flow_pack(&front->hand, front->most < SIZE_MAX ? &score : NULL);
  if (words == 0) return true;
  struct zb_layer *layer = &front->layer[zb_flow_done(&front->hand)];
  const size_t bytes = zb_layer_bytes(layer);
  if (zb_layer_add(layer, &front->shape, front->hand.packed, words, score, before,
                   (uint32_t)choice.act * ZB_MOST_CLASSES + choice.lane) == ZB_LAYER_MEMORY)
    return false;
  front->bytes += zb_layer_bytes(layer) - bytes;
  return front->bytes <= most_bytes;
}

static bool expand(struct zb_flow_front *front, const struct zb_kept *kept) {
  const size_t bytes = front->hand.found * sizeof *front->known;
  struct zb_flow_choice choice[ZB_MOST_CHOICES];
  int choices = 0;
  zb_flow_unpack(&front->hand, kept->word);
  if (!zb_flow_look_ahead(&front->hand)) return true;
  const int d = zb_flow_choose(&front->hand, choice, &choices);
  memcpy(front->known, front->hand.start, bytes);
  for (int i = 0; i < choices; i++) {
    if (i > 0) {
      zb_flow_unpack(&front->hand, kept->word);
      // A child is the same whichever number it has, or write_orders could not run it once more.
      memcpy(front->hand.start, front->known, bytes);
    }
    zb_flow_take(&front->hand, d, choice[i]);
    if (!keep(front, kept->path, choice[i])) return false;
  }
  return true;
}

// Runs the choices of a path once more.
static bool write_orders(struct zb_flow_front *front, uint32_t path, struct zb_orders *orders) {
  const size_t length = zb_paths_length(&front->paths, path);
  uint32_t *choice = malloc((length + 1) * sizeof *choice);
  if (!choice) return false;
  zb_paths_read(&front->paths, path, length, choice);
  for (int d = 0; d < front->hand.lanes.devices; d++) orders->count[d] = 0;
  zb_flow_start(&front->hand);
  front->hand.orders = orders;
  // The first choice is what leads to the first node: none.
  for (size_t i = 1; i <= length && zb_flow_settle(&front->hand); i++) {
    struct zb_flow_choice here[ZB_MOST_CHOICES];
    int choices;
    if (i == length || zb_flow_pack(&front->hand, NULL) == 0) break;
    zb_flow_unpack(&front->hand, front->hand.packed);
    if (!zb_flow_look_ahead(&front->hand)) break;
    const struct zb_flow_choice taken = {(unsigned char)(choice[i] / ZB_MOST_CLASSES),
                                         (unsigned char)(choice[i] % ZB_MOST_CLASSES)};
    zb_flow_take(&front->hand, zb_flow_choose(&front->hand, here, &choices), taken);
  }
  assert(zb_flow_done(&front->hand) == front->layers);
  front->hand.orders = NULL;
  free(choice);
  return true;
}

static enum zb_front_end end_of(struct zb_flow_front *front, struct zb_orders *orders, int64_t *cost) {
  // Where all is done only costs differ, and the least covers the others.
  const struct zb_kept *best = front->layer[front->layers].kept[0];
  *cost = best->word[front->shape.key + 2 * (size_t)front->hand.lanes.devices];
  return write_orders(front, best->path, orders) ? ZB_FRONT_SOLVED : ZB_FRONT_MEMORY;
}

static void close_layer(struct zb_flow_front *front, struct zb_layer *layer) {
  front->bytes -= zb_layer_bytes(layer);
  zb_layer_free(layer, &front->shape);
}

// Tables for the target, and the first node.
static enum zb_front_end start(struct zb_flow_front *front, const struct zb_halt *halt) {
  const struct zb_lanes *lanes = &front->hand.lanes;
  for (int d = 0; d < lanes->devices; d++) {
    if (zb_halted(halt)) return ZB_FRONT_STOPPED;
    if (!zb_fluid_table_fill(lanes, d, &front->hand.table[d])) return ZB_FRONT_MEMORY;
  }
  zb_flow_start(&front->hand);
  if (!keep(front, 0, (struct zb_flow_choice){0})) return ZB_FRONT_MEMORY;
  front->begun = true;
  return ZB_FRONT_OPEN;
}

enum zb_front_end zb_flow_front_run(struct zb_flow_front *front, int64_t work, const struct zb_halt *halt,
                                    struct zb_orders *orders, int64_t *cost) {
  const int64_t enough = work < INT64_MAX - front->work ? front->work + work : INT64_MAX;
  const enum zb_front_end started = front->begun ? ZB_FRONT_OPEN : start(front, halt);
  if (started != ZB_FRONT_OPEN) return started;
  for (;; front->layer_number++) {
    struct zb_layer *layer = &front->layer[front->layer_number];
    if (front->worked == 0 && zb_layer_close(layer, &front->shape, front->most)) front->whole = false;
    if (front->layer_number == front->layers) break;
    while (front->worked < layer->count) {
      if (front->work >= enough) return ZB_FRONT_OPEN;
      if (front->work % 256 == 0 && zb_halted(halt)) return ZB_FRONT_STOPPED;
      front->work++;
      if (!expand(front, layer->kept[front->worked++])) return ZB_FRONT_MEMORY;
    }
    front->worked = 0;
    close_layer(front, layer);
  }
  if (front->layer[front->layers].count > 0) return end_of(front, orders, cost);
  return front->whole ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN;
}

int64_t zb_flow_front_work(const struct zb_flow_front *front) { return front->work; }
bool zb_flow_front_whole(const struct zb_flow_front *front) { return front->whole; }

// Beginning and end.

struct zb_flow_front *zb_flow_front_create(const struct zb_chain *chain, enum zb_objective objective) {
  struct zb_flow_front *front = calloc(1, sizeof *front);
  if (!front) return NULL;
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  if (zb_flow_hand_open(chain, objective, &front->hand)) {
    front->shape =
        (struct zb_layer_shape){.key = front->hand.key_words, .numbers = 2 * p + 1, .paths = &front->paths};
    front->known = calloc(front->hand.found, sizeof *front->known);
    front->layers = front->hand.flows * (int)m;
    front->layer = calloc((size_t)front->layers + 1, sizeof *front->layer);
    if (front->known && front->layer) return front;
  }
  zb_flow_front_free(front);
  return NULL;
}

static void empty_layers(struct zb_flow_front *front) {
  for (int i = 0; front->layer && i <= front->layers; i++) zb_layer_free(&front->layer[i], &front->shape);
  front->bytes = 0;
}

void zb_flow_front_free(struct zb_flow_front *front) {
  if (!front) return;
  empty_layers(front);
  free(front->known);
  free(front->layer);
  zb_paths_free(&front->paths);
  zb_flow_hand_close(&front->hand);
  free(front);
}

enum zb_front_end zb_flow_front_begin(struct zb_flow_front *front, const struct zb_state *state,
                                      struct zb_flow_weights weights, size_t most) {
  struct zb_lanes *lanes = &front->hand.lanes;
  empty_layers(front);
  front->most = most;
  front->hand.weights = weights;
  front->whole = weights.fluid;
  front->begun = false;
  front->work = 0;
  front->worked = 0;
  front->layer_number = 0;
  zb_lanes_aim(lanes, state);
  front->shape.coarse = zb_lanes_coarse(lanes);
  return ZB_FRONT_OPEN;
}
