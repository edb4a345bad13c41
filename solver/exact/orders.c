// orders.c - words to order variables, words to timed schedules.
#include "solver/exact/orders.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/chunked_orders.h"

enum zb_status zb_orders_create(const struct zb_chain *chain, struct zb_orders *orders,
                                struct zb_error *error) {
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  const int stages = chain->chunked ? chain->chunked->stages / chain->devices : 1;
  *orders = (struct zb_orders){.chunked = chain->chunked,
                               .devices = chain->devices,
                               .microbatches = chain->microbatches,
                               .room = 3 * chain->microbatches * stages};
  orders->kind = calloc(p * 3 * m * (size_t)stages, sizeof *orders->kind);
  orders->count = calloc(p, sizeof *orders->count);
  if (orders->kind && orders->count) return ZB_OK;
  zb_orders_free(orders);
  return zb_fail_memory(error);
}

void zb_orders_free(struct zb_orders *orders) {
  free(orders->kind);
  free(orders->count);
  *orders = (struct zb_orders){0};
}

void zb_orders_copy(struct zb_orders *to, const struct zb_orders *from) {
  const size_t p = (size_t)from->devices;
  memcpy(to->kind, from->kind, p * (size_t)from->room * sizeof *to->kind);
  memcpy(to->count, from->count, p * sizeof *to->count);
}

void zb_orders_from_schedule(const struct zb_chain *chain, const struct zb_schedule *schedule,
                             struct zb_orders *orders) {
  if (chain->chunked) {
    zb_chunked_from_schedule(chain->chunked, schedule, orders);
    return;
  }
  for (int d = 0; d < chain->devices; d++) {
    unsigned char *word = zb_orders_word(orders, d);
    int count = 0;
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const enum zb_kind kind = schedule->ops[i].kind;
      if (kind == ZB_BW && !chain->device[d].fused) {
        word[count++] = ZB_B;
        word[count++] = ZB_W;
      } else {
        word[count++] = (unsigned char)kind;
      }
    }
    orders->count[d] = count;
  }
}

static void fix(struct zb_state *state, int device, enum zb_window lo, enum zb_window hi, int index,
                int value) {
  zb_state_tighten(state, device, lo, index, value);
  zb_state_tighten(state, device, hi, index, value);
}

void zb_orders_keep(struct zb_state *state, const struct zb_orders *orders, int device, int from, int to) {
  if (orders->chunked) {
    zb_chunked_keep(state, orders, device, from, to);
    return;
  }
  const unsigned char *word = zb_orders_word(orders, device);
  int forwards = 0, backwards = 0, weights = 0;
  for (int i = 0; i < orders->count[device]; i++) {
    const bool keep = i < from || i >= to;
    switch (word[i]) {
    case ZB_F:
      if (keep) fix(state, device, ZB_Z_LO, ZB_Z_HI, forwards, weights);
      forwards++;
      break;
    case ZB_W:
      weights++;
      break;
    default:
      if (keep) {
        fix(state, device, ZB_X_LO, ZB_X_HI, backwards, forwards);
        fix(state, device, ZB_Y_LO, ZB_Y_HI, backwards, weights);
        fix(state, device, ZB_FUSED_LO, ZB_FUSED_HI, backwards, word[i] == ZB_BW);
      }
      backwards++;
      if (word[i] == ZB_BW) weights++;
    }
  }
}

enum zb_status zb_timer_open(const struct zb_profile *profile, struct zb_timer *timer,
                             struct zb_error *error) {
  *timer = (struct zb_timer){.profile = profile};
  return zb_builder_create(profile, &timer->builder, error);
}

void zb_timer_close(struct zb_timer *timer) {
  if (timer->profile) zb_builder_free(&timer->builder);
  zb_timeline_free(&timer->timeline);
  *timer = (struct zb_timer){0};
}

static void append_word(struct zb_schedule_builder *builder, int stage, const unsigned char *word,
                        int count) {
  // A fused backward leaves no W behind; `next_weight` walks over the words' backwards to skip it.
  int forwards = 0, backwards = 0, weight_microbatch = 0, scanned = 0;
  for (int i = 0; i < count; i++) {
    switch (word[i]) {
    case ZB_F:
      zb_builder_append(builder, stage, ZB_F, forwards++);
      break;
    case ZB_B:
      zb_builder_append(builder, stage, ZB_B, backwards++);
      break;
    case ZB_BW:
      zb_builder_append(builder, stage, ZB_BW, backwards++);
      break;
    default:
      for (bool found = false; !found; scanned++) {
        found = word[scanned] == ZB_B;
        if (found || word[scanned] == ZB_BW) weight_microbatch++;
      }
      zb_builder_append(builder, stage, ZB_W, weight_microbatch - 1);
    }
  }
}

enum zb_status zb_timer_cost(struct zb_timer *timer, enum zb_objective objective,
                             const struct zb_orders *orders, int64_t *cost_ns, struct zb_schedule **result,
                             struct zb_error *error) {
  zb_builder_clear(&timer->builder);
  for (int d = 0; d < orders->devices; d++) {
    const unsigned char *word = zb_orders_word(orders, d);
    if (orders->chunked)
      zb_chunked_append(orders->chunked, &timer->builder, d, word, orders->count[d]);
    else
      append_word(&timer->builder, timer->profile->stage_at[d], word, orders->count[d]);
  }
  struct zb_schedule *schedule = NULL;
  enum zb_status status = zb_builder_finish(&timer->builder, &schedule, error);
  if (status != ZB_OK) return status;
  status = zb_timeline_compute(timer->profile, schedule, &timer->timeline, error);
  if (status == ZB_OK && objective == ZB_PERIOD) {
    status = zb_timeline_period(timer->profile, schedule, &timer->timeline, error);
  }
  if (status == ZB_OK) {
    *cost_ns = zb_timeline_cost(&timer->timeline, objective);
    if (result) {
      *result = schedule;
      schedule = NULL;
    }
  }
  zb_schedule_free(schedule);
  return status;
}
