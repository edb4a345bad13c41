// lower.h - from a schedule to what each device does.
#ifndef ZB_LOWER_H
#define ZB_LOWER_H

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/program/program.h"

// Lowers a schedule of the profile; `method` is its word. The program is owned by the caller; it finishes
// under ZB_CHANNELS_RANK, and its ops start when the schedule's do. WRONG or OVER_LIMIT, as
// zb_check_schedule, where the order is no schedule of the profile.
enum zb_status zb_program_lower(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                const char *method, enum zb_optimizer optimizer, struct zb_program **program,
                                struct zb_error *error);

// Gives every instruction its slots, lowest index that is free first, and counts them. Private to the
// lowering: the lists must be valid but for their slots.
enum zb_status zb_program_assign_slots(struct zb_program *program, struct zb_error *error);

#endif
