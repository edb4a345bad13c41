// flow_front.h - complete search by layers over schedules whose W is fluid.
//
// front.h has to tell apart every way to place W between F and B. Here W is poured into whatever time F and B
// leave (fluid_table.h), so that a partial schedule is a prefix of F and B on every device. Every schedule is
// one with fluid W; so where none of these meets the target, none does. Which orders of F and B can meet it
// is most of the problem where memory is tight: what this search finds mostly holds with whole W, too.
//
// This comment is the specification of a bound with the word `fluid-fronts`, for chains and for any other
// placement: under bound - 1 no schedule with fluid W exists in which every F and B ends by its latest end
// (window.h, chunked.h) and every device by its horizon. No backward is fused. All W of one device take the
// same time w and give back the same memory, w_bytes.
//
//  W       A device pours W whenever it runs no F or B, at most w for each B that it has ended; W that take
//          no time are done with their B. An F may start when its f_bytes, the f_bytes of every F and the
//          b_bytes of every B that the device has ended, and w_bytes for every w poured, are within the
//          device's limit.
//  move    Take a completion, an op o that can come next on its device d, and the op u that comes next there.
//          If u starts when o could have ended, or later, o fits in before u: F and B only move ahead, which
//          keeps every latest end. But the W that was poured where o now is moves back, and if o is an F, it
//          takes its memory earlier; u and the F between it and the old place of o may need either. Let D be
//          the most W that any of these F may need, with o done before: over all orders of the device without
//          o that its table lets through. That is no harm where d has no limit, where D is 0, or where by the
//          start of u, behind o, D of W can be poured that are there already; of a B also where all that are
//          there can, for then F need no more W than they did.
//  forced  So of the lanes of a device (the F or the B of a stage) one is taken out of those that can be next
//          if another that is left, and can come next, goes before it without harm. Where a single one is
//          left, and it can come next, it is forced. All such ops run at once: a node is a partial schedule
//          with nothing forced.
//  branch  On one device: which of those that are left is next. One that cannot come yet is waited for, with
//          nothing else run on the device until then. Where what cannot come yet could start early on every
//          device, the device is that of the op that ends first of all that can come next: what cannot come
//          yet waits for one of these.
//  prune   An F or B, of those that come next everywhere or that wait, that cannot end by its latest end; a
//          device for which no point of its table holds.
//  cover   Of two with the same F and B done and the same waited for, one covers the other if no clock, no
//          clock - poured, no arrival that waits and no cost of a device that is done is greater. Clocks are
//          raised before that to the earliest start of what can be next, with W poured up to there.
#ifndef ZB_FLOW_FRONT_H
#define ZB_FLOW_FRONT_H

#include "solver/exact/front.h"

struct zb_flow_front;

// Where F alone take memory and no backward may be fused; with several stages on a device also all its W must
// be alike, and the start of every device be known.
bool zb_flow_front_applies(const struct zb_chain *chain, enum zb_objective objective);

// What W are. Whole ones run where they fit before what can start next, and may go before it where at least
// 1 / `nearly` of one fits, or `many` wait. Not every schedule is among those, so they prove nothing.
struct zb_flow_weights {
  bool fluid;
  int nearly, many; // of whole ones
};

// As in front.h. NULL where memory would not do. SOLVED writes `orders`, with fluid W those of F and B only,
// and `cost` (ticks), with fluid W what these cost with it; if nothing was left out, that is the least there
// is.
struct zb_flow_front *zb_flow_front_create(const struct zb_chain *chain, enum zb_objective objective);
void zb_flow_front_free(struct zb_flow_front *front);
enum zb_front_end zb_flow_front_begin(struct zb_flow_front *front, const struct zb_state *state,
                                      struct zb_flow_weights weights, size_t most);
enum zb_front_end zb_flow_front_run(struct zb_flow_front *front, int64_t work, const struct zb_halt *halt,
                                    struct zb_orders *orders, int64_t *cost);
int64_t zb_flow_front_work(const struct zb_flow_front *front);
bool zb_flow_front_whole(const struct zb_flow_front *front);

// The word of a bound that was proven so.
extern const char *const zb_word_fluid_fronts;

#endif
