// measured_profile.c - from rows to a profile: stages, then devices, then times, messages and memory.
//
// What was not measured is taken from what was, and every such step is a sentence in the profile's note.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/measured_doubts.h"
#include "solver/io/measured_rows.h"
#include "solver/io/measurements.h"
#include "solver/model/number.h"

struct build {
  const struct zb_measurements *measurements;
  const struct zb_measured_options *options;
  struct zb_measured *measured;
  int stages, devices, microbatches;
  int *device_of; // [stages]
  struct zb_text note;
};

static const struct zb_measured_row *find(const struct build *b, int stage, enum zb_measure measure) {
  return zb_measured_row_find(b->measured->rows, b->measured->row_count, stage, measure);
}

static int64_t value_of(const struct build *b, int stage, enum zb_measure measure) {
  const struct zb_measured_row *row = find(b, stage, measure);
  return row ? row->value : 0;
}

// Stages 0 .. stages-1, each with a forward and a backward. A message needs a stage at its other end too.
static enum zb_status check_stages(struct build *b, struct zb_error *error) {
  for (size_t k = 0; k < b->measured->row_count; k++) {
    const struct zb_measured_row *row = &b->measured->rows[k];
    const bool boundary = row->measure == ZB_MEASURE_COMM_FORWARD || row->measure == ZB_MEASURE_COMM_BACKWARD;
    if (row->stage + 1 + boundary > b->stages) b->stages = row->stage + 1 + boundary;
  }
  if (b->stages == 0) return zb_fail(error, ZB_BAD_INPUT, "nothing here is the time of a pipeline's op");
  for (int s = 0; s < b->stages; s++) {
    const bool f = find(b, s, ZB_MEASURE_F), i = find(b, s, ZB_MEASURE_B), w = find(b, s, ZB_MEASURE_W);
    const bool whole = find(b, s, ZB_MEASURE_BW);
    if (!f && !i && !w && !whole)
      return zb_fail(error, ZB_BAD_INPUT, "stage %d of 0 to %d has no ops: give the files of all ranks", s,
                     b->stages - 1);
    if (!f) return zb_fail(error, ZB_BAD_INPUT, "stage %d has no F", s);
    if (i != w || !(w || whole))
      return zb_fail(error, ZB_BAD_INPUT, "stage %d has %s", s,
                     i   ? "B but no W"
                     : w ? "W but no B"
                         : "no backward: expected B and W, or BW");
  }
  return ZB_OK;
}

static int compare_homes(const void *a, const void *b) {
  const struct zb_home *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return (x->stage > y->stage) - (x->stage < y->stage);
}

static int compare_ints(const void *a, const void *b) {
  const int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

// The lowest rank of every stage. A rank's stages must all have the same one.
static enum zb_status find_owners(const struct build *b, struct zb_home *homes, int *owner,
                                  struct zb_error *error) {
  const size_t count = b->measurements->home_count;
  for (int s = 0; s < b->stages; s++) owner[s] = count ? -1 : s;
  qsort(homes, count, sizeof *homes, compare_homes);
  for (size_t k = 0; k < count; k++)
    if (homes[k].stage < b->stages && owner[homes[k].stage] < 0) owner[homes[k].stage] = homes[k].rank;
  for (size_t k = 1; k < count; k++) {
    const struct zb_home *one = &homes[k - 1], *other = &homes[k];
    if (one->rank != other->rank || other->stage >= b->stages) continue;
    if (owner[one->stage] != owner[other->stage])
      return zb_fail(error, ZB_BAD_INPUT,
                     "rank %d runs stages %d and %d, which other ranks do not run together", one->rank,
                     one->stage, other->stage);
  }
  for (int s = 0; s < b->stages; s++)
    if (owner[s] < 0) return zb_fail(error, ZB_BAD_INPUT, "nothing says which rank runs stage %d", s);
  return ZB_OK;
}

// Ranks that run the same stages are replicas; each set is a device, numbered by its lowest rank.
static enum zb_status place_stages(struct build *b, struct zb_error *error) {
  assert(b->stages > 0);
  const size_t stages = (size_t)b->stages, homes_size = b->measurements->home_count * sizeof(struct zb_home);
  struct zb_home *homes = malloc(homes_size + 1);
  int *sorted = malloc(stages * sizeof *sorted);
  b->device_of = malloc(stages * sizeof *b->device_of);
  enum zb_status status = homes && sorted && b->device_of ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) {
    if (homes_size) memcpy(homes, b->measurements->homes, homes_size);
    status = find_owners(b, homes, b->device_of, error);
  }
  if (status == ZB_OK) {
    memcpy(sorted, b->device_of, stages * sizeof *sorted);
    qsort(sorted, stages, sizeof *sorted, compare_ints);
    for (size_t k = 0; k < stages; k++)
      if (k == 0 || sorted[k] != sorted[k - 1]) sorted[b->devices++] = sorted[k];
    for (size_t s = 0; s < stages; s++) {
      const int *found = bsearch(&b->device_of[s], sorted, (size_t)b->devices, sizeof *sorted, compare_ints);
      b->device_of[s] = (int)(found - sorted);
    }
  }
  free(homes);
  free(sorted);
  return status;
}

static enum zb_status create_profile(struct build *b, struct zb_profile **profile, struct zb_error *error) {
  const int chunks = b->stages / b->devices;
  if (chunks * b->devices != b->stages)
    return zb_fail(error, ZB_BAD_INPUT, "%d stages on %d devices: expected as many on each", b->stages,
                   b->devices);
  for (size_t k = 0; k < b->measurements->count; k++)
    b->microbatches = b->measurements->samples[k].microbatch >= b->microbatches
                          ? b->measurements->samples[k].microbatch + 1
                          : b->microbatches;
  if (b->options->microbatches > 0) b->microbatches = b->options->microbatches;
  if (b->microbatches == 0)
    return zb_fail(error, ZB_BAD_INPUT,
                   "nothing here says how many microbatches there are: --microbatches N");
  const enum zb_placement placement = zb_placement_find(b->device_of, b->devices, b->stages);
  enum zb_status status = zb_profile_create(b->devices, chunks, b->microbatches, placement, profile, error);
  if (status == ZB_OK && placement == ZB_LIST)
    memcpy((*profile)->device_of, b->device_of, (size_t)b->stages * sizeof *b->device_of);
  return status;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// B's usual part of B + W, from the stages that have both; a half where none has.
static enum zb_status usual_part(const struct build *b, double *part, struct zb_error *error) {
  double *parts = malloc((size_t)b->stages * sizeof *parts);
  size_t count = 0;
  if (!parts) return zb_fail_memory(error);
  for (int s = 0; s < b->stages; s++) {
    const int64_t i = value_of(b, s, ZB_MEASURE_B), w = value_of(b, s, ZB_MEASURE_W);
    if (find(b, s, ZB_MEASURE_B) && find(b, s, ZB_MEASURE_W) && i + w > 0)
      parts[count++] = (double)i / (double)(i + w);
  }
  qsort(parts, count, sizeof *parts, compare_doubles);
  *part = count ? parts[count / 2] : 0.5;
  free(parts);
  return ZB_OK;
}

// Where only whole backwards ran, they are split.
static enum zb_status fill_times(struct build *b, struct zb_profile *profile, struct zb_error *error) {
  double part = 0.5;
  int split = 0;
  enum zb_status status = usual_part(b, &part, error);
  if (status != ZB_OK) return status;
  for (int s = 0; s < b->stages; s++) {
    const struct zb_measured_row *whole = find(b, s, ZB_MEASURE_BW);
    profile->f_ns[s] = value_of(b, s, ZB_MEASURE_F);
    profile->b_ns[s] = value_of(b, s, ZB_MEASURE_B);
    profile->w_ns[s] = value_of(b, s, ZB_MEASURE_W);
    if (!find(b, s, ZB_MEASURE_B) || !find(b, s, ZB_MEASURE_W)) {
      profile->b_ns[s] = (int64_t)((double)whole->value * part);
      profile->w_ns[s] = whole->value - profile->b_ns[s];
      split++;
    }
    profile->bw_ns[s] = whole ? whole->value : profile->b_ns[s] + profile->w_ns[s];
    profile->has_bw = profile->has_bw || whole;
  }
  if (split == 0) return ZB_OK;
  zb_text_print(&b->note, "b and w of %d stage%s split the whole backward %.0f:%.0f", split,
                split > 1 ? "s" : "", part * 100, 100 - part * 100);
  zb_text_put(&b->note, split < b->stages ? ", as the other stages do. " : ": no W was measured. ");
  zb_text_print(&b->measured->warnings,
                "%d of %d stages ran only whole backwards: b and w are a %s of them\n", split, b->stages,
                split < b->stages ? "split" : "guessed half");
  return ZB_OK;
}

// The largest comm that was measured in one direction, -1: none was.
static int64_t largest_comm(const struct build *b, enum zb_measure measure) {
  int64_t largest_ns = -1;
  for (int k = 0; k + 1 < b->stages; k++)
    if (find(b, k, measure)) largest_ns = zb_max(largest_ns, value_of(b, k, measure));
  return largest_ns;
}

// Boundaries that were not measured cost the largest of the others, of the same direction where there is one.
static void fill_comm(struct build *b, struct zb_profile *profile) {
  static const enum zb_measure measures[2] = {ZB_MEASURE_COMM_FORWARD, ZB_MEASURE_COMM_BACKWARD};
  const int64_t given_ns = b->options->comm_ns;
  const int64_t largest_ns[2] = {largest_comm(b, measures[0]), largest_comm(b, measures[1])};
  int64_t *const comm[2] = {profile->comm_forward_ns, profile->comm_backward_ns};
  int missing = 0;
  for (int k = 0; k + 1 < b->stages; k++)
    for (int way = 0; way < 2; way++) {
      if (given_ns >= 0) {
        comm[way][k] = given_ns;
      } else if (find(b, k, measures[way])) {
        comm[way][k] = value_of(b, k, measures[way]);
      } else if (b->device_of[k] != b->device_of[k + 1]) {
        comm[way][k] = zb_max(largest_ns[largest_ns[way] >= 0 ? way : 1 - way], 0);
        missing++;
      }
    }
  const bool any = largest_ns[0] >= 0 || largest_ns[1] >= 0;
  if (given_ns >= 0)
    zb_text_put(&b->note, "comm is what --comm says. ");
  else if (!any && missing > 0)
    zb_text_put(&b->measured->warnings, "no message was measured: comm is 0 (--comm TIME says another)\n");
  else if (missing > 0)
    zb_text_print(&b->measured->warnings,
                  "%d messages were not measured: their comm is the largest of the others\n", missing);
  if (given_ns < 0 && any && b->measurements->shortest_comm)
    zb_text_put(&b->note, "comm: the shortest receive of each boundary (the others hold waiting too). ");
}

// Measured memory never sums to exactly 0: W takes the difference.
static void fill_memory(struct build *b, struct zb_profile *profile) {
  bool all = true, changed = false;
  for (int s = 0; s < b->stages; s++)
    all = all && find(b, s, ZB_MEASURE_F_BYTES) && find(b, s, ZB_MEASURE_B_BYTES) &&
          find(b, s, ZB_MEASURE_W_BYTES);
  if (!all) return;
  profile->has_memory = true;
  for (int s = 0; s < b->stages; s++) {
    profile->f_bytes[s] = value_of(b, s, ZB_MEASURE_F_BYTES);
    profile->b_bytes[s] = value_of(b, s, ZB_MEASURE_B_BYTES);
    profile->w_bytes[s] = value_of(b, s, ZB_MEASURE_W_BYTES);
    const int64_t sum = profile->f_bytes[s] + profile->b_bytes[s] + profile->w_bytes[s];
    if (sum == 0) continue;
    profile->w_bytes[s] -= sum;
    changed = true;
    if (sum > profile->f_bytes[s] / 100 || sum < -profile->f_bytes[s] / 100)
      zb_text_print(&b->measured->warnings,
                    "stage %d: its memory deltas sum to %lld B, more than 1%% of f: w takes the difference\n",
                    s, (long long)sum);
  }
  if (changed) zb_text_put(&b->note, "memory: w takes what f, b and w miss of a sum of 0. ");
}

static void say_samples(struct build *b, int skipped, int repeats) {
  size_t least = SIZE_MAX, most = 0;
  for (size_t k = 0; k < b->measured->row_count; k++) {
    if (b->measured->rows[k].measure > ZB_MEASURE_BW) continue;
    if (b->measured->rows[k].samples < least) least = b->measured->rows[k].samples;
    if (b->measured->rows[k].samples > most) most = b->measured->rows[k].samples;
  }
  if (least == most)
    zb_text_print(&b->note, "Times: median of %zu sample%s a stage and op", most, most == 1 ? "" : "s");
  else
    zb_text_print(&b->note, "Times: medians of %zu to %zu samples a stage and op", least, most);
  if (skipped == 1) zb_text_print(&b->note, ", the first of %d repeats dropped", repeats);
  if (skipped > 1) zb_text_print(&b->note, ", the first %d of %d repeats dropped", skipped, repeats);
  zb_text_put(&b->note, ". ");
}

static enum zb_status name_profile(struct build *b, struct zb_profile *profile, struct zb_error *error) {
  for (const char *line = b->measurements->notes.data; line && *line;) {
    const size_t length = strcspn(line, "\n");
    zb_text_add(&b->note, line, length);
    zb_text_put(&b->note, " ");
    line += length + (line[length] == '\n');
  }
  if (b->note.size > 0 && !b->note.failed) b->note.data[b->note.size - 1] = '\0'; // its last blank
  enum zb_status status = zb_text_status(&b->note, error);
  if (status != ZB_OK) return status;
  profile->name = strdup(b->options->name);
  profile->source = strdup(b->options->source);
  profile->note = strdup(b->note.data ? b->note.data : "");
  return profile->name && profile->source && profile->note ? ZB_OK : zb_fail_memory(error);
}

enum zb_status zb_measurements_profile(const struct zb_measurements *measurements,
                                       const struct zb_measured_options *options,
                                       struct zb_measured *measured, struct zb_error *error) {
  struct zb_measured made = {0};
  struct build b = {.measurements = measurements, .options = options, .measured = &made};
  int skipped = 0, repeats = 0;
  enum zb_status status =
      zb_measured_rows_create(measurements, options, &made.rows, &made.row_count, &skipped, &repeats, error);
  if (status == ZB_OK) status = check_stages(&b, error);
  if (status == ZB_OK) status = place_stages(&b, error);
  if (status == ZB_OK) status = create_profile(&b, &made.profile, error);
  if (status == ZB_OK) {
    say_samples(&b, skipped, repeats);
    status = fill_times(&b, made.profile, error);
  }
  if (status == ZB_OK) {
    fill_comm(&b, made.profile);
    fill_memory(&b, made.profile);
    status = name_profile(&b, made.profile, error);
  }
  if (status == ZB_OK) status = zb_profile_finish(made.profile, error);
  if (status == ZB_OK) {
    zb_measured_doubt(&made);
    status = zb_text_status(&made.warnings, error);
  }
  free(b.device_of);
  zb_text_free(&b.note);
  if (status == ZB_OK)
    *measured = made;
  else
    zb_measured_free(&made);
  return status;
}

void zb_measured_free(struct zb_measured *measured) {
  zb_profile_free(measured->profile);
  free(measured->rows);
  zb_text_free(&measured->warnings);
  *measured = (struct zb_measured){0};
}
