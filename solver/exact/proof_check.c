// proof_check.c - the walk down a proof tree.
//
// Propagation goes on from the fixpoint of the node above and takes its changes back on the way up. Below a
// node that it refutes nothing is left to refute, so the subtree is only read. A tree may be deep: the way
// down is a stack, not recursion.
//
// Invariant: the state holds the restrictions of all entered nodes on the way, and is at a fixpoint unless
// one of them is refuted.
#include "solver/exact/proof_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/exact/flow_front.h"
#include "solver/exact/proof.h"
#include "solver/exact/window.h"

static const size_t most_states = (size_t)1 << 28; // 2 GiB

// An inner node on the way down.
struct inner {
  const struct zb_proof_item *item;
  size_t mark;  // of the state's trail before the current half
  bool above;   // the second half is being read
  bool entered; // the state has its restriction
};

struct walk {
  const struct zb_proof_list *tree;
  int64_t target_ns;
  struct zb_state state;
  struct inner *path;
  size_t depth, room;
  size_t refuted_at; // depth + 1 of the node on the way that is refuted, 0: none is
  size_t item, leaves;
  enum zb_proof_search search; // no tree: this refutes it
  struct zb_error *error;
};

// Restrictions.

static void restrict_window(struct zb_state *state, int device, enum zb_window low, int64_t index,
                            int64_t value, bool above) {
  if (above)
    zb_state_tighten(state, device, low, (int)index, value + 1);
  else
    zb_state_tighten(state, device, (enum zb_window)(low + 1), (int)index, value);
}

// Nothing meets it: an empty window.
static void restrict_to_nothing(struct zb_state *state, int device) {
  if (state->chain->chunked)
    zb_state_set(state, zb_state_array(state, device, zb_stage_array(0, ZB_STAGE_F_LATE)), -1);
  else
    zb_state_tighten(state, device, ZB_X_HI, 0, -1);
}

// The other way to say the same: A number v starts before op number k of class B does iff B number k starts
// after A number v, so "at most v of A are done when B k starts" is "at least k + 1 of B are done when A v
// starts". Where A v and B k may be one fused op, the halves are taken one wider, which refutes less.
static void restrict_dual(struct zb_state *state, enum zb_window low, const struct zb_proof_item *item,
                          bool above) {
  const bool one_op = low == ZB_Y_LO && state->chain->device[item->device].fused;
  if (above)
    restrict_window(state, item->device, low, item->value, item->index, false);
  else
    restrict_window(state, item->device, low, item->value, item->index - (one_op ? 1 : 0), true);
}

static void restrict_offset(struct zb_state *state, const struct zb_proof_item *item, bool above) {
  const size_t low = zb_state_offset_lo(state, item->device), high = zb_state_offset_hi(state, item->device);
  const int64_t ticks = item->value < 0 ? -1 : item->value / state->chain->tick_ns;
  if (above && ticks + 1 > state->cell[low]) zb_state_set(state, low, ticks + 1);
  if (!above && ticks < state->cell[high]) zb_state_set(state, high, ticks);
}

// With several stages a device: the pair of classes that the item speaks of, or its dual.

static int class_of(const struct zb_chunked_device *device, uint8_t kind, int chunk) {
  if (kind == ZB_CLASS_F) return zb_class_of_f(device, chunk);
  if (kind == ZB_CLASS_B) return zb_class_of_b(device, chunk);
  return zb_class_of_w(device, chunk == ZB_CHUNK_ALL ? 0 : chunk);
}

static void restrict_array(struct zb_state *state, int d, int array, int64_t index, int64_t value,
                           bool above) {
  if (index < 0 || index >= state->chain->microbatches) return;
  const size_t lo = zb_state_array(state, d, array) + (size_t)index;
  const size_t hi = lo + (size_t)state->chain->microbatches;
  if (above && value + 1 > state->cell[lo]) zb_state_set(state, lo, value + 1);
  if (!above && value < state->cell[hi]) zb_state_set(state, hi, value);
}

// A device counts its W together or apart.
static bool is_counted(const struct zb_chunked_device *device, uint8_t kind, int chunk) {
  return kind != ZB_CLASS_W || (chunk == ZB_CHUNK_ALL) == (device->weights_merged && device->chunks > 1);
}

static void restrict_chunked(struct zb_state *state, const struct zb_proof_item *item, bool above) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[item->device];
  const int counted = class_of(device, item->counted, item->counted_chunk);
  if (item->kind == ZB_ITEM_FUSED) {
    restrict_array(state, item->device, zb_stage_array(item->counted_chunk, ZB_STAGE_FUSED_LO), item->index,
                   item->value, above);
    return;
  }
  const int starting = class_of(device, item->starting, item->starting_chunk);
  if (starting < counted && item->starting != ZB_CLASS_W) {
    restrict_array(state, item->device, zb_pair_array(device, starting, counted), item->index, item->value,
                   above);
    return;
  }
  // As restrict_dual: "at most v of A when B k starts" is "at least k + 1 of B when A v starts".
  const bool fuses = item->starting == ZB_CLASS_W && item->counted == ZB_CLASS_B &&
                     (item->starting_chunk == ZB_CHUNK_ALL || item->starting_chunk == item->counted_chunk) &&
                     chunked->stage[device->stage[item->counted_chunk]].fused;
  const int array = zb_pair_array(device, counted, starting);
  if (above)
    restrict_array(state, item->device, array, item->value, item->index, false);
  else
    restrict_array(state, item->device, array, item->value, item->index - (fuses ? 1 : 0), true);
}

static void restrict_state(struct zb_state *state, const struct zb_proof_item *item, bool above) {
  // [counted][starting]; what is not a window of the state is the dual of one.
  static const struct {
    enum zb_window low;
    bool dual;
  } windows[ZB_CLASS_COUNT][ZB_CLASS_COUNT] = {
      [ZB_CLASS_F] = {[ZB_CLASS_B] = {ZB_X_LO, false}, [ZB_CLASS_W] = {ZB_Z_LO, true}},
      [ZB_CLASS_B] = {[ZB_CLASS_F] = {ZB_X_LO, true}, [ZB_CLASS_W] = {ZB_Y_LO, true}},
      [ZB_CLASS_W] = {[ZB_CLASS_F] = {ZB_Z_LO, false}, [ZB_CLASS_B] = {ZB_Y_LO, false}},
  };
  const struct zb_chunked *chunked = state->chain->chunked;
  int64_t most = item->kind == ZB_ITEM_FUSED ? 1 : state->chain->microbatches;
  if (chunked && item->kind == ZB_ITEM_COUNT)
    most = chunked->device[item->device]
               .class[class_of(&chunked->device[item->device], item->counted, item->counted_chunk)]
               .count;
  if (item->kind == ZB_ITEM_OFFSET)
    restrict_offset(state, item, above);
  else if (above ? item->value >= most : item->value < 0)
    restrict_to_nothing(state, item->device);
  else if (above ? item->value < 0 : item->value >= most)
    return;
  else if (chunked)
    restrict_chunked(state, item, above);
  else if (item->kind == ZB_ITEM_FUSED)
    restrict_window(state, item->device, ZB_FUSED_LO, item->index, item->value, above);
  else if (windows[item->counted][item->starting].dual)
    restrict_dual(state, windows[item->counted][item->starting].low, item, above);
  else
    restrict_window(state, item->device, windows[item->counted][item->starting].low, item->index, item->value,
                    above);
}

// The walk.

// The last turns of the way down: "the path <=3 >7" reads the halves from the root on.
static const char *describe(const struct walk *walk, char *text, size_t size) {
  enum { TURNS = 12 };
  const size_t from = walk->depth > TURNS ? walk->depth - TURNS : 0;
  size_t used = (size_t)snprintf(text, size, "%s",
                                 walk->depth == 0 ? "the root"
                                 : from           ? "the path .."
                                                  : "the path");
  for (size_t i = from; i < walk->depth && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, " %s%lld",
                             walk->path[i].above ? ">" : "<=", (long long)walk->path[i].item->value);
  return text;
}

static enum zb_status propagate(struct walk *walk) {
  switch (zb_state_propagate(&walk->state)) {
  case ZB_SWEEP_KEPT:
    return ZB_OK;
  case ZB_SWEEP_REFUTED:
    walk->refuted_at = walk->depth + 1;
    return ZB_OK;
  case ZB_SWEEP_STOPPED:
    return zb_fail(walk->error, ZB_NOT_PROVEN, "holds, but its bound was not redone: stopped before");
  case ZB_SWEEP_MEMORY:
    break;
  }
  return zb_fail(walk->error, ZB_NOT_PROVEN, "holds, but its bound was not redone: too little memory");
}

// Goes down into the current half of the last node on the way.
static enum zb_status enter(struct walk *walk) {
  struct inner *inner = &walk->path[walk->depth - 1];
  inner->entered = walk->refuted_at == 0;
  if (!inner->entered) return ZB_OK;
  inner->mark = zb_state_mark(&walk->state);
  restrict_state(&walk->state, inner->item, inner->above);
  return propagate(walk);
}

// After a subtree: on to its sibling, or up past all nodes whose second half this was.
static enum zb_status leave(struct walk *walk) {
  while (walk->depth > 0) {
    struct inner *inner = &walk->path[walk->depth - 1];
    if (walk->refuted_at == walk->depth + 1) walk->refuted_at = 0;
    if (inner->entered) zb_state_undo(&walk->state, inner->mark);
    if (!inner->above) {
      inner->above = true;
      return enter(walk);
    }
    walk->depth--;
  }
  return ZB_OK;
}

// Whether the split is about ops as this device counts them.
static bool is_about_windows(const struct walk *walk, const struct zb_proof_item *item) {
  const struct zb_chunked *chunked = walk->state.chain->chunked;
  if (!chunked || item->kind != ZB_ITEM_COUNT) return true;
  const struct zb_chunked_device *device = &chunked->device[item->device];
  return is_counted(device, item->counted, item->counted_chunk) &&
         is_counted(device, item->starting, item->starting_chunk);
}

static enum zb_status take_inner(struct walk *walk, const struct zb_proof_item *item) {
  if (!is_about_windows(walk, item))
    return zb_fail(
        walk->error, ZB_BAD_INPUT, "proof[%zu]: a W of %s, expected of %s", walk->item,
        walk->state.chain->chunked->device[item->device].weights_merged ? "one stage" : "all stages",
        walk->state.chain->chunked->device[item->device].weights_merged ? "all stages" : "one stage");
  if (walk->depth == walk->room) {
    const size_t room = walk->room ? 2 * walk->room : 64;
    struct inner *grown = realloc(walk->path, room * sizeof *grown);
    if (!grown) return zb_fail_memory(walk->error);
    walk->path = grown;
    walk->room = room;
  }
  walk->path[walk->depth++] = (struct inner){.item = item};
  return enter(walk);
}

static enum zb_status take_leaf(struct walk *walk) {
  char text[400];
  walk->leaves++;
  if (walk->refuted_at != 0) return ZB_OK;
  return zb_fail(walk->error, ZB_WRONG, "proof[%zu]: leaf %zu is not refuted for a cost of %lld: %s",
                 walk->item, walk->leaves, (long long)walk->target_ns, describe(walk, text, sizeof text));
}

static enum zb_status walk_tree(struct walk *walk) {
  bool open = true; // some subtree is still to come
  for (; walk->item < walk->tree->count; walk->item++) {
    const struct zb_proof_item *item = &walk->tree->item[walk->item];
    if (!open)
      return zb_fail(walk->error, ZB_WRONG, "proof[%zu]: items after the end of the tree", walk->item);
    enum zb_status status = item->kind == ZB_ITEM_LEAF ? take_leaf(walk) : take_inner(walk, item);
    if (status == ZB_OK && item->kind == ZB_ITEM_LEAF) {
      status = leave(walk);
      open = walk->depth > 0;
    }
    if (status != ZB_OK) return status;
  }
  char text[400];
  if (!open) return ZB_OK;
  return zb_fail(walk->error, ZB_WRONG, "proof: ends after %zu items with a half missing: %s", walk->item,
                 describe(walk, text, sizeof text));
}

static enum zb_front_end search_fronts(struct walk *walk, const struct zb_chain *chain,
                                       struct zb_orders *orders) {
  struct zb_front *front = zb_front_create(chain, walk->state.objective);
  if (!front) return ZB_FRONT_MEMORY;
  enum zb_front_end end = zb_front_begin(front, &walk->state, SIZE_MAX);
  while (end == ZB_FRONT_OPEN) end = zb_front_run(front, INT64_MAX, walk->state.lattice->halt, orders);
  zb_front_free(front);
  return end;
}

static enum zb_front_end search_fluid_fronts(struct walk *walk, const struct zb_chain *chain,
                                             struct zb_orders *orders) {
  int64_t cost;
  struct zb_flow_front *front = zb_flow_front_create(chain, walk->state.objective);
  if (!front) return ZB_FRONT_MEMORY;
  enum zb_front_end end =
      zb_flow_front_begin(front, &walk->state, (struct zb_flow_weights){.fluid = true}, SIZE_MAX);
  while (end == ZB_FRONT_OPEN)
    end = zb_flow_front_run(front, INT64_MAX, walk->state.lattice->halt, orders, &cost);
  zb_flow_front_free(front);
  return end;
}

static bool layers_prove(const struct walk *walk, const struct zb_chain *chain, enum zb_objective objective) {
  return walk->search == ZB_BY_FRONTS ? zb_front_proves(chain, objective)
                                      : zb_flow_front_applies(chain, objective);
}

// Redoes what front.h and flow_front.h prove.
static enum zb_status search_layers(struct walk *walk, const struct zb_chain *chain) {
  struct zb_orders orders = {0};
  const enum zb_status status = zb_orders_create(chain, &orders, walk->error);
  if (status != ZB_OK) return status;
  const enum zb_front_end end = walk->search == ZB_BY_FRONTS ? search_fronts(walk, chain, &orders)
                                                             : search_fluid_fronts(walk, chain, &orders);
  zb_orders_free(&orders);
  if (end == ZB_FRONT_REFUTED) return ZB_OK;
  if (end == ZB_FRONT_SOLVED)
    return zb_fail(walk->error, ZB_WRONG, "bound_ns is %lld, but there is a schedule of cost %lld or less%s",
                   (long long)walk->target_ns + 1, (long long)walk->target_ns,
                   walk->search == ZB_BY_FLUID_FRONTS ? " with fluid W" : "");
  return zb_fail(walk->error, ZB_NOT_PROVEN, "holds, but its bound was not redone: %s",
                 end == ZB_FRONT_MEMORY ? "its layers take too much memory" : "time is up");
}

static enum zb_status run(struct walk *walk, const struct zb_chain *chain) {
  // Every cost is a whole number of ticks.
  zb_state_reset(&walk->state, walk->target_ns / chain->tick_ns);
  walk->state.recording = true;
  walk->state.to_fixpoint = true;
  enum zb_status status = propagate(walk);
  if (status != ZB_OK) return status;
  if (walk->tree && walk->tree->count > 0) return walk_tree(walk);
  if (walk->refuted_at != 0) return ZB_OK;
  if (walk->search != ZB_NO_SEARCH) return search_layers(walk, chain);
  return zb_fail(walk->error, ZB_WRONG,
                 "bound_ns is %lld, but propagation does not refute %lld and there is no proof tree",
                 (long long)walk->target_ns + 1, (long long)walk->target_ns);
}

enum zb_status zb_proof_check(const struct zb_profile *profile, enum zb_objective objective, int64_t bound_ns,
                              const struct zb_proof_list *tree, const char *relaxation,
                              const struct zb_deadline *deadline, struct zb_error *error) {
  const struct zb_halt halt = {.deadline = deadline};
  struct zb_lattice lattice = {.halt = &halt, .most_states = most_states};
  struct walk walk = {.tree = tree, .target_ns = bound_ns - 1, .error = error};
  struct zb_chain *chain = NULL;
  if (bound_ns <= 0) return ZB_OK; // no cost is negative
  // A period may lie between two multiples of what divides the times, so its ticks divide the target, too.
  const int64_t whole_ns = objective == ZB_PERIOD ? walk.target_ns : 0;
  if (relaxation && strcmp(relaxation, zb_word_fronts) == 0) walk.search = ZB_BY_FRONTS;
  if (relaxation && strcmp(relaxation, zb_word_fluid_fronts) == 0) walk.search = ZB_BY_FLUID_FRONTS;
  const bool searched = walk.search != ZB_NO_SEARCH;
  if (searched && tree && tree->count > 0)
    return zb_fail(error, ZB_WRONG, "proof: a tree beside relaxation %s, which needs none", relaxation);
  if (relaxation && !searched && strcmp(relaxation, zb_word_fluid) != 0)
    return zb_fail(error, ZB_WRONG, "relaxation: %.60s is no word that a bound may relax by", relaxation);
  enum zb_status status = zb_chain_create(profile, whole_ns, &chain, error);
  if (status == ZB_UNKNOWN)
    return zb_fail(error, ZB_NOT_PROVEN, "holds, but its bound was not redone: too many stages a device");
  if (status == ZB_OK && searched && !layers_prove(&walk, chain, objective))
    status =
        zb_fail(error, ZB_WRONG, "relaxation: %s proves nothing for this profile and objective", relaxation);
  else if (status == ZB_OK && chain->chunked)
    chain->chunked->fluid = relaxation && !searched;
  else if (status == ZB_OK && relaxation && !searched)
    status = zb_fail(error, ZB_WRONG, "relaxation: %s is about several stages a device", relaxation);
  if (status == ZB_OK) status = zb_state_open(chain, objective, &lattice, &walk.state, error);
  if (status == ZB_OK) status = run(&walk, chain);
  free(walk.path);
  zb_state_close(&walk.state);
  zb_lattice_free(&lattice);
  zb_chain_free(chain);
  return status;
}
