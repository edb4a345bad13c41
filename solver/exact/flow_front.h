// flow_front.h - complete search by layers over schedules whose W is fluid.
//
// front.h has to tell apart every way to place W between F and B. Here W is poured into whatever time F and B
// leave (fluid_table.h), so that a partial schedule is a prefix of F and B on every device. Every schedule is
// one with fluid W; so where none of these meets the target, none does. Which orders of F and B can meet it
// is most of the problem where memory is tight: what this search finds mostly holds with whole W, too.
//
// This comment is the specification of a bound with the word `fluid-fronts`: under bound - 1 no schedule with
// fluid W exists in which every F and B ends by its latest end (window.h) and every device by its horizon.
//
//  W       A device pours W whenever it runs no F or B, at most w for each B that it has ended. F number n
//          may start when f_bytes (n + 1) + b_bytes (B ended) + w_bytes floor(poured / w) is within its
//          limit.
//  move    Take a completion with the least sum of starts, an op o that can come next on its device d, and
//          the other op u that could be next on d. If u starts when o could have ended, or later, o fits in
//          before u: F and B only move ahead, which keeps every latest end, and W poured meanwhile moves to
//          where o was. If o is an F, only B lie between. If it is a B, an F between may need the W that has
//          moved: that does no harm if even the last F that memory lets in between has its W done when the
//          next F can start at the earliest.
//  forced  So a device where one op can come next, the other cannot start before that has ended, and moving
//          does no harm, has no choice. All such ops run at once: a node is a partial schedule with nothing
//          forced.
//  branch  On one device: its F or its B next. Where the F has not been sent yet and the B would do harm, the
//          device holds its B back until the next F has run. One of both exists: the op that ends first of
//          all that can come next is not preceded by one that cannot.
//  prune   An F or B, of those that come next everywhere or that wait, that cannot end by its latest end; a
//          device for which no point of its table holds.
//  cover   Of two with the same F and B done and the same B held, one covers the other if no clock, no
//          clock - poured, no arrival that waits and no cost of a device that is done is greater. Clocks are
//          raised before that to the earliest start of the next F or B, with W poured up to there.
#ifndef ZB_FLOW_FRONT_H
#define ZB_FLOW_FRONT_H

#include "solver/exact/front.h"

struct zb_flow_front;

// For the problems where front.h proves.
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
