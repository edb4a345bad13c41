// orders.h - complete orders on every device, as words over F, B, W, BW, and their way to schedules.
//
// Microbatches are interchangeable (design.md section 2), so a device's order is a word: the k-th F (B)
// is microbatch k's, a W takes the oldest microbatch whose backward was split and is still open. With several
// stages a device the letters are those of chunked_orders.h.
#ifndef ZB_ORDERS_H
#define ZB_ORDERS_H

#include <stddef.h>
#include <stdint.h>

#include "solver/exact/chain.h"
#include "solver/exact/window.h"
#include "solver/model/schedule.h"
#include "solver/model/timeline.h"

struct zb_orders {
  const struct zb_chunked *chunked; // of the chain, borrowed; NULL where a letter is a kind
  int devices, microbatches;
  int room;            // of a word
  unsigned char *kind; // device d's word at kind[d * room]
  int *count;          // [devices] its length
};

enum zb_status zb_orders_create(const struct zb_chain *chain, struct zb_orders *orders,
                                struct zb_error *error);
void zb_orders_free(struct zb_orders *orders);
void zb_orders_copy(struct zb_orders *to, const struct zb_orders *from); // of the same chain

static inline unsigned char *zb_orders_word(const struct zb_orders *orders, int device) {
  return orders->kind + (size_t)device * (size_t)orders->room;
}

// A schedule's words; a BW that cannot pay here (zb_chain_device.fused) becomes B, W.
void zb_orders_from_schedule(const struct zb_chain *chain, const struct zb_schedule *schedule,
                             struct zb_orders *orders);

// Restricts a device to the order variables that its word has, except those of the ops at positions
// from .. to-1. Everything: 0, 0.
void zb_orders_keep(struct zb_state *state, const struct zb_orders *orders, int device, int from, int to);

// Times orders by the ordinary timeline. Reuses what it holds; zero-initialise.
struct zb_timer {
  const struct zb_profile *profile;
  struct zb_schedule_builder builder;
  struct zb_timeline timeline;
};
enum zb_status zb_timer_open(const struct zb_profile *profile, struct zb_timer *timer,
                             struct zb_error *error);
void zb_timer_close(struct zb_timer *timer);
// *schedule (may be NULL) is owned by the caller.
enum zb_status zb_timer_cost(struct zb_timer *timer, enum zb_objective objective,
                             const struct zb_orders *orders, int64_t *cost_ns, struct zb_schedule **schedule,
                             struct zb_error *error);

#endif
