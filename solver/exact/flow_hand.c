// flow_hand.c - what is implied and forced, what there is to choose, and packing.
#include "solver/exact/flow_hand.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Most states of all tables, and most F and B.
static const size_t most_cells = (size_t)1 << 23, most_ops = (size_t)1 << 22;

static const int64_t never = INT64_MAX / 4;

// Looking ahead.

static bool is_sent(const struct zb_flow_hand *hand, int lane) {
  const uint16_t *count = hand->count;
  const int d = lane / 2;
  if (lane % 2 == ZB_F) return d == 0 || count[lane] < count[lane - 2];
  return count[lane] < count[lane - 1] && (d + 1 == hand->lanes.devices || count[lane] < count[lane + 2]);
}

// When what the next op of a lane waits for on another device is there, at the earliest.
static int64_t there(const struct zb_flow_hand *hand, int lane, int from, int k) {
  const struct zb_flow_device *sender = &hand->device[from / 2];
  return k < hand->count[from] ? hand->arrival[(size_t)lane * (size_t)hand->lanes.microbatches + (size_t)k]
                               : hand->start[from] + sender->time[from % 2] + sender->delay[from % 2];
}

// Earliest time at which memory allows the next F, however many B run before it, the first of them from
// `start_b` on: more B give more memory back, and may so take the place of W. None does where B is held.
static int64_t when_memory_fits(const struct zb_flow_hand *hand, int d, int64_t start_b) {
  const struct zb_flow_device *device = &hand->device[d];
  const struct zb_fluid_table *table = &hand->table[d];
  const int f = hand->count[2 * d], b = hand->count[2 * d + 1], most = hand->held[d] ? b : f;
  int64_t least = never;
  for (int n = b > table->least_b[f + 1] ? b : table->least_b[f + 1]; n <= most; n++) {
    const int need = zb_fluid_cell(table, f, n)->need;
    const int64_t busy = (n - b) * device->time[ZB_B];
    int64_t time = hand->clock[d] + busy + need * device->w - hand->poured[d];
    // All W, and so that of the last B, which comes after it.
    if (n > b) time = zb_max(time, start_b + busy + (need == n ? device->w : 0));
    least = zb_min(least, time);
    if (need == 0 || start_b + busy >= least) break;
  }
  return least;
}

// Earliest starts of every next F, down the chain.
static void look_down(struct zb_flow_hand *hand) {
  const int m = hand->lanes.microbatches;
  for (int d = 0; d < hand->lanes.devices; d++) {
    const int f = hand->count[2 * d];
    int64_t start = never;
    if (f < m) {
      start = hand->clock[d];
      if (d > 0) start = zb_max(start, there(hand, 2 * d, 2 * d - 2, f));
    }
    hand->next_f[d] = start;
    if (f < m && hand->device[d].limited) {
      const struct zb_fluid_table *table = &hand->table[d];
      const int b = hand->count[2 * d + 1];
      const bool fits = b >= table->least_b[f + 1];
      const int64_t wait =
          fits ? zb_fluid_cell(table, f, b)->need * hand->device[d].w - hand->poured[d] : never;
      if (wait > 0) {
        hand->next_f[d] = fits ? zb_max(start, hand->clock[d] + wait) : never;
        start = zb_max(start, when_memory_fits(hand, d, hand->clock[d]));
      }
    }
    hand->start[2 * d] = start;
  }
}

// Likewise of every next B, up the chain.
static void look_up(struct zb_flow_hand *hand) {
  const int m = hand->lanes.microbatches, last = hand->lanes.devices - 1;
  for (int d = last; d >= 0; d--) {
    const int b = hand->count[2 * d + 1];
    int64_t start = never;
    if (b < m) {
      start = hand->clock[d];
      if (d < last) start = zb_max(start, there(hand, 2 * d + 1, 2 * d + 3, b));
      if (hand->count[2 * d] == b || hand->held[d])
        start = zb_max(start, hand->start[2 * d] + hand->device[d].time[ZB_F]);
    }
    hand->start[2 * d + 1] = start;
  }
}

static int64_t pourable(const struct zb_flow_hand *hand, int d) {
  return hand->count[2 * d + 1] * hand->device[d].w - hand->poured[d];
}

static void write_op(const struct zb_flow_hand *hand, int d, enum zb_kind kind) {
  if (!hand->orders) return;
  zb_orders_word(hand->orders, d)[hand->orders->count[d]++] =
      hand->lanes.lane[3 * (size_t)d + (size_t)kind].letter;
}

// Runs `work` of W that is there; whole W are written down.
static void pour(struct zb_flow_hand *hand, int d, int64_t work) {
  hand->poured[d] += work;
  if (!hand->orders || hand->weights.fluid || work == 0) return;
  for (int64_t i = work / hand->device[d].w; i > 0; i--) write_op(hand, d, ZB_W);
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

// Raises clocks to what is implied. False: too late for something.
bool zb_flow_look_ahead(struct zb_flow_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  const int m = lanes->microbatches;
  look_down(hand);
  look_up(hand);
  for (int d = 0; d < lanes->devices; d++) {
    const int f = hand->count[2 * d], b = hand->count[2 * d + 1];
    if (hand->next_f[d] > hand->start[2 * d]) {
      // It waits for memory, which more B may give back.
      hand->start[2 * d] =
          zb_max(hand->start[2 * d], when_memory_fits(hand, d, hand->start[2 * (size_t)d + 1]));
      hand->next_f[d] = zb_max(hand->next_f[d], hand->start[2 * d]);
    }
    const int64_t *start = &hand->start[2 * (size_t)d];
    if (f < m && start[ZB_F] + hand->device[d].time[ZB_F] > zb_lane_late(lanes, 3 * d, f)) return false;
    if (b < m && start[ZB_B] + hand->device[d].time[ZB_B] > zb_lane_late(lanes, 3 * d + 1, b)) return false;
    if (b < m) {
      const int64_t next = zb_min(hand->next_f[d], start[ZB_B]);
      if (next > hand->clock[d]) pour_until(hand, d, next);
    } else {
      const int64_t rest = pourable(hand, d);
      pour(hand, d, rest);
      hand->clock[d] += rest;
      hand->cost = zb_max(hand->cost, hand->clock[d] - lanes->origin[d]);
      if (hand->clock[d] > lanes->horizon[d]) return false;
    }
  }
  return true;
}

// Time in hand of a device by its table; negative: none.
static int64_t time_in_hand(const struct zb_flow_hand *hand, int d) {
  const struct zb_fluid_table *table = &hand->table[d];
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, hand->count[2 * d], hand->count[2 * d + 1]);
  int64_t most = -1;
  for (int i = 0; i < cell->points; i++) {
    const struct zb_fluid_point *point = &table->point[cell->point + (uint32_t)i];
    const int64_t left = zb_min(point->latest, point->lead + hand->poured[d]) - hand->clock[d];
    most = zb_max(most, left);
  }
  return most;
}

// What is forced.

static bool can_take_f(const struct zb_flow_hand *hand, int d) {
  const int k = hand->count[2 * d];
  return k < hand->lanes.microbatches && is_sent(hand, 2 * d) &&
         hand->count[2 * d + 1] >= hand->table[d].least_b[k + 1];
}

static bool can_take_b(const struct zb_flow_hand *hand, int d) {
  return !hand->held[d] && hand->count[2 * d + 1] < hand->lanes.microbatches && is_sent(hand, 2 * d + 1);
}

// Whether B first could make an F late that goes before it in the best completion.
static bool b_first_does_harm(const struct zb_flow_hand *hand, int d) {
  const struct zb_flow_device *device = &hand->device[d];
  const struct zb_fluid_table *table = &hand->table[d];
  const int f = hand->count[2 * d], b = hand->count[2 * d + 1];
  if (!hand->weights.fluid || !device->limited || table->most_f[b] <= f) return false;
  const int64_t need = zb_fluid_cell(table, table->most_f[b] - 1, b + 1)->need * device->w;
  const int64_t start = hand->start[2 * d + 1];
  const int64_t poured = zb_min(b * device->w, hand->poured[d] + start - hand->clock[d]);
  return need > poured && start + device->time[ZB_B] + need - poured > hand->start[2 * d];
}

static void send(struct zb_flow_hand *hand, int d, int kind, int k, int64_t end) {
  const int to = kind == ZB_F ? 2 * d + 2 : 2 * d - 1;
  if (to < 0 || to >= 2 * hand->lanes.devices) return;
  const int64_t there = end + hand->device[d].delay[kind];
  hand->arrival[(size_t)to * (size_t)hand->lanes.microbatches + (size_t)k] = there;
  // That may be later than was thought when starts were looked up.
  if (kind == ZB_F && k == hand->count[to]) hand->next_f[d + 1] = zb_max(hand->next_f[d + 1], there);
}

// Runs the next op of a lane at its earliest start.
static void run_op(struct zb_flow_hand *hand, int d, int kind) {
  const int lane = 2 * d + kind;
  const int64_t known = kind == ZB_F ? hand->next_f[d] : hand->start[lane];
  const int64_t start = zb_max(known, hand->clock[d]), end = start + hand->device[d].time[kind];
  pour_until(hand, d, start);
  hand->clock[d] = end;
  send(hand, d, kind, hand->count[lane], end);
  hand->count[lane]++;
  if (kind == ZB_F) hand->held[d] = false;
  write_op(hand, d, (enum zb_kind)kind);
  // W that take no time are never poured.
  if (kind == ZB_B && hand->device[d].w == 0 && !hand->weights.fluid) write_op(hand, d, ZB_W);
}

// Whether a whole W may go before what can start next and waits for it: where much of it fits in before, or
// many wait.
static bool w_may_go_first(const struct zb_flow_hand *hand, int d, int64_t start) {
  const int64_t w = hand->device[d].w, there = hand->weights.fluid ? 0 : pourable(hand, d);
  return there > 0 &&
         (hand->weights.nearly * (start - hand->clock[d]) >= w || there >= hand->weights.many * w);
}

// A B is sent by the device behind, which comes later in the same round; so its start is exact where it can
// come next, and where it cannot too early at most, which only lets less be forced.
static bool run_forced(struct zb_flow_hand *hand) {
  bool any = false;
  for (int d = 0; d < hand->lanes.devices; d++) {
    const int64_t *time = hand->device[d].time, start[] = {hand->next_f[d], hand->start[2 * d + 1]};
    int kind;
    if (can_take_f(hand, d) && start[ZB_B] >= start[ZB_F] + time[ZB_F])
      kind = ZB_F;
    else if (can_take_b(hand, d) && start[ZB_F] >= start[ZB_B] + time[ZB_B] && !b_first_does_harm(hand, d))
      kind = ZB_B;
    else
      continue;
    if (w_may_go_first(hand, d, start[kind])) continue;
    run_op(hand, d, kind);
    any = true;
  }
  return any;
}

int zb_flow_done(const struct zb_flow_hand *hand) {
  int sum = 0;
  for (int l = 0; l < 2 * hand->lanes.devices; l++) sum += hand->count[l];
  return sum;
}

// Runs all that is forced. False: nothing completes it.
bool zb_flow_settle(struct zb_flow_hand *hand) {
  do {
    if (!zb_flow_look_ahead(hand)) return false;
  } while (run_forced(hand));
  return true;
}

// The choices on a device, by what can come next there; 0: it has none, or not yet.
static int choices_on(const struct zb_flow_hand *hand, int d, enum zb_flow_choice *choice, int64_t *end) {
  const int64_t *time = hand->device[d].time;
  const int64_t start[] = {hand->next_f[d], hand->start[2 * d + 1]};
  const bool f = can_take_f(hand, d) && start[ZB_F] < start[ZB_B] + time[ZB_B];
  const bool b = can_take_b(hand, d) && start[ZB_B] < start[ZB_F] + time[ZB_F];
  const bool both = can_take_f(hand, d) && can_take_b(hand, d);
  int choices = 0;
  *end = zb_min(f ? start[ZB_F] + time[ZB_F] : INT64_MAX, b ? start[ZB_B] + time[ZB_B] : INT64_MAX);
  if (both) {
    choice[choices++] = ZB_TAKE_B;
    choice[choices++] = ZB_TAKE_F;
  } else if (b && b_first_does_harm(hand, d)) {
    choice[choices++] = ZB_TAKE_B;
    choice[choices++] = ZB_HOLD_B;
  } else if ((f && start[ZB_B] >= start[ZB_F] + time[ZB_F]) ||
             (b && start[ZB_F] >= start[ZB_B] + time[ZB_B])) {
    // Forced, but for W.
    choice[choices++] = f ? ZB_TAKE_F : ZB_TAKE_B;
  }
  if (choices == 0 ||
      !w_may_go_first(hand, d, zb_min(f ? start[ZB_F] : INT64_MAX, b ? start[ZB_B] : INT64_MAX)))
    return choices;
  if (b) choice[choices++] = ZB_W_THEN_B;
  if (f) choice[choices++] = ZB_W_THEN_F;
  return choices;
}

// The device of the op that ends first of all that can come next; -1: none can. What else could be next on
// it starts no earlier than that, whatever was looked up: it waits for one of them.
static int ends_first(const struct zb_flow_hand *hand, int *kind) {
  int first = -1;
  int64_t least = INT64_MAX;
  for (int d = 0; d < hand->lanes.devices; d++) {
    const bool f = can_take_f(hand, d);
    if (!f && !can_take_b(hand, d)) continue;
    const int64_t start = f ? hand->next_f[d] : hand->start[2 * d + 1];
    const int64_t end = start + hand->device[d].time[f ? ZB_F : ZB_B];
    if (end >= least) continue;
    least = end;
    first = d;
    *kind = f ? ZB_F : ZB_B;
  }
  return first;
}

// The device to branch on, of those that have choices the one where an op ends first; -1: none, nothing
// completes it.
int zb_flow_choose(const struct zb_flow_hand *hand, enum zb_flow_choice *choice, int *choices) {
  int chosen = -1, kind;
  int64_t least = INT64_MAX;
  for (int d = 0; d < hand->lanes.devices; d++) {
    enum zb_flow_choice here[ZB_MOST_CHOICES];
    int64_t end;
    const int count = choices_on(hand, d, here, &end);
    if (count == 0 || end >= least) continue;
    least = end;
    chosen = d;
    *choices = count;
    memcpy(choice, here, sizeof here);
  }
  if (chosen >= 0 || (chosen = ends_first(hand, &kind)) < 0) return chosen;
  *choices = 0;
  choice[(*choices)++] = kind == ZB_F ? ZB_TAKE_F : ZB_TAKE_B;
  if (kind == ZB_B && b_first_does_harm(hand, chosen)) choice[(*choices)++] = ZB_HOLD_B;
  return chosen;
}

// Packing.

static void pack_key(struct zb_flow_hand *hand) {
  const size_t devices = (size_t)hand->lanes.devices;
  uint16_t *key = (uint16_t *)hand->packed;
  memset(key, 0, hand->key_words * sizeof(int64_t));
  memcpy(key, hand->count, 2 * devices * sizeof *key);
  for (size_t d = 0; d < devices; d++)
    if (hand->held[d]) key[2 * devices + d / 16] |= (uint16_t)(1u << d % 16);
}

// Those that wait take turns from the start of the first on. Returns false where one cannot end in time.
static bool pack_waiting(struct zb_flow_hand *hand, int64_t **word) {
  const size_t m = (size_t)hand->lanes.microbatches;
  for (int lane = 0; lane < 2 * hand->lanes.devices; lane++) {
    const int from = lane % 2 == ZB_F ? lane - 2 : lane + 2;
    if (from < 0 || from >= 2 * hand->lanes.devices) continue;
    const int64_t time = hand->device[lane / 2].time[lane % 2];
    int64_t turn = hand->start[lane];
    for (int k = hand->count[lane]; k < hand->count[from]; k++) {
      turn = zb_max(turn, hand->arrival[(size_t)lane * m + (size_t)k]);
      *(*word)++ = turn;
      turn += time;
      if (turn > zb_lane_late(&hand->lanes, 3 * (lane / 2) + lane % 2, k)) return false;
    }
  }
  return true;
}

// Words that were packed; 0: nothing completes it.
size_t zb_flow_pack(struct zb_flow_hand *hand, int64_t *score) {
  const int devices = hand->lanes.devices, m = hand->lanes.microbatches;
  int64_t *clock = hand->packed + hand->key_words, *lead = clock + devices;
  int64_t least = INT64_MAX, sum = 0;
  int open = 0;
  for (int d = 0; d < devices; d++) {
    clock[d] = lead[d] = 0;
    if (hand->count[2 * d + 1] == m) continue;
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
  memcpy(hand->count, key, 2 * devices * sizeof *key);
  const int64_t *clock = packed + hand->key_words, *lead = clock + devices, *word = lead + devices + 1;
  hand->cost = lead[devices];
  for (size_t d = 0; d < devices; d++) {
    hand->held[d] = (key[2 * devices + d / 16] >> d % 16 & 1) != 0;
    hand->clock[d] = clock[d];
    hand->poured[d] = clock[d] - lead[d];
    if (hand->count[2 * d + 1] == hand->lanes.microbatches) {
      // Its cost is known; nothing is late about it.
      hand->poured[d] = (int64_t)m * hand->device[d].w;
      hand->clock[d] = hand->lanes.origin[d];
    }
  }
  for (int lane = 0; lane < 2 * hand->lanes.devices; lane++) {
    const int from = lane % 2 == ZB_F ? lane - 2 : lane + 2;
    if (from < 0 || from >= 2 * hand->lanes.devices) continue;
    for (int k = hand->count[lane]; k < hand->count[from]; k++)
      hand->arrival[(size_t)lane * m + (size_t)k] = *word++;
  }
}

// Choices, and beginning and end.

void zb_flow_take(struct zb_flow_hand *hand, int d, enum zb_flow_choice choice) {
  if (choice == ZB_HOLD_B) {
    hand->held[d] = true;
    return;
  }
  if (choice == ZB_W_THEN_F || choice == ZB_W_THEN_B) {
    pour(hand, d, hand->device[d].w);
    hand->clock[d] += hand->device[d].w;
  }
  run_op(hand, d, choice == ZB_TAKE_F || choice == ZB_W_THEN_F ? ZB_F : ZB_B);
}

void zb_flow_start(struct zb_flow_hand *hand) {
  const size_t devices = (size_t)hand->lanes.devices;
  memset(hand->count, 0, 2 * devices * sizeof *hand->count);
  memset(hand->held, 0, devices * sizeof *hand->held);
  memset(hand->poured, 0, devices * sizeof *hand->poured);
  memcpy(hand->clock, hand->lanes.frame, devices * sizeof *hand->clock);
  hand->cost = 0;
}

static void fill_devices(const struct zb_chain *chain, struct zb_flow_hand *hand) {
  for (int d = 0; d < chain->devices; d++) {
    const struct zb_chain_device *from = &chain->device[d];
    hand->device[d] = (struct zb_flow_device){.time = {from->f, from->b},
                                              .w = from->w,
                                              .delay = {0, from->backward_comm},
                                              .limited = from->room_bytes != ZB_NO_LIMIT};
    if (d + 1 < chain->devices) hand->device[d].delay[ZB_F] = from[1].forward_comm;
  }
}

bool zb_flow_hand_open(const struct zb_chain *chain, enum zb_objective objective, struct zb_flow_hand *hand) {
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  *hand = (struct zb_flow_hand){.key_words = ((2 * p + (p + 15) / 16) * sizeof(uint16_t) + 7) / 8};
  if (2 * p * m > most_ops || !zb_lanes_create(chain, objective, &hand->lanes)) return false;
  hand->device = calloc(p, sizeof *hand->device);
  hand->table = calloc(p, sizeof *hand->table);
  hand->packed = calloc(hand->key_words + 2 * p + 1 + 2 * p * m, sizeof *hand->packed);
  hand->count = calloc(2 * p, sizeof *hand->count);
  hand->held = calloc(p, sizeof *hand->held);
  hand->arrival = calloc(2 * p * m, sizeof *hand->arrival);
  hand->start = calloc(ZB_FLOW_FOUND * p, sizeof *hand->start);
  if (!hand->device || !hand->table || !hand->packed || !hand->count || !hand->held || !hand->arrival ||
      !hand->start)
    return false;
  hand->next_f = hand->start + 2 * p;
  hand->clock = hand->next_f + p;
  hand->poured = hand->clock + p;
  size_t room = most_cells;
  for (int d = 0; d < chain->devices; d++) {
    if (!zb_fluid_table_open(&hand->lanes, d, room, &hand->table[d])) return false;
    room -= hand->table[d].cells;
  }
  fill_devices(chain, hand);
  return true;
}

void zb_flow_hand_close(struct zb_flow_hand *hand) {
  for (int d = 0; hand->table && d < hand->lanes.devices; d++) zb_fluid_table_close(&hand->table[d]);
  free(hand->table);
  free(hand->device);
  free(hand->packed);
  free(hand->count);
  free(hand->held);
  free(hand->arrival);
  free(hand->start);
  zb_lanes_free(&hand->lanes);
  *hand = (struct zb_flow_hand){0};
}
