// replay.h - all devices of this process at once: a thread each, and what they leave behind.
#ifndef ZB_REPLAY_H
#define ZB_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/rank.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

// The devices of a run that are in this process. Start from a zeroed struct.
struct zb_crew {
  const struct zb_replay *replay; // borrowed
  void *shared;                   // the transport's
  int first_device, devices;
  struct zb_rank **rank;  // [devices]
  struct zb_error *error; // [devices] ZB_OK where the device finished
};

// Joins the transport, opens every device, runs them all, and waits for all of them. Where any device failed
// the error is that device's own reason, not another's that gave up for it; crew->error has what each one was
// at. The crew stays readable (zb_rank_log, ..) until zb_crew_free, on success and on failure.
enum zb_status zb_crew_run(const struct zb_replay *replay, struct zb_crew *crew, struct zb_error *error);
void zb_crew_free(struct zb_crew *crew); // the fields, not the struct

// The rank of a device, NULL where it is not in this process.
struct zb_rank *zb_crew_rank(const struct zb_crew *crew, int device);

// What microbatches keep at most on a device when this program runs this model: prefix sums of
// zb_stage_memory.
int64_t zb_replay_peak(const struct zb_program *program, const struct zb_gpt *gpt, const int *first_unit,
                       int device);

// Bytes that the device of a CPU will use: parameters, gradients, moments, what taking steps back needs,
// scratch, message slots, and what microbatches keep at most.
int64_t zb_replay_bytes(const struct zb_replay *replay, int device);

// Renames microbatches so that each stage runs its F, its B and its W in the order of their numbers: the k-th
// F of a stage is microbatch k's, and so on. Microbatches being alike, every precedence and every prefix sum
// of memory stays as it is.
enum zb_status zb_schedule_sort(const struct zb_profile *profile, struct zb_schedule *schedule,
                                struct zb_error *error);

// Trains the same without a pipeline and compares: every loss, every parameter, and each device's peak of
// what was kept. `tolerance` 0: to the bit; else |difference| <= tolerance * (|value| + unit), the unit of a
// parameter being the learning rate, about what a step moves it by, and 1 for a loss. WRONG with the first
// difference. Appends one line that says what was compared.
enum zb_status zb_crew_verify(const struct zb_crew *crew, double tolerance, struct zb_text *out,
                              struct zb_error *error);

#endif
