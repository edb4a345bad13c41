// flow_look.c - starts along the pipe, clocks up to what can run next.
//
// What was found of an op stays known until it runs: only lanes of which something has changed are looked up
// again, and those that wait for them.
#include "solver/exact/flow_look.h"

#include "solver/model/number.h"

// Passes of looking ahead: what is not found in these is left.
enum { MOST_PASSES = 2 };

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
    if (before < 0 || hand->count[before] > k) continue;
    *sent = false;
    time = zb_max(time, hand->start[before] + hand->lane[before].time);
  }
  return time;
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
  int64_t least = zb_flow_never, over = hand->over[d] + hand->lane[l].bytes;
  for (int64_t more = 0; more <= left; more++, over -= device->most_b_gives) {
    const int64_t need = zb_fluid_weights(device->gives, over);
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
  const int64_t need = zb_fluid_weights(device->gives, hand->over[d] + hand->lane[l].bytes);
  return need > hand->backwards[d] ? zb_flow_never : need * device->w - hand->poured[d];
}

void zb_flow_write(const struct zb_flow_hand *hand, int d, int number) {
  if (!hand->orders) return;
  zb_orders_word(hand->orders, d)[hand->orders->count[d]++] = hand->lanes.lane[number].letter;
}
static void write_weight(const struct zb_flow_hand *hand, int d) {
  zb_flow_write(hand, d, hand->lanes.first_weight[d]);
}

// Whole W are written down.
void zb_flow_pour(struct zb_flow_hand *hand, int d, int64_t work) {
  hand->poured[d] += work;
  if (!hand->orders || hand->weights.fluid || work == 0) return;
  for (int64_t i = work / hand->device[d].w; i > 0; i--) write_weight(hand, d);
}

void zb_flow_pour_until(struct zb_flow_hand *hand, int d, int64_t time) {
  const int64_t there = zb_flow_pourable(hand, d), gap = time - hand->clock[d], w = hand->device[d].w;
  if (hand->weights.fluid || there <= gap) {
    zb_flow_pour(hand, d, zb_min(there, gap));
    hand->clock[d] = time;
  } else {
    const int64_t work = gap - gap % w;
    zb_flow_pour(hand, d, work);
    hand->clock[d] += work;
  }
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
    const struct zb_fluid_point point = zb_fluid_point(table, cell, i);
    if (hand->clock[d] + time - hand->poured[d] <= point.lead)
      last = zb_max(last, zb_min(point.latest, point.lead + hand->due[d]) - time);
  }
  return last;
}

// Takes a lane out of what can be next, where the device would have no time in hand.
static void rule_out(struct zb_flow_hand *hand, int l) {
  if (hand->next[l] >= zb_flow_never) return;
  if (hand->last_start[l] == zb_flow_unknown) hand->last_start[l] = last_start(hand, l);
  if (hand->next[l] > hand->last_start[l]) hand->next[l] = zb_flow_never;
}

// Earliest start of the next op of a lane. What was known of the same op still holds.
static void look_up(struct zb_flow_hand *hand, int l) {
  const int d = hand->lane[l].device, wait = hand->wait[d];
  const int64_t known = hand->start[l], next = hand->next[l];
  const bool sent = hand->sent[l];
  if (zb_flow_is_over(hand, l)) {
    hand->start[l] = hand->next[l] = zb_flow_never;
    hand->sent[l] = false;
    hand->touched[d] = true;
    return;
  }
  const int64_t here = there(hand, l, &hand->sent[l]);
  int64_t start = zb_max(known, here);
  hand->next[l] = start;
  if (hand->lane[l].kind == ZB_F) {
    const int64_t waits = wait_for_memory(hand, l);
    if (waits > 0) {
      hand->next[l] = waits < zb_flow_never ? zb_max(start, hand->clock[d] + waits) : zb_flow_never;
      start = zb_max(start, when_memory_fits(hand, l, hand->clock[d]));
    }
  }
  if (wait >= 0 && l != wait) {
    hand->next[l] = zb_flow_never;
    if (hand->start[wait] < zb_flow_never) start = zb_max(start, hand->start[wait] + hand->lane[wait].time);
  }
  zb_flow_raise_start(hand, l, start);
  rule_out(hand, l);
  if (start != known || hand->next[l] != next)
    hand->touched[d] = true;
  else if (hand->sent[l] != sent)
    hand->changed[d] = true;
}

// All that has changed, along the pipe. Returns whether something had.
static bool look_down(struct zb_flow_hand *hand) {
  bool any = false;
  for (size_t word = 0; word < hand->stale_words; word++) {
    while (hand->stale[word] != 0) {
      const int bit = __builtin_ctzll(hand->stale[word]), l = hand->down[64 * word + (size_t)bit];
      hand->stale[word] &= hand->stale[word] - 1;
      look_up(hand, l);
      any = true;
    }
  }
  return any;
}

// Raises the clock of a device to where something can run next.
static void raise_clock(struct zb_flow_hand *hand, int d, int64_t next) {
  const struct zb_flow_device *device = &hand->device[d];
  zb_flow_pour_until(hand, d, next);
  const int64_t clock = hand->clock[d];
  for (int l = device->first; l < device->end; l++) zb_flow_raise_start(hand, l, clock);
  // Too little W may have been there to pour.
  if (device->limited && zb_flow_pourable(hand, d) == 0)
    for (int l = device->forwards; l < device->end; l++)
      if (hand->next[l] > hand->start[l]) zb_flow_mark_stale(hand, l);
}

// A device with nothing but W left. False: they end too late.
static bool finish(struct zb_flow_hand *hand, int d) {
  const int64_t rest = zb_flow_pourable(hand, d);
  zb_flow_pour(hand, d, rest);
  hand->clock[d] += rest;
  hand->cost = zb_max(hand->cost, hand->clock[d] - hand->lanes.origin[d]);
  return hand->clock[d] <= hand->lanes.horizon[d];
}

// What is known of an F that waits for memory once that of B is.
static void look_again(struct zb_flow_hand *hand, int l) {
  const struct zb_flow_device *device = &hand->device[hand->lane[l].device];
  int64_t start_b = zb_flow_never;
  for (int b = device->first; b < device->forwards; b++) start_b = zb_min(start_b, hand->start[b]);
  zb_flow_raise_start(hand, l, when_memory_fits(hand, l, start_b));
  hand->next[l] = zb_max(hand->next[l], hand->start[l]);
  rule_out(hand, l);
}

// A device of which something has changed: its clock is that of what can be next, and what is not next starts
// behind what is. False: nothing can be next, or something is too late.
static bool look_at(struct zb_flow_hand *hand, int d) {
  const struct zb_flow_device *device = &hand->device[d];
  int64_t next = zb_flow_never, end = zb_flow_never;
  bool out = false;
  hand->touched[d] = false;
  hand->changed[d] = true;
  if (zb_flow_is_done(hand, d)) return finish(hand, d);
  if (device->limited)
    for (int l = device->forwards; l < device->end; l++)
      if (hand->next[l] > hand->start[l]) look_again(hand, l);
  for (int l = device->first; l < device->end; l++) {
    if (hand->next[l] < zb_flow_never) {
      next = zb_min(next, hand->next[l]);
      end = zb_min(end, hand->next[l] + hand->lane[l].time);
    } else {
      out = true;
    }
  }
  if (next >= zb_flow_never) return false;
  if (out)
    for (int l = device->first; l < device->end; l++)
      if (hand->next[l] >= zb_flow_never) zb_flow_raise_start(hand, l, end);
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
