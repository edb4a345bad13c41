// v_blocks.c - the best building block under the profile's own times and limits.
//
// A candidate is a block's shape, how much its warm-up is advanced, and the rule of the walk. First
// some starts are tried: blocks whose flights rest for what the memory allows, shared out in different ways,
// and zb-v's. Then the best one is changed at random for as long as the budget lasts, and a change is kept
// that costs no more than what was kept some changes ago, so that the search can cross plateaus and low
// ridges. A walk stops as soon as its idle time alone makes it cost more than what would be kept.
//
// The budget is counted in ops, not in time: the same seed gives the same schedule on every machine.
// Candidates are compared on few microbatches, which show both ends and the steady state between them; the
// best of them are walked in full. They are compared by span also where the period is asked for, which a walk
// does not sum up; among the best the period then decides. Whatever the block, the walk keeps every limit and
// ends, so there is a schedule wherever one microbatch fits.
#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "heuristic/v_block.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

enum {
  OPS_TRIED = 2000000, // the budget
  MOST_TRIED = 8000,   // candidates, where they are small
  ELITE = 6,           // walked in full
  LATE = 30,           // candidates that a change may look back on
  STRICT_SHARE = 3,    // of the budget
  COMPARED = 2,        // microbatches for comparing, in devices
};

struct candidate {
  struct zb_v_shape shape;
  struct zb_v_rule rule;
  int eighths; // of the advance
  bool zb_v;   // zb-v's block; the shape is not used
  bool fuse_where_shorter;
  int64_t cost_ns;
};

struct search {
  const struct zb_problem *problem; // borrowed
  struct zb_v_pipe pipe;
  struct zb_v_block block;
  uint64_t random;
  int64_t period_ns;
  int64_t rest_ns;    // of a flight's hops on average, where the block fills the memory
  int64_t missing_ns; // by how much the memory keeps the passes of a microbatch shorter than zb-v's
  int64_t bound_ns, left, tried;
  bool fused_is_shorter, fused_now, sized; // sized: the pipe has taken the profile as `fused_now` says
  struct candidate elite[ELITE];           // by cost
  int elites;
};

static uint64_t random_bits(struct search *search) { return zb_random(&search->random) >> 16; }

static int random_below(struct search *search, int count) {
  return (int)(random_bits(search) % (uint64_t)count);
}

static int64_t walk(struct search *search, const struct candidate *c, int microbatches, int64_t most_ns) {
  struct zb_v_pipe *pipe = &search->pipe;
  pipe->microbatches = microbatches;
  if (!search->sized || search->fused_now != c->fuse_where_shorter) {
    zb_v_pipe_take_profile(pipe, search->problem->profile, NULL, c->fuse_where_shorter);
    search->fused_now = c->fuse_where_shorter;
    search->sized = true;
  } else {
    zb_v_pipe_clear(pipe);
  }
  if (c->zb_v) {
    zb_v_block_lay_zb_v(pipe, &search->block);
  } else {
    zb_v_block_lay(pipe, &c->shape, &search->block);
  }
  zb_v_block_advance(&search->block, pipe->devices, c->eighths);
  return zb_v_walk(pipe, &search->block, &c->rule, most_ns);
}

static int microbatches_for_comparing(const struct zb_profile *profile) {
  return (int)zb_min(profile->microbatches, (int64_t)COMPARED * profile->devices);
}

static bool spent(const struct search *search) {
  if (search->tried == 0) return false;
  if (search->left <= 0 || search->tried >= MOST_TRIED) return true;
  return search->elite[0].cost_ns <= search->bound_ns || zb_deadline_passed(&search->problem->deadline);
}

// Among the elite a cost appears once: the latest of its candidates.
static void enter(struct search *search, const struct candidate *c) {
  int at = 0;
  while (at < search->elites && search->elite[at].cost_ns < c->cost_ns) at++;
  if (at == ELITE) return;
  if (at < search->elites && search->elite[at].cost_ns == c->cost_ns) {
    search->elite[at] = *c;
    return;
  }
  if (search->elites < ELITE) search->elites++;
  memmove(&search->elite[at + 1], &search->elite[at],
          (size_t)(search->elites - 1 - at) * sizeof *search->elite);
  search->elite[at] = *c;
}

// Sets the candidate's cost, or leaves it ZB_NEVER where that is above most_ns.
static void try_candidate(struct search *search, struct candidate *c, int64_t most_ns) {
  const int m = microbatches_for_comparing(search->problem->profile);
  c->cost_ns = ZB_NEVER;
  if (spent(search)) return;
  search->left -= walk(search, c, m, most_ns);
  search->tried++;
  if (search->pipe.longest_ns > most_ns) return;
  c->cost_ns = search->problem->objective == ZB_MAKESPAN ? zb_v_pipe_makespan(&search->pipe)
                                                         : zb_v_pipe_span(&search->pipe);
  enter(search, c);
}

static void try_start(struct search *search, struct candidate *c) {
  try_candidate(search, c, search->elites == ELITE ? search->elite[ELITE - 1].cost_ns : ZB_NEVER);
}

// How long the hops of a flight may rest on average so that the passes of a microbatch stay as long as the
// memory of the tightest device allows; without a limit as long as 1F1B's.
static int64_t resting(struct search *search) {
  const struct zb_v_pipe *pipe = &search->pipe;
  const int64_t p = pipe->devices;
  int64_t least_ns = INT64_MAX, travel_ns = 0;
  for (int s = 0; s < 2 * p; s++) {
    const struct zb_v_stage *stage = &pipe->stage[s];
    travel_ns += stage->f_ns + stage->b_ns + stage->forward_comm_ns + stage->backward_comm_ns;
  }
  for (int i = 0; i < p; i++) {
    const int64_t both = pipe->stage[i].f_bytes + pipe->stage[2 * p - 1 - i].f_bytes;
    const int64_t room = pipe->device[i].room_bytes;
    const int64_t chunks = both > 0 && room != ZB_NO_LIMIT ? 2 * room / both : 2 * p;
    least_ns = zb_min(least_ns, zb_v_block_periods(zb_min(chunks, 2 * p), search->period_ns));
  }
  search->missing_ns = zb_v_block_periods(2 * p, search->period_ns) - least_ns;
  return zb_max(least_ns - travel_ns, 0) / (4 * p);
}

static const int64_t ahead_halves[] = {0, 1, 2, 4, 8, -1}; // of a period; -1: any time
enum { AHEADS = sizeof ahead_halves / sizeof *ahead_halves };

static int64_t halves_of(const struct search *search, int64_t halves) {
  return halves < 0 ? ZB_NEVER : search->period_ns / 2 * halves;
}

// The shape that has the turns of zb-v where stages are alike.
static void shape_zb_v(const struct search *search, struct candidate *c) {
  const struct zb_v_stage *stage = &search->pipe.stage[search->pipe.devices - 1];
  const int64_t period_ns = search->period_ns, f_ns = stage->f_ns + stage->forward_comm_ns,
                b_ns = stage->b_ns + stage->backward_comm_ns;
  const int64_t hop_ns[] = {period_ns - f_ns, -f_ns, period_ns - b_ns, -b_ns};
  for (int k = 0; k < ZB_V_CLASSES; k++) {
    c->shape.rest_ns[k][0] = c->shape.rest_ns[k][1] = hop_ns[k];
    c->shape.pause_ns[k] = period_ns / 4 - (k == ZB_V_B0 ? stage->b_ns : stage->f_ns);
  }
  c->zb_v = false;
}

// zb-v keeps 2p chunks. Where fewer fit its F0 fly down faster, so that they come back sooner.
static void start_from_zb_v(struct search *search) {
  static const int64_t lag_eighths[] = {0, 2, 16};
  for (int k = 0; k < 24; k++) {
    struct candidate c = {.eighths = 8, .zb_v = true, .fuse_where_shorter = search->fused_is_shorter};
    const int64_t lag = lag_eighths[k % 3];
    c.rule = (struct zb_v_rule){.ahead_ns = k / 3 % 2 ? 2 * search->period_ns : 0,
                                .ends_ahead_ns = k / 6 % 2 ? 2 * search->period_ns : 0,
                                .lead_ns = ZB_NEVER,
                                .weight_lag_ns = lag ? zb_v_block_share(search->period_ns, lag) : ZB_NEVER,
                                .hold = k / 12,
                                .gap = ZB_V_GAP_LONGEST};
    if (search->missing_ns > 0) {
      shape_zb_v(search, &c);
      for (int half = 0; half < 2; half++)
        c.shape.rest_ns[ZB_V_F0][half] -= search->missing_ns / search->pipe.devices;
    }
    try_start(search, &c);
  }
}

// Of 11,000 combinations of these, tried on 59 profiles from 4 to 16 devices with memory from v-min's up,
// these few reach on each what all of them together do; the first ones do most of it.
static const struct start {
  int fill;       // eighths of what the memory allows flights to rest
  int down, back; // how much of it F0 and B1 have, against F1 and B0; eighths, 8 is alike
  enum zb_v_gap gap;
  bool hold;
  int advance, ahead_halves; // eighths of the advance; halves of a period
  bool free_ends, lagged;    // any distance ahead at the ends; W a fourth of a period after B
} starts[] = {
    // clang-format off
    {8, 5, 5, ZB_V_GAP_LONGEST, false, 0, 1, false, false},
    {6, 5, 13, ZB_V_GAP_ANY, false, 0, 1, false, false},
    {8, 5, 5, ZB_V_GAP_LONGEST, true, 8, 4, false, false},
    {8, 8, 13, ZB_V_GAP_LONGEST, true, 0, 8, false, false},
    {8, 5, 11, ZB_V_GAP_LONGEST, true, 8, 1, false, true},
    {5, 5, 8, ZB_V_GAP_FITTING, false, 8, 2, false, false},
    {9, 8, 13, ZB_V_GAP_LONGEST, true, 0, 4, false, false},
    {9, 5, 11, ZB_V_GAP_FITTING, false, 0, 0, false, false},
    {8, 5, 13, ZB_V_GAP_ANY, false, 0, 1, false, true},
    {5, 5, 13, ZB_V_GAP_FITTING, false, 8, 1, false, false},
    {8, 13, 5, ZB_V_GAP_FITTING, true, 8, 8, false, false},
    {7, 8, 5, ZB_V_GAP_FITTING, false, 8, 2, false, false},
    {8, 5, 8, ZB_V_GAP_ANY, true, 0, 4, false, false},
    {6, 5, 11, ZB_V_GAP_LONGEST, false, 0, 2, false, false},
    {8, 13, 11, ZB_V_GAP_FITTING, false, 0, 1, false, true},
    {8, 5, 5, ZB_V_GAP_LONGEST, true, 0, 1, true, true},
    {8, 5, 8, ZB_V_GAP_FITTING, true, 8, 2, false, true},
    {8, 8, 5, ZB_V_GAP_LONGEST, false, 0, 1, false, false},
    {5, 5, 8, ZB_V_GAP_FITTING, false, 0, 1, false, true},
    {6, 11, 13, ZB_V_GAP_FITTING, false, 0, 2, false, true},
    {9, 5, 11, ZB_V_GAP_LONGEST, false, 8, 1, false, true},
    {7, 5, 5, ZB_V_GAP_FITTING, false, 0, 1, false, true},
    {6, 8, 13, ZB_V_GAP_FITTING, false, 8, 4, false, false},
    {8, 5, 13, ZB_V_GAP_FITTING, false, 8, 2, false, false},
    {5, 5, 11, ZB_V_GAP_FITTING, false, 0, 2, false, false},
    {5, 5, 8, ZB_V_GAP_ANY, false, 0, 1, false, true},
    // clang-format on
};

static void start_from_rests(struct search *search) {
  for (size_t n = 0; n < sizeof starts / sizeof *starts; n++) {
    const struct start *start = &starts[n];
    struct candidate c = {.eighths = start->advance, .fuse_where_shorter = search->fused_is_shorter};
    const int64_t rest_ns = zb_v_block_share(search->rest_ns, start->fill);
    const int64_t down_ns = zb_v_block_share(rest_ns, start->down),
                  back_ns = zb_v_block_share(rest_ns, start->back);
    const int64_t each_ns[] = {down_ns, 2 * rest_ns - back_ns, back_ns, 2 * rest_ns - down_ns};
    for (int k = 0; k < ZB_V_CLASSES; k++) c.shape.rest_ns[k][0] = c.shape.rest_ns[k][1] = each_ns[k];
    c.rule.gap = start->gap;
    c.rule.hold = start->hold;
    c.rule.ahead_ns = halves_of(search, start->ahead_halves);
    c.rule.ends_ahead_ns = start->free_ends ? ZB_NEVER : c.rule.ahead_ns;
    c.rule.lead_ns = ZB_NEVER;
    c.rule.weight_lag_ns = start->lagged ? zb_v_block_share(search->period_ns, 2) : ZB_NEVER;
    try_start(search, &c);
  }
}

// Up to a fourth of a period, either way.
static int64_t small_step(struct search *search) {
  const int64_t by_ns = zb_v_block_share(search->period_ns, random_below(search, 5) - 2);
  return by_ns / (1 + random_below(search, 8));
}

// One random change. Every number is drawn in a statement of its own, so that all compilers draw alike.
static void change(struct search *search, struct candidate *c) {
  struct zb_v_shape *shape = &c->shape;
  struct zb_v_rule *rule = &c->rule;
  const int64_t period_ns = search->period_ns;
  const int what = random_below(search, 9), flight = random_below(search, ZB_V_CLASSES);
  const int half = random_below(search, 2);
  const int64_t step_ns = small_step(search);
  switch (what) {
  case 0:
  case 1:
    shape->rest_ns[flight][half] += step_ns;
    break;
  case 2: { // from one flight to another
    const int from = random_below(search, ZB_V_CLASSES);
    shape->rest_ns[flight][half] += step_ns;
    shape->rest_ns[from][half] -= step_ns;
    break;
  }
  case 3: // a whole flight, or where it bends
    if (half) {
      shape->rest_ns[flight][0] += step_ns;
      shape->rest_ns[flight][1] += step_ns;
    } else {
      shape->bend[flight] = random_below(search, search->pipe.devices + 1);
    }
    break;
  case 4:
    shape->pause_ns[flight] = zb_v_block_share(period_ns, random_below(search, 9));
    break;
  case 5:
    *(half ? &rule->ahead_ns : &rule->ends_ahead_ns) =
        halves_of(search, ahead_halves[random_below(search, AHEADS)]);
    break;
  case 6:
    rule->lead_ns = half ? ZB_NEVER : halves_of(search, flight);
    c->eighths = random_below(search, 10);
    break;
  case 7:
    rule->weight_lag_ns = half ? ZB_NEVER : zb_v_block_share(period_ns, 1 + random_below(search, 16));
    break;
  default:
    rule->hold = half;
    rule->gap = (enum zb_v_gap)random_below(search, 3);
    if (search->fused_is_shorter) c->fuse_where_shorter = random_below(search, 2);
    break;
  }
}

// Longer rests than eight periods would change nothing but the size of the numbers.
static void bound_rests(const struct search *search, struct candidate *c) {
  const int64_t most_ns = 8 * search->period_ns;
  for (int k = 0; k < ZB_V_CLASSES; k++)
    for (int half = 0; half < 2; half++)
      c->shape.rest_ns[k][half] = zb_max(-most_ns, zb_min(c->shape.rest_ns[k][half], most_ns));
}

// Late acceptance: a change is kept if it costs no more than what was kept LATE changes ago, or than what it
// changes. It so leaves an optimum from which no single step goes down. The last part of the budget is for
// the best: there only a change that costs no more is kept.
static void climb(struct search *search) {
  int64_t late[LATE];
  struct candidate at = search->elite[0];
  bool strict = false;
  for (int k = 0; k < LATE; k++) late[k] = at.cost_ns;
  for (int step = 0; !spent(search); step++) {
    if (!strict && search->left < OPS_TRIED / STRICT_SHARE) {
      strict = true;
      at = search->elite[0];
    }
    struct candidate c = at;
    if (c.zb_v) shape_zb_v(search, &c);
    for (int changes = 1 + random_below(search, 3); changes > 0; changes--) change(search, &c);
    bound_rests(search, &c);
    const int64_t most_ns = strict ? at.cost_ns : zb_max(late[step % LATE], at.cost_ns);
    try_candidate(search, &c, most_ns);
    if (c.cost_ns <= most_ns) at = c;
    late[step % LATE] = at.cost_ns;
  }
}

static enum zb_status finish(struct search *search, struct zb_result *result, struct zb_error *error) {
  const struct zb_profile *profile = search->problem->profile;
  struct zb_result best = {.status = ZB_UNKNOWN, .cost_ns = INT64_MAX}, next;
  struct zb_schedule_builder builder = {0};
  enum zb_status status = zb_builder_create(profile, &builder, error);
  // What was compared in full need not be walked again to be ranked; the period was not compared at all.
  const bool ranked =
      microbatches_for_comparing(profile) == profile->microbatches && search->problem->objective != ZB_PERIOD;
  for (int k = 0; k < (ranked ? 1 : search->elites) && status == ZB_OK; k++) {
    struct zb_schedule *schedule = NULL;
    if (k > 0 && zb_deadline_passed(&search->problem->deadline)) break;
    walk(search, &search->elite[k], profile->microbatches, INT64_MAX);
    zb_v_pipe_write(&search->pipe, &builder);
    status = zb_builder_finish(&builder, &schedule, error);
    if (status == ZB_OK) status = zb_result_from_schedule(search->problem, schedule, &next, error);
    if (status != ZB_OK) break;
    struct zb_result *loser = next.cost_ns < best.cost_ns ? &best : &next, spare = *loser;
    if (loser == &best) best = next;
    zb_result_free(&spare);
  }
  zb_builder_free(&builder);
  if (status != ZB_OK) {
    zb_result_free(&best);
    return status;
  }
  best.work = search->tried;
  *result = best;
  return ZB_OK;
}

static enum zb_status v_blocks_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                     struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  const struct zb_profile *profile = problem->profile;
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  struct search search = {.problem = problem, .random = (problem->seed + 88172645463325252u) | 1};
  search.left = OPS_TRIED;
  search.block.device = malloc((size_t)profile->devices * sizeof *search.block.device);
  enum zb_status status = search.block.device ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK)
    status = zb_v_pipe_create(profile->devices, profile->microbatches, &search.pipe, error);
  if (status == ZB_OK) {
    for (int s = 0; s < profile->stages; s++)
      search.fused_is_shorter |= profile->bw_ns[s] < profile->b_ns[s] + profile->w_ns[s];
    if (microbatches_for_comparing(profile) == profile->microbatches)
      search.bound_ns = zb_bound_closed_form(profile, problem->objective);
    zb_v_pipe_take_profile(&search.pipe, profile, NULL, search.fused_is_shorter);
    search.period_ns = zb_v_block_least_period(&search.pipe);
    search.rest_ns = resting(&search);
    start_from_rests(&search);
    start_from_zb_v(&search);
    climb(&search);
    status = finish(&search, result, error);
  }
  zb_v_pipe_free(&search.pipe);
  free(search.block.device);
  return status;
}

const struct zb_engine zb_engine_v_blocks = {"v-blocks", "the best building block on a V under the limit",
                                             ZB_NEED_V, v_blocks_solve};
