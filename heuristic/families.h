// families.h - the schedules that people know by name, as engines over solver/model.
//
// A handcrafted family is one fixed order: it never looks at times, and at the memory limit only to say
// whether it fits. The greedy ones build their order from the profile's own times and limits.
#ifndef ZB_FAMILIES_H
#define ZB_FAMILIES_H

#include "solver/model/engine.h"

extern const struct zb_engine zb_engine_gpipe;
extern const struct zb_engine zb_engine_1f1b;
extern const struct zb_engine zb_engine_1f1b_interleaved;
extern const struct zb_engine zb_engine_zb_h1;
extern const struct zb_engine zb_engine_zb_h2;
extern const struct zb_engine zb_engine_greedy;
extern const struct zb_engine zb_engine_zb_1p;
extern const struct zb_engine zb_engine_zb_2p;
extern const struct zb_engine zb_engine_1f1b_v;
extern const struct zb_engine zb_engine_zb_v;
extern const struct zb_engine zb_engine_v_half;
extern const struct zb_engine zb_engine_v_min;
extern const struct zb_engine zb_engine_v_blocks;

// Appends a family's whole order, device by device, to an empty builder of the profile.
typedef void zb_family_fill(const struct zb_profile *profile, struct zb_schedule_builder *builder);

// The solve of every handcrafted family: INFEASIBLE where no order fits, otherwise the order that `fill`
// writes, timed; OVER_LIMIT where it needs more memory than a device has.
enum zb_status zb_family_solve(const struct zb_problem *problem, zb_family_fill *fill,
                               struct zb_result *result, struct zb_error *error);

#endif
