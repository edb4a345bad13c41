// chunked_window.h - zb_state's rules for devices with several stages; called through window.h.
#ifndef ZB_CHUNKED_WINDOW_H
#define ZB_CHUNKED_WINDOW_H

#include "solver/exact/window.h"

// Arrays that a device's windows take, on the device that has most.
size_t zb_chunked_arrays(const struct zb_chunked *chunked);

// What is known under state->target before anything else is.
void zb_chunked_reset(struct zb_state *state);
// After the target fell by `less`.
void zb_chunked_lower(struct zb_state *state, int64_t less);

enum zb_sweep zb_chunked_propagate(struct zb_state *state);

#endif
