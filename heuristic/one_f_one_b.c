// one_f_one_b.c - 1F1B: one forward, one fused backward, in turn (arXiv 2104.04473, section 2.2.1).
//
// Device i warms up with p-1-i forwards, exactly those that are below it in the pipe when the first
// backward arrives, so it never keeps more than p-i microbatches.
#include "heuristic/families.h"
#include "solver/model/number.h"

static void one_f_one_b_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder) {
  const int m = profile->microbatches;
  for (int stage = 0; stage < profile->stages; stage++) {
    const int warmup = (int)zb_min(profile->stages - 1 - stage, m);
    for (int j = 0; j < warmup; j++) zb_builder_append(builder, stage, ZB_F, j);
    for (int j = 0; j < m; j++) {
      if (warmup + j < m) zb_builder_append(builder, stage, ZB_F, warmup + j);
      zb_builder_append(builder, stage, ZB_BW, j);
    }
  }
}

static enum zb_status one_f_one_b_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                        struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return zb_family_solve(problem, one_f_one_b_fill, result, error);
}

const struct zb_engine zb_engine_1f1b = {"1f1b", "one forward, one fused backward", ZB_NEED_CHAIN,
                                         one_f_one_b_solve};
