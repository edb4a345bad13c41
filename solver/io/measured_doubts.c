// measured_doubts.c - one function a doubt; each says the stage, the number and why.
#include "solver/io/measured_doubts.h"

#include <stdlib.h>
#include <string.h>

#include "solver/io/measured_rows.h"
#include "solver/io/units.h"
#include "solver/model/number.h"

// A fit that ran into its floor writes 0.0001, in ms or us: 100 ns at most.
enum { CLAMPED_NS = 100, SPREAD_PERCENT = 20, FAR = 2 };

enum { TIMES = 3 };
static const char *const time_words[TIMES] = {"f", "b", "w"};

static const int64_t *times_of(const struct zb_profile *profile, int op) {
  const int64_t *const lists[TIMES] = {profile->f_ns, profile->b_ns, profile->w_ns};
  return lists[op];
}

static void doubt_floor(struct zb_measured *measured) {
  for (int op = 0; op < TIMES; op++)
    for (int s = 0; s < measured->profile->stages; s++) {
      const int64_t ns = times_of(measured->profile, op)[s];
      if (ns == 0)
        zb_text_print(&measured->warnings, "stage %d: %s is 0\n", s, time_words[op]);
      else if (ns <= CLAMPED_NS)
        zb_text_print(&measured->warnings, "stage %d: %s is %lld ns, which looks like a clamped fit\n", s,
                      time_words[op], (long long)ns);
    }
}

static void doubt_spread(struct zb_measured *measured) {
  for (size_t k = 0; k < measured->row_count; k++) {
    const struct zb_measured_row *row = &measured->rows[k];
    if (row->measure > ZB_MEASURE_BW || row->value <= 0) continue;
    const int64_t percent = (row->high - row->low) * 100 / row->value; // times are at most 2^53
    if (percent > SPREAD_PERCENT)
      zb_text_print(&measured->warnings,
                    "stage %d: half of its samples of %s spread over %lld%% of their median\n", row->stage,
                    zb_measure_word(row->measure), (long long)percent);
  }
}

static int compare_int64(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// The first and the last stage often differ, a factor of two is worth a look.
static void doubt_stages(struct zb_measured *measured) {
  const int stages = measured->profile->stages;
  int64_t *sorted = malloc((size_t)stages * sizeof *sorted);
  if (!sorted) {
    measured->warnings.failed = true;
    return;
  }
  for (int op = 0; op < TIMES; op++) {
    const int64_t *times = times_of(measured->profile, op);
    memcpy(sorted, times, (size_t)stages * sizeof *sorted);
    qsort(sorted, (size_t)stages, sizeof *sorted, compare_int64);
    const int64_t median = sorted[stages / 2];
    for (int s = 0; s < stages; s++) {
      char a[ZB_QUANTITY_TEXT], b[ZB_QUANTITY_TEXT];
      const bool far = times[s] / FAR > median || (times[s] > 0 && times[s] < median / FAR);
      if (far && stages > 2)
        zb_text_print(&measured->warnings, "stage %d: %s is %s, far from the stages' median of %s\n", s,
                      time_words[op], zb_time_text(times[s], a), zb_time_text(median, b));
    }
  }
  free(sorted);
}

static void doubt_backward(struct zb_measured *measured) {
  const struct zb_profile *p = measured->profile;
  int equal = 0;
  for (int s = 0; s < p->stages; s++) {
    if (p->b_ns[s] > p->f_ns[s] + p->w_ns[s])
      zb_text_print(&measured->warnings, "stage %d: b is longer than f + w\n", s);
    const bool both = zb_measured_row_find(measured->rows, measured->row_count, s, ZB_MEASURE_W) != NULL;
    equal += both && p->b_ns[s] == p->w_ns[s] && p->b_ns[s] > 0;
  }
  if (equal == p->stages)
    zb_text_put(&measured->warnings, "w equals b on every stage, as in logs of runs without W\n");
}

void zb_measured_doubt(struct zb_measured *measured) {
  doubt_floor(measured);
  doubt_spread(measured);
  doubt_stages(measured);
  doubt_backward(measured);
  if (!measured->profile->has_memory)
    zb_text_put(&measured->warnings, "no memory was measured: the profile has no limit\n");
}
