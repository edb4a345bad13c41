// answer.h - a schedule file in memory: what solve writes, what check reads, what show draws.
#ifndef ZB_ANSWER_H
#define ZB_ANSWER_H

#include "solver/model/engine.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// Everything in it is owned. `schedule` is NULL and `timeline` empty where there is none (INFEASIBLE,
// UNKNOWN). In an answer that was read from a file, cost, bound and timeline are the file's claims.
struct zb_answer {
  struct zb_profile *profile;
  char *method;
  enum zb_objective objective;
  enum zb_status status; // OPTIMAL, FEASIBLE, INFEASIBLE, UNKNOWN or OVER_LIMIT (never written)
  int64_t cost_ns, bound_ns;
  struct zb_schedule *schedule;
  struct zb_timeline timeline;
  int64_t *idle_ns;        // [devices] claims of a file that was read; NULL otherwise
  double gap, bubble_rate; // likewise claims; computed by zb_answer_from_result
  char *proof;             // JSON text of contract.md's `proof`, NULL: none needed
  char *relaxation;        // word, NULL: none
  struct zb_reason reason; // for INFEASIBLE
};

// Checks and times `result` (taken over, whatever happens) of a problem, and makes it an answer. The
// status is derived here and nowhere else: OPTIMAL iff cost == bound, where bound is the larger of
// the result's and the closed form. SELF_CHECK when the schedule does not hold or costs less than the bound.
enum zb_status zb_answer_from_result(const struct zb_problem *problem, const char *method,
                                     struct zb_result *result, struct zb_answer *answer,
                                     struct zb_error *error);

// Recomputes everything an answer claims. WRONG says which number, where, claimed and true value.
enum zb_status zb_answer_verify(const struct zb_answer *answer, struct zb_error *error);

int64_t zb_answer_idle_ns(const struct zb_timeline *timeline, int device);
double zb_answer_gap(const struct zb_answer *answer);
double zb_answer_bubble_rate(const struct zb_answer *answer);

void zb_answer_free(struct zb_answer *answer); // the fields, not the struct

#endif
