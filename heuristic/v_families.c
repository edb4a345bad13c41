// v_families.c - the orders on a V that people know by name: 1f1b-v, v-min, v-half (arXiv 2405.15362) and
// zb-v (section 6 of arXiv 2401.10241).
//
// The first three are blocks in slots of one pass: the order is the one that passes of equal length give
// within the family's own peak, whatever the profile says; only its times are the profile's. zb-v is written
// under the profile's times, like greedy, within what 1F1B keeps: 2p chunks, or the limit where that is
// smaller. Where its groups as they are described fit there too and cost less, it is these.
#include <stdlib.h>

#include "heuristic/families.h"
#include "heuristic/v_block.h"
#include "heuristic/v_groups.h"
#include "solver/model/number.h"

// A block in slots for so many devices, and how many chunks a device keeps at most.
typedef void slots(int devices, struct zb_v_shape *shape, int *most_kept);

// F0 i, F1 2p-1-i, B1 2p+g+i, B0 4p+g-1-i, with g = 2 where B1 would meet F0, which is where 3 divides p.
static void v_min_slots(int devices, struct zb_v_shape *shape, int *most_kept) {
  shape->pause_ns[ZB_V_B1] = devices % 3 == 0 ? 2 : 0;
  *most_kept = 2 * ((devices + 4) / 3);
}

// F0 2i, F1 3p-2-i, B1 3p-1+g+2i, B0 6p-2+g-i, with g = 3 where p is even.
static void v_half_slots(int devices, struct zb_v_shape *shape, int *most_kept) {
  for (int k = 0; k < 2; k++) shape->rest_ns[ZB_V_F0][k] = shape->rest_ns[ZB_V_B1][k] = 1;
  shape->pause_ns[ZB_V_B1] = devices % 2 == 0 ? 3 : 0;
  shape->pause_ns[ZB_V_B0] = 1;
  *most_kept = 2 * ((devices + 2) / 2);
}

// BW takes two slots. Of the blocks within this memory none is free of collisions on every device; the walk
// resolves them, and a BW that rests a slot at every hop leaves it the most room to.
static void one_f_one_b_slots(int devices, struct zb_v_shape *shape, int *most_kept) {
  for (int k = 0; k < 2; k++) shape->rest_ns[ZB_V_B1][k] = shape->rest_ns[ZB_V_B0][k] = 1;
  *most_kept = 2 * ((2 * devices + 3) / 3);
}

static enum zb_status create(const struct zb_profile *profile, struct zb_v_pipe *pipe,
                             struct zb_v_block *block, struct zb_error *error) {
  *pipe = (struct zb_v_pipe){0};
  *block = (struct zb_v_block){0};
  block->device = malloc((size_t)profile->devices * sizeof *block->device);
  if (!block->device) return zb_fail_memory(error);
  return zb_v_pipe_create(profile->devices, profile->microbatches, pipe, error);
}

// Walks the pipe and times what comes out; frees all three.
static enum zb_status finish(const struct zb_problem *problem, struct zb_v_pipe *pipe,
                             struct zb_v_block *block, const struct zb_v_rule *rule, struct zb_result *result,
                             struct zb_error *error) {
  struct zb_schedule_builder builder = {0};
  struct zb_schedule *schedule = NULL;
  zb_v_walk(pipe, block, rule, INT64_MAX);
  enum zb_status status = zb_builder_create(problem->profile, &builder, error);
  if (status == ZB_OK) {
    zb_v_pipe_write(pipe, &builder);
    status = zb_builder_finish(&builder, &schedule, error);
  }
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, result, error);
  zb_builder_free(&builder);
  return status;
}

static enum zb_status slots_solve(const struct zb_problem *problem, slots *family, bool fused,
                                  const struct zb_v_rule *rule, struct zb_result *result,
                                  struct zb_error *error) {
  const int p = problem->profile->devices;
  struct zb_v_pipe pipe;
  struct zb_v_block block;
  struct zb_v_shape shape = {0};
  int most_kept = 0;
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  enum zb_status status = create(problem->profile, &pipe, &block, error);
  if (status == ZB_OK) {
    family(p, &shape, &most_kept);
    zb_v_pipe_take_units(&pipe, most_kept, fused);
    zb_v_block_lay(&pipe, &shape, &block);
    zb_v_block_advance(&block, p, fused ? 8 : 0);
    status = finish(problem, &pipe, &block, rule, result, error);
  }
  zb_v_pipe_free(&pipe);
  free(block.device);
  return status;
}

// Each runs at most half a period ahead of the pattern, which lets the ends close up and nothing else. In
// v-half W has the slot after its B while there are forwards to come, in v-min the first that is free.
static const struct zb_v_rule v_min_rule = {.ahead_ns = 3,
                                            .ends_ahead_ns = 3,
                                            .lead_ns = 0,
                                            .weight_lag_ns = ZB_NEVER,
                                            .hold = false,
                                            .gap = ZB_V_GAP_FITTING};
static const struct zb_v_rule v_half_rule = {.ahead_ns = 0,
                                             .ends_ahead_ns = 2,
                                             .lead_ns = 0,
                                             .weight_lag_ns = 1,
                                             .hold = false,
                                             .gap = ZB_V_GAP_FITTING};
static const struct zb_v_rule fused_rule = {.ahead_ns = 3,
                                            .ends_ahead_ns = 3,
                                            .lead_ns = ZB_NEVER,
                                            .weight_lag_ns = ZB_NEVER,
                                            .hold = true,
                                            .gap = ZB_V_GAP_FITTING};

static enum zb_status v_min_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return slots_solve(problem, v_min_slots, false, &v_min_rule, result, error);
}

static enum zb_status v_half_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                   struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return slots_solve(problem, v_half_slots, false, &v_half_rule, result, error);
}

static enum zb_status one_f_one_b_v_solve(const struct zb_problem *problem,
                                          const struct zb_schedule *incumbent, struct zb_result *result,
                                          struct zb_error *error) {
  (void)incumbent;
  return slots_solve(problem, one_f_one_b_slots, true, &fused_rule, result, error);
}

static int64_t two_for_each_device(const struct zb_profile *profile, int device) {
  const int64_t f0 = profile->f_bytes[device], f1 = profile->f_bytes[profile->stages - 1 - device];
  int64_t bytes = 0;
  if (!zb_add_product_checked(&bytes, profile->devices, f0 + f1)) return ZB_NO_LIMIT;
  return zb_max(bytes, zb_profile_least_peak(profile, device) - profile->static_bytes[device]);
}

// Whether every device keeps no more than its static memory and most_bytes.
static enum zb_status keeps_within(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                   const int64_t *most_bytes, bool *within, struct zb_error *error) {
  struct zb_timeline timeline = {0};
  const enum zb_status status = zb_timeline_compute(profile, schedule, &timeline, error);
  *within = status == ZB_OK;
  for (int i = 0; i < profile->devices && *within; i++)
    *within = timeline.peak_bytes[i] - profile->static_bytes[i] <= most_bytes[i];
  zb_timeline_free(&timeline);
  return status;
}

// Puts zb-v's groups with these endings in the place of `best` where they fit and cost less; *better says
// whether.
static enum zb_status try_endings(const struct zb_problem *problem, const int64_t *most_bytes,
                                  const struct zb_v_endings *endings, struct zb_schedule_builder *builder,
                                  struct zb_result *best, bool *better, struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  struct zb_result next;
  *better = false;
  zb_builder_clear(builder);
  zb_v_groups_fill(problem->profile, endings, builder);
  enum zb_status status = zb_builder_finish(builder, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &next, error);
  if (status != ZB_OK) return status;
  if (next.status == ZB_FEASIBLE && next.cost_ns < best->cost_ns)
    status = keeps_within(problem->profile, next.schedule, most_bytes, better, error);
  if (*better) {
    const struct zb_result costlier = *best;
    *best = next;
    next = costlier;
  }
  zb_result_free(&next);
  return status;
}

// The best of zb-v's groups in the place of `best` where they cost less: first by where b is late, then by W.
static enum zb_status try_groups(const struct zb_problem *problem, const int64_t *most_bytes,
                                 struct zb_result *best, struct zb_error *error) {
  const struct zb_profile *profile = problem->profile;
  const int p = profile->devices;
  const int hasty[] = {0, 1, 4, 8, p};
  struct zb_schedule_builder builder = {0};
  struct zb_v_endings kept = {.hasty = 2};
  bool better;
  if (!zb_v_groups_apply(profile)) return ZB_OK;
  enum zb_status status = zb_builder_create(profile, &builder, error);
  for (int eighths = 0; eighths <= 8 && status == ZB_OK; eighths++) {
    const struct zb_v_endings endings = {.hasty = kept.hasty, .late = p / 8 * eighths + p % 8 * eighths / 8};
    status = try_endings(problem, most_bytes, &endings, &builder, best, &better, error);
    if (status == ZB_OK && better) kept = endings;
  }
  for (size_t k = 0; k < sizeof hasty / sizeof *hasty && status == ZB_OK; k++) {
    const struct zb_v_endings endings = {.hasty = hasty[k], .late = kept.late};
    status = try_endings(problem, most_bytes, &endings, &builder, best, &better, error);
  }
  zb_builder_free(&builder);
  return status;
}

static enum zb_status zb_v_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                 struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  static const struct zb_v_rule rule = {
      .ahead_ns = 0, .lead_ns = ZB_NEVER, .weight_lag_ns = ZB_NEVER, .hold = false, .gap = ZB_V_GAP_LONGEST};
  const struct zb_profile *profile = problem->profile;
  const int p = profile->devices;
  struct zb_v_pipe pipe;
  struct zb_v_block block;
  struct zb_result best;
  if (zb_result_if_infeasible(problem, result)) return ZB_OK;
  enum zb_status status = create(profile, &pipe, &block, error);
  int64_t *most_bytes = malloc((size_t)p * sizeof *most_bytes);
  if (status == ZB_OK && !most_bytes) status = zb_fail_memory(error);
  if (status == ZB_OK) {
    for (int i = 0; i < p; i++) most_bytes[i] = two_for_each_device(profile, i);
    zb_v_pipe_take_profile(&pipe, profile, most_bytes, false);
    zb_v_block_lay_zb_v(&pipe, &block);
    status = finish(problem, &pipe, &block, &rule, &best, error);
  }
  if (status == ZB_OK) {
    status = try_groups(problem, most_bytes, &best, error);
    if (status == ZB_OK)
      *result = best;
    else
      zb_result_free(&best);
  }
  zb_v_pipe_free(&pipe);
  free(block.device);
  free(most_bytes);
  return status;
}

const struct zb_engine zb_engine_1f1b_v = {"1f1b-v", "1F1B on a V, two thirds of its memory", ZB_NEED_V,
                                           one_f_one_b_v_solve};
const struct zb_engine zb_engine_zb_v = {"zb-v", "no bubble in the memory of 1F1B", ZB_NEED_V, zb_v_solve};
const struct zb_engine zb_engine_v_half = {"v-half", "half the memory of 1F1B", ZB_NEED_V, v_half_solve};
const struct zb_engine zb_engine_v_min = {"v-min", "a third of the memory of 1F1B", ZB_NEED_V, v_min_solve};
