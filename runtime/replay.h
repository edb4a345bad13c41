// replay.h - all devices of this process at once: a thread each, and what they leave behind.
//
// Where a launcher started several processes, each has a crew, and all of them make the same calls. What one
// finds wrong all end with, and only its process has the words (zb_transport.agree).
#ifndef ZB_REPLAY_H
#define ZB_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/rank.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

// The devices of a run that are in this process. Start from a zeroed struct.
struct zb_crew {
  const struct zb_transport *transport;
  const struct zb_replay *replay; // borrowed
  void *shared;                   // the transport's
  int first_device, devices;
  struct zb_rank **rank;  // [devices]
  struct zb_error *error; // [devices] ZB_OK where the device finished
  // [devices of the program] what each left behind; of another process' devices only in the process of device
  // 0, and NULL elsewhere.
  const struct zb_rank_log **log;
  struct zb_rank_log *received; // [devices of the program] what log points to for them
};

// The steps of a run. start: once a process, before it reads anything. agree: ends all processes alike; how
// long the others may take is `timeout_ns`. join: who is where, once all know that all are ready; `digest`
// stands for all that must be the same. work: opens every device that is here, runs them all, and waits for
// all of them; device 0's process then has everyone's log. Where any device failed the error is that device's
// own reason, not another's that gave up for it; crew->error has what each one was at. The crew stays
// readable until zb_crew_free, on success and on failure.
enum zb_status zb_crew_start(const struct zb_transport *transport, struct zb_crew *crew,
                             struct zb_error *error);
enum zb_status zb_crew_agree(const struct zb_crew *crew, enum zb_status mine, int64_t timeout_ns,
                             struct zb_error *error);
enum zb_status zb_crew_join(struct zb_crew *crew, const struct zb_replay *replay, uint64_t digest,
                            struct zb_error *error);
enum zb_status zb_crew_work(struct zb_crew *crew, struct zb_error *error);

// Whether this process speaks for all: device 0 is here.
static inline bool zb_crew_speaks(const struct zb_crew *crew) { return crew->first_device == 0; }

// All of them, for a transport in one process.
enum zb_status zb_crew_run(const struct zb_replay *replay, struct zb_crew *crew, struct zb_error *error);

// Leaves the transport, which may end the process with this status' exit code (zb_transport.leave), and frees
// the fields, not the struct.
void zb_crew_end(struct zb_crew *crew, enum zb_status status);
static inline void zb_crew_free(struct zb_crew *crew) { zb_crew_end(crew, ZB_OK); }

// The rank of a device, NULL where it is not in this process.
struct zb_rank *zb_crew_rank(const struct zb_crew *crew, int device);

// Bytes that a device will use: what its backend needs, and message slots.
int64_t zb_replay_bytes(const struct zb_replay *replay, int device);

// Whether backend, transport, program and options go together.
enum zb_status zb_replay_fits(const struct zb_replay *replay, struct zb_error *error);

// Whether the machines have what the devices need: after join, before the first step.
enum zb_status zb_crew_look(const struct zb_crew *crew, struct zb_error *error);

// Renames microbatches so that each stage runs its F, its B and its W in the order of their numbers: the k-th
// F of a stage is microbatch k's, and so on. Microbatches being alike, every precedence and every prefix sum
// of memory stays as it is.
enum zb_status zb_schedule_sort(const struct zb_profile *profile, struct zb_schedule *schedule,
                                struct zb_error *error);

// Trains the same without a pipeline on the same backend and compares: every loss, every parameter, and each
// device's peak of what was kept. `tolerance` 0: to the bit; else |difference| <= tolerance * (|value| +
// unit), the unit of a parameter being the learning rate, about what a step moves it by, and 1 for a loss.
// WRONG with the first difference. Each process compares what it has; all agree on the outcome. Appends one
// line that says what was compared.
enum zb_status zb_crew_verify(const struct zb_crew *crew, double tolerance, struct zb_text *out,
                              struct zb_error *error);

#endif
