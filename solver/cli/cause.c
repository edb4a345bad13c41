// cause.c - what keeps the best schedule from being faster: each suspect is removed and the profile solved
// again.
//
// An explanation that was only reasoned would be a guess: with memory tight, stages uneven and communication
// slow, all three look guilty. So each is taken away alone, and the heuristics (milliseconds, the same ones
// with and without it) say what that is worth:
// - stage: every device gets the mean time of all of them, so that no one is slowest; total work is kept
// - memory: no limit
// - communication: messages take no time
// - microbatches: twice as many, and half of that cost: fill and drain of the pipe are paid once for both
//
// The savings do not add up, and need not: a profile can be held by two things at once, and then neither
// alone helps.
#include <limits.h>
#include <string.h>

#include "solver/cli/cause.h"
#include "solver/cli/engines.h"
#include "solver/model/number.h"

// Deals the total of `values` out over the devices as evenly as whole numbers allow, and on each device
// evenly over its stages.
static void level(const struct zb_profile *profile, int64_t *values) {
  int64_t total = 0;
  for (int s = 0; s < profile->stages; s++) total += values[s];
  for (int s = 0; s < profile->stages; s++) {
    int64_t whole = total / profile->devices + (profile->device_of[s] < total % profile->devices);
    values[s] = whole / profile->chunks + (profile->chunk_of[s] < whole % profile->chunks);
  }
}

// False where the cause has nothing to take away: then its saving is 0 without asking.
static bool remove_cause(enum zb_cause_kind kind, struct zb_profile *profile) {
  size_t stages = (size_t)profile->stages * sizeof(int64_t);
  bool any = false;
  switch (kind) {
  case ZB_CAUSE_STAGE:
    level(profile, profile->f_ns);
    level(profile, profile->b_ns);
    level(profile, profile->w_ns);
    level(profile, profile->bw_ns);
    return profile->devices > 1;
  case ZB_CAUSE_MEMORY:
    for (int d = 0; d < profile->devices; d++) {
      any = any || profile->limit_bytes[d] != ZB_NO_LIMIT;
      profile->limit_bytes[d] = ZB_NO_LIMIT;
    }
    return any;
  case ZB_CAUSE_COMMUNICATION:
    for (int s = 0; s < profile->stages; s++)
      any = any || profile->comm_forward_ns[s] || profile->comm_backward_ns[s];
    memset(profile->comm_forward_ns, 0, stages);
    memset(profile->comm_backward_ns, 0, stages);
    return any;
  case ZB_CAUSE_MICROBATCHES:
    if (profile->devices == 1 || profile->microbatches > INT_MAX / 2) return false;
    profile->microbatches *= 2;
    return true;
  case ZB_CAUSE_COUNT:
    break;
  }
  return false;
}

// Half the heuristics on one side of a comparison would make it a lie: a cost that the deadline may have cut
// is not used.
static enum zb_status heuristic_cost(const struct zb_problem *shared, const struct zb_profile *profile,
                                     int64_t *cost_ns, struct zb_error *error) {
  struct zb_problem problem = *shared;
  struct zb_result result;
  problem.profile = profile;
  problem.progress = NULL;
  enum zb_status status = zb_auto_heuristics(&problem, NULL, &result, error);
  if (status != ZB_OK) return status;
  *cost_ns = result.cost_ns;
  zb_result_free(&result);
  return ZB_OK;
}

// A profile whose sums no longer fit leaves its cause unknown; everything else that fails, fails.
static enum zb_status try_cause(const struct zb_problem *problem, const struct zb_profile *placed,
                                int64_t base_cost_ns, struct zb_cause *cause, struct zb_error *error) {
  struct zb_profile *without = NULL;
  struct zb_error why = {0};
  enum zb_status status = zb_profile_copy(placed, &without, error);
  if (status != ZB_OK) return status;
  cause->cost_ns = base_cost_ns;
  if (remove_cause(cause->kind, without)) {
    status = zb_profile_finish(without, &why);
    if (status == ZB_OK) status = heuristic_cost(problem, without, &cause->cost_ns, &why);
    if (cause->kind == ZB_CAUSE_MICROBATCHES) cause->cost_ns = (cause->cost_ns + 1) / 2;
  }
  cause->known = status == ZB_OK && !zb_deadline_passed(&problem->deadline);
  double saving = cause->known ? zb_ratio(base_cost_ns, cause->cost_ns) : 0.0;
  cause->saving = saving > 0 ? saving : 0.0;
  zb_profile_free(without);
  return status == ZB_OK || status == ZB_BAD_INPUT ? ZB_OK : zb_fail(error, status, "%s", why.text);
}

enum zb_status zb_attribute(const struct zb_profile *placed, const struct zb_problem *problem,
                            struct zb_attribution *binds, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int d = 0; d < placed->devices; d++)
    binds->work_ns = zb_max(binds->work_ns, zb_profile_least_work(placed, d));
  if (!zb_deadline_passed(&problem->deadline))
    status = heuristic_cost(problem, placed, &binds->base_cost_ns, error);
  for (int k = 0; k < ZB_CAUSE_COUNT && status == ZB_OK; k++) {
    struct zb_cause cause = {.kind = (enum zb_cause_kind)k};
    if (!zb_deadline_passed(&problem->deadline))
      status = try_cause(problem, placed, binds->base_cost_ns, &cause, error);
    int place = k;
    for (; place > 0 && cause.saving > binds->causes[place - 1].saving; place--)
      binds->causes[place] = binds->causes[place - 1];
    binds->causes[place] = cause;
  }
  return status;
}
