// ilp_engine.h - method `ilp`: the paper's integer program, written from the windows and solved by GLPK.
//
// The window engine bounds the cost from below; programs are then solved for targets that rise from that
// bound, where windows leave few orders open, until a schedule is found or nothing is left below the best.
// GLPK's word is reported as a claim: the bound in the result, and with it `optimal`, is the windows' own.
#ifndef ZB_ILP_ENGINE_H
#define ZB_ILP_ENGINE_H

#include <stdio.h>

#include "solver/model/engine.h"

extern const struct zb_engine zb_engine_ilp;

struct zb_ilp_options {
  bool no_windows; // the program without what the windows know, one target: the best cost less one
  bool no_guide;   // windows shape the program but stay out of GLPK's tree
};

// What it took, and what GLPK claims.
struct zb_ilp_report {
  int programs;          // solved, or found empty while they were written
  int64_t orders, open;  // of the last whole program: orders in all, binaries left open
  int64_t nodes, pruned; // of all programs: tree nodes, those that the windows refuted
  int64_t pieces;        // refined, where whole programs were too large or took too long
  bool claimed;          // GLPK used up its trees and says that no schedule is better
  bool too_large;        // a program was refused for its size
  double seconds;
  char trouble[160]; // GLPK's last complaint, "" if it had none
  char line[256];    // all this in words
};

// As an engine's solve, with options and a report (either may be NULL).
enum zb_status zb_ilp_solve(const struct zb_problem *problem, const struct zb_ilp_options *options,
                            const struct zb_schedule *incumbent, struct zb_result *result,
                            struct zb_ilp_report *report, struct zb_error *error);

// Writes the program for schedules that cost at most `most_ns` (0: at most what one microbatch after the
// other costs) as CPLEX LP text in ticks; a comment on top says how long a tick is. Windows that refute the
// cost leave a program without a solution. The caller closes the file and checks that.
enum zb_status zb_ilp_write_lp(const struct zb_problem *problem, const struct zb_ilp_options *options,
                               int64_t most_ns, FILE *file, struct zb_error *error);

#endif
