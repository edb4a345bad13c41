// flow_trial.h - one problem, the solver's layers by F and B for it, and what they may say around its
// optimum.
#ifndef FLOW_TRIAL_H
#define FLOW_TRIAL_H

#include "solver/exact/flow_front.h"
#include "solver/exact/orders.h"
#include "tests/generate.h"
#include "tests/unit/unit.h"

struct flow_trial {
  const void *from; // of the test that opens it
  const struct zb_profile *profile;
  enum zb_objective objective;
  struct zb_chain *chain;
  struct zb_lattice lattice;
  struct zb_state state;
  struct zb_orders orders;
  struct zb_timer timer;
  struct zb_flow_front *front;
  // Set by the test: for messages; what `orders` cost in ticks, of F and B alone with W poured, and complete
  // ones, which have to fit.
  const char *(*text)(const struct flow_trial *trial);
  int64_t (*poured_cost)(const struct flow_trial *trial);
  int64_t (*whole_cost)(struct flow_trial *trial);
};

struct flow_found {
  enum zb_front_end end;
  int64_t cost; // ticks, where SOLVED
};

static const struct zb_flow_weights flow_fluid = {.fluid = true};

// Opens all but what the test sets. False, with only the chain open, where the search is not for the problem.
bool flow_trial_open(const struct zb_profile *profile, enum zb_objective objective, struct flow_trial *trial);
void flow_trial_close(struct flow_trial *trial);

// One search under a target in ticks, in small pieces, as the rounds of a search have it. From windows that
// propagation leaves, or those that know nothing but the target. What it finds costs what it says. OPEN where
// it takes too long.
struct flow_found flow_search(struct flow_trial *trial, int64_t target, bool propagate,
                              struct zb_flow_weights weights, size_t most);

// All that searches with W poured say at targets that are `away` [count] from the optimum.
void flow_try_poured(struct flow_trial *trial, int64_t optimum, const int64_t *away, size_t count);

// A target that a schedule meets: windows keep what meets it, with W poured and mostly with whole W, too.
// Returns how many searches found the optimum.
int flow_try_whole(struct flow_trial *trial, int64_t poured, int64_t optimum);

// A generator from `seed` or from FLOW_SEED, which it prints.
struct generate_random flow_random(uint64_t seed);

#endif
