// halt.h - when work inside the exact engine must end early.
//
// Either the deadline passed, or an earlier unit of the same round closed the gap, so that nothing this
// one finds can matter. Neither changes what is proven so far.
#ifndef ZB_HALT_H
#define ZB_HALT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "solver/model/deadline.h"

struct zb_halt {
  const struct zb_deadline *deadline; // NULL: none
  const atomic_int *closed_by;        // number of the earliest unit that closed the gap; NULL: nobody does
  int unit;                           // whose work this is
};

static inline bool zb_halted(const struct zb_halt *halt) {
  if (!halt) return false;
  if (halt->closed_by && atomic_load_explicit(halt->closed_by, memory_order_relaxed) < halt->unit)
    return true;
  return halt->deadline && zb_deadline_passed(halt->deadline);
}

#endif
