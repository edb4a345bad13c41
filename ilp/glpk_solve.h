// glpk_solve.h - branch and cut on a program, by GLPK where it was linked.
//
// What comes back is a floating-point solver's word: orders to be timed and costs to be checked by others,
// never a proof. The tree is opened to the caller by hooks: what the program's author knows beyond the
// program (windows, exact times) prunes nodes and finds schedules there.
#ifndef ZB_GLPK_SOLVE_H
#define ZB_GLPK_SOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ilp/integer_program.h"
#include "solver/model/deadline.h"

enum zb_mip_answer {
  ZB_MIP_GO,    // on with this node
  ZB_MIP_PRUNE, // nothing is to be found in it
  ZB_MIP_STOP,  // the caller has what it wants
};

struct zb_mip_hooks {
  void *context;
  // A node is about to be relaxed. Bounds of all columns; the hook may tighten them (the cost's upper bound
  // is the cutoff). NULL: no hook, as for each of these.
  enum zb_mip_answer (*enter)(void *context, int64_t *lower, int64_t *upper);
  // It has been: one value a column, which the hook may overwrite.
  enum zb_mip_answer (*relaxed)(void *context, double *value);
  // A solution with whole binaries, likewise.
  enum zb_mip_answer (*found)(void *context, double *value);
};

struct zb_mip_options {
  const struct zb_deadline *deadline; // also polls the stop flag; may be NULL
  int64_t most_nodes;                 // 0: no cap
  bool depth_first;                   // to find, else best bound first, to prove
  bool cuts;                          // Gomory, MIR, cover and clique cuts
  struct zb_mip_hooks hooks;
};

enum zb_mip_end {
  ZB_MIP_DONE,    // the tree is used up: GLPK claims that nothing better than what was found exists
  ZB_MIP_STOPPED, // by a hook
  ZB_MIP_NODES,   // the node cap came first
  ZB_MIP_TIME,    // the deadline or the stop flag came first
  ZB_MIP_TROUBLE, // GLPK gave up: numbers, memory or misuse; `trouble` says what
  ZB_MIP_ABSENT,  // no GLPK in this build
};

struct zb_mip_result {
  enum zb_mip_end end;
  int64_t nodes;     // relaxed, or pruned before that
  int64_t pruned;    // of these, by the hook
  bool root;         // the root relaxation was solved, and its cost is
  double root_cost;  // claimed
  char trouble[160]; // "" if there was none
};

// Solves the program. Never fails otherwise than by what `result` says, and never ends the process.
void zb_mip_solve(const struct zb_ilp_program *program, const struct zb_mip_options *options,
                  struct zb_mip_result *result);

// Whether there is a GLPK behind it, its version, or how to get it.
bool zb_mip_available(void);
const char *zb_mip_version(void);

#endif
