// compute_cuda_stub.c - a build without CUDA: says how to get it.
#include "runtime/compute.h"

static enum zb_status look(const struct zb_training *training, const struct zb_demand *need, int count,
                           struct zb_error *error) {
  (void)training, (void)need, (void)count;
  return zb_fail(
      error, ZB_BAD_INPUT,
      "--backend cuda: this build has no CUDA (install NVIDIA's toolkit, then make CUDA_HOME=DIR)");
}

static int64_t needs(const struct zb_compute_setup *setup) {
  (void)setup;
  return 0;
}

static enum zb_status open_state(const struct zb_compute_setup *setup, void **state, struct zb_error *error) {
  (void)state;
  return look(setup->training, NULL, 0, error);
}

const char *const zb_cuda_name = "none";

const struct zb_compute zb_compute_cuda = {
    .name = "cuda",
    .help = "trains, a GPU a device or several devices on one",
    .trains = true,
    .apart = true,
    .look = look,
    .needs = needs,
    .open = open_state,
};
