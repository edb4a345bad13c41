// window_engine.h - the exact engine for one stage a device: bounds, optima and their proofs.
#ifndef ZB_WINDOW_ENGINE_H
#define ZB_WINDOW_ENGINE_H

#include "solver/model/engine.h"

extern const struct zb_engine zb_engine_window;

// Whether propagation alone shows that nothing costs less than `schedule`, which costs cost_ns: bound_ns of a
// result without a schedule is then cost_ns, otherwise 0; always 0 for the period. Takes what one target of
// the engine's root bound does.
enum zb_status zb_window_refute(const struct zb_problem *problem, const struct zb_schedule *schedule,
                                int64_t cost_ns, struct zb_result *result, struct zb_error *error);

#endif
