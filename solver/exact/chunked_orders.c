// chunked_orders.c - words to order variables and schedules, windows to words.
#include "solver/exact/chunked_orders.h"

#include "solver/exact/grid.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

void zb_letter_count(const struct zb_chunked_device *device, unsigned char letter, int *done) {
  const int class = zb_letter_class(letter);
  done[class]++;
  if (letter >= ZB_LETTER_FUSED) done[zb_class_of_w(device, device->class[class].chunk)]++;
}

void zb_chunked_from_schedule(const struct zb_chunked *chunked, const struct zb_schedule *schedule,
                              struct zb_orders *orders) {
  for (int d = 0; d < chunked->devices; d++) {
    const struct zb_chunked_device *device = &chunked->device[d];
    unsigned char *word = zb_orders_word(orders, d);
    int count = 0;
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      const struct zb_op *op = &schedule->ops[i];
      const struct zb_stage *at = &chunked->stage[op->stage];
      const unsigned char b = (unsigned char)zb_class_of_b(device, at->chunk);
      const unsigned char w = (unsigned char)zb_class_of_w(device, at->chunk);
      if (op->kind == ZB_F) word[count++] = (unsigned char)zb_class_of_f(device, at->chunk);
      if (op->kind == ZB_BW && at->fused) word[count++] = (unsigned char)(b + ZB_LETTER_FUSED);
      if (op->kind == ZB_B || (op->kind == ZB_BW && !at->fused)) word[count++] = b;
      if (op->kind == ZB_W || (op->kind == ZB_BW && !at->fused)) word[count++] = w;
    }
    orders->count[d] = count;
  }
}

static void fix(struct zb_state *state, int d, int array, int index, int value) {
  const size_t lo = zb_state_array(state, d, array) + (size_t)index,
               hi = lo + (size_t)state->chain->microbatches;
  if (value > state->cell[lo]) zb_state_set(state, lo, value);
  if (value < state->cell[hi]) zb_state_set(state, hi, value);
}

void zb_chunked_keep(struct zb_state *state, const struct zb_orders *orders, int d, int from, int to) {
  const struct zb_chunked_device *device = &state->chain->chunked->device[d];
  const unsigned char *word = zb_orders_word(orders, d);
  int done[ZB_MOST_CLASSES] = {0};
  for (int i = 0; i < orders->count[d]; i++) {
    const int class = zb_letter_class(word[i]);
    const struct zb_op_class *starting = &device->class[class];
    if (starting->kind != ZB_W && (i < from || i >= to)) {
      for (int j = class + 1; j < device->classes; j++)
        fix(state, d, zb_pair_array(device, class, j), done[class], done[j]);
      if (starting->kind == ZB_B)
        fix(state, d, zb_stage_array(starting->chunk, ZB_STAGE_FUSED_LO), done[class],
            word[i] >= ZB_LETTER_FUSED);
    }
    zb_letter_count(device, word[i], done);
  }
}

void zb_chunked_append(const struct zb_chunked *chunked, struct zb_schedule_builder *builder, int d,
                       const unsigned char *word, int count) {
  const struct zb_chunked_device *device = &chunked->device[d];
  int done[ZB_MOST_CLASSES] = {0};
  // For each class of W, how far the word's backwards have been looked through for the oldest that is split
  // and still open, and how many of each stage were met on the way.
  int looked[ZB_MOST_CLASSES] = {0}, met[ZB_MOST_CLASSES] = {0};
  for (int i = 0; i < count; i++) {
    const int class = zb_letter_class(word[i]);
    const struct zb_op_class *at = &device->class[class];
    if (at->kind != ZB_W) {
      zb_builder_append(builder, at->stage, word[i] >= ZB_LETTER_FUSED ? ZB_BW : at->kind, done[class]++);
      continue;
    }
    for (bool found = false; !found; looked[class]++) {
      const unsigned char letter = word[looked[class]];
      const struct zb_op_class *b = &device->class[zb_letter_class(letter)];
      if (b->kind != ZB_B || (at->chunk >= 0 && b->chunk != at->chunk)) continue;
      const int microbatch = met[b->chunk]++;
      found = letter < ZB_LETTER_FUSED;
      if (found) zb_builder_append(builder, b->stage, ZB_W, microbatch);
    }
  }
}

// One of the ops that a walk may take next.
struct candidate {
  unsigned char letter;
  enum zb_kind kind;
  int64_t start, end, slack;
};

// Adds what `letter` would do, if the rest still fits after it.
static void consider(const struct zb_state *state, const struct zb_chunked_device *device, int64_t now,
                     const int *done, unsigned char letter, int64_t time, int64_t release, int64_t late,
                     struct candidate *list, int *count) {
  int after[ZB_MOST_CLASSES];
  for (int i = 0; i < device->classes; i++) after[i] = done[i];
  zb_letter_count(device, letter, after);
  const enum zb_kind kind = letter >= ZB_LETTER_FUSED ? ZB_BW : device->class[letter].kind;
  struct candidate found = {letter, kind, zb_max(now, release), 0, 0};
  found.end = found.start + time;
  found.slack = zb_min(late, zb_grid_latest(state->lattice->grid, after)) - found.end;
  if (found.slack >= 0) list[(*count)++] = found;
}

static int list_candidates(const struct zb_state *state, int d, int64_t now, const int *done,
                           struct candidate *list) {
  const struct zb_chunked *chunked = state->chain->chunked;
  const struct zb_chunked_device *device = &chunked->device[d];
  const size_t m = (size_t)state->chain->microbatches;
  int count = 0;
  for (int i = 0; i < device->classes; i++) {
    const struct zb_op_class *class = &device->class[i];
    const int k = done[i];
    if (k == class->count) continue;
    if (class->kind == ZB_W) {
      consider(state, device, now, done, (unsigned char)i, class->time, 0, INT64_MAX, list, &count);
      continue;
    }
    const struct zb_stage *at = &chunked->stage[class->stage];
    const int64_t *window =
        &state->cell[zb_state_array(state, d, zb_stage_array(class->chunk, 0)) + (size_t)k];
    if (class->kind == ZB_F) {
      consider(state, device, now, done, (unsigned char)i, class->time, window[ZB_STAGE_F_EARLY * m],
               window[ZB_STAGE_F_LATE * m], list, &count);
      continue;
    }
    const int64_t release = window[ZB_STAGE_B_EARLY * m], late = window[ZB_STAGE_B_LATE * m];
    if (window[ZB_STAGE_FUSED_LO * m] == 0)
      consider(state, device, now, done, (unsigned char)i, at->b, release, late, list, &count);
    const int w = zb_class_of_w(device, class->chunk);
    const int64_t least = state->cell[zb_state_array(state, d, zb_pair_array(device, i, w)) + (size_t)k];
    if (window[ZB_STAGE_FUSED_HI * m] == 1 && done[w] >= least)
      consider(state, device, now, done, (unsigned char)(i + ZB_LETTER_FUSED), at->bw, release, late, list,
               &count);
  }
  return count;
}

bool zb_chunked_walk(const struct zb_state *state, int d, const struct zb_preference *preference,
                     uint64_t *random, struct zb_orders *orders) {
  if (state->chain->chunked->fluid) return zb_pour_walk(state, d, preference, random, orders);
  const struct zb_chunked_device *device = &state->chain->chunked->device[d];
  unsigned char *word = zb_orders_word(orders, d);
  int done[ZB_MOST_CLASSES] = {0}, length = 0, left = 0;
  int64_t now = 0;
  for (int i = 0; i < device->classes; i++) left += device->class[i].count;
  while (left > 0) {
    struct candidate list[2 * ZB_MOST_CLASSES];
    const int count = list_candidates(state, d, now, done, list);
    if (count == 0) return false;
    const bool random_choice = preference->noise > 0 && (zb_random(random) >> 56) < preference->noise;
    const struct candidate *best = &list[0];
    for (int i = 1; i < count; i++) {
      const int64_t idle = zb_max(0, list[i].start - now - preference->patience);
      const int64_t least = zb_max(0, best->start - now - preference->patience);
      const int rank = preference->rank[list[i].kind] - preference->rank[best->kind];
      const bool better = random_choice   ? (zb_random(random) >> 63) != 0
                          : idle != least ? idle < least
                          : rank != 0     ? rank < 0
                                          : list[i].slack < best->slack;
      if (better) best = &list[i];
    }
    now = best->end;
    word[length++] = best->letter;
    zb_letter_count(device, best->letter, done);
    left -= best->kind == ZB_BW ? 2 : 1;
  }
  orders->count[d] = length;
  return true;
}
