// schedule.c - orders of ops: building, copying, naming.
#include "solver/model/schedule.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

const char *const zb_kind_word[4] = {"F", "B", "W", "BW"};

enum zb_status zb_builder_create(const struct zb_profile *profile, struct zb_schedule_builder *builder,
                                 struct zb_error *error) {
  size_t devices = (size_t)profile->devices;
  size_t capacity = (size_t)3 * (size_t)profile->chunks * (size_t)profile->microbatches;
  struct zb_schedule_builder b = {profile, capacity, calloc(devices, sizeof *b.count),
                                  malloc(devices * capacity * sizeof *b.ops)};
  if (!b.count || !b.ops) {
    zb_builder_free(&b);
    return zb_fail_memory(error);
  }
  *builder = b;
  return ZB_OK;
}

void zb_builder_append(struct zb_schedule_builder *builder, int stage, enum zb_kind kind, int microbatch) {
  size_t device = (size_t)builder->profile->device_of[stage];
  assert(builder->count[device] < builder->capacity);
  builder->ops[device * builder->capacity + builder->count[device]++] =
      (struct zb_op){stage, microbatch, kind};
}

void zb_builder_clear(struct zb_schedule_builder *builder) {
  memset(builder->count, 0, (size_t)builder->profile->devices * sizeof *builder->count);
}

static enum zb_status schedule_create(int devices, size_t ops, struct zb_schedule **schedule,
                                      struct zb_error *error) {
  struct zb_schedule *s = calloc(1, sizeof *s);
  if (s) {
    s->devices = devices;
    s->first = calloc((size_t)devices + 1, sizeof *s->first);
    s->ops = malloc((ops ? ops : 1) * sizeof *s->ops);
  }
  if (!s || !s->first || !s->ops) {
    zb_schedule_free(s);
    return zb_fail_memory(error);
  }
  *schedule = s;
  return ZB_OK;
}

enum zb_status zb_builder_finish(const struct zb_schedule_builder *builder, struct zb_schedule **schedule,
                                 struct zb_error *error) {
  size_t devices = (size_t)builder->profile->devices, total = 0;
  for (size_t d = 0; d < devices; d++) total += builder->count[d];
  struct zb_schedule *s = NULL;
  enum zb_status status = schedule_create((int)devices, total, &s, error);
  if (status != ZB_OK) return status;
  for (size_t d = 0; d < devices; d++) {
    memcpy(s->ops + s->first[d], builder->ops + d * builder->capacity, builder->count[d] * sizeof *s->ops);
    s->first[d + 1] = s->first[d] + builder->count[d];
  }
  *schedule = s;
  return ZB_OK;
}

void zb_builder_free(struct zb_schedule_builder *builder) {
  free(builder->count);
  free(builder->ops);
  builder->count = NULL;
  builder->ops = NULL;
}

enum zb_status zb_schedule_copy(const struct zb_schedule *schedule, struct zb_schedule **copy,
                                struct zb_error *error) {
  size_t ops = schedule->first[schedule->devices];
  struct zb_schedule *s = NULL;
  enum zb_status status = schedule_create(schedule->devices, ops, &s, error);
  if (status != ZB_OK) return status;
  memcpy(s->first, schedule->first, ((size_t)schedule->devices + 1) * sizeof *s->first);
  memcpy(s->ops, schedule->ops, ops * sizeof *s->ops);
  *copy = s;
  return ZB_OK;
}

void zb_schedule_free(struct zb_schedule *schedule) {
  if (!schedule) return;
  free(schedule->first);
  free(schedule->ops);
  free(schedule);
}

// Split where it costs no time against the fused pass and its B, which may grow memory while the
// stages below still hold theirs, fits.
static bool split_is_better(const struct zb_profile *p, int stage) {
  int device = p->device_of[stage];
  int64_t peak = p->static_bytes[device] + zb_max(0, p->b_bytes[stage]);
  for (int k = 0; k <= p->chunk_of[stage]; k++) peak += p->f_bytes[p->stage_at[device * p->chunks + k]];
  return peak <= p->limit_bytes[device] && p->bw_ns[stage] >= p->b_ns[stage] + p->w_ns[stage];
}

enum zb_status zb_schedule_sequential(const struct zb_profile *profile, struct zb_schedule **schedule,
                                      struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  enum zb_status status = zb_builder_create(profile, &builder, error);
  if (status != ZB_OK) return status;
  for (int j = 0; j < profile->microbatches; j++) {
    for (int s = 0; s < profile->stages; s++) zb_builder_append(&builder, s, ZB_F, j);
    for (int s = profile->stages - 1; s >= 0; s--) {
      bool split = split_is_better(profile, s);
      zb_builder_append(&builder, s, split ? ZB_B : ZB_BW, j);
      if (split) zb_builder_append(&builder, s, ZB_W, j);
    }
  }
  status = zb_builder_finish(&builder, schedule, error);
  zb_builder_free(&builder);
  return status;
}

int64_t zb_op_time(const struct zb_profile *p, struct zb_op op) {
  const int64_t *const times[4] = {p->f_ns, p->b_ns, p->w_ns, p->bw_ns};
  return times[op.kind][op.stage];
}

int64_t zb_op_memory(const struct zb_profile *p, struct zb_op op) {
  if (op.kind == ZB_BW) return -p->f_bytes[op.stage];
  const int64_t *const bytes[3] = {p->f_bytes, p->b_bytes, p->w_bytes};
  return bytes[op.kind][op.stage];
}

void zb_op_print(struct zb_op op, char *text) {
  snprintf(text, ZB_OP_TEXT, "%d%s%d", (int)op.stage, zb_kind_word[op.kind], (int)op.microbatch);
}

// A whole number without leading zeros; returns its length, 0 if there is none or it is out of range.
static size_t parse_index(const char *text, int32_t *value) {
  size_t length = 0;
  int64_t number = 0;
  for (; isdigit((unsigned char)text[length]); length++) {
    number = number * 10 + (text[length] - '0');
    if (number > INT32_MAX || (length == 1 && text[0] == '0')) return 0;
  }
  *value = (int32_t)number;
  return length;
}

size_t zb_op_parse(const char *text, struct zb_op *op) {
  struct zb_op parsed;
  size_t stage = parse_index(text, &parsed.stage);
  if (stage == 0) return 0;
  const char *c = text + stage;
  if (c[0] == 'B' && c[1] == 'W') {
    parsed.kind = ZB_BW;
    c++;
  } else if (*c == 'F' || *c == 'B' || *c == 'W') {
    parsed.kind = *c == 'F' ? ZB_F : *c == 'B' ? ZB_B : ZB_W;
  } else {
    return 0;
  }
  c++;
  size_t microbatch = parse_index(c, &parsed.microbatch);
  if (microbatch == 0) return 0;
  *op = parsed;
  return (size_t)(c - text) + microbatch;
}
