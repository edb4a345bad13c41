// rank.h - one device at work: takes its list of a program, one instruction after another, step after step.
//
// Ops go to a compute backend, messages to a transport, and this is the only place where the two meet. What
// program.h says about order is kept here: an op waits for the message that it reads, a slot is written when
// its last reader is done, and where the full state says that a step was wrong, the device puts it right and
// takes its list from the beginning. Every wait has a deadline.
#ifndef ZB_RANK_H
#define ZB_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/compute.h"
#include "runtime/progress.h"
#include "runtime/transport.h"
#include "solver/model/status.h"
#include "solver/program/program.h"

struct zb_checkpoint;

// What is run, the same for all devices; borrowed.
struct zb_replay {
  const struct zb_program *program; // valid (zb_program_check); its optimizer is not ZB_OPTIMIZER_NONE
  const struct zb_training *training;
  const int *first_unit; // [stages + 1] zb_gpt_cut
  const struct zb_compute *compute;
  const struct zb_transport *transport;
  enum zb_rollback rollback;
  int64_t timeout_ns;                  // of each wait
  int64_t warm_up;                     // steps that are not measured
  int32_t nan_stage;                   // whose gradient gets the NaN of training->nan_step
  bool traces;                         // keep every event
  bool graph;                          // batches may be repeated without being issued (zb_compute.repeats)
  const struct zb_checkpoint *resumed; // what is trained on; NULL: from the start values
  int64_t first_step;                  // steps done by then
  const char *checkpoint;              // directory; NULL: none are written
  int64_t checkpoint_every;            // steps; one is written after the last step in any case
  struct zb_progress
      *watched; // where the device notes what it is at, for others (one device a process); or NULL
};

// One instruction, done. Of a message: from posting it until it was waited for.
struct zb_event {
  struct zb_interval when;
  int32_t instruction; // position in the program
  int32_t step;
  int32_t note; // STEP, VALIDATE: enum zb_note, else 0
};

#define ZB_NOTE_TABLE(X)                                                                                     \
  X(ZB_NOTE_NONE, "")                                                                                        \
  X(ZB_NOTE_STEPPED, "stepped")    /* STEP: made, knowing all there is to know yet */                        \
  X(ZB_NOTE_CLIPPED, "clipped")    /* STEP of a barrier: made, scaled */                                     \
  X(ZB_NOTE_SKIPPED, "skipped")    /* STEP of a barrier: a NaN, not made */                                  \
  X(ZB_NOTE_HELD, "held")          /* STEP: not made, what is known says NaN or above the clipping norm */   \
  X(ZB_NOTE_RIGHT, "right")        /* VALIDATE: the step was right */                                        \
  X(ZB_NOTE_ROLLED, "rolled back") /* VALIDATE: undone, and redone where it is to be clipped */              \
  X(ZB_NOTE_LATE, "made late")     /* VALIDATE: it was held; made now, clipped */                            \
  X(ZB_NOTE_NOT_MADE, "not made")  /* VALIDATE: it was held, rightly: NaN */

enum zb_note {
#define X(name, word) name,
  ZB_NOTE_TABLE(X)
#undef X
      ZB_NOTE_COUNT
};
const char *zb_note_word(enum zb_note note);

// One step on one device. Between the two ends only the ops are busy.
struct zb_step_log {
  int64_t first_start_ns, last_end_ns, busy_ns; // of the ops
  int64_t host_ns; // what handing ops to the backend took: of one that runs behind, how long the host is busy
  int64_t end_ns;  // when its list was through
  double norm;     // of the whole gradient; 0 before it is known
};

// What a device leaves behind. Owned by the rank.
struct zb_rank_log {
  struct zb_step_log *step; // [steps]
  int64_t *busy_ns;         // [instructions of the device] sum over measured steps, of ops
  int64_t *longest_ns;      // [instructions of the device] likewise, the longest
  struct zb_event *event;   // [events] with `traces`, in order
  size_t events;
  int64_t notes[ZB_NOTE_COUNT];
  int64_t repeats;      // steps begun again after a rollback
  int64_t instructions; // done, all steps
  struct zb_memory_use memory;
  int64_t buffer_bytes; // message slots
  double *loss;         // [steps] where the last stage is, else NULL
};

void zb_rank_log_free(struct zb_rank_log *log); // the fields, not the struct

struct zb_rank;

// How the backend of a device is set up.
struct zb_compute_setup zb_rank_setup(const struct zb_replay *replay, int device, int seat);

// Opens device `device` on what transport.join has shared: allocates everything that the run will need.
enum zb_status zb_rank_open(const struct zb_replay *replay, void *shared, int device, struct zb_rank **rank,
                            struct zb_error *error);
// Ends its part in the transport and waits a moment for what its device is still at. Only when no other rank
// of the process runs any more.
void zb_rank_part(struct zb_rank *rank); // NULL is nothing
// After zb_rank_part, and after transport.leave: a late message may still be written into its buffers.
void zb_rank_close(struct zb_rank *rank); // NULL is nothing

// Runs all steps from first_step on. Where something fails, all other devices are told (abandon), and the
// error says what this device had finished last and what it was at.
enum zb_status zb_rank_run(struct zb_rank *rank, struct zb_error *error);

const struct zb_rank_log *zb_rank_log(const struct zb_rank *rank);
const struct zb_progress *zb_rank_progress(const struct zb_rank *rank);
void *zb_rank_state(const struct zb_rank *rank); // the compute backend's

// Whether it keeps the last step's gradient beside the next one's: a W comes before the verdict.
bool zb_rank_keeps_gradient(const struct zb_rank *rank);

#endif
