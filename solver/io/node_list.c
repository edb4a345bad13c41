// node_list.c - node lists out and in; both ways hold the orders against what the fork wants.
#include "solver/io/node_list.h"

#include <stdlib.h>
#include <string.h>

#include "solver/io/json.h"
#include "solver/io/json_read.h"

static const char *const node_keys[] = {"type", "stage", "microbatch", "chunk", "layer_group_idx", NULL};

// What the fork would misread, NULL where it would not. `position` is the first such op's.
struct demand {
  int stages, microbatches;
  const struct zb_schedule *schedule;
};

enum { NOT_SEEN, SPLIT, FUSED };

static enum zb_status find_fault(const struct demand *demand, const char **fault, size_t *position,
                                 struct zb_error *error) {
  const struct zb_schedule *schedule = demand->schedule;
  const size_t m = (size_t)demand->microbatches, stages = (size_t)demand->stages;
  int64_t *place = calloc(stages * m, sizeof *place); // of each F among its stage's
  int64_t *last = malloc(3 * stages * sizeof *last);  // of the stage's latest F, B or BW, and W
  unsigned char *backward = calloc(m, 1);
  enum zb_status status = place && last && backward ? ZB_OK : zb_fail_memory(error);
  *fault = NULL;
  for (size_t i = 0; status == ZB_OK && i < 3 * stages; i++) last[i] = -1;
  for (size_t i = 0; status == ZB_OK && !*fault && i < schedule->first[schedule->devices]; i++) {
    const struct zb_op op = schedule->ops[i];
    const size_t s = (size_t)op.stage, pass = s * m + (size_t)op.microbatch;
    *position = i;
    if (op.kind == ZB_F) {
      place[pass] = ++last[s];
      continue;
    }
    int64_t *latest = &last[(op.kind == ZB_W ? 2 : 1) * stages + s];
    if (place[pass] <= *latest)
      *fault = "its stage runs this pass in another order of microbatches than its F";
    *latest = place[pass];
    const unsigned char way = op.kind == ZB_BW ? FUSED : SPLIT;
    if (backward[op.microbatch] != NOT_SEEN && backward[op.microbatch] != way)
      *fault = "another stage has this microbatch's backward split, or fused, where this one does not";
    backward[op.microbatch] = way;
  }
  free(place);
  free(last);
  free(backward);
  return status;
}

enum zb_status zb_node_list_write(const struct zb_export_input *input, struct zb_export_output *output,
                                  struct zb_error *error) {
  const struct zb_profile *profile = input->answer->profile;
  const struct zb_schedule *schedule = input->answer->schedule;
  const struct demand demand = {profile->stages, profile->microbatches, schedule};
  const char *fault = NULL;
  size_t position = 0;
  if (zb_placement_find(profile->device_of, profile->devices, profile->stages) == ZB_LIST)
    return zb_fail(error, ZB_BAD_INPUT, "placement %s: the fork runs chain, loop and v only",
                   zb_placement_word(profile->placement));
  enum zb_status status = find_fault(&demand, &fault, &position, error);
  if (status == ZB_OK && fault) {
    char op[ZB_OP_TEXT];
    zb_op_print(schedule->ops[position], op);
    status = zb_fail(error, ZB_BAD_INPUT, "%s: a node list cannot carry it: %s", op, fault);
  }
  if (status != ZB_OK) return status;
  struct zb_text *out = &output->text;
  zb_text_put(out, "[\n");
  for (int d = 0; d < schedule->devices; d++) {
    zb_text_put(out, "  [\n");
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const struct zb_op op = schedule->ops[i];
      zb_text_print(out,
                    "    {\"type\": \"%s\", \"stage\": %d, \"microbatch\": %d, \"chunk\": %d, "
                    "\"layer_group_idx\": %d}%s\n",
                    zb_kind_word[op.kind], d, (int)op.microbatch, profile->chunk_of[op.stage], (int)op.stage,
                    i + 1 < schedule->first[d + 1] ? "," : "");
    }
    zb_text_put(out, d + 1 < schedule->devices ? "  ],\n" : "  ]\n");
  }
  zb_text_put(out, "]\n");
  zb_text_put(&output->notes, "stage is the rank, chunk the place on it, layer_group_idx the stage\n");
  return zb_text_status(out, error);
}

// One node; *chunk is what it says.
static enum zb_status read_node(const struct zb_json *node, const struct zb_json_place *place, int rank,
                                struct zb_op *op, int64_t *chunk, struct zb_error *error) {
  const struct zb_json *member = NULL;
  struct zb_json_place here = {place, "type", 0};
  const char *type = NULL;
  enum zb_status status = zb_json_expect_object(node, place, node_keys, error);
  if (status == ZB_OK) status = zb_json_require(node, "type", place, "F, B, W or BW", &member, error);
  if (status == ZB_OK) status = zb_json_read_string(member, &here, &type, error);
  if (status != ZB_OK) return status;
  int kind = 0;
  while (kind < 4 && strcmp(type, zb_kind_word[kind]) != 0) kind++;
  char shown[ZB_SHOWN];
  if (kind == 4)
    return zb_json_fail(error, ZB_BAD_INPUT, &here, "\"%s\" is unknown, expected F, B, W or BW",
                        zb_json_shown(type, shown));
  int64_t numbers[4] = {0};
  for (int k = 0; k < 4 && status == ZB_OK; k++) {
    here.key = node_keys[k + 1];
    status = zb_json_require(node, here.key, place, "a whole number", &member, error);
    if (status == ZB_OK) status = zb_json_read_integer(member, &here, 0, INT32_MAX - 1, &numbers[k], error);
  }
  if (status != ZB_OK) return status;
  if (numbers[0] != rank)
    return zb_json_fail(error, ZB_WRONG, place, "stage is %lld, expected the rank, %d", (long long)numbers[0],
                        rank);
  *op = (struct zb_op){(int32_t)numbers[3], (int32_t)numbers[1], (enum zb_kind)kind};
  *chunk = numbers[2];
  return ZB_OK;
}

static enum zb_status fail_list(const struct zb_json *node, const struct zb_json_place *place,
                                struct zb_error *error) {
  return zb_json_fail_type(node, place, "a list of nodes a rank", error);
}

// The number of nodes of all ranks.
static enum zb_status count_nodes(const struct zb_json *root, int *ranks, size_t *nodes,
                                  struct zb_error *error) {
  if (zb_json_type(root) != ZB_JSON_LIST) return fail_list(root, NULL, error);
  struct zb_json_place place = {NULL, NULL, 0};
  *ranks = 0;
  *nodes = 0;
  for (const struct zb_json *rank = zb_json_first(root); rank; rank = zb_json_next(rank), place.index++) {
    if (zb_json_type(rank) != ZB_JSON_LIST) return fail_list(rank, &place, error);
    if (!zb_json_first(rank)) return zb_json_fail(error, ZB_BAD_INPUT, &place, "a rank without nodes");
    *nodes += zb_json_count(rank);
    (*ranks)++;
  }
  if (*ranks == 0) return zb_fail(error, ZB_BAD_INPUT, "no ranks, expected a list of nodes a rank");
  return ZB_OK;
}

// Each node's chunk is its stage's place among those of its rank, counted by their stages.
static enum zb_status check_chunks(const struct zb_file_orders *orders, const int64_t *chunk,
                                   struct zb_error *error) {
  const struct zb_schedule *schedule = orders->schedule;
  enum zb_status status = ZB_OK;
  int *next = calloc((size_t)schedule->devices, sizeof *next);
  int *place = calloc((size_t)orders->stages, sizeof *place);
  if (!next || !place) status = zb_fail_memory(error);
  for (int s = 0; status == ZB_OK && s < orders->stages; s++) place[s] = next[orders->device_of[s]]++;
  for (size_t i = 0; status == ZB_OK && i < schedule->first[schedule->devices]; i++) {
    const int s = schedule->ops[i].stage;
    if (chunk[i] != place[s])
      status = zb_file_orders_fail(orders, i, error,
                                   "chunk is %lld, but layer_group_idx %d is number %d of its rank",
                                   (long long)chunk[i], s, place[s]);
  }
  free(next);
  free(place);
  return status;
}

static enum zb_status check_demands(struct zb_file_orders *orders, const int64_t *chunk,
                                    struct zb_error *error) {
  enum zb_status status = zb_file_orders_check(orders, error);
  if (status == ZB_OK) status = check_chunks(orders, chunk, error);
  if (status != ZB_OK) return status;
  const struct demand demand = {orders->stages, orders->microbatches, orders->schedule};
  const char *fault = NULL;
  size_t position = 0;
  status = find_fault(&demand, &fault, &position, error);
  if (status != ZB_OK || !fault) return status;
  char op[ZB_OP_TEXT];
  zb_op_print(orders->schedule->ops[position], op);
  return zb_file_orders_fail(orders, position, error, "%s: %s", op, fault);
}

static enum zb_status read_ranks(const struct zb_json *root, struct zb_file_orders *orders, int64_t *chunk,
                                 struct zb_error *error) {
  struct zb_json_place rank_place = {NULL, NULL, 0};
  size_t at = 0;
  for (const struct zb_json *rank = zb_json_first(root); rank; rank = zb_json_next(rank)) {
    struct zb_json_place place = {&rank_place, NULL, 0};
    for (const struct zb_json *node = zb_json_first(rank); node; node = zb_json_next(node), place.index++) {
      orders->place[at] = (uint32_t)place.index;
      enum zb_status status =
          read_node(node, &place, (int)rank_place.index, &orders->schedule->ops[at], &chunk[at], error);
      if (status != ZB_OK) return status;
      at++;
    }
    orders->schedule->first[++rank_place.index] = at;
  }
  return ZB_OK;
}

enum zb_status zb_node_list_read(const char *text, size_t size, struct zb_file_orders *orders,
                                 struct zb_text *notes, struct zb_error *error) {
  (void)notes;
  struct zb_json *root = NULL;
  int64_t *chunk = NULL;
  int ranks = 0;
  size_t nodes = 0;
  enum zb_status status = zb_json_parse(text, size, ZB_JSON_INTEGERS, &root, error);
  if (status == ZB_OK) status = count_nodes(root, &ranks, &nodes, error);
  if (status == ZB_OK) status = zb_file_orders_create(ranks, nodes, orders, error);
  if (status == ZB_OK) {
    orders->places = ZB_PLACES_LISTS;
    chunk = calloc(nodes, sizeof *chunk);
    status = chunk ? read_ranks(root, orders, chunk, error) : zb_fail_memory(error);
  }
  if (status == ZB_OK) status = check_demands(orders, chunk, error);
  free(chunk);
  zb_json_free(root);
  return status;
}
