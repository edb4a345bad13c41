// chain.c - profile to ticks, and the constants of a chain that propagation needs.
#include "solver/exact/chain.h"

#include <stdlib.h>

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t profile_tick(const struct zb_profile *profile, int64_t whole) {
  int64_t tick = whole;
  for (int s = 0; s < profile->stages; s++) {
    tick = common_divisor(tick, profile->f_ns[s]);
    tick = common_divisor(tick, profile->b_ns[s]);
    tick = common_divisor(tick, profile->w_ns[s]);
    tick = common_divisor(tick, profile->bw_ns[s]);
    if (s + 1 < profile->stages) {
      tick = common_divisor(tick, profile->comm_forward_ns[s]);
      tick = common_divisor(tick, profile->comm_backward_ns[s]);
    }
  }
  return tick > 0 ? tick : 1;
}

// Whether the stages stand on the devices in order, one on each.
static bool is_chain(const struct zb_profile *profile) {
  if (profile->stages != profile->devices) return false;
  int d = 0;
  while (d < profile->devices && profile->stage_at[d] == d) d++;
  return d == profile->devices;
}

enum zb_status zb_chain_create(const struct zb_profile *profile, int64_t whole, struct zb_chain **result,
                               struct zb_error *error) {
  struct zb_chain *chain = calloc(1, sizeof *chain);
  if (!chain) return zb_fail_memory(error);
  const int64_t tick = profile_tick(profile, whole);
  chain->devices = profile->devices;
  chain->microbatches = profile->microbatches;
  chain->tick_ns = tick;
  if (!is_chain(profile)) {
    const enum zb_status status = zb_chunked_create(profile, tick, &chain->chunked, error);
    for (int s = 0; status == ZB_OK && s < profile->stages; s++)
      chain->any_fused |= chain->chunked->stage[s].fused;
    if (status == ZB_OK)
      *result = chain;
    else
      free(chain);
    return status;
  }
  chain->device = calloc((unsigned)profile->devices, sizeof *chain->device);
  if (!chain->device) {
    free(chain);
    return zb_fail_memory(error);
  }
  for (int d = 0; d < chain->devices; d++) {
    struct zb_chain_device *at = &chain->device[d];
    const int s = profile->stage_at[d];
    at->f = profile->f_ns[s] / tick;
    at->b = profile->b_ns[s] / tick;
    at->w = profile->w_ns[s] / tick;
    at->bw = profile->bw_ns[s] / tick;
    at->f_bytes = profile->f_bytes[s];
    at->b_bytes = profile->b_bytes[s];
    at->w_bytes = profile->w_bytes[s];
    at->room_bytes = profile->limit_bytes[d] == ZB_NO_LIMIT
                         ? ZB_NO_LIMIT
                         : profile->limit_bytes[d] - profile->static_bytes[d];
    at->fused = at->bw < at->b + at->w || (at->b_bytes > 0 && at->room_bytes != ZB_NO_LIMIT);
    at->backward = at->fused && at->bw < at->b + at->w ? at->bw : at->b + at->w;
    chain->any_fused |= at->fused;
    if (d > 0) {
      at->forward_comm = profile->comm_forward_ns[s - 1] / tick;
      at->backward_comm = profile->comm_backward_ns[s - 1] / tick;
      at->lead = at[-1].lead + at[-1].f + at->forward_comm;
    }
  }
  for (int d = chain->devices - 2; d >= 0; d--) {
    struct zb_chain_device *at = &chain->device[d];
    const struct zb_chain_device *below = at + 1;
    const int64_t gradient = below->fused && below->bw < below->b ? below->bw : below->b;
    at->lag = below->forward_comm + below->f + below->lag + gradient + below->backward_comm;
  }
  *result = chain;
  return ZB_OK;
}

void zb_chain_free(struct zb_chain *chain) {
  if (!chain) return;
  free(chain->device);
  zb_chunked_free(chain->chunked);
  free(chain);
}

int64_t zb_chain_horizon(const struct zb_chain *chain, enum zb_objective objective, int d, int64_t target) {
  return objective == ZB_MAKESPAN ? target - chain->device[d].lead : target;
}
