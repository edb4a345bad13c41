// critical.c - simulated annealing on the graph of an order.
//
// The longest device alone says too little: many paths are nearly critical, and a move that shortens one of
// them does not show. So what is minimised is p times the longest device plus the sum of all. A move is taken
// if that grows by no more than a random allowance, exponential with the temperature as its mean, and timing
// stops as soon as a device or, by the tails, a path is longer than could be taken.
//
// Rounds: the temperature falls from a start to nearly 0. The first round is short and cold, each further one
// twice as long and hotter, up to a limit, and most begin with the best order so far. Work is counted in ops
// timed, so that neither the clock nor the machine decides; the deadline only cuts. An exchanger may stop
// anywhere in a round and go on there later; given a better order from outside, it begins anew. All in
// integers.
#include "heuristic/critical.h"

#include <stdlib.h>

#include "heuristic/critical_move.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

enum {
  ROUND_OPS = 2000,      // times the number of ops is the first round's work
  MOST_FIRST = 20000000, // which is at most this
  LONGEST_ROUND = 64,    // times the first
  STEPS = 64,            // of the temperature in a round
  COLDEST = 30,          // start of the first round, thousandths of an op's mean time
  HOTTEST = 300,         // of any
  COOLING = 981,         // of 1024, a step
  CHECK_EVERY = 20000,   // work between looks at the clock
  SLACK_SINGLE = 1,      // mean times that a path may promise to be too long and still be timed
  SLACK_COMPOUND = 8,    // the same for compound moves, for which tails say less
  OPS_FOR_STALE = 1000,  // tails are computed after as many moves as this goes into the number of ops
};

struct zb_exchanger {
  const struct zb_problem *problem;
  struct zb_graph now, best;
  struct zb_mover mover;
  int64_t now_cost, now_longest, best_longest; // cost: p * longest + sum
  int64_t work_sum;                            // of all devices
  int64_t mean;                                // time of an op, at least 1
  int64_t stop_at;                             // a longest device that is good enough
  int64_t check_at, end_at;                    // work
  int64_t told_ns;                             // cost of the best schedule that callers know of
  int stale;                                   // moves since the tails were computed
  bool cut;                                    // by the deadline
  // Of rounds: how many began, start temperature and length of the next; of this one, its steps and
  // temperature, and the work at which its step ends.
  int64_t hot, length, step_work, temperature, step_end;
  int rounds, steps_left;
};

static int64_t measure(const struct zb_graph *g, int64_t *longest) {
  int64_t sum = 0;
  *longest = 0;
  for (int d = 0; d < g->devices; d++) {
    const int64_t length = zb_graph_length(g, d);
    *longest = zb_max(*longest, length);
    sum += length;
  }
  return g->devices * *longest + sum;
}

// Exponential with this mean, to within the straight lines that stand in for the curve.
static int64_t exponential(struct zb_exchanger *a, int64_t mean) {
  uint64_t bits = zb_random(&a->mover.random);
  int64_t halvings = 0;
  const int64_t part = (int64_t)(bits & 1023);
  for (bits >>= 16; halvings < 40 && (bits & 1); bits >>= 1) halvings++;
  return mean * (halvings * 1024 + part) / 1477; // 1024 / ln 2
}

static void renew_tails(struct zb_exchanger *a) {
  zb_graph_tails(&a->now);
  a->now.work += a->now.nodes / 4;
  a->stale = 0;
}

static bool stops(struct zb_exchanger *a) {
  if (a->best_longest <= a->stop_at || a->now.work >= a->end_at) return true;
  if (a->now.work < a->check_at) return a->cut;
  a->check_at = a->now.work + CHECK_EVERY;
  return a->cut |= zb_deadline_passed(&a->problem->deadline);
}

static void take(struct zb_exchanger *a, int64_t cost, int64_t longest) {
  zb_graph_commit(&a->now);
  a->now_cost = cost;
  a->now_longest = longest;
  if (++a->stale > a->now.nodes / OPS_FOR_STALE) renew_tails(a);
  zb_mover_trace(&a->mover);
  if (longest >= a->best_longest) return;
  a->best_longest = longest;
  zb_graph_copy(&a->best, &a->now);
}

static void step(struct zb_exchanger *a, int64_t temperature) {
  struct zb_graph *g = &a->now;
  const bool compound = zb_mover_move(&a->mover);
  g->work++;
  if (g->swaps == 0) return;
  const int64_t allowed = exponential(a, temperature * g->devices);
  const int64_t slack = a->mean * (compound ? SLACK_COMPOUND : SLACK_SINGLE);
  const int64_t most = (a->now_cost + allowed - a->work_sum) / g->devices;
  int64_t longest = 0, cost = INT64_MAX;
  if (zb_graph_time(g, most, a->now_longest + allowed / g->devices + slack)) cost = measure(g, &longest);
  if (cost <= a->now_cost + allowed) {
    take(a, cost, longest);
    return;
  }
  zb_graph_undo(g);
  if (zb_mover_below(&a->mover, 64) == 0) zb_mover_trace(&a->mover);
}

// One round in three goes on where the last one ended, so that the best order does not hold all of them.
static void begin_round(struct zb_exchanger *a) {
  if (a->rounds % 3 != 2) zb_graph_copy(&a->now, &a->best);
  a->now_cost = measure(&a->now, &a->now_longest);
  renew_tails(a);
  zb_mover_trace(&a->mover);
  a->temperature = zb_max(a->mean * a->hot / 1000, 1);
  a->step_work = zb_min((int64_t)ROUND_OPS * a->now.nodes, MOST_FIRST) * a->length / STEPS;
  a->steps_left = STEPS;
  a->hot = zb_min(2 * a->hot, HOTTEST);
  a->length = zb_min(2 * a->length, LONGEST_ROUND);
  a->rounds++;
}

// Goes on where it stopped.
static void anneal(struct zb_exchanger *a, int64_t work) {
  a->end_at = work < INT64_MAX - a->now.work ? a->now.work + work : INT64_MAX;
  while (!stops(a)) {
    if (a->now.work >= a->step_end) {
      if (a->steps_left == 0)
        begin_round(a);
      else
        a->temperature = a->temperature * COOLING / 1024;
      a->steps_left--;
      a->step_end = a->now.work + a->step_work;
    }
    step(a, a->temperature);
  }
}

static void close_graphs(struct zb_exchanger *a) {
  free(a->mover.path);
  a->mover.path = NULL;
  zb_graph_free(&a->now);
  zb_graph_free(&a->best);
}

// Begins anew from `start`: short and cold.
static enum zb_status adopt(struct zb_exchanger *a, const struct zb_schedule *start, struct zb_error *error) {
  const struct zb_problem *problem = a->problem;
  const bool from_first = problem->objective != ZB_MAKESPAN;
  close_graphs(a);
  enum zb_status status = zb_graph_create(problem->profile, start, from_first, &a->now, error);
  if (status == ZB_OK) status = zb_graph_create(problem->profile, start, from_first, &a->best, error);
  if (status != ZB_OK || a->now.nodes == 0) return status;
  const struct zb_graph *g = &a->now;
  a->mover.graph = &a->now;
  a->mover.path = malloc((size_t)g->nodes * sizeof *a->mover.path);
  if (!a->mover.path) return zb_fail_memory(error);
  a->work_sum = 0;
  for (int d = 0; d < g->devices; d++) a->work_sum += g->node[g->first[d]].rest;
  a->mean = a->work_sum / g->nodes + 1;
  a->hot = COLDEST;
  a->length = 1;
  a->rounds = a->steps_left = 0;
  a->step_end = a->check_at = 0;
  measure(&a->best, &a->best_longest);
  return ZB_OK;
}

// The best order as a schedule under the problem's objective: FEASIBLE with it in `result`, if it costs less
// than cost_ns; otherwise UNKNOWN and nothing in it.
static enum zb_status write_better(const struct zb_exchanger *a, int64_t cost_ns, struct zb_result *result,
                                   struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  struct zb_result found;
  *result = (struct zb_result){.status = ZB_UNKNOWN, .cost_ns = INT64_MAX};
  if (a->best.nodes == 0) return ZB_OK;
  enum zb_status status = zb_graph_write(&a->best, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(a->problem, schedule, &found, error);
  if (status != ZB_OK) return status;
  if (found.status == ZB_FEASIBLE && found.cost_ns < cost_ns)
    *result = found;
  else
    zb_result_free(&found);
  return ZB_OK;
}

static void set_up(const struct zb_problem *problem, struct zb_exchanger *a) {
  *a = (struct zb_exchanger){.problem = problem, .told_ns = INT64_MAX};
  a->mover.random = problem->seed * 2 + 88172645463325253;
}

enum zb_status zb_exchanger_create(const struct zb_problem *problem, struct zb_exchanger **exchanger,
                                   struct zb_error *error) {
  struct zb_exchanger *a = malloc(sizeof *a);
  if (!a) return zb_fail_memory(error);
  set_up(problem, a);
  *exchanger = a;
  return ZB_OK;
}

void zb_exchanger_free(struct zb_exchanger *exchanger) {
  if (!exchanger) return;
  close_graphs(exchanger);
  free(exchanger);
}

enum zb_status zb_exchanger_improve(void *exchanger, const struct zb_schedule *best, int64_t cost_ns,
                                    int64_t work, struct zb_schedule **found, struct zb_error *error) {
  struct zb_exchanger *a = exchanger;
  struct zb_result result;
  enum zb_status status = ZB_OK;
  *found = NULL;
  if (cost_ns < a->told_ns) {
    a->told_ns = cost_ns;
    status = adopt(a, best, error);
  }
  if (status != ZB_OK || a->now.nodes == 0) return status;
  const int64_t longest = a->best_longest;
  anneal(a, work);
  if (a->best_longest == longest) return ZB_OK;
  status = write_better(a, a->told_ns, &result, error);
  if (status != ZB_OK || !result.schedule) return status;
  a->told_ns = result.cost_ns;
  *found = result.schedule;
  return ZB_OK;
}

enum zb_status zb_critical_improve(const struct zb_problem *problem, const struct zb_schedule *start,
                                   int64_t most_work, int64_t good_ns, struct zb_result *result,
                                   struct zb_error *error) {
  struct zb_exchanger a;
  struct zb_schedule *schedule = NULL;
  struct zb_result first, better;
  enum zb_status status = zb_schedule_copy(start, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &first, error);
  if (status != ZB_OK) return status;
  set_up(problem, &a);
  status = adopt(&a, start, error);
  if (status == ZB_OK && a.now.nodes > 0) {
    a.stop_at = good_ns < INT64_MAX / 2 / a.now.scale ? good_ns * a.now.scale + a.now.scale - 1 : 0;
    anneal(&a, most_work);
  }
  if (status == ZB_OK) status = write_better(&a, first.cost_ns, &better, error);
  if (status == ZB_OK && better.schedule) {
    zb_result_free(&first);
    first = better;
  }
  if (status == ZB_OK) {
    first.work = a.now.work;
    *result = first;
  } else {
    zb_result_free(&first);
  }
  close_graphs(&a);
  return status;
}
