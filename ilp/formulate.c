// formulate.c - the columns: what the windows say of every op, and which orders they leave open.
//
// Invariant: every order of the chain's ops that meets the state (or, without one, the target) is a point of
// the program, and its times are one of that point's.
#include "ilp/formulate.h"

#include <stdio.h>
#include <stdlib.h>

#include "solver/model/number.h"

static struct zb_span *span_at(const struct zb_formulation *f, int d, enum zb_class kind, int index) {
  return &f->span[zb_formulation_op(f, d, kind, index)];
}

// Least and most ticks of an op.
static int64_t least_time(const struct zb_formulation *f, int d, enum zb_class kind) {
  const struct zb_chain_device *device = &f->chain->device[d];
  if (kind == ZB_CLASS_F) return device->f;
  if (kind == ZB_CLASS_B) return f->identity[d] ? zb_min(device->b, device->bw) : device->b;
  return f->identity[d] ? 0 : device->w;
}

static void spans_from_target(struct zb_formulation *f, int d) {
  const int64_t horizon = zb_chain_horizon(f->chain, f->objective, d, f->target);
  for (int kind = 0; kind < ZB_CLASSES; kind++) {
    const int64_t time = least_time(f, d, (enum zb_class)kind);
    for (int i = 0; i < f->chain->microbatches; i++)
      *span_at(f, d, (enum zb_class)kind, i) = (struct zb_span){0, horizon - time, time, horizon};
  }
}

// The state has no windows of W: they follow from those of F and B and from the counts y and z, which say
// of every B and F how many W precede it.
static void weight_spans(struct zb_formulation *f, const struct zb_state *state, int d) {
  const int m = f->chain->microbatches;
  const int64_t horizon = zb_chain_horizon(f->chain, f->objective, d, f->target),
                w = least_time(f, d, ZB_CLASS_W);
  for (int i = 0; i < m; i++) {
    int64_t early = span_at(f, d, ZB_CLASS_B, i)->end_early, late = horizon;
    for (int k = 0; k < m && !f->identity[d]; k++) {
      const struct zb_span *b = span_at(f, d, ZB_CLASS_B, k), *forward = span_at(f, d, ZB_CLASS_F, k);
      if (zb_state_get(state, d, ZB_Y_HI, k) <= i) early = zb_max(early, b->end_early);
      if (zb_state_get(state, d, ZB_Z_HI, k) <= i) early = zb_max(early, forward->end_early);
      if (zb_state_get(state, d, ZB_Y_LO, k) > i) late = zb_min(late, b->start_late);
      if (zb_state_get(state, d, ZB_Z_LO, k) > i) late = zb_min(late, forward->start_late);
    }
    *span_at(f, d, ZB_CLASS_W, i) = (struct zb_span){early, late - w, early + w, late};
  }
  for (int i = 1; i < m && !f->identity[d]; i++) {
    struct zb_span *at = span_at(f, d, ZB_CLASS_W, i);
    at->start_early = zb_max(at->start_early, at[-1].end_early);
    at->end_early = at->start_early + w;
  }
  for (int i = m - 2; i >= 0 && !f->identity[d]; i--) {
    struct zb_span *at = span_at(f, d, ZB_CLASS_W, i);
    at->end_late = zb_min(at->end_late, at[1].start_late);
    at->start_late = at->end_late - w;
  }
}

static void spans_from_state(struct zb_formulation *f, const struct zb_state *state, int d) {
  const int64_t time = f->chain->device[d].f;
  for (int i = 0; i < f->chain->microbatches; i++) {
    const int64_t early = zb_state_get(state, d, ZB_F_EARLY, i), late = zb_state_get(state, d, ZB_F_LATE, i);
    *span_at(f, d, ZB_CLASS_F, i) = (struct zb_span){early, late - time, early + time, late};
    *span_at(f, d, ZB_CLASS_B, i) =
        (struct zb_span){zb_state_get(state, d, ZB_B_EARLY, i), zb_state_get(state, d, ZB_B_LATE_START, i),
                         zb_state_get(state, d, ZB_B_EARLY_END, i), zb_state_get(state, d, ZB_B_LATE, i)};
  }
  weight_spans(f, state, d);
}

// ZB_IS_TRUE or ZB_IS_FALSE where the order is known, 0 where it is open.
static int known_order(const struct zb_formulation *f, const struct zb_state *state, int d, enum zb_pair pair,
                       int i, int j) {
  // What every order has: F j before B j before W j, and indices in turn.
  if (pair == ZB_PAIR_X && i <= j) return ZB_IS_TRUE;
  if (pair != ZB_PAIR_X && i >= j) return ZB_IS_FALSE;
  static const enum zb_class first[ZB_PAIRS] = {ZB_CLASS_F, ZB_CLASS_W, ZB_CLASS_W};
  static const enum zb_class second[ZB_PAIRS] = {ZB_CLASS_B, ZB_CLASS_B, ZB_CLASS_F};
  static const enum zb_window least[ZB_PAIRS] = {ZB_X_LO, ZB_Y_LO, ZB_Z_LO};
  static const enum zb_window most[ZB_PAIRS] = {ZB_X_HI, ZB_Y_HI, ZB_Z_HI};
  if (state && (pair == ZB_PAIR_X || !f->identity[d])) {
    if (zb_state_get(state, d, least[pair], j) > i) return ZB_IS_TRUE;
    if (zb_state_get(state, d, most[pair], j) <= i) return ZB_IS_FALSE;
  }
  const struct zb_span *a = span_at(f, d, first[pair], i), *b = span_at(f, d, second[pair], j);
  if (a->end_early > b->start_late) return ZB_IS_FALSE;
  if (b->end_early > a->start_late) return ZB_IS_TRUE;
  return 0;
}

static void note_open(struct zb_formulation *f, struct zb_open_order order) {
  if (f->open_orders == f->open_room) {
    const size_t room = f->open_room ? 2 * f->open_room : 256;
    struct zb_open_order *grown = realloc(f->open, room * sizeof *grown);
    if (!grown) {
      f->program.failed = true;
      return;
    }
    f->open = grown;
    f->open_room = room;
  }
  f->open[f->open_orders++] = order;
}

static void add_orders(struct zb_formulation *f, const struct zb_state *state, int d) {
  static const char letter[ZB_PAIRS] = {'x', 'y', 'z'};
  const int m = f->chain->microbatches;
  char name[ZB_ILP_NAME];
  f->pairs += 3 * (int64_t)m * (m - 1) / 2;
  for (int pair = 0; pair < ZB_PAIRS; pair++) {
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < m; j++) {
        int known = known_order(f, state, d, (enum zb_pair)pair, i, j);
        if (known == 0) {
          snprintf(name, sizeof name, "%c%d_%d_%d", letter[pair], d, i, j);
          known = zb_ilp_program_column(&f->program, 0, 1, true, name);
          f->binaries++;
          note_open(f, (struct zb_open_order){known, d, (enum zb_pair)pair, i, j});
        }
        f->order[zb_formulation_order(f, d, (enum zb_pair)pair, i, j)] = known;
      }
    }
  }
}

static void find_ranges(struct zb_formulation *f, int d) {
  const int m = f->chain->microbatches;
  struct zb_range *range = &f->range[(size_t)d * ZB_CLASSES * ZB_CLASSES * (size_t)m];
  for (int a = 0; a < ZB_CLASSES; a++) {
    for (int b = 0; b < ZB_CLASSES; b++) {
      for (int j = 0; j < m; j++, range++) {
        *range = (struct zb_range){0, m};
        struct zb_literal before;
        while (range->lo < m) {
          before = zb_formulation_before(f, d, (enum zb_class)a, range->lo, (enum zb_class)b, j);
          if (before.sign != 0 || before.constant == 0) break;
          range->lo++;
        }
        while (range->hi > range->lo) {
          before = zb_formulation_before(f, d, (enum zb_class)a, range->hi - 1, (enum zb_class)b, j);
          if (before.sign != 0 || before.constant == 1) break;
          range->hi--;
        }
      }
    }
  }
}

static void add_ends(struct zb_formulation *f, int d) {
  static const char letter[ZB_CLASSES] = {'F', 'B', 'W'};
  char name[ZB_ILP_NAME];
  for (int kind = 0; kind < ZB_CLASSES; kind++) {
    for (int i = 0; i < f->chain->microbatches; i++) {
      const struct zb_span *span = span_at(f, d, (enum zb_class)kind, i);
      snprintf(name, sizeof name, "e%d%c%d", d, letter[kind], i);
      f->end[zb_formulation_op(f, d, (enum zb_class)kind, i)] =
          zb_ilp_program_column(&f->program, span->end_early, span->end_late, false, name);
    }
  }
}

static void add_fused(struct zb_formulation *f, const struct zb_state *state, int d) {
  const int m = f->chain->microbatches;
  char name[ZB_ILP_NAME];
  f->identity[d] = false;
  for (int i = 0; i < m; i++) {
    const int64_t lo = state ? zb_state_get(state, d, ZB_FUSED_LO, i) : 0;
    const int64_t hi = state ? zb_state_get(state, d, ZB_FUSED_HI, i) : f->chain->device[d].fused;
    int known = lo > 0 ? ZB_IS_TRUE : hi == 0 ? ZB_IS_FALSE : 0;
    if (known != ZB_IS_FALSE) f->identity[d] = true;
    if (known == 0) {
      snprintf(name, sizeof name, "g%d_%d", d, i);
      known = zb_ilp_program_column(&f->program, 0, 1, true, name);
      f->binaries++;
    }
    f->fused[(size_t)d * (size_t)m + (size_t)i] = known;
  }
}

static void add_offset(struct zb_formulation *f, const struct zb_state *state, int d) {
  const struct zb_chain_device *device = &f->chain->device[d];
  const int64_t least = d > 0 ? device[-1].f + device->forward_comm : 0;
  f->offset_lo[d] = state ? state->cell[zb_state_offset_lo(state, d)] : least;
  f->offset_hi[d] = least;
  if (d > 0 && f->objective == ZB_PERIOD)
    f->offset_hi[d] = state ? state->cell[zb_state_offset_hi(state, d)] : zb_max(least, f->target);
  f->offset[d] = -1;
  if (f->offset_lo[d] == f->offset_hi[d]) return;
  char name[ZB_ILP_NAME];
  snprintf(name, sizeof name, "s%d", d);
  f->offset[d] = zb_ilp_program_column(&f->program, f->offset_lo[d], f->offset_hi[d], false, name);
}

static enum zb_status reserve(struct zb_formulation *f, struct zb_error *error) {
  const size_t p = (size_t)f->chain->devices, m = (size_t)f->chain->microbatches;
  f->end = malloc(p * ZB_CLASSES * m * sizeof *f->end);
  f->order = malloc(p * ZB_PAIRS * m * m * sizeof *f->order);
  f->fused = malloc(p * m * sizeof *f->fused);
  f->offset = malloc(p * sizeof *f->offset);
  f->offset_lo = malloc(p * sizeof *f->offset_lo);
  f->offset_hi = malloc(p * sizeof *f->offset_hi);
  f->identity = malloc(p * sizeof *f->identity);
  f->span = malloc(p * ZB_CLASSES * m * sizeof *f->span);
  f->range = malloc(p * ZB_CLASSES * ZB_CLASSES * m * sizeof *f->range);
  if (f->end && f->order && f->fused && f->offset && f->offset_lo && f->offset_hi && f->identity && f->span &&
      f->range)
    return ZB_OK;
  return zb_fail_memory(error);
}

enum zb_status zb_formulate(const struct zb_chain *chain, const struct zb_formulate_options *options,
                            struct zb_formulation *f, struct zb_error *error) {
  const struct zb_state *state = options->state;
  *f = (struct zb_formulation){.chain = chain, .objective = options->objective, .windows = state != NULL};
  f->target = state ? state->target : options->target;
  enum zb_status status = reserve(f, error);
  if (status != ZB_OK) return status;
  f->program.cost = zb_ilp_program_column(&f->program, 0, f->target, false, "cost");
  for (int d = 0; d < chain->devices; d++) {
    add_offset(f, state, d);
    add_fused(f, state, d);
    if (state) {
      spans_from_state(f, state, d);
    } else {
      spans_from_target(f, d);
    }
    add_ends(f, d);
    add_orders(f, state, d);
    find_ranges(f, d);
    // Every open order takes part in about this many terms; better refused now than built first.
    if (options->most_terms > 0 && f->binaries * 40 > options->most_terms)
      return zb_fail(error, ZB_OVER_LIMIT, "the program would have more than %lld terms",
                     (long long)options->most_terms);
  }
  zb_formulate_rows(f);
  return zb_ilp_program_end(&f->program, error);
}

void zb_formulation_free(struct zb_formulation *f) {
  zb_ilp_program_free(&f->program);
  free(f->end);
  free(f->order);
  free(f->fused);
  free(f->offset);
  free(f->offset_lo);
  free(f->offset_hi);
  free(f->identity);
  free(f->span);
  free(f->range);
  free(f->open);
  *f = (struct zb_formulation){0};
}

static struct zb_literal literal_of(int entry) {
  if (entry == ZB_IS_TRUE) return (struct zb_literal){0, 0, 1};
  if (entry == ZB_IS_FALSE) return (struct zb_literal){0, 0, 0};
  return (struct zb_literal){entry, 1, 0};
}

struct zb_literal zb_formulation_fused(const struct zb_formulation *f, int d, int index) {
  return literal_of(f->fused[(size_t)d * (size_t)f->chain->microbatches + (size_t)index]);
}

struct zb_literal zb_formulation_before(const struct zb_formulation *f, int d, enum zb_class a, int i,
                                        enum zb_class b, int j) {
  // Kinds against each other, first in the row: which table, and whether it is asked the other way round.
  static const struct {
    enum zb_pair pair;
    bool turned;
  } table[ZB_CLASSES][ZB_CLASSES] = {
      [ZB_CLASS_F][ZB_CLASS_B] = {ZB_PAIR_X, false}, [ZB_CLASS_B][ZB_CLASS_F] = {ZB_PAIR_X, true},
      [ZB_CLASS_W][ZB_CLASS_B] = {ZB_PAIR_Y, false}, [ZB_CLASS_B][ZB_CLASS_W] = {ZB_PAIR_Y, true},
      [ZB_CLASS_W][ZB_CLASS_F] = {ZB_PAIR_Z, false}, [ZB_CLASS_F][ZB_CLASS_W] = {ZB_PAIR_Z, true},
  };
  if (a == b) return (struct zb_literal){0, 0, i < j};
  const enum zb_pair pair = table[a][b].pair;
  if (!table[a][b].turned) return literal_of(f->order[zb_formulation_order(f, d, pair, i, j)]);
  const struct zb_literal turned = literal_of(f->order[zb_formulation_order(f, d, pair, j, i)]);
  return (struct zb_literal){turned.column, -turned.sign, 1 - turned.constant};
}
