// transport_nccl_connect.c - from a list of edges to communicators that have carried a first message.
//
// The sender of each edge makes its id and hands it to the receiver over the carrier. Then one group asks for
// all communicators of this process at once, and no process waits for another in the middle of it, so there
// is no order in which they could wait for each other. NCCL connects two ends only when they first send, and
// a call would wait for the other end there: so every edge carries one number, all in one group again, and it
// is looked at when it has come. Afterwards a send or a receive is queued at once, whatever the other end
// does.
//
// Nothing here waits inside NCCL or CUDA: communicators are nonblocking and, like streams, asked again and
// again until the deadline.
#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/transport_nccl_parts.h"
#include "solver/model/deadline.h"

// A message keeps its thread blocks busy until its other end is there: so few that those of all edges of a
// device are on it at once, and leave most of it to the ops.
enum { MOST_BLOCKS = 4, SHARE = 4 };

// Streams of a GPU that do not wait for each other (CUDA_DEVICE_MAX_CONNECTIONS at its most), those that an
// edge takes (ours, and two that NCCL makes for its communicator), and the backend's.
enum { STREAMS = 32, OF_AN_EDGE = 3, OTHERS = 3, MOST_EDGES = (STREAMS - OTHERS) / OF_AN_EDGE };

// What is left of a cut message has this long to end.
static const int64_t moment_ns = INT64_C(1000000000);

// How often a look is free before it makes room for others, and before it sleeps.
enum { LOOKS = 100, YIELDS = 100, LISTENS = 16 };

static void pause_between(int look) {
  if (look < LOOKS) return;
  struct timespec shortly = {0, 50000};
  if (look < LOOKS + YIELDS)
    sched_yield();
  else
    nanosleep(&shortly, NULL);
}

// What ends a wait that what it waits for does not end.
static enum zb_status go_on(struct zb_nccl_device *device, int look, int64_t deadline_ns,
                            struct zb_error *error) {
  struct zb_nccl_hub *hub = device->hub;
  enum zb_status status = ZB_OK;
  if (look % LISTENS == 0) status = hub->carrier->poll(device->endpoint, error);
  if (status == ZB_OK && zb_clock_ns() >= deadline_ns)
    status = zb_fail(error, ZB_FAILED, "nothing came in time");
  if (status == ZB_OK) pause_between(look);
  return status;
}

enum zb_status zb_nccl_settle(struct zb_nccl_device *device, struct zb_nccl_wire *wire, const char *call,
                              int64_t deadline_ns, struct zb_error *error) {
  for (int look = 1;; look++) {
    ncclResult_t state = ncclSuccess;
    ncclResult_t code = ncclCommGetAsyncError(wire->comm, &state);
    if (code != ncclSuccess) return zb_nccl_fail(wire, "ncclCommGetAsyncError", code, error);
    if (state == ncclSuccess) return ZB_OK;
    if (state != ncclInProgress) return zb_nccl_fail(wire, call, state, error);
    enum zb_status status = go_on(device, look, deadline_ns, error);
    if (status != ZB_OK) return status;
  }
}

static enum zb_status open_device(struct zb_nccl_hub *hub, int place, const struct zb_edge *edge,
                                  size_t edges, struct zb_error *error) {
  struct zb_nccl_device *device = &hub->device[place];
  int number = hub->first + place;
  size_t count = 0;
  for (size_t k = 0; k < edges; k++) count += edge[k].from == number || edge[k].to == number;
  *device = (struct zb_nccl_device){.hub = hub, .number = number};
  if (count > MOST_EDGES)
    return zb_fail(error, ZB_BAD_INPUT,
                   "device %d sends to and receives from others over %zu edges; a GPU has room for %d",
                   number, count, MOST_EDGES);
  device->wire = calloc(count + 1, sizeof *device->wire);
  if (!device->wire) return zb_fail_memory(error);
  for (size_t k = 0; k < edges; k++)
    if (edge[k].from == number)
      device->wire[device->wires++] = (struct zb_nccl_wire){.peer = edge[k].to, .sends = true};
    else if (edge[k].to == number)
      device->wire[device->wires++] = (struct zb_nccl_wire){.peer = edge[k].from};
  return ZB_OK;
}

// Every wire gets its id: made here, or received.
static enum zb_status exchange_ids(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error) {
  const struct zb_transport *carrier = hub->carrier;
  const struct zb_label label = {.kind = -2};
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->count; d++) {
    struct zb_nccl_device *device = &hub->device[d];
    for (size_t k = 0; status == ZB_OK && k < device->wires; k++) {
      struct zb_nccl_wire *wire = &device->wire[k];
      if (!wire->sends) {
        status = carrier->receive(device->endpoint, wire->peer, label, &wire->id, sizeof wire->id, NULL,
                                  &wire->ticket, error);
        continue;
      }
      ncclResult_t code = ncclGetUniqueId(&wire->id);
      if (code != ncclSuccess) return zb_nccl_fail(wire, "ncclGetUniqueId", code, error);
      status = carrier->send(device->endpoint, wire->peer, label, &wire->id, sizeof wire->id, NULL,
                             &wire->ticket, error);
    }
  }
  void *event;
  for (int d = 0; status == ZB_OK && d < hub->count; d++)
    for (size_t k = 0; status == ZB_OK && k < hub->device[d].wires; k++)
      status =
          carrier->wait(hub->device[d].endpoint, &hub->device[d].wire[k].ticket, deadline_ns, &event, error);
  return status;
}

// How many thread blocks a message of this device may take.
static enum zb_status blocks_of(const struct zb_nccl_device *device, int *blocks, struct zb_error *error) {
  int processors = 0;
  cudaError_t code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device->gpu);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaDeviceGetAttribute", code, error);
  int share = processors / (SHARE * (int)(device->wires ? device->wires : 1));
  *blocks = share < 1 ? 1 : share < MOST_BLOCKS ? share : MOST_BLOCKS;
  return ZB_OK;
}

static enum zb_status ask_for_communicators(struct zb_nccl_device *device, struct zb_error *error) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.minCTAs = 1;
  enum zb_status status = blocks_of(device, &config.maxCTAs, error);
  cudaError_t code = status == ZB_OK ? cudaSetDevice(device->gpu) : cudaSuccess;
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaSetDevice", code, error);
  for (size_t k = 0; status == ZB_OK && k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    ncclResult_t result = ncclCommInitRankConfig(&wire->comm, 2, wire->id, wire->sends ? 0 : 1, &config);
    if (result != ncclSuccess && result != ncclInProgress)
      status = zb_nccl_fail(wire, "ncclCommInitRankConfig", result, error);
  }
  return status;
}

static enum zb_status settle_all(struct zb_nccl_hub *hub, const char *call, int64_t deadline_ns,
                                 struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->count; d++)
    for (size_t k = 0; status == ZB_OK && k < hub->device[d].wires; k++)
      status = zb_nccl_settle(&hub->device[d], &hub->device[d].wire[k], call, deadline_ns, error);
  return status;
}

// One group around the same work of every device here, and until it is under way everywhere.
static enum zb_status in_a_group(struct zb_nccl_hub *hub, const char *call,
                                 enum zb_status (*work)(struct zb_nccl_device *device,
                                                        struct zb_error *error),
                                 int64_t deadline_ns, struct zb_error *error) {
  ncclResult_t code = ncclGroupStart();
  if (code != ncclSuccess) return zb_nccl_fail(NULL, "ncclGroupStart", code, error);
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->count; d++) status = work(&hub->device[d], error);
  code = ncclGroupEnd();
  if (status != ZB_OK) return status;
  if (code != ncclSuccess && code != ncclInProgress) return zb_nccl_fail(NULL, call, code, error);
  return settle_all(hub, call, deadline_ns, error);
}

static int32_t token_of(const struct zb_nccl_device *device, const struct zb_nccl_wire *wire) {
  int from = wire->sends ? device->number : wire->peer, to = wire->sends ? wire->peer : device->number;
  return (int32_t)(from * device->hub->devices + to);
}

static enum zb_status open_stream(struct zb_nccl_device *device, struct zb_nccl_wire *wire,
                                  struct zb_error *error) {
  cudaError_t code = cudaSetDevice(device->gpu);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaSetDevice", code, error);
  int least = 0, greatest = 0;
  code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaDeviceGetStreamPriorityRange", code, error);
  // A message's few blocks do not queue behind all those of an op: somebody waits for it.
  code = cudaStreamCreateWithPriority(&wire->stream, cudaStreamNonBlocking, greatest);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaStreamCreateWithPriority", code, error);
  void *room = NULL;
  code = cudaMalloc(&room, sizeof *wire->token_there);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaMalloc", code, error);
  wire->token_there = room;
  code = cudaMallocHost(&room, sizeof *wire->token);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaMallocHost", code, error);
  wire->token = room;
  *wire->token = wire->sends ? token_of(device, wire) : -1;
  return ZB_OK;
}

static enum zb_status post_tokens(struct zb_nccl_device *device, struct zb_error *error) {
  for (size_t k = 0; k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    ncclResult_t code =
        wire->sends ? ncclSend(wire->token_there, sizeof *wire->token, ncclInt8, 1, wire->comm, wire->stream)
                    : ncclRecv(wire->token_there, sizeof *wire->token, ncclInt8, 0, wire->comm, wire->stream);
    if (code != ncclSuccess && code != ncclInProgress)
      return zb_nccl_fail(wire, wire->sends ? "ncclSend" : "ncclRecv", code, error);
  }
  return ZB_OK;
}

// The token of one end to the GPU, or from it: a stream takes it before its message, or behind it.
static enum zb_status copy_tokens(struct zb_nccl_hub *hub, bool of_senders, struct zb_error *error) {
  for (int d = 0; d < hub->count; d++) {
    struct zb_nccl_device *device = &hub->device[d];
    for (size_t k = 0; k < device->wires; k++) {
      struct zb_nccl_wire *wire = &device->wire[k];
      if (wire->sends != of_senders) continue;
      cudaError_t code = wire->sends ? cudaMemcpyAsync(wire->token_there, wire->token, sizeof *wire->token,
                                                       cudaMemcpyHostToDevice, wire->stream)
                                     : cudaMemcpyAsync(wire->token, wire->token_there, sizeof *wire->token,
                                                       cudaMemcpyDeviceToHost, wire->stream);
      if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaMemcpyAsync", code, error);
    }
  }
  return ZB_OK;
}

static enum zb_status expect_token(struct zb_nccl_device *device, struct zb_nccl_wire *wire,
                                   int64_t deadline_ns, struct zb_error *error) {
  const char *ends = wire->sends ? "to" : "from";
  for (int look = 1;; look++) {
    cudaError_t code = cudaStreamQuery(wire->stream);
    if (code == cudaSuccess) break;
    if (code != cudaErrorNotReady) return zb_nccl_fail_cuda("cudaStreamQuery", code, error);
    cudaGetLastError(); // or the next kernel's launch would find it
    struct zb_error why = {0};
    enum zb_status status = go_on(device, look, deadline_ns, &why);
    if (status != ZB_OK)
      return zb_fail(error, status, "device %d: the first message %s device %d: %.200s", device->number, ends,
                     wire->peer, why.text);
  }
  if (*wire->token == token_of(device, wire)) return ZB_OK;
  return zb_fail(error, ZB_FAILED, "device %d: the first message %s device %d came as something else",
                 device->number, ends, wire->peer);
}

static enum zb_status expect_tokens(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->count; d++)
    for (size_t k = 0; status == ZB_OK && k < hub->device[d].wires; k++)
      status = expect_token(&hub->device[d], &hub->device[d].wire[k], deadline_ns, error);
  return status;
}

static enum zb_status prove_edges(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->count; d++)
    for (size_t k = 0; status == ZB_OK && k < hub->device[d].wires; k++)
      status = open_stream(&hub->device[d], &hub->device[d].wire[k], error);
  if (status == ZB_OK) status = copy_tokens(hub, true, error);
  if (status == ZB_OK) status = in_a_group(hub, "the first message", post_tokens, deadline_ns, error);
  // Not before: the receives are in their streams from here on.
  if (status == ZB_OK) status = copy_tokens(hub, false, error);
  if (status == ZB_OK) status = expect_tokens(hub, deadline_ns, error);
  return status;
}

void zb_nccl_forget(struct zb_nccl_hub *hub) {
  for (int k = 0; hub->device && k < hub->count; k++) free(hub->device[k].wire);
  free(hub->device);
  free(hub->seat);
  free(hub->ticket);
  hub->device = NULL;
  hub->seat = NULL;
  hub->ticket = NULL;
}

enum zb_status zb_nccl_connect(void *shared, const struct zb_edge *edge, size_t edges, int64_t timeout_ns,
                               struct zb_error *error) {
  struct zb_nccl_hub *hub = shared;
  int64_t deadline_ns = zb_clock_ns() + timeout_ns;
  size_t most = (size_t)hub->devices;
  zb_nccl_forget(hub);
  hub->timeout_ns = timeout_ns;
  hub->device = calloc((size_t)hub->count, sizeof *hub->device);
  hub->seat = calloc(most, sizeof *hub->seat);
  hub->ticket = calloc(2 * most, sizeof *hub->ticket);
  if (!hub->device || !hub->seat || !hub->ticket) return zb_fail_memory(error);
  enum zb_status status = ZB_OK;
  for (int k = 0; status == ZB_OK && k < hub->count; k++) {
    status = open_device(hub, k, edge, edges, error);
    if (status == ZB_OK)
      status = hub->carrier->open(hub->carried, hub->first + k, NULL, &hub->device[k].endpoint, error);
  }
  status = hub->carrier->agree(hub->carried, status, deadline_ns, error);
  if (status == ZB_OK) status = zb_nccl_preflight(hub, deadline_ns, error);
  if (status != ZB_OK) return status;
  status = exchange_ids(hub, deadline_ns, error);
  if (status == ZB_OK)
    status = in_a_group(hub, "ncclCommInitRankConfig", ask_for_communicators, deadline_ns, error);
  if (status == ZB_OK) status = prove_edges(hub, deadline_ns, error);
  if (status == ZB_OK) return ZB_OK;
  // The others may be waiting in the middle of it.
  hub->abandoned = true;
  hub->carrier->abandon(hub->carried);
  return status;
}

// Ends all that is under way on the device's wires.
static void cut(struct zb_nccl_device *device) {
  for (size_t k = 0; k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    if (wire->comm) ncclCommAbort(wire->comm);
    wire->comm = NULL;
  }
}

// Whether all communicators took leave; what did not is cut.
static bool take_leave(struct zb_nccl_device *device) {
  int64_t deadline_ns = zb_clock_ns() + device->hub->timeout_ns;
  bool well = true;
  for (size_t k = 0; well && k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    if (!wire->comm) continue;
    ncclResult_t code = ncclCommFinalize(wire->comm);
    well = (code == ncclSuccess || code == ncclInProgress) &&
           zb_nccl_settle(device, wire, "ncclCommFinalize", deadline_ns, NULL) == ZB_OK;
    if (!well) break;
    ncclCommDestroy(wire->comm);
    wire->comm = NULL;
  }
  return well;
}

static bool has_ended(const struct zb_nccl_wire *wire, int64_t deadline_ns) {
  for (int look = 0; cudaStreamQuery(wire->stream) == cudaErrorNotReady; look++) {
    if (zb_clock_ns() >= deadline_ns) return false;
    pause_between(look);
  }
  cudaGetLastError(); // that it was not ready is no error
  return true;
}

void zb_nccl_disconnect(struct zb_nccl_device *device) {
  struct zb_nccl_hub *hub = device->hub;
  if (hub->abandoned || !take_leave(device)) hub->abandoned = true;
  cut(device);
  int64_t deadline_ns = zb_clock_ns() + moment_ns;
  for (size_t k = 0; k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    // What still runs then keeps what it uses: the process ends, and waiting for it might not.
    if (wire->stream && !has_ended(wire, deadline_ns)) continue;
    if (wire->stream) cudaStreamDestroy(wire->stream);
    if (wire->token_there) cudaFree(wire->token_there);
    if (wire->token) cudaFreeHost(wire->token);
  }
  device->wires = 0;
}
