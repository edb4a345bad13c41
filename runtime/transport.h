// transport.h - what moves messages between devices, as a table of functions.
//
// A transport lives in one process, or in one process a device, or anything between: zb_transport.join says
// which devices are here. Where there are several processes, start, agree and join are called by all of them,
// in the same order. Each of them gets an endpoint, which only its own thread uses. Messages between two
// devices, one way, are matched by order: the k-th send is the k-th receive. The label travels along where
// the transport has room for it and is compared, so that a program whose two ends disagree is found out
// rather than trained with.
//
// send and receive are posted and return at once; the data must stay (or stay away) until wait has seen the
// ticket done. Where a backend computes asynchronously, `after` is its event behind which a send may read or
// a receive may write the buffer; the transport puts the same event behind the message, and wait hands it
// back as soon as it is there: the message itself may still be to come. It is NULL where everything is done
// when the call returns, and then the data is in the machine's memory.
#ifndef ZB_TRANSPORT_H
#define ZB_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/edges.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

// What a message is, named as its sender names it (program.h), and how long it takes to arrive where the
// transport is asked to pretend (the sleep backend); 0 otherwise.
struct zb_label {
  int32_t kind, stage, microbatch;
  int64_t delay_ns;
};

// Room in which a transport keeps one posted message; the caller's, at one address while it is under way, and
// zeroed at first.
struct zb_ticket {
  _Alignas(16) unsigned char room[128];
  bool posted; // from send or receive until wait has seen it done
  void *event; // of a message that a transport carries beside the room
};

// What copies messages between buffers of a backend whose memory is its device's own (compute.h).
struct zb_mover {
  enum zb_status (*copy)(void *state, void *to, const void *from, size_t bytes, void *after_from,
                         void *after_to, struct zb_error *error);
  enum zb_status (*follow)(void *state, void *event, void *other, struct zb_error *error);
  void *state;
};

// What a wait says when it ends for another device's sake.
#define ZB_GAVE_UP "another device gave up"

struct zb_transport {
  const char *name, *help;
  bool apart; // a process a device, which a launcher may end
  // Where messages between ops may lie: in the machine's memory, in a device's. The optimizer's are always in
  // the machine's.
  bool host_memory, device_memory;
  bool captures; // messages can be part of a batch that repeats by itself (zb_compute.repeats)

  // Once a process, before anything else: connects what a launcher started.
  enum zb_status (*start)(void **shared, struct zb_error *error);
  // Ends it; NULL is nothing. After abandon it gives the others a moment to say their part first, because a
  // launcher may end them as soon as this process ends. Where taking leave takes longer than a moment it ends
  // the process, with the exit code of `status`: all must have been said and written before.
  void (*leave)(void *shared, enum zb_status status);

  // Each process says how it fares and learns how all do: OK, or the status of the first that fares badly.
  // That one keeps its error; the others' becomes empty, since the words have been said. FAILED where
  // somebody is not heard of by the deadline.
  enum zb_status (*agree)(void *shared, enum zb_status mine, int64_t deadline_ns, struct zb_error *error);

  // Says which devices are here (a range). `digest` stands for all that must be the same in every process.
  // BAD_INPUT where it is not, or where the launcher started another number of processes than the devices
  // need; only the first process has words for that.
  enum zb_status (*join)(void *shared, int devices, uint64_t digest, int64_t deadline_ns, int *first_device,
                         int *count, struct zb_error *error);

  // After join: where each device is, a line each; nothing where all are in this process. And whether a
  // device is on the machine that this process is on.
  void (*table)(void *shared, struct zb_text *out);
  bool (*is_near)(void *shared, int device);
  // Which of the devices on its machine a device is, from 0.
  int (*seat)(void *shared, int device);

  // After join and before open, in all processes: connects what the messages of ops will go over,
  // edges[count] of the program (zb_edges_of). No wait in it, nor in a later post, is longer than timeout_ns.
  // BAD_INPUT where the devices cannot be connected; only the first process has words for that. NULL: nothing
  // is to be connected.
  enum zb_status (*connect)(void *shared, const struct zb_edge *edge, size_t edges, int64_t timeout_ns,
                            struct zb_error *error);

  // Messages that have events are copied by `mover`, the backend's of this device; NULL: there are none.
  enum zb_status (*open)(void *shared, int device, const struct zb_mover *mover, void **endpoint,
                         struct zb_error *error);
  void (*close)(void *endpoint); // NULL is nothing

  enum zb_status (*send)(void *endpoint, int peer, struct zb_label label, const void *data, size_t bytes,
                         void *after, struct zb_ticket *ticket, struct zb_error *error);
  enum zb_status (*receive)(void *endpoint, int peer, struct zb_label label, void *data, size_t bytes,
                            void *after, struct zb_ticket *ticket, struct zb_error *error);

  // Waits until the message has been taken (send) or has arrived (receive). FAILED when the monotonic clock
  // reaches deadline_ns first, when another device has given up (abandon), or is gone; WRONG when the two
  // ends disagree about label or size.
  enum zb_status (*wait)(void *endpoint, struct zb_ticket *ticket, int64_t deadline_ns, void **event,
                         struct zb_error *error);

  // Whether something is wrong with messages under way that no wait will tell: FAILED when another device has
  // given up, or one of its own has failed.
  enum zb_status (*poll)(void *endpoint, struct zb_error *error);

  // This device gives up: every wait of every other device ends soon. Any thread of the process may call it,
  // again and again.
  void (*abandon)(void *shared);
};

extern const struct zb_transport zb_transport_threads;
extern const struct zb_transport zb_transport_mpi; // start fails where the build has no MPI
extern const char *const zb_mpi_name;              // "mpich", ..; "none"
// Between GPUs: all in one process, or under a launcher one a process; start fails where the build has no
// NCCL.
extern const struct zb_transport zb_transport_nccl;
extern const struct zb_transport zb_transport_nccl_apart;
extern const char *const zb_nccl_name; // "yes", "none"

#endif
