// zb_handcrafted.c - ZB-H1 and ZB-H2: 1F1B with the backward split in two (arXiv 2401.10241, section 2).
//
// Device i warms up with k(p-1-i) forwards (k = 1: H1, k = 2: H2) and then runs F, B in turn. A W
// follows its B only once warm-up and backwards together reach k(p-1): the later devices, which start
// late, so keep their first W for the end, where they fill the drain. Device i therefore keeps at most
// k(p-1-i)+1 microbatches before their B and ki more that wait for their W.
#include "heuristic/families.h"
#include "solver/model/number.h"

static void handcrafted_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder,
                             int64_t k) {
  const int m = profile->microbatches, last = profile->stages - 1;
  for (int stage = 0; stage < profile->stages; stage++) {
    const int64_t offset = k * (last - stage);
    const int warmup = (int)zb_min(offset, m);
    int weights = 0;
    for (int j = 0; j < warmup; j++) zb_builder_append(builder, stage, ZB_F, j);
    for (int j = 0; j < m; j++) {
      if (warmup + j < m) zb_builder_append(builder, stage, ZB_F, warmup + j);
      zb_builder_append(builder, stage, ZB_B, j);
      if (offset + j >= k * last) zb_builder_append(builder, stage, ZB_W, weights++);
    }
    while (weights < m) zb_builder_append(builder, stage, ZB_W, weights++);
  }
}

static void h1_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder) {
  handcrafted_fill(profile, builder, 1);
}

static void h2_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder) {
  handcrafted_fill(profile, builder, 2);
}

static enum zb_status h1_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                               struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return zb_family_solve(problem, h1_fill, result, error);
}

static enum zb_status h2_solve(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                               struct zb_result *result, struct zb_error *error) {
  (void)incumbent;
  return zb_family_solve(problem, h2_fill, result, error);
}

const struct zb_engine zb_engine_zb_h1 = {"zb-h1", "split backward in the memory of 1F1B", ZB_NEED_CHAIN,
                                          h1_solve};
const struct zb_engine zb_engine_zb_h2 = {"zb-h2", "split backward, twice the warm-up of 1F1B", ZB_NEED_CHAIN,
                                          h2_solve};
