// flow_hand.c - what is implied and forced, what there is to choose, and packing.
#include "solver/exact/flow_hand.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Most states of all tables, and most F and B.
static const size_t most_cells = (size_t)1 << 22, most_ops = (size_t)1 << 22;

static const int64_t never = INT64_MAX / 4, unknown = INT64_MIN;

// Passes of looking ahead: what is not found in these is left.
enum { MOST_PASSES = 2 };

enum { NONE = -1 };

static bool is_over(const struct zb_flow_hand *hand, int l) {
  return hand->count[l] == hand->lanes.microbatches;
}

static bool is_done(const struct zb_flow_hand *hand, int d) {
  // B of the first stage come last.
  return is_over(hand, hand->device[d].first);
}

// Looking ahead.

// When what the next op of a lane waits for is done and there, at the earliest, and whether it is done.
static int64_t there(const struct zb_flow_hand *hand, int l, bool *sent) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  int64_t time = hand->clock[lane->device];
  *sent = true;
  if (lane->source >= 0) {
    *sent = k < hand->count[lane->source];
    time = zb_max(time, *sent ? hand->arrival[(size_t)l * (size_t)hand->lanes.microbatches + k]
                              : hand->start[lane->source] + lane->travel);
  }
  for (int i = 0; i < 2; i++) {
    const int before = lane->before[i];
    if (before < 0) continue;
    if (hand->count[before] > k) continue;
    *sent = false;
    time = zb_max(time, hand->start[before] + hand->lane[before].time);
  }
  return time;
}

// W that have to be done before F are within a limit that they are over by so much.
static int64_t weights_for(const struct zb_flow_device *device, int64_t over) {
  if (over <= 0) return 0;
  return device->gives > 0 ? (over + device->gives - 1) / device->gives : INT32_MAX;
}

// Earliest time at which memory allows the next F of a lane, however many B run before it, the first of them
// from `start_b` on: more B give more memory back, and may so take the place of W.
static int64_t when_memory_fits(const struct zb_flow_hand *hand, int l, int64_t start_b) {
  const int d = hand->lane[l].device;
  const struct zb_flow_device *device = &hand->device[d];
  const int64_t backwards = hand->backwards[d];
  // Of a chain no other F can make room for more B.
  int64_t left = (device->forwards - device->first) * hand->lanes.microbatches - backwards;
  if (device->end - device->first == 2) left = hand->count[device->forwards] - backwards;
  if (hand->wait[d] == l) left = 0;
  int64_t least = never, over = hand->over[d] + hand->lane[l].bytes;
  for (int64_t more = 0; more <= left; more++, over -= device->most_b_gives) {
    const int64_t need = weights_for(device, over);
    if (need > backwards + more) continue;
    const int64_t busy = more * device->least_b;
    int64_t time = hand->clock[d] + busy + need * device->w - hand->poured[d];
    // All W, and so that of the last B, which comes after it.
    if (more > 0) time = zb_max(time, start_b + busy + (need == backwards + more ? device->w : 0));
    least = zb_min(least, time);
    if (need == 0 || start_b + busy >= least) break;
  }
  return least;
}

// Time from the clock until there is memory for the next F of a lane with no other op in between; never, if
// that cannot be.
static int64_t wait_for_memory(const struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const struct zb_flow_device *device = &hand->device[d];
  if (!device->limited) return 0;
  const int64_t need = weights_for(device, hand->over[d] + hand->lane[l].bytes);
  return need > hand->backwards[d] ? never : need * device->w - hand->poured[d];
}

static void mark_stale(struct zb_flow_hand *hand, int l) {
  const int position = hand->lane[l].position;
  hand->stale[position / 64] |= (uint64_t)1 << position % 64;
}

// The start of a lane's next op has changed: it is looked up again where that op is waited for.
static void tell_waiting(struct zb_flow_hand *hand, int l) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  if (lane->target >= 0 && hand->count[lane->target] == k) mark_stale(hand, lane->target);
  for (int i = 0; i < 2; i++)
    if (lane->after[i] >= 0 && hand->count[lane->after[i]] == k) mark_stale(hand, lane->after[i]);
}

static void tell_device(struct zb_flow_hand *hand, int d) {
  for (int l = hand->device[d].first; l < hand->device[d].end; l++) mark_stale(hand, l);
}

static void raise_start(struct zb_flow_hand *hand, int l, int64_t start) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  if (start <= hand->start[l]) return;
  hand->start[l] = start;
  if (start + lane->time > lane->late[hand->count[l]]) hand->late = true;
  tell_waiting(hand, l);
}

// Earliest start of the next op of a lane. What was known of the same op still holds.
static void look_up(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device, wait = hand->wait[d];
  if (is_over(hand, l)) {
    hand->start[l] = hand->next[l] = never;
    hand->sent[l] = false;
    return;
  }
  const int64_t here = there(hand, l, &hand->sent[l]);
  int64_t start = zb_max(hand->start[l], here);
  hand->next[l] = start;
  if (hand->lane[l].kind == ZB_F) {
    const int64_t waits = wait_for_memory(hand, l);
    if (waits > 0) {
      hand->next[l] = waits < never ? zb_max(start, hand->clock[d] + waits) : never;
      start = zb_max(start, when_memory_fits(hand, l, hand->clock[d]));
    }
  }
  if (wait >= 0 && l != wait) {
    hand->next[l] = never;
    if (hand->start[wait] < never) start = zb_max(start, hand->start[wait] + hand->lane[wait].time);
  }
  raise_start(hand, l, start);
}

// All that has changed, along the pipe. Returns whether something had.
static bool look_down(struct zb_flow_hand *hand) {
  bool any = false;
  for (size_t word = 0; word < hand->stale_words; word++) {
    while (hand->stale[word] != 0) {
      const int bit = __builtin_ctzll(hand->stale[word]), l = hand->down[64 * word + (size_t)bit];
      hand->stale[word] &= hand->stale[word] - 1;
      look_up(hand, l);
      hand->touched[hand->lane[l].device] = true;
      any = true;
    }
  }
  return any;
}

static int64_t pourable(const struct zb_flow_hand *hand, int d) { return hand->due[d] - hand->poured[d]; }

static void write_op(const struct zb_flow_hand *hand, int d, int number) {
  if (!hand->orders) return;
  zb_orders_word(hand->orders, d)[hand->orders->count[d]++] = hand->lanes.lane[number].letter;
}
static void write_weight(const struct zb_flow_hand *hand, int d) {
  write_op(hand, d, hand->lanes.first_weight[d]);
}

// Runs `work` of W that is there; whole W are written down.
static void pour(struct zb_flow_hand *hand, int d, int64_t work) {
  hand->poured[d] += work;
  if (!hand->orders || hand->weights.fluid || work == 0) return;
  for (int64_t i = work / hand->device[d].w; i > 0; i--) write_weight(hand, d);
}

// What fits before a time at which something else can start. The clock is that time unless whole W wait.
static void pour_until(struct zb_flow_hand *hand, int d, int64_t time) {
  const int64_t there = pourable(hand, d), gap = time - hand->clock[d], w = hand->device[d].w;
  if (hand->weights.fluid || there <= gap) {
    pour(hand, d, zb_min(there, gap));
    hand->clock[d] = time;
  } else {
    const int64_t work = gap - gap % w;
    pour(hand, d, work);
    hand->clock[d] += work;
  }
}

// Time in hand of a device by its table; negative: none.
static int64_t time_in_hand(const struct zb_flow_hand *hand, int d) {
  const struct zb_fluid_table *table = &hand->table[d];
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, &hand->count[hand->device[d].first]);
  int64_t most = -1;
  for (int i = 0; cell && i < cell->points; i++) {
    const struct zb_fluid_point *point = &table->point[cell->point + (uint32_t)i];
    most = zb_max(most, zb_min(point->latest, point->lead + hand->poured[d]) - hand->clock[d]);
  }
  return most;
}

// Latest start of the next op of a lane, if it is the next of its device: one of the points behind it holds,
// with W poured up to there. -1: it cannot be.
static int64_t last_start(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const struct zb_fluid_table *table = &hand->table[d];
  const int64_t time = hand->lane[l].time;
  hand->count[l]++;
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, &hand->count[hand->device[d].first]);
  hand->count[l]--;
  int64_t last = -1;
  for (int i = 0; cell && i < cell->points; i++) {
    const struct zb_fluid_point *point = &table->point[cell->point + (uint32_t)i];
    if (hand->clock[d] + time - hand->poured[d] <= point->lead)
      last = zb_max(last, zb_min(point->latest, point->lead + hand->due[d]) - time);
  }
  return last;
}

// Raises the clock of a device to where something can run next.
static void raise_clock(struct zb_flow_hand *hand, int d, int64_t next) {
  const struct zb_flow_device *device = &hand->device[d];
  pour_until(hand, d, next);
  for (int l = device->first; l < device->end; l++) {
    raise_start(hand, l, hand->clock[d]);
    // It may be that too little W was there to pour.
    if (device->limited && l >= device->forwards && hand->next[l] > hand->start[l]) mark_stale(hand, l);
  }
}

// A device with nothing but W left. False: they end too late.
static bool finish(struct zb_flow_hand *hand, int d) {
  const int64_t rest = pourable(hand, d);
  pour(hand, d, rest);
  hand->clock[d] += rest;
  hand->cost = zb_max(hand->cost, hand->clock[d] - hand->lanes.origin[d]);
  return hand->clock[d] <= hand->lanes.horizon[d];
}

// What is known of an F that waits for memory once that of B is.
static void look_again(struct zb_flow_hand *hand, int l) {
  const struct zb_flow_device *device = &hand->device[hand->lane[l].device];
  int64_t start_b = never;
  for (int b = device->first; b < device->forwards; b++) start_b = zb_min(start_b, hand->start[b]);
  raise_start(hand, l, when_memory_fits(hand, l, start_b));
  hand->next[l] = zb_max(hand->next[l], hand->start[l]);
}

// A device of which lanes were looked up: takes out what can be next, but with which it has no time in hand.
// What is not next starts behind what is. False: nothing can be next, or something is too late.
static bool look_at(struct zb_flow_hand *hand, int d) {
  const struct zb_flow_device *device = &hand->device[d];
  int64_t next = never, end = never;
  bool out = false;
  hand->touched[d] = false;
  hand->changed[d] = true;
  if (is_done(hand, d)) return finish(hand, d);
  for (int l = device->first; l < device->end; l++) {
    if (l >= device->forwards && hand->next[l] > hand->start[l] && !is_over(hand, l)) look_again(hand, l);
    const int64_t start = hand->next[l];
    if (start < never) {
      if (hand->last_start[l] == unknown) hand->last_start[l] = last_start(hand, l);
      if (start <= hand->last_start[l]) {
        next = zb_min(next, start);
        end = zb_min(end, start + hand->lane[l].time);
        continue;
      }
      hand->next[l] = never;
    }
    out = true;
  }
  if (next >= never) return false;
  if (out)
    for (int l = device->first; l < device->end; l++)
      if (hand->next[l] >= never) raise_start(hand, l, end);
  if (next > hand->clock[d]) raise_clock(hand, d, next);
  return !hand->late;
}

bool zb_flow_look_ahead(struct zb_flow_hand *hand) {
  for (int pass = 0; pass < MOST_PASSES && look_down(hand); pass++) {
    if (hand->late) return false;
    for (int d = 0; d < hand->lanes.devices; d++)
      if (hand->touched[d] && !look_at(hand, d)) return false;
  }
  return true;
}

// What is forced.

static bool can_take(const struct zb_flow_hand *hand, int l) {
  return hand->sent[l] && hand->next[l] < never;
}

static int64_t start_next(const struct zb_flow_hand *hand, int l) {
  return zb_max(hand->next[l], hand->clock[hand->lane[l].device]);
}

// How many ops of a lane can run one after another and end by `last`, at most.
static int64_t most_until(const struct zb_flow_hand *hand, int l, int64_t last) {
  const int left = hand->lanes.microbatches - hand->count[l];
  const int64_t time = hand->lane[l].time, room = last - hand->start[l];
  if (left == 0 || room < time) return 0;
  return time > 0 ? zb_min(left, room / time) : left;
}

// Most W that an F of another lane may need which runs before the next op of `f` does, by `last`, were that
// done: B only give memory back, so all F that can be and no B.
static int64_t most_need(const struct zb_flow_hand *hand, int f, int64_t last) {
  const int d = hand->lane[f].device;
  const struct zb_flow_device *device = &hand->device[d];
  int64_t over = hand->over[d] + hand->lane[f].bytes;
  for (int l = device->forwards; l < device->end; l++) {
    if (l == f) continue;
    int64_t more = most_until(hand, l, last);
    // Lanes before it are of later stages, and get no further than it has.
    if (l < f) more = zb_min(more, hand->count[f] - hand->count[l]);
    over += more * hand->lane[l].bytes;
  }
  return weights_for(device, over);
}

// Of a device with one stage: the most W that an F may need which runs before the next B does, were that
// done.
static int64_t most_need_before_b(const struct zb_flow_hand *hand, int d) {
  const struct zb_flow_device *device = &hand->device[d];
  const int64_t each = hand->lane[device->forwards].bytes;
  int left = hand->lanes.microbatches - hand->count[device->forwards];
  int64_t over = hand->over[d] + each;
  if (left == 0 || weights_for(device, over) > hand->backwards[d]) return 0;
  while (--left > 0 && weights_for(device, over + each) <= hand->backwards[d]) over += each;
  return weights_for(device, over + hand->lane[device->first].bytes);
}

// Whether an op now could make an F late that goes before it in the best completion.
static bool does_harm(const struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const struct zb_flow_device *device = &hand->device[d];
  const bool forward = l >= device->forwards, single = device->end - device->first == 2;
  if (!device->limited || (single && (forward || !hand->weights.fluid))) return false;
  const int64_t start = start_next(hand, l);
  const int64_t poured = zb_min(hand->due[d], hand->poured[d] + start - hand->clock[d]);
  if (!forward && poured == hand->due[d]) return false;
  // Where it starts at the latest, all of between has ended.
  const int64_t last = hand->lane[l].late[hand->count[l]] - hand->lane[l].time;
  int64_t start_f = never;
  for (int f = device->forwards; f < device->end; f++)
    if (f != l && most_until(hand, f, last) > 0) start_f = zb_min(start_f, hand->start[f]);
  if (start_f >= never) return false;
  if (!forward && !single) return true;
  const int64_t need = (forward ? most_need(hand, l, last) : most_need_before_b(hand, d)) * device->w;
  if (need <= poured) return false;
  if (start + hand->lane[l].time + need - poured > start_f) return true;
  if (!forward) return false;
  bool others = false;
  for (int b = device->first; b < device->forwards; b++) others |= most_until(hand, b, last) > 0;
  return others || need > hand->due[d];
}

static void send(struct zb_flow_hand *hand, int l, int64_t end) {
  const int to = hand->lane[l].target;
  if (to < 0) return;
  const int64_t there = end + hand->lane[l].delay;
  const uint16_t k = hand->count[l];
  hand->arrival[(size_t)to * (size_t)hand->lanes.microbatches + k] = there;
  mark_stale(hand, to);
  // That may be later than was thought when starts were looked up.
  if (k == hand->count[to]) {
    raise_start(hand, to, there);
    if (hand->next[to] < never) hand->next[to] = zb_max(hand->next[to], there);
  }
}

static void count_op(struct zb_flow_hand *hand, int l, int times) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const int d = lane->device;
  hand->count[l] = (uint16_t)(hand->count[l] + times);
  hand->over[d] += times * lane->bytes;
  hand->due[d] += times * lane->weight;
  if (lane->kind == ZB_B) hand->backwards[d] += times;
}

// Runs the next op of a lane at its earliest start.
static void run_op(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const int64_t start = start_next(hand, l), end = start + hand->lane[l].time;
  pour_until(hand, d, start);
  hand->clock[d] = end;
  send(hand, l, end);
  count_op(hand, l, 1);
  hand->start[l] = INT64_MIN;
  for (int i = hand->device[d].first; i < hand->device[d].end; i++) hand->last_start[i] = unknown;
  hand->wait[d] = NONE;
  tell_device(hand, d);
  write_op(hand, d, hand->table[d].device.lane[hand->lane[l].own]);
  // W that take no time are never poured.
  if (hand->lane[l].kind == ZB_B && hand->device[d].w == 0 && !hand->weights.fluid) write_weight(hand, d);
}

// Whether a whole W may go before what can start next and waits for it: where much of it fits in before, or
// many wait.
static bool w_may_go_first(const struct zb_flow_hand *hand, int d, int64_t start) {
  if (hand->weights.fluid) return false;
  const int64_t w = hand->device[d].w, there = pourable(hand, d);
  return there > 0 &&
         (hand->weights.nearly * (start - hand->clock[d]) >= w || there >= hand->weights.many * w);
}

// Whether `o`, which can come next and do no harm, fits in before `l` where that is next.
static bool fits_before(const struct zb_flow_hand *hand, int o, int l, int64_t least) {
  const int64_t end = start_next(hand, o) + hand->lane[o].time, other = zb_max(hand->next[l], least);
  return end < other || (end == other && (hand->next[o] < other || o < l));
}

// What can be next on a device: those that nothing fits in before. `first`: the end of what ends first of
// those that can come next; never: none can. What cannot come yet starts at `least` or later, in any case.
// `ripe`: and not before `first`.
static int list_next(const struct zb_flow_hand *hand, int d, int64_t least, int *list, int64_t *first,
                     bool *ripe) {
  const struct zb_flow_device *device = &hand->device[d];
  int ready[ZB_MOST_CLASSES], readies = 0, count = 0;
  enum { UNKNOWN, HARMLESS, HARMFUL } harm[ZB_MOST_CLASSES];
  *first = never;
  *ripe = true;
  for (int l = device->first; l < device->end; l++) {
    if (!can_take(hand, l)) continue;
    harm[readies] = UNKNOWN;
    ready[readies++] = l;
    *first = zb_min(*first, start_next(hand, l) + hand->lane[l].time);
  }
  if (readies == 0) return 0;
  for (int l = device->first; l < device->end; l++) {
    if (hand->next[l] >= never) continue;
    const bool takes = hand->sent[l];
    if (!takes && zb_max(hand->next[l], least) < *first) *ripe = false;
    bool out = false;
    for (int i = 0; i < readies && !out; i++) {
      if (ready[i] == l || !fits_before(hand, ready[i], l, takes ? 0 : least)) continue;
      if (harm[i] == UNKNOWN) harm[i] = does_harm(hand, ready[i]) ? HARMFUL : HARMLESS;
      out = harm[i] == HARMLESS;
    }
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

int zb_flow_done(const struct zb_flow_hand *hand) {
  int sum = 0;
  for (int l = 0; l < hand->flows; l++) sum += hand->count[l];
  return sum;
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
  int64_t start = never;
  for (int i = 0; i < count; i++) {
    const bool takes = hand->sent[list[i]];
    choice[choices++] =
        (struct zb_flow_choice){takes ? ZB_TAKE : ZB_WAIT_FOR, (unsigned char)hand->lane[list[i]].own};
    if (takes) start = zb_min(start, hand->next[list[i]]);
  }
  if (start >= never || !w_may_go_first(hand, d, start)) return choices;
  for (int i = 0; i < count; i++)
    if (hand->sent[list[i]])
      choice[choices++] = (struct zb_flow_choice){ZB_W_THEN_TAKE, (unsigned char)hand->lane[list[i]].own};
  return choices;
}

// The device to branch on: of those where what cannot come yet starts late enough the one where an op ends
// first; or the one where an op ends first of all, as what cannot come yet waits for one of these.
int zb_flow_choose(const struct zb_flow_hand *hand, struct zb_flow_choice *choice, int *choices) {
  int chosen = -1, first = -1, list[ZB_MOST_CLASSES];
  int64_t least = never, first_end = never, end;
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

// Packing.

static void pack_key(struct zb_flow_hand *hand) {
  uint16_t *key = (uint16_t *)hand->packed;
  memset(key, 0, hand->key_words * sizeof(int64_t));
  memcpy(key, hand->count, (size_t)hand->flows * sizeof *key);
  unsigned char *wait = (unsigned char *)(key + hand->flows);
  for (int d = 0; d < hand->lanes.devices; d++)
    if (hand->wait[d] >= 0) wait[d] = (unsigned char)(1 + hand->lane[hand->wait[d]].own);
}

// Those that wait take turns from the start of the first on. Returns false where one cannot end in time.
static bool pack_waiting(struct zb_flow_hand *hand, int64_t **word) {
  const size_t m = (size_t)hand->lanes.microbatches;
  for (int l = 0; l < hand->flows; l++) {
    const struct zb_flow_lane *lane = &hand->lane[l];
    if (lane->source < 0) continue;
    int64_t turn = hand->start[l];
    for (int k = hand->count[l]; k < hand->count[lane->source]; k++) {
      turn = zb_max(turn, hand->arrival[(size_t)l * m + (size_t)k]);
      *(*word)++ = turn;
      turn += lane->time;
      if (turn > lane->late[k]) return false;
    }
  }
  return true;
}

size_t zb_flow_pack(struct zb_flow_hand *hand, int64_t *score) {
  const int devices = hand->lanes.devices;
  int64_t *clock = hand->packed + hand->key_words, *lead = clock + devices;
  int64_t least = INT64_MAX, sum = 0;
  int open = 0;
  for (int d = 0; d < devices; d++) {
    clock[d] = lead[d] = 0;
    if (is_done(hand, d)) continue;
    const int64_t left = time_in_hand(hand, d);
    if (left < 0) return 0;
    least = zb_min(least, left);
    sum += left;
    open++;
    clock[d] = hand->clock[d];
    lead[d] = hand->clock[d] - hand->poured[d];
  }
  *score = open ? 4 * least + sum / open : 0;
  lead[devices] = hand->cost;
  pack_key(hand);
  int64_t *word = lead + devices + 1;
  return pack_waiting(hand, &word) ? (size_t)(word - hand->packed) : 0;
}

static bool is_sent(const struct zb_flow_hand *hand, int l) {
  bool sent;
  there(hand, l, &sent);
  return sent;
}

// Nothing is done, and nothing known.
static void forget(struct zb_flow_hand *hand) {
  for (int l = 0; l < hand->flows; l++) {
    hand->start[l] = INT64_MIN;
    hand->last_start[l] = unknown;
    mark_stale(hand, l);
  }
  hand->late = false;
  memset(hand->touched, false, (size_t)hand->lanes.devices * sizeof *hand->touched);
  memset(hand->count, 0, (size_t)hand->flows * sizeof *hand->count);
  for (int d = 0; d < hand->lanes.devices; d++) {
    hand->over[d] = hand->device[d].limited ? -hand->lanes.room_bytes[d] : 0;
    hand->backwards[d] = hand->due[d] = 0;
  }
}

void zb_flow_unpack(struct zb_flow_hand *hand, const int64_t *packed) {
  const size_t devices = (size_t)hand->lanes.devices, m = (size_t)hand->lanes.microbatches;
  const uint16_t *key = (const uint16_t *)packed;
  const unsigned char *wait = (const unsigned char *)(key + hand->flows);
  forget(hand);
  for (int l = 0; l < hand->flows; l++) count_op(hand, l, key[l]);
  const int64_t *clock = packed + hand->key_words, *lead = clock + devices, *word = lead + devices + 1;
  hand->cost = lead[devices];
  for (size_t d = 0; d < devices; d++) {
    hand->wait[d] = wait[d] > 0 ? hand->device[d].first + wait[d] - 1 : NONE;
    hand->clock[d] = clock[d];
    hand->poured[d] = clock[d] - lead[d];
    if (is_done(hand, (int)d)) {
      // Its cost is known; nothing is late about it.
      hand->poured[d] = hand->due[d];
      hand->clock[d] = hand->lanes.origin[d];
    }
  }
  for (int l = 0; l < hand->flows; l++) {
    const int source = hand->lane[l].source;
    if (source < 0) continue;
    for (int k = hand->count[l]; k < hand->count[source]; k++)
      hand->arrival[(size_t)l * m + (size_t)k] = *word++;
  }
  for (int l = 0; l < hand->flows; l++) hand->sent[l] = !is_over(hand, l) && is_sent(hand, l);
}

// Choices, and beginning and end.

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
    pour(hand, d, hand->device[d].w);
    hand->clock[d] += hand->device[d].w;
  }
  run_op(hand, hand->device[d].first + choice.lane);
}

void zb_flow_start(struct zb_flow_hand *hand) {
  const size_t devices = (size_t)hand->lanes.devices;
  memset(hand->changed, true, devices * sizeof *hand->changed);
  forget(hand);
  memset(hand->poured, 0, devices * sizeof *hand->poured);
  memcpy(hand->clock, hand->lanes.frame, devices * sizeof *hand->clock);
  for (size_t d = 0; d < devices; d++) hand->wait[d] = NONE;
  hand->cost = 0;
}

static void fill_device(struct zb_flow_hand *hand, int d, int first) {
  const struct zb_fluid_device *list = &hand->table[d].device;
  struct zb_flow_device *device = &hand->device[d];
  *device = (struct zb_flow_device){.first = first,
                                    .forwards = first + list->count / 2,
                                    .end = first + list->count,
                                    .limited = list->limited,
                                    .w = list->w,
                                    .gives = list->gives,
                                    .least_b = INT64_MAX};
  for (int i = 0; i < list->count / 2; i++) {
    device->least_b = zb_min(device->least_b, list->time[i]);
    device->most_b_gives = zb_max(device->most_b_gives, -list->bytes[i]);
  }
}

// Lanes of zb_lanes to those here.
static bool fill_lanes(struct zb_flow_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  int *here = malloc((size_t)lanes->lanes * sizeof *here);
  if (!here) return false;
  for (int d = 0; d < lanes->devices; d++)
    for (int i = 0; i < hand->table[d].device.count; i++)
      here[hand->table[d].device.lane[i]] = hand->device[d].first + i;
  for (int d = 0; d < lanes->devices; d++) {
    for (int i = 0; i < hand->table[d].device.count; i++) {
      const int number = hand->table[d].device.lane[i];
      const struct zb_lane *from = &lanes->lane[number];
      struct zb_flow_lane *lane = &hand->lane[hand->device[d].first + i];
      *lane = (struct zb_flow_lane){.device = d,
                                    .own = i,
                                    .kind = from->kind,
                                    .time = from->time,
                                    .bytes = hand->device[d].limited ? from->bytes : 0,
                                    .weight = hand->table[d].device.weight[i],
                                    .source = NONE,
                                    .target = NONE,
                                    .after = {NONE, NONE},
                                    .late = &lanes->late[(size_t)number * (size_t)lanes->microbatches]};
      if (from->source >= 0) {
        lane->source = here[from->source];
        lane->travel = lanes->lane[from->source].time + from->delay;
      }
      if (from->target >= 0) {
        lane->target = here[from->target];
        lane->delay = lanes->lane[from->target].delay;
      }
      for (int b = 0; b < 2; b++) lane->before[b] = from->before[b] >= 0 ? here[from->before[b]] : NONE;
    }
  }
  for (int l = 0; l < hand->flows; l++)
    for (int b = 0; b < 2; b++)
      if (hand->lane[l].before[b] >= 0) {
        int *after = hand->lane[hand->lane[l].before[b]].after;
        after[after[0] >= 0] = l;
      }
  for (int i = 0; i < hand->flows; i++) {
    hand->down[i] = here[lanes->flow[i]];
    hand->lane[hand->down[i]].position = i;
  }
  free(here);
  return true;
}

bool zb_flow_hand_open(const struct zb_chain *chain, enum zb_objective objective, struct zb_flow_hand *hand) {
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  *hand = (struct zb_flow_hand){0};
  if (!zb_lanes_create(chain, objective, &hand->lanes)) return false;
  const size_t flows = (size_t)hand->lanes.flows;
  hand->flows = hand->lanes.flows;
  hand->key_words = (flows * sizeof(uint16_t) + p + 7) / 8;
  hand->found = 3 * flows + 2 * p;
  if (flows * m > most_ops) return false;
  hand->down = calloc(flows, sizeof *hand->down);
  hand->lane = calloc(flows, sizeof *hand->lane);
  hand->device = calloc(p, sizeof *hand->device);
  hand->table = calloc(p, sizeof *hand->table);
  hand->packed = calloc(hand->key_words + 2 * p + 1 + flows * m, sizeof *hand->packed);
  hand->count = calloc(flows, sizeof *hand->count);
  hand->wait = calloc(p, sizeof *hand->wait);
  hand->arrival = calloc(flows * m, sizeof *hand->arrival);
  hand->sent = calloc(flows + 2 * p, sizeof *hand->sent);
  hand->stale_words = (flows + 63) / 64;
  hand->stale = calloc(hand->stale_words, sizeof *hand->stale);
  hand->over = calloc(3 * p, sizeof *hand->over);
  hand->start = calloc(hand->found, sizeof *hand->start);
  if (!hand->down || !hand->lane || !hand->device || !hand->table || !hand->packed || !hand->count ||
      !hand->wait || !hand->arrival || !hand->sent || !hand->stale || !hand->over || !hand->start)
    return false;
  hand->touched = hand->sent + flows;
  hand->changed = hand->touched + p;
  hand->backwards = hand->over + p;
  hand->due = hand->backwards + p;
  hand->next = hand->start + flows;
  hand->last_start = hand->next + flows;
  hand->clock = hand->last_start + flows;
  hand->poured = hand->clock + p;
  size_t room = most_cells;
  for (int d = 0, first = 0; d < chain->devices; d++) {
    if (!zb_fluid_table_open(&hand->lanes, d, room, &hand->table[d])) return false;
    room -= hand->table[d].cells;
    fill_device(hand, d, first);
    first = hand->device[d].end;
  }
  return fill_lanes(hand);
}

void zb_flow_hand_close(struct zb_flow_hand *hand) {
  for (int d = 0; hand->table && d < hand->lanes.devices; d++) zb_fluid_table_close(&hand->table[d]);
  free(hand->device);
  free(hand->sent);
  free(hand->stale);
  free(hand->over);
  free(hand->down);
  free(hand->lane);
  free(hand->table);
  free(hand->packed);
  free(hand->count);
  free(hand->wait);
  free(hand->arrival);
  free(hand->start);
  zb_lanes_free(&hand->lanes);
  *hand = (struct zb_flow_hand){0};
}
