// in_flight.c - list scheduling with a cap on the microbatches that have begun and not ended.
//
// A device runs whatever is ready, backwards first. A microbatch may begin only while fewer than k others are
// unfinished, so a device keeps at most k times what one microbatch keeps there: that is within the limit for
// a k that is chosen once, and an order that has begun can always end. No placement is special to it.
//
// Every class of ops (a stage's F, B or W) runs its microbatches in order, so the state of a class is one
// counter, and what is ready next is found by looking at the classes of a device.
#include "heuristic/in_flight.h"

#include <stdlib.h>

#include "solver/model/number.h"

enum { NOT_YET = -1, CLASSES = 3 }; // F, B (or BW), W of a stage, numbered as in enum zb_kind

// The yes/no choices: which F first where a device has several stages, and whether W waits for them.
struct rule {
  int most_in_flight;
  bool deep_first, weights_first;
};

struct simulation {
  const struct zb_profile *profile;
  struct rule rule;
  int *done;         // [stages * CLASSES] ops of the class that are scheduled
  int64_t *ready_ns; // [stages * CLASSES * microbatches] NOT_YET until its predecessor is scheduled
  int64_t *free_ns;  // [devices]
  int64_t *next_ns;  // [devices] when it could start something, INT64_MAX: nothing is known
  int *left;         // [microbatches] ops that are not scheduled
  int64_t *ended_ns; // [microbatches] last end so far
  int begun;         // microbatches that have been let in
};

static bool is_fused(const struct zb_profile *profile, int stage) {
  return zb_profile_fused_is_shorter(profile, stage);
}

static int64_t *ready(const struct simulation *sim, int stage, int class, int microbatch) {
  return &sim->ready_ns[((int64_t)stage * CLASSES + class) * sim->profile->microbatches + microbatch];
}

// When the next op of a class is ready; INT64_MAX where it is not known yet or there is none.
static int64_t class_ready(const struct simulation *sim, int stage, int class) {
  int microbatch = sim->done[stage * CLASSES + class];
  if (microbatch == sim->profile->microbatches) return INT64_MAX;
  int64_t ns = *ready(sim, stage, class, microbatch);
  return ns == NOT_YET ? INT64_MAX : ns;
}

static void refresh(struct simulation *sim, int device) {
  const struct zb_profile *profile = sim->profile;
  int64_t least = INT64_MAX;
  for (int k = 0; k < profile->chunks; k++)
    for (int class = 0; class < CLASSES; class ++)
      least = zb_min(least, class_ready(sim, profile->stage_at[device * profile->chunks + k], class));
  sim->next_ns[device] = least == INT64_MAX ? least : zb_max(least, sim->free_ns[device]);
}

static void make_ready(struct simulation *sim, int stage, int class, int microbatch, int64_t ns) {
  *ready(sim, stage, class, microbatch) = ns;
  refresh(sim, sim->profile->device_of[stage]);
}

// Lower is better: backwards, then forwards and weights in the order that the rule says.
static int urgency(const struct simulation *sim, int chunk, int class) {
  int chunks = sim->profile->chunks, place = sim->rule.deep_first ? chunks - 1 - chunk : chunk;
  if (class == ZB_B) return chunk;
  if (class == ZB_F) return chunks * (sim->rule.weights_first ? 2 : 1) + place;
  return chunks * (sim->rule.weights_first ? 1 : 2) + chunk;
}

static void choose(const struct simulation *sim, int device, int *stage, int *class) {
  const struct zb_profile *profile = sim->profile;
  int64_t now_ns = sim->next_ns[device];
  int best = CLASSES * profile->chunks;
  for (int k = 0; k < profile->chunks; k++) {
    int s = profile->stage_at[device * profile->chunks + k];
    for (int c = 0; c < CLASSES; c++) {
      if (class_ready(sim, s, c) > now_ns || urgency(sim, k, c) >= best) continue;
      best = urgency(sim, k, c);
      *stage = s;
      *class = c;
    }
  }
}

static void let_in(struct simulation *sim, int64_t ns) {
  if (sim->begun == sim->profile->microbatches) return;
  make_ready(sim, 0, ZB_F, sim->begun++, ns);
}

// Schedules the op at its device's next_ns and wakes what waited for it.
static void run(struct simulation *sim, int stage, int class, struct zb_schedule_builder *builder) {
  const struct zb_profile *profile = sim->profile;
  int device = profile->device_of[stage], microbatch = sim->done[stage * CLASSES + class]++;
  bool fused = class == ZB_B && is_fused(profile, stage);
  struct zb_op op = {stage, microbatch, fused ? ZB_BW : (enum zb_kind) class};
  int64_t end_ns = sim->next_ns[device] + zb_op_time(profile, op);
  zb_builder_append(builder, stage, op.kind, microbatch);
  sim->free_ns[device] = end_ns;
  sim->ended_ns[microbatch] = zb_max(sim->ended_ns[microbatch], end_ns);
  bool last = --sim->left[microbatch] == 0;
  if (class == ZB_F && stage + 1 < profile->stages)
    make_ready(sim, stage + 1, ZB_F, microbatch, end_ns + profile->comm_forward_ns[stage]);
  else if (class == ZB_F)
    make_ready(sim, stage, ZB_B, microbatch, end_ns);
  if (class == ZB_B && stage > 0)
    make_ready(sim, stage - 1, ZB_B, microbatch, end_ns + profile->comm_backward_ns[stage - 1]);
  if (class == ZB_B && !fused) make_ready(sim, stage, ZB_W, microbatch, end_ns);
  if (last) let_in(sim, sim->ended_ns[microbatch]);
  refresh(sim, device);
}

static void simulate(struct simulation *sim, struct zb_schedule_builder *builder) {
  const struct zb_profile *profile = sim->profile;
  size_t entries = (size_t)profile->stages * CLASSES;
  int ops = 0;
  for (int s = 0; s < profile->stages; s++) ops += is_fused(profile, s) ? 2 : 3;
  for (size_t k = 0; k < entries; k++) sim->done[k] = 0;
  for (size_t k = 0; k < entries * (size_t)profile->microbatches; k++) sim->ready_ns[k] = NOT_YET;
  for (int d = 0; d < profile->devices; d++) {
    sim->free_ns[d] = 0;
    sim->next_ns[d] = INT64_MAX;
  }
  for (int j = 0; j < profile->microbatches; j++) {
    sim->left[j] = ops;
    sim->ended_ns[j] = 0;
  }
  sim->begun = 0;
  for (int j = 0; j < sim->rule.most_in_flight; j++) let_in(sim, 0);
  for (int64_t left = (int64_t)ops * profile->microbatches; left > 0; left--) {
    int device = 0, stage = 0, class = 0;
    for (int d = 1; d < profile->devices; d++)
      if (sim->next_ns[d] < sim->next_ns[device]) device = d;
    choose(sim, device, &stage, &class);
    run(sim, stage, class, builder);
  }
}

// How many microbatches fit on every device at once, at most all of them.
static int most_that_fit(const struct zb_profile *profile) {
  int64_t most = profile->microbatches;
  for (int d = 0; d < profile->devices; d++) {
    int64_t kept = 0;
    for (int k = 0; k < profile->chunks; k++) {
      int s = profile->stage_at[d * profile->chunks + k];
      kept += zb_max(profile->f_bytes[s], is_fused(profile, s) ? 0 : -profile->w_bytes[s]);
    }
    if (profile->limit_bytes[d] == ZB_NO_LIMIT || kept == 0) continue;
    most = zb_min(most, (profile->limit_bytes[d] - profile->static_bytes[d]) / kept);
  }
  return (int)most;
}

static enum zb_status create(const struct zb_profile *profile, struct simulation *sim,
                             struct zb_error *error) {
  size_t entries = (size_t)profile->stages * CLASSES, p = (size_t)profile->devices,
         m = (size_t)profile->microbatches;
  *sim = (struct simulation){.profile = profile};
  sim->done = malloc(entries * sizeof *sim->done);
  sim->ready_ns = malloc(entries * m * sizeof *sim->ready_ns);
  sim->free_ns = malloc(p * sizeof *sim->free_ns);
  sim->next_ns = malloc(p * sizeof *sim->next_ns);
  sim->left = malloc(m * sizeof *sim->left);
  sim->ended_ns = malloc(m * sizeof *sim->ended_ns);
  bool whole = sim->done && sim->ready_ns && sim->free_ns && sim->next_ns && sim->left && sim->ended_ns;
  return whole ? ZB_OK : zb_fail_memory(error);
}

static void destroy(struct simulation *sim) {
  free(sim->done);
  free(sim->ready_ns);
  free(sim->free_ns);
  free(sim->next_ns);
  free(sim->left);
  free(sim->ended_ns);
}

// Keeps the cheaper of *best (which may be empty) and the order in the builder.
static enum zb_status keep_cheaper(const struct zb_problem *problem,
                                   const struct zb_schedule_builder *builder, struct zb_result *best,
                                   struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  struct zb_result next;
  enum zb_status status = zb_builder_finish(builder, &schedule, error);
  if (status == ZB_OK) status = zb_result_from_schedule(problem, schedule, &next, error);
  if (status != ZB_OK) return status;
  struct zb_result *loser = next.cost_ns < best->cost_ns ? best : &next;
  struct zb_result spare = *loser;
  if (loser == best) *best = next;
  zb_result_free(&spare);
  return ZB_OK;
}

static enum zb_status one_at_a_time(const struct zb_problem *problem, struct zb_result *result,
                                    struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  enum zb_status status = zb_schedule_sequential(problem->profile, &schedule, error);
  return status == ZB_OK ? zb_result_from_schedule(problem, schedule, result, error) : status;
}

// All that fit is not always best: fewer start their backwards sooner and leave W for the gaps.
static enum zb_status try_rules(const struct zb_problem *problem, int most, struct zb_result *best,
                                struct zb_error *error) {
  const int p = problem->profile->devices;
  const int caps[] = {most, p, p + p / 2, 2 * p, 3 * p};
  struct zb_schedule_builder builder = {0};
  struct simulation sim;
  enum zb_status status = create(problem->profile, &sim, error);
  if (status == ZB_OK) status = zb_builder_create(problem->profile, &builder, error);
  for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
    if (caps[k] > most || (k > 0 && caps[k] == most)) continue;
    for (int choice = 0; choice < 4 && status == ZB_OK; choice++) {
      if (best->schedule && zb_deadline_passed(&problem->deadline)) break;
      sim.rule = (struct rule){caps[k], (choice & 1) != 0, (choice & 2) != 0};
      zb_builder_clear(&builder);
      simulate(&sim, &builder);
      status = keep_cheaper(problem, &builder, best, error);
    }
  }
  zb_builder_free(&builder);
  destroy(&sim);
  return status;
}

enum zb_status zb_in_flight_solve(const struct zb_problem *problem, struct zb_result *result,
                                  struct zb_error *error) {
  int most = most_that_fit(problem->profile);
  if (most < 1) return one_at_a_time(problem, result, error);
  struct zb_result best = {.status = ZB_UNKNOWN, .cost_ns = INT64_MAX};
  enum zb_status status = try_rules(problem, most, &best, error);
  if (status == ZB_OK)
    *result = best;
  else
    zb_result_free(&best);
  return status;
}
