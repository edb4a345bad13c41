// tuned.c - each device of greedy_events.c with choices of its own, found by simulated annealing.
//
// Where memory is tight or stages differ, how many microbatches a device asks to keep and whether it waits
// for a B decide what its neighbours can do, and no one answer suits all devices. An order takes well under a
// millisecond to write and time, so thousands of choices can be tried: a move changes one choice of one
// device, or of a run of them, and is taken if the order gets no longer, or, less and less often, a little
// longer. The temperature falls with the budget, which is counted in ops, so that the result does not depend
// on the clock.
#include "heuristic/tuned.h"

#include <stdlib.h>
#include <string.h>

#include "heuristic/greedy.h"
#include "heuristic/tournament.h"
#include "solver/model/number.h"

// Ops written and timed in all, and orders at most: what is small settles sooner.
static const int64_t most_ops = 16000000, most_orders = 6000;

// Of a cost, by how much a move may lengthen it at the start.
static const double start_temperature = 0.002;

struct tuning {
  const struct zb_problem *problem;
  struct zb_pipe pipe;
  int64_t *clock;
  struct zb_greedy_choices *now, *next, *best; // [devices]
  int64_t now_ns, best_ns;
  bool fuse, best_fuse;
  uint64_t random;
};

static uint64_t next_random(struct tuning *t) {
  t->random ^= t->random << 13;
  t->random ^= t->random >> 7;
  t->random ^= t->random << 17;
  return t->random >> 16;
}

static int below(struct tuning *t, int count) { return (int)(next_random(t) % (uint64_t)count); }

// The span stands in for the period, which no order repeats faster than it settles.
static int64_t order_cost(struct tuning *t, const struct zb_greedy_choices *choices) {
  zb_pipe_clear(&t->pipe, t->fuse);
  zb_greedy_events(&t->pipe, choices, t->clock);
  return zb_pipe_cost(&t->pipe, t->problem->objective == ZB_MAKESPAN ? ZB_MAKESPAN : ZB_SPAN);
}

static void take(struct tuning *t, int64_t cost_ns) {
  const size_t size = (size_t)t->pipe.devices * sizeof *t->now;
  memcpy(t->now, t->next, size);
  t->now_ns = cost_ns;
  if (cost_ns >= t->best_ns) return;
  memcpy(t->best, t->next, size);
  t->best_ns = cost_ns;
  t->best_fuse = t->fuse;
}

// Greedy's own choices, the best of which is where the search begins.
static void start(struct tuning *t, bool may_fuse) {
  for (int fuse = 0; fuse <= (int)may_fuse; fuse++) {
    for (unsigned choice = 0; choice < 16; choice++) {
      t->fuse = fuse;
      zb_greedy_choose_alike(t->pipe.devices, choice, t->next);
      const int64_t cost_ns = order_cost(t, t->next);
      if (cost_ns < t->now_ns) take(t, cost_ns);
    }
  }
  t->fuse = t->best_fuse;
}

static void change(struct tuning *t) {
  const int p = t->pipe.devices, first = below(t, p), kind = below(t, 5);
  const int last = below(t, 2) ? first : (int)zb_min(first + below(t, p), p - 1);
  const bool up = below(t, 2);
  memcpy(t->next, t->now, (size_t)p * sizeof *t->next);
  for (int i = first; i <= last; i++) {
    struct zb_greedy_choices *choices = &t->next[i];
    switch (kind) {
    case 0:
      choices->backward_first = up;
      break;
    case 1:
      choices->hold_forward = up;
      break;
    case 2:
      choices->fill_every_gap = up;
      break;
    default:
      choices->most_wanted = (int)zb_max(1, choices->most_wanted + (up ? 1 : -1));
    }
  }
}

static void anneal(struct tuning *t) {
  const int64_t ops = (int64_t)3 * t->pipe.devices * t->pipe.microbatches;
  const int64_t orders = zb_min(most_orders, most_ops / ops);
  for (int64_t k = 0; k < orders && !zb_deadline_passed(&t->problem->deadline); k++) {
    const double left = 1 - (double)k / (double)orders,
                 chance = (double)below(t, 1 << 20) / (double)(1 << 20);
    change(t);
    const int64_t cost_ns = order_cost(t, t->next);
    const double allowed = (double)t->now_ns * start_temperature * left * left * chance * chance;
    if ((double)cost_ns <= (double)t->now_ns + allowed) take(t, cost_ns);
  }
}

static enum zb_status write_best(struct tuning *t, struct zb_result *result, struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  struct zb_schedule *schedule = NULL;
  enum zb_status status = zb_builder_create(t->problem->profile, &builder, error);
  if (status != ZB_OK) return status;
  t->fuse = t->best_fuse;
  order_cost(t, t->best);
  zb_pipe_write(&t->pipe, &builder);
  status = zb_builder_finish(&builder, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(t->problem, schedule, result, error);
  zb_builder_free(&builder);
  return status;
}

enum zb_status zb_tuned_solve(const struct zb_problem *problem, struct zb_result *result,
                              struct zb_error *error) {
  const struct zb_profile *profile = problem->profile;
  const size_t p = (size_t)profile->devices;
  struct tuning t = {.problem = problem, .now_ns = INT64_MAX, .best_ns = INT64_MAX};
  t.random = problem->seed * 2 + 88172645463325253;
  enum zb_status status = zb_pipe_create(profile, ZB_NO_LIMIT, &t.pipe, error);
  if (status != ZB_OK) return status;
  t.clock = malloc(zb_tournament_length(profile->devices) * sizeof *t.clock);
  t.now = malloc(3 * p * sizeof *t.now);
  if (!t.clock || !t.now) {
    status = zb_fail_memory(error);
  } else {
    bool may_fuse = false;
    for (size_t i = 0; i < p; i++) may_fuse |= zb_profile_fused_is_shorter(profile, (int)i);
    t.next = t.now + p;
    t.best = t.next + p;
    start(&t, may_fuse);
    anneal(&t);
    status = write_best(&t, result, error);
  }
  zb_pipe_free(&t.pipe);
  free(t.clock);
  free(t.now);
  return status;
}
