// transport_nccl_preflight.c - what can be known to be wrong before NCCL is asked to connect.
//
// Each device tells device 0 what it has, over the carrier; device 0 looks for the first thing that cannot
// work and has the words for it, and all end with its verdict.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/transport_nccl_parts.h"

static enum zb_status look_at(struct zb_nccl_device *device, struct zb_nccl_seat *seat,
                              struct zb_error *error) {
  *seat = (struct zb_nccl_seat){.gpus = 0};
  gethostname(seat->host, sizeof seat->host - 1);
  int gpus = 0, version = 0;
  cudaError_t code = cudaGetDeviceCount(&gpus);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaGetDeviceCount", code, error);
  if (gpus <= 0) return zb_fail(error, ZB_FAILED, "this machine has no GPU");
  device->gpu = device->hub->carrier->seat(device->hub->carried, device->number) % gpus;
  code = cudaDeviceGetPCIBusId(seat->bus, (int)sizeof seat->bus, device->gpu);
  if (code != cudaSuccess) return zb_nccl_fail_cuda("cudaDeviceGetPCIBusId", code, error);
  ncclResult_t result = ncclGetVersion(&version);
  if (result != ncclSuccess) return zb_nccl_fail(NULL, "ncclGetVersion", result, error);
  seat->gpus = gpus;
  seat->version = version;
  return ZB_OK;
}

// hub->seat of all devices, where device 0 is.
static enum zb_status gather(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error) {
  const struct zb_transport *carrier = hub->carrier;
  const struct zb_label label = {.kind = -1};
  enum zb_status status = ZB_OK;
  for (int k = 0; status == ZB_OK && k < hub->count; k++) {
    struct zb_nccl_device *device = &hub->device[k];
    if (device->number > 0)
      status = carrier->send(device->endpoint, 0, label, &hub->seat[k], sizeof *hub->seat, NULL,
                             &hub->ticket[hub->devices + k], error);
  }
  for (int d = 1; status == ZB_OK && hub->first == 0 && d < hub->devices; d++)
    status = carrier->receive(hub->device[0].endpoint, d, label, &hub->seat[d], sizeof *hub->seat, NULL,
                              &hub->ticket[d], error);
  void *event;
  for (int t = 0; status == ZB_OK && t < hub->devices + hub->count; t++)
    status = carrier->wait(hub->device[t < hub->devices ? 0 : t - hub->devices].endpoint, &hub->ticket[t],
                           deadline_ns, &event, error);
  return status;
}

static void print_version(int32_t code, char *text, size_t size) {
  snprintf(text, size, "%d.%d.%d", code / 10000, code / 100 % 100, code % 100);
}

static bool is_beside(const struct zb_nccl_hub *hub, int d, int e) {
  return strcmp(hub->seat[d].host, hub->seat[e].host) == 0;
}

// The first device that is on the GPU of device d: d itself, where no other is.
static int first_on_gpu_of(const struct zb_nccl_hub *hub, int d) {
  int e = 0;
  while (!is_beside(hub, d, e) || strcmp(hub->seat[d].bus, hub->seat[e].bus) != 0) e++;
  return e;
}

static enum zb_status judge_version(const struct zb_nccl_hub *hub, int d, struct zb_error *error) {
  const struct zb_nccl_seat *seat = &hub->seat[d];
  if (seat->version == hub->seat[0].version) return ZB_OK;
  char here[32], there[32];
  print_version(hub->seat[0].version, here, sizeof here);
  print_version(seat->version, there, sizeof there);
  return zb_fail(error, ZB_BAD_INPUT, "device %d on %s has NCCL %s, device 0 on %s has NCCL %s", d,
                 seat->host, there, hub->seat[0].host, here);
}

// A host has too few GPUs, or has enough, and its processes were shown the same one.
static enum zb_status judge_gpu(const struct zb_nccl_hub *hub, int d, struct zb_error *error) {
  const struct zb_nccl_seat *seat = &hub->seat[d];
  int first = first_on_gpu_of(hub, d), together = 0, used = 0, shown = 0;
  if (first == d) return ZB_OK;
  for (int e = 0; e < hub->devices; e++) {
    if (!is_beside(hub, d, e)) continue;
    together++;
    used += first_on_gpu_of(hub, e) == e;
    if (hub->seat[e].gpus > shown) shown = hub->seat[e].gpus;
  }
  return used <= shown && shown < together
             ? zb_fail(error, ZB_BAD_INPUT,
                       "%s shows %d GPU%s to its %d devices; --transport nccl needs one for each: devices "
                       "%d and %d would share %s",
                       seat->host, shown, shown == 1 ? "" : "s", together, first, d, seat->bus)
             : zb_fail(error, ZB_BAD_INPUT,
                       "devices %d and %d are both on GPU %s of %s; --transport nccl needs one for each",
                       first, d, seat->bus, seat->host);
}

static enum zb_status judge(const struct zb_nccl_hub *hub, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int d = 0; status == ZB_OK && d < hub->devices; d++) {
    status = judge_version(hub, d, error);
    if (status == ZB_OK) status = judge_gpu(hub, d, error);
  }
  return status;
}

enum zb_status zb_nccl_preflight(struct zb_nccl_hub *hub, int64_t deadline_ns, struct zb_error *error) {
  enum zb_status status = ZB_OK;
  for (int k = 0; status == ZB_OK && k < hub->count; k++)
    status = look_at(&hub->device[k], &hub->seat[k], error);
  status = hub->carrier->agree(hub->carried, status, deadline_ns, error);
  if (status != ZB_OK) return status;
  status = gather(hub, deadline_ns, error);
  if (status == ZB_OK && hub->first == 0) status = judge(hub, error);
  return hub->carrier->agree(hub->carried, status, deadline_ns, error);
}
