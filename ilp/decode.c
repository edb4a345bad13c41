// decode.c - from the values of a program's columns back to an order of ops on every device.
//
// Values are floating-point numbers from a solver, so nothing is read from them that they could get wrong:
// counts are rounded and kept monotone, an op is placed only after what it needs on its own device, and the
// result is a permutation of the device's ops whatever the values are.
#include <stdlib.h>

#include "ilp/formulate.h"
#include "solver/model/number.h"

static double literal_value(struct zb_literal literal, const double *value) {
  return literal.constant + (literal.sign != 0 ? literal.sign * value[literal.column] : 0.0);
}

static bool holds(struct zb_literal literal, const double *value) {
  return literal_value(literal, value) > 0.5;
}

// How many of the device's ops of kind `a` the values put before op `j` of kind `b`.
static int count_before(const struct zb_formulation *f, int d, enum zb_class a, enum zb_class b, int j,
                        const double *value) {
  const struct zb_range range = zb_formulation_range(f, d, a, b, j);
  int count = range.lo;
  for (int i = range.lo; i < range.hi; i++) count += holds(zb_formulation_before(f, d, a, i, b, j), value);
  return count;
}

// One device's order under construction: how many F and B, and which microbatch's W comes next.
struct walk {
  const struct zb_formulation *f;
  const double *value;
  struct zb_schedule_builder *builder;
  int device, stage, m;
  int forwards, backwards, weight;
  int64_t kept; // bytes
};

static bool is_fused(const struct walk *walk, int index) {
  return holds(zb_formulation_fused(walk->f, walk->device, index), walk->value);
}

static void skip_fused(struct walk *walk) {
  while (walk->weight < walk->m && is_fused(walk, walk->weight)) walk->weight++;
}

static void take(struct walk *walk, enum zb_class kind) {
  const struct zb_chain_device *device = &walk->f->chain->device[walk->device];
  if (kind == ZB_CLASS_F) {
    zb_builder_append(walk->builder, walk->stage, ZB_F, walk->forwards++);
    walk->kept += device->f_bytes;
  } else if (kind == ZB_CLASS_B) {
    const bool fused = is_fused(walk, walk->backwards);
    zb_builder_append(walk->builder, walk->stage, fused ? ZB_BW : ZB_B, walk->backwards++);
    walk->kept += fused ? -device->f_bytes : device->b_bytes;
  } else {
    zb_builder_append(walk->builder, walk->stage, ZB_W, walk->weight++);
    walk->kept += device->w_bytes;
    skip_fused(walk);
  }
}

// x says where each B goes among the F; each W goes behind the F and the B that precede it.
static void walk_by_order(struct walk *walk) {
  const struct zb_formulation *f = walk->f;
  const int d = walk->device, m = walk->m;
  int weight_f = 0, weight_b = 0; // F and B before the next W
  for (int looked = -1; walk->backwards < m || walk->weight < m;) {
    if (looked != walk->weight && walk->weight < m) {
      looked = walk->weight;
      weight_f = count_before(f, d, ZB_CLASS_F, ZB_CLASS_W, looked, walk->value);
      weight_b = count_before(f, d, ZB_CLASS_B, ZB_CLASS_W, looked, walk->value);
      if (weight_b <= looked) weight_b = looked + 1;
    }
    if (walk->weight < m && walk->forwards >= weight_f && walk->backwards >= weight_b) {
      take(walk, ZB_CLASS_W);
      continue;
    }
    const int k = walk->backwards;
    if (k == m) { // only a value against all others' can want more F than there are
      while (walk->forwards < m) take(walk, ZB_CLASS_F);
      weight_f = walk->forwards;
      continue;
    }
    const int x = count_before(f, d, ZB_CLASS_F, ZB_CLASS_B, k, walk->value);
    take(walk, walk->forwards < x || walk->forwards <= k ? ZB_CLASS_F : ZB_CLASS_B);
  }
}

static double end_value(const struct walk *walk, enum zb_class kind, int index) {
  return walk->value[walk->f->end[zb_formulation_op(walk->f, walk->device, kind, index)]];
}

// The op whose midpoint is next, with W first where memory would not do.
static void walk_by_time(struct walk *walk) {
  const struct zb_chain_device *device = &walk->f->chain->device[walk->device];
  const int m = walk->m;
  while (walk->forwards < m || walk->backwards < m || walk->weight < m) {
    const bool forward = walk->forwards < m, backward = walk->backwards < walk->forwards;
    const bool weight = walk->weight < walk->backwards;
    double best = 0.0;
    int kind = -1;
    if (backward) {
      best = end_value(walk, ZB_CLASS_B, walk->backwards) - (double)device->b / 2;
      kind = ZB_CLASS_B;
    }
    if (forward) {
      const double at = end_value(walk, ZB_CLASS_F, walk->forwards) - (double)device->f / 2;
      if (kind < 0 || at < best) {
        best = at;
        kind = ZB_CLASS_F;
      }
    }
    if (weight) {
      const double at = end_value(walk, ZB_CLASS_W, walk->weight) - (double)device->w / 2;
      if (kind < 0 || at < best) kind = ZB_CLASS_W;
    }
    const int64_t room = device->room_bytes;
    if (kind == ZB_CLASS_F && walk->kept > room - device->f_bytes) {
      if (weight) {
        kind = ZB_CLASS_W;
      } else if (backward) {
        kind = ZB_CLASS_B;
      }
    }
    if (kind == ZB_CLASS_B && weight && device->b_bytes > 0 && walk->kept > room - device->b_bytes)
      kind = ZB_CLASS_W;
    take(walk, (enum zb_class)kind);
  }
}

enum zb_status zb_formulation_decode(const struct zb_formulation *f, const struct zb_profile *profile,
                                     const double *value, bool by_time, struct zb_schedule_builder *builder,
                                     struct zb_schedule **schedule, struct zb_error *error) {
  zb_builder_clear(builder);
  for (int d = 0; d < f->chain->devices; d++) {
    struct walk walk = {.f = f, .value = value, .builder = builder, .device = d};
    walk.stage = profile->stage_at[d];
    walk.m = f->chain->microbatches;
    skip_fused(&walk);
    if (by_time) {
      walk_by_time(&walk);
    } else {
      walk_by_order(&walk);
    }
  }
  return zb_builder_finish(builder, schedule, error);
}
