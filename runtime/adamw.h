// adamw.h - what is decided about a step: the global norm from one partial a unit, and what follows from it.
//
// Partials are added in model order, always, so that every device and every schedule finds the same norm to
// the bit. A device that knows only some of the partials may judge too: rounding to nearest is monotone and
// no term is negative, so what is above the limit with some of the terms is above it with all.
#ifndef ZB_ADAMW_H
#define ZB_ADAMW_H

#include <stdint.h>

#include "kernels/scalar.h"
#include "runtime/gpt.h"

enum zb_verdict {
  ZB_STEP_WHOLE,   // as it is
  ZB_STEP_CLIPPED, // scaled down to the clipping norm
  ZB_STEP_SKIPPED, // a NaN or an infinity: no step
};
extern const char *const zb_verdict_word[3];

// A partial that is not known yet. Known ones are sums of squares: at least 0, or NaN, or infinite.
#define ZB_PARTIAL_UNKNOWN (-1.0)

struct zb_judgement {
  enum zb_verdict verdict;
  double norm, scale; // of what is known; what the gradient is multiplied by
};

// Judges partial[units] in model order. clip 0: any norm is fine.
struct zb_judgement zb_adamw_judge(const double *partial, int units, double clip);

// The numbers of step `number` (from 1), under `scale`.
struct zb_adamw_step zb_adamw_step(const struct zb_adamw *adamw, int64_t number, double scale);

#endif
