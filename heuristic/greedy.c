// greedy.c - the paper's heuristic under the limits of the profile, and of zb-1p and zb-2p.
//
// Every combination of the yes/no choices writes one order; the best under the problem's objective is
// kept. On a chain of equal devices that can keep p microbatches each, which is what arXiv 2401.10241
// describes, the orders are those of its heuristic (greedy_rounds.c). Where devices differ, or one cannot
// keep so many, list scheduling (greedy_events.c) joins in. Where a device's BW is shorter than its
// B and W, everything is tried with BW there, too.
//
// Every order keeps every limit as it is written, and both constructions always finish, so there is a
// schedule unless a device cannot hold one microbatch.
#include "heuristic/greedy.h"

#include <stdlib.h>

#include "heuristic/families.h"
#include "heuristic/tournament.h"
#include "solver/model/number.h"

// One order: which construction, and the bits of its yes/no choices.
struct attempt {
  bool fuse_where_shorter, events;
  unsigned choice;
};

struct search {
  const struct zb_problem *problem; // borrowed
  struct zb_pipe pipe;
  int64_t *clock;                    // scratch of the events
  struct zb_greedy_choices *choices; // [devices] likewise
  struct zb_schedule_builder builder;
  struct zb_timeline timeline;
  struct attempt best;
  int64_t best_cost_ns;
  int tried;
};

static bool all_equal(const int64_t *value, int count) {
  for (int i = 1; i < count; i++) {
    if (value[i] != value[0]) return false;
  }
  return true;
}

// Equal devices, each of which keeps as many microbatches as fill the pipe.
static bool rounds_suffice(const struct zb_profile *profile, const struct zb_pipe *pipe) {
  const int p = profile->devices, needed = (int)zb_min(p, profile->microbatches);
  for (int i = 0; i < p; i++) {
    if (pipe->device[i].most_kept < needed) return false;
  }
  return all_equal(profile->f_ns, p) && all_equal(profile->b_ns, p) && all_equal(profile->w_ns, p) &&
         all_equal(profile->bw_ns, p) && all_equal(profile->comm_forward_ns, p - 1) &&
         all_equal(profile->comm_backward_ns, p - 1);
}

static bool has_shorter_fused(const struct zb_profile *profile) {
  for (int stage = 0; stage < profile->stages; stage++) {
    if (zb_profile_fused_is_shorter(profile, stage)) return true;
  }
  return false;
}

static void write_attempt(struct search *search, struct attempt attempt) {
  const unsigned choice = attempt.choice;
  zb_pipe_clear(&search->pipe, attempt.fuse_where_shorter);
  if (attempt.events) {
    zb_greedy_choose_alike(&search->pipe, choice, search->choices);
    const struct zb_greedy_plan plan = {.choices = search->choices, .parts = 1};
    zb_greedy_events(&search->pipe, &plan, search->clock);
  } else {
    zb_greedy_rounds(&search->pipe, choice & 1, choice & 2);
  }
}

static enum zb_status finish_schedule(struct search *search, struct zb_schedule **schedule,
                                      struct zb_error *error) {
  zb_pipe_write(&search->pipe, &search->builder);
  return zb_builder_finish(&search->builder, schedule, error);
}

// Span and makespan were summed up while the order was written; the period needs the order itself.
static enum zb_status order_cost(struct search *search, int64_t *cost_ns, struct zb_error *error) {
  const struct zb_pipe *pipe = &search->pipe;
  const enum zb_objective objective = search->problem->objective;
  if (objective != ZB_PERIOD) {
    *cost_ns = zb_pipe_cost(pipe, objective);
    return ZB_OK;
  }
  struct zb_schedule *schedule = NULL;
  enum zb_status status = finish_schedule(search, &schedule, error);
  if (status == ZB_OK) status = zb_timeline_compute(pipe->profile, schedule, &search->timeline, error);
  if (status == ZB_OK) status = zb_timeline_period(pipe->profile, schedule, &search->timeline, error);
  if (status == ZB_OK) *cost_ns = search->timeline.period_ns;
  zb_schedule_free(schedule);
  return status;
}

// Remembers only which attempt was the best: writing it once more is cheaper than keeping its order.
static enum zb_status try_attempt(struct search *search, struct attempt attempt, struct zb_error *error) {
  if (search->tried > 0 && zb_deadline_passed(&search->problem->deadline)) return ZB_OK;
  int64_t cost_ns = 0;
  write_attempt(search, attempt);
  enum zb_status status = order_cost(search, &cost_ns, error);
  if (status == ZB_OK && (search->tried == 0 || cost_ns < search->best_cost_ns)) {
    search->best = attempt;
    search->best_cost_ns = cost_ns;
  }
  search->tried++;
  return status;
}

static enum zb_status try_all(struct search *search, struct zb_error *error) {
  const struct zb_profile *profile = search->problem->profile;
  enum zb_status status = ZB_OK;
  for (int fuse = 0; fuse <= (int)has_shorter_fused(profile); fuse++) {
    for (unsigned choice = 0; choice < 4 && status == ZB_OK; choice++) {
      status = try_attempt(search, (struct attempt){fuse, false, choice}, error);
    }
    if (rounds_suffice(profile, &search->pipe)) continue;
    for (unsigned choice = 0; choice < 16 && status == ZB_OK; choice++) {
      status = try_attempt(search, (struct attempt){fuse, true, choice}, error);
    }
  }
  return status;
}

static enum zb_status greedy_search(const struct zb_problem *problem, int64_t most_bytes,
                                    struct zb_result *result, struct zb_error *error) {
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  struct search search = {.problem = problem};
  enum zb_status status = zb_pipe_create(problem->profile, most_bytes, &search.pipe, error);
  if (status != ZB_OK) goto done;
  status = zb_builder_create(problem->profile, &search.builder, error);
  if (status != ZB_OK) goto done;
  search.clock = malloc(zb_tournament_length(problem->profile->devices) * sizeof *search.clock);
  search.choices = malloc((size_t)problem->profile->devices * sizeof *search.choices);
  if (!search.clock || !search.choices) {
    status = zb_fail_memory(error);
    goto done;
  }
  status = try_all(&search, error);
  if (status != ZB_OK) goto done;
  write_attempt(&search, search.best);
  struct zb_schedule *schedule = NULL;
  status = finish_schedule(&search, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, result, error);
  if (status == ZB_OK) result->work = search.tried;
done:
  zb_pipe_free(&search.pipe);
  zb_builder_free(&search.builder);
  zb_timeline_free(&search.timeline);
  free(search.clock);
  free(search.choices);
  return status;
}

// `multiple` times what the devices keep together of one microbatch (the paper's p * M_B).
static int64_t relative_limit(const struct zb_profile *profile, int64_t multiple) {
  int64_t bytes = 0;
  if (!zb_add_product_checked(&bytes, multiple * profile->devices, zb_profile_activation(profile)))
    return ZB_NO_LIMIT;
  return bytes;
}

static enum zb_status greedy_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                   struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return greedy_search(problem, ZB_NO_LIMIT, result, error);
}

static enum zb_status zb_1p_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return greedy_search(problem, relative_limit(problem->profile, 1), result, error);
}

static enum zb_status zb_2p_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return greedy_search(problem, relative_limit(problem->profile, 2), result, error);
}

const struct zb_engine zb_engine_greedy = {"greedy", "the paper's heuristic under the profile's limits",
                                           ZB_NEED_CHAIN, greedy_solve};
const struct zb_engine zb_engine_zb_1p = {"zb-1p", "greedy within the memory of 1F1B", ZB_NEED_CHAIN,
                                          zb_1p_solve};
const struct zb_engine zb_engine_zb_2p = {"zb-2p", "greedy within twice the memory of 1F1B", ZB_NEED_CHAIN,
                                          zb_2p_solve};
