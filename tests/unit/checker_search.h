// zbcheck's search of `fluid-fronts`, called by a test. A program that uses it is linked with the checker,
// all but its command line (Makefile).
#ifndef CHECKER_SEARCH_H
#define CHECKER_SEARCH_H

#include "tests/pouring.h"
#include "tests/zbcheck_fluid.h"

// What it says of a target, with the windows that propagation leaves or those that know nothing but the
// target.
enum zc_outcome checker_search_profile(const struct zb_profile *profile, enum zb_objective objective,
                                       int64_t target, bool propagate);
enum zc_outcome checker_search(const struct pouring_chain *chain, enum zb_objective objective, int64_t target,
                               bool propagate);

// Frees what zc_alloc has given for the run.
void checker_free(struct zc_run *run);

#endif
