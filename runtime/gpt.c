// gpt.c - model files.
#include "runtime/gpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/json_read.h"

enum { MODEL_BYTES_MOST = 1 << 20, STAGES_MOST = 1024, NUMBERS_MOST = 1 << 30 };

// Field, least, most, whether a file must say it.
#define SIZE_TABLE(X)                                                                                        \
  X(blocks, 1, 1000, true)                                                                                   \
  X(hidden, 1, 65536, true)                                                                                  \
  X(heads, 1, 1024, true)                                                                                    \
  X(sequence, 1, 65536, true)                                                                                \
  X(vocabulary, 256, 65536, false)                                                                           \
  X(samples, 1, 65536, false)

// Field, least and most; each bound itself is allowed, below 1 where it says so.
#define RATE_TABLE(X)                                                                                        \
  X(rate, 0, 1e6, "from 0 to 1e6")                                                                           \
  X(beta1, 1e-3, 0.999999, "from 0.001 to 0.999999")                                                         \
  X(beta2, 1e-3, 0.999999, "from 0.001 to 0.999999")                                                         \
  X(epsilon, 1e-20, 1, "from 1e-20 to 1")                                                                    \
  X(decay, 0, 1e3, "from 0 to 1000")                                                                         \
  X(clip, 0, 1e30, "from 0 to 1e30")

static const struct zb_adamw usual_adamw = {0.003, 0.9, 0.95, 1e-8, 0.1, 1.0};

static const char *const model_keys[] = {"zbsolve_model", "name",
#define X(field, least, most, required) #field,
                                         SIZE_TABLE(X)
#undef X
                                             "stages",
                                         "optimizer", NULL};
static const char *const optimizer_keys[] = {
#define X(field, least, most, expected) #field,
    RATE_TABLE(X)
#undef X
        NULL};

static enum zb_status read_size(const struct zb_json *root, const char *key, int least, int most,
                                bool required, int *value, struct zb_error *error) {
  const struct zb_json *member = zb_json_member(root, key);
  if (!member && !required) return ZB_OK;
  enum zb_status status = zb_json_require(root, key, NULL, "a whole number", &member, error);
  if (status != ZB_OK) return status;
  int64_t read;
  struct zb_json_place place = {NULL, key, 0};
  status = zb_json_read_integer(member, &place, least, most, &read, error);
  if (status == ZB_OK) *value = (int)read;
  return status;
}

static enum zb_status read_rate(const struct zb_json *object, const char *key, double least, double most,
                                const char *expected, double *value, struct zb_error *error) {
  const struct zb_json *member = zb_json_member(object, key);
  if (!member) return ZB_OK;
  struct zb_json_place parent = {NULL, "optimizer", 0}, place = {&parent, key, 0};
  if (zb_json_type(member) != ZB_JSON_NUMBER) return zb_json_fail_type(member, &place, "a number", error);
  double read = zb_json_number(member);
  if (!(read >= least && read <= most))
    return zb_json_fail(error, ZB_BAD_INPUT, &place, "%.15g is out of range, expected %s", read, expected);
  *value = read;
  return ZB_OK;
}

static enum zb_status read_optimizer(const struct zb_json *root, struct zb_adamw *adamw,
                                     struct zb_error *error) {
  const struct zb_json *object = zb_json_member(root, "optimizer");
  if (!object) return ZB_OK;
  struct zb_json_place place = {NULL, "optimizer", 0};
  enum zb_status status = zb_json_expect_object(object, &place, optimizer_keys, error);
#define X(field, least, most, expected)                                                                      \
  if (status == ZB_OK) status = read_rate(object, #field, least, most, expected, &adamw->field, error);
  RATE_TABLE(X)
#undef X
  return status;
}

static enum zb_status read_stages(const struct zb_json *root, struct zb_gpt *gpt, struct zb_error *error) {
  const struct zb_json *list = zb_json_member(root, "stages");
  if (!list) return ZB_OK;
  struct zb_json_place place = {NULL, "stages", 0}, entry = {&place, NULL, 0};
  if (zb_json_type(list) != ZB_JSON_LIST)
    return zb_json_fail_type(list, &place, "a list, how many blocks each stage holds", error);
  size_t count = zb_json_count(list);
  if (count < 1 || count > STAGES_MOST)
    return zb_json_fail(error, ZB_BAD_INPUT, &place, "a list of %zu, expected 1 to %d", count, STAGES_MOST);
  int sum = 0;
  for (const struct zb_json *child = zb_json_first(list); child; child = zb_json_next(child)) {
    int64_t blocks;
    enum zb_status status = zb_json_read_integer(child, &entry, 0, gpt->blocks, &blocks, error);
    if (status != ZB_OK) return status;
    gpt->blocks_of[entry.index++] = (int)blocks;
    sum += (int)blocks;
  }
  if (sum != gpt->blocks)
    return zb_json_fail(error, ZB_BAD_INPUT, &place, "%d blocks in all, expected the model's %d", sum,
                        gpt->blocks);
  gpt->stages = (int)count;
  return ZB_OK;
}

static enum zb_status read_model(const struct zb_json *root, struct zb_gpt *gpt, struct zb_error *error) {
  enum zb_status status = zb_json_expect_object(root, NULL, model_keys, error);
  if (status != ZB_OK) return status;
  int version = 0;
  status = read_size(root, "zbsolve_model", 1, 1, true, &version, error);
  const struct zb_json *name = zb_json_member(root, "name");
  if (status == ZB_OK && name) {
    const char *read;
    struct zb_json_place place = {NULL, "name", 0};
    status = zb_json_read_string(name, &place, &read, error);
    if (status == ZB_OK && strlen(read) >= sizeof gpt->name)
      return zb_json_fail(error, ZB_BAD_INPUT, &place, "%zu bytes, expected fewer than %zu", strlen(read),
                          sizeof gpt->name);
    if (status == ZB_OK) strcpy(gpt->name, read);
  }
#define X(field, least, most, required)                                                                      \
  if (status == ZB_OK) status = read_size(root, #field, least, most, required, &gpt->field, error);
  SIZE_TABLE(X)
#undef X
  if (status == ZB_OK) status = read_optimizer(root, &gpt->adamw, error);
  if (status == ZB_OK) status = read_stages(root, gpt, error);
  if (status != ZB_OK) return status;

  if (gpt->hidden % gpt->heads)
    return zb_fail(error, ZB_BAD_INPUT, "heads: %d heads do not divide hidden %d", gpt->heads, gpt->hidden);
  // Products take row and column counts as int, and no tensor should come near that.
  int64_t tokens = (int64_t)gpt->samples * gpt->sequence;
  int64_t widest = 4 * (int64_t)gpt->hidden > gpt->vocabulary ? 4 * (int64_t)gpt->hidden : gpt->vocabulary;
  if (tokens > NUMBERS_MOST / widest || 4 * (int64_t)gpt->hidden > NUMBERS_MOST / gpt->hidden ||
      tokens > NUMBERS_MOST / ((int64_t)gpt->heads * gpt->sequence))
    return zb_fail(error, ZB_BAD_INPUT, "sequence: one tensor of this model has more than %d numbers",
                   NUMBERS_MOST);
  return ZB_OK;
}

enum zb_status zb_gpt_read_text(const char *text, size_t size, struct zb_gpt *gpt, struct zb_error *error) {
  struct zb_json *root = NULL;
  struct zb_gpt read = {.name = "model", .vocabulary = 256, .samples = 1, .adamw = usual_adamw};
  enum zb_status status = zb_json_parse(text, size, ZB_JSON_DECIMALS, &root, error);
  if (status == ZB_OK) status = read_model(root, &read, error);
  if (status == ZB_OK) *gpt = read;
  zb_json_free(root);
  return status;
}

enum zb_status zb_gpt_read(const char *path, struct zb_gpt *gpt, struct zb_error *error) {
  struct zb_text text = {0};
  struct zb_error local;
  if (!error) error = &local;
  enum zb_status status = zb_file_read(path, MODEL_BYTES_MOST, &text, error);
  if (status == ZB_OK) {
    status = zb_gpt_read_text(text.data ? text.data : "", text.size, gpt, error);
    if (status != ZB_OK) zb_error_set_path(error, path);
  }
  zb_text_free(&text);
  return status;
}

void zb_gpt_smallest(int stages, struct zb_gpt *gpt) {
  *gpt = (struct zb_gpt){.name = "smallest",
                         .blocks = stages,
                         .hidden = 16,
                         .heads = 2,
                         .sequence = 16,
                         .vocabulary = 256,
                         .samples = 1,
                         .adamw = usual_adamw};
}

enum zb_status zb_gpt_cut(const struct zb_gpt *gpt, int stages, int *first, struct zb_error *error) {
  if (gpt->stages && gpt->stages != stages)
    return zb_fail(error, ZB_BAD_INPUT, "the model %s is cut into %d stages, the schedule has %d", gpt->name,
                   gpt->stages, stages);
  int unit = 0;
  for (int s = 0; s < stages; s++) {
    first[s] = unit;
    int blocks = gpt->stages ? gpt->blocks_of[s] : gpt->blocks / stages + (s < gpt->blocks % stages);
    unit += blocks + (s == 0);
  }
  first[stages] = unit + 1;
  return ZB_OK;
}
