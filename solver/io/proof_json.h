// proof_json.h - a proof tree's text (contract.md section 3, `proof`), in a schedule or beside it.
#ifndef ZB_PROOF_JSON_H
#define ZB_PROOF_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/answer.h"
#include "solver/model/proof_list.h"
#include "solver/model/status.h"

// Reads a tree, of `size` bytes and a NUL, about `profile`, which has one stage a device, under the
// objective. BAD_INPUT where the text is not JSON (line and column) or an item is neither a 0 nor a split of
// something that the profile has
// ("proof[7]: ..."). WRONG where there is no item at all; whether the items make a tree is not asked here.
// *list is the caller's: zb_proof_list_free.
enum zb_status zb_proof_parse(const char *text, size_t size, const struct zb_profile *profile,
                              enum zb_objective objective, struct zb_proof_list *list,
                              struct zb_error *error);

// The tree of an answer that was read from the schedule file `path`: from the file itself, or from the one
// beside it that it names. *list stays empty where the answer has none. Besides the above, with the path of
// the proof's file: NOT_PROVEN where that file is missing, WRONG where its digest is another.
enum zb_status zb_proof_load(const struct zb_answer *answer, const char *path, struct zb_proof_list *list,
                             struct zb_error *error);

// Appends what a schedule says instead of its tree: {"file": name, "sha256": of the file's bytes}.
void zb_proof_print_reference(const char *name, const struct zb_text *file, struct zb_text *text);

#endif
