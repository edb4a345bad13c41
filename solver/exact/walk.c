// walk.c - one device's order, read off its table of latest times.
//
// The walk keeps the clock a device would see if everything else came at its earliest. A step is taken
// only if the table says that the rest still fits, so it never has to turn back.
#include "solver/exact/walk.h"

#include "solver/exact/chunked_orders.h"
#include "solver/model/number.h"
#include "solver/model/random.h"

const struct zb_preference zb_preferences[] = {
    {{2, 0, 1, 0}, 0, 0}, // B, then W, and F as late as its deadline allows: leaves room upstream
    {{1, 0, 2, 0}, 0, 0}, // B, F, W
    {{2, 1, 0, 1}, 0, 0}, // W, B, F
    {{0, 1, 2, 1}, 0, 0}, // F, B, W
};
const int zb_preference_count = sizeof zb_preferences / sizeof *zb_preferences;

struct step {
  bool possible;
  int64_t start, end;
};

// An op that starts no earlier than `release` and leads to the given state.
static struct step step_to(const struct zb_state *state, int64_t now, int64_t release, int64_t time,
                           int64_t late, int forwards, int backwards, int weights) {
  struct step step = {false, zb_max(now, release), 0};
  step.end = step.start + time;
  step.possible = step.end <= zb_min(late, zb_lattice_latest(state->lattice, forwards, backwards, weights));
  return step;
}

bool zb_walk(const struct zb_state *state, int d, const struct zb_preference *preference, uint64_t *random,
             struct zb_orders *orders) {
  if (state->chain->chunked) return zb_chunked_walk(state, d, preference, random, orders);
  const struct zb_chain_device *device = &state->chain->device[d];
  const int m = state->chain->microbatches;
  unsigned char *word = zb_orders_word(orders, d);
  int64_t now = 0;
  int count = 0;
  for (int f = 0, b = 0, w = 0; f < m || b < m || w < m;) {
    struct step step[4] = {{0}};
    if (f < m) {
      step[ZB_F] = step_to(state, now, zb_state_get(state, d, ZB_F_EARLY, f), device->f,
                           zb_state_get(state, d, ZB_F_LATE, f), f + 1, b, w);
    }
    if (b < f) {
      const int64_t release = zb_state_get(state, d, ZB_B_EARLY, b),
                    late = zb_state_get(state, d, ZB_B_LATE, b);
      if (zb_state_get(state, d, ZB_FUSED_LO, b) == 0) {
        step[ZB_B] = step_to(state, now, release, device->b, late, f, b + 1, w);
      }
      if (zb_state_get(state, d, ZB_FUSED_HI, b) == 1 && w >= zb_state_get(state, d, ZB_Y_LO, b)) {
        step[ZB_BW] = step_to(state, now, release, device->bw, late, f, b + 1, w + 1);
      }
    }
    if (w < b) step[ZB_W] = step_to(state, now, 0, device->w, INT64_MAX, f, b, w + 1);
    int best = -1;
    const bool random_choice = preference->noise > 0 && (zb_random(random) >> 56) < preference->noise;
    for (int kind = 0; kind < 4; kind++) {
      if (!step[kind].possible) continue;
      if (best < 0) {
        best = kind;
        continue;
      }
      const int64_t idle = zb_max(0, step[kind].start - now - preference->patience);
      const int64_t least = zb_max(0, step[best].start - now - preference->patience);
      const bool better = random_choice   ? (zb_random(random) >> 63) != 0
                          : idle != least ? idle < least
                                          : preference->rank[kind] < preference->rank[best];
      if (better) best = kind;
    }
    if (best < 0) return false;
    now = step[best].end;
    word[count++] = (unsigned char)best;
    if (best == ZB_F) f++;
    if (best == ZB_B || best == ZB_BW) b++;
    if (best == ZB_W || best == ZB_BW) w++;
  }
  orders->count[d] = count;
  return true;
}
