// transport_nccl_stub.c - a build without CUDA or NCCL: says how to get them.
#include "runtime/transport.h"

const char *const zb_nccl_name = "none";

static enum zb_status start(void **shared, struct zb_error *error) {
  (void)shared;
  return zb_fail(
      error, ZB_BAD_INPUT,
      "--transport nccl: this build has no NCCL (install NVIDIA's CUDA toolkit and libnccl-dev, then "
      "make CUDA_HOME=where it is)");
}

static void leave(void *shared, enum zb_status status) { (void)shared, (void)status; }

const struct zb_transport zb_transport_nccl = {
    .name = "nccl",
    .help = "GPU to GPU, a GPU a device; one process, or under mpirun one a device",
    .device_memory = true,
    .start = start,
    .leave = leave,
};

const struct zb_transport zb_transport_nccl_apart = {
    .name = "nccl",
    .help = "GPU to GPU, a GPU a device; one process, or under mpirun one a device",
    .apart = true,
    .device_memory = true,
    .start = start,
    .leave = leave,
};
