// pour_walk.c - one device's order from a table that counts F and B alone.
//
// F and B are chosen as in other walks. A W goes before the next of them where it ends before that could
// start, where the memory has no room without it, or where waiting would be idle and the delay still leaves
// time.
#include "solver/exact/chunked_orders.h"
#include "solver/exact/grid.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

struct pour {
  const struct zb_state *state;
  const struct zb_chunked *chunked;
  const struct zb_chunked_device *device;
  int d;
  unsigned char *word;
  int length;
  int done[ZB_MOST_CLASSES];
  int64_t now, bytes;
};

struct choice {
  unsigned char letter;
  enum zb_kind kind;
  int64_t time, bytes, release, by; // by: the latest end
  int64_t start, slack;
};

// A class of W that has one to do; -1: none. The one that frees most memory first.
static int open_weight(const struct pour *pour) {
  const struct zb_chunked_device *device = pour->device;
  int best = -1;
  for (int i = 2 * device->chunks; i < device->classes; i++) {
    int open = -pour->done[i];
    for (int c = 0; c < device->chunks; c++) open += zb_class_of_w(device, c) == i ? pour->done[c] : 0;
    if (open > 0 && (best < 0 || device->class[i].bytes < device->class[best].bytes)) best = i;
  }
  return best;
}

static void emit(struct pour *pour, unsigned char letter, int64_t end, int64_t bytes) {
  pour->word[pour->length++] = letter;
  zb_letter_count(pour->device, letter, pour->done);
  pour->now = end;
  pour->bytes += bytes;
}

static void emit_weight(struct pour *pour, int class) {
  const struct zb_op_class *at = &pour->device->class[class];
  emit(pour, (unsigned char)class, pour->now + at->time, at->bytes);
}

// Runs W until `bytes` more fit. False where that cannot be.
static bool make_room(struct pour *pour, int64_t bytes) {
  if (pour->device->room_bytes == ZB_NO_LIMIT) return true;
  while (pour->bytes + bytes > pour->device->room_bytes) {
    const int weight = open_weight(pour);
    if (weight < 0 || pour->device->class[weight].bytes == 0) return false;
    emit_weight(pour, weight);
  }
  return true;
}

static bool complete_choice(const struct pour *pour, struct choice *choice) {
  struct pour trial = *pour; // only its counts are used
  int64_t bytes = pour->bytes, now = pour->now;
  if (pour->device->room_bytes != ZB_NO_LIMIT) {
    while (bytes + choice->bytes > pour->device->room_bytes) {
      const int weight = open_weight(&trial);
      if (weight < 0 || pour->device->class[weight].bytes == 0) return false;
      trial.done[weight]++;
      bytes += pour->device->class[weight].bytes;
      now += pour->device->class[weight].time;
    }
  }
  int after[ZB_MOST_CLASSES];
  for (int i = 0; i < pour->device->classes; i++) after[i] = pour->done[i];
  zb_letter_count(pour->device, choice->letter, after);
  choice->by = zb_min(choice->by, zb_grid_latest(pour->state->lattice->grid, after));
  choice->start = zb_max(now, choice->release);
  choice->slack = choice->by - choice->start - choice->time;
  return choice->slack >= 0;
}

static int list_choices(const struct pour *pour, struct choice *list) {
  const struct zb_state *state = pour->state;
  const size_t m = (size_t)state->chain->microbatches;
  int count = 0;
  for (int i = 0; i < 2 * pour->device->chunks; i++) {
    const struct zb_op_class *class = &pour->device->class[i];
    const int k = pour->done[i];
    if (k == class->count) continue;
    const struct zb_stage *at = &pour->chunked->stage[class->stage];
    const int64_t *window =
        &state->cell[zb_state_array(state, pour->d, zb_stage_array(class->chunk, 0)) + (size_t)k];
    const bool forward = class->kind == ZB_F;
    struct choice choice = {(unsigned char)i,
                            class->kind,
                            class->time,
                            class->bytes,
                            window[(forward ? ZB_STAGE_F_EARLY : ZB_STAGE_B_EARLY) * m],
                            window[(forward ? ZB_STAGE_F_LATE : ZB_STAGE_B_LATE) * m],
                            0,
                            0};
    if (complete_choice(pour, &choice)) list[count++] = choice;
    if (forward || !at->fused) continue;
    choice = (struct choice){(unsigned char)(i + ZB_LETTER_FUSED),
                             ZB_BW,
                             at->bw,
                             at->b_bytes + at->w_bytes,
                             window[ZB_STAGE_B_EARLY * m],
                             window[ZB_STAGE_B_LATE * m],
                             0,
                             0};
    if (complete_choice(pour, &choice)) list[count++] = choice;
  }
  return count;
}

// What fills the wait for an op without making it late.
static void fill_wait(struct pour *pour, const struct choice *next) {
  for (int weight; (weight = open_weight(pour)) >= 0;) {
    const int64_t end = pour->now + pour->device->class[weight].time;
    if (next->release <= pour->now) return;
    if (end > next->release && zb_max(end, next->release) + next->time > next->by) return;
    emit_weight(pour, weight);
  }
}

bool zb_pour_walk(const struct zb_state *state, int d, const struct zb_preference *preference,
                  uint64_t *random, struct zb_orders *orders) {
  const struct zb_chunked *chunked = state->chain->chunked;
  struct pour pour = {.state = state,
                      .chunked = chunked,
                      .device = &chunked->device[d],
                      .d = d,
                      .word = zb_orders_word(orders, d)};
  for (int left = 2 * pour.device->chunks * chunked->microbatches; left > 0; left--) {
    struct choice list[ZB_MOST_CLASSES];
    const int count = list_choices(&pour, list);
    if (count == 0) return false;
    const bool random_choice = preference->noise > 0 && (zb_random(random) >> 56) < preference->noise;
    const struct choice *best = &list[0];
    for (int i = 1; i < count; i++) {
      const int64_t idle = zb_max(0, list[i].start - pour.now - preference->patience);
      const int64_t least = zb_max(0, best->start - pour.now - preference->patience);
      const int rank = preference->rank[list[i].kind] - preference->rank[best->kind];
      const bool better = random_choice   ? (zb_random(random) >> 63) != 0
                          : idle != least ? idle < least
                          : rank != 0     ? rank < 0
                                          : list[i].slack < best->slack;
      if (better) best = &list[i];
    }
    if (!make_room(&pour, best->bytes)) return false;
    fill_wait(&pour, best);
    emit(&pour, best->letter, zb_max(pour.now, best->release) + best->time, best->bytes);
  }
  for (int weight; (weight = open_weight(&pour)) >= 0;) emit_weight(&pour, weight);
  orders->count[d] = pour.length;
  return true;
}
