// constraints.c - the rows of the program.
//
// Starts and lengths are linear: the length of a backward is b + (bw - b) * fused, that of a W is
// w * (1 - fused), and a start is an end minus a length. A row "a before b" is
//   start(b) >= end(a) - M * (1 - before(a, b)),  M = latest end(a) - earliest start(b),
// and is left out where M <= 0. The further rows cut nothing off but fractional points.
#include <stdio.h>

#include "ilp/formulate.h"
#include "solver/model/number.h"

static const char kind_letter[ZB_CLASSES] = {'F', 'B', 'W'};

static const struct zb_span *span_at(const struct zb_formulation *f, int d, int kind, int index) {
  return &f->span[zb_formulation_op(f, d, (enum zb_class)kind, index)];
}

static void add_literal(struct zb_formulation *f, struct zb_literal literal, int64_t factor) {
  zb_ilp_program_constant(&f->program, factor * literal.constant);
  if (literal.sign != 0) zb_ilp_program_term(&f->program, literal.column, factor * literal.sign);
}

static void add_before(struct zb_formulation *f, int d, int a, int i, int b, int j, int64_t factor) {
  add_literal(f, zb_formulation_before(f, d, (enum zb_class)a, i, (enum zb_class)b, j), factor);
}

static void add_end(struct zb_formulation *f, int d, int kind, int index, int64_t factor) {
  zb_ilp_program_term(&f->program, f->end[zb_formulation_op(f, d, (enum zb_class)kind, index)], factor);
}

static void add_length(struct zb_formulation *f, int d, int kind, int index, int64_t factor) {
  const struct zb_chain_device *device = &f->chain->device[d];
  if (kind == ZB_CLASS_F) {
    zb_ilp_program_constant(&f->program, factor * device->f);
    return;
  }
  const struct zb_literal fused = zb_formulation_fused(f, d, index);
  const int64_t split = kind == ZB_CLASS_B ? device->b : device->w;
  zb_ilp_program_constant(&f->program, factor * split);
  add_literal(f, fused, factor * (kind == ZB_CLASS_B ? device->bw - device->b : -device->w));
}

static void add_start(struct zb_formulation *f, int d, int kind, int index, int64_t factor) {
  add_end(f, d, kind, index, factor);
  add_length(f, d, kind, index, -factor);
}

// The start of device d + 1 against that of d.
static void add_offset(struct zb_formulation *f, int d, int64_t factor) {
  if (f->offset[d + 1] < 0) {
    zb_ilp_program_constant(&f->program, factor * f->offset_lo[d + 1]);
  } else {
    zb_ilp_program_term(&f->program, f->offset[d + 1], factor);
  }
}

// Least length of an op of the kind, whatever is fused.
static int64_t sure_time(const struct zb_formulation *f, int d, int kind) {
  const struct zb_chain_device *device = &f->chain->device[d];
  if (kind == ZB_CLASS_F) return device->f;
  if (!f->identity[d]) return kind == ZB_CLASS_B ? device->b : device->w;
  return kind == ZB_CLASS_B ? zb_min(device->b, device->bw) : 0;
}

static struct zb_range range_of(const struct zb_formulation *f, int d, int a, int b, int j) {
  return zb_formulation_range(f, d, (enum zb_class)a, (enum zb_class)b, j);
}

// factor * (how many ops of kind `other` precede op `index` of `kind`).
static void add_count(struct zb_formulation *f, int d, int other, int kind, int index, int64_t factor) {
  const struct zb_range range = range_of(f, d, other, kind, index);
  zb_ilp_program_constant(&f->program, factor * range.lo);
  for (int i = range.lo; i < range.hi; i++) add_before(f, d, other, i, kind, index, factor);
}

// factor * (work that precedes op `index` of `kind`), each op at its least length, without the kind's own.
static void add_other_work(struct zb_formulation *f, int d, int kind, int index, int64_t factor) {
  for (int other = 0; other < ZB_CLASSES; other++) {
    const int64_t time = sure_time(f, d, other);
    if (other != kind && time > 0) add_count(f, d, other, kind, index, factor * time);
  }
}

static void close_row(struct zb_formulation *f, int64_t lower, int64_t upper, const char *what, int d,
                      int kind, int i) {
  char name[ZB_ILP_NAME];
  snprintf(name, sizeof name, "%s%d%c%d", what, d, kind_letter[kind], i);
  zb_ilp_program_close(&f->program, lower, upper, name);
}

// Between two ops of a kind lies their own length and all that runs in between; between F and B of a
// microbatch, and B and W, likewise; before the first op of a kind and after the last, too.
static void work_rows(struct zb_formulation *f, int d) {
  const int m = f->chain->microbatches;
  for (int kind = 0; kind < ZB_CLASSES; kind++) {
    const bool in_turn = kind != ZB_CLASS_W || !f->identity[d];
    for (int i = 0; in_turn && i + 1 < m; i++) {
      add_start(f, d, kind, i + 1, 1);
      add_end(f, d, kind, i, -1);
      add_other_work(f, d, kind, i + 1, -1);
      add_other_work(f, d, kind, i, 1);
      close_row(f, 0, ZB_ILP_ANY, "next", d, kind, i);
    }
    if (kind == ZB_CLASS_F) continue;
    add_start(f, d, kind, 0, 1);
    add_other_work(f, d, kind, 0, -1);
    close_row(f, 0, ZB_ILP_ANY, "head", d, kind, 0);
    for (int i = 0; i < m; i++) {
      const int before = kind - 1; // F of B, B of W: the start of the one, the start of the other
      add_start(f, d, kind, i, 1);
      add_start(f, d, before, i, -1);
      add_other_work(f, d, kind, i, -1);
      add_other_work(f, d, before, i, 1);
      // Ops of the two kinds themselves: i of `before` precede op i of it, i of `kind` precede op i of that.
      zb_ilp_program_constant(&f->program, i * (sure_time(f, d, before) - sure_time(f, d, kind)));
      close_row(f, 0, ZB_ILP_ANY, "work", d, kind, i);
      add_start(f, d, kind, i, 1);
      add_end(f, d, before, i, -1);
      close_row(f, 0, ZB_ILP_ANY, "after", d, kind, i);
    }
  }
}

// The device's last end, and all that must still follow its last F and its last B.
static void cost_rows(struct zb_formulation *f, int d) {
  const int m = f->chain->microbatches;
  const int64_t lead = f->objective == ZB_MAKESPAN ? f->chain->device[d].lead : 0;
  for (int kind = 0; kind < ZB_CLASSES; kind++) {
    for (int i = f->identity[d] ? 0 : m - 1; i < m; i++) {
      zb_ilp_program_term(&f->program, f->program.cost, 1);
      add_end(f, d, kind, i, -1);
      if (!f->identity[d]) {
        add_other_work(f, d, kind, i, 1);
        for (int other = 0; other < ZB_CLASSES; other++) {
          if (other != kind) zb_ilp_program_constant(&f->program, -m * sure_time(f, d, other));
        }
      }
      close_row(f, lead, ZB_ILP_ANY, "last", d, kind, i);
    }
  }
}

static bool is_true(struct zb_literal literal) { return literal.sign == 0 && literal.constant == 1; }

// Where the order is known, only between neighbours: what lies further apart follows from the rows of a kind.
static bool follows(const struct zb_formulation *f, int d, int a, int i, int b, int j) {
  if (f->identity[d]) return false;
  const int m = f->chain->microbatches;
  return (i + 1 < m && is_true(zb_formulation_before(f, d, (enum zb_class)a, i + 1, (enum zb_class)b, j))) ||
         (j > 0 && is_true(zb_formulation_before(f, d, (enum zb_class)a, i, (enum zb_class)b, j - 1)));
}

static void order_rows(struct zb_formulation *f, int d, int a, int b) {
  const int m = f->chain->microbatches;
  char name[ZB_ILP_NAME];
  for (int j = 0; j < m; j++) {
    const struct zb_range range = range_of(f, d, a, b, j);
    for (int i = f->identity[d] || range.lo == 0 ? 0 : range.lo - 1; i < range.hi; i++) {
      const struct zb_literal before = zb_formulation_before(f, d, (enum zb_class)a, i, (enum zb_class)b, j);
      if (before.sign == 0 && before.constant == 0) continue;
      const int64_t big = span_at(f, d, a, i)->end_late - span_at(f, d, b, j)->start_early;
      if (big <= 0 || (is_true(before) && follows(f, d, a, i, b, j))) continue;
      add_start(f, d, b, j, 1);
      add_end(f, d, a, i, -1);
      add_literal(f, before, -big);
      snprintf(name, sizeof name, "%c%d_%c%d_on%d", kind_letter[a], i, kind_letter[b], j, d);
      zb_ilp_program_close(&f->program, -big, ZB_ILP_ANY, name);
    }
  }
}

// Staircases. "a i before b j" gives "a i-1 before b j" and "a i before b j+1". Then every step of the
// staircase of op j lifts its earliest start to the earliest end of the op that came before it, and every
// step that is missing lowers its latest end to the latest start of the op that comes next.
static void staircase_rows(struct zb_formulation *f, int d, int a, int b) {
  const int m = f->chain->microbatches;
  for (int j = 0; j < m; j++) {
    const struct zb_range range = range_of(f, d, a, b, j);
    for (int i = range.lo; i < range.hi; i++) {
      const struct zb_literal here = zb_formulation_before(f, d, (enum zb_class)a, i, (enum zb_class)b, j);
      if (here.sign == 0) continue;
      if (i + 1 < m) {
        add_literal(f, here, 1);
        add_before(f, d, a, i + 1, b, j, -1);
        close_row(f, 0, ZB_ILP_ANY, "stair", d, a, i);
      }
      if (j + 1 < m) {
        add_before(f, d, a, i, b, j + 1, 1);
        add_literal(f, here, -1);
        close_row(f, 0, ZB_ILP_ANY, "step", d, a, i);
      }
    }
  }
}

static void release_rows(struct zb_formulation *f, int d, int a, int b) {
  const int m = f->chain->microbatches;
  for (int j = 0; j < m; j++) {
    const struct zb_range range = range_of(f, d, a, b, j);
    int64_t level = span_at(f, d, b, j)->start_early;
    add_start(f, d, b, j, 1);
    for (int i = range.lo > 0 ? range.lo - 1 : 0; i < range.hi; i++) {
      const int64_t rise = span_at(f, d, a, i)->end_early - level;
      if (rise <= 0) continue;
      add_before(f, d, a, i, b, j, -rise);
      level += rise;
    }
    close_row(f, span_at(f, d, b, j)->start_early, ZB_ILP_ANY, "release", d, b, j);
    level = span_at(f, d, b, j)->end_late;
    add_end(f, d, b, j, 1);
    for (int i = range.hi < m ? range.hi : m - 1; i >= range.lo; i--) {
      const int64_t fall = level - span_at(f, d, a, i)->start_late;
      if (fall <= 0) continue;
      // Not before j: then j is over when it starts.
      zb_ilp_program_constant(&f->program, fall);
      add_before(f, d, a, i, b, j, -fall);
      level -= fall;
    }
    close_row(f, ZB_ILP_NONE, span_at(f, d, b, j)->end_late, "due", d, b, j);
  }
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

// Memory when an op that adds some has started. All that the sum consists of are multiples of `unit`, so
// the room is rounded down to one.
static void memory_rows(struct zb_formulation *f, int d) {
  const struct zb_chain_device *device = &f->chain->device[d];
  const int m = f->chain->microbatches;
  if (device->room_bytes == ZB_NO_LIMIT) return;
  int64_t unit = common_divisor(common_divisor(device->f_bytes, device->b_bytes), device->w_bytes);
  if (unit == 0) unit = 1;
  const int64_t kept[ZB_CLASSES] = {device->f_bytes / unit, device->b_bytes / unit, device->w_bytes / unit};
  const int64_t room = device->room_bytes >= 0 ? device->room_bytes / unit : -1;
  for (int kind = 0; kind < ZB_CLASS_W; kind++) {
    if (kept[kind] <= 0) continue;
    for (int i = 0; i < m; i++) {
      zb_ilp_program_constant(&f->program, (i + 1) * kept[kind]);
      for (int other = 0; other < ZB_CLASSES; other++) {
        if (other != kind) add_count(f, d, other, kind, i, kept[other]);
      }
      // A fused backward gives back at once what it would have added.
      if (kind == ZB_CLASS_B)
        add_literal(f, zb_formulation_fused(f, d, i), -(m * kept[ZB_CLASS_F] + m * kept[kind]));
      close_row(f, ZB_ILP_NONE, room, "memory", d, kind, i);
    }
  }
}

// A fused backward's W is an op of no length right behind it.
static void fused_rows(struct zb_formulation *f, int d) {
  const int m = f->chain->microbatches;
  const int64_t horizon = zb_chain_horizon(f->chain, f->objective, d, f->target);
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < m; j++) {
      if (j > i) {
        add_before(f, d, ZB_CLASS_W, i, ZB_CLASS_B, j, 1);
        add_literal(f, zb_formulation_fused(f, d, i), -1);
        close_row(f, 0, ZB_ILP_ANY, "fusedB", d, ZB_CLASS_B, j);
        // W of microbatches that are both split run in turn.
        add_start(f, d, ZB_CLASS_W, j, 1);
        add_end(f, d, ZB_CLASS_W, i, -1);
        add_literal(f, zb_formulation_fused(f, d, i), horizon);
        add_literal(f, zb_formulation_fused(f, d, j), horizon);
        close_row(f, 0, ZB_ILP_ANY, "turn", d, ZB_CLASS_W, j);
      }
      // B i before F j, and fused: so is its W. Never its W without it.
      add_before(f, d, ZB_CLASS_W, i, ZB_CLASS_F, j, 1);
      add_before(f, d, ZB_CLASS_B, i, ZB_CLASS_F, j, -1);
      add_literal(f, zb_formulation_fused(f, d, i), -1);
      close_row(f, -1, ZB_ILP_ANY, "fusedF", d, ZB_CLASS_F, j);
      add_before(f, d, ZB_CLASS_B, i, ZB_CLASS_F, j, 1);
      add_before(f, d, ZB_CLASS_W, i, ZB_CLASS_F, j, -1);
      close_row(f, 0, ZB_ILP_ANY, "whole", d, ZB_CLASS_F, j);
    }
  }
}

// Where nothing on a device takes time, times do not keep its orders free of cycles: say it in binaries.
static void order_cycle_rows(struct zb_formulation *f, int d) {
  const int m = f->chain->microbatches;
  if (sure_time(f, d, ZB_CLASS_F) + sure_time(f, d, ZB_CLASS_B) + sure_time(f, d, ZB_CLASS_W) > 0) return;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < m; j++) {
      for (int k = 0; k < m; k++) {
        add_before(f, d, ZB_CLASS_F, i, ZB_CLASS_B, j, 1);
        add_before(f, d, ZB_CLASS_B, j, ZB_CLASS_W, k, 1);
        add_before(f, d, ZB_CLASS_W, k, ZB_CLASS_F, i, 1);
        close_row(f, 1, 2, "cycle", d, ZB_CLASS_F, i);
      }
    }
  }
}

// Precedences between device d and the one after it. A row that the windows imply is left out.
static void boundary_rows(struct zb_formulation *f, int d) {
  const struct zb_chain_device *down = &f->chain->device[d + 1];
  for (int i = 0; i < f->chain->microbatches; i++) {
    add_start(f, d + 1, ZB_CLASS_F, i, 1);
    add_end(f, d, ZB_CLASS_F, i, -1);
    add_offset(f, d, 1);
    close_row(f, down->forward_comm, ZB_ILP_ANY, "down", d, ZB_CLASS_F, i);
    add_start(f, d, ZB_CLASS_B, i, 1);
    add_end(f, d + 1, ZB_CLASS_B, i, -1);
    add_offset(f, d, -1);
    close_row(f, down->backward_comm, ZB_ILP_ANY, "up", d, ZB_CLASS_B, i);
  }
}

void zb_formulate_rows(struct zb_formulation *f) {
  static const int pairs[6][2] = {{ZB_CLASS_F, ZB_CLASS_B}, {ZB_CLASS_B, ZB_CLASS_F},
                                  {ZB_CLASS_W, ZB_CLASS_B}, {ZB_CLASS_B, ZB_CLASS_W},
                                  {ZB_CLASS_W, ZB_CLASS_F}, {ZB_CLASS_F, ZB_CLASS_W}};
  for (int d = 0; d < f->chain->devices; d++) {
    // The device's clock starts with its first op.
    add_start(f, d, ZB_CLASS_F, 0, 1);
    close_row(f, 0, 0, "first", d, ZB_CLASS_F, 0);
    memory_rows(f, d);
    if (f->identity[d]) fused_rows(f, d);
    order_cycle_rows(f, d);
    work_rows(f, d);
    cost_rows(f, d);
    for (int i = 0; i < 6; i++) {
      const int a = pairs[i][0], b = pairs[i][1];
      order_rows(f, d, a, b);
      // W of microbatches of their own are no staircase.
      if (f->identity[d] && (a == ZB_CLASS_W || b == ZB_CLASS_W)) continue;
      if (i % 2 == 0) staircase_rows(f, d, a, b); // the other way round they are the same
      release_rows(f, d, a, b);
    }
  }
  for (int d = 0; d + 1 < f->chain->devices; d++) boundary_rows(f, d);
}
