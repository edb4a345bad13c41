// tune_warn.c - whether several profiles look like one model.
//
// Nothing in a profile names its model, but some sums survive being cut differently. What a sample keeps in
// all stages together does not depend on devices, and grows with the samples of a microbatch only through
// them; nor does the work of a sample, but small microbatches use a device less well. So the first may be off
// by a tenth, the second by half. What an iteration trains and the limits are no sign of another model; they
// are said because rates under different ones are not one answer.
#include "solver/cli/quantity.h"
#include "solver/cli/tune.h"
#include "solver/io/text.h"
#include "solver/model/number.h"

static const double memory_may_differ = 1.1, work_may_differ = 2.0;

static int64_t work_of_sample(const struct zb_profile *profile) {
  int64_t total_ns = 0;
  for (int s = 0; s < profile->stages; s++) total_ns += profile->f_ns[s] + zb_profile_backward_ns(profile, s);
  return total_ns / profile->samples;
}

static int64_t memory_of_sample(const struct zb_profile *profile) {
  int64_t total_bytes = 0;
  for (int s = 0; s < profile->stages; s++) total_bytes += profile->f_bytes[s];
  return total_bytes / profile->samples;
}

static bool differ(int64_t a, int64_t b, double most) {
  return (double)a > (double)b * most || (double)b > (double)a * most;
}

static bool same_limits(const struct zb_profile *a, const struct zb_profile *b) {
  for (int d = 0; d < a->devices || d < b->devices; d++)
    if (a->limit_bytes[zb_min(d, a->devices - 1)] != b->limit_bytes[zb_min(d, b->devices - 1)]) return false;
  return true;
}

static void compare_models(const struct zb_candidate *first, const struct zb_candidate *other,
                           struct zb_text *text) {
  const int64_t work[] = {work_of_sample(first->profile), work_of_sample(other->profile)};
  const int64_t memory[] = {memory_of_sample(first->profile), memory_of_sample(other->profile)};
  char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT];
  if (differ(work[0], work[1], work_may_differ))
    zb_text_print(text, "not one model? A sample takes %s of work in %s, %s in %s.\n",
                  zb_time_text(work[0], a), first->path, zb_time_text(work[1], b), other->path);
  if (first->profile->has_memory && other->profile->has_memory &&
      differ(memory[0], memory[1], memory_may_differ))
    zb_text_print(text, "not one model? A sample keeps %s in %s, %s in %s.\n", zb_bytes_text(memory[0], a),
                  first->path, zb_bytes_text(memory[1], b), other->path);
}

static double samples_of_iteration(const struct zb_profile *profile) {
  return (double)profile->samples * profile->microbatches;
}

static void compare_terms(const struct zb_candidate *candidates, int count, struct zb_text *text) {
  const struct zb_profile *first = candidates[0].profile;
  double least = samples_of_iteration(first), most = least;
  bool one_limit = true;
  for (int c = 1; c < count; c++) {
    const double samples = samples_of_iteration(candidates[c].profile);
    if (samples < least) least = samples;
    if (samples > most) most = samples;
    one_limit = one_limit && same_limits(first, candidates[c].profile);
  }
  if (least < most)
    zb_text_print(text, "an iteration is %.0f samples in one profile, %.0f in another.\n", least, most);
  if (!one_limit) zb_text_put(text, "the memory limits differ: --memory-limit 40GiB would set one.\n");
}

enum zb_status zb_tune_warn(const struct zb_candidate *candidates, int count, struct zb_tune *tune,
                            struct zb_error *error) {
  struct zb_text text = {0};
  for (int c = 1; c < count; c++) compare_models(&candidates[0], &candidates[c], &text);
  compare_terms(candidates, count, &text);
  zb_text_put(&text, "");
  enum zb_status status = zb_text_status(&text, error);
  if (status == ZB_OK)
    tune->warnings = text.data;
  else
    zb_text_free(&text);
  return status;
}
