// write_answer.c - schedules are self-contained while that is handy: a tree above 1 MB gets a file of its
// own.
#include "solver/cli/write_answer.h"

#include <stdlib.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/proof_json.h"
#include "solver/io/schedule_json.h"

static const size_t inline_most_bytes = 1000000;
static const char proof_suffix[] = ".proof";

enum zb_status zb_write_answer_check(const char *path, const char *proof_path, struct zb_error *error) {
  if (proof_path && (!path || !zb_file_is_regular(path))) {
    // An output that cannot be written at all says so by itself.
    enum zb_status status = path ? zb_file_can_write(path, error) : ZB_OK;
    if (status != ZB_OK) return status;
    return zb_fail(error, ZB_BAD_INPUT, "--proof: expected a schedule file beside it, -o FILE");
  }
  if (proof_path && (!zb_file_beside(path, proof_path) || strcmp(path, proof_path) == 0))
    return zb_fail(error, ZB_BAD_INPUT, "--proof: %.200s is not a file of its own beside %.200s", proof_path,
                   path);
  enum zb_status status = path ? zb_file_can_write(path, error) : ZB_OK;
  if (status == ZB_OK && proof_path) status = zb_file_can_write(proof_path, error);
  return status;
}

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The schedule holds the reference, the other file the tree and a line break.
static enum zb_status write_both(const char *path, const char *proof_path, const struct zb_answer *answer,
                                 struct zb_error *error) {
  struct zb_text schedule = {0}, reference = {0}, proof = {0};
  zb_text_put(&proof, answer->proof);
  zb_text_put(&proof, "\n");
  enum zb_status status = zb_text_status(&proof, error);
  if (status == ZB_OK) {
    zb_proof_print_reference(name_of(proof_path), &proof, &reference);
    status = zb_text_status(&reference, error);
  }
  if (status == ZB_OK) {
    struct zb_answer referring = *answer;
    referring.proof = reference.data;
    zb_answer_print(&referring, &schedule);
    status = zb_file_write_with_part(path, &schedule, proof_path, &proof, error);
  }
  zb_text_free(&schedule);
  zb_text_free(&reference);
  zb_text_free(&proof);
  return status;
}

enum zb_status zb_write_answer(const char *path, const char *proof_path, const struct zb_answer *answer,
                               struct zb_error *error) {
  if (answer->status == ZB_OVER_LIMIT || answer->status == ZB_UNKNOWN) return ZB_OK;
  struct zb_text text = {0}, beside = {0};
  const bool large = answer->proof && strlen(answer->proof) > inline_most_bytes && zb_file_is_regular(path);
  enum zb_status status = ZB_OK;
  if (answer->proof && (proof_path || large)) {
    if (!proof_path) zb_text_print(&beside, "%s%s", path, proof_suffix);
    status = zb_text_status(&beside, error);
    if (status == ZB_OK) status = write_both(path, proof_path ? proof_path : beside.data, answer, error);
  } else {
    zb_answer_print(answer, &text);
    status = zb_file_write(path, &text, error);
  }
  zb_text_free(&beside);
  zb_text_free(&text);
  return status;
}
