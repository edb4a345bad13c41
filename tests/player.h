// Plays a program with tokens instead of tensors, one random step after another: what a runtime would see.
//
// Written for one purpose, to disagree with solver/program where that is wrong: it shares the types of
// program.h and nothing else, knows no times, and finds every next step by looking at everything. A buffer
// holds a number that says which stage, microbatch, iteration and attempt made it. A receive spoils its slot
// when it is posted and fills it when the message happens to be transferred, from what the sender's slot
// holds at that moment; messages are matched by their order between two devices. So a slot that is used again
// too early, a message that is matched with another, and anything left over from a discarded attempt show up
// as a wrong number.
#ifndef PLAYER_H
#define PLAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/program/program.h"
#include "tests/generate.h"

enum player_posts {
  PLAYER_GOES_ON, // a device posts a message and goes on
  PLAYER_BLOCKS,  // it waits there until the message is transferred
};

struct player_game {
  enum zb_channels channels;
  enum player_posts posts;
  int iterations; // at least 1
  int wrong_step; // iteration whose optimizer step turns out wrong, so that the next is begun again; -1: none
};

// Plays to the end. False with a line in `why` where a number is wrong, or no step is left.
bool player_play(const struct zb_program *program, struct player_game game, struct generate_random *random,
                 char *why, size_t room);

#endif
