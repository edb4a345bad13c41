// compute.h - what computes for one device, as a table of functions.
//
// A backend may run behind its caller: op, step and the rest are issued in order and take effect in order,
// and finish waits for them. Where the device and the transport run side by side, events order them: `record`
// takes an event and puts it behind all that was issued; a message waits for it and puts it behind itself;
// `await` makes what is issued from now on wait for it, and takes it back. So a posted message has one event.
// A backend that has done everything when a call returns has NULL events, and these calls do nothing.
//
// A state belongs to one device and is used by one thread, but for `copy` and `follow`, which any may call.
#ifndef ZB_COMPUTE_H
#define ZB_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/training.h"
#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/model/status.h"
#include "solver/program/program.h"

// How a step is taken back.
enum zb_rollback { ZB_ROLLBACK_COPY, ZB_ROLLBACK_INVERSE };

struct zb_compute_setup { // all borrowed, for as long as the state lives
  const struct zb_profile *profile;
  const struct zb_training *training;
  const int *first_unit; // [stages + 1] of each stage (zb_gpt_cut)
  // Whose list of ops every batch runs, so that nothing is allocated after open; NULL: any ops may come.
  const struct zb_program *program;
  int device;
  int seat;      // which of the devices that share its machine (zb_transport.seat)
  bool may_undo; // undo will be called: keep what it needs
  enum zb_rollback rollback;
  bool weights_before_verdict; // undo may come after the next batch's first W: keep the gradient of the last
                               // step
  bool graph;                  // a batch that is like the one before may be repeated without being issued
};

// What a device on this machine needs.
struct zb_demand {
  int device, seat;
  bool here; // in this process
  int64_t bytes;
};

// When something began and ended, on the host's monotonic clock. Filled by the next finish at the latest.
struct zb_interval {
  int64_t start_ns, end_ns;
};

struct zb_memory_use {
  int64_t kept_peak_bytes; // what microbatches kept at most, all stages together
  int64_t static_bytes;    // parameters, gradients, the optimizer's numbers, scratch
  int64_t undo_bytes;      // what undo needs besides
};

struct zb_compute {
  const char *name, *help;
  bool trains;          // has losses and parameters
  bool pretends;        // takes the profile's times: messages should take theirs too
  bool apart;           // its buffers are a device's memory, which only some transports reach
  int (*at_once)(void); // devices that can compute here without taking anything from each other

  // Before the first open: whether the devices are there and have this much memory, and whether the training
  // is one that they can do; those of this process get to know each other. need[count] are the devices on
  // this machine. BAD_INPUT or FAILED, saying how
  // much is needed.
  enum zb_status (*look)(const struct zb_training *training, const struct zb_demand *need, int count,
                         struct zb_error *error);
  // Bytes that a state takes: all that open allocates, and what microbatches keep when it runs the program.
  int64_t (*needs)(const struct zb_compute_setup *setup);

  enum zb_status (*open)(const struct zb_compute_setup *setup, void **state, struct zb_error *error);
  // NULL is nothing. Only when finish has said that all is done, or nothing more will be.
  void (*close)(void *state);

  // A buffer for a message, where transport and ops can reach it.
  enum zb_status (*allocate)(void *state, size_t bytes, void **buffer, struct zb_error *error);
  void (*release)(void *state, void *buffer);

  // Batch `step` (from 0) begins, or begins again: nothing kept, and its gradients start from zero with the
  // first W. Another step than the last one only after a finish.
  enum zb_status (*begin)(void *state, int64_t step, struct zb_error *error);
  // After begin: the batch runs by itself, as the one before; its ops and messages are not to be issued, and
  // `norm` is the next call. NULL: never.
  bool (*repeats)(void *state);
  // One op. `in`: what F reads from the stage before, B and BW from the stage behind; `out`: what they make
  // for the other side; NULL where there is none. W has neither. `when` stays where it is until finish.
  enum zb_status (*op)(void *state, struct zb_op op, const void *in, void *out, struct zb_interval *when,
                       struct zb_error *error);

  enum zb_status (*record)(void *state, void **event, struct zb_error *error);
  enum zb_status (*await)(void *state, void *event, struct zb_error *error);
  // Copies a message into a buffer of this state from another's of the process: behind the events of both,
  // the second of which, this state's, is then put behind the copy. `follow` puts an event of this state
  // behind another's: so the sender learns of the copy. NULL where events are.
  enum zb_status (*copy)(void *state, void *to, const void *from, size_t bytes, void *after_from,
                         void *after_to, struct zb_error *error);
  enum zb_status (*follow)(void *state, void *event, void *other, struct zb_error *error);

  // *done: all that was issued is. OK and not done when the monotonic clock reaches deadline_ns first.
  enum zb_status (*finish)(void *state, int64_t deadline_ns, bool *done, struct zb_error *error);
  // How many ops of this batch have ended, in the order in which they were issued; -1: not known.
  int64_t (*ops_done)(void *state);

  // The sums of squares of the gradients are formed; after finish, partial[unit] of this device's units
  // (adamw.h) are those, and others are left alone.
  enum zb_status (*norm)(void *state, struct zb_error *error);
  void (*partials)(void *state, double *partial);
  // One optimizer step of all the device's parameters, the gradient that norm saw last times `scale`.
  // `undoable`: undo may follow, in this batch or the next.
  enum zb_status (*step)(void *state, double scale, bool undoable, struct zb_error *error);
  // Takes the last step back; it was made with this scale.
  enum zb_status (*undo)(void *state, double scale, struct zb_error *error);

  // A NaN into the gradient of a stage, to see what becomes of it.
  enum zb_status (*poison)(void *state, int stage, struct zb_error *error);

  // No message will come or go any more: what holds on to the transport is let go. NULL: nothing does.
  void (*part)(void *state);

  // After finish. loss[microbatches] of the batch, if the last stage is here (true). How many numbers a stage
  // has, and its parameters.
  bool (*loss)(void *state, double *loss);
  size_t (*parameters)(void *state, int stage);
  enum zb_status (*fetch)(void *state, int stage, zb_real *parameters, struct zb_error *error);
  // All that the optimizer knows of a stage, values[3 * parameters]: parameters, first and second moments;
  // and how many steps were made. A backend that does not train has neither.
  enum zb_status (*store)(void *state, int stage, zb_real *values, int64_t *steps_made,
                          struct zb_error *error);
  enum zb_status (*restore)(void *state, int stage, const zb_real *values, int64_t steps_made,
                            struct zb_error *error);
  struct zb_memory_use (*memory)(void *state);
};

extern const struct zb_compute zb_compute_cpu;
extern const struct zb_compute zb_compute_sleep;
extern const struct zb_compute zb_compute_cuda; // look and open fail where the build has no CUDA
extern const char *const zb_cuda_name;          // "yes", "none"

// What microbatches keep at most on the setup's device when it runs its program, prefix sums of
// zb_stage_memory; 0 without a program.
int64_t zb_compute_peak(const struct zb_compute_setup *setup);

// at_once of backends that compute on the machine's cores.
int zb_compute_cores(void);

// finish, or FAILED at the deadline.
enum zb_status zb_compute_finish(const struct zb_compute *compute, void *state, int64_t deadline_ns,
                                 struct zb_error *error);

// BAD_INPUT where devices need more memory than this machine has: before the kernel has to choose whom to
// end. For backends that live in the machine's own memory; they train in fp32.
enum zb_status zb_compute_look_at_host(const struct zb_training *training, const struct zb_demand *need,
                                       int count, struct zb_error *error);

#endif
