// v_walk.c - from a block to a schedule: every device, when it is free, runs what is there by order of turns.
//
// The device that is free first decides next, and knows what is on its way to it: an op's output is announced
// when the op starts. Of the F and B that are there, fit, and are not too far ahead of the device's next
// open turn, the one whose turn comes first runs. W has no consumer and fills gaps, makes room, or takes a
// turn of its own (struct zb_v_rule).
//
// Nothing dead-ends, because an F runs only where afterwards the device's microbatches could all still end,
// one after the other. In that order come those whose B1 is done (a), those whose F1 is (b), and those whose
// F0 is (c); once their W have run the device keeps (a+b+c) f0 + b f1, and each needs what its next
// passes grow: see `can_end`. A B only helps. So the oldest unfinished microbatch of all can always go on
// where everything before it has ended; and its turn is never too far ahead.
#include <assert.h>

#include "heuristic/tournament.h"
#include "heuristic/v_block.h"
#include "solver/model/number.h"

// One device at the moment of its decision.
struct view {
  const struct zb_v_device *device;
  const struct zb_v_stage *low, *high; // chunk 0, chunk 1
};

struct choice {
  enum { RUN, WAIT } act;
  int chunk;
  enum zb_kind kind;
  int64_t until_ns; // WAIT: when it looks again unless something is announced
};

static int chunk_of(int class) { return class == ZB_V_F1 || class == ZB_V_B1; }
static bool is_forward(int class) { return class == ZB_V_F0 || class == ZB_V_F1; }

static bool can_end(const struct view *v, int a, int b, int c) {
  const int64_t room = v->device->room_bytes, f0 = v->low->f_bytes, f1 = v->high->f_bytes;
  const int64_t grow0 = zb_max(v->low->b_bytes, 0), grow1 = zb_max(v->high->b_bytes, 0);
  const int64_t above = b * f1 + (b + c) * f0;
  if (a > 0 && above + a * f0 + grow0 > room) return false;
  if (b > 0 && above + zb_max(grow1, grow0 - f1) > room) return false;
  return c == 0 || c * f0 + zb_max(f1 + grow1, grow0) <= room;
}

// Whether the op could run once every open W has; and whether it can now.
static bool may_fit(const struct view *v, int class) {
  const int a = v->high->backwards - v->low->backwards, b = v->high->forwards - v->high->backwards;
  const int c = v->low->forwards - v->high->forwards;
  if (class == ZB_V_F0) return can_end(v, a, b, c + 1);
  if (class == ZB_V_F1) return can_end(v, a, b + 1, c - 1);
  const int64_t growth = class == ZB_V_B1 ? v->high->b_bytes : v->low->b_bytes;
  if (growth <= 0) return true;
  const int64_t open_bytes = -v->low->w_bytes * (v->low->backwards - v->low->weights) -
                             v->high->w_bytes * (v->high->backwards - v->high->weights);
  return growth <= v->device->room_bytes - (v->device->kept_bytes - open_bytes);
}

static bool fits_now(const struct view *v, int class) {
  const struct zb_v_stage *stage = chunk_of(class) ? v->high : v->low;
  const int64_t growth = is_forward(class) ? stage->f_bytes : stage->b_bytes;
  return growth <= 0 || growth <= v->device->room_bytes - v->device->kept_bytes;
}

static int next_of(const struct view *v, int class) {
  const struct zb_v_stage *stage = chunk_of(class) ? v->high : v->low;
  return is_forward(class) ? stage->forwards : stage->backwards;
}

static struct view view_of(const struct zb_v_pipe *pipe, int i) {
  const struct zb_v_device *d = &pipe->device[i];
  return (struct view){d, d->stage[0], d->stage[1]};
}

// The turn of a device's op of a class, but for what the first F0 are early.
static int64_t turn_of(const struct zb_v_pipe *pipe, const struct zb_v_block *block, int i, int class,
                       int number) {
  if (block->turn_ns) return block->turn_ns[zb_v_turns_at(pipe, i, class) + (size_t)number];
  return block->device[i].turn_ns[class] + number * block->period_ns;
}

// Looks up turn and arrival of the device's next op of a class: after it has run one, or what that one waits
// for was scheduled.
static void look_up(struct zb_v_pipe *pipe, const struct zb_v_block *block, int i, int class) {
  struct zb_v_device *d = &pipe->device[i];
  const struct zb_v_stage *stage = d->stage[chunk_of(class)];
  const int next = is_forward(class) ? stage->forwards : stage->backwards;
  d->turn_ns[class] = d->arrival_ns[class] = ZB_NEVER;
  if (next == pipe->microbatches) return;
  d->turn_ns[class] = turn_of(pipe, block, i, class, next);
  if (!block->turn_ns && class == ZB_V_F0 && next < block->device[i].early)
    d->turn_ns[class] -= block->device[i].early_ns;
  d->arrival_ns[class] = zb_v_pipe_arrival(pipe, i, (enum zb_v_class) class);
}

// The chunk whose open W has waited longest, -1 where none is open.
static int open_weight(const struct view *v) {
  const bool low = v->low->weights < v->low->backwards, high = v->high->weights < v->high->backwards;
  if (!low && !high) return -1;
  if (!low || !high) return high;
  return v->high->backward_end_ns[v->high->weights] <= v->low->backward_end_ns[v->low->weights];
}

// No microbatch that the device has not ended is older.
static bool is_oldest(const struct view *v, int class) { return next_of(v, class) == v->low->backwards; }

static bool is_due(const struct view *v, const struct zb_v_rule *rule, int class, int64_t least_ns) {
  if (is_oldest(v, class)) return true;
  const bool at_an_end = v->low->backwards == 0 || v->device->turn_ns[ZB_V_F0] == ZB_NEVER;
  if (v->device->turn_ns[class] - least_ns > (at_an_end ? rule->ends_ahead_ns : rule->ahead_ns)) return false;
  const int backward = class == ZB_V_F0 ? ZB_V_B0 : ZB_V_B1;
  return !is_forward(class) || v->device->turn_ns[class] - v->device->turn_ns[backward] <= rule->lead_ns;
}

static bool gap_takes_weight(const struct zb_v_pipe *pipe, const struct zb_v_rule *rule,
                             const struct zb_v_device *d, int64_t weight_ns, int64_t gap_ns) {
  if (weight_ns <= gap_ns || rule->gap == ZB_V_GAP_ANY) return true;
  return rule->gap == ZB_V_GAP_LONGEST && d->work_ns + d->idle_ns + gap_ns > pipe->longest_ns;
}

static struct choice decide(const struct zb_v_pipe *pipe, const struct zb_v_block *block,
                            const struct zb_v_rule *rule, int i, int64_t now_ns) {
  const struct view v = view_of(pipe, i);
  const int64_t *const turn_ns = v.device->turn_ns, *const arrival_ns = v.device->arrival_ns;
  bool open[ZB_V_CLASSES];
  int64_t least_ns = ZB_NEVER, first_ns = ZB_NEVER, blocked_ns = ZB_NEVER, until_ns = ZB_NEVER;
  int best = -1;
  for (int k = 0; k < ZB_V_CLASSES; k++) least_ns = zb_min(least_ns, turn_ns[k]);
  for (int k = 0; k < ZB_V_CLASSES; k++) {
    open[k] = arrival_ns[k] != ZB_NEVER && is_due(&v, rule, k, least_ns) && may_fit(&v, k);
    if (!open[k]) continue;
    if (arrival_ns[k] > now_ns) {
      until_ns = zb_min(until_ns, arrival_ns[k]);
    } else if (!fits_now(&v, k)) {
      blocked_ns = zb_min(blocked_ns, turn_ns[k]);
    } else if (turn_ns[k] < first_ns) {
      first_ns = turn_ns[k];
      best = k;
    }
  }
  if (best >= 0 && rule->hold) {
    const struct zb_v_stage *stage = chunk_of(best) ? v.high : v.low;
    const int64_t end_ns = now_ns + (is_forward(best) ? stage->f_ns : stage->b_ns);
    for (int k = 0; k < ZB_V_CLASSES; k++) {
      if (open[k] && arrival_ns[k] > now_ns && arrival_ns[k] < end_ns && turn_ns[k] < first_ns) best = -1;
    }
  }

  const int chunk = open_weight(&v);
  bool weight = false;
  if (chunk >= 0) {
    const struct zb_v_stage *stage = chunk ? v.high : v.low;
    if (best < 0) {
      weight =
          blocked_ns != ZB_NEVER || gap_takes_weight(pipe, rule, v.device, stage->w_ns, until_ns - now_ns);
    } else {
      weight = blocked_ns < first_ns;
      if (rule->weight_lag_ns != ZB_NEVER && turn_ns[ZB_V_F0] != ZB_NEVER) {
        const int64_t weight_ns =
            turn_of(pipe, block, i, chunk ? ZB_V_B1 : ZB_V_B0, stage->weights) + rule->weight_lag_ns;
        weight = weight || weight_ns < first_ns;
      }
    }
  }
  if (weight) return (struct choice){RUN, chunk, ZB_W, 0};
  if (best < 0) return (struct choice){WAIT, 0, ZB_F, until_ns};
  const int of = chunk_of(best);
  if (is_forward(best)) return (struct choice){RUN, of, ZB_F, 0};
  return (struct choice){RUN, of, (of ? v.high : v.low)->fused ? ZB_BW : ZB_B, 0};
}

// The device's next op of a class may have got its arrival. Only that can change what a waiting device does,
// and not before it is there: until then the gap that it has decided about only gets shorter. A device at
// work decides when it is free anyway.
static void announce(struct zb_v_pipe *pipe, const struct zb_v_block *block, struct zb_tournament *t,
                     int device, int class, int64_t now_ns) {
  const struct zb_v_device *d = &pipe->device[device];
  if (d->arrival_ns[class] != ZB_NEVER) return;
  look_up(pipe, block, device, class);
  if (d->arrival_ns[class] == ZB_NEVER) return;
  const int64_t at_ns = zb_max(zb_max(now_ns, d->end_ns), d->arrival_ns[class]);
  if (at_ns < t->clock[device]) zb_tournament_set(t, device, at_ns);
}

// The op of a class on device i has been scheduled: who is told.
static void pass_on(struct zb_v_pipe *pipe, const struct zb_v_block *block, struct zb_tournament *t, int i,
                    int class, int64_t now_ns) {
  const int to = class == ZB_V_F0 || class == ZB_V_B1 ? i + 1 : i - 1;
  look_up(pipe, block, i, class);
  if (to >= 0 && to < pipe->devices)
    announce(pipe, block, t, to, class, now_ns);
  else if (class != ZB_V_B0)
    look_up(pipe, block, i, class + 1); // the flight turns on this device
}

int64_t zb_v_walk(struct zb_v_pipe *pipe, const struct zb_v_block *block, const struct zb_v_rule *rule,
                  int64_t most_ns) {
  struct zb_tournament t;
  int64_t ops = 0;
  zb_tournament_begin(&t, pipe->clock, pipe->devices);
  zb_tournament_set(&t, 0, 0);
  for (int i = 0; i < pipe->devices; i++)
    for (int class = 0; class < ZB_V_CLASSES; class ++) look_up(pipe, block, i, class);
  int unfinished = pipe->devices;
  while (unfinished > 0 && pipe->longest_ns <= most_ns) {
    const int i = zb_tournament_first(&t);
    const int64_t now_ns = t.clock[i];
    assert(now_ns != ZB_NEVER);
    const struct choice choice = decide(pipe, block, rule, i, now_ns);
    if (choice.act == WAIT) {
      zb_tournament_set(&t, i, choice.until_ns);
      continue;
    }
    zb_v_pipe_append(pipe, i, choice.chunk, choice.kind, now_ns);
    ops++;
    const struct view v = view_of(pipe, i);
    const bool ended = v.low->weights + v.high->weights == 2 * pipe->microbatches;
    unfinished -= ended;
    if (choice.kind == ZB_F) pass_on(pipe, block, &t, i, choice.chunk ? ZB_V_F1 : ZB_V_F0, now_ns);
    if (choice.kind == ZB_B || choice.kind == ZB_BW)
      pass_on(pipe, block, &t, i, choice.chunk ? ZB_V_B1 : ZB_V_B0, now_ns);
    zb_tournament_set(&t, i, ended ? ZB_NEVER : v.device->end_ns);
  }
  return ops;
}
