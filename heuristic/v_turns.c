// v_turns.c - local search over when ops have their turns.
//
// A block gives all microbatches the same turns, up to their period. But the ends of an order are unlike its
// middle, and on many devices what one waits for at the end was decided long before on another. So here every
// F and B has a turn of its own: at first the start that it has in a known schedule. A move shifts the turns
// of a class or two by the same time, over some devices and a stretch of microbatches, or changes the walk's
// rule. The walk makes an order of whatever turns there are, within every limit, and its starts are the turns
// from which the next move sets out. Large schedules gain most: one shift moves hundreds of ops together,
// which exchanges of ops, one by one, do not find.
//
// Moves are taken as simulated annealing does, in integers: of p times the longest device plus the sum of
// all, since many devices are nearly the longest. Chains of moves begin with zb-v's schedule where that is
// nearly as good as the best known, for its order is the most regular, and in turn with the best known. A
// chain ends when nothing better has come for a while, each pair of them later than the one before. Work is
// counted in ops, so that neither the clock nor the machine decides.
#include "heuristic/v_turns.h"

#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "heuristic/v_block.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

enum {
  PATIENCE = 10000,  // moves that the first chains go on without anything better
  MOST_PATIENCE = 4, // times as many are the most
  HOT = 1200,        // part of a period that a device may get longer by in a move, on average
  RULE_EVERY = 30,   // moves, on average
  NEARLY = 50,       // zb-v is used where it costs at most this part more
};

// Turns and how they are walked.
struct plan {
  int64_t *turn_ns; // as in struct zb_v_block
  struct zb_v_rule rule;
  int64_t cost_ns, longest_ns; // cost: p * longest + sum
};

struct zb_turner {
  const struct zb_problem *problem;
  struct zb_v_pipe pipe;
  struct zb_v_block block;
  size_t turns;
  struct plan now, next;
  struct plan best;  // of all chains; longest_ns ZB_NEVER: none since the last start
  int64_t *start_ns; // turns of the best known schedule
  int64_t *zb_v_ns;  // .. and of zb-v's
  int64_t zb_v_cost_ns, told_ns;
  int64_t work_ns; // of all devices
  uint64_t random;
  bool fuse;
  int chains;         // begun
  int left;           // moves of this one without anything better
  int64_t chain_best; // its longest device at its best
};

static int below(struct zb_turner *t, int count) {
  return (int)((zb_random(&t->random) >> 16) % (uint64_t)count);
}

// Where the turns of a schedule's ops are: the k-th F of a stage is microbatch k's.
static enum zb_status read_starts(struct zb_turner *t, const struct zb_schedule *schedule, int64_t *turn_ns,
                                  struct zb_error *error) {
  struct zb_timeline timeline = {0};
  const enum zb_status status = zb_timeline_compute(t->problem->profile, schedule, &timeline, error);
  for (int d = 0; d < schedule->devices && status == ZB_OK; d++) {
    int count[ZB_V_CLASSES] = {0};
    for (size_t n = schedule->first[d]; n < schedule->first[d + 1]; n++) {
      const struct zb_op op = schedule->ops[n];
      const bool high = op.stage >= t->pipe.devices;
      if (op.kind == ZB_W) continue;
      const int class = op.kind == ZB_F ? (high ? ZB_V_F1 : ZB_V_F0) : (high ? ZB_V_B1 : ZB_V_B0);
      turn_ns[zb_v_turns_at(&t->pipe, d, class) + (size_t)count[class]++] = timeline.start_ns[n];
    }
  }
  zb_timeline_free(&timeline);
  return status;
}

// The starts that the walk has just given.
static void take_starts(struct zb_turner *t, int64_t *turn_ns) {
  for (int d = 0; d < t->pipe.devices; d++) {
    for (int class = 0; class < ZB_V_CLASSES; class ++) {
      const bool high = class == ZB_V_F1 || class == ZB_V_B1, forward = class <= ZB_V_F1;
      const struct zb_v_stage *stage = t->pipe.device[d].stage[high];
      const int64_t *end_ns = forward ? stage->forward_end_ns : stage->backward_end_ns;
      const int64_t time_ns = forward ? stage->f_ns : stage->b_ns;
      int64_t *turn = turn_ns + zb_v_turns_at(&t->pipe, d, class);
      for (int j = 0; j < t->pipe.microbatches; j++) turn[j] = end_ns[j] - time_ns;
    }
  }
}

// Walks a plan and sets its costs, or leaves them where a device gets longer than most_ns. Returns the ops
// written.
static int64_t walk(struct zb_turner *t, struct plan *plan, int64_t most_ns) {
  const struct zb_v_pipe *pipe = &t->pipe;
  zb_v_pipe_clear(&t->pipe);
  t->block.turn_ns = plan->turn_ns;
  const int64_t ops = zb_v_walk(&t->pipe, &t->block, &plan->rule, most_ns);
  plan->cost_ns = plan->longest_ns = ZB_NEVER;
  if (pipe->longest_ns > most_ns) return ops;
  int64_t sum_ns = 0;
  plan->longest_ns = 0;
  for (int d = 0; d < pipe->devices; d++) {
    const int64_t from_ns = t->problem->objective == ZB_MAKESPAN ? 0 : pipe->device[d].start_ns;
    const int64_t length_ns = pipe->device[d].end_ns - from_ns;
    plan->longest_ns = zb_max(plan->longest_ns, length_ns);
    sum_ns += length_ns;
  }
  plan->cost_ns = pipe->devices * plan->longest_ns + sum_ns;
  return ops;
}

static void copy_plan(const struct zb_turner *t, struct plan *to, const struct plan *from) {
  int64_t *const turn_ns = to->turn_ns;
  *to = *from;
  to->turn_ns = turn_ns;
  memcpy(turn_ns, from->turn_ns, t->turns * sizeof *turn_ns);
}

static void note_best(struct zb_turner *t, const struct plan *plan) {
  if (plan->longest_ns < t->best.longest_ns) copy_plan(t, &t->best, plan);
}

// Exponential with this mean, to within the straight lines that stand in for the curve.
static int64_t exponential(struct zb_turner *t, int64_t mean) {
  uint64_t bits = zb_random(&t->random) >> 16;
  int64_t halvings = 0;
  const int64_t part = (int64_t)(bits & 1023);
  for (bits >>= 10; halvings < 30 && (bits & 1); bits >>= 1) halvings++;
  const int64_t times = halvings * 1024 + part; // over 1477 = 1024 / ln 2
  return mean / 1477 * times + mean % 1477 * times / 1477;
}

static void change_rule(struct zb_turner *t, struct zb_v_rule *rule) {
  const int64_t period_ns = t->block.period_ns;
  rule->ahead_ns = zb_v_block_share(period_ns, below(t, 9));
  rule->ends_ahead_ns = zb_v_block_share(period_ns, below(t, 9));
  rule->hold = below(t, 2);
  rule->gap = (enum zb_v_gap)below(t, 3);
  const int lag = below(t, 2) ? 1 + below(t, 16) : 0;
  rule->weight_lag_ns = lag ? zb_v_block_share(period_ns, lag) : ZB_NEVER;
}

// A stretch of 0 .. count-1: few, or any number, mostly anywhere, else up to an end.
struct stretch {
  int from, to;
};
static struct stretch choose_stretch(struct zb_turner *t, int count, int few) {
  const int length = 1 + below(t, below(t, 2) ? count : few), where = below(t, 8);
  int from = below(t, count + length) - length + 1;
  if (where == 0) from = count - length;
  if (where == 1) from = 0;
  const int to = from + length;
  return (struct stretch){from > 0 ? from : 0, to < count ? to : count};
}

static void shift(struct zb_turner *t, int64_t *turn_ns) {
  int classes = 1 << below(t, ZB_V_CLASSES);
  if (below(t, 3) == 0) classes |= 1 << below(t, ZB_V_CLASSES);
  const struct stretch devices = choose_stretch(t, t->pipe.devices, 3);
  const struct stretch microbatches = choose_stretch(t, t->pipe.microbatches, 4);
  const int64_t most_ns = t->block.period_ns >> below(t, 5);
  const int64_t by_ns = most_ns / 1024 * (below(t, 2049) - 1024) + most_ns % 1024 * (below(t, 3) - 1);
  for (int d = devices.from; d < devices.to; d++)
    for (int class = 0; class < ZB_V_CLASSES; class ++) {
      if (!(classes >> class & 1)) continue;
      int64_t *turn = turn_ns + zb_v_turns_at(&t->pipe, d, class);
      for (int j = microbatches.from; j < microbatches.to; j++) turn[j] += by_ns;
    }
}

static int patience(const struct zb_turner *t) {
  return PATIENCE * (t->chains / 2 < MOST_PATIENCE ? 1 + t->chains / 2 : MOST_PATIENCE);
}

static int64_t make_move(struct zb_turner *t) {
  const int64_t p = t->pipe.devices, allowed_ns = exponential(t, p * t->block.period_ns / HOT);
  copy_plan(t, &t->next, &t->now);
  if (below(t, RULE_EVERY) == 0) change_rule(t, &t->next.rule);
  for (int shifts = 1 + below(t, 2); shifts > 0; shifts--) shift(t, t->next.turn_ns);
  const int64_t ops = walk(t, &t->next, (t->now.cost_ns + allowed_ns - t->work_ns) / p);
  t->left--;
  if (t->next.cost_ns == ZB_NEVER || t->next.cost_ns > t->now.cost_ns + allowed_ns) return ops;
  note_best(t, &t->next);
  if (t->next.longest_ns < t->chain_best) {
    t->chain_best = t->next.longest_ns;
    t->left = patience(t);
  }
  t->now.rule = t->next.rule;
  t->now.cost_ns = t->next.cost_ns;
  t->now.longest_ns = t->next.longest_ns;
  take_starts(t, t->now.turn_ns);
  return ops;
}

// From a schedule's starts, walked by the rule that keeps most of it.
static int64_t begin_chain(struct zb_turner *t) {
  static const int ahead_eighths[] = {0, 2, 4, 8};
  const bool regular = t->chains % 2 == 0 && t->zb_v_cost_ns - t->told_ns <= t->told_ns / NEARLY;
  const int64_t *from_ns = regular ? t->zb_v_ns : t->start_ns;
  int64_t ops = 0;
  memcpy(t->next.turn_ns, from_ns, t->turns * sizeof *from_ns);
  t->now.cost_ns = ZB_NEVER;
  for (int k = 0; k < 8; k++) {
    const int64_t ahead_ns = zb_v_block_share(t->block.period_ns, ahead_eighths[k / 2]);
    t->next.rule = (struct zb_v_rule){.ahead_ns = ahead_ns,
                                      .ends_ahead_ns = ahead_ns,
                                      .lead_ns = ZB_NEVER,
                                      .weight_lag_ns = ZB_NEVER,
                                      .hold = k % 2,
                                      .gap = ZB_V_GAP_LONGEST};
    ops += walk(t, &t->next, ZB_NEVER);
    if (t->next.cost_ns < t->now.cost_ns) copy_plan(t, &t->now, &t->next);
  }
  note_best(t, &t->now);
  t->chain_best = t->now.longest_ns;
  t->left = patience(t);
  t->chains++;
  return ops;
}

// The best known schedule is another one: the next chain begins with it.
static enum zb_status adopt(struct zb_turner *t, const struct zb_schedule *schedule, int64_t cost_ns,
                            struct zb_error *error) {
  t->fuse = false;
  for (size_t n = 0; n < schedule->first[schedule->devices]; n++) t->fuse |= schedule->ops[n].kind == ZB_BW;
  zb_v_pipe_take_profile(&t->pipe, t->problem->profile, NULL, t->fuse);
  t->block.period_ns = zb_v_block_least_period(&t->pipe);
  if (cost_ns > INT64_MAX / 64 / (t->pipe.devices + 1)) t->block.period_ns = 0;
  t->work_ns = 0;
  for (int d = 0; d < t->pipe.devices; d++) t->work_ns += t->pipe.device[d].work_ns;
  t->told_ns = cost_ns;
  t->best.longest_ns = ZB_NEVER;
  t->left = 0;
  return read_starts(t, schedule, t->start_ns, error);
}

// The best plan as a schedule, if it costs less than what is known.
static enum zb_status write_better(struct zb_turner *t, struct zb_schedule **found, struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  struct zb_schedule *schedule = NULL;
  struct zb_result result;
  walk(t, &t->best, ZB_NEVER);
  enum zb_status status = zb_builder_create(t->problem->profile, &builder, error);
  if (status == ZB_OK) {
    zb_v_pipe_write(&t->pipe, &builder);
    status = zb_builder_finish(&builder, &schedule, error);
  }
  zb_builder_free(&builder);
  if (status == ZB_OK) status = zb_result_from_schedule(t->problem, schedule, &result, error);
  if (status != ZB_OK) return status;
  if (result.status == ZB_FEASIBLE && result.cost_ns < t->told_ns) {
    t->told_ns = result.cost_ns;
    *found = result.schedule;
    result.schedule = NULL;
    status = read_starts(t, *found, t->start_ns, error);
  }
  zb_result_free(&result);
  return status;
}

static enum zb_status solve_zb_v(struct zb_turner *t, struct zb_error *error) {
  struct zb_result result;
  enum zb_status status = zb_engine_zb_v.solve(t->problem, NULL, &result, error);
  if (status != ZB_OK) return status;
  t->zb_v_cost_ns = ZB_NEVER;
  if (result.status == ZB_FEASIBLE) {
    t->zb_v_cost_ns = result.cost_ns;
    status = read_starts(t, result.schedule, t->zb_v_ns, error);
  }
  zb_result_free(&result);
  return status;
}

enum zb_status zb_turner_create(const struct zb_problem *problem, struct zb_turner **turner,
                                struct zb_error *error) {
  const struct zb_profile *profile = problem->profile;
  struct zb_turner *t = calloc(1, sizeof *t);
  if (!t) return zb_fail_memory(error);
  t->problem = problem;
  t->random = problem->seed * 2 + 88172645463325253;
  t->turns = (size_t)ZB_V_CLASSES * (size_t)profile->devices * (size_t)profile->microbatches;
  int64_t **const tables[] = {&t->now.turn_ns, &t->next.turn_ns, &t->best.turn_ns, &t->start_ns, &t->zb_v_ns};
  enum zb_status status = zb_v_pipe_create(profile->devices, profile->microbatches, &t->pipe, error);
  t->block.device = calloc((size_t)profile->devices, sizeof *t->block.device);
  if (status == ZB_OK && !t->block.device) status = zb_fail_memory(error);
  for (size_t k = 0; k < sizeof tables / sizeof *tables && status == ZB_OK; k++) {
    *tables[k] = malloc(t->turns * sizeof **tables[k]);
    if (!*tables[k]) status = zb_fail_memory(error);
  }
  t->told_ns = ZB_NEVER;
  if (status == ZB_OK) status = solve_zb_v(t, error);
  if (status != ZB_OK) {
    zb_turner_free(t);
    return status;
  }
  *turner = t;
  return ZB_OK;
}

void zb_turner_free(struct zb_turner *t) {
  if (!t) return;
  zb_v_pipe_free(&t->pipe);
  free(t->block.device);
  free(t->now.turn_ns);
  free(t->next.turn_ns);
  free(t->best.turn_ns);
  free(t->start_ns);
  free(t->zb_v_ns);
  free(t);
}

enum zb_status zb_turner_improve(void *turner, const struct zb_schedule *best, int64_t cost_ns, int64_t work,
                                 struct zb_schedule **found, struct zb_error *error) {
  struct zb_turner *t = turner;
  *found = NULL;
  if (cost_ns < t->told_ns) {
    const enum zb_status status = adopt(t, best, cost_ns, error);
    if (status != ZB_OK) return status;
  }
  // Nothing takes time, or p times what does would be too much.
  if (t->block.period_ns == 0) return ZB_OK;
  const int64_t longest_ns = t->best.longest_ns;
  for (int64_t ops = 0; ops < work && !zb_deadline_passed(&t->problem->deadline);)
    ops += t->left > 0 ? make_move(t) : begin_chain(t);
  return t->best.longest_ns < longest_ns ? write_better(t, found, error) : ZB_OK;
}
