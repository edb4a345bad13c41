// v_block.h - building blocks: one microbatch's passes with offsets, and the walk that lays them end to end.
//
// After arXiv 2405.15362: the order of a whole iteration is one block, repeated every `period`, squeezed, and
// reordered at both ends under the same peak. Here the block is a clock of turns. Microbatch j's pass of a
// class has its turn on a device at offset + j * period; the devices run what is there in the order of turns,
// under their real times and their real limits in bytes. So a block may collide with itself, offsets are not
// bound to slots, and no limit from one microbatch up is without a schedule.
#ifndef ZB_V_BLOCK_H
#define ZB_V_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heuristic/v_pipe.h"

struct zb_v_turns {
  int64_t turn_ns[ZB_V_CLASSES]; // of microbatch 0
  // The first B0 of a device is late, and the block idles until then: the F0 that it keeps anyway, `early` of
  // them, have their turns earlier by so much.
  int early;
  int64_t early_ns;
};

struct zb_v_block {
  int64_t period_ns;
  struct zb_v_turns *device; // [devices]
  // Turns of single ops in place of the block's: [devices][ZB_V_CLASSES][the pipe's microbatches]; NULL:
  // none.
  const int64_t *turn_ns;
};

// First of a class's turns in such a table.
static inline size_t zb_v_turns_at(const struct zb_v_pipe *pipe, int device, int class) {
  return ((size_t)device * ZB_V_CLASSES + (size_t) class) * (size_t)pipe->microbatches;
}

// Makes the block's first F0 earlier by `eighths` of the time that it waits from the first B1 to the first
// B0.
void zb_v_block_advance(struct zb_v_block *block, int devices, int eighths);

// A block is four flights over the devices: down (F0), up (F1), down (B1), up (B0). What each takes beyond
// its passes and their communication; below 0 it has its turns sooner than it can be there.
struct zb_v_shape {
  int64_t rest_ns[ZB_V_CLASSES][2]; // at every hop of the flight, before and after its bend
  int bend[ZB_V_CLASSES];           // hop of the flight from which the second rest holds
  int64_t pause_ns[ZB_V_CLASSES];   // before the flight; the first is not used
};

// What a walk does where the turns leave a choice.
enum zb_v_gap {
  ZB_V_GAP_FITTING, // W into a gap that is long enough for it
  ZB_V_GAP_ANY,     // W into every gap
  ZB_V_GAP_LONGEST, // into a gap that is too short where idling would make this device the longest of all
};

struct zb_v_rule {
  int64_t ahead_ns;      // how far an op may run before the device's next open turn; ZB_NEVER: any time
  int64_t ends_ahead_ns; // likewise before the device's first B0, and after its last F0
  int64_t lead_ns;       // an F runs if its turn is at most so long after that of its stage's next B: with 0,
                         // no stage keeps more microbatches than in the block itself; ZB_NEVER: any number
  int64_t weight_lag_ns; // a W gets a turn of its own so long after its B's; ZB_NEVER: none
  bool hold;             // an op whose turn is later waits for one that arrives while it would run
  enum zb_v_gap gap;
};

// Sets the turns for the pipe's times. `block->device` has room for the pipe's devices.
void zb_v_block_lay(const struct zb_v_pipe *pipe, const struct zb_v_shape *shape, struct zb_v_block *block);

// The turns of zb-v (section 6 of arXiv 2401.10241): a device repeats F1, B1, B0, F0; F0 is p-i periods ahead
// of F1, that is i ahead of B1, and that p-1-i ahead of B0. Advanced by 8, device i so begins with 2(p-1-i)+1
// F0, then i times F1 F0, then p-1-i times F1 B1.
void zb_v_block_lay_zb_v(const struct zb_v_pipe *pipe, struct zb_v_block *block);

// The least period that the pipe's devices can keep up with, in ns: the largest work of a microbatch.
int64_t zb_v_block_least_period(const struct zb_v_pipe *pipe);

// So many periods, at most 2^60 ns.
int64_t zb_v_block_periods(int64_t count, int64_t period_ns);

// So many eighths of a time, without a product that could overflow.
int64_t zb_v_block_share(int64_t ns, int64_t eighths);

// Fills an empty pipe: every microbatch, within every device's room. Cannot fail where each device has room
// for one microbatch. Gives up, with pipe->longest_ns above most_ns, once the span cannot be most_ns or less;
// INT64_MAX: never. Returns the number of ops written.
int64_t zb_v_walk(struct zb_v_pipe *pipe, const struct zb_v_block *block, const struct zb_v_rule *rule,
                  int64_t most_ns);

#endif
