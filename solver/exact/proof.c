// proof.c - splits and the trees they make.
#include "solver/exact/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// Lower window of a variable; its upper one is the next.
static enum zb_window lower_window(enum zb_split_kind kind) {
  static const enum zb_window windows[] = {
      [ZB_SPLIT_X] = ZB_X_LO, [ZB_SPLIT_Y] = ZB_Y_LO, [ZB_SPLIT_Z] = ZB_Z_LO, [ZB_SPLIT_FUSED] = ZB_FUSED_LO};
  return windows[kind];
}

void zb_split_apply(struct zb_state *state, const struct zb_split *split, int side) {
  size_t lo, hi;
  if (split->kind == ZB_SPLIT_OFFSET) {
    lo = zb_state_offset_lo(state, split->device);
    hi = zb_state_offset_hi(state, split->device);
  } else {
    lo = zb_state_cell(state, split->device, lower_window(split->kind), split->index);
    hi = zb_state_cell(state, split->device, (enum zb_window)(lower_window(split->kind) + 1), split->index);
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

static int print_split(const struct zb_split *split, int64_t tick_ns, char *text) {
  static const char *const classes[] = {
      [ZB_SPLIT_X] = "\"F\",\"B\"", [ZB_SPLIT_Y] = "\"W\",\"B\"", [ZB_SPLIT_Z] = "\"W\",\"F\""};
  if (split->kind == ZB_SPLIT_OFFSET) {
    return snprintf(text, SPLIT_TEXT, "[\"offset\",%d,\"\",\"\",0,%" PRId64 "]", split->device,
                    split->value * tick_ns);
  }
  if (split->kind == ZB_SPLIT_FUSED) {
    return snprintf(text, SPLIT_TEXT, "[\"fused\",%d,\"B\",\"\",%d,%" PRId64 "]", split->device, split->index,
                    split->value);
  }
  return snprintf(text, SPLIT_TEXT, "[\"n\",%d,%s,%d,%" PRId64 "]", split->device, classes[split->kind],
                  split->index, split->value);
}

enum zb_status zb_proof_print(const struct zb_proof *proof, int64_t tick_ns, char **result,
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
      length += (size_t)print_split(&node->split, tick_ns, text + length);
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
