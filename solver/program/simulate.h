// simulate.h - does a program finish, and when: every device takes its list as program.h says.
//
// Each message belongs to one channel at either end (ZB_CHANNELS_RANK: the device's only one; PAIR: one a
// peer; EDGE: one a peer and direction) and leaves when both ends have posted it and the message before it in
// both channels has left. Nothing here depends on how fast anything is but the times that come out: what
// finishes under these rules finishes at any speed, because every wait is for something definite.
#ifndef ZB_SIMULATE_H
#define ZB_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"
#include "solver/program/program.h"

// Why an instruction is not done: what the next entry of the cycle has to do with it.
#define ZB_WAIT_TABLE(X)                                                                                     \
  X(ZB_WAIT_REACH, "not reached, the device waits at")                                                       \
  X(ZB_WAIT_MESSAGE, "waits for the message of")                                                             \
  X(ZB_WAIT_OTHER_END, "its other end is")                                                                   \
  X(ZB_WAIT_CHANNEL, "in its channel behind")

enum zb_wait {
#define X(name, word) name,
  ZB_WAIT_TABLE(X)
#undef X
      ZB_WAIT_COUNT
};
const char *zb_wait_word(enum zb_wait wait);

struct zb_wait_for {
  int device;
  size_t instruction; // position in the program
  enum zb_wait why;   // it waits for the next entry of the cycle, the last for the first
};

// Start from a zeroed struct; everything is owned by it (zb_run_free).
struct zb_run {
  int64_t *start_ns, *end_ns;   // [instructions] of an op: its time; of a SEND or RECV: from leaving to
                                // arriving; of anything else: when the device is past it, twice
  int64_t span_ns, makespan_ns; // of the ops, as in a timeline
  struct zb_wait_for *cycle;    // where it does not finish
  size_t cycle_length;
};

// Runs one iteration. Messages take the profile's time for their boundary, those of the optimizer none (the
// profile has no time for a few numbers). Where `serial`, messages of a channel follow each other, else they
// only leave in order. WRONG with device, position and instruction where
//   - an instruction is none of this device (stage, microbatch, peer), or an op comes twice,
//   - a message lacks an end or has one twice, or an op's input has no message,
//   - between two devices, one way, the k-th send is not the k-th receive,
//   - it does not finish: then `run` has the cycle.
enum zb_status zb_program_simulate(const struct zb_program *program, enum zb_channels channels, bool serial,
                                   struct zb_run *run, struct zb_error *error);

void zb_run_free(struct zb_run *run); // the fields, not the struct

// Fills the error (WRONG): "device 0, position 3, 2SEND_F1: " and the line. For messages about one
// instruction.
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
enum zb_status
zb_instruction_fail(struct zb_error *error, const struct zb_program *program, size_t instruction,
                    const char *format, ...);

#endif
