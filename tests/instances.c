// See instances.h.
#include "tests/instances.h"

#include <assert.h>
#include <stdlib.h>

#include "solver/program/lower.h"

struct zb_profile *instance_from_generated(const struct generated_profile *g) {
  struct zb_profile *p = NULL;
  if (zb_profile_create(g->devices, 1, g->microbatches, ZB_CHAIN, &p, NULL) != ZB_OK) return NULL;
  p->has_bw = g->has_bw;
  p->has_memory = true;
  for (int i = 0; i < g->devices; i++) {
    p->f_ns[i] = g->f[i];
    p->b_ns[i] = g->b[i];
    p->w_ns[i] = g->w[i];
    p->bw_ns[i] = g->bw[i];
    p->comm_forward_ns[i] = g->comm_forward[i];
    p->comm_backward_ns[i] = g->comm_backward[i];
    p->f_bytes[i] = g->memory_f[i];
    p->b_bytes[i] = g->memory_b[i];
    p->w_bytes[i] = g->memory_w[i];
    p->static_bytes[i] = g->fixed[i];
    p->limit_bytes[i] = g->has_limit ? g->limit[i] : ZB_NO_LIMIT;
  }
  enum zb_status status = zb_profile_finish(p, NULL);
  assert(status == ZB_OK || status == ZB_FAILED);
  if (status == ZB_OK) return p;
  zb_profile_free(p);
  return NULL;
}

static int64_t time_up_to(struct generate_random *random, int64_t most, int64_t skew) {
  int64_t time = generate_between(random, 1, 4) == 1 ? 0 : generate_between(random, 1, most);
  return generate_between(random, 1, 3) == 1 ? skew * time : time;
}

struct zb_profile *instance_profile(struct generate_random *random, enum zb_placement placement, int devices,
                                    int microbatches) {
  return instance_profile_of(random, placement, 3, devices, microbatches);
}

struct zb_profile *instance_profile_of(struct generate_random *random, enum zb_placement placement,
                                       int most_chunks, int devices, int microbatches) {
  int p = (int)generate_between(random, 1, devices), m = (int)generate_between(random, 1, microbatches);
  int chunks = placement == ZB_CHAIN ? 1
               : placement == ZB_V   ? 2
                                     : (int)generate_between(random, 1, most_chunks);
  struct zb_profile *to = NULL;
  if (zb_profile_create(p, chunks, m, placement, &to, NULL) != ZB_OK) return NULL;
  if (placement == ZB_LIST) // shuffle what create filled in
    for (int s = to->stages - 1; s > 0; s--) {
      int other = (int)generate_between(random, 0, s), device = to->device_of[s];
      to->device_of[s] = to->device_of[other];
      to->device_of[other] = device;
    }
  to->has_bw = generate_between(random, 0, 1) == 1;
  to->has_memory = true;
  int64_t most = generate_between(random, 1, 8) == 1 ? 1000000000 : 12;
  int64_t skew = generate_between(random, 1, 2) == 1 ? 1 : 30,
          comm = generate_between(random, 0, 3) == 0 ? 40 : generate_between(random, 0, 6);
  for (int s = 0; s < to->stages; s++) {
    to->f_ns[s] = time_up_to(random, most, skew);
    to->b_ns[s] = time_up_to(random, most, skew);
    to->w_ns[s] = time_up_to(random, most, skew);
    to->bw_ns[s] = time_up_to(random, 2 * most, skew);
    to->comm_forward_ns[s] = generate_between(random, 0, comm);
    to->comm_backward_ns[s] = generate_between(random, 0, comm);
    to->f_bytes[s] = generate_between(random, 0, 9);
    to->w_bytes[s] = -generate_between(random, 0, to->f_bytes[s] + generate_between(random, 0, 2));
    to->b_bytes[s] = -to->f_bytes[s] - to->w_bytes[s];
  }
  for (int d = 0; d < p; d++) {
    to->static_bytes[d] = generate_between(random, 0, 3);
    to->limit_bytes[d] = generate_between(random, 0, 2) == 0
                             ? ZB_NO_LIMIT
                             : generate_between(random, 0, 12 * (int64_t)m * chunks);
  }
  enum zb_status status = zb_profile_finish(to, NULL);
  assert(status == ZB_OK || status == ZB_FAILED);
  if (status == ZB_OK) return to;
  zb_profile_free(to);
  return NULL;
}

enum { F_DONE = 1, GRADIENT_DONE = 2, ALL_DONE = 4, FUSED = 8 };

// The kind that this (stage, microbatch) could run next, or -1.
static int next_kind(const struct zb_profile *p, const unsigned char *state, int stage, int microbatch) {
  int m = p->microbatches;
  const unsigned char *here = &state[stage * m + microbatch];
  if (*here & ALL_DONE) return -1;
  if (!(*here & F_DONE)) return stage == 0 || here[-m] & F_DONE ? ZB_F : -1;
  if (*here & GRADIENT_DONE) return ZB_W;
  if (stage < p->stages - 1 && !(here[m] & GRADIENT_DONE)) return -1;
  return *here & FUSED ? ZB_BW : ZB_B;
}

struct zb_schedule *instance_order(const struct zb_profile *profile, enum instance_backward backward,
                                   struct generate_random *random) {
  static const unsigned char after[4] = {F_DONE, GRADIENT_DONE, ALL_DONE, GRADIENT_DONE | ALL_DONE};
  int m = profile->microbatches, passes = profile->stages * m;
  struct zb_schedule_builder builder = {0};
  struct zb_schedule *schedule = NULL;
  unsigned char *state = calloc((size_t)passes, 1);
  // Some devices run all the forwards they can first, some put every W last, ..
  int64_t *weight = calloc(4 * (size_t)profile->devices, sizeof *weight);
  if (!state || !weight || zb_builder_create(profile, &builder, NULL) != ZB_OK) {
    free(state);
    free(weight);
    return NULL;
  }
  for (int i = 0; i < passes; i++)
    if (backward == INSTANCE_FUSED || (backward == INSTANCE_MIXED && generate_between(random, 0, 1) == 1))
      state[i] = FUSED;
  for (int i = 0; i < 4 * profile->devices; i++) weight[i] = generate_between(random, 0, 1) == 1 ? 50 : 1;
  for (;;) {
    int chosen = -1;
    int64_t able = 0;
    for (int i = 0; i < passes; i++) {
      int kind = next_kind(profile, state, i / m, i % m);
      if (kind < 0) continue;
      int64_t wish = weight[4 * profile->device_of[i / m] + kind];
      able += wish;
      if (generate_between(random, 1, able) <= wish) chosen = i;
    }
    if (chosen < 0) break;
    int kind = next_kind(profile, state, chosen / m, chosen % m);
    zb_builder_append(&builder, chosen / m, (enum zb_kind)kind, chosen % m);
    state[chosen] |= after[kind];
  }
  if (zb_builder_finish(&builder, &schedule, NULL) != ZB_OK) schedule = NULL;
  zb_builder_free(&builder);
  free(state);
  free(weight);
  return schedule;
}

struct zb_program *instance_program(struct generate_random *random, int index) {
  struct zb_profile *profile =
      instance_profile(random, (enum zb_placement)(index % ZB_PLACEMENT_COUNT), 5, 6);
  struct zb_schedule *schedule = NULL;
  struct zb_program *program = NULL;
  if (!profile) return NULL;
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = ZB_NO_LIMIT;
  schedule = instance_order(profile, (enum instance_backward)(index % 3), random);
  if (schedule && zb_program_lower(profile, schedule, "drawn", (enum zb_optimizer)(index / 3 % 3), &program,
                                   NULL) == ZB_OK)
    program->channels = (enum zb_channels)(index / 9 % 3);
  zb_schedule_free(schedule);
  zb_profile_free(profile);
  return program;
}
