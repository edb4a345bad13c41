// survivors.h - the inner loop of a sweep back, for rows of states however they are laid out.
#ifndef ZB_SURVIVORS_H
#define ZB_SURVIVORS_H

#include "solver/exact/grid_tree.h"

// What the surviving transitions of one op have said so far.
struct survivors {
  int64_t earliest;     // least E of a state it starts from
  int64_t latest_start; // largest
};

// base[i] = max(base[i], latest start of an op from state here[i] to next[i]) where it survives.
static inline struct survivors push_latest(int64_t *restrict base, const int64_t *restrict here,
                                           const int64_t *restrict next, int count, int64_t release,
                                           int64_t time, int64_t late) {
  int64_t earliest = ZB_NEVER, latest = ZB_DEAD;
  for (int i = 0; i < count; i++) {
    int64_t start = (next[i] < late ? next[i] : late) - time;
    const int64_t ready = here[i] > release ? here[i] : release;
    const bool survives = start >= ready;
    start = survives ? start : ZB_DEAD;
    const int64_t from = survives ? here[i] : ZB_NEVER;
    earliest = from < earliest ? from : earliest;
    latest = start > latest ? start : latest;
    base[i] = start > base[i] ? start : base[i];
  }
  return (struct survivors){earliest, latest};
}

#endif
