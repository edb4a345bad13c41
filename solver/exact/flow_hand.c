// flow_hand.c - a partial schedule's memory, beginning, and packing.
#include "solver/exact/flow_hand.h"

#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Most states of all tables, and most F and B.
static const size_t most_cells = (size_t)1 << 22, most_ops = (size_t)1 << 22;

void zb_flow_count(struct zb_flow_hand *hand, int l, int times) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const int d = lane->device;
  hand->count[l] = (uint16_t)(hand->count[l] + times);
  hand->over[d] += times * lane->bytes;
  hand->due[d] += times * lane->weight;
  if (lane->kind == ZB_B) hand->backwards[d] += times;
}

int zb_flow_done(const struct zb_flow_hand *hand) {
  int sum = 0;
  for (int l = 0; l < hand->flows; l++) sum += hand->count[l];
  return sum;
}

// Time in hand of a device by its table; negative: none.
static int64_t time_in_hand(const struct zb_flow_hand *hand, int d) {
  const struct zb_fluid_table *table = &hand->table[d];
  const struct zb_fluid_cell *cell = zb_fluid_cell(table, &hand->count[hand->device[d].first]);
  int64_t most = -1;
  for (int i = 0; cell && i < cell->points; i++) {
    const struct zb_fluid_point point = zb_fluid_point(table, cell, i);
    most = zb_max(most, zb_min(point.latest, point.lead + hand->poured[d]) - hand->clock[d]);
  }
  return most;
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

// What has least in hand ends a schedule, and what all have says how soon another will: the least and the
// mean of devices by their tables, with all that comes behind on them, and of next ops on their way along the
// pipe. These four weights did best, by costs of narrow layers on chains.
static int64_t score_of(const struct zb_flow_hand *hand, int64_t least, int64_t mean) {
  int64_t least_next = INT64_MAX, sum = 0;
  int open = 0;
  for (int l = 0; l < hand->flows; l++) {
    if (zb_flow_is_over(hand, l)) continue;
    const struct zb_flow_lane *lane = &hand->lane[l];
    const int64_t left = lane->late[hand->count[l]] - lane->time - hand->start[l];
    least_next = zb_min(least_next, left);
    sum += left;
    open++;
  }
  return open ? 2 * (least + mean + least_next) + sum / open : 0;
}

size_t zb_flow_pack(struct zb_flow_hand *hand, int64_t *score) {
  const int devices = hand->lanes.devices;
  int64_t *clock = hand->packed + hand->key_words, *lead = clock + devices;
  int64_t least = INT64_MAX, sum = 0;
  int open = 0;
  for (int d = 0; d < devices; d++) {
    clock[d] = lead[d] = 0;
    if (zb_flow_is_done(hand, d)) continue;
    const int64_t left = time_in_hand(hand, d);
    if (left < 0) return 0;
    least = zb_min(least, left);
    sum += left;
    open++;
    clock[d] = hand->clock[d];
    lead[d] = hand->clock[d] - hand->poured[d];
  }
  if (score) *score = open ? score_of(hand, least, sum / open) : 0;
  lead[devices] = hand->cost;
  pack_key(hand);
  int64_t *word = lead + devices + 1;
  return pack_waiting(hand, &word) ? (size_t)(word - hand->packed) : 0;
}

static bool is_sent(const struct zb_flow_hand *hand, int l) {
  const struct zb_flow_lane *lane = &hand->lane[l];
  const uint16_t k = hand->count[l];
  return k < hand->lanes.microbatches && (lane->source < 0 || hand->count[lane->source] > k) &&
         (lane->before[0] < 0 || hand->count[lane->before[0]] > k) &&
         (lane->before[1] < 0 || hand->count[lane->before[1]] > k);
}

// Nothing is done, and nothing known.
static void forget(struct zb_flow_hand *hand) {
  for (int l = 0; l < hand->flows; l++) {
    hand->start[l] = hand->last_start[l] = zb_flow_unknown;
    zb_flow_mark_stale(hand, l);
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
  for (int l = 0; l < hand->flows; l++) zb_flow_count(hand, l, key[l]);
  const int64_t *clock = packed + hand->key_words, *lead = clock + devices, *word = lead + devices + 1;
  hand->cost = lead[devices];
  for (size_t d = 0; d < devices; d++) {
    hand->wait[d] = wait[d] > 0 ? hand->device[d].first + wait[d] - 1 : ZB_NO_LANE;
    hand->clock[d] = clock[d];
    hand->poured[d] = clock[d] - lead[d];
    if (zb_flow_is_done(hand, (int)d)) {
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
  for (int l = 0; l < hand->flows; l++) hand->sent[l] = is_sent(hand, l);
}

// Beginning and end.

void zb_flow_start(struct zb_flow_hand *hand) {
  const size_t devices = (size_t)hand->lanes.devices;
  memset(hand->changed, true, devices * sizeof *hand->changed);
  forget(hand);
  memset(hand->poured, 0, devices * sizeof *hand->poured);
  memcpy(hand->clock, hand->lanes.frame, devices * sizeof *hand->clock);
  for (size_t d = 0; d < devices; d++) hand->wait[d] = ZB_NO_LANE;
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
                                    .source = ZB_NO_LANE,
                                    .target = ZB_NO_LANE,
                                    .after = {ZB_NO_LANE, ZB_NO_LANE},
                                    .late = &lanes->late[(size_t)number * (size_t)lanes->microbatches]};
      if (from->source >= 0) {
        lane->source = here[from->source];
        lane->travel = lanes->lane[from->source].time + from->delay;
      }
      if (from->target >= 0) {
        lane->target = here[from->target];
        lane->delay = lanes->lane[from->target].delay;
      }
      for (int b = 0; b < 2; b++) lane->before[b] = from->before[b] >= 0 ? here[from->before[b]] : ZB_NO_LANE;
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
