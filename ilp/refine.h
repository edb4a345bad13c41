// refine.h - a schedule made better, a piece at a time.
//
// Some neighbouring devices, for a stretch of time, are set free; all else keeps the best schedule's order.
// Windows propagate what is kept, so that most pieces are refuted without a program and the rest become
// small ones, which GLPK solves with a cap on nodes. Pieces are chosen where the schedule loses time: around
// the waits on its critical path.
#ifndef ZB_REFINE_H
#define ZB_REFINE_H

#include "solver/model/engine.h"

// What it took.
struct zb_refine_report {
  int64_t pieces;           // tried
  int64_t refuted;          // by the windows, before any program
  int64_t programs;         // solved by GLPK
  int64_t nodes;            // of their trees
  int64_t improved;         // pieces that made the schedule better
  int64_t start_ns, end_ns; // cost before and after
};

// Refines `incumbent` (a valid schedule of the problem's profile, placement chain) until the problem's
// deadline, until the cost meets the windows' root bound, or until many pieces in a row gave nothing. The
// result's schedule is never worse than the incumbent; its bound is the windows' root bound. The same seed
// gives the same schedule unless the deadline cut the run. `report` may be NULL. FAILED without GLPK.
enum zb_status zb_ilp_refine(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                             struct zb_result *result, struct zb_refine_report *report,
                             struct zb_error *error);

#endif
