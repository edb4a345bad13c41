// tuned.c - each device of greedy_events.c with choices of its own, found by simulated annealing.
//
// Where memory is tight or stages differ, how many microbatches a device asks to keep, and how long it waits
// for an F, a B or a gap, decide what its neighbours can do, and no one answer suits all devices. An order
// takes well under a millisecond to write and time, so thousands of choices can be tried: a move changes one
// choice of one device, or of a run of them, and is taken if the order gets no longer, or, less and less
// often, a little longer.
//
// A chain of moves begins with choices that hold for a device's whole order. Then the order is cut into two
// parts with choices of their own, then into four, and so on: the beginning and the end of an order are
// unlike its middle. The next chain begins anew with other random numbers, and is longer. Lengths are counted
// in ops, so that what is found does not depend on the clock.
#include "heuristic/tuned.h"

#include <stdlib.h>
#include <string.h>

#include "heuristic/greedy.h"
#include "heuristic/tournament.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

// Ops that the first chain writes and times, and a chain at most; orders at most: what is small settles
// sooner.
static const int64_t first_ops = 8000000, most_ops = 64000000, most_orders = 40000;

// Parts that an order is cut into, at most; a power of two.
enum { MOST_PARTS = 32 };

// Of a cost, by how much a move may lengthen it when a level of parts begins: the first, and the others.
static const double first_temperature = 0.005, next_temperature = 0.001;

// Of a chain's orders, which share goes to the level without parts.
static const double first_share = 0.3;

// Waits are tuned in this many steps of an op's duration.
enum { WAIT_STEPS = 16 };

struct plan {
  struct zb_greedy_choices *choices; // [devices * parts]
  int parts;
  bool fuse;
  int64_t cost_ns; // ZB_NEVER: nothing yet
};

struct zb_tuner {
  const struct zb_problem *problem;
  struct zb_pipe pipe;
  int64_t *clock;
  struct zb_greedy_choices *storage; // of all plans
  int *part;                         // [microbatches + 1] for part_count parts
  int part_count, most_parts;
  bool may_fuse;
  struct plan now, next; // of the chain
  struct plan level;     // the chain's best
  struct plan best;      // of all chains
  int64_t chain_ops;
  int64_t order, orders; // of the level: done, planned
  int64_t told_ns;       // cost of what was handed out last
  uint64_t random;
};

static int below(struct zb_tuner *t, int count) {
  return (int)((zb_random(&t->random) >> 16) % (uint64_t)count);
}

static size_t plan_size(const struct zb_tuner *t, const struct plan *plan) {
  return (size_t)t->pipe.devices * (size_t)plan->parts * sizeof *plan->choices;
}

static void copy_plan(const struct zb_tuner *t, struct plan *to, const struct plan *from) {
  memcpy(to->choices, from->choices, plan_size(t, from));
  to->parts = from->parts;
  to->fuse = from->fuse;
  to->cost_ns = from->cost_ns;
}

// Writes the plan's order into the pipe. The span stands in for the period, which no order repeats faster
// than it settles.
static void write_order(struct zb_tuner *t, struct plan *plan) {
  if (t->part_count != plan->parts) {
    const int m = t->pipe.microbatches;
    for (int n = 0; n <= m; n++) t->part[n] = (int)((int64_t)zb_min(n, m - 1) * plan->parts / m);
    t->part_count = plan->parts;
  }
  const struct zb_greedy_plan greedy = {plan->choices, t->part, plan->parts};
  zb_pipe_clear(&t->pipe, plan->fuse);
  zb_greedy_events(&t->pipe, &greedy, t->clock);
  plan->cost_ns = zb_pipe_cost(&t->pipe, t->problem->objective == ZB_MAKESPAN ? ZB_MAKESPAN : ZB_SPAN);
}

static void take(struct zb_tuner *t) {
  copy_plan(t, &t->now, &t->next);
  if (t->now.cost_ns < t->level.cost_ns) copy_plan(t, &t->level, &t->now);
  if (t->now.cost_ns < t->best.cost_ns) copy_plan(t, &t->best, &t->now);
}

static void plan_orders(struct zb_tuner *t) {
  const int64_t ops = (int64_t)3 * t->pipe.devices * t->pipe.microbatches;
  const double orders = (double)zb_min(most_orders, t->chain_ops / ops);
  int levels = 0;
  for (int parts = 2; parts <= t->most_parts; parts *= 2) levels++;
  const double share = levels == 0 ? 1 : t->now.parts == 1 ? first_share : (1 - first_share) / levels;
  t->order = 0;
  t->orders = (int64_t)(orders * share) + 1;
}

// From the best of greedy's own choices.
static void begin_chain(struct zb_tuner *t) {
  t->chain_ops = t->chain_ops == 0 ? first_ops : zb_min(most_ops, 2 * t->chain_ops);
  t->now.cost_ns = t->level.cost_ns = ZB_NEVER;
  t->next.parts = 1;
  for (int fuse = 0; fuse <= (int)t->may_fuse; fuse++) {
    t->next.fuse = fuse;
    zb_pipe_clear(&t->pipe, fuse);
    for (unsigned choice = 0; choice < 16; choice++) {
      zb_greedy_choose_alike(&t->pipe, choice, t->next.choices);
      write_order(t, &t->next);
      if (t->next.cost_ns < t->now.cost_ns) take(t);
    }
  }
  plan_orders(t);
}

// Cuts each part of the chain's best in two, which changes nothing yet; false where they are short enough.
static bool cut_parts(struct zb_tuner *t) {
  const int before = t->level.parts, parts = 2 * before;
  if (parts > t->most_parts) return false;
  for (int k = t->pipe.devices * parts - 1; k >= 0; k--) t->now.choices[k] = t->level.choices[k / 2];
  t->now.parts = parts;
  t->now.fuse = t->level.fuse;
  t->now.cost_ns = t->level.cost_ns;
  copy_plan(t, &t->level, &t->now);
  plan_orders(t);
  return true;
}

// A run of neighbours, as often just one: first .. last of `count`.
struct run {
  int first, last;
};

static struct run random_run(struct zb_tuner *t, int count) {
  const int first = below(t, count);
  return (struct run){first, below(t, 2) ? first : (int)zb_min(first + below(t, count), count - 1)};
}

enum move { ORDER, HOLD_FORWARD, HOLD_BACKWARD, GAP, WANTED, WANTED_FIRST };

static void change(struct zb_tuner *t) {
  // How often each is tried.
  static const enum move moves[] = {ORDER, ORDER,  HOLD_FORWARD, HOLD_BACKWARD, GAP,
                                    GAP,   WANTED, WANTED,       WANTED_FIRST};
  const enum move move = moves[below(t, sizeof moves / sizeof *moves)];
  const struct run devices = random_run(t, t->pipe.devices), parts = random_run(t, t->now.parts);
  const bool up = below(t, 2);
  const int step = up ? 1 : -1;
  const int64_t steps = below(t, WAIT_STEPS + 1);
  copy_plan(t, &t->next, &t->now);
  for (int i = devices.first; i <= devices.last; i++) {
    const struct zb_pipe_device *d = &t->pipe.device[i];
    for (int k = parts.first; k <= parts.last; k++) {
      struct zb_greedy_choices *choices = &t->next.choices[i * t->next.parts + k];
      switch (move) {
      case ORDER:
        choices->backward_first = up;
        break;
      case HOLD_FORWARD:
        choices->hold_forward_ns = d->f_ns * steps / WAIT_STEPS;
        break;
      case HOLD_BACKWARD:
        choices->hold_backward_ns = up ? d->b_ns * steps / WAIT_STEPS : 0;
        break;
      case GAP:
        choices->least_gap_ns = d->w_ns * steps / WAIT_STEPS;
        break;
      case WANTED:
        choices->most_wanted = (int)zb_max(1, choices->most_wanted + step);
        choices->most_wanted_first = (int)zb_max(1, choices->most_wanted_first + step);
        break;
      case WANTED_FIRST:
        choices->most_wanted_first = (int)zb_max(1, choices->most_wanted_first + step);
      }
    }
  }
}

static void anneal_once(struct zb_tuner *t) {
  const double left = 1 - (double)t->order / (double)t->orders,
               chance = (double)below(t, 1 << 20) / (double)(1 << 20),
               temperature = t->now.parts == 1 ? first_temperature : next_temperature;
  change(t);
  write_order(t, &t->next);
  const double allowed = (double)t->now.cost_ns * temperature * left * left * chance * chance;
  if ((double)t->next.cost_ns <= (double)t->now.cost_ns + allowed) take(t);
  t->order++;
}

static enum zb_status write_best(struct zb_tuner *t, struct zb_schedule **found, struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  enum zb_status status = zb_builder_create(t->problem->profile, &builder, error);
  if (status != ZB_OK) return status;
  write_order(t, &t->best);
  zb_pipe_write(&t->pipe, &builder);
  status = zb_builder_finish(&builder, found, error);
  zb_builder_free(&builder);
  return status;
}

enum zb_status zb_tuner_improve(void *tuner, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                                struct zb_schedule **found, struct zb_error *error) {
  (void)best;
  struct zb_tuner *t = tuner;
  const int64_t ops = (int64_t)3 * t->pipe.devices * t->pipe.microbatches;
  if (t->orders == 0) begin_chain(t);
  for (int64_t done = 0; done < work && !zb_deadline_passed(&t->problem->deadline); done += ops) {
    if (t->order >= t->orders && !cut_parts(t)) begin_chain(t);
    anneal_once(t);
  }
  *found = NULL;
  if (t->best.cost_ns >= zb_min(cost_ns, t->told_ns)) return ZB_OK;
  t->told_ns = t->best.cost_ns;
  return write_best(t, found, error);
}

enum zb_status zb_tuner_create(const struct zb_problem *problem, struct zb_tuner **tuner,
                               struct zb_error *error) {
  const struct zb_profile *profile = problem->profile;
  struct zb_tuner *t = calloc(1, sizeof *t);
  if (!t) return zb_fail_memory(error);
  enum zb_status status = zb_pipe_create(profile, ZB_NO_LIMIT, &t->pipe, error);
  if (status != ZB_OK) {
    free(t);
    return status;
  }
  t->problem = problem;
  t->random = (problem->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  t->told_ns = ZB_NEVER;
  for (t->most_parts = 1; t->most_parts < MOST_PARTS && 2 * t->most_parts <= profile->microbatches;)
    t->most_parts *= 2;
  const size_t cells = (size_t)profile->devices * (size_t)t->most_parts;
  t->clock = malloc(zb_tournament_length(profile->devices) * sizeof *t->clock);
  t->part = malloc(((size_t)profile->microbatches + 1) * sizeof *t->part);
  t->storage = malloc(4 * cells * sizeof *t->storage);
  if (!t->clock || !t->part || !t->storage) {
    zb_tuner_free(t);
    return zb_fail_memory(error);
  }
  struct plan *const plan[] = {&t->now, &t->next, &t->level, &t->best};
  for (size_t k = 0; k < 4; k++)
    *plan[k] = (struct plan){.choices = t->storage + k * cells, .parts = 1, .cost_ns = ZB_NEVER};
  for (int i = 0; i < profile->devices; i++) t->may_fuse |= zb_profile_fused_is_shorter(profile, i);
  *tuner = t;
  return ZB_OK;
}

void zb_tuner_free(struct zb_tuner *tuner) {
  if (!tuner) return;
  zb_pipe_free(&tuner->pipe);
  free(tuner->clock);
  free(tuner->part);
  free(tuner->storage);
  free(tuner);
}
