// auto.c - the best of what fits: every heuristic, then the searches, then refinement, each starting from
// the best so far.
//
// Anytime: once there is a schedule, the deadline or the user's signal ends the round and the best so far is
// the answer. Before there is one, the heuristics run on, for they take milliseconds.
#include "heuristic/critical.h"
#include "heuristic/in_flight.h"
#include "heuristic/tuned.h"
#include "heuristic/v_turns.h"
#include "ilp/glpk_solve.h"
#include "ilp/refine.h"
#include "solver/cli/engines.h"
#include "solver/exact/window_engine.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

struct best {
  struct zb_result result;
  bool any;         // whether result holds anything
  int64_t bound_ns; // the closed form: true before any engine has run
};

// Takes over `next`. Schedule and bound are chosen apart: the cheaper schedule, the larger bound with its
// proof.
static void keep(struct best *best, struct zb_result *next) {
  if (!best->any) {
    best->result = *next;
    best->any = true;
    best->result.bound_ns = zb_max(best->result.bound_ns, best->bound_ns);
    return;
  }
  struct zb_result *kept = &best->result, other = *next;
  if (next->cost_ns < kept->cost_ns) {
    other.schedule = kept->schedule;
    kept->schedule = next->schedule;
    kept->cost_ns = next->cost_ns;
    kept->status = next->status;
    kept->work = next->work;
  }
  if (next->bound_ns > kept->bound_ns) {
    other.proof = kept->proof;
    kept->proof = next->proof;
    kept->relaxation = next->relaxation;
    kept->bound_ns = next->bound_ns;
  }
  zb_result_free(&other);
}

static bool has_schedule(const struct best *best) { return best->any && best->result.schedule; }

static bool done(const struct best *best) {
  if (!best->any) return false;
  return best->result.status == ZB_INFEASIBLE || best->result.status == ZB_OPTIMAL ||
         (best->result.schedule && best->result.cost_ns == best->result.bound_ns);
}

static void tell(const struct zb_problem *problem, const char *what, const struct best *best) {
  if (has_schedule(best) && problem->progress)
    problem->progress(problem->progress_context, what, best->result.cost_ns, best->result.bound_ns);
}

static enum zb_status run_part(const struct zb_problem *problem, enum zb_engine_part part,
                               const struct zb_schedule *incumbent, struct best *best,
                               struct zb_error *error) {
  for (int k = 0; k < zb_engine_count() && !done(best); k++) {
    const struct zb_engine *engine = zb_engine_at(k);
    if (zb_engine_part_at(k) != part || !zb_engine_accepts(engine->need, problem->profile)) continue;
    if (has_schedule(best) && zb_deadline_passed(&problem->deadline)) break;
    struct zb_result next;
    const struct zb_schedule *start = has_schedule(best) ? best->result.schedule : incumbent;
    enum zb_status status = engine->solve(problem, start, &next, error);
    if (status != ZB_OK) return status;
    if (next.status == ZB_OVER_LIMIT) {
      zb_result_free(&next);
      continue;
    }
    keep(best, &next);
    tell(problem, engine->name, best);
  }
  return ZB_OK;
}

// The share of the time that searches leave to refinement: a search that closes the gap needs less than all,
// and one that does not has seldom moved for a while.
enum { REFINEMENT_SHARE = 8 };

static bool can_refine(const struct zb_problem *problem) {
  return problem->profile->placement == ZB_CHAIN && zb_mip_available();
}

// Ops that exchanges may time at most outside of the search: about half a minute.
static const int64_t most_exchange_work = 400000000;

// Exchanges ops of the best schedule for a `share`-th of the time that is left, and `most_work` ops at most.
static enum zb_status exchange(const struct zb_problem *problem, int share, int64_t most_work,
                               struct best *best, struct zb_error *error) {
  struct zb_problem part = *problem;
  struct zb_result next;
  const int64_t now_ns = zb_clock_ns();
  if (!has_schedule(best) || done(best) || zb_deadline_passed(&problem->deadline)) return ZB_OK;
  if (problem->deadline.end_ns != INT64_MAX)
    part.deadline.end_ns = now_ns + (problem->deadline.end_ns - now_ns) / share;
  enum zb_status status =
      zb_critical_improve(&part, best->result.schedule, most_work, best->result.bound_ns, &next, error);
  if (status != ZB_OK) return status;
  keep(best, &next);
  tell(problem, "exchange", best);
  return ZB_OK;
}

// What looks for better schedules beside the window engine, lent to it for its search.
struct improvers {
  struct zb_tuner *tuner;   // on a chain
  struct zb_turner *turner; // on a V with many ops
  struct zb_exchanger *exchanger;
};

// Of a round's work in the search, in sixteenths.
enum { TUNER_SHARE = 16, EXCHANGER_SHARE = 48, TURNER_SHARE = 32 };

// Below that many ops exchanges find more in the same time than turns do, and go on best when nobody else
// gives them another schedule to start from.
enum { LEAST_TURNED_OPS = 4000 };

static int64_t ops_of(const struct zb_profile *profile) {
  return (int64_t)3 * profile->stages * profile->microbatches;
}

static void close_improvers(struct improvers *improvers) {
  zb_tuner_free(improvers->tuner);
  zb_turner_free(improvers->turner);
  zb_exchanger_free(improvers->exchanger);
}

static enum zb_status open_improvers(struct zb_problem *problem, struct improvers *improvers,
                                     struct zb_error *error) {
  *improvers = (struct improvers){0};
  if (problem->profile->devices == 1) return ZB_OK;
  enum zb_status status = zb_exchanger_create(problem, &improvers->exchanger, error);
  if (status != ZB_OK) return status;
  problem->improver[problem->improvers++] =
      (struct zb_improver){zb_exchanger_improve, improvers->exchanger, EXCHANGER_SHARE, false};
  if (ops_of(problem->profile) >= LEAST_TURNED_OPS && zb_engine_accepts(ZB_NEED_V, problem->profile)) {
    status = zb_turner_create(problem, &improvers->turner, error);
    if (status == ZB_OK)
      problem->improver[problem->improvers++] =
          (struct zb_improver){zb_turner_improve, improvers->turner, TURNER_SHARE, false};
  }
  if (status != ZB_OK || problem->profile->placement != ZB_CHAIN) return status;
  status = zb_tuner_create(problem, &improvers->tuner, error);
  if (status == ZB_OK)
    problem->improver[problem->improvers++] =
        (struct zb_improver){zb_tuner_improve, improvers->tuner, TUNER_SHARE, true};
  return status;
}

// Of the time, the share for exchanges before a placement is searched whose root bound may take long; what is
// small is over after as many ops timed for each of its own, for its search may close the gap at once.
enum { FIRST_EXCHANGE_SHARE = 2, EXCHANGE_SHARE_AFTER_TURNS = 6, FIRST_EXCHANGE_OPS = 10000 };

static int64_t first_exchange_work(const struct zb_profile *profile) {
  return zb_min(FIRST_EXCHANGE_OPS * ops_of(profile), most_exchange_work / FIRST_EXCHANGE_SHARE);
}

// The same for turns: a share of the time, and so many walks at most.
enum { FIRST_TURNS_SHARE = 6, FIRST_WALKS = 30000 };

// `helped` is the problem that the turner looks at; it is as before afterwards.
static enum zb_status turn(struct zb_problem *helped, struct zb_turner *turner, struct best *best,
                           struct zb_error *error) {
  const struct zb_deadline deadline = helped->deadline;
  const int64_t now_ns = zb_clock_ns();
  struct zb_schedule *found = NULL;
  struct zb_result next;
  if (!turner || !has_schedule(best) || done(best) || zb_deadline_passed(&deadline)) return ZB_OK;
  if (deadline.end_ns != INT64_MAX)
    helped->deadline.end_ns = now_ns + (deadline.end_ns - now_ns) / FIRST_TURNS_SHARE;
  const int64_t work = FIRST_WALKS * ops_of(helped->profile);
  enum zb_status status =
      zb_turner_improve(turner, best->result.schedule, best->result.cost_ns, work, &found, error);
  helped->deadline = deadline;
  if (status != ZB_OK || !found) return status;
  status = zb_result_from_schedule(helped, found, &next, error);
  if (status != ZB_OK) return status;
  keep(best, &next);
  tell(helped, "turns", best);
  return ZB_OK;
}

// What looks for better schedules at length need not begin where the best one is optimal. To find out takes
// large tables: a share of the time at most.
enum { REFUTING_SHARE = 16 };

static enum zb_status refute(const struct zb_problem *problem, struct best *best, struct zb_error *error) {
  struct zb_problem part = *problem;
  struct zb_result next;
  if (!has_schedule(best) || done(best) || zb_deadline_passed(&problem->deadline)) return ZB_OK;
  const int64_t now_ns = zb_clock_ns();
  if (part.deadline.end_ns != INT64_MAX)
    part.deadline.end_ns = now_ns + (part.deadline.end_ns - now_ns) / REFUTING_SHARE;
  enum zb_status status = zb_window_refute(&part, best->result.schedule, best->result.cost_ns, &next, error);
  if (status != ZB_OK) return status;
  keep(best, &next);
  if (done(best)) tell(problem, "bound", best);
  return ZB_OK;
}

static enum zb_status search(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                             struct best *best, struct zb_error *error) {
  struct zb_problem helped = *problem;
  struct improvers improvers;
  const bool chain = problem->profile->placement == ZB_CHAIN;
  enum zb_status status = open_improvers(&helped, &improvers, error);
  const int share = improvers.turner ? EXCHANGE_SHARE_AFTER_TURNS : FIRST_EXCHANGE_SHARE;
  if (status == ZB_OK && improvers.turner) status = refute(problem, best, error);
  if (status == ZB_OK) status = turn(&helped, improvers.turner, best, error);
  if (status == ZB_OK && !chain)
    status = exchange(problem, share, first_exchange_work(problem->profile), best, error);
  if (status == ZB_OK) status = run_part(&helped, ZB_PART_SEARCH, incumbent, best, error);
  // A search that memory ended leaves time.
  if (status == ZB_OK && !chain) status = exchange(problem, 1, most_exchange_work, best, error);
  close_improvers(&improvers);
  return status;
}

// Improves the best schedule with small integer programs for as long as there is time. Searches come first,
// until an eighth of their time is left.
static enum zb_status search_and_refine(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                        struct best *best, struct zb_error *error) {
  struct zb_problem part = *problem;
  const int64_t now_ns = zb_clock_ns();
  if (can_refine(problem) && problem->deadline.end_ns != INT64_MAX && now_ns < problem->deadline.end_ns)
    part.deadline.end_ns -= (problem->deadline.end_ns - now_ns) / REFINEMENT_SHARE;
  enum zb_status status = search(&part, incumbent, best, error);
  if (status != ZB_OK || !can_refine(problem) || done(best) || !has_schedule(best)) return status;
  if (zb_deadline_passed(&problem->deadline)) return ZB_OK;
  struct zb_result refined;
  status = zb_ilp_refine(problem, best->result.schedule, &refined, NULL, error);
  if (status != ZB_OK) return status;
  keep(best, &refined);
  tell(problem, "refine", best);
  return ZB_OK;
}

// What always fits where anything does: the given start, and an order for any placement.
static enum zb_status add_common(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                 struct best *best, struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  struct zb_result next;
  enum zb_status status = ZB_OK;
  if (incumbent) {
    status = zb_schedule_copy(incumbent, &schedule, error);
    if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &next, error);
    if (status == ZB_OK) keep(best, &next);
  }
  bool chain = problem->profile->placement == ZB_CHAIN;
  if (status != ZB_OK || (chain && has_schedule(best))) return status;
  status = zb_in_flight_solve(problem, &next, error);
  if (status == ZB_OK) keep(best, &next);
  return status;
}

static enum zb_status solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                            bool search, struct zb_result *result, struct zb_error *error) {
  struct best best = {.any = false, .bound_ns = zb_bound_closed_form(problem->profile, problem->objective)};
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  enum zb_status status = ZB_OK;
  if (!incumbent || !problem->resumed) status = run_part(problem, ZB_PART_HEURISTIC, incumbent, &best, error);
  if (status == ZB_OK && !done(&best)) status = add_common(problem, incumbent, &best, error);
  if (status == ZB_OK && search) status = search_and_refine(problem, incumbent, &best, error);
  if (status == ZB_OK)
    *result = best.result;
  else if (best.any)
    zb_result_free(&best.result);
  return status;
}

enum zb_status zb_auto_heuristics(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error) {
  return solve(problem, incumbent, false, result, error);
}

static enum zb_status auto_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                 struct zb_result *result, struct zb_error *error) {
  return solve(problem, incumbent, true, result, error);
}

const struct zb_engine zb_engine_auto = {"auto", "the best of what fits (default)", ZB_NEED_ANY, auto_solve};
