// method.h - a method on a profile: the placement it needs, the run, and the checked answer.
#ifndef ZB_METHOD_H
#define ZB_METHOD_H

#include "solver/cli/options.h"
#include "solver/model/answer.h"
#include "solver/model/engine.h"
#include "solver/model/profile.h"

// Reads the profile that a command is about and applies --microbatches and --memory-limit. *profile is the
// caller's.
enum zb_status zb_method_profile(const struct zb_options *options, struct zb_profile **profile,
                                 struct zb_error *error);
// Likewise one of several.
enum zb_status zb_method_profile_at(const struct zb_options *options, const char *path,
                                    struct zb_profile **profile, struct zb_error *error);

// The problem that the options pose, without its profile. `start_ns`: when the process began.
struct zb_problem zb_method_problem(const struct zb_options *options, int64_t start_ns);

// Where `engine` runs the profile, with `chunks` stages a device (0: the profile's, or 2 where a loop is
// needed and the profile has one). BAD_INPUT where the method cannot have that many.
enum zb_status zb_method_where(const struct zb_engine *engine, const struct zb_profile *profile,
                               int64_t chunks, enum zb_placement *where, int *stages_each,
                               struct zb_error *error);

// The profile there. *placed is the caller's.
enum zb_status zb_method_place(const struct zb_engine *engine, const struct zb_profile *profile,
                               int64_t chunks, struct zb_profile **placed, struct zb_error *error);

// An equal share of the time that is left, for the next of `shares` runs; what one does not use is the
// others'.
struct zb_deadline zb_method_deadline(const struct zb_deadline *all, int shares);

// Runs the engine on a problem whose profile is already placed, and checks what it returns: every schedule
// and every status that a command shows comes from here. `incumbent` as in zb_engine.solve; a search
// starts from the heuristics' best where that is better.
enum zb_status zb_method_run(const struct zb_engine *engine, const struct zb_problem *problem,
                             const struct zb_schedule *incumbent, struct zb_answer *answer,
                             struct zb_error *error);

// One line: "1f1b needs 1.62 GiB (1741234176 B, 2.1x) on device 0, ...". For OVER_LIMIT answers.
void zb_method_explain_over_limit(const struct zb_answer *answer, struct zb_error *error);
// One line for INFEASIBLE: which device cannot hold one microbatch, and what it takes.
void zb_method_explain_infeasible(const struct zb_reason *reason, struct zb_error *error);

// Largest peak of any device, and where.
int64_t zb_method_most_bytes(const struct zb_timeline *timeline, int *device);

// How many messages each device sends for one microbatch, one a boundary and direction that crosses devices;
// it receives as many. `sends` has room for [devices].
void zb_method_sends(const struct zb_profile *profile, int *sends);

// Messages that cross devices in one iteration.
int64_t zb_method_comm_count(const struct zb_profile *profile);

#endif
