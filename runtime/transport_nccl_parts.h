// transport_nccl_parts.h - what the nccl transport is made of; private to transport_nccl*.c.
#ifndef ZB_TRANSPORT_NCCL_PARTS_H
#define ZB_TRANSPORT_NCCL_PARTS_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/transport.h"
#include "solver/model/status.h"

// One end of an edge.
struct zb_nccl_wire {
  int peer;
  bool sends;           // this end does; the other receives
  ncclUniqueId id;      // made by the sender
  ncclComm_t comm;      // of two: 0 sends, 1 receives
  cudaStream_t stream;  // of its messages
  int32_t *token;       // [1] pinned, and where it is on the GPU: the first message
  int32_t *token_there; // of every edge
  struct zb_ticket ticket;
};

struct zb_nccl_device {
  struct zb_nccl_hub *hub;
  int number, gpu; // the GPU of this process that the backend takes: its seat, where there are as many
  void *endpoint;  // the carrier's
  struct zb_nccl_wire *wire;
  size_t wires;
};

enum { ZB_NCCL_NAME = 64 };

// What each device tells device 0 before anything is connected.
struct zb_nccl_seat {
  char host[ZB_NCCL_NAME];
  char bus[ZB_NCCL_NAME]; // where its GPU is in that host
  int32_t gpus;           // that its process sees
  int32_t version;        // NCCL_VERSION_CODE of the library that is loaded
};

struct zb_nccl_hub {
  const struct zb_transport *carrier;
  void *carried; // what the carrier shares
  int devices, first, count;
  struct zb_nccl_device *device; // [count]
  // [devices] of those here, and where device 0 is, of all. Messages of the carrier may be under way into
  // seats and tickets until it has left.
  struct zb_nccl_seat *seat;
  struct zb_ticket *ticket; // [devices] device 0's receives, [count] what those here send it
  int64_t timeout_ns;
  atomic_bool abandoned;
};

// "ncclSend to device 1: unhandled system error".
enum zb_status zb_nccl_fail(const struct zb_nccl_wire *wire, const char *call, ncclResult_t code,
                            struct zb_error *error);
enum zb_status zb_nccl_fail_cuda(const char *call, cudaError_t code, struct zb_error *error);

// Looks again and again, with pauses, whether what was asked of the wire's communicator is under way: calls
// on one return before that. FAILED with NCCL's words, when the deadline comes first, or another device gives
// up.
enum zb_status zb_nccl_settle(struct zb_nccl_device *device, struct zb_nccl_wire *wire, const char *call,
                              int64_t deadline_ns, struct zb_error *error);

// Whether every device has a GPU to itself, and all the same NCCL. BAD_INPUT with a line that names who has
// not; only the first process has words for that. Every process takes part.
enum zb_status zb_nccl_preflight(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error);

// transport.connect; and the end of it for one device: its communicators and streams are gone then. Where the
// hub is abandoned, what is under way is cut, else all messages are done. Twice is once.
enum zb_status zb_nccl_connect(void *shared, const struct zb_edge *edge, size_t edges, int64_t timeout_ns,
                               struct zb_error *error);
void zb_nccl_disconnect(struct zb_nccl_device *device);

// Frees what connect allocated, when nothing of it is connected or under way.
void zb_nccl_forget(struct zb_nccl_hub *hub);

#endif
