// proof_check.h - redoing a bound: propagation at bound - 1, down the tree that came with it.
#ifndef ZB_PROOF_CHECK_H
#define ZB_PROOF_CHECK_H

#include <stdint.h>

#include "solver/model/deadline.h"
#include "solver/model/profile.h"
#include "solver/model/proof_list.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// Does no schedule of `profile` cost less than bound_ns? `tree`: NULL or empty, where propagation
// alone has to refute that. `relaxation`: the word that the bound comes with, NULL: none. WRONG names the
// leaf that is not refuted, or says where the tree breaks off or goes on too long. NOT_PROVEN: the deadline
// (may be NULL) came first, or memory would not do.
enum zb_status zb_proof_check(const struct zb_profile *profile, enum zb_objective objective, int64_t bound_ns,
                              const struct zb_proof_list *tree, const char *relaxation,
                              const struct zb_deadline *deadline, struct zb_error *error);

#endif
