// standin_nccl.h - what the stand-in's communicators, messages and links share.
//
// The k-th send of one rank to another is the k-th receive there of its messages: a ticket counts both. Those
// two meet once both operations are at the head of their streams; then either may run, and the first that
// does moves the data. Ranks of one process find each other in their clique; others by a link, over which the
// receiver says that it is ready and the sender then sends.
#ifndef ZB_STANDIN_NCCL_H
#define ZB_STANDIN_NCCL_H

#include <nccl.h>

#include "tests/standin/standin_parts.h"

struct message {
  struct message *next; // waiting in its communicator
  struct message_group *group;
  bool sends, met, moved;
  int peer;
  unsigned char *at;
  int64_t bytes, ticket;
  struct message *mate;   // in this process, once met
  unsigned char *content; // what came over a link
};

// The messages of one group of calls on one communicator: one operation.
struct message_group {
  struct message_group *next, *before; // of the communicator
  struct ncclComm *communicator;
  struct op *op;
  bool armed, ended; // ended: by an abort
  int count, missing;
  struct message message[];
};

struct link;

struct ncclComm {
  struct ncclComm *next; // of all that ever were
  bool alive, opening, blocking, closing;
  bool still; // nothing of it is seen by its peers any more
  ncclResult_t error;
  struct clique *clique;
  int rank, device;
  int64_t host, opened_ns;
  cudaStream_t stream;          // of what is queued
  int64_t *sent, *received;     // [ranks] tickets
  struct message_group *groups; // queued, the latest first
  struct message *waiting;      // armed, and not met
  struct op *deferred;          // of a call that is in progress, not yet on its stream; by next
  cudaStream_t deferred_stream;
  bool linked;        // it has links, or looks for some
  int listener;       // -1: none
  struct link **link; // [ranks] to other processes
};

// Those who came with one id.
struct clique {
  struct clique *next;
  ncclUniqueId id;
  int ranks;
  struct ncclComm **member; // [ranks] that are in this process
};

ncclResult_t zb_standin_nccl_enter(int entry);
ncclResult_t zb_standin_nccl_leave(ncclResult_t result);
ncclResult_t zb_standin_nccl_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3))); // for ncclGetLastError
// An error where nothing can be asked of it.
ncclResult_t zb_standin_nccl_usable(const char *call, ncclComm_t communicator);

// standin_nccl_message.c
void zb_standin_message_meet(struct message *message);    // its other end is there
void zb_standin_message_to_link(struct message *message); // its other end is in another process
struct message *zb_standin_message_waiting(struct ncclComm *communicator, bool sends, int peer,
                                           int64_t ticket);
void zb_standin_messages_end(struct ncclComm *communicator);   // whatever is queued ends without effect
void zb_standin_messages_issue(struct ncclComm *communicator); // what was deferred
bool zb_standin_group_open(void);                              // between ncclGroupStart and ncclGroupEnd
void zb_standin_group_opens(ncclComm_t *opened);               // the group's end waits for it

// standin_nccl_link.c
// Looks for what is missing of a clique in other processes; true: all are linked.
bool zb_standin_link_open(struct ncclComm *communicator);
// Of a rank in another process: where it is.
void zb_standin_link_where(const struct ncclComm *communicator, int rank, int64_t *host, int *device);
bool zb_standin_link_says_ready(struct ncclComm *communicator, int peer, int64_t ticket); // it has said so
void zb_standin_link_ready(struct ncclComm *communicator, const struct message *message);
void zb_standin_link_send(struct ncclComm *communicator, const struct message *message);
void zb_standin_link_close(struct ncclComm *communicator, bool politely);
void zb_standin_link_progress(struct ncclComm *communicator);

// standin_nccl.c
void zb_standin_nccl_try_open(struct ncclComm *communicator);
// Waits until it is open. Where that fails it is gone, and *opened NULL.
ncclResult_t zb_standin_nccl_opened(ncclComm_t *opened);
extern struct ncclComm *zb_standin_communicators;

#endif
