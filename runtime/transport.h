// transport.h - what moves messages between devices, as a table of functions.
//
// A transport lives in one process, or in one process a device, or anything between: zb_transport.join says
// which devices are here. Each of them gets an endpoint, which only its own thread uses. Messages between two
// devices, one way, are matched by order: the k-th send is the k-th receive. The label travels along where
// the transport has room for it and is compared, so that a program whose two ends disagree is found out
// rather than trained with.
//
// send and receive are posted and return at once; the data must stay (or stay away) until wait has seen the
// ticket done. Where a backend computes asynchronously, `after` is its event behind which a send may read or
// a receive may write the buffer, and wait hands back the event behind which the buffer is ready; both are
// NULL where everything is done when the call returns.
#ifndef ZB_TRANSPORT_H
#define ZB_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

// What a wait says when it ends for another device's sake.
#define ZB_GAVE_UP "another device gave up"

struct zb_transport {
  const char *name, *help;

  // Once a process, before anything else: makes what its endpoints share, and says which devices are here (a
  // range). BAD_INPUT where the launcher started another number of processes than the devices need.
  enum zb_status (*join)(int devices, void **shared, int *first_device, int *count, struct zb_error *error);
  void (*leave)(void *shared); // NULL is nothing

  enum zb_status (*open)(void *shared, int device, void **endpoint, struct zb_error *error);
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

  // This device gives up: every wait of every other device ends soon. Any thread of the process may call it,
  // again and again.
  void (*abandon)(void *shared);
};

extern const struct zb_transport zb_transport_threads;

#endif
