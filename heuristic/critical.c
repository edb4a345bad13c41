// critical.c - simulated annealing on the graph of an order.
//
// The longest device alone says too little: many paths are nearly critical, and a move that shortens one of
// them does not show. So what is minimised is p times the longest device plus the sum of all. A move is taken
// if that grows by no more than a random allowance, exponential with the temperature as its mean, and timing
// stops as soon as a device or, by the tails, a path is longer than could be taken.
//
// Rounds: the temperature falls from a start to nearly 0. The first round is short and cold, each further one
// twice as long and hotter, up to a limit, and most begin with the best order so far. Work is counted in ops
// timed, so that neither the clock nor the machine decides; the deadline only cuts. All in integers.
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

struct annealing {
  const struct zb_problem *problem;
  struct zb_graph now, best;
  struct zb_mover mover;
  int64_t now_cost, now_longest, best_longest; // cost: p * longest + sum
  int64_t work_sum;                            // of all devices
  int64_t mean;                                // time of an op, at least 1
  int64_t stop_at;                             // a longest device that is good enough
  int64_t check_at, end_at;                    // work
  int stale;                                   // moves since the tails were computed
  bool cut;                                    // by the deadline
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
static int64_t exponential(struct annealing *a, int64_t mean) {
  uint64_t bits = zb_random(&a->mover.random);
  int64_t halvings = 0;
  const int64_t part = (int64_t)(bits & 1023);
  for (bits >>= 16; halvings < 40 && (bits & 1); bits >>= 1) halvings++;
  return mean * (halvings * 1024 + part) / 1477; // 1024 / ln 2
}

static void renew_tails(struct annealing *a) {
  zb_graph_tails(&a->now);
  a->now.work += a->now.nodes / 4;
  a->stale = 0;
}

// One round in three goes on where the last one ended, so that the best order does not hold all of them.
static void restart(struct annealing *a, int round) {
  if (round % 3 != 2) zb_graph_copy(&a->now, &a->best);
  a->now_cost = measure(&a->now, &a->now_longest);
  renew_tails(a);
  zb_mover_trace(&a->mover);
}

static bool stops(struct annealing *a) {
  if (a->best_longest <= a->stop_at || a->now.work >= a->end_at) return true;
  if (a->now.work < a->check_at) return a->cut;
  a->check_at = a->now.work + CHECK_EVERY;
  return a->cut |= zb_deadline_passed(&a->problem->deadline);
}

static void take(struct annealing *a, int64_t cost, int64_t longest) {
  zb_graph_commit(&a->now);
  a->now_cost = cost;
  a->now_longest = longest;
  if (++a->stale > a->now.nodes / OPS_FOR_STALE) renew_tails(a);
  zb_mover_trace(&a->mover);
  if (longest >= a->best_longest) return;
  a->best_longest = longest;
  zb_graph_copy(&a->best, &a->now);
}

static void step(struct annealing *a, int64_t temperature) {
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

static void anneal(struct annealing *a) {
  const int64_t first = zb_min((int64_t)ROUND_OPS * a->now.nodes, MOST_FIRST);
  int64_t hot = COLDEST;
  int64_t length = 1;
  for (int round = 0; !stops(a); round++) {
    int64_t temperature = zb_max(a->mean * hot / 1000, 1);
    restart(a, round);
    for (int k = 0; k < STEPS && !stops(a); k++) {
      const int64_t until = a->now.work + first * length / STEPS;
      while (a->now.work < until && !stops(a)) step(a, temperature);
      temperature = temperature * COOLING / 1024;
    }
    hot = zb_min(2 * hot, HOTTEST);
    length = zb_min(2 * length, LONGEST_ROUND);
  }
}

// The better of the best order and the start.
static enum zb_status finish(const struct annealing *a, const struct zb_schedule *start,
                             struct zb_result *result, struct zb_error *error) {
  const struct zb_problem *problem = a->problem;
  struct zb_schedule *schedule = NULL;
  struct zb_result first, found;
  enum zb_status status = zb_schedule_copy(start, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &first, error);
  if (status != ZB_OK) return status;
  if (a->best.nodes > 0) {
    status = zb_graph_write(&a->best, &schedule, error);
    if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &found, error);
    if (status != ZB_OK) {
      zb_result_free(&first);
      return status;
    }
    const bool better = found.status == ZB_FEASIBLE && found.cost_ns < first.cost_ns;
    zb_result_free(better ? &first : &found);
    if (better) first = found;
  }
  first.work = a->now.work;
  *result = first;
  return ZB_OK;
}

enum zb_status zb_critical_improve(const struct zb_problem *problem, const struct zb_schedule *start,
                                   int64_t most_work, int64_t good_ns, struct zb_result *result,
                                   struct zb_error *error) {
  const bool from_first = problem->objective != ZB_MAKESPAN;
  struct annealing a = {.problem = problem, .end_at = most_work};
  enum zb_status status = zb_graph_create(problem->profile, start, from_first, &a.now, error);
  if (status == ZB_OK) status = zb_graph_create(problem->profile, start, from_first, &a.best, error);
  if (status != ZB_OK) goto done;
  if (a.now.nodes > 0) {
    const struct zb_graph *g = &a.now;
    a.mover = (struct zb_mover){.graph = &a.now, .random = problem->seed * 2 + 88172645463325253};
    a.mover.path = malloc((size_t)g->nodes * sizeof *a.mover.path);
    if (!a.mover.path) {
      status = zb_fail_memory(error);
      goto done;
    }
    for (int d = 0; d < g->devices; d++) a.work_sum += g->node[g->first[d]].rest;
    a.mean = a.work_sum / g->nodes + 1;
    a.stop_at = good_ns < INT64_MAX / 2 / g->scale ? good_ns * g->scale + g->scale - 1 : 0;
    measure(&a.best, &a.best_longest);
    anneal(&a);
  }
  status = finish(&a, start, result, error);

done:
  free(a.mover.path);
  zb_graph_free(&a.now);
  zb_graph_free(&a.best);
  return status;
}
