// transport_nccl.c - messages from GPU to GPU, by NCCL; all else by a carrier, another transport.
//
// The carrier starts, agrees, joins and leaves, and moves what is in host memory (the optimizer's lines): it
// is threads where one process has all devices, mpi where a launcher started a process a device.
//
// Each edge of the program has a communicator of two and, at either end, a stream. A message is queued: the
// stream waits for the event behind which the buffer may be used, sends or receives, and records the same
// event again, behind which the buffer is ready. The host goes on at once, and wait has nothing to wait for;
// what hangs is found where the host waits for its device, and poll looks for what NCCL found there.
//
// Why it cannot hang. A message waits for the event of its own end, for its other end and for the messages
// before it on its edge; for nothing else. That is the channel model `edge` (program.h), the weakest under
// which a program that is run is known to finish. Messages that stand next to each other in a list make no
// ncclGroup: a group is for messages that one communicator or one stream would let wait for each other, and
// here none share either. What else streams of a GPU share cannot make them wait: hardware queues (as many as
// there are streams: CUDA_DEVICE_MAX_CONNECTIONS), processors (a message takes few:
// transport_nccl_connect.c), and the loading of code, which may wait for what runs (all is loaded at the
// start: CUDA_MODULE_LOADING). And no post waits for the other end, because every edge has carried a message
// by then.
//
// Labels are not compared: NCCL has no room for them.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transport_nccl_parts.h"
#include "solver/model/deadline.h"

const char *const zb_nccl_name = "yes";

static enum zb_status fail_with(const struct zb_nccl_wire *wire, const char *call, const char *words,
                                const char *last, struct zb_error *error) {
  int length = last ? (int)strcspn(last, "\n") : 0;
  if (!wire) return zb_fail(error, ZB_FAILED, "%s: %s", call, words);
  return zb_fail(error, ZB_FAILED, "%s %s device %d: %s%s%.*s", call, wire->sends ? "to" : "from", wire->peer,
                 words, length ? ": " : "", length < 120 ? length : 120, last ? last : "");
}

enum zb_status zb_nccl_fail(const struct zb_nccl_wire *wire, const char *call, ncclResult_t code,
                            struct zb_error *error) {
  return fail_with(wire, call, ncclGetErrorString(code), ncclGetLastError(wire ? wire->comm : NULL), error);
}

enum zb_status zb_nccl_fail_cuda(const char *call, cudaError_t code, struct zb_error *error) {
  return fail_with(NULL, call, cudaGetErrorString(code), NULL, error);
}

// Starting and leaving.

static enum zb_status start_on(const struct zb_transport *carrier, void **shared, struct zb_error *error) {
  struct zb_nccl_hub *hub = calloc(1, sizeof *hub);
  if (!hub) return zb_fail_memory(error);
  hub->carrier = carrier;
  // Read by CUDA when it is first called, which is later. Whoever has set them knows why.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  enum zb_status status = carrier->start(&hub->carried, error);
  if (status == ZB_OK)
    *shared = hub;
  else
    free(hub);
  return status;
}

static enum zb_status start_here(void **shared, struct zb_error *error) {
  return start_on(&zb_transport_threads, shared, error);
}

static enum zb_status start_apart(void **shared, struct zb_error *error) {
  return start_on(&zb_transport_mpi, shared, error);
}

static void leave(void *shared, enum zb_status status) {
  struct zb_nccl_hub *hub = shared;
  if (!hub) return;
  for (int k = 0; hub->device && k < hub->count; k++)
    if (hub->device[k].hub) zb_nccl_disconnect(&hub->device[k]);
  hub->carrier->leave(hub->carried, status);
  zb_nccl_forget(hub);
  free(hub);
}

static enum zb_status agree(void *shared, enum zb_status mine, int64_t deadline_ns, struct zb_error *error) {
  struct zb_nccl_hub *hub = shared;
  return hub->carrier->agree(hub->carried, mine, deadline_ns, error);
}

static enum zb_status join(void *shared, int devices, uint64_t digest, int64_t deadline_ns, int *first_device,
                           int *count, struct zb_error *error) {
  struct zb_nccl_hub *hub = shared;
  enum zb_status status =
      hub->carrier->join(hub->carried, devices, digest, deadline_ns, first_device, count, error);
  if (status != ZB_OK) return status;
  hub->devices = devices;
  hub->first = *first_device;
  hub->count = *count;
  return ZB_OK;
}

static void table(void *shared, struct zb_text *out) {
  struct zb_nccl_hub *hub = shared;
  hub->carrier->table(hub->carried, out);
}

static bool is_near(void *shared, int device) {
  struct zb_nccl_hub *hub = shared;
  return hub->carrier->is_near(hub->carried, device);
}

static int seat(void *shared, int device) {
  struct zb_nccl_hub *hub = shared;
  return hub->carrier->seat(hub->carried, device);
}

static void abandon(void *shared) {
  struct zb_nccl_hub *hub = shared;
  hub->abandoned = true;
  hub->carrier->abandon(hub->carried);
}

static enum zb_status open_endpoint(void *shared, int device, const struct zb_mover *mover, void **endpoint,
                                    struct zb_error *error) {
  (void)mover, (void)error;
  struct zb_nccl_hub *hub = shared;
  assert(hub->device && device >= hub->first && device < hub->first + hub->count);
  *endpoint = &hub->device[device - hub->first];
  return ZB_OK;
}

static void close_endpoint(void *endpoint) {
  if (endpoint) zb_nccl_disconnect(endpoint);
}

// Messages.

static struct zb_nccl_wire *wire_of(struct zb_nccl_device *device, int peer, bool sends) {
  for (size_t k = 0; k < device->wires; k++)
    if (device->wire[k].peer == peer && device->wire[k].sends == sends) return &device->wire[k];
  return NULL;
}

// `to` is where a receive writes, `from` what a send reads.
static enum zb_status post(struct zb_nccl_device *device, int peer, const void *from, void *to, size_t bytes,
                           void *after, struct zb_ticket *ticket, struct zb_error *error) {
  struct zb_nccl_wire *wire = wire_of(device, peer, from != NULL);
  assert(wire && !ticket->posted);
  if (device->hub->abandoned) return zb_fail(error, ZB_FAILED, ZB_GAVE_UP);
  cudaEvent_t event = after;
  // The compute stream fills what is sent, and may still read what is received over.
  cudaError_t code = cudaStreamWaitEvent(wire->stream, event, 0);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaStreamWaitEvent", code, error);
  const char *call = from ? "ncclSend" : "ncclRecv";
  ncclResult_t result = bytes == 0 ? ncclSuccess
                        : from     ? ncclSend(from, bytes, ncclInt8, 1, wire->comm, wire->stream)
                                   : ncclRecv(to, bytes, ncclInt8, 0, wire->comm, wire->stream);
  enum zb_status status = ZB_OK;
  if (result == ncclInProgress)
    // The message must be in the stream before what is recorded behind it.
    status = zb_nccl_settle(device, wire, call, zb_clock_ns() + device->hub->timeout_ns, error);
  else if (result != ncclSuccess)
    status = zb_nccl_fail(wire, call, result, error);
  if (status != ZB_OK) return status;
  // For the compute stream: what was sent may be filled again, what was received may be read.
  code = cudaEventRecord(event, wire->stream);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaEventRecord", code, error);
  ticket->posted = true;
  ticket->event = after;
  return ZB_OK;
}

static enum zb_status send_message(void *endpoint, int peer, struct zb_label label, const void *data,
                                   size_t bytes, void *after, struct zb_ticket *ticket,
                                   struct zb_error *error) {
  struct zb_nccl_device *device = endpoint;
  if (after) return post(device, peer, data, NULL, bytes, after, ticket, error);
  return device->hub->carrier->send(device->endpoint, peer, label, data, bytes, NULL, ticket, error);
}

static enum zb_status receive_message(void *endpoint, int peer, struct zb_label label, void *data,
                                      size_t bytes, void *after, struct zb_ticket *ticket,
                                      struct zb_error *error) {
  struct zb_nccl_device *device = endpoint;
  if (after) return post(device, peer, NULL, data, bytes, after, ticket, error);
  return device->hub->carrier->receive(device->endpoint, peer, label, data, bytes, NULL, ticket, error);
}

static enum zb_status wait_message(void *endpoint, struct zb_ticket *ticket, int64_t deadline_ns,
                                   void **event, struct zb_error *error) {
  struct zb_nccl_device *device = endpoint;
  if (!ticket->event) return device->hub->carrier->wait(device->endpoint, ticket, deadline_ns, event, error);
  *event = ticket->event;
  ticket->event = NULL;
  ticket->posted = false;
  return ZB_OK;
}

// Whoever learns here that nothing more will come gives up; what waits for it on the device is cut when the
// device takes leave: a graph may still hold on to communicators, which do not end before it.
static enum zb_status poll_device(void *endpoint, struct zb_error *error) {
  struct zb_nccl_device *device = endpoint;
  struct zb_nccl_hub *hub = device->hub;
  enum zb_status status = hub->carrier->poll(device->endpoint, error);
  for (size_t k = 0; status == ZB_OK && k < device->wires; k++) {
    struct zb_nccl_wire *wire = &device->wire[k];
    ncclResult_t state = ncclSuccess;
    ncclResult_t code = ncclCommGetAsyncError(wire->comm, &state);
    if (code == ncclSuccess) code = state;
    if (code != ncclSuccess && code != ncclInProgress)
      status = zb_nccl_fail(wire, "the message", code, error);
  }
  if (status == ZB_OK) return ZB_OK;
  hub->abandoned = true;
  return status;
}

// What both tables share.
// clang-format off
#define NCCL                                        \
  .name = "nccl",                                   \
  .help = "GPU to GPU, a GPU a device; one process, or under mpirun one a device", \
  .device_memory = true,                            \
  .captures = true,                                 \
  .leave = leave,                                   \
  .agree = agree,                                   \
  .join = join,                                     \
  .table = table,                                   \
  .is_near = is_near,                               \
  .seat = seat,                                     \
  .connect = zb_nccl_connect,                       \
  .open = open_endpoint,                            \
  .close = close_endpoint,                          \
  .send = send_message,                             \
  .receive = receive_message,                       \
  .wait = wait_message,                             \
  .poll = poll_device,                              \
  .abandon = abandon
// clang-format on

const struct zb_transport zb_transport_nccl = {NCCL, .start = start_here};
const struct zb_transport zb_transport_nccl_apart = {NCCL, .start = start_apart, .apart = true};
