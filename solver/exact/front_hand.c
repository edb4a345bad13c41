// front_hand.c - a partial schedule's memory, what can come next in it, what it implies, and packing.
#include "solver/exact/front_hand.h"

#include <stdlib.h>
#include <string.h>

#include "solver/exact/grid.h"
#include "solver/model/number.h"

enum { NOBODY = -1 };

// Lanes of W of a device of which there are sets.
enum { MOST_SUMMED = 4 };

// Of a device that is done.
static const int64_t finished = 0;

// What waits.

static int waiting(const struct zb_front_hand *hand, int lane) {
  return hand->queued[lane] - (lane == hand->taken) + (lane == hand->sent);
}

static int64_t arrival(const struct zb_front_hand *hand, int lane, int number) {
  const int at = number + (lane == hand->taken);
  return at < hand->queued[lane] ? hand->queue[lane][at] : hand->sent_at;
}

static bool memory_fits(const struct zb_front_hand *hand, const struct zb_lane *lane) {
  const int64_t room = hand->lanes.room_bytes[lane->device];
  if (room == ZB_NO_LIMIT) return true;
  int64_t bytes = lane->bytes;
  for (int l = hand->lanes.first[lane->device]; l < hand->lanes.first[lane->device + 1]; l++)
    bytes += hand->count[l] * hand->lanes.lane[l].bytes;
  return bytes <= room;
}

bool zb_front_hand_can_come_next(const struct zb_front_hand *hand, int number, int64_t *start) {
  const struct zb_lane *lane = &hand->lanes.lane[number];
  if (hand->count[number] == lane->count || !zb_lane_is_ready(&hand->lanes, number, hand->count))
    return false;
  *start = hand->clock[lane->device];
  if (lane->source >= 0) {
    if (waiting(hand, number) == 0) return false;
    *start = zb_max(*start, arrival(hand, number, 0));
  }
  return lane->bytes <= 0 || memory_fits(hand, lane);
}

// Latest time at which device d may be in its state; negative: never.
static int64_t latest(const struct zb_front_hand *hand, int d) {
  const struct zb_lanes *lanes = &hand->lanes;
  const uint16_t *count = &hand->count[lanes->first[d]];
  if (!hand->has_tables) return lanes->horizon[d];
  int64_t by;
  if (lanes->chunked) {
    int counts[ZB_MOST_CLASSES];
    for (int i = 0; i < lanes->first[d + 1] - lanes->first[d]; i++) counts[i] = count[i];
    by = zb_grid_latest(hand->lattice[d].grid, counts);
  } else {
    by = zb_lattice_latest(&hand->lattice[d], count[0], count[1], count[2]);
  }
  return by < 0 ? by : by + lanes->frame[d];
}

// What does not fit now comes behind an op of its device that gives memory back.
static bool wait_for_memory(struct zb_front_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  for (int l = 0; l < lanes->lanes; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    const int d = lane->device, k = hand->count[l];
    if (lane->bytes <= 0 || lane->kind == ZB_W || k == lane->count || memory_fits(hand, lane)) continue;
    int64_t least = INT64_MAX;
    for (int other = lanes->first[d]; other < lanes->first[d + 1]; other++) {
      const struct zb_lane *gives = &lanes->lane[other];
      if (other == l || hand->count[other] == gives->count) continue;
      if (gives->kind != ZB_W)
        least = zb_min(least, hand->estimate[other] + gives->time);
      else if (zb_lane_is_ready(lanes, other, hand->count))
        least = zb_min(least, hand->clock[d] + gives->time);
    }
    if (least == INT64_MAX) return false;
    hand->estimate[l] = zb_max(hand->estimate[l], least);
    if (hand->estimate[l] + lane->time > zb_lane_late(lanes, l, k)) return false;
  }
  return true;
}

// Earliest starts of the next F and B of every stage, if all before them comes at once.
static bool estimate(struct zb_front_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  for (int i = 0; i < lanes->flows; i++) {
    const int number = lanes->flow[i];
    const struct zb_lane *lane = &lanes->lane[number];
    const int k = hand->count[number];
    if (k == lane->count) continue;
    int64_t start = hand->clock[lane->device];
    if (lane->source >= 0) {
      start = zb_max(start, waiting(hand, number) > 0 ? arrival(hand, number, 0)
                                                      : hand->estimate[lane->source] +
                                                            lanes->lane[lane->source].time + lane->delay);
    }
    for (int j = 0; j < 2; j++) {
      const int before = lane->before[j];
      if (before >= 0 && hand->count[before] == k)
        start = zb_max(start, hand->estimate[before] + lanes->lane[before].time);
    }
    if (start + lane->time > zb_lane_late(lanes, number, k)) return false;
    hand->estimate[number] = start;
  }
  return wait_for_memory(hand);
}

// Raises when a device counts as free; one that has only W left runs them. False: too late.
static bool settle_device(struct zb_front_hand *hand, int d, bool *done) {
  const struct zb_lanes *lanes = &hand->lanes;
  bool flows_left = false, weights_wait = false;
  int64_t least = INT64_MAX, rest = 0;
  for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    const int left = lane->count - hand->count[l];
    if (lane->kind == ZB_W) {
      rest += left * lane->time;
      weights_wait = weights_wait || (left > 0 && zb_lane_is_ready(lanes, l, hand->count));
    } else if (left > 0) {
      flows_left = true;
      least = zb_min(least, hand->estimate[l]);
    }
  }
  *done = !flows_left;
  if (flows_left) {
    if (!weights_wait) hand->clock[d] = zb_max(hand->clock[d], least);
    return true;
  }
  if (rest > 0) {
    hand->clock[d] += rest;
    for (int l = lanes->first[d]; l < lanes->first[d + 1]; l++)
      hand->count[l] = (uint16_t)lanes->lane[l].count;
  }
  hand->cost = zb_max(hand->cost, hand->clock[d] - lanes->origin[d]);
  return hand->clock[d] <= lanes->horizon[d];
}

// Packing.

static size_t leads_of(const struct zb_lanes *lanes, int d) {
  const int lanes_of_w = lanes->first[d + 1] - lanes->first_weight[d];
  const int summed = lanes_of_w < MOST_SUMMED ? lanes_of_w : MOST_SUMMED;
  return ((size_t)1 << summed) - 1 + (size_t)(lanes_of_w - summed);
}

// A device's clock less the W of each set of its lanes. Adds up W done.
static int64_t *pack_leads(const struct zb_front_hand *hand, int d, int64_t clock, int64_t *lead,
                           int64_t *weights) {
  const struct zb_lanes *lanes = &hand->lanes;
  const int first = lanes->first_weight[d];
  int sets = 0;
  for (int l = first; l < lanes->first[d + 1]; l++) {
    *weights += hand->count[l];
    if (l >= first + MOST_SUMMED) {
      lead[sets++] = -hand->count[l];
      continue;
    }
    const int64_t done = hand->count[l] * lanes->lane[l].time;
    for (int i = 0; i < sets; i++) lead[sets + 1 + i] = lead[i] - done;
    lead[sets] = clock - done;
    sets = 2 * sets + 1;
  }
  return lead + sets;
}

// Those that wait take turns from the start of the first on. Returns false where one cannot end in time.
static bool pack_queues(const struct zb_front_hand *hand, int64_t **word) {
  const struct zb_lanes *lanes = &hand->lanes;
  for (int l = 0; l < lanes->lanes; l++) {
    const struct zb_lane *lane = &lanes->lane[l];
    if (lane->source < 0) continue;
    int64_t turn = hand->count[l] < lane->count ? hand->estimate[l] : 0;
    const int queued = waiting(hand, l), k = hand->count[l];
    for (int i = 0; i < queued; i++) {
      turn = zb_max(turn, arrival(hand, l, i));
      *(*word)++ = turn;
      turn += lane->time;
      if (turn > zb_lane_late(lanes, l, k + i)) return false;
    }
  }
  return true;
}

size_t zb_front_hand_pack(struct zb_front_hand *hand, int64_t *score) {
  const struct zb_lanes *lanes = &hand->lanes;
  const int devices = lanes->devices;
  int64_t *const clock = hand->packed + hand->aside_words + hand->key_words, *word = clock + devices + 2;
  int64_t least = INT64_MAX, sum = 0, weights = 0;
  int open = 0;
  if (!estimate(hand)) return 0;
  for (int d = 0; d < devices; d++) {
    bool done;
    if (!settle_device(hand, d, &done)) return 0;
    clock[d] = done ? finished : hand->clock[d];
    if (done) continue;
    const int64_t left = latest(hand, d) - hand->clock[d];
    if (left < 0) return 0;
    least = zb_min(least, left);
    sum += left;
    open++;
  }
  *score = open ? 4 * least + sum / open : 0;
  memcpy(hand->packed + 1, hand->count, (size_t)lanes->lanes * sizeof *hand->count);
  uint16_t *const key = (uint16_t *)(hand->packed + hand->aside_words);
  for (int i = 0; i < lanes->flows; i++) key[i] = hand->count[lanes->flow[i]];
  for (int d = 0; d < devices; d++) word = pack_leads(hand, d, clock[d], word, &weights);
  hand->packed[0] = weights;
  clock[devices] = -weights;
  clock[devices + 1] = hand->cost;
  return pack_queues(hand, &word) ? (size_t)(word - hand->packed) : 0;
}

void zb_front_hand_unpack(struct zb_front_hand *hand, const int64_t *packed) {
  const struct zb_lanes *lanes = &hand->lanes;
  memcpy(hand->count, packed + 1, (size_t)lanes->lanes * sizeof *hand->count);
  const int64_t *const clock = packed + hand->aside_words + hand->key_words, *word = clock + hand->numbers;
  memcpy(hand->clock, clock, (size_t)lanes->devices * sizeof *clock);
  hand->cost = clock[lanes->devices + 1];
  for (int l = 0; l < lanes->lanes; l++) {
    const int source = lanes->lane[l].source;
    hand->queue[l] = word;
    hand->queued[l] = source < 0 ? 0 : hand->count[source] - hand->count[l];
    word += hand->queued[l];
  }
  hand->taken = hand->sent = NOBODY;
}

bool zb_front_hand_run(struct zb_front_hand *hand, int number, int64_t end) {
  const struct zb_lanes *lanes = &hand->lanes;
  const struct zb_lane *lane = &lanes->lane[number];
  if (end > zb_lane_late(lanes, number, hand->count[number])) return false;
  hand->count[number]++;
  hand->clock[lane->device] = end;
  hand->taken = lane->source >= 0 ? number : NOBODY;
  hand->sent = lane->target;
  if (lane->target >= 0) hand->sent_at = end + lanes->lane[lane->target].delay;
  return true;
}

// Beginning and end.

void zb_front_hand_start(struct zb_front_hand *hand) {
  const struct zb_lanes *lanes = &hand->lanes;
  memset(hand->count, 0, (size_t)lanes->lanes * sizeof *hand->count);
  memset(hand->queued, 0, (size_t)lanes->lanes * sizeof *hand->queued);
  memcpy(hand->clock, lanes->frame, (size_t)lanes->devices * sizeof *hand->clock);
  hand->cost = 0;
  hand->taken = hand->sent = NOBODY;
}

// Every device's table at the fixpoint.
static enum zb_sweep read_tables(struct zb_front_hand *hand, struct zb_state *state) {
  struct zb_lattice *const before = state->lattice;
  enum zb_sweep swept = ZB_SWEEP_KEPT;
  for (int d = 0; d < hand->lanes.devices && swept == ZB_SWEEP_KEPT; d++) {
    hand->lattice[d].halt = before->halt;
    hand->lattice[d].most_states = before->most_states / (size_t)hand->lanes.devices;
    state->lattice = &hand->lattice[d];
    swept = zb_state_sweep(state, d);
    hand->lattice[d].halt = NULL;
  }
  state->lattice = before;
  return swept;
}

enum zb_sweep zb_front_hand_aim(struct zb_front_hand *hand, struct zb_state *state) {
  struct zb_lanes *lanes = &hand->lanes;
  const bool poured = lanes->chunked && lanes->chunked->fluid;
  const enum zb_sweep swept = poured ? ZB_SWEEP_MEMORY : read_tables(hand, state);
  hand->has_tables = swept == ZB_SWEEP_KEPT;
  zb_lanes_aim(lanes, state);
  return swept == ZB_SWEEP_REFUTED || swept == ZB_SWEEP_STOPPED ? swept : ZB_SWEEP_KEPT;
}

static size_t words_of_counts(size_t counts) { return (counts * sizeof(uint16_t) + 7) / 8; }

bool zb_front_hand_open(const struct zb_chain *chain, enum zb_objective objective,
                        struct zb_front_hand *hand) {
  *hand = (struct zb_front_hand){0};
  struct zb_lanes *lanes = &hand->lanes;
  if (!zb_lanes_create(chain, objective, lanes)) return false;
  const size_t devices = (size_t)lanes->devices, n = (size_t)lanes->lanes, flows = (size_t)lanes->flows;
  hand->aside_words = 1 + words_of_counts(n);
  hand->key_words = words_of_counts(flows);
  hand->numbers = devices + 2;
  for (int d = 0; d < lanes->devices; d++) hand->numbers += leads_of(lanes, d);
  // Every arrival that can wait: an op of each lane and microbatch at most.
  hand->packed = calloc(hand->aside_words + hand->key_words + hand->numbers + n * (size_t)lanes->microbatches,
                        sizeof *hand->packed);
  hand->lattice = calloc(devices, sizeof *hand->lattice);
  hand->count = calloc(n, sizeof *hand->count);
  hand->clock = calloc(devices, sizeof *hand->clock);
  hand->estimate = calloc(n, sizeof *hand->estimate);
  hand->queue = calloc(n, sizeof *hand->queue);
  hand->queued = calloc(n, sizeof *hand->queued);
  return hand->packed && hand->lattice && hand->count && hand->clock && hand->estimate && hand->queue &&
         hand->queued;
}

void zb_front_hand_close(struct zb_front_hand *hand) {
  for (int d = 0; hand->lattice && d < hand->lanes.devices; d++) zb_lattice_free(&hand->lattice[d]);
  free(hand->lattice);
  free(hand->packed);
  free(hand->count);
  free(hand->clock);
  free(hand->estimate);
  free(hand->queue);
  free(hand->queued);
  zb_lanes_free(&hand->lanes);
  *hand = (struct zb_front_hand){0};
}
