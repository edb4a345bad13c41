// redo_bound.c - closed form first, then the exact engine's propagation.
#include "solver/cli/redo_bound.h"

#include <string.h>

#include "solver/exact/proof_check.h"
#include "solver/io/proof_json.h"
#include "solver/model/bound.h"
#include "solver/model/number.h"

// Ours are redone before they are written if that is cheap against finding them: this long, this many bytes
// of tree.
#define OWN_MOST_NS ((int64_t)2000000000)
static const size_t own_most_bytes = (size_t)1 << 19;

enum zb_status zb_redo_bound(const struct zb_answer *answer, const char *path, struct zb_error *error) {
  if (answer->status == ZB_INFEASIBLE) return ZB_OK;
  const int64_t closed_form = zb_bound_closed_form(answer->profile, answer->objective);
  const bool enough = answer->bound_ns <= closed_form;
  // A word or a tree that does not fit is wrong even where neither is needed.
  if (enough && !answer->proof && !answer->relaxation) return ZB_OK;
  const struct zb_deadline none = {zb_clock_ns(), INT64_MAX};
  struct zb_proof_list tree = {NULL, 0};
  enum zb_status status = zb_proof_load(answer, path, &tree, error);
  if (status == ZB_OK)
    status = zb_proof_check(answer->profile, answer->objective, answer->bound_ns, &tree, answer->relaxation,
                            &none, error);
  zb_proof_list_free(&tree);
  return status;
}

enum zb_status zb_redo_own_bound(const struct zb_answer *answer, const struct zb_deadline *deadline,
                                 struct zb_error *error) {
  if (!answer->schedule || answer->status == ZB_OVER_LIMIT) return ZB_OK;
  if (answer->bound_ns <= zb_bound_closed_form(answer->profile, answer->objective)) return ZB_OK;
  if (answer->proof && strlen(answer->proof) > own_most_bytes) return ZB_OK;
  struct zb_deadline soon = *deadline;
  soon.end_ns = zb_min(soon.end_ns, zb_clock_ns() + OWN_MOST_NS);
  struct zb_proof_list tree = {NULL, 0};
  struct zb_error why = {0};
  enum zb_status status = zb_proof_load(answer, "", &tree, &why);
  if (status == ZB_OK)
    status = zb_proof_check(answer->profile, answer->objective, answer->bound_ns, &tree, answer->relaxation,
                            &soon, &why);
  zb_proof_list_free(&tree);
  if (status == ZB_OK || status == ZB_NOT_PROVEN) return ZB_OK;
  if (status == ZB_FAILED) return zb_fail(error, ZB_FAILED, "%s", why.text);
  return zb_fail(error, ZB_SELF_CHECK, "%s claims a bound of %lld ns that does not hold: %s", answer->method,
                 (long long)answer->bound_ns, why.text);
}
