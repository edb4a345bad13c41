// search.h - moves bound and schedule of a chain towards each other until they meet or time is up.
#ifndef ZB_SEARCH_H
#define ZB_SEARCH_H

#include "solver/exact/chain.h"
#include "solver/exact/orders.h"
#include "solver/exact/proof.h"
#include "solver/model/engine.h"

struct zb_search_result {
  int64_t bound, cost;     // ticks; cost INT64_MAX where no schedule was found
  struct zb_orders orders; // of that cost; owned: zb_search_result_free
  struct zb_proof proof;   // of bound - 1; empty where propagation alone refutes it
  int64_t nodes;           // propagations in trees
};

// `incumbent` may be NULL. Same result for any number of threads unless the deadline passes. ZB_OK with
// what was found; ZB_FAILED for memory; ZB_SELF_CHECK if a bound came out above a schedule.
enum zb_status zb_search_run(const struct zb_problem *problem, const struct zb_chain *chain,
                             const struct zb_schedule *incumbent, struct zb_search_result *result,
                             struct zb_error *error);
void zb_search_result_free(struct zb_search_result *result);

#endif
