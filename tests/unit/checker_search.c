// See checker_search.h. Brings what the checker's parts want of zbcheck.c: it reports nothing, and what stops
// it fails the test.
#include "tests/unit/checker_search.h"

#include <assert.h>

#include "tests/unit/unit.h"

struct zc_block {
  struct zc_block *next;
  max_align_t bytes[];
};

void *zc_alloc(struct zc_run *run, size_t count, size_t size) {
  struct zc_block *block = calloc(1, sizeof *block + count * size);
  assert_non_null(block);
  block->next = run->blocks;
  run->blocks = block;
  return block->bytes;
}

bool zc_grow(struct zc_run *run, void **table, size_t *room, size_t need, size_t size) {
  (void)run;
  if (need <= *room) return true;
  *room = 2 * need;
  *table = realloc(*table, *room * size);
  assert_non_null(*table);
  return true;
}

bool zc_stop(struct zc_run *run, enum zc_verdict verdict, const char *format, ...) {
  run->finding.verdict = verdict;
  fail_msg("zbcheck stops: %s", format);
  return false;
}

void zc_note(const struct zc_run *run, const char *format, ...) {
  (void)run;
  (void)format;
}

void checker_free(struct zc_run *run) {
  while (run->blocks) {
    struct zc_block *next = run->blocks->next;
    free(run->blocks);
    run->blocks = next;
  }
}

enum zc_outcome checker_search_profile(const struct zb_profile *from, enum zb_objective objective,
                                       int64_t target, bool propagate) {
  static_assert(ZB_NO_LIMIT == ZC_NO_LIMIT, "no limit is the same number");
  const struct zc_profile profile = {.devices = from->devices,
                                     .chunks = from->chunks,
                                     .stages = from->stages,
                                     .microbatches = from->microbatches,
                                     .device_of = from->device_of,
                                     .stages_of = from->stage_at,
                                     .f = from->f_ns,
                                     .b = from->b_ns,
                                     .w = from->w_ns,
                                     .bw = from->bw_ns,
                                     .forward = from->comm_forward_ns,
                                     .backward = from->comm_backward_ns,
                                     .keep_f = from->f_bytes,
                                     .keep_b = from->b_bytes,
                                     .keep_w = from->w_bytes,
                                     .limit = from->limit_bytes,
                                     .standing = from->static_bytes};
  struct zc_run run = {.verbose = false};
  if (target < 0) return ZC_REFUTED;
  struct zc_windows *windows =
      zc_windows_new(&run, &profile, objective == ZB_SPAN ? ZC_SPAN : ZC_MAKESPAN, target, false);
  enum zc_outcome outcome = propagate ? zc_windows_propagate(windows) : ZC_OPEN;
  if (outcome == ZC_OPEN) outcome = zc_fluid_search(windows);
  zc_windows_free(windows);
  checker_free(&run);
  return outcome;
}

enum zc_outcome checker_search(const struct pouring_chain *chain, enum zb_objective objective, int64_t target,
                               bool propagate) {
  struct zb_profile *profile = pouring_profile(chain);
  assert_non_null(profile);
  const enum zc_outcome outcome = checker_search_profile(profile, objective, target, propagate);
  zb_profile_free(profile);
  return outcome;
}
