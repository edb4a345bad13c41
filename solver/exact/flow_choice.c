// flow_choice.c - which op of a device fits in before which, and what that leaves.
#include "solver/exact/flow_choice.h"

#include <string.h>

#include "solver/exact/flow_look.h"
#include "solver/model/number.h"

static void tell_device(struct zb_flow_hand *hand, int d) {
  for (int l = hand->device[d].first; l < hand->device[d].end; l++) zb_flow_mark_stale(hand, l);
}

static bool can_take(const struct zb_flow_hand *hand, int l) {
  return hand->sent[l] && hand->next[l] < zb_flow_never;
}

static int64_t start_next(const struct zb_flow_hand *hand, int l) {
  return zb_max(hand->next[l], hand->clock[hand->lane[l].device]);
}

// Most W that `u`, or an F between it and the next op of `o`, may need, if that op has run before.
static int32_t displaced(const struct zb_flow_hand *hand, int o, int u) {
  const int d = hand->lane[o].device;
  const struct zb_flow_device *device = &hand->device[d];
  const struct zb_fluid_table *table = &hand->table[d];
  uint16_t *n = &hand->count[device->first];
  n[u - device->first]++;
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, n);
  n[u - device->first]--;
  if (!cell) return 0;
  int32_t most = table->displaced[(cell - table->cell) * (device->end - device->first) + o - device->first];
  if (u >= device->forwards) {
    const int32_t need =
        zb_fluid_weights(device->gives, hand->over[d] + hand->lane[o].bytes + hand->lane[u].bytes);
    if (need > most) most = need;
  }
  return most;
}

// Whether `o`, which can come next, fits in before `u` without harm in any completion that has `u` next
// (flow_front.h). `u` starts no earlier than `start_u`.
static bool goes_before(const struct zb_flow_hand *hand, int o, int u, int64_t start_u) {
  const int d = hand->lane[o].device;
  const struct zb_flow_device *device = &hand->device[d];
  const int64_t start = start_next(hand, o), end = start + hand->lane[o].time;
  // Of two that take no time one goes before the other.
  if (end > start_u || (end == start_u && start == start_u && o > u)) return false;
  if (!device->limited) return true;
  // Whole W prove nothing; of a chain they are placed well enough so.
  if (!hand->weights.fluid && device->end - device->first == 2) return true;
  const bool forward = o >= device->forwards;
  int64_t weights = displaced(hand, o, u);
  if (weights == 0) return true;
  if (weights > hand->backwards[d]) {
    if (forward) return false;
    weights = hand->backwards[d];
  }
  const int64_t poured = zb_min(hand->due[d], hand->poured[d] + start - hand->clock[d]);
  return end - poured + weights * device->w <= start_u;
}

static void send(struct zb_flow_hand *hand, int l, int64_t end) {
  const int to = hand->lane[l].target;
  if (to < 0) return;
  const int64_t there = end + hand->lane[l].delay;
  const uint16_t k = hand->count[l];
  hand->arrival[(size_t)to * (size_t)hand->lanes.microbatches + k] = there;
  // That may be later than was thought when starts were looked up.
  if (k == hand->count[to]) {
    zb_flow_mark_stale(hand, to);
    zb_flow_raise_start(hand, to, there);
    if (hand->next[to] < zb_flow_never) hand->next[to] = zb_max(hand->next[to], there);
  }
}

// Runs the next op of a lane at its earliest start.
static void run_op(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const int64_t start = start_next(hand, l), end = start + hand->lane[l].time;
  zb_flow_pour_until(hand, d, start);
  hand->clock[d] = end;
  send(hand, l, end);
  zb_flow_count(hand, l, 1);
  hand->start[l] = zb_flow_unknown;
  for (int i = hand->device[d].first; i < hand->device[d].end; i++) hand->last_start[i] = zb_flow_unknown;
  hand->wait[d] = ZB_NO_LANE;
  tell_device(hand, d);
  zb_flow_write(hand, d, hand->table[d].device.lane[hand->lane[l].own]);
  // W that take no time are never poured.
  if (hand->lane[l].kind == ZB_B && hand->device[d].w == 0 && !hand->weights.fluid)
    zb_flow_write(hand, d, hand->lanes.first_weight[d]);
}

// Whether a whole W may go before what can start next and waits for it: where much of it fits in before, or
// many wait.
static bool w_may_go_first(const struct zb_flow_hand *hand, int d, int64_t start) {
  if (hand->weights.fluid) return false;
  const int64_t w = hand->device[d].w, there = zb_flow_pourable(hand, d);
  return there > 0 &&
         (hand->weights.nearly * (start - hand->clock[d]) >= w || there >= hand->weights.many * w);
}

// What can be next on a device: those that nothing fits in before. `first`: the end of what ends first of
// those that can come next; never: none can. What cannot come yet starts at `least` or later, in any case.
// `ripe`: and not before `first`.
static int list_next(const struct zb_flow_hand *hand, int d, int64_t least, int *list, int64_t *first,
                     bool *ripe) {
  const struct zb_flow_device *device = &hand->device[d];
  int ready[ZB_MOST_CLASSES], readies = 0, count = 0;
  *first = zb_flow_never;
  *ripe = true;
  for (int l = device->first; l < device->end; l++) {
    if (!can_take(hand, l)) continue;
    ready[readies++] = l;
    *first = zb_min(*first, start_next(hand, l) + hand->lane[l].time);
  }
  if (readies == 0) return 0;
  for (int l = device->first; l < device->end; l++) {
    if (hand->next[l] >= zb_flow_never) continue;
    const int64_t start = hand->sent[l] ? start_next(hand, l) : zb_max(hand->next[l], least);
    if (!hand->sent[l] && start < *first) *ripe = false;
    bool out = false;
    for (int i = 0; i < readies && !out; i++) out = ready[i] != l && goes_before(hand, ready[i], l, start);
    if (!out) list[count++] = l;
  }
  return count;
}

static bool run_forced(struct zb_flow_hand *hand) {
  bool any = false, ripe;
  int list[ZB_MOST_CLASSES];
  int64_t first;
  for (int d = 0; d < hand->lanes.devices; d++) {
    if (!hand->changed[d]) continue;
    hand->changed[d] = false;
    if (list_next(hand, d, 0, list, &first, &ripe) != 1 || !hand->sent[list[0]]) continue;
    if (w_may_go_first(hand, d, hand->next[list[0]])) continue;
    run_op(hand, list[0]);
    any = true;
  }
  return any;
}

bool zb_flow_settle(struct zb_flow_hand *hand) {
  do {
    if (!zb_flow_look_ahead(hand)) return false;
  } while (run_forced(hand));
  return true;
}

// The choices on a device whose list of what can be next is given.
static int choices_on(const struct zb_flow_hand *hand, int d, const int *list, int count,
                      struct zb_flow_choice *choice) {
  int choices = 0;
  int64_t start = zb_flow_never;
  for (int i = 0; i < count; i++) {
    const bool takes = hand->sent[list[i]];
    choice[choices++] =
        (struct zb_flow_choice){takes ? ZB_TAKE : ZB_WAIT_FOR, (unsigned char)hand->lane[list[i]].own};
    if (takes) start = zb_min(start, hand->next[list[i]]);
  }
  if (start >= zb_flow_never || !w_may_go_first(hand, d, start)) return choices;
  for (int i = 0; i < count; i++)
    if (hand->sent[list[i]])
      choice[choices++] = (struct zb_flow_choice){ZB_W_THEN_TAKE, (unsigned char)hand->lane[list[i]].own};
  return choices;
}

// The device to branch on: of those where what cannot come yet starts late enough the one where an op ends
// first; or the one where an op ends first of all, as what cannot come yet waits for one of these.
int zb_flow_choose(const struct zb_flow_hand *hand, struct zb_flow_choice *choice, int *choices) {
  int chosen = -1, first = -1, list[ZB_MOST_CLASSES];
  int64_t least = zb_flow_never, first_end = zb_flow_never, end;
  bool ripe;
  for (int d = 0; d < hand->lanes.devices; d++) {
    const int count = list_next(hand, d, 0, list, &end, &ripe);
    if (count == 0) continue;
    if (end < first_end) {
      first_end = end;
      first = d;
    }
    if (!ripe || end >= least) continue;
    least = end;
    chosen = d;
    *choices = choices_on(hand, d, list, count, choice);
  }
  if (chosen >= 0 || first < 0) return chosen;
  const int count = list_next(hand, first, first_end, list, &end, &ripe);
  *choices = choices_on(hand, first, list, count, choice);
  return first;
}

void zb_flow_take(struct zb_flow_hand *hand, int d, struct zb_flow_choice choice) {
  // Alike, whether it was looked ahead from just now or what was found has been kept.
  memset(hand->stale, 0, hand->stale_words * sizeof *hand->stale);
  memset(hand->changed, false, (size_t)hand->lanes.devices * sizeof *hand->changed);
  if (choice.act == ZB_WAIT_FOR) {
    hand->wait[d] = hand->device[d].first + choice.lane;
    tell_device(hand, d);
    return;
  }
  if (choice.act == ZB_W_THEN_TAKE) {
    zb_flow_pour(hand, d, hand->device[d].w);
    hand->clock[d] += hand->device[d].w;
  }
  run_op(hand, hand->device[d].first + choice.lane);
}
