// formulate.h - the paper's integer program for a chain (arXiv 2401.10241, Appendix G, equations 3 to 7).
//
// A column for the end of every op, on its device's own clock (zero at the device's first op); a binary for
// the order of every two ops of different kinds on one device; memory from the order binaries; minimise the
// largest last end. Beyond the paper:
// - Microbatches run in order within a kind (design.md section 2), so two ops of one kind need no binary, and
//   the binaries of one op against all ops of another kind are a staircase: with "F before B 3" goes "F
//   before B 4". Sums over a staircase are counts, so the work between two ops and the memory at an op are
//   linear.
// - With a window state (solver/exact) given, orders that its x, y, z ranges force are constants, and times,
//   big-M and release steps are as small as its windows allow. Without, big-M is the target.
// - Where a fused backward can pay, a binary a microbatch says whether it is fused. Its W is then an op of no
//   length that ends with it.
#ifndef ZB_FORMULATE_H
#define ZB_FORMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "ilp/integer_program.h"
#include "solver/exact/chain.h"
#include "solver/exact/window.h"
#include "solver/model/schedule.h"
#include "solver/model/timeline.h"

enum zb_class { ZB_CLASS_F, ZB_CLASS_B, ZB_CLASS_W, ZB_CLASSES };

// Orders between kinds, `a` before `b`, as tables over (index of a, index of b).
enum zb_pair { ZB_PAIR_X /* F before B */, ZB_PAIR_Y /* W before B */, ZB_PAIR_Z /* W before F */, ZB_PAIRS };

// In place of a binary's column where the answer is known.
enum { ZB_IS_FALSE = -1, ZB_IS_TRUE = -2 };

// When an op can run, in ticks of its device's clock; for an op of open length the least and most of both.
struct zb_span {
  int64_t start_early, start_late, end_early, end_late;
};

// An open order: its column, and what it decides.
struct zb_open_order {
  int column, device;
  enum zb_pair pair;
  int first, second; // indices of the two ops, in the pair's order of kinds
};

// Of the ops of one kind, those before `lo` precede some other op, those from `hi` on do not.
struct zb_range {
  int lo, hi;
};

struct zb_formulation {
  struct zb_ilp_program program;
  const struct zb_chain *chain; // borrowed
  enum zb_objective objective;
  int64_t target; // no schedule above this cost meets the program
  bool windows;   // a state was used
  int *end;       // [devices * ZB_CLASSES * m] column of every op's end
  int *order;     // [devices * ZB_PAIRS * m * m] column, or ZB_IS_*
  int *fused;     // [devices * m] likewise: backward k is fused
  int *offset;    // [devices] column of the start against the device before, -1 where it is fixed
  int64_t *offset_lo, *offset_hi; // [devices]
  bool *identity;                 // [devices] fusing is open here: W are microbatches' own, not counts
  struct zb_span *span;           // [devices * ZB_CLASSES * m]
  struct zb_range *range;         // [devices * ZB_CLASSES * ZB_CLASSES * m] see zb_formulation_range
  struct zb_open_order *open;     // [open_orders]
  size_t open_orders, open_room;
  int64_t pairs;    // orders in all
  int64_t binaries; // of these and of the fused flags, those left open
};

struct zb_formulate_options {
  enum zb_objective objective;
  int64_t target;               // ticks; a state's own target where one is given
  const struct zb_state *state; // windows, propagated to a fixpoint; NULL: none
  int64_t most_terms;           // a larger program is refused (OVER_LIMIT); 0: no limit
};

// Owned by the caller: zb_formulation_free (also after a failure). The program's `contradiction` says that no
// schedule meets it. OVER_LIMIT: too large, nothing else is wrong.
enum zb_status zb_formulate(const struct zb_chain *chain, const struct zb_formulate_options *options,
                            struct zb_formulation *formulation, struct zb_error *error);
void zb_formulation_free(struct zb_formulation *formulation);

static inline size_t zb_formulation_op(const struct zb_formulation *f, int device, enum zb_class kind,
                                       int index) {
  return ((size_t)device * ZB_CLASSES + (size_t)kind) * (size_t)f->chain->microbatches + (size_t)index;
}
static inline size_t zb_formulation_order(const struct zb_formulation *f, int device, enum zb_pair pair,
                                          int a, int b) {
  const size_t m = (size_t)f->chain->microbatches;
  return (((size_t)device * ZB_PAIRS + (size_t)pair) * m + (size_t)a) * m + (size_t)b;
}

// Which ops of kind `a` run before op `j` of kind `b`.
static inline struct zb_range zb_formulation_range(const struct zb_formulation *f, int device,
                                                   enum zb_class a, enum zb_class b, int j) {
  const size_t at = ((size_t)device * ZB_CLASSES + (size_t)a) * ZB_CLASSES + (size_t)b;
  return f->range[at * (size_t)f->chain->microbatches + (size_t)j];
}

// A known or open yes/no as constant + sign * column (sign 0: no column).
struct zb_literal {
  int column, sign, constant;
};
// Whether op `i` of kind `a` runs before op `j` of kind `b` on the device.
struct zb_literal zb_formulation_before(const struct zb_formulation *f, int device, enum zb_class a, int i,
                                        enum zb_class b, int j);
struct zb_literal zb_formulation_fused(const struct zb_formulation *f, int device, int index);

// Adds the rows; zb_formulate calls it.
void zb_formulate_rows(struct zb_formulation *formulation);

// The orders that `value` (one number a column: a solution, or an LP relaxation) says, as a schedule of the
// profile, owned by the caller. With `by_time`, ops are sorted by their times instead, W moved ahead where
// memory asks for it. Its memory and its times are for the caller to check.
enum zb_status zb_formulation_decode(const struct zb_formulation *formulation,
                                     const struct zb_profile *profile, const double *value, bool by_time,
                                     struct zb_schedule_builder *builder, struct zb_schedule **schedule,
                                     struct zb_error *error);

#endif
