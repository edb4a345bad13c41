// flow_front.c - nodes at choices, expanded layer by layer.
//
// A layer is all kept nodes with as many F and B done. Between two choices any number of ops is forced, so a
// child goes to some later layer.
#include "solver/exact/flow_front.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "solver/exact/fluid_table.h"
#include "solver/exact/layer.h"
#include "solver/model/number.h"

const char *const zb_word_fluid_fronts = "fluid-fronts";

// Most bytes of nodes, and most states of all tables.
static const size_t most_bytes = (size_t)1 << 30, most_cells = (size_t)1 << 23;

enum choice { TAKE_F, TAKE_B, HOLD_B, W_THEN_F, W_THEN_B, MOST_CHOICES };

// What does not change of a device.
struct device {
  int64_t time[2], w; // of F and B
  int64_t delay[2];   // to the device that F and B are sent to
  bool limited;
};

// The node at hand. Lane 2d + ZB_F and 2d + ZB_B are device d's F and B.
struct hand {
  uint16_t *count;  // [2 devices] of each lane done
  bool *held;       // [devices] its B waits for its next F
  int64_t *arrival; // [2 devices][microbatches] of those that wait
  int64_t cost;     // of the devices that are done
  // What looking ahead finds and raises, side by side: 5 numbers a device.
  int64_t *start;          // [2 devices] of each lane's next op: earliest; never, where there is none
  int64_t *next_f;         // [devices] the same of F if no B comes before it; never: memory forbids that
  int64_t *clock, *poured; // [devices]
};

struct zb_flow_front {
  struct zb_lanes lanes;
  struct device *device;
  struct zb_fluid_table *table; // [devices]
  struct hand hand;
  int64_t *known; // of the node that is expanded
  int64_t *packed;
  struct zb_layer_shape shape;
  struct zb_paths paths;
  struct zb_layer *layer; // [layers + 1] by F and B done
  int layers, layer_number;
  size_t worked, most, bytes;
  int64_t work;
  struct zb_flow_weights weights;
  bool whole;
  struct zb_orders *orders; // that what runs is written to, or NULL
};

static const int64_t never = INT64_MAX / 4;

bool zb_flow_front_applies(const struct zb_chain *chain, enum zb_objective objective) {
  return zb_front_proves(chain, objective);
}

// Looking ahead.

static bool is_sent(const struct zb_flow_front *front, int lane) {
  const uint16_t *count = front->hand.count;
  const int d = lane / 2;
  if (lane % 2 == ZB_F) return d == 0 || count[lane] < count[lane - 2];
  return count[lane] < count[lane - 1] && (d + 1 == front->lanes.devices || count[lane] < count[lane + 2]);
}

// When what the next op of a lane waits for on another device is there, at the earliest.
static int64_t there(const struct zb_flow_front *front, int lane, int from, int k) {
  const struct hand *hand = &front->hand;
  const struct device *sender = &front->device[from / 2];
  return k < hand->count[from] ? hand->arrival[(size_t)lane * (size_t)front->lanes.microbatches + (size_t)k]
                               : hand->start[from] + sender->time[from % 2] + sender->delay[from % 2];
}

// Earliest time at which memory allows the next F, however many B run before it, the first of them from
// `start_b` on: more B give more memory back, and may so take the place of W. None does where B is held.
static int64_t when_memory_fits(const struct zb_flow_front *front, int d, int64_t start_b) {
  const struct hand *hand = &front->hand;
  const struct device *device = &front->device[d];
  const struct zb_fluid_table *table = &front->table[d];
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
static void look_down(struct zb_flow_front *front) {
  struct hand *hand = &front->hand;
  const int m = front->lanes.microbatches;
  for (int d = 0; d < front->lanes.devices; d++) {
    const int f = hand->count[2 * d];
    int64_t start = never;
    if (f < m) {
      start = hand->clock[d];
      if (d > 0) start = zb_max(start, there(front, 2 * d, 2 * d - 2, f));
    }
    hand->next_f[d] = start;
    if (f < m && front->device[d].limited) {
      const struct zb_fluid_table *table = &front->table[d];
      const int b = hand->count[2 * d + 1];
      const bool fits = b >= table->least_b[f + 1];
      const int64_t wait =
          fits ? zb_fluid_cell(table, f, b)->need * front->device[d].w - hand->poured[d] : never;
      if (wait > 0) {
        hand->next_f[d] = fits ? zb_max(start, hand->clock[d] + wait) : never;
        start = zb_max(start, when_memory_fits(front, d, hand->clock[d]));
      }
    }
    hand->start[2 * d] = start;
  }
}

// Likewise of every next B, up the chain.
static void look_up(struct zb_flow_front *front) {
  struct hand *hand = &front->hand;
  const int m = front->lanes.microbatches, last = front->lanes.devices - 1;
  for (int d = last; d >= 0; d--) {
    const int b = hand->count[2 * d + 1];
    int64_t start = never;
    if (b < m) {
      start = hand->clock[d];
      if (d < last) start = zb_max(start, there(front, 2 * d + 1, 2 * d + 3, b));
      if (hand->count[2 * d] == b || hand->held[d])
        start = zb_max(start, hand->start[2 * d] + front->device[d].time[ZB_F]);
    }
    hand->start[2 * d + 1] = start;
  }
}

static int64_t pourable(const struct zb_flow_front *front, int d) {
  return front->hand.count[2 * d + 1] * front->device[d].w - front->hand.poured[d];
}

static void write_op(const struct zb_flow_front *front, int d, enum zb_kind kind) {
  if (!front->orders) return;
  zb_orders_word(front->orders, d)[front->orders->count[d]++] =
      front->lanes.lane[3 * (size_t)d + (size_t)kind].letter;
}

// Runs `work` of W that is there; whole W are written down.
static void pour(struct zb_flow_front *front, int d, int64_t work) {
  front->hand.poured[d] += work;
  if (!front->orders || front->weights.fluid || work == 0) return;
  for (int64_t i = work / front->device[d].w; i > 0; i--) write_op(front, d, ZB_W);
}

// What fits before a time at which something else can start. The clock is that time unless whole W wait.
static void pour_until(struct zb_flow_front *front, int d, int64_t time) {
  struct hand *hand = &front->hand;
  const int64_t there = pourable(front, d), gap = time - hand->clock[d], w = front->device[d].w;
  if (front->weights.fluid || there <= gap) {
    pour(front, d, zb_min(there, gap));
    hand->clock[d] = time;
  } else {
    const int64_t work = gap - gap % w;
    pour(front, d, work);
    hand->clock[d] += work;
  }
}

// Raises clocks to what is implied. False: too late for something.
static bool look_ahead(struct zb_flow_front *front) {
  struct hand *hand = &front->hand;
  const struct zb_lanes *lanes = &front->lanes;
  const int m = lanes->microbatches;
  look_down(front);
  look_up(front);
  for (int d = 0; d < lanes->devices; d++) {
    const int f = hand->count[2 * d], b = hand->count[2 * d + 1];
    if (hand->next_f[d] > hand->start[2 * d]) {
      // It waits for memory, which more B may give back.
      hand->start[2 * d] =
          zb_max(hand->start[2 * d], when_memory_fits(front, d, hand->start[2 * (size_t)d + 1]));
      hand->next_f[d] = zb_max(hand->next_f[d], hand->start[2 * d]);
    }
    const int64_t *start = &hand->start[2 * (size_t)d];
    if (f < m && start[ZB_F] + front->device[d].time[ZB_F] > zb_lane_late(lanes, 3 * d, f)) return false;
    if (b < m && start[ZB_B] + front->device[d].time[ZB_B] > zb_lane_late(lanes, 3 * d + 1, b)) return false;
    if (b < m) {
      const int64_t next = zb_min(hand->next_f[d], start[ZB_B]);
      if (next > hand->clock[d]) pour_until(front, d, next);
    } else {
      const int64_t rest = pourable(front, d);
      pour(front, d, rest);
      hand->clock[d] += rest;
      hand->cost = zb_max(hand->cost, hand->clock[d] - lanes->origin[d]);
      if (hand->clock[d] > lanes->horizon[d]) return false;
    }
  }
  return true;
}

// Time in hand of a device by its table; negative: none.
static int64_t time_in_hand(const struct zb_flow_front *front, int d) {
  const struct hand *hand = &front->hand;
  const struct zb_fluid_table *table = &front->table[d];
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

static bool can_take_f(const struct zb_flow_front *front, int d) {
  const struct hand *hand = &front->hand;
  const int k = hand->count[2 * d];
  return k < front->lanes.microbatches && is_sent(front, 2 * d) &&
         hand->count[2 * d + 1] >= front->table[d].least_b[k + 1];
}

static bool can_take_b(const struct zb_flow_front *front, int d) {
  return !front->hand.held[d] && front->hand.count[2 * d + 1] < front->lanes.microbatches &&
         is_sent(front, 2 * d + 1);
}

// Whether B first could make an F late that goes before it in the best completion.
static bool b_first_does_harm(const struct zb_flow_front *front, int d) {
  const struct hand *hand = &front->hand;
  const struct device *device = &front->device[d];
  const struct zb_fluid_table *table = &front->table[d];
  const int f = hand->count[2 * d], b = hand->count[2 * d + 1];
  if (!front->weights.fluid || !device->limited || table->most_f[b] <= f) return false;
  const int64_t need = zb_fluid_cell(table, table->most_f[b] - 1, b + 1)->need * device->w;
  const int64_t start = hand->start[2 * d + 1];
  const int64_t poured = zb_min(b * device->w, hand->poured[d] + start - hand->clock[d]);
  return need > poured && start + device->time[ZB_B] + need - poured > hand->start[2 * d];
}

static void send(struct zb_flow_front *front, int d, int kind, int k, int64_t end) {
  const int to = kind == ZB_F ? 2 * d + 2 : 2 * d - 1;
  if (to < 0 || to >= 2 * front->lanes.devices) return;
  struct hand *hand = &front->hand;
  const int64_t there = end + front->device[d].delay[kind];
  hand->arrival[(size_t)to * (size_t)front->lanes.microbatches + (size_t)k] = there;
  // That may be later than was thought when starts were looked up.
  if (kind == ZB_F && k == hand->count[to]) hand->next_f[d + 1] = zb_max(hand->next_f[d + 1], there);
}

// Runs the next op of a lane at its earliest start.
static void run_op(struct zb_flow_front *front, int d, int kind) {
  struct hand *hand = &front->hand;
  const int lane = 2 * d + kind;
  const int64_t known = kind == ZB_F ? hand->next_f[d] : hand->start[lane];
  const int64_t start = zb_max(known, hand->clock[d]), end = start + front->device[d].time[kind];
  pour_until(front, d, start);
  hand->clock[d] = end;
  send(front, d, kind, hand->count[lane], end);
  hand->count[lane]++;
  if (kind == ZB_F) hand->held[d] = false;
  write_op(front, d, (enum zb_kind)kind);
  // W that take no time are never poured.
  if (kind == ZB_B && front->device[d].w == 0 && !front->weights.fluid) write_op(front, d, ZB_W);
}

// Whether a whole W may go before what can start next and waits for it: where much of it fits in before, or
// many wait.
static bool w_may_go_first(const struct zb_flow_front *front, int d, int64_t start) {
  const int64_t w = front->device[d].w, there = front->weights.fluid ? 0 : pourable(front, d);
  return there > 0 &&
         (front->weights.nearly * (start - front->hand.clock[d]) >= w || there >= front->weights.many * w);
}

// A B is sent by the device behind, which comes later in the same round; so its start is exact where it can
// come next, and where it cannot too early at most, which only lets less be forced.
static bool run_forced(struct zb_flow_front *front) {
  const struct hand *hand = &front->hand;
  bool any = false;
  for (int d = 0; d < front->lanes.devices; d++) {
    const int64_t *time = front->device[d].time, start[] = {hand->next_f[d], hand->start[2 * d + 1]};
    int kind;
    if (can_take_f(front, d) && start[ZB_B] >= start[ZB_F] + time[ZB_F])
      kind = ZB_F;
    else if (can_take_b(front, d) && start[ZB_F] >= start[ZB_B] + time[ZB_B] && !b_first_does_harm(front, d))
      kind = ZB_B;
    else
      continue;
    if (w_may_go_first(front, d, start[kind])) continue;
    run_op(front, d, kind);
    any = true;
  }
  return any;
}

static int done(const struct zb_flow_front *front) {
  int sum = 0;
  for (int l = 0; l < 2 * front->lanes.devices; l++) sum += front->hand.count[l];
  return sum;
}

// Runs all that is forced. False: nothing completes it.
static bool settle(struct zb_flow_front *front) {
  do {
    if (!look_ahead(front)) return false;
  } while (run_forced(front));
  return true;
}

// The choices on a device, by what can come next there; 0: it has none, or not yet.
static int choices_on(const struct zb_flow_front *front, int d, enum choice *choice, int64_t *end) {
  const int64_t *time = front->device[d].time;
  const int64_t start[] = {front->hand.next_f[d], front->hand.start[2 * d + 1]};
  const bool f = can_take_f(front, d) && start[ZB_F] < start[ZB_B] + time[ZB_B];
  const bool b = can_take_b(front, d) && start[ZB_B] < start[ZB_F] + time[ZB_F];
  const bool both = can_take_f(front, d) && can_take_b(front, d);
  int choices = 0;
  *end = zb_min(f ? start[ZB_F] + time[ZB_F] : INT64_MAX, b ? start[ZB_B] + time[ZB_B] : INT64_MAX);
  if (both) {
    choice[choices++] = TAKE_B;
    choice[choices++] = TAKE_F;
  } else if (b && b_first_does_harm(front, d)) {
    choice[choices++] = TAKE_B;
    choice[choices++] = HOLD_B;
  } else if ((f && start[ZB_B] >= start[ZB_F] + time[ZB_F]) ||
             (b && start[ZB_F] >= start[ZB_B] + time[ZB_B])) {
    // Forced, but for W.
    choice[choices++] = f ? TAKE_F : TAKE_B;
  }
  if (choices == 0 ||
      !w_may_go_first(front, d, zb_min(f ? start[ZB_F] : INT64_MAX, b ? start[ZB_B] : INT64_MAX)))
    return choices;
  if (b) choice[choices++] = W_THEN_B;
  if (f) choice[choices++] = W_THEN_F;
  return choices;
}

// The device of the op that ends first of all that can come next; -1: none can. What else could be next on
// it starts no earlier than that, whatever was looked up: it waits for one of them.
static int ends_first(const struct zb_flow_front *front, int *kind) {
  int first = -1;
  int64_t least = INT64_MAX;
  for (int d = 0; d < front->lanes.devices; d++) {
    const bool f = can_take_f(front, d);
    if (!f && !can_take_b(front, d)) continue;
    const int64_t start = f ? front->hand.next_f[d] : front->hand.start[2 * d + 1];
    const int64_t end = start + front->device[d].time[f ? ZB_F : ZB_B];
    if (end >= least) continue;
    least = end;
    first = d;
    *kind = f ? ZB_F : ZB_B;
  }
  return first;
}

// The device to branch on, of those that have choices the one where an op ends first; -1: none, nothing
// completes it.
static int choose(const struct zb_flow_front *front, enum choice *choice, int *choices) {
  int chosen = -1, kind;
  int64_t least = INT64_MAX;
  for (int d = 0; d < front->lanes.devices; d++) {
    enum choice here[MOST_CHOICES];
    int64_t end;
    const int count = choices_on(front, d, here, &end);
    if (count == 0 || end >= least) continue;
    least = end;
    chosen = d;
    *choices = count;
    memcpy(choice, here, sizeof here);
  }
  if (chosen >= 0 || (chosen = ends_first(front, &kind)) < 0) return chosen;
  *choices = 0;
  choice[(*choices)++] = kind == ZB_F ? TAKE_F : TAKE_B;
  if (kind == ZB_B && b_first_does_harm(front, chosen)) choice[(*choices)++] = HOLD_B;
  return chosen;
}

// Packing.

static void pack_key(struct zb_flow_front *front) {
  const struct hand *hand = &front->hand;
  const size_t devices = (size_t)front->lanes.devices;
  uint16_t *key = (uint16_t *)front->packed;
  memset(key, 0, front->shape.key * sizeof(int64_t));
  memcpy(key, hand->count, 2 * devices * sizeof *key);
  for (size_t d = 0; d < devices; d++)
    if (hand->held[d]) key[2 * devices + d / 16] |= (uint16_t)(1u << d % 16);
}

// Those that wait take turns from the start of the first on. Returns false where one cannot end in time.
static bool pack_waiting(struct zb_flow_front *front, int64_t **word) {
  const struct hand *hand = &front->hand;
  const size_t m = (size_t)front->lanes.microbatches;
  for (int lane = 0; lane < 2 * front->lanes.devices; lane++) {
    const int from = lane % 2 == ZB_F ? lane - 2 : lane + 2;
    if (from < 0 || from >= 2 * front->lanes.devices) continue;
    const int64_t time = front->device[lane / 2].time[lane % 2];
    int64_t turn = hand->start[lane];
    for (int k = hand->count[lane]; k < hand->count[from]; k++) {
      turn = zb_max(turn, hand->arrival[(size_t)lane * m + (size_t)k]);
      *(*word)++ = turn;
      turn += time;
      if (turn > zb_lane_late(&front->lanes, 3 * (lane / 2) + lane % 2, k)) return false;
    }
  }
  return true;
}

// Words that were packed; 0: nothing completes it.
static size_t pack(struct zb_flow_front *front, int64_t *score) {
  const struct hand *hand = &front->hand;
  const int devices = front->lanes.devices, m = front->lanes.microbatches;
  int64_t *clock = front->packed + front->shape.key, *lead = clock + devices;
  int64_t least = INT64_MAX, sum = 0;
  int open = 0;
  for (int d = 0; d < devices; d++) {
    clock[d] = lead[d] = 0;
    if (hand->count[2 * d + 1] == m) continue;
    const int64_t left = time_in_hand(front, d);
    if (left < 0) return 0;
    least = zb_min(least, left);
    sum += left;
    open++;
    clock[d] = hand->clock[d];
    lead[d] = hand->clock[d] - hand->poured[d];
  }
  *score = open ? 4 * least + sum / open : 0;
  lead[devices] = hand->cost;
  pack_key(front);
  int64_t *word = lead + devices + 1;
  return pack_waiting(front, &word) ? (size_t)(word - front->packed) : 0;
}

static void unpack(struct zb_flow_front *front, const int64_t *packed) {
  struct hand *hand = &front->hand;
  const size_t devices = (size_t)front->lanes.devices, m = (size_t)front->lanes.microbatches;
  const uint16_t *key = (const uint16_t *)packed;
  memcpy(hand->count, key, 2 * devices * sizeof *key);
  const int64_t *clock = packed + front->shape.key, *lead = clock + devices, *word = lead + devices + 1;
  hand->cost = lead[devices];
  for (size_t d = 0; d < devices; d++) {
    hand->held[d] = (key[2 * devices + d / 16] >> d % 16 & 1) != 0;
    hand->clock[d] = clock[d];
    hand->poured[d] = clock[d] - lead[d];
    if (hand->count[2 * d + 1] == front->lanes.microbatches) {
      // Its cost is known; nothing is late about it.
      hand->poured[d] = (int64_t)m * front->device[d].w;
      hand->clock[d] = front->lanes.origin[d];
    }
  }
  for (int lane = 0; lane < 2 * front->lanes.devices; lane++) {
    const int from = lane % 2 == ZB_F ? lane - 2 : lane + 2;
    if (from < 0 || from >= 2 * front->lanes.devices) continue;
    for (int k = hand->count[lane]; k < hand->count[from]; k++)
      hand->arrival[(size_t)lane * m + (size_t)k] = *word++;
  }
}

// Search.

// Settles the node at hand and keeps it. False where memory ran out.
static bool keep(struct zb_flow_front *front, uint32_t before, enum choice choice) {
  int64_t score;
  if (!settle(front)) return true;
  const size_t words = pack(front, &score);
  if (words == 0) return true;
  struct zb_layer *layer = &front->layer[done(front)];
  const size_t bytes = zb_layer_bytes(layer);
  if (zb_layer_add(layer, &front->shape, front->packed, words, score, before, choice) == ZB_LAYER_MEMORY)
    return false;
  front->bytes += zb_layer_bytes(layer) - bytes;
  return front->bytes <= most_bytes;
}

static void take(struct zb_flow_front *front, int d, enum choice choice) {
  if (choice == HOLD_B) {
    front->hand.held[d] = true;
    return;
  }
  if (choice == W_THEN_F || choice == W_THEN_B) {
    pour(front, d, front->device[d].w);
    front->hand.clock[d] += front->device[d].w;
  }
  run_op(front, d, choice == TAKE_F || choice == W_THEN_F ? ZB_F : ZB_B);
}

static bool expand(struct zb_flow_front *front, const struct zb_kept *kept) {
  const size_t bytes = 5 * (size_t)front->lanes.devices * sizeof *front->known;
  enum choice choice[MOST_CHOICES];
  int choices = 0;
  unpack(front, kept->word);
  if (!look_ahead(front)) return true;
  const int d = choose(front, choice, &choices);
  memcpy(front->known, front->hand.start, bytes);
  for (int i = 0; i < choices; i++) {
    if (i > 0) {
      unpack(front, kept->word);
      // A child is the same whichever number it has, or write_orders could not run it once more.
      memcpy(front->hand.start, front->known, bytes);
    }
    take(front, d, choice[i]);
    if (!keep(front, kept->path, choice[i])) return false;
  }
  return true;
}

static void start_anew(struct zb_flow_front *front) {
  struct hand *hand = &front->hand;
  const size_t devices = (size_t)front->lanes.devices;
  memset(hand->count, 0, 2 * devices * sizeof *hand->count);
  memset(hand->held, 0, devices * sizeof *hand->held);
  memset(hand->poured, 0, devices * sizeof *hand->poured);
  memcpy(hand->clock, front->lanes.frame, devices * sizeof *hand->clock);
  hand->cost = 0;
}

// Runs the choices of a path once more.
static bool write_orders(struct zb_flow_front *front, uint32_t path, struct zb_orders *orders) {
  const size_t length = zb_paths_length(&front->paths, path);
  unsigned char *choice = malloc(length + 1);
  if (!choice) return false;
  zb_paths_read(&front->paths, path, length, choice);
  for (int d = 0; d < front->lanes.devices; d++) orders->count[d] = 0;
  start_anew(front);
  front->orders = orders;
  // The first choice is what leads to the first node: none.
  for (size_t i = 1; i <= length && settle(front); i++) {
    int64_t score;
    enum choice here[MOST_CHOICES];
    int choices;
    if (i == length || pack(front, &score) == 0) break;
    unpack(front, front->packed);
    if (!look_ahead(front)) break;
    take(front, choose(front, here, &choices), (enum choice)choice[i]);
  }
  assert(done(front) == front->layers);
  front->orders = NULL;
  free(choice);
  return true;
}

static enum zb_front_end end_of(struct zb_flow_front *front, struct zb_orders *orders, int64_t *cost) {
  const struct zb_layer *layer = &front->layer[front->layers];
  const size_t at = front->shape.key + 2 * (size_t)front->lanes.devices;
  const struct zb_kept *best = layer->kept[0];
  for (size_t i = 1; i < layer->count; i++)
    if (layer->kept[i]->word[at] < best->word[at]) best = layer->kept[i];
  *cost = best->word[at];
  return write_orders(front, best->path, orders) ? ZB_FRONT_SOLVED : ZB_FRONT_MEMORY;
}

static void close_layer(struct zb_flow_front *front, struct zb_layer *layer) {
  front->bytes -= zb_layer_bytes(layer);
  zb_layer_free(layer, &front->shape);
}

enum zb_front_end zb_flow_front_run(struct zb_flow_front *front, int64_t work, const struct zb_halt *halt,
                                    struct zb_orders *orders, int64_t *cost) {
  const int64_t enough = work < INT64_MAX - front->work ? front->work + work : INT64_MAX;
  for (;; front->layer_number++) {
    struct zb_layer *layer = &front->layer[front->layer_number];
    if (front->worked == 0 && zb_layer_close(layer, &front->shape, front->most)) front->whole = false;
    if (front->layer_number == front->layers) break;
    while (front->worked < layer->count) {
      if (front->work >= enough) return ZB_FRONT_OPEN;
      if (front->work % 256 == 0 && zb_halted(halt)) return ZB_FRONT_STOPPED;
      front->work++;
      if (!expand(front, layer->kept[front->worked++])) return ZB_FRONT_MEMORY;
    }
    front->worked = 0;
    close_layer(front, layer);
  }
  if (front->layer[front->layers].count > 0) return end_of(front, orders, cost);
  return front->whole ? ZB_FRONT_REFUTED : ZB_FRONT_BARREN;
}

int64_t zb_flow_front_work(const struct zb_flow_front *front) { return front->work; }
bool zb_flow_front_whole(const struct zb_flow_front *front) { return front->whole; }

// Beginning and end.

static void fill_devices(const struct zb_chain *chain, struct zb_flow_front *front) {
  for (int d = 0; d < chain->devices; d++) {
    const struct zb_chain_device *from = &chain->device[d];
    front->device[d] = (struct device){.time = {from->f, from->b},
                                       .w = from->w,
                                       .delay = {0, from->backward_comm},
                                       .limited = from->room_bytes != ZB_NO_LIMIT};
    if (d + 1 < chain->devices) front->device[d].delay[ZB_F] = from[1].forward_comm;
  }
}

struct zb_flow_front *zb_flow_front_create(const struct zb_chain *chain, enum zb_objective objective) {
  struct zb_flow_front *front = calloc(1, sizeof *front);
  if (!front) return NULL;
  const size_t p = (size_t)chain->devices, m = (size_t)chain->microbatches;
  struct hand *hand = &front->hand;
  front->device = calloc(p, sizeof *front->device);
  front->table = calloc(p, sizeof *front->table);
  front->known = calloc(5 * p, sizeof *front->known);
  front->shape = (struct zb_layer_shape){.key = ((2 * p + (p + 15) / 16) * sizeof(uint16_t) + 7) / 8,
                                         .numbers = 2 * p + 1,
                                         .paths = &front->paths};
  front->packed = calloc(front->shape.key + front->shape.numbers + 2 * p * m, sizeof *front->packed);
  front->layers = (int)(2 * p * m);
  front->layer = calloc(2 * p * m + 1, sizeof *front->layer);
  hand->count = calloc(2 * p, sizeof *hand->count);
  hand->held = calloc(p, sizeof *hand->held);
  hand->arrival = calloc(2 * p * m, sizeof *hand->arrival);
  if ((hand->start = calloc(5 * p, sizeof *hand->start))) {
    hand->next_f = hand->start + 2 * p;
    hand->clock = hand->next_f + p;
    hand->poured = hand->clock + p;
  }
  bool all = zb_lanes_create(chain, objective, &front->lanes) && front->device && front->table &&
             front->known && front->packed && front->layer && hand->count && hand->held && hand->arrival &&
             hand->start;
  size_t cells = 0;
  for (int d = 0; all && d < chain->devices; d++) {
    all = zb_fluid_table_open(&front->lanes, d, &front->table[d]);
    cells += front->table[d].cells;
    all = all && cells <= most_cells;
  }
  if (all) {
    fill_devices(chain, front);
    return front;
  }
  zb_flow_front_free(front);
  return NULL;
}

static void empty_layers(struct zb_flow_front *front) {
  for (int i = 0; front->layer && i <= front->layers; i++) zb_layer_free(&front->layer[i], &front->shape);
  front->bytes = 0;
}

void zb_flow_front_free(struct zb_flow_front *front) {
  if (!front) return;
  empty_layers(front);
  for (int d = 0; front->table && d < front->lanes.devices; d++) zb_fluid_table_close(&front->table[d]);
  free(front->table);
  free(front->device);
  free(front->known);
  free(front->packed);
  free(front->layer);
  zb_paths_free(&front->paths);
  free(front->hand.count);
  free(front->hand.held);
  free(front->hand.arrival);
  free(front->hand.start);
  zb_lanes_free(&front->lanes);
  free(front);
}

enum zb_front_end zb_flow_front_begin(struct zb_flow_front *front, const struct zb_state *state,
                                      struct zb_flow_weights weights, size_t most) {
  struct zb_lanes *lanes = &front->lanes;
  empty_layers(front);
  front->most = most;
  front->weights = weights;
  front->whole = weights.fluid;
  front->work = 0;
  front->worked = 0;
  front->layer_number = 0;
  zb_lanes_aim(lanes, state);
  int64_t horizon = 0;
  for (int d = 0; d < lanes->devices; d++) {
    horizon = zb_max(horizon, lanes->horizon[d]);
    if (!zb_fluid_table_fill(lanes, d, &front->table[d])) return ZB_FRONT_MEMORY;
  }
  for (front->shape.coarse = 0; horizon >> front->shape.coarse > INT32_MAX;) front->shape.coarse++;
  start_anew(front);
  return keep(front, 0, TAKE_F) ? ZB_FRONT_OPEN : ZB_FRONT_MEMORY;
}
