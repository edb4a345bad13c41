// measured_doubts.h - what in a measured profile looks odd enough to say.
#ifndef ZB_MEASURED_DOUBTS_H
#define ZB_MEASURED_DOUBTS_H

#include "solver/io/measurements.h"

// Appends warnings about the profile and rows: times of 0 or that look like a clamped fit, samples that
// spread, a stage far from the median of all, B longer than F + W, W equal to B, no memory.
void zb_measured_doubt(struct zb_measured *measured);

#endif
