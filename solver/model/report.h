// report.h - what `compare`, `tune` and `frontier` found, as plain data: the terminal, JSON and charts all
// draw from it.
#ifndef ZB_REPORT_H
#define ZB_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/engine.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// One method on the placement that it needs. Numbers that do not exist are 0: everything about a schedule
// where there is none (INFEASIBLE, UNKNOWN), bound and gap of one that does not fit (OVER_LIMIT).
struct zb_compare_row {
  const char *method; // a word of the table of methods, not owned
  enum zb_status status;
  enum zb_placement placement;
  int chunks;
  int64_t cost_ns, bound_ns; // the bound is shared by all rows of one placement
  double gap, bubble_rate;
  int64_t span_ns, makespan_ns, period_ns;
  int64_t *peak_bytes; // [devices], owned; NULL without a schedule
  int64_t most_bytes;  // the largest peak
  int64_t comm_count;  // messages that cross devices
  int *sends;     // [devices], owned: messages that a device sends for one microbatch; it receives as many
  int most_sends; // of a device
  double seconds;
  bool heuristic; // it constructs; a row that is not, searches
};

// What may keep the best schedule from being faster. Each has been tried: `cost_ns` is what the heuristics
// reach once the cause is taken away, against `base_cost_ns` with everything as it is.
#define ZB_CAUSE_TABLE(X)                                                                                    \
  X(ZB_CAUSE_STAGE, "stage")                 /* all devices made equally fast, total work kept */            \
  X(ZB_CAUSE_MEMORY, "memory")               /* no memory limit */                                           \
  X(ZB_CAUSE_COMMUNICATION, "communication") /* messages take no time */                                     \
  X(ZB_CAUSE_MICROBATCHES, "microbatches")   /* twice as many microbatches; cost for half of them */

enum zb_cause_kind {
#define X(name, word) name,
  ZB_CAUSE_TABLE(X)
#undef X
      ZB_CAUSE_COUNT
};
const char *zb_cause_word(enum zb_cause_kind kind);

struct zb_cause {
  enum zb_cause_kind kind;
  bool known; // false where it could not be tried (a sum beyond 2^53)
  int64_t cost_ns;
  double saving; // (base - cost) / base, at least 0
};

// Costs of the heuristics alone, on one profile.
struct zb_attribution {
  int64_t base_cost_ns;                   // with everything as it is, 0: not tried
  int64_t work_ns;                        // the busiest device's least work
  struct zb_cause causes[ZB_CAUSE_COUNT]; // largest saving first; all unknown where nothing was tried
};

// A method's own memory given to `auto`: with each device's limit at what the method keeps there.
struct zb_compare_rival {
  const char *method; // NULL: not tried
  enum zb_placement placement;
  int chunks;
  bool has_memory;
  int64_t method_ns, auto_ns, bound_ns; // bound: of every schedule in that memory
};

// Static memory is what the profile says of each device, also where the best placement was derived. If the
// last device keeps more of it than another because of what it holds of the model's end, that lies elsewhere
// on a V.
struct zb_compare_shift {
  int64_t bytes;                    // more than the device with the least; 0: nothing to say
  int from, to;                     // devices
  int64_t needs_bytes, limit_bytes; // of `to`, with it
};

struct zb_compare {
  char *name; // of the profile, owned, may be NULL
  int devices, microbatches;
  bool has_memory; // whether the profile says anything about it
  enum zb_objective objective;
  struct zb_compare_row *rows; // [count] schedules that fit by cost, then those that do not, then the rest
  int count;
  int best;                // its row, -1: no method found a schedule that fits
  struct zb_reason reason; // where the profile has no schedule at all (every row INFEASIBLE)
  struct zb_compare_rival rival;
  struct zb_compare_shift shift;
  struct zb_attribution binds; // of the best row's profile
  char *verdict;               // owned: the words, one sentence a line
};

// One profile of the model on one placement. Numbers that do not exist are 0.
struct zb_tune_row {
  const char *path;   // not owned
  const char *method; // a word of the table of methods, not owned
  int devices, microbatches, chunks;
  int64_t samples; // in one microbatch
  enum zb_placement placement;
  enum zb_status status;
  int64_t cost_ns, bound_ns;
  double gap, bubble_rate;
  double rate, most_rate;  // samples a second of the schedule, and of one that would cost the bound
  int64_t most_bytes;      // the largest peak
  char *why;               // owned: where nothing fits, what is missing; else NULL
  struct zb_reason reason; // for INFEASIBLE
  struct zb_attribution binds;
  double seconds;
};

struct zb_tune {
  enum zb_objective objective;
  struct zb_tune_row *rows; // [count] by samples a second, then those that do not fit, then the rest
  int count;
  int best;       // its row, -1: nothing fits
  char *warnings; // owned, one a line: why the profiles may not be one model under one limit
  char *verdict;  // owned: the words, one sentence a line
};

struct zb_frontier_point {
  int64_t multiple;    // of unit_bytes, in millionths
  int64_t limit_bytes; // floor(multiple * unit_bytes), to which each device's static is added
  enum zb_status status;
  int64_t cost_ns, bound_ns; // 0 where there is none
  int64_t work_ns;           // of the schedule's busiest device
  double gap, bubble_rate;
  double bubble_bound; // what the bubble rate would be if the cost were the bound
  int64_t most_bytes;  // largest peak of the schedule
  double seconds;
};

struct zb_frontier {
  char *name; // owned, may be NULL
  const char *method;
  enum zb_placement placement;
  int chunks;
  int64_t comm_count; // messages that cross devices
  int devices, microbatches;
  enum zb_objective objective;
  int64_t unit_bytes;               // devices * activation of one microbatch: 1x
  struct zb_frontier_point *points; // [count], by limit; costs never rise, bounds neither
  int count;
};

// Several methods or placements under the same limits, which are memory a device: one point of every curve
// for each.
struct zb_frontiers {
  struct zb_frontier *curve; // [count]
  int count;
  int *best; // [points] the cheapest curve there, of equal ones that with the fewest messages; -1: nothing
             // fits
};

void zb_compare_free(struct zb_compare *compare);    // the fields, not the struct
void zb_frontier_free(struct zb_frontier *frontier); // likewise
void zb_tune_free(struct zb_tune *tune);
void zb_frontiers_free(struct zb_frontiers *frontiers);

#endif
