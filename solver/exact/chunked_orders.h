// chunked_orders.h - words of devices with several stages: a letter is a class of chunked.h, or a fused B.
//
// Called through orders.h and walk.h.
#ifndef ZB_CHUNKED_ORDERS_H
#define ZB_CHUNKED_ORDERS_H

#include "solver/exact/orders.h"
#include "solver/exact/walk.h"

// Added to the class of a B: the pass is fused.
enum { ZB_LETTER_FUSED = 128 };

static inline int zb_letter_class(unsigned char letter) { return letter % ZB_LETTER_FUSED; }

// Adds what a letter does to the counts of all classes.
void zb_letter_count(const struct zb_chunked_device *device, unsigned char letter, int *done);

void zb_chunked_from_schedule(const struct zb_chunked *chunked, const struct zb_schedule *schedule,
                              struct zb_orders *orders);
void zb_chunked_keep(struct zb_state *state, const struct zb_orders *orders, int d, int from, int to);
void zb_chunked_append(const struct zb_chunked *chunked, struct zb_schedule_builder *builder, int d,
                       const unsigned char *word, int count);
bool zb_chunked_walk(const struct zb_state *state, int d, const struct zb_preference *preference,
                     uint64_t *random, struct zb_orders *orders);
// The same where W is poured (chunked->fluid), from the table of zb_fluid_sweep.
bool zb_pour_walk(const struct zb_state *state, int d, const struct zb_preference *preference,
                  uint64_t *random, struct zb_orders *orders);

#endif
