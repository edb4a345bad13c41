// gpipe.c - all forwards, then all backwards.
//
// The oldest order (arXiv 1811.06965): its bubble is that of 1F1B, its memory grows with the number of
// microbatches. Both phases run the microbatches in order, the backward is fused.
#include "heuristic/families.h"

static void gpipe_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder) {
  for (int stage = 0; stage < profile->stages; stage++) {
    for (int j = 0; j < profile->microbatches; j++) zb_builder_append(builder, stage, ZB_F, j);
    for (int j = 0; j < profile->microbatches; j++) zb_builder_append(builder, stage, ZB_BW, j);
  }
}

static enum zb_status gpipe_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return zb_family_solve(problem, gpipe_fill, result, error);
}

const struct zb_engine zb_engine_gpipe = {"gpipe", "all forwards, then all backwards", ZB_NEED_CHAIN,
                                          gpipe_solve};
