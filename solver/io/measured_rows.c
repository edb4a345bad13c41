// measured_rows.c - samples sorted into groups of one stage, measure and microbatch: a group's first samples
// are the first iterations, which warm up.
#include "solver/io/measured_rows.h"

#include <stdlib.h>
#include <string.h>

static int compare_int64(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int compare_samples(const void *a, const void *b) {
  const struct zb_sample *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  if (x->measure != y->measure) return x->measure < y->measure ? -1 : 1;
  if (x->microbatch != y->microbatch) return x->microbatch < y->microbatch ? -1 : 1;
  if (x->order != y->order) return compare_int64(x->order, y->order);
  return compare_int64(x->value, y->value);
}

static int compare_values(const void *a, const void *b) {
  return compare_int64(*(const int64_t *)a, *(const int64_t *)b);
}

static bool same_row(const struct zb_sample *a, const struct zb_sample *b) {
  return a->stage == b->stage && a->measure == b->measure;
}

// Ends of the row and of the group that begin at `at`.
static size_t row_end(const struct zb_sample *sorted, size_t count, size_t at) {
  size_t end = at + 1;
  while (end < count && same_row(&sorted[end], &sorted[at])) end++;
  return end;
}

static size_t group_end(const struct zb_sample *sorted, size_t count, size_t at) {
  size_t end = at + 1;
  while (end < count && same_row(&sorted[end], &sorted[at]) &&
         sorted[end].microbatch == sorted[at].microbatch)
    end++;
  return end;
}

// The largest group of all, and the smallest of the rows' largest.
static void count_repeats(const struct zb_sample *sorted, size_t count, size_t *most, size_t *common) {
  *most = 0;
  *common = SIZE_MAX;
  for (size_t row = 0; row < count;) {
    const size_t end = row_end(sorted, count, row);
    size_t largest = 0;
    for (size_t group = row; group < end;) {
      const size_t next = group_end(sorted, end, group);
      if (next - group > largest) largest = next - group;
      group = next;
    }
    if (largest > *most) *most = largest;
    if (largest < *common) *common = largest;
    row = end;
  }
}

// Between two values the lower half of their distance, so that whole numbers stay whole.
static int64_t quantile(const int64_t *values, size_t count, size_t quarters) {
  const size_t at = (count - 1) * quarters, below = at / 4, part = at % 4;
  if (part == 0) return values[below];
  return values[below] + (values[below + 1] - values[below]) / 4 * (int64_t)part +
         (values[below + 1] - values[below]) % 4 * (int64_t)part / 4;
}

static void fill_row(const struct zb_measurements *measurements, const struct zb_sample *first,
                     int64_t *values, size_t count, struct zb_measured_row *row) {
  const bool comm = first->measure == ZB_MEASURE_COMM_FORWARD || first->measure == ZB_MEASURE_COMM_BACKWARD;
  qsort(values, count, sizeof *values, compare_values);
  *row = (struct zb_measured_row){.measure = first->measure, .stage = first->stage, .samples = count};
  row->least = values[0];
  row->low = quantile(values, count, 1);
  row->value = comm && measurements->shortest_comm ? values[0] : quantile(values, count, 2);
  row->high = quantile(values, count, 3);
  row->most = values[count - 1];
}

static enum zb_status fill_rows(const struct zb_measurements *measurements, const struct zb_sample *sorted,
                                size_t skip, int64_t *values, struct zb_measured_row *rows, size_t *row_count,
                                struct zb_error *error) {
  const size_t count = measurements->count;
  *row_count = 0;
  for (size_t row = 0; row < count;) {
    const size_t end = row_end(sorted, count, row);
    size_t kept = 0;
    for (size_t group = row; group < end;) {
      const size_t next = group_end(sorted, end, group);
      for (size_t i = group + skip; i < next; i++) values[kept++] = sorted[i].value;
      group = next;
    }
    if (kept == 0)
      return zb_fail(error, ZB_BAD_INPUT, "--skip: nothing is left of %s of stage %d without its first %zu",
                     zb_measure_word(sorted[row].measure), sorted[row].stage, skip);
    fill_row(measurements, &sorted[row], values, kept, &rows[(*row_count)++]);
    row = end;
  }
  return ZB_OK;
}

enum zb_status zb_measured_rows_create(const struct zb_measurements *measurements,
                                       const struct zb_measured_options *options,
                                       struct zb_measured_row **rows, size_t *row_count, int *skipped,
                                       int *repeats, struct zb_error *error) {
  const size_t count = measurements->count, room = count ? count : 1;
  struct zb_sample *sorted = malloc(room * sizeof *sorted);
  int64_t *values = malloc(room * sizeof *values);
  struct zb_measured_row *made = calloc(room, sizeof *made);
  enum zb_status status = sorted && values && made ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK && count > 0) {
    memcpy(sorted, measurements->samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_samples);
    size_t most, common;
    count_repeats(sorted, count, &most, &common);
    *repeats = most > INT32_MAX ? INT32_MAX : (int)most;
    *skipped = options->skip >= 0 ? options->skip : options->warms_up && common > 1 ? 1 : 0;
    status = fill_rows(measurements, sorted, (size_t)*skipped, values, made, row_count, error);
  } else {
    *row_count = 0;
  }
  free(sorted);
  free(values);
  if (status == ZB_OK)
    *rows = made;
  else
    free(made);
  return status;
}

const struct zb_measured_row *zb_measured_row_find(const struct zb_measured_row *rows, size_t row_count,
                                                   int stage, enum zb_measure measure) {
  size_t low = 0, high = row_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const struct zb_measured_row *row = &rows[middle];
    if (row->stage == stage && row->measure == measure) return row;
    if (row->stage < stage || (row->stage == stage && row->measure < measure))
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}
