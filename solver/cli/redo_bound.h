// redo_bound.h - does an answer's bound hold? Redone, not believed.
#ifndef ZB_REDO_BOUND_H
#define ZB_REDO_BOUND_H

#include "solver/model/answer.h"
#include "solver/model/deadline.h"
#include "solver/model/status.h"

// The bound of an answer that was read from the schedule file `path`: the closed form, or propagation at
// bound - 1, down the proof tree where the answer has one (also one that is not needed). WRONG says which
// leaf is not refuted; NOT_PROVEN why the bound was not redone, a missing proof file for one; BAD_INPUT
// where a proof cannot be read.
enum zb_status zb_redo_bound(const struct zb_answer *answer, const char *path, struct zb_error *error);

// The same for an answer of our own that is about to be written, as far as `deadline` and a cap on the size
// of the tree allow: beyond those the engine's own refutation has to do. SELF_CHECK where it does not hold.
enum zb_status zb_redo_own_bound(const struct zb_answer *answer, const struct zb_deadline *deadline,
                                 struct zb_error *error);

#endif
