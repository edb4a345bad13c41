// front.h - complete search by layers: of all partial schedules with so many ops, those that no other beats.
//
// Where memory is tight a bound has to see that a microbatch that is let through delays the others. Windows
// forget that, and a tree has to learn it again for every microbatch; but partial schedules that have done
// the same ops differ in few times only, and most of them are no better than another one in any. So the work
// grows with the microbatches, not with the orders.
//
// A partial schedule has a prefix of every device's order, each op as early as it can be. It is known by how
// many ops of each class are done, when each device is free, and when what has been sent and not been used
// arrives. This comment is the specification of a bound with the word `fronts`: what the rules below refute
// no schedule meets, and they refute all that none meets, so that any other complete search ends alike.
//
//  branch   (Giffler and Thompson 1960, active schedules.) Of all ops that can come next on their device
//  (input
//           sent, memory fits) take one that ends first, at c, on device d. Children: every op that can come
//           next on d and starts before c, and that one. Of the best schedules that go on from here take one
//           with the least sum of starts. If its next op on d started at c or later, the chosen op would fit
//           in before it: nothing moves, and of memory only ops that give some back have been jumped over.
//           What cannot come next now does not start before c, or not as the next on d.
//  prune    An op that ends after its latest end (window.h); a device that is free later than its table says
//           (lattice.h); a next op on any device that cannot end in time even if all before it comes at once.
//  imply    Where no W waits on a device, it counts as free only from when its next F or B can start at the
//           earliest; what waits behind another in the same queue arrives no earlier than that one can end. A
//           device with nothing but W left runs them.
//  kill     Of two that have done the same F and B, X kills Y if X has done no fewer W in all, and on every
//           device is free no later than Y even after the W that it has done less, and nothing arrives later.
//           Whatever completes Y completes X, after these W. (In all no fewer: so what X still has to do is
//           no more than Y had, and covering cannot go round in a circle.)
//
// That holds for a chain whose offsets are fixed (span) or in one frame (makespan), without fused backwards,
// and where only F takes memory. Elsewhere the same search finds schedules but proves nothing.
#ifndef ZB_FRONT_H
#define ZB_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/exact/orders.h"
#include "solver/exact/window.h"

enum zb_front_end {
  ZB_FRONT_OPEN,    // the work ran out: it can go on
  ZB_FRONT_SOLVED,  // orders that meet the target; of least cost, if nothing was left out
  ZB_FRONT_REFUTED, // nothing meets the target
  ZB_FRONT_BARREN,  // nothing found, but something was left out
  ZB_FRONT_STOPPED, // halted
  ZB_FRONT_MEMORY,
};

struct zb_front;

// Whether it can be searched at all, and whether a refutation is one.
bool zb_front_applies(const struct zb_chain *chain, enum zb_objective objective);
bool zb_front_proves(const struct zb_chain *chain, enum zb_objective objective);

// NULL where memory ran out. zb_front_free takes NULL.
struct zb_front *zb_front_create(const struct zb_chain *chain, enum zb_objective objective);
void zb_front_free(struct zb_front *front);

// Starts anew from a fixpoint of `state`, which is only read. Layers keep the `most` partial schedules with
// the most time in hand.
enum zb_front_end zb_front_begin(struct zb_front *front, struct zb_state *state, size_t most);
// Goes on for about `work` partial schedules more. SOLVED writes `orders`.
enum zb_front_end zb_front_run(struct zb_front *front, int64_t work, const struct zb_halt *halt,
                               struct zb_orders *orders);
// Of the search under way: expanded so far, and whether all was kept so far.
int64_t zb_front_work(const struct zb_front *front);
bool zb_front_whole(const struct zb_front *front);

// The word of a bound that was proven so.
extern const char *const zb_word_fronts;

#endif
