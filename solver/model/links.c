// links.c - two passes over the ops: where each result is made, then who takes it.
#include "solver/model/links.h"

#include <stdlib.h>

void zb_links_free(struct zb_links *links) {
  free(links->input);
  free(links->own);
  free(links->waited_for);
  *links = (struct zb_links){0};
}

int64_t zb_links_comm_ns(const struct zb_profile *profile, struct zb_op from, struct zb_op to) {
  return from.stage < to.stage ? profile->comm_forward_ns[from.stage] : profile->comm_backward_ns[to.stage];
}

// makers[pass] is the place of the pass's F, makers[passes + pass] that of its B or BW.
static void fill_makers(const struct zb_profile *profile, const struct zb_schedule *schedule,
                        uint32_t *makers) {
  const size_t microbatches = (size_t)profile->microbatches, passes = (size_t)profile->stages * microbatches;
  const size_t ops = schedule->first[schedule->devices];
  for (size_t i = 0; i < ops; i++) {
    const struct zb_op op = schedule->ops[i];
    const size_t pass = (size_t)op.stage * microbatches + (size_t)op.microbatch;
    if (op.kind != ZB_W) makers[op.kind == ZB_F ? pass : passes + pass] = (uint32_t)i;
  }
}

static void link_op(const struct zb_profile *profile, struct zb_op op, const uint32_t *makers,
                    uint32_t *input, uint32_t *own) {
  const size_t microbatches = (size_t)profile->microbatches, passes = (size_t)profile->stages * microbatches;
  const size_t pass = (size_t)op.stage * microbatches + (size_t)op.microbatch;
  *input = *own = ZB_NO_OP;
  if (op.kind == ZB_F) {
    if (op.stage > 0) *input = makers[pass - microbatches];
    return;
  }
  *own = makers[op.kind == ZB_W ? passes + pass : pass];
  if (op.kind != ZB_W && op.stage + 1 < profile->stages) *input = makers[passes + pass + microbatches];
}

static void find_waits(const struct zb_profile *profile, const struct zb_schedule *schedule,
                       const struct zb_timeline *timeline, struct zb_links *links) {
  for (int d = 0; d < schedule->devices; d++)
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const uint32_t before = i > schedule->first[d] ? (uint32_t)i - 1 : ZB_NO_OP;
      const uint32_t candidates[] = {before, links->input[i], links->own[i]};
      int64_t latest_ns = -1;
      links->waited_for[i] = ZB_NO_OP;
      for (int k = 0; k < 3; k++) {
        if (candidates[k] == ZB_NO_OP) continue;
        const struct zb_op from = schedule->ops[candidates[k]];
        int64_t ready_ns = timeline->start_ns[candidates[k]] + zb_op_time(profile, from);
        if (k == 1) ready_ns += zb_links_comm_ns(profile, from, schedule->ops[i]);
        if (ready_ns <= latest_ns) continue;
        latest_ns = ready_ns;
        links->waited_for[i] = candidates[k];
      }
    }
}

enum zb_status zb_links_create(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               const struct zb_timeline *timeline, struct zb_links *links,
                               struct zb_error *error) {
  const size_t ops = schedule->first[schedule->devices], room = ops ? ops : 1;
  const size_t passes = (size_t)profile->stages * (size_t)profile->microbatches;
  struct zb_links made = {.ops = ops};
  uint32_t *makers = malloc(2 * passes * sizeof *makers);
  made.input = malloc(room * sizeof *made.input);
  made.own = malloc(room * sizeof *made.own);
  made.waited_for = malloc(room * sizeof *made.waited_for);
  if (!makers || !made.input || !made.own || !made.waited_for) {
    free(makers);
    zb_links_free(&made);
    return zb_fail_memory(error);
  }
  fill_makers(profile, schedule, makers);
  for (size_t i = 0; i < ops; i++) link_op(profile, schedule->ops[i], makers, &made.input[i], &made.own[i]);
  find_waits(profile, schedule, timeline, &made);
  free(makers);
  *links = made;
  return ZB_OK;
}
