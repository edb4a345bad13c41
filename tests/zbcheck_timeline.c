/* zbcheck: what follows from the orders, compared number by number with what the file says.
 *
 * Every op starts as soon as the op before it on its device and the passes it waits for allow, so one walk in
 * dependency order gives all start times; an order that can never finish stops that walk, and the ops that
 * wait for each other are named. Costs, busy and idle times and memory follow in O(ops).
 *
 * The period is the least T at which the order can repeat every T: whatever leaves a device's last op may
 * come round to its first op T earlier. Give each device a release time (0 at first), walk, and let each last
 * end minus T push its own device's release. If the releases settle, T is possible. If not, the pushes that
 * caused each other form a cycle; its length over its number of turns is a larger lower bound on T, and the
 * next thing to try. The first T that settles is the period, reached from below by bounds only. */
#include "zbcheck.h"

#include <stdio.h>
#include <string.h>

enum { RATIO_DIGITS = 9, RATIO_TOLERANCE = 501 /* units of 1e-9 */ };

struct timeline {
  struct zc_run *run;
  const struct zc_document *document;
  const struct zc_profile *profile;
  const struct zc_schedule *schedule;
  int32_t *order; /* op numbers so that each comes after what it waits for */
  int64_t *start; /* an op */
  int64_t span, makespan, period, work;
};

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Where an op stands, for messages: "device 3, position 12, 3B4". */
static const char *place(const struct timeline *t, int32_t number, char text[80]) {
  const struct zc_op *op = &t->schedule->ops[number];
  char name[32];

  snprintf(text, 80, "device %d, position %d, %s", op->device, number - t->schedule->first[op->device],
           zc_op_name(op, name));
  return text;
}

static bool lies(const struct timeline *t, const char *where, const char *key, int64_t said, int64_t is) {
  return zc_stop(t->run, ZC_WRONG, "%s%s%s says %lld, recomputed %lld", where, *where ? ": " : "", key,
                 (long long)said, (long long)is);
}

/* An op that is not done and that `number`, not done either, waits for. */
static int32_t blocker(const struct timeline *t, const int32_t *done, int32_t number) {
  const struct zc_schedule *s = t->schedule;
  const struct zc_op *op = &s->ops[number];
  int32_t next = s->first[op->device] + done[op->device];

  if (number != next) return next; /* its device has not come to it */
  for (int i = 0; i < 2; i++) {
    int32_t before = op->before[i];
    if (before >= 0 && before - s->first[s->ops[before].device] >= done[s->ops[before].device]) return before;
  }
  return -1;
}

/* Each op that is not done waits for another, so following them comes back to one seen before: a cycle. */
static bool report_cycle(const struct timeline *t, const int32_t *done, int32_t number, bool *seen) {
  char text[80], name[32], names[400] = "";
  int32_t at = number;

  for (; !seen[at]; at = blocker(t, done, at)) seen[at] = true;
  number = at;
  do {
    at = blocker(t, done, at);
    if (strlen(names) < 320)
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s %s",
               *names ? ", which waits for" : "", zc_op_name(&t->schedule->ops[at], name));
  } while (at != number);
  return zc_stop(t->run, ZC_WRONG, "%s: never starts, it waits for%s", place(t, number, text), names);
}

/* Puts all ops into dependency order. A device goes on until its next op waits for an op that is not done;
 * the op then remembers the device (each op is waited for by few, so a list through the devices is enough).
 */
static bool sort_ops(struct timeline *t) {
  const struct zc_schedule *s = t->schedule;
  int32_t devices = t->profile->devices, sorted = 0, ready = 0;
  int32_t *done = zc_alloc(t->run, (size_t)devices, sizeof *done);
  int32_t *queue = zc_alloc(t->run, (size_t)devices, sizeof *queue);
  int32_t *next_waiting = zc_alloc(t->run, (size_t)devices, sizeof *next_waiting);
  int32_t *waiting =
      zc_alloc(t->run, (size_t)s->op_count, sizeof *waiting); /* first device that waits, + 1 */
  bool *seen = zc_alloc(t->run, (size_t)s->op_count, sizeof *seen);

  t->order = zc_alloc(t->run, (size_t)s->op_count, sizeof *t->order);
  if (!done || !queue || !next_waiting || !waiting || !seen || !t->order) return false;
  for (int32_t d = devices - 1; d >= 0; d--) queue[ready++] = d;
  while (ready > 0) {
    int32_t d = queue[--ready], number, missing = -1;
    while (missing < 0 && (number = s->first[d] + done[d]) < s->first[d + 1]) {
      missing = blocker(t, done, number);
      if (missing >= 0) break;
      t->order[sorted++] = number;
      done[d]++;
      while (waiting[number]) { /* whoever waited for this op may go on */
        int32_t woken = waiting[number] - 1;
        waiting[number] = next_waiting[woken];
        queue[ready++] = woken;
      }
    }
    if (missing >= 0) {
      next_waiting[d] = waiting[missing];
      waiting[missing] = d + 1;
    }
  }
  for (int32_t d = 0; d < devices; d++)
    if (done[d] < s->first[d + 1] - s->first[d]) return report_cycle(t, done, s->first[d] + done[d], seen);
  return true;
}

/* Earliest start of every op when device d begins at release[d] or later. origin (or NULL): which device's
 * release each op's start comes from. */
static void walk(const struct timeline *t, const int64_t *release, int64_t *start, int32_t *origin) {
  const struct zc_schedule *s = t->schedule;

  for (int32_t i = 0; i < s->op_count; i++) {
    int32_t number = t->order[i], from = -1;
    const struct zc_op *op = &s->ops[number];
    bool first = number == s->first[op->device];
    int64_t at = first ? release[op->device] : start[number - 1] + s->ops[number - 1].time;
    for (int j = 0; j < 2; j++) {
      int32_t before = op->before[j];
      if (before >= 0 && start[before] + s->ops[before].time + op->delay[j] > at) {
        at = start[before] + s->ops[before].time + op->delay[j];
        from = before;
      }
    }
    start[number] = at;
    if (origin) origin[number] = from >= 0 ? origin[from] : first ? op->device : origin[number - 1];
  }
}

static int64_t end_of(const struct timeline *t, const int64_t *start, int32_t device) {
  int32_t last = t->schedule->first[device + 1] - 1;

  return start[last] + t->schedule->ops[last].time;
}

/* A push from one device's release to another's: through the orders, then round by T. */
struct push {
  int32_t from; /* -1: none yet */
  int64_t length;
};

/* If the pushes close a cycle, the least T that the cycle allows, rounded up; else 0. */
static int64_t cycle_ratio(const struct push *push, int32_t devices, int32_t *mark) {
  memset(mark, 0, (size_t)devices * sizeof *mark);
  for (int32_t d = 0; d < devices; d++) {
    int32_t at = d;
    while (at >= 0 && mark[at] == 0) {
      mark[at] = d + 1;
      at = push[at].from;
    }
    if (at < 0 || mark[at] != d + 1) continue;
    int64_t length = 0, turns = 0;
    int32_t stop = at;
    do {
      length += push[at].length;
      turns++;
      at = push[at].from;
    } while (at != stop);
    return (length + turns - 1) / turns;
  }
  return 0;
}

static bool find_period(struct timeline *t) {
  int32_t devices = t->profile->devices, *mark, *origin;
  int64_t *release, *start, period = t->work;
  struct push *push;

  /* A release is a chain of fewer than `devices` pushes, each at most the makespan. */
  if (t->makespan > INT64_MAX / 4 / devices)
    return zc_stop(t->run, ZC_FAILED,
                   "makespan of %lld ns on %d devices: too large for the period in 64 bits",
                   (long long)t->makespan, devices);
  if (!(release = zc_alloc(t->run, (size_t)devices, sizeof *release)) ||
      !(push = zc_alloc(t->run, (size_t)devices, sizeof *push)) ||
      !(mark = zc_alloc(t->run, (size_t)devices, sizeof *mark)) ||
      !(start = zc_alloc(t->run, (size_t)t->schedule->op_count, sizeof *start)) ||
      !(origin = zc_alloc(t->run, (size_t)t->schedule->op_count, sizeof *origin)))
    return false;
  for (bool settled = false; !settled;) {
    int64_t larger = 0;
    memset(release, 0, (size_t)devices * sizeof *release);
    for (int32_t d = 0; d < devices; d++) push[d].from = -1;
    while (!settled && larger == 0) {
      settled = true;
      walk(t, release, start, origin);
      for (int32_t d = 0; d < devices; d++) {
        int32_t last = t->schedule->first[d + 1] - 1;
        if (end_of(t, start, d) - period <= release[d]) continue;
        settled = false;
        push[d].from = origin[last];
        push[d].length = end_of(t, start, d) - release[origin[last]];
      }
      for (int32_t d = 0; d < devices; d++) release[d] = most(release[d], end_of(t, start, d) - period);
      larger = cycle_ratio(push, devices, mark);
    }
    period = most(period, larger);
  }
  t->period = period;
  return true;
}

static bool check_starts(struct timeline *t) {
  const struct zc_schedule *s = t->schedule;
  int64_t *release = zc_alloc(t->run, (size_t)t->profile->devices, sizeof *release);
  char text[80];

  t->start = zc_alloc(t->run, (size_t)s->op_count, sizeof *t->start);
  if (!release || !t->start) return false;
  walk(t, release, t->start, NULL);
  for (int32_t i = 0; i < s->op_count; i++) { /* in this order causes come before what they delay */
    int32_t number = t->order[i];
    if (s->ops[number].said_start != t->start[number])
      return lies(t, place(t, number, text), "start_ns", s->ops[number].said_start, t->start[number]);
  }
  return true;
}

/* Peak = what is always there + the largest prefix sum, the empty one too: growth counts when an op starts,
 * release when it ends, which is one sum after each op since ops do not overlap. */
static bool check_memory(const struct timeline *t, int32_t device) {
  const struct zc_profile *p = t->profile;
  const struct zc_schedule *s = t->schedule;
  int64_t held = p->standing[device], peak = held;
  int32_t at = -1;
  char text[80];

  for (int32_t i = s->first[device]; i < s->first[device + 1]; i++) {
    int32_t stage = s->ops[i].stage;
    const int64_t change[] = {p->keep_f[stage], p->keep_b[stage], p->keep_w[stage], -p->keep_f[stage]};
    held += change[s->ops[i].kind];
    if (held > peak) {
      peak = held;
      at = i;
    }
  }
  snprintf(text, sizeof text, "device %d", device);
  if (at >= 0) place(t, at, text);
  if (s->peak[device] != peak) return lies(t, text, "peak_bytes", s->peak[device], peak);
  if (peak > p->limit[device])
    return zc_stop(t->run, ZC_WRONG, "%s: memory reaches %lld B, the limit is %lld B", text, (long long)peak,
                   (long long)p->limit[device]);
  return true;
}

static bool check_device(struct timeline *t, int32_t device) {
  const struct zc_schedule *s = t->schedule;
  int64_t busy = 0, first = t->start[s->first[device]], end = end_of(t, t->start, device);
  char text[80];

  for (int32_t i = s->first[device]; i < s->first[device + 1]; i++) busy += s->ops[i].time;
  snprintf(text, sizeof text, "device %d", device);
  if (s->busy[device] != busy) return lies(t, text, "busy_ns", s->busy[device], busy);
  if (s->idle[device] != end - first - busy)
    return lies(t, text, "idle_ns", s->idle[device], end - first - busy);
  t->span = most(t->span, end - first);
  t->makespan = most(t->makespan, end);
  t->work = most(t->work, busy);
  return check_memory(t, device);
}

/* floor(part / whole * 10^9), digit by digit; 0/0 is 0. 0 <= part <= whole <= 2^53. */
static int64_t ratio(int64_t part, int64_t whole) {
  int64_t value = 0, rest = part;

  for (int i = 0; whole > 0 && i <= RATIO_DIGITS; i++) {
    value = value * 10 + rest / whole;
    rest = rest % whole * 10;
  }
  return value;
}

/* A ratio is rounded to 6 decimals, and ours down to 9: they differ by half of the sixth and a unit at most.
 */
static bool check_ratio(const struct timeline *t, const char *key, const struct zc_node *node, int64_t part,
                        int64_t whole) {
  int64_t is = ratio(part, whole), said = 0;
  const char *why = zc_exact(node, 1000000000, "has more than 9 decimals", &said);

  if (why) return zc_bad(t->run, t->document, node, "%s: %.*s %s", key, zc_shown(node), node->text, why);
  if (said - is > RATIO_TOLERANCE || is - said > RATIO_TOLERANCE)
    return zc_stop(t->run, ZC_WRONG, "%s says %.*s, recomputed %lld.%06lld", key, zc_shown(node), node->text,
                   (long long)(is / 1000000000), (long long)(is % 1000000000 / 1000));
  return true;
}

static bool check_costs(const struct timeline *t) {
  const struct zc_schedule *s = t->schedule;
  int64_t cost = (const int64_t[]){t->span, t->makespan, t->period}[s->objective];

  if (s->span != t->span) return lies(t, "", "span_ns", s->span, t->span);
  if (s->makespan != t->makespan) return lies(t, "", "makespan_ns", s->makespan, t->makespan);
  if (s->period != t->period) return lies(t, "", "period_ns", s->period, t->period);
  if (s->cost != cost)
    return zc_stop(t->run, ZC_WRONG, "cost_ns says %lld, the %s is %lld", (long long)s->cost,
                   zc_objective_names[s->objective], (long long)cost);
  if (s->bound > cost)
    return zc_stop(t->run, ZC_WRONG, "bound_ns says %lld, this schedule costs %lld", (long long)s->bound,
                   (long long)cost);
  if ((s->status == ZC_OPTIMAL) != (s->bound == cost))
    return zc_stop(t->run, ZC_WRONG, "status says %s, cost_ns is %lld and bound_ns %lld",
                   zc_status_names[s->status], (long long)cost, (long long)s->bound);
  return check_ratio(t, "gap", s->gap, cost - s->bound, cost) &&
         check_ratio(t, "bubble_rate", s->bubble_rate, cost - t->work, cost);
}

bool zc_check_timeline(struct zc_run *run, const struct zc_document *document,
                       const struct zc_profile *profile, const struct zc_schedule *schedule) {
  struct timeline t = {.run = run, .document = document, .profile = profile, .schedule = schedule};

  if (!sort_ops(&t) || !check_starts(&t)) return false;
  for (int32_t d = 0; d < profile->devices; d++)
    if (!check_device(&t, d)) return false;
  return find_period(&t) && check_costs(&t);
}
