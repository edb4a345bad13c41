// chain.h - a profile in the units the exact engine computes in: the devices of a chain, or chunked.h's.
//
// All times are divided by their common divisor (a tick), so that targets are bisected over the costs
// that can occur: every start of a schedule that is as early as possible is a sum of op times and delays.
// Only the period can fall between ticks, where its critical cycle spans several repetitions; a target of
// whole ticks is met by starts of whole ticks all the same. Memory stays in bytes, the static part taken off
// the limit.
#ifndef ZB_CHAIN_H
#define ZB_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/exact/chunked.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// What one device does to one microbatch.
struct zb_chain_device {
  int64_t f, b, w, bw;               // ticks
  int64_t f_bytes, b_bytes, w_bytes; // change of kept memory
  int64_t room_bytes;                // limit - static; ZB_NO_LIMIT: none
  bool fused;       // a fused BW can pay: it is faster than B and W, or fits where B alone would not
  int64_t backward; // least ticks that B and W of one microbatch take, split or fused
  int64_t forward_comm, backward_comm; // between this device and the one before it; 0 on device 0
  int64_t lead; // ticks from the start of device 0 to the first microbatch's arrival here
  int64_t lag;  // least ticks from the end of a microbatch's F here to the start of its B
};

struct zb_chain {
  int devices, microbatches;
  int64_t tick_ns;                // > 0
  struct zb_chain_device *device; // [devices]; NULL where chunked is not
  struct zb_chunked *chunked;     // every placement but a chain; owned
  bool any_fused;
};

// A tick divides `whole` too (0: the times alone decide). Owned by
// the caller: zb_chain_free.
enum zb_status zb_chain_create(const struct zb_profile *profile, int64_t whole, struct zb_chain **chain,
                               struct zb_error *error);
void zb_chain_free(struct zb_chain *chain);

// Ticks that device `d` has, from its own first op on, under a target cost (ticks): the target itself,
// or for the makespan what is left of it when the first microbatch arrives.
int64_t zb_chain_horizon(const struct zb_chain *chain, enum zb_objective objective, int d, int64_t target);

// Ticks from the start of device 0 to the zero of device d's clock, at least.
static inline int64_t zb_chain_lead(const struct zb_chain *chain, enum zb_objective objective, int d) {
  if (!chain->chunked) return chain->device[d].lead;
  return objective == ZB_MAKESPAN ? 0 : chain->chunked->device[d].lead;
}

// A cost in ticks, rounded up: the least target that it meets.
static inline int64_t zb_chain_ticks(const struct zb_chain *chain, int64_t ns) {
  return ns / chain->tick_ns + (ns % chain->tick_ns != 0);
}

#endif
