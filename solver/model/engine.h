// engine.h - what an engine is: a named way from a problem to a schedule, a bound, or both.
//
// The command line knows engines only through this type and the one table of solver/cli/engines.c.
// An engine sees a profile that already has the placement it asked for.
#ifndef ZB_ENGINE_H
#define ZB_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/deadline.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// Why there is no schedule at all: this device cannot hold even one microbatch.
struct zb_reason {
  int device;
  int64_t limit_bytes, least_peak_bytes;
};

// Something that looks for better schedules beside the window engine's search, which calls it again and
// again, from one thread at a time: an engine of its own kind that shares the search's bound and time.
struct zb_improver {
  // Spends about `work` ops placed or moved on a schedule that costs less than `best`, which costs cost_ns.
  // *found (owned by the caller) is NULL where there is none. Stops at the problem's deadline; otherwise what
  // is found depends on arguments and earlier calls alone. An error only for FAILED.
  enum zb_status (*improve)(void *context, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                            struct zb_schedule **found, struct zb_error *error);
  void *context;
  int share;  // of a round's work, in sixteenths
  bool alone; // `best` is nothing to it but a cost to beat
};

enum { ZB_MOST_IMPROVERS = 4 };

struct zb_problem {
  const struct zb_profile *profile; // borrowed
  enum zb_objective objective;
  int threads;
  uint64_t seed;
  struct zb_deadline deadline;
  bool resumed;       // the incumbent is no worse than what heuristics find: they need not run again
  int rounds;         // of the window engine's search, at most; 0: as many as there is time for
  unsigned rules_off; // rules that the window engine leaves out (solver/exact/rules.h); for tests, else 0
  // Take part in the window engine's search from its second round on.
  struct zb_improver improver[ZB_MOST_IMPROVERS];
  int improvers;
  // Called when an engine has something better; any thread, one at a time. NULL: nobody listens.
  void (*progress)(void *context, const char *what, int64_t cost_ns, int64_t bound_ns);
  void *progress_context;
};

// What an engine hands back. Owned by the caller: zb_result_free.
struct zb_result {
  enum zb_status status;        // OPTIMAL, FEASIBLE, INFEASIBLE, UNKNOWN or OVER_LIMIT
  struct zb_schedule *schedule; // NULL if there is none; kept for OVER_LIMIT, so that it can be shown
  int64_t cost_ns;              // of the schedule; INT64_MAX without one
  int64_t bound_ns;             // proven for the problem's profile, 0 if the engine proved nothing
  int64_t work;                 // what it took, in the engine's own unit; only reported
  char *proof;                  // contract.md's `proof` as JSON text (owned), NULL: none is needed
  const char *relaxation;       // word of the bound's proof (README), static; NULL: none
  struct zb_reason reason;      // for INFEASIBLE
};

// What a method asks of the profile's placement; the caller derives one where it differs.
enum zb_need {
  ZB_NEED_ANY,   // works on whatever the profile has
  ZB_NEED_CHAIN, // one stage a device
  ZB_NEED_LOOP,  // several, stage s on s mod p
  ZB_NEED_V,     // two, on a V
};

struct zb_engine {
  const char *name;
  const char *help; // one line
  enum zb_need need;
  // Solves `problem`. `incumbent` (may be NULL, borrowed) is a valid schedule to start from. Returns
  // ZB_OK when `result` says how it went (whatever its status), and an error only for FAILED; then
  // `result` is untouched.
  enum zb_status (*solve)(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                          struct zb_result *result, struct zb_error *error);
};

void zb_result_free(struct zb_result *result);

// Times `schedule` (taken over, freed on failure) under the problem's objective and fills `result`: FEASIBLE,
// or OVER_LIMIT where a device's peak is above its limit. The common ending of every heuristic.
enum zb_status zb_result_from_schedule(const struct zb_problem *problem, struct zb_schedule *schedule,
                                       struct zb_result *result, struct zb_error *error);

// INFEASIBLE with its reason if some device cannot hold one microbatch; returns whether it did.
bool zb_result_if_infeasible(const struct zb_problem *problem, struct zb_result *result);

#endif
