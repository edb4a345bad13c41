// program_check.h - is this program one of its profile, does it finish, and is what it says true?
//
// Shares nothing with the lowering: a program that a file holds is trusted only after this.
#ifndef ZB_PROGRAM_CHECK_H
#define ZB_PROGRAM_CHECK_H

#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/program/program.h"
#include "solver/program/simulate.h"

// WRONG, with device, position and instruction where there is one, unless
//   - the ops are a schedule of the profile, within its limits, with the span, period, makespan and peaks
//   that the
//     program says,
//   - every boundary between devices is crossed by one message each way a microbatch, and nothing else is
//   sent; each
//     is sent after it was made and waited for once after that; matched by order, it arrives where it
//     belongs,
//   - it finishes under its channels, and no op starts later than the order of the ops makes it,
//   - every slot is written when it is free, read while it holds what the reader needs, and free at the end;
//   KEPT slots
//     last from F to W; and there are as many slots as are in use at once,
//   - the optimizer's instructions are those of its kind, in their order (program.h).
// Where it does not finish, `run` (zero-initialised, zb_run_free) has the cycle, else its times.
enum zb_status zb_program_check(const struct zb_program *program, struct zb_run *run, struct zb_error *error);

// The ops of a program as a schedule, owned by the caller. Stages and microbatches are taken as they are.
enum zb_status zb_program_schedule(const struct zb_program *program, struct zb_schedule **schedule,
                                   struct zb_error *error);

// Parts of zb_program_check: slots, and the optimizer. The program must have been simulated without an error
// about its form.
enum zb_status zb_program_check_slots(const struct zb_program *program, struct zb_error *error);
enum zb_status zb_program_check_optimizer(const struct zb_program *program, struct zb_error *error);

#endif
