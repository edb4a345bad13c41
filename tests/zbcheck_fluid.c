/* zbcheck: the relaxation `fluid-fronts`, a complete search in layers for more than schedules.
 *
 * It is for any placement, span or makespan, where no stage has a BW that could pay, so that on a limited
 * device B and W only give memory back; with several stages on a device its W are alike, and for the span the
 * first stage of each device follows the first stage of another, so that the device's start is known. The
 * search is for orders of the F and B of every device, in each lane (zbcheck_fluid.h) in the order of
 * microbatches. W has no place in them: it is poured, at rate 1, whenever no F or B runs on the device, but
 * never beyond w for each B that has ended there. F waits for memory with as many W given back as are poured,
 * in whole W. Sought is a pouring in which every F and B ends inside its window (zbcheck_window.c) and every
 * device has all W poured by the horizon, S on its own clock. From a schedule of cost S or less comes one,
 * with the same F and B: at every time as much W is poured as the schedule has done, or more. So if there is
 * no pouring, S is refuted.
 *
 * Of a device, `clock` is when it is free and `lag` the clock less what is poured. Nothing is lost if both
 * are less, or if an op starts earlier: what was waited for before can be waited for after, and W poured
 * then, up to a limit that is no lower. So of an order only the pouring counts in which every op starts as
 * early as can be. A node is, on every device, a beginning of its order, run so: how many F and B of each
 * stage are done, the clock, the lag, and the inputs that came from other devices and were not taken, a queue
 * for each lane that has them from there. It is good if what is left can be added.
 *
 * What can be next. A lane of a device can have the next op there if it has one left, the lane before it on
 * the device is ahead, and, for an F, memory does not ask for another B first. It may have to wait for its
 * input, or for W. But where one lane's op can start now and fits in before another's could start, the other
 * need not be next if what fits in does no harm there (zbcheck_fluid_ahead.c). If only one lane is left and
 * can start now, a device has to run it (`run_forced`). That is so whatever the clocks of other devices say,
 * and stays so when they go on: what has to run is run at once and makes no nodes, and where that ends up
 * does not depend on the order.
 *
 * Choices. If all that can be next on a device can start now, these are the children: in each one lane has
 * run. Whose choice comes first does not matter; it is the first such device's. If there is none, let e be
 * the least end, on the first device's clock, of all that can be next and start now. Every op that is not
 * done ends at e or later, as the first of them to end can start now. So on the device of that op what cannot
 * start now starts at e or later, as its input comes from an op that is not done. Perhaps this leaves only
 * one lane, which runs; else one child for each lane: one that can start now has run, one that cannot is held
 * to be next, and nothing else runs on the device until it has. The lane that is held is part of what a node
 * is: it is good if what is left can be added so.
 *
 * What is implied (`settle`). The next op of a lane can start no earlier than its input can come, with the
 * earliest start of the lane before where its next op is the same microbatch's; an F not before memory allows
 * it, by whatever is poured or by the B that it has to wait for; nothing on a device before the lane that is
 * held there has run. Where an op would end after its window, or a device's clock and lag miss all that it
 * could finish from (zbcheck_fluid_table.c), the node is not good. A device is free no earlier than an op
 * that can be next can start, and pours till then; inputs that queue take turns. Times are raised to that, so
 * that nodes alike in what can follow look alike. A device with no F or B left has met the horizon, and its
 * clock counts no more. Nor does a lag count where as much is poured as any F to come asks for, and lag and
 * all ops to come meet the horizon: an op adds as much to the clock as to the lag, and what else raises a
 * lag, that no W is left to pour, does not depend on it. The lag is raised that far, too.
 *
 * Covering. Of two nodes with the same F and B done, and the same held, on every device X covers Y if no
 * clock, lag or input of X is later: what can follow Y can follow X. Covered nodes are dropped; of equal ones
 * one stays.
 *
 * Layers go by F and B done in all, then by devices that hold. A child is in a later one than its node. Of
 * the last layer that was ever given a good node, before the end, take one that no other there covers; it had
 * its children made, and one of those is good, in a later layer. So if none is left with all F and B done,
 * the first node was not good. */
#include "zbcheck_fluid.h"

#include <string.h>

/* ---- the node at work ---- */

/* Inputs that queue. */
static inline int32_t queued(const struct fluid *s, int32_t l) {
  return s->lane[l].crosses ? s->lane_at[l - 1].done - s->lane_at[l].done : 0;
}

static inline bool all_done(const struct fluid *s, int32_t i) {
  const struct fluid_device *d = &s->device[i];

  return s->lane_at[d->lane[d->lanes - 1]].done == s->m;
}

/* Whether one of the device's points can still be met. With no F and B left it is met for good. */
static inline bool can_finish(struct fluid *s, int32_t i) {
  const struct fluid_state *state = zc_fluid_state(s, i);
  struct fluid_at *at = &s->at[i];

  for (int32_t k = 0; k < state->points; k++) {
    if (at->clock > state->point[k].clock || at->lag > state->point[k].lag) continue;
    if (all_done(s, i)) at->clock = at->lag = 0;
    return true;
  }
  return false;
}

/* The next op of lane number e of device i, which can be its next, starts. False if that is too late. */
static bool run_op(struct fluid *s, int32_t i, int32_t e, int64_t start) {
  int32_t l = s->device[i].lane[e];
  const struct fluid_lane *lane = &s->lane[l];
  struct fluid_lane_at *lane_at = &s->lane_at[l];
  struct fluid_at *at = &s->at[i];

  at->lag = zc_fluid_lag_after(s, i, start, lane->takes);
  at->clock = start + lane->takes;
  at->state = zc_fluid_steps(s, i)[e].to;
  at->held = -1;
  if (at->clock > lane->end[lane_at->done]) return false;
  if (l + 1 < s->lanes && lane[1].crosses) lane_at[1].in[lane_at->done] = at->clock + lane[1].delay;
  if (++lane_at->done == s->m) lane_at->next = zc_never;
  s->done++;
  return can_finish(s, i);
}

/* Runs what device i has to do next. False if the node at work is not good. */
static bool run_forced(struct fluid *s, int32_t i, bool *ran) {
  struct fluid_options x;

  while (!all_done(s, i)) {
    zc_fluid_ahead(s, i, 0, &x);
    if (x.wait || x.run & (x.run - 1)) return true;
    if (!x.run) return false;
    int32_t e = __builtin_ctz(x.run);
    if (!run_op(s, i, e, x.start[e])) return false;
    *ran = true;
  }
  return true;
}

/* ---- what is implied ---- */

/* The earliest end of the last of `more` B from here on device i: so many ends of its lanes of B come first.
 */
static int64_t b_end_after(const struct fluid *s, int32_t i, int32_t more) {
  const struct fluid_device *d = &s->device[i];
  int32_t seen[ZC_MOST_CLASSES] = {0};
  int64_t end[ZC_MOST_CLASSES], last = 0;

  for (int32_t e = d->lanes / 2; e < d->lanes; e++)
    end[e] = s->lane_at[d->lane[e]].next + s->lane[d->lane[e]].takes;
  for (int32_t x = 0; x < more; x++) {
    int32_t first = d->lanes / 2;
    int64_t shortest = zc_never;
    for (int32_t e = first; e < d->lanes; e++) {
      if (end[e] < end[first]) first = e;
      shortest = zc_least(shortest, s->lane[d->lane[e]].takes);
    }
    int32_t l = d->lane[first];
    last = x == 0 ? end[first] : zc_most(end[first], last + shortest);
    end[first] += s->lane[l].takes;
    if (++seen[first] < queued(s, l))
      end[first] = zc_most(end[first], s->lane_at[l].in[s->lane_at[l].done + seen[first]] + s->lane[l].takes);
    if (s->lane_at[l].done + seen[first] >= s->m) end[first] = zc_never;
  }
  return last;
}

/* Raises the earliest start in a lane. False if that is too late. */
static bool settle_lane(struct fluid *s, int32_t l) {
  const struct fluid_lane *lane = &s->lane[l];
  const struct fluid_device *d = &s->device[lane->device];
  const struct fluid_at *at = &s->at[lane->device];
  struct fluid_lane_at *lane_at = &s->lane_at[l];

  if (lane_at->done == s->m) return true;
  int64_t start = zc_most(lane_at->next, zc_fluid_input(s, l));
  if (at->held >= 0 && at->held != lane->place) {
    int32_t before = d->lane[at->held];
    start = zc_most(start, s->lane_at[before].next + s->lane[before].takes);
  }
  if (lane->place < d->lanes / 2 && d->limited) {
    const struct fluid_step *step = &zc_fluid_steps(s, lane->device)[lane->place];
    start = zc_most(start, at->lag + step->wait);
    if (step->more > 0 && step->after < zc_never)
      start = zc_most(start, b_end_after(s, lane->device, step->more) + step->after);
  }
  lane_at->next = start;
  return start + lane->takes <= lane->end[lane_at->done];
}

/* Inputs that queue, the first of them taken as early as can be. False if one has to end too late. */
static bool settle_queue(struct fluid *s, int32_t l) {
  const struct fluid_lane *lane = &s->lane[l];
  const struct fluid_lane_at *at = &s->lane_at[l];
  int64_t start = at->next;

  for (int32_t k = 0; k < queued(s, l); k++, start += lane->takes) {
    start = at->in[at->done + k] = zc_most(at->in[at->done + k], start);
    if (start + lane->takes > lane->end[at->done + k]) return false;
  }
  return true;
}

/* A device is free no earlier than an op can start that can be its next. */
static bool settle_device(struct fluid *s, int32_t i) {
  const struct fluid_device *d = &s->device[i];
  const struct fluid_state *state = zc_fluid_state(s, i);
  const struct fluid_step *step = zc_fluid_steps(s, i);
  struct fluid_at *at = &s->at[i];
  int64_t next = zc_never;

  if (all_done(s, i)) return true;
  for (int32_t e = 0; e < d->lanes; e++)
    if (step[e].to >= 0 && (at->held < 0 || at->held == e))
      next = zc_least(next, zc_most(s->lane_at[d->lane[e]].next, at->lag + step[e].ready));
  if (next > at->clock) {
    at->clock = next;
    at->lag = zc_most(at->lag, next - state->poured);
    if (!can_finish(s, i)) return false;
  }
  at->lag = zc_most(at->lag, zc_least(at->clock - state->enough, state->late));
  return true;
}

/* Raises the times of the node at work to what they imply, and runs on the way what has to. False if the node
 * is not good. */
static bool settle(struct fluid *s, bool *ran) {
  for (int32_t l = 0; l < s->lanes; l++)
    s->lane_at[l].next = s->lane_at[l].done == s->m ? zc_never : s->at[s->lane[l].device].clock;
  for (int pass = 0; pass < 2; pass++)
    for (int32_t l = 0; l < s->lanes; l++)
      if (!settle_lane(s, l)) return false;
  for (int32_t l = 0; l < s->lanes; l++)
    if (!settle_queue(s, l)) return false;
  for (int32_t i = 0; i < s->devices; i++)
    if (!settle_device(s, i) || !run_forced(s, i, ran)) return false;
  return true;
}

/* ---- choices ---- */

/* The device that has to choose, and from what: the first of those that can start all that can be next; else
 * the one of the op that can end first, -1 if none can run. */
static int32_t find_device(const struct fluid *s, struct fluid_options *x) {
  int64_t least = zc_never;
  int32_t first = -1;

  for (int32_t i = 0; i < s->devices; i++) {
    const struct fluid_device *d = &s->device[i];
    if (all_done(s, i)) continue;
    zc_fluid_ahead(s, i, 0, x);
    if (!x->wait) return i;
    for (uint32_t left = x->run; left; left &= left - 1) {
      int32_t e = __builtin_ctz(left);
      int64_t end = d->offset + x->start[e] + s->lane[d->lane[e]].takes;
      if (end >= least) continue;
      least = end;
      first = i;
    }
  }
  if (first >= 0) zc_fluid_ahead(s, first, least - s->device[first].offset, x);
  return first;
}

/* Runs what has to until only choices are left; then *node has the one to make, if any F or B are left. False
 * if the node at work is not good. */
static bool advance(struct fluid *s, struct fluid_node *node) {
  struct fluid_options x;

  for (;;) {
    bool ran = false;
    if (!settle(s, &ran)) return false;
    if (ran) continue;
    int32_t i = find_device(s, &x);
    if (i < 0) return s->done == s->lanes * s->m;
    if (x.wait || x.run & (x.run - 1)) {
      *node = (struct fluid_node){.device = i, .run = x.run, .hold = x.wait};
      return true;
    }
    int32_t e = __builtin_ctz(x.run);
    if (!run_op(s, i, e, x.start[e])) return false;
  }
}

/* The node at work as it is kept. */
static void pack(struct fluid *s) {
  int32_t p = s->devices;
  int64_t *to = s->times + 2 * p;

  s->holds = 0;
  s->hash = 0;
  for (int32_t i = 0; i < p; i++) {
    const struct fluid_at *at = &s->at[i];
    s->times[i] = at->clock;
    s->times[p + i] = at->lag;
    s->key[i] = at->state * (s->device[i].lanes + 1) + at->held + 1;
    s->hash = (s->hash ^ (uint32_t)s->key[i]) * UINT64_C(6364136223846793005) + 1442695040888963407u;
    s->holds += at->held >= 0;
  }
  for (int32_t l = 0; l < s->lanes; l++)
    for (int32_t k = 0; k < queued(s, l); k++) *to++ = s->lane_at[l].in[s->lane_at[l].done + k];
  s->length = (int32_t)(to - s->times);
}

/* A kept node is the one at work. */
static void unpack(struct fluid *s, const struct fluid_group *group, struct fluid_node *node) {
  int32_t p = s->devices;
  const int64_t *times = zc_fluid_times(node), *from = times + 2 * p;

  s->done = 0;
  for (int32_t i = 0; i < p; i++) {
    const struct fluid_device *d = &s->device[i];
    int32_t state = group->key[i] / (d->lanes + 1);
    s->at[i] = (struct fluid_at){times[i], times[p + i], state, group->key[i] % (d->lanes + 1) - 1};
    for (int32_t e = 0; e < d->lanes; e++)
      s->done += s->lane_at[d->lane[e]].done = d->count[(int64_t)state * d->lanes + e];
  }
  for (int32_t l = 0; l < s->lanes; l++)
    for (int32_t k = 0; k < queued(s, l); k++) s->lane_at[l].in[s->lane_at[l].done + k] = *from++;
}

static void keep(struct fluid *s) {
  struct fluid_node node;

  if (!advance(s, &node)) return;
  pack(s);
  zc_fluid_keep(s, &node);
}

static void expand(struct fluid *s, const struct fluid_group *group, struct fluid_node *node) {
  int32_t i = node->device;
  const struct fluid_device *d = &s->device[i];

  s->expanded++;
  for (int32_t e = 0; e < d->lanes; e++) {
    if (!((node->run | node->hold) >> e & 1)) continue;
    unpack(s, group, node);
    const struct fluid_at *at = &s->at[i];
    int64_t start = zc_most(at->clock, at->lag + zc_fluid_steps(s, i)[e].ready);
    if (node->hold >> e & 1)
      s->at[i].held = e;
    else if (!run_op(s, i, e, zc_most(start, zc_fluid_input(s, d->lane[e]))))
      continue;
    keep(s);
  }
}

/* ---- the search ---- */

/* Lane l of a device, as its next one. */
static void begin_lane(struct fluid *s, const struct zc_windows *w, int32_t l) {
  int32_t n = w->stages, number = l < n ? l : 2 * n - 1 - l;
  const struct zc_stage *stage = &w->stage[number];
  struct fluid_device *d = &s->device[stage->device];
  struct fluid_lane *lane = &s->lane[l];

  *lane = (struct fluid_lane){.device = stage->device,
                              .place = d->lanes,
                              .takes = l < n ? stage->f : stage->b,
                              .end = l < n ? stage->f_end : stage->b_end};
  if (l > 0 && lane[-1].device != lane->device) {
    lane->crosses = true;
    lane->delay =
        (l < n ? stage->forward : stage[1].backward) + s->device[lane[-1].device].offset - d->offset;
  }
  d->lane[d->lanes++] = l;
}

static enum zc_outcome begin(struct fluid *s, struct zc_windows *w) {
  size_t p = (size_t)w->devices, lanes = 2 * (size_t)w->stages, m = (size_t)w->m;
  size_t layers = (lanes * m + 1) * (p + 1);
  int64_t longest = 0, *inputs;

  if (w->m > UINT16_MAX || !zc_fluid_hold(s, layers * sizeof *s->layer)) return ZC_TOO_LARGE;
  s->devices = w->devices;
  s->lanes = (int32_t)lanes;
  s->m = w->m;
  if (!(s->device = zc_alloc(s->run, p, sizeof *s->device)) ||
      !(s->lane = zc_alloc(s->run, lanes, sizeof *s->lane)) ||
      !(s->at = zc_alloc(s->run, p, sizeof *s->at)) ||
      !(s->lane_at = zc_alloc(s->run, lanes, sizeof *s->lane_at)) ||
      !(s->key = zc_alloc(s->run, p, sizeof *s->key)) ||
      !(s->times = zc_alloc(s->run, 2 * p + lanes * m, sizeof *s->times)) ||
      !(inputs = zc_alloc(s->run, lanes * m, sizeof *inputs)) ||
      !(s->layer = zc_alloc(s->run, layers, sizeof *s->layer)))
    return ZC_NO_MEMORY;
  for (int32_t i = 0; i < w->devices; i++) { /* parents first */
    const struct zc_device *d = &w->device[w->order[i]];
    if (d->parent >= 0) s->device[w->order[i]].offset = s->device[d->parent].offset + d->offset_low;
  }
  for (int32_t l = 0; l < s->lanes; l++, inputs += m) {
    begin_lane(s, w, l);
    s->lane_at[l].in = inputs;
  }
  for (int32_t i = 0; i < s->devices; i++) {
    enum zc_outcome outcome = zc_fluid_device(s, w, i);
    if (outcome != ZC_OPEN) return outcome;
    s->at[i].held = -1;
    longest += s->device[i].longest;
  }
  while ((int64_t)1024 << s->lane_shift < longest) s->lane_shift++;
  return ZC_OPEN;
}

/* Whether a node is left in which all F and B are done. True, too, without room. */
static bool search(struct fluid *s) {
  struct fluid_layer *layer = s->layer, *end = layer + (int64_t)s->lanes * s->m * (s->devices + 1);

  for (int32_t i = 0; i < s->devices; i++)
    if (zc_fluid_state(s, i)->points == 0) return false;
  keep(s);
  for (; layer < end; layer++) {
    for (struct fluid_group *group = layer->groups; group; group = group->next) {
      for (int32_t k = 0; k < group->entries; k++) {
        expand(s, group, group->entry[k].node);
        if (s->too_large || s->out_of_memory) return true;
      }
    }
    zc_fluid_forget(s, layer);
  }
  return end->groups != NULL;
}

enum zc_outcome zc_fluid_search(struct zc_windows *w) {
  struct fluid s = {.run = w->run};
  enum zc_outcome outcome = begin(&s, w);

  if (outcome == ZC_OPEN) {
    bool open = search(&s);
    outcome = s.out_of_memory ? ZC_NO_MEMORY : s.too_large ? ZC_TOO_LARGE : open ? ZC_OPEN : ZC_REFUTED;
    zc_note(s.run, "fluid-fronts: %lld nodes, %lld expanded, %lld bytes at most", (long long)s.nodes,
            (long long)s.expanded, (long long)s.most_held);
  }
  zc_fluid_free(&s);
  return outcome;
}
