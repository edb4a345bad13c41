// replay_report.h - what was measured beside what the profile promised.
#ifndef ZB_REPLAY_REPORT_H
#define ZB_REPLAY_REPORT_H

#include "runtime/replay.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

struct zb_compared {
  int64_t predicted, measured;
};

// Of the measured steps (all but the warm-up), means. Predicted is what the program's profile says. Both
// iterations are from one step's end to the next's, with a barrier the makespan, with post-validation the
// period; the measured one holds the optimizer's work too.
struct zb_replay_report {
  int64_t first_step, steps, steps_measured; // steps first_step .. steps - 1 were run
  struct zb_compared iteration_ns;
  struct zb_compared work_ns;  // of the busiest device: bubble = (iteration - work) / iteration
  int64_t host_ns;             // of the host thread that is busiest handing ops to its device
  struct zb_compared *idle_ns; // [devices] iteration - ops
  struct zb_compared *kept;    // [devices] peak bytes of what microbatches keep, of the model's real sizes
  struct zb_instruction
      worst; // the op that took longest against its time; kind ZB_INSTRUCTION_KINDS: none has one
  struct zb_compared worst_ns;
  int64_t instructions, repeats; // all steps, all devices
  int64_t notes[ZB_NOTE_COUNT];
  int64_t static_bytes, undo_bytes, buffer_bytes; // all devices
  double *loss;                                   // [steps], from first_step on; NULL: nothing was trained
};

// Of a crew that has run through, in the process that speaks (zb_crew_speaks). Owned by the caller:
// zb_replay_report_free.
enum zb_status zb_replay_report(const struct zb_crew *crew, struct zb_replay_report *report,
                                struct zb_error *error);
void zb_replay_report_free(struct zb_replay_report *report); // the fields, not the struct

// A table, every step's loss and every device with `verbose`; or the members of a JSON object, without
// braces.
void zb_replay_report_print(const struct zb_crew *crew, const struct zb_replay_report *report, bool verbose,
                            struct zb_text *out);
void zb_replay_report_print_json(const struct zb_crew *crew, const struct zb_replay_report *report,
                                 struct zb_text *out);

// The crew's events (zb_replay.traces) as a Chrome trace: a process a device, a line for its ops, one for
// what it sends and one for what it receives, and a counter of the bytes it keeps by the profile.
void zb_replay_trace_print(const struct zb_crew *crew, struct zb_text *out);

#endif
