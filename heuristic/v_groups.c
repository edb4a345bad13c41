// v_groups.c - zb-v in groups (section 6 of arXiv 2401.10241), device by device, without a look at times.
//
// In capitals what belongs to chunk 1, in small letters to chunk 0. Device i of p, with q = p-1-i behind it:
//
//   f 2q+1 times        what is on its way to the bend and back
//   F f i times         the flight comes back: 2p - i chunks of chunk 0, and no more fit
//   F B W q times       nothing but chunk 1 goes on until the first b is there
//   F B b f W w         the steady state, m-2p+1+i times
//   F B b W w q times   no f is left
//   F B b               the last F
//   B b i times         backwards go down and up again as fast as they can, W wait
//   W b q times         the last b come up; one W, of either chunk in turn, fills the gap before each
//   W                   what is left
//
// A walk by turns under real times departs from this where an op is late by any time, however short, and on
// many devices what it then does early is missed later. Of the end two things are better chosen by cost. The
// device that is the longest should have one W left after its last b and not two. And where b takes longer
// than f, the b that come up with the last F fall behind at every device; those of the first devices must not
// hold up the last B, so that there b comes a place later: F B, B b i times, b.
#include "heuristic/v_groups.h"

#include <assert.h>

struct line {
  struct zb_schedule_builder *builder;
  int stage[2];
  int count[2][3]; // ops appended: of a chunk and a kind
};

static void append(struct line *line, int chunk, enum zb_kind kind) {
  zb_builder_append(line->builder, line->stage[chunk], kind, line->count[chunk][kind]++);
}

// A group, `times` times.
static void append_groups(struct line *line, const char *group, int times) {
  for (; times > 0; times--)
    for (const char *c = group; *c; c++) {
      const bool high = *c == 'F' || *c == 'B' || *c == 'W';
      const bool forward = *c == 'F' || *c == 'f', backward = *c == 'B' || *c == 'b';
      append(line, high, forward ? ZB_F : backward ? ZB_B : ZB_W);
    }
}

static int open_weights(const struct line *line, int chunk) {
  return line->count[chunk][ZB_B] - line->count[chunk][ZB_W];
}

// A W of this chunk, or else of the other; whether there was one.
static bool append_weight(struct line *line, int chunk) {
  if (open_weights(line, chunk) == 0) chunk = !chunk;
  if (open_weights(line, chunk) == 0) return false;
  append(line, chunk, ZB_W);
  return true;
}

bool zb_v_groups_apply(const struct zb_profile *profile) {
  return profile->microbatches >= 2 * profile->devices - 1;
}

void zb_v_groups_fill(const struct zb_profile *profile, const struct zb_v_endings *endings,
                      struct zb_schedule_builder *builder) {
  const int p = profile->devices;
  assert(profile->placement == ZB_V && zb_v_groups_apply(profile));
  for (int i = 0; i < p; i++) {
    struct line line = {.builder = builder, .stage = {i, 2 * p - 1 - i}};
    const int behind = p - 1 - i;
    append_groups(&line, "f", 2 * behind + 1);
    append_groups(&line, "Ff", i);
    append_groups(&line, "FBW", behind);
    append_groups(&line, "FBbfWw", profile->microbatches - 2 * p + 1 + i);
    append_groups(&line, "FBbWw", behind);
    append_groups(&line, i < endings->late ? "FB" : "FBb", 1);
    append_groups(&line, "Bb", i);
    if (i < endings->late) append_groups(&line, "b", 1);
    for (int k = 0; k < behind; k++) {
      append_weight(&line, k % 2 == 0);
      if (k == 0 && i < endings->hasty) append_weight(&line, 0);
      append(&line, 0, ZB_B);
    }
    for (int chunk = 1; append_weight(&line, chunk); chunk = !chunk) continue;
  }
}
