// flow_hand.c - what is implied and forced, what there is to choose, and packing.
#include "solver/exact/flow_hand.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Most states of all tables, and most F and B.
static const size_t most_cells = (size_t)1 << 23, most_ops = (size_t)1 << 22;

static const int64_t never = INT64_MAX / 4;

enum { NONE = -1 };

static const struct zb_fluid_device *device_of(const struct zb_flow_hand *hand, int d) {
  return &hand->table[d].device;
}
static int own(const struct zb_flow_hand *hand, int l) { return l - hand->first[hand->lane[l].device]; }
static bool is_over(const struct zb_flow_hand *hand, int l) {
  return hand->count[l] == hand->lanes.microbatches;
}
static const uint16_t *counts(const struct zb_flow_hand *hand, int d) {
  return &hand->count[hand->first[d]];
}

// Looking ahead.

static bool is_sent(const struct zb_flow_hand *hand, int l) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  return k < hand->lanes.microbatches && (lane->source < 0 || hand->count[lane->source] > k) &&
         (lane->before[0] < 0 || hand->count[lane->before[0]] > k) &&
         (lane->before[1] < 0 || hand->count[lane->before[1]] > k);
}

// When what the next op of a lane waits for is done and there, at the earliest.
static int64_t there(const struct zb_flow_hand *hand, int l) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  int64_t time = INT64_MIN;
  if (lane->source >= 0) {
    const struct zb_flow_lane *source = &hand->lane[lane->source];
    time = k < hand->count[lane->source]
               ? hand->arrival[(size_t)l * (size_t)hand->lanes.microbatches + k]
               : hand->start[lane->source] + source->time + source->delay;
  }
  for (int i = 0; i < 2; i++) {
    const int before = lane->before[i];
    if (before >= 0 && hand->count[before] <= k)
      time = zb_max(time, hand->start[before] + hand->lane[before].time);
  }
  return time;
}

static int weights_there(const struct zb_flow_hand *hand, int d) {
  int sum = 0;
  for (int i = 0; i < device_of(hand, d)->count / 2; i++) sum += counts(hand, d)[i];
  return sum;
}

// Earliest time at which memory allows the next F of a lane, however many B run before it, the first of them
// from `start_b` on: more B give more memory back, and may so take the place of W.
static int64_t when_memory_fits(const struct zb_flow_hand *hand, int l, int64_t start_b) {
  const int d = hand->lane[l].device, i = own(hand, l);
  const struct zb_fluid_device *device = device_of(hand, d);
  const uint16_t *n = counts(hand, d);
  int64_t over = device->bytes[i] - device->room_bytes, b = INT64_MAX, gives = 0;
  int left = 0, weights = 0;
  for (int c = 0; c < device->count; c++) {
    over += n[c] * device->bytes[c];
    if (c >= device->count / 2) continue;
    weights += n[c];
    left += hand->lanes.microbatches - n[c];
    b = zb_min(b, device->time[c]);
    gives = zb_max(gives, -device->bytes[c]);
  }
  // Of a chain no other F can make room for more B.
  if (device->count == 2) left = n[1] - n[0];
  if (hand->wait[d] == i) left = 0;
  int64_t least = never;
  for (int more = 0; more <= left; more++, over -= gives) {
    const int64_t need = over <= 0 ? 0 : (over + device->gives - 1) / device->gives;
    if (need > weights + more) continue;
    const int64_t busy = more * b;
    int64_t time = hand->clock[d] + busy + need * device->w - hand->poured[d];
    // All W, and so that of the last B, which comes after it.
    if (more > 0) time = zb_max(time, start_b + busy + (need == weights + more ? device->w : 0));
    least = zb_min(least, time);
    if (need == 0 || start_b + busy >= least) break;
  }
  return least;
}

// Time from the clock until there is memory for the next F of a lane with no other op in between; never, if
// that cannot be.
static int64_t wait_for_memory(const struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const struct zb_fluid_device *device = device_of(hand, d);
  if (!device->limited) return 0;
  const int64_t need = zb_fluid_need(device, counts(hand, d), own(hand, l));
  if (need == 0) return 0;
  if (need > weights_there(hand, d)) return never;
  return zb_max(0, need * device->w - hand->poured[d]);
}

// Earliest starts of every next op, along the pipe.
static void look_down(struct zb_flow_hand *hand) {
  for (int i = 0; i < hand->flows; i++) {
    const int l = hand->down[i], d = hand->lane[l].device, wait = hand->wait[d];
    if (is_over(hand, l)) {
      hand->start[l] = hand->next[l] = never;
      continue;
    }
    int64_t start = zb_max(hand->clock[d], there(hand, l));
    hand->next[l] = start;
    if (hand->lane[l].kind == ZB_F) {
      const int64_t waits = wait_for_memory(hand, l);
      if (waits > 0) {
        hand->next[l] = waits < never ? zb_max(start, hand->clock[d] + waits) : never;
        start = zb_max(start, when_memory_fits(hand, l, hand->clock[d]));
      }
    }
    if (wait >= 0 && l != hand->first[d] + wait) {
      hand->next[l] = never;
      // Where the one that it waits for has been looked up.
      const int first = hand->first[d] + wait;
      if (hand->start[first] < never) start = zb_max(start, hand->start[first] + hand->lane[first].time);
    }
    hand->start[l] = start;
  }
}

static int64_t pourable(const struct zb_flow_hand *hand, int d) {
  const struct zb_fluid_device *device = device_of(hand, d);
  int64_t sum = -hand->poured[d];
  for (int i = 0; i < device->count / 2; i++) sum += counts(hand, d)[i] * device->weight[i];
  return sum;
}

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
  for (int64_t i = work / device_of(hand, d)->w; i > 0; i--) write_weight(hand, d);
}

// What fits before a time at which something else can start. The clock is that time unless whole W wait.
static void pour_until(struct zb_flow_hand *hand, int d, int64_t time) {
  const int64_t there = pourable(hand, d), gap = time - hand->clock[d], w = device_of(hand, d)->w;
  if (hand->weights.fluid || there <= gap) {
    pour(hand, d, zb_min(there, gap));
    hand->clock[d] = time;
  } else {
    const int64_t work = gap - gap % w;
    pour(hand, d, work);
    hand->clock[d] += work;
  }
}

// Raises the clock of a device to where something can run next. False: too late for the end.
static bool raise_clock(struct zb_flow_hand *hand, int d) {
  int64_t next = never;
  bool over = true;
  for (int l = hand->first[d]; l < hand->first[d + 1]; l++) {
    next = zb_min(next, hand->next[l]);
    over &= is_over(hand, l);
  }
  if (!over) {
    if (next < never && next > hand->clock[d]) pour_until(hand, d, next);
    return true;
  }
  const int64_t rest = pourable(hand, d);
  pour(hand, d, rest);
  hand->clock[d] += rest;
  hand->cost = zb_max(hand->cost, hand->clock[d] - hand->lanes.origin[d]);
  return hand->clock[d] <= hand->lanes.horizon[d];
}

// What is known of F that wait for memory once that of B is.
static void look_again(struct zb_flow_hand *hand, int d) {
  const int first = hand->first[d], backwards = first + device_of(hand, d)->count / 2;
  int64_t start_b = never;
  for (int l = first; l < backwards; l++) start_b = zb_min(start_b, hand->start[l]);
  for (int l = backwards; l < hand->first[d + 1]; l++) {
    if (is_over(hand, l) || hand->next[l] <= hand->start[l]) continue;
    hand->start[l] = zb_max(hand->start[l], when_memory_fits(hand, l, start_b));
    hand->next[l] = zb_max(hand->next[l], hand->start[l]);
  }
}

bool zb_flow_look_ahead(struct zb_flow_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  for (int d = 0; d < lanes->devices; d++)
    if (hand->wait[d] >= 0) hand->start[hand->first[d] + hand->wait[d]] = never;
  look_down(hand);
  for (int d = 0; d < lanes->devices; d++) {
    const struct zb_fluid_device *device = device_of(hand, d);
    if (device->limited) look_again(hand, d);
    for (int l = hand->first[d]; l < hand->first[d + 1]; l++)
      if (!is_over(hand, l) && hand->start[l] + hand->lane[l].time >
                                   zb_lane_late(lanes, device->lane[own(hand, l)], hand->count[l]))
        return false;
    if (!raise_clock(hand, d)) return false;
  }
  return true;
}

// Time in hand of a device by its table; negative: none.
static int64_t time_in_hand(const struct zb_flow_hand *hand, int d) {
  const struct zb_fluid_table *table = &hand->table[d];
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, counts(hand, d));
  int64_t most = -1;
  for (int i = 0; cell && i < cell->points; i++) {
    const struct zb_fluid_point *point = &table->point[cell->point + (uint32_t)i];
    const int64_t left = zb_min(point->latest, point->lead + hand->poured[d]) - hand->clock[d];
    most = zb_max(most, left);
  }
  return most;
}

// What is forced.

static bool can_take(const struct zb_flow_hand *hand, int l) {
  return hand->next[l] < never && is_sent(hand, l);
}

static int64_t end_next(const struct zb_flow_hand *hand, int l) {
  return zb_max(hand->next[l], hand->clock[hand->lane[l].device]) + hand->lane[l].time;
}

// Most W that an F may need which runs before the next op of lane `l` does, were that op done: B only give
// memory back, so all F that can be and no B.
static int64_t most_need(const struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device, count = device_of(hand, d)->count, i = own(hand, l);
  const struct zb_fluid_device *device = device_of(hand, d);
  const uint16_t *n = counts(hand, d);
  uint16_t with[ZB_MOST_CLASSES];
  int last = NONE;
  memcpy(with, n, (size_t)count * sizeof *with);
  with[i]++;
  for (int f = count - 1; f >= count / 2; f--) {
    if (f == i) continue;
    // Behind an F of lane i there are at most as many as that has had.
    const int most = f < i ? n[f + 1 < i ? f + 1 : i] : hand->lanes.microbatches;
    if (f < i && f + 1 < i) with[f] = with[f + 1];
    else with[f] = (uint16_t)most;
    if (with[f] > n[f]) last = f;
  }
  if (last == NONE) return 0;
  with[last]--;
  return zb_fluid_need(device, with, last);
}

// Whether an op now could make an F late that goes before it in the best completion.
static bool does_harm(const struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device, i = own(hand, l);
  const struct zb_fluid_device *device = device_of(hand, d);
  const int half = device->count / 2;
  if (!device->limited || (!hand->weights.fluid && device->count == 2)) return false;
  const uint16_t *n = counts(hand, d);
  const int64_t start = zb_max(hand->next[l], hand->clock[d]), there = weights_there(hand, d) * device->w;
  const int64_t poured = zb_min(there, hand->poured[d] + start - hand->clock[d]);
  // The other F, and whether another B may come before them.
  int64_t start_f = never;
  bool others = false;
  for (int f = half; f < device->count; f++)
    if (f != i) start_f = zb_min(start_f, hand->start[hand->first[d] + f]);
  if (start_f >= never) return false;
  for (int b = 0; b < half; b++) others |= b != i && hand->start[hand->first[d] + b] < never;
  if (i < half && there == poured) return false;
  int64_t need;
  if (device->count == 2) {
    // The last F that memory lets in between.
    uint16_t with[2] = {(uint16_t)(n[0] + 1), n[1]}, now[2] = {n[0], n[1]};
    while (with[1] < hand->lanes.microbatches && zb_fluid_need(device, now, 1) <= n[0]) with[1]++, now[1]++;
    if (with[1] == n[1]) return false;
    with[1]--;
    need = zb_fluid_need(device, with, 1) * device->w;
    return need > poured && start + hand->lane[l].time + need - poured > start_f;
  }
  if (i < half) return true;
  need = most_need(hand, l) * device->w;
  if (need <= poured) return false;
  return others || start + hand->lane[l].time + need - poured > start_f || need > there;
}

static void send(struct zb_flow_hand *hand, int l, int64_t end) {
  const int to = hand->lane[l].target;
  if (to < 0) return;
  const int64_t there = end + hand->lane[l].delay;
  const uint16_t k = hand->count[l];
  hand->arrival[(size_t)to * (size_t)hand->lanes.microbatches + k] = there;
  // That may be later than was thought when starts were looked up.
  if (k == hand->count[to]) {
    hand->start[to] = zb_max(hand->start[to], there);
    if (hand->next[to] < never) hand->next[to] = zb_max(hand->next[to], there);
  }
}

// Runs the next op of a lane at its earliest start.
static void run_op(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device;
  const struct zb_fluid_device *device = device_of(hand, d);
  const int64_t start = zb_max(hand->next[l], hand->clock[d]), end = start + hand->lane[l].time;
  pour_until(hand, d, start);
  hand->clock[d] = end;
  send(hand, l, end);
  hand->count[l]++;
  hand->wait[d] = NONE;
  write_op(hand, d, device->lane[own(hand, l)]);
  // W that take no time are never poured.
  if (hand->lane[l].kind == ZB_B && device->w == 0 && !hand->weights.fluid) write_weight(hand, d);
}

// Whether a whole W may go before what can start next and waits for it: where much of it fits in before, or
// many wait.
static bool w_may_go_first(const struct zb_flow_hand *hand, int d, int64_t start) {
  const int64_t w = device_of(hand, d)->w, there = hand->weights.fluid ? 0 : pourable(hand, d);
  return there > 0 &&
         (hand->weights.nearly * (start - hand->clock[d]) >= w || there >= hand->weights.many * w);
}

// Whether `o`, which can come next, may go before `l` in any completion that has `l` next.
static bool goes_before(const struct zb_flow_hand *hand, int o, int l, int64_t least) {
  const int64_t end = end_next(hand, o), other = zb_max(hand->next[l], least);
  if (end > other || (end == other && hand->next[o] >= other && o > l)) return false;
  return !does_harm(hand, o);
}

// What can be next on a device: those that no other may go before. `ripe`: none of those that cannot come
// yet could start before one that can has ended. `least`: they do not, in any case.
static int list_next(const struct zb_flow_hand *hand, int d, int64_t least, int *list, bool *ripe,
                     int64_t *first_end) {
  int count = 0;
  int64_t end = never;
  for (int l = hand->first[d]; l < hand->first[d + 1]; l++)
    if (can_take(hand, l)) end = zb_min(end, end_next(hand, l));
  *ripe = end < never;
  *first_end = end;
  if (end >= never) return 0;
  for (int l = hand->first[d]; l < hand->first[d + 1]; l++) {
    if (hand->next[l] >= never) continue;
    const bool takes = can_take(hand, l);
    if (!takes && zb_max(hand->next[l], least) < end) *ripe = false;
    bool out = false;
    for (int o = hand->first[d]; o < hand->first[d + 1] && !out; o++)
      out = o != l && can_take(hand, o) && goes_before(hand, o, l, takes ? 0 : least);
    if (!out) list[count++] = l;
  }
  return count;
}

static bool run_forced(struct zb_flow_hand *hand) {
  bool any = false;
  int list[ZB_MOST_CLASSES];
  for (int d = 0; d < hand->lanes.devices; d++) {
    bool ripe;
    int64_t end;
    if (list_next(hand, d, 0, list, &ripe, &end) != 1 || !can_take(hand, list[0])) continue;
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
    const bool takes = can_take(hand, list[i]);
    choice[choices++] =
        (struct zb_flow_choice){takes ? ZB_TAKE : ZB_WAIT_FOR, (unsigned char)own(hand, list[i])};
    if (takes) start = zb_min(start, hand->next[list[i]]);
  }
  if (start >= never || !w_may_go_first(hand, d, start)) return choices;
  for (int i = 0; i < count; i++)
    if (can_take(hand, list[i]))
      choice[choices++] = (struct zb_flow_choice){ZB_W_THEN_TAKE, (unsigned char)own(hand, list[i])};
  return choices;
}

// The device to branch on: of those where what cannot come yet starts late enough the one where an op ends
// first; or the one where an op ends first of all, as what cannot come yet waits for one of these.
int zb_flow_choose(const struct zb_flow_hand *hand, struct zb_flow_choice *choice, int *choices) {
  int chosen = -1, first = -1, list[ZB_MOST_CLASSES];
  int64_t least = never, first_end = never, end;
  bool ripe;
  for (int d = 0; d < hand->lanes.devices; d++) {
    const int count = list_next(hand, d, 0, list, &ripe, &end);
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
  const int count = list_next(hand, first, first_end, list, &ripe, &end);
  *choices = choices_on(hand, first, list, count, choice);
  return first;
}

// Packing.

static void pack_key(struct zb_flow_hand *hand) {
  uint16_t *key = (uint16_t *)hand->packed;
  memset(key, 0, hand->key_words * sizeof(int64_t));
  memcpy(key, hand->count, (size_t)hand->flows * sizeof *key);
  unsigned char *wait = (unsigned char *)(key + hand->flows);
  for (int d = 0; d < hand->lanes.devices; d++) wait[d] = (unsigned char)(hand->wait[d] + 1);
}

// Those that wait take turns from the start of the first on. Returns false where one cannot end in time.
static bool pack_waiting(struct zb_flow_hand *hand, int64_t **word) {
  const size_t m = (size_t)hand->lanes.microbatches;
  for (int l = 0; l < hand->flows; l++) {
    const struct zb_flow_lane *lane = &hand->lane[l];
    if (lane->source < 0) continue;
    const int number = device_of(hand, lane->device)->lane[own(hand, l)];
    int64_t turn = hand->start[l];
    for (int k = hand->count[l]; k < hand->count[lane->source]; k++) {
      turn = zb_max(turn, hand->arrival[(size_t)l * m + (size_t)k]);
      *(*word)++ = turn;
      turn += lane->time;
      if (turn > zb_lane_late(&hand->lanes, number, k)) return false;
    }
  }
  return true;
}

static bool is_done(const struct zb_flow_hand *hand, int d) {
  // B of the first stage come last.
  return hand->count[hand->first[d]] == hand->lanes.microbatches;
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

void zb_flow_unpack(struct zb_flow_hand *hand, const int64_t *packed) {
  const size_t devices = (size_t)hand->lanes.devices, m = (size_t)hand->lanes.microbatches;
  const uint16_t *key = (const uint16_t *)packed;
  const unsigned char *wait = (const unsigned char *)(key + hand->flows);
  memcpy(hand->count, key, (size_t)hand->flows * sizeof *key);
  const int64_t *clock = packed + hand->key_words, *lead = clock + devices, *word = lead + devices + 1;
  hand->cost = lead[devices];
  for (size_t d = 0; d < devices; d++) {
    hand->wait[d] = (int16_t)(wait[d] - 1);
    hand->clock[d] = clock[d];
    hand->poured[d] = clock[d] - lead[d];
    if (is_done(hand, (int)d)) {
      // Its cost is known; nothing is late about it.
      hand->poured[d] = 0;
      hand->poured[d] = pourable(hand, (int)d);
      hand->clock[d] = hand->lanes.origin[d];
    }
  }
  for (int l = 0; l < hand->flows; l++) {
    const int source = hand->lane[l].source;
    if (source < 0) continue;
    for (int k = hand->count[l]; k < hand->count[source]; k++)
      hand->arrival[(size_t)l * m + (size_t)k] = *word++;
  }
}

// Choices, and beginning and end.

void zb_flow_take(struct zb_flow_hand *hand, int d, struct zb_flow_choice choice) {
  if (choice.act == ZB_WAIT_FOR) {
    hand->wait[d] = choice.lane;
    return;
  }
  if (choice.act == ZB_W_THEN_TAKE) {
    pour(hand, d, device_of(hand, d)->w);
    hand->clock[d] += device_of(hand, d)->w;
  }
  run_op(hand, hand->first[d] + choice.lane);
}

void zb_flow_start(struct zb_flow_hand *hand) {
  const size_t devices = (size_t)hand->lanes.devices;
  memset(hand->count, 0, (size_t)hand->flows * sizeof *hand->count);
  memset(hand->poured, 0, devices * sizeof *hand->poured);
  memcpy(hand->clock, hand->lanes.frame, devices * sizeof *hand->clock);
  for (size_t d = 0; d < devices; d++) hand->wait[d] = NONE;
  hand->cost = 0;
}

// Lanes of zb_lanes to those here.
static bool fill_lanes(struct zb_flow_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  int *here = malloc((size_t)lanes->lanes * sizeof *here);
  if (!here) return false;
  for (int d = 0; d < lanes->devices; d++)
    for (int i = 0; i < device_of(hand, d)->count; i++) here[device_of(hand, d)->lane[i]] = hand->first[d] + i;
  for (int d = 0; d < lanes->devices; d++) {
    for (int i = 0; i < device_of(hand, d)->count; i++) {
      const struct zb_lane *from = &lanes->lane[device_of(hand, d)->lane[i]];
      struct zb_flow_lane *lane = &hand->lane[hand->first[d] + i];
      *lane = (struct zb_flow_lane){.device = d, .kind = from->kind, .time = from->time, .source = NONE, .target = NONE};
      if (from->source >= 0) lane->source = here[from->source];
      if (from->target >= 0) {
        lane->target = here[from->target];
        lane->delay = lanes->lane[from->target].delay;
      }
      for (int b = 0; b < 2; b++) lane->before[b] = from->before[b] >= 0 ? here[from->before[b]] : NONE;
    }
  }
  for (int i = 0; i < hand->flows; i++) hand->down[i] = here[lanes->flow[i]];
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
  hand->found = 2 * flows + 2 * p;
  if (flows * m > most_ops) return false;
  hand->first = calloc(p + 1, sizeof *hand->first);
  hand->down = calloc(flows, sizeof *hand->down);
  hand->lane = calloc(flows, sizeof *hand->lane);
  hand->table = calloc(p, sizeof *hand->table);
  hand->packed = calloc(hand->key_words + 2 * p + 1 + flows * m, sizeof *hand->packed);
  hand->count = calloc(flows, sizeof *hand->count);
  hand->wait = calloc(p, sizeof *hand->wait);
  hand->arrival = calloc(flows * m, sizeof *hand->arrival);
  hand->start = calloc(hand->found, sizeof *hand->start);
  if (!hand->first || !hand->down || !hand->lane || !hand->table || !hand->packed || !hand->count ||
      !hand->wait || !hand->arrival || !hand->start)
    return false;
  hand->next = hand->start + flows;
  hand->clock = hand->next + flows;
  hand->poured = hand->clock + p;
  size_t room = most_cells;
  for (int d = 0; d < chain->devices; d++) {
    if (!zb_fluid_table_open(&hand->lanes, d, room, &hand->table[d])) return false;
    room -= hand->table[d].cells;
    hand->first[d + 1] = hand->first[d] + hand->table[d].device.count;
  }
  return fill_lanes(hand);
}

void zb_flow_hand_close(struct zb_flow_hand *hand) {
  for (int d = 0; hand->table && d < hand->lanes.devices; d++) zb_fluid_table_close(&hand->table[d]);
  free(hand->first);
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
