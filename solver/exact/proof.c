// proof.c - splits and the trees they make.
#include "solver/exact/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int zb_split_arrays(const struct zb_state *state, enum zb_split_kind kind, int d) {
  if (!state->chain->chunked) return 1;
  const struct zb_chunked_device *device = &state->chain->chunked->device[d];
  const int ordered = 2 * device->chunks, weights = device->classes - ordered;
  return kind == ZB_SPLIT_X       ? ordered * (ordered - 1) / 2
         : kind == ZB_SPLIT_Y     ? ordered * weights
         : kind == ZB_SPLIT_FUSED ? device->chunks
                                  : 0;
}

static struct zb_variables of_chain(const struct zb_state *state, enum zb_split_kind kind, int d) {
  static const struct {
    enum zb_window lo, early;
  } by_kind[] = {[ZB_SPLIT_X] = {ZB_X_LO, ZB_B_EARLY},
                 [ZB_SPLIT_Y] = {ZB_Y_LO, ZB_B_EARLY},
                 [ZB_SPLIT_Z] = {ZB_Z_LO, ZB_F_EARLY},
                 [ZB_SPLIT_FUSED] = {ZB_FUSED_LO, ZB_B_EARLY}};
  const int64_t *lo = &state->cell[zb_state_cell(state, d, by_kind[kind].lo, 0)];
  return (struct zb_variables){(int)by_kind[kind].lo, lo, lo + state->chain->microbatches,
                               &state->cell[zb_state_cell(state, d, by_kind[kind].early, 0)]};
}

struct zb_variables zb_split_variables(const struct zb_state *state, enum zb_split_kind kind, int d,
                                       int number) {
  if (!state->chain->chunked) return of_chain(state, kind, d);
  const struct zb_chunked_device *device = &state->chain->chunked->device[d];
  const int ordered = 2 * device->chunks;
  int starting = 0, array;
  if (kind == ZB_SPLIT_FUSED) {
    starting = zb_class_of_b(device, number);
    array = zb_stage_array(number, ZB_STAGE_FUSED_LO);
  } else {
    // Rows of the triangle of pairs, or columns of W.
    const int from = kind == ZB_SPLIT_Y ? ordered : 1, to = kind == ZB_SPLIT_Y ? device->classes : ordered;
    for (int first = from;; starting++) {
      first = kind == ZB_SPLIT_Y ? ordered : starting + 1;
      if (number < to - first) {
        array = zb_pair_array(device, starting, first + number);
        break;
      }
      number -= to - first;
    }
  }
  const struct zb_op_class *class = &device->class[starting];
  const enum zb_stage_window early = class->kind == ZB_F ? ZB_STAGE_F_EARLY : ZB_STAGE_B_EARLY;
  const int64_t *lo = &state->cell[zb_state_array(state, d, array)];
  return (struct zb_variables){array, lo, lo + state->chain->microbatches,
                               &state->cell[zb_state_array(state, d, zb_stage_array(class->chunk, early))]};
}

void zb_split_apply(struct zb_state *state, const struct zb_split *split, int side) {
  size_t lo, hi;
  if (split->kind == ZB_SPLIT_OFFSET) {
    lo = zb_state_offset_lo(state, split->device);
    hi = zb_state_offset_hi(state, split->device);
  } else {
    lo = zb_state_array(state, split->device, split->array) + (size_t)split->index;
    hi = lo + (size_t)state->chain->microbatches;
  }
  if (side == 0) {
    if (split->value < state->cell[hi]) zb_state_set(state, hi, split->value);
  } else {
    if (split->value + 1 > state->cell[lo]) zb_state_set(state, lo, split->value + 1);
  }
}

int32_t zb_proof_add(struct zb_proof *proof, const struct zb_split *split) {
  if (proof->count == proof->capacity) {
    const size_t capacity = proof->capacity ? 2 * proof->capacity : 256;
    struct zb_proof_node *grown =
        capacity < INT32_MAX ? realloc(proof->node, capacity * sizeof *grown) : NULL;
    if (!grown) return ZB_PROOF_LEAF;
    proof->node = grown;
    proof->capacity = capacity;
  }
  proof->node[proof->count] = (struct zb_proof_node){*split, {ZB_PROOF_LEAF, ZB_PROOF_LEAF}};
  return (int32_t)proof->count++;
}

void zb_proof_free(struct zb_proof *proof) {
  free(proof->node);
  *proof = (struct zb_proof){0};
}

#define SPLIT_TEXT 96

// A class as contract.md writes it: with the stage's position where a device has several.
static void print_class(const struct zb_chunked_device *device, int class, char text[16]) {
  static const char *const kinds[] = {[ZB_F] = "F", [ZB_B] = "B", [ZB_W] = "W"};
  const struct zb_op_class *at = &device->class[class];
  if (device->chunks > 1 && at->chunk >= 0)
    snprintf(text, 16, "%d%s", at->chunk, kinds[at->kind]);
  else
    snprintf(text, 16, "%s", kinds[at->kind]);
}

static int print_chunked(const struct zb_split *split, const struct zb_chunked_device *device, char *text) {
  char counted[16], starting[16];
  for (int i = 0; i < 2 * device->chunks; i++) {
    print_class(device, i, starting);
    if (split->kind == ZB_SPLIT_FUSED && split->array == zb_stage_array(i, ZB_STAGE_FUSED_LO)) {
      return snprintf(text, SPLIT_TEXT, "[\"fused\",%d,\"%s\",\"\",%d,%" PRId64 "]", split->device, starting,
                      split->index, split->value);
    }
    for (int j = i + 1; j < device->classes && split->kind != ZB_SPLIT_FUSED; j++) {
      if (zb_pair_array(device, i, j) != split->array) continue;
      print_class(device, j, counted);
      return snprintf(text, SPLIT_TEXT, "[\"n\",%d,\"%s\",\"%s\",%d,%" PRId64 "]", split->device, counted,
                      starting, split->index, split->value);
    }
  }
  return 0;
}

static int print_split(const struct zb_split *split, const struct zb_chain *chain, char *text) {
  static const char *const classes[] = {
      [ZB_SPLIT_X] = "\"F\",\"B\"", [ZB_SPLIT_Y] = "\"W\",\"B\"", [ZB_SPLIT_Z] = "\"W\",\"F\""};
  if (split->kind == ZB_SPLIT_OFFSET) {
    return snprintf(text, SPLIT_TEXT, "[\"offset\",%d,\"\",\"\",0,%" PRId64 "]", split->device,
                    split->value * chain->tick_ns);
  }
  if (chain->chunked) return print_chunked(split, &chain->chunked->device[split->device], text);
  if (split->kind == ZB_SPLIT_FUSED) {
    return snprintf(text, SPLIT_TEXT, "[\"fused\",%d,\"B\",\"\",%d,%" PRId64 "]", split->device, split->index,
                    split->value);
  }
  return snprintf(text, SPLIT_TEXT, "[\"n\",%d,%s,%d,%" PRId64 "]", split->device, classes[split->kind],
                  split->index, split->value);
}

enum zb_status zb_proof_print(const struct zb_proof *proof, const struct zb_chain *chain, char **result,
                              struct zb_error *error) {
  *result = NULL;
  if (proof->count == 0) return ZB_OK;
  // Every inner node is one split and a comma, every leaf "0,"; there is one leaf more than inner nodes.
  char *text = malloc(proof->count * (SPLIT_TEXT + 3) + 8);
  int32_t *pending = malloc((proof->count + 2) * sizeof *pending);
  if (!text || !pending) {
    free(text);
    free(pending);
    return zb_fail_memory(error);
  }
  size_t length = 0, depth = 0;
  text[length++] = '[';
  pending[depth++] = 0;
  while (depth > 0) {
    const int32_t at = pending[--depth];
    if (at == ZB_PROOF_LEAF) {
      text[length++] = '0';
    } else {
      const struct zb_proof_node *node = &proof->node[at];
      length += (size_t)print_split(&node->split, chain, text + length);
      pending[depth++] = node->child[1];
      pending[depth++] = node->child[0];
    }
    text[length++] = ',';
  }
  text[length - 1] = ']';
  text[length] = '\0';
  free(pending);
  *result = text;
  return ZB_OK;
}
