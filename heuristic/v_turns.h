// v_turns.h - improves a schedule on a V by giving single ops other turns.
#ifndef ZB_V_TURNS_H
#define ZB_V_TURNS_H

#include "solver/model/engine.h"

// A local search that goes on where it stopped for as long as somebody asks.
struct zb_turner;

// Needs two stages a device on a V and a feasible profile; `problem` is borrowed. Owned by the caller:
// zb_turner_free. Fails only when memory ends.
enum zb_status zb_turner_create(const struct zb_problem *problem, struct zb_turner **turner,
                                struct zb_error *error);
void zb_turner_free(struct zb_turner *turner);

// As zb_improver wants it, `turner` being the context; work is ops written and timed. It searches by span
// where the period is asked for, and the period then decides.
enum zb_status zb_turner_improve(void *turner, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                                 struct zb_schedule **found, struct zb_error *error);

#endif
