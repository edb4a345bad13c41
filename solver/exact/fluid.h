// fluid.h - one device whose W is poured into the time left: the relaxation `fluid-w` of chunked.h.
#ifndef ZB_FLUID_H
#define ZB_FLUID_H

#include "solver/exact/grid.h"

// As zb_grid_sweep, by states of F and B alone. Learns nothing of W and of which passes are fused.
enum zb_sweep zb_fluid_sweep(struct zb_lattice *lattice, const struct zb_chunked *chunked, int d,
                             int64_t horizon, const int64_t *windows);

#endif
