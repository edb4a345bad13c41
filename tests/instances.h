// Random instances for tests: profiles of every placement, and orders of their ops that finish.
#ifndef INSTANCES_H
#define INSTANCES_H

#include "solver/model/profile.h"
#include "solver/model/schedule.h"
#include "solver/program/program.h"
#include "tests/generate.h"

// How an order runs its backwards.
enum instance_backward { INSTANCE_SPLIT, INSTANCE_FUSED, INSTANCE_MIXED, INSTANCE_BACKWARDS };

// The generated profile in the solver's form. All of these return what the caller owns, NULL out of memory.
struct zb_profile *instance_from_generated(const struct generated_profile *generated);

// One with 1 to `devices` devices and 1 to `microbatches` microbatches: uneven, with zeros, comm by boundary
// and direction, its own bw every other time, memory with limits that may be too tight for anything. A list
// has 1 to 3 stages a device in random places, a loop 1 to 3, a v 2.
struct zb_profile *instance_profile(struct generate_random *random, enum zb_placement placement, int devices,
                                    int microbatches);

// The same with 1 to `most_chunks` stages a device in a list or a loop.
struct zb_profile *instance_profile_of(struct generate_random *random, enum zb_placement placement,
                                       int most_chunks, int devices, int microbatches);

// An order that finishes, drawn op by op from all that could run next. It does not look at memory.
struct zb_schedule *instance_order(const struct zb_profile *profile, enum instance_backward backward,
                                   struct generate_random *random);

// A program of a random profile without limits, NULL where that failed. Placements, orders, optimizers and
// channels go round with the index.
struct zb_program *instance_program(struct generate_random *random, int index);

#endif
