// tournament.h - which device decides next: their times of decision as the leaves of a tournament, so that a
// change and the next one to decide cost O(log devices).
//
// clock[i] is device i's next decision, i < leaves, a power of FAN. Behind them stand the winners of the
// matches, round by round: a match between FAN devices, then between the winners of FAN matches, is won by
// the device that decides first (of equals, the lowest). The last entry has won the final. Matches of four
// rather than two keep an op's cost nearly the same for 8 devices and for 64.
#ifndef ZB_TOURNAMENT_H
#define ZB_TOURNAMENT_H

#include <stddef.h>
#include <stdint.h>

struct zb_tournament {
  int64_t *clock; // borrowed
  size_t leaves;
};

enum { ZB_TOURNAMENT_FAN = 4 };

static inline size_t zb_tournament_leaves(int devices) {
  size_t leaves = ZB_TOURNAMENT_FAN;
  while (leaves < (size_t)devices) leaves *= ZB_TOURNAMENT_FAN;
  return leaves;
}

static inline size_t zb_tournament_final(size_t leaves) {
  return leaves + (leaves - 1) / (ZB_TOURNAMENT_FAN - 1) - 1;
}

// How many entries of `clock` a tournament of so many devices needs.
static inline size_t zb_tournament_length(int devices) {
  return zb_tournament_final(zb_tournament_leaves(devices)) + 1;
}

// Nobody ever decides.
static inline void zb_tournament_begin(struct zb_tournament *t, int64_t *clock, int devices) {
  *t = (struct zb_tournament){clock, zb_tournament_leaves(devices)};
  for (size_t k = 0; k < t->leaves; k++) clock[k] = INT64_MAX;
  for (size_t matches = t->leaves / ZB_TOURNAMENT_FAN, k = t->leaves; matches > 0;
       matches /= ZB_TOURNAMENT_FAN)
    for (size_t i = 0; i < matches; i++) clock[k++] = (int64_t)(i * (t->leaves / matches));
}

static inline int64_t zb_tournament_earlier(const int64_t *clock, int64_t left, int64_t right) {
  return clock[left] <= clock[right] ? left : right;
}

// The device decides at at_ns, INT64_MAX: never.
static inline void zb_tournament_set(struct zb_tournament *t, int device, int64_t at_ns) {
  int64_t *const clock = t->clock, *round = clock + t->leaves;
  size_t matches = t->leaves / ZB_TOURNAMENT_FAN, k = (size_t)device / ZB_TOURNAMENT_FAN;
  int64_t a = (int64_t)(k * ZB_TOURNAMENT_FAN), b = a + 1, c = a + 2, d = a + 3;
  clock[device] = at_ns;
  for (;;) {
    const int64_t first =
        zb_tournament_earlier(clock, zb_tournament_earlier(clock, a, b), zb_tournament_earlier(clock, c, d));
    if (round[k] == first && first != device) return;
    round[k] = first;
    if (matches == 1) return;
    const int64_t *const group = round + (k & ~(size_t)(ZB_TOURNAMENT_FAN - 1));
    a = group[0], b = group[1], c = group[2], d = group[3];
    round += matches;
    matches /= ZB_TOURNAMENT_FAN;
    k /= ZB_TOURNAMENT_FAN;
  }
}

// The device that decides first, and of those the lowest.
static inline int zb_tournament_first(const struct zb_tournament *t) {
  return (int)t->clock[zb_tournament_final(t->leaves)];
}

#endif
