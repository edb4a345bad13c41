// See pouring_placed.h. Every op starts as early as its order and its input allow; an F that memory does not
// let in waits tick by tick for W.
#include "tests/pouring_placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int64_t placed_never = INT64_MAX / 4;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// ---- profiles ----

struct zb_profile *placed_random(struct generate_random *random, int passes) {
  // Devices, stages of each, microbatches.
  static const int sizes[][3] = {{1, 2, 4}, {1, 3, 3}, {2, 1, 4}, {2, 2, 2}, {2, 2, 3}, {2, 2, 4}, {2, 3, 1},
                                 {2, 3, 2}, {2, 3, 3}, {3, 1, 4}, {3, 2, 2}, {3, 2, 3}, {3, 3, 1}, {3, 3, 2},
                                 {4, 1, 3}, {4, 2, 1}, {4, 2, 2}, {4, 2, 3}, {4, 3, 1}, {4, 3, 2}};
  const int *size;
  do size = sizes[generate_between(random, 0, sizeof sizes / sizeof *sizes - 1)];
  while (size[0] * size[1] * size[2] > passes);
  const int p = size[0], chunks = size[1], m = size[2];
  const int64_t kind = generate_between(random, 0, 3);
  const enum zb_placement placement = kind < 2 ? ZB_LIST : kind == 2 && chunks == 2 ? ZB_V : ZB_LOOP;
  struct zb_profile *to = NULL;
  if (zb_profile_create(p, chunks, m, placement, &to, NULL) != ZB_OK) return NULL;
  for (int s = placement == ZB_LIST ? to->stages - 1 : 0; s > 0; s--) {
    const int other = (int)generate_between(random, 0, s), device = to->device_of[s];
    to->device_of[s] = to->device_of[other];
    to->device_of[other] = device;
  }
  const int64_t longest = generate_between(random, 0, 3) == 0 ? 30 : generate_between(random, 1, 7);
  const int64_t comm = generate_between(random, 0, 2) == 0 ? 9 : generate_between(random, 0, 2);
  // Times that are alike make ties; so do those of which there are few.
  const bool alike = generate_between(random, 0, 2) == 0;
  const int64_t loose = generate_between(random, 0, 2) == 0 ? 12 : 5;
  // Little memory everywhere, all of it W's to give back, and these long: where it matters what comes first.
  const bool tight = generate_between(random, 0, 1) == 0;
  const int64_t no_limit = tight ? 0 : generate_between(random, 0, 3);
  to->has_bw = generate_between(random, 0, 1) == 0;
  to->has_memory = true;
  int64_t w[PLACED_DEVICES], w_bytes[PLACED_DEVICES];
  for (int d = 0; d < p; d++) {
    w[d] =
        generate_between(random, 0, 4) == 0 ? 0 : generate_between(random, 0, tight ? 3 * longest : longest);
    w_bytes[d] = generate_between(random, 0, 5);
    to->static_bytes[d] = generate_between(random, 0, 2);
  }
  const bool by_weights = tight || generate_between(random, 0, 1) == 0;
  for (int s = 0; s < to->stages; s++) {
    const int d = to->device_of[s];
    to->f_ns[s] = alike && s > 0 ? to->f_ns[0] : generate_between(random, 0, longest);
    to->b_ns[s] = alike && s > 0 ? to->b_ns[0] : generate_between(random, 0, longest);
    to->w_ns[s] = alike ? w[0] : w[d];
    to->bw_ns[s] = to->b_ns[s] + to->w_ns[s] + generate_between(random, 0, 1);
    if (!to->has_bw) to->bw_ns[s] = to->b_ns[s] + to->w_ns[s];
    if (s + 1 < to->stages && to->device_of[s + 1] != d) {
      to->comm_forward_ns[s] = generate_between(random, 0, comm);
      to->comm_backward_ns[s] = generate_between(random, 0, comm);
    }
    to->w_bytes[s] = -w_bytes[d];
    to->b_bytes[s] = by_weights ? 0 : -generate_between(random, 0, 4);
    to->f_bytes[s] = -to->w_bytes[s] - to->b_bytes[s];
  }
  if (zb_profile_finish(to, NULL) == ZB_OK) {
    for (int d = 0; d < p; d++)
      if (generate_between(random, 1, 3) >= no_limit)
        to->limit_bytes[d] =
            zb_profile_least_peak(to, d) +
            (tight ? w_bytes[d] * generate_between(random, 0, 2) : generate_between(random, 0, loose));
    if (zb_profile_finish(to, NULL) == ZB_OK) return to;
  }
  zb_profile_free(to);
  return NULL;
}

const struct placed_pinned placed_pinned[] = {
    {.why =
         "an F that could run at once takes the room of one of another stage that has to come first; W take "
         "no time, so none is left to pour, and yet what would give the room back is not done",
     .devices = 2,
     .chunks = 2,
     .microbatches = 3,
     .device_of = {0, 1, 0, 1},
     .f = {0, 1, 1, 0},
     .b = {0, 1, 0, 0},
     .w_bytes = {-1, -1, -1, -1},
     .limit = {3, 2},
     .cost = 7},
    {.why = "the same where nothing takes time but the way back",
     .devices = 2,
     .chunks = 2,
     .microbatches = 3,
     .device_of = {0, 1, 0, 1},
     .backward = {1, 1},
     .b_bytes = {0, -4, -1, 0},
     .w_bytes = {-3, -3, -3, -3},
     .limit = {12, 12},
     .cost = 4},
};
const int placed_pins = sizeof placed_pinned / sizeof *placed_pinned;

struct zb_profile *placed_profile(const struct placed_pinned *pinned) {
  struct zb_profile *to = NULL;
  if (zb_profile_create(pinned->devices, pinned->chunks, pinned->microbatches, ZB_LIST, &to, NULL) != ZB_OK)
    return NULL;
  to->has_memory = true;
  for (int s = 0; s < to->stages; s++) {
    to->device_of[s] = pinned->device_of[s];
    to->f_ns[s] = pinned->f[s];
    to->b_ns[s] = pinned->b[s];
    to->comm_backward_ns[s] = pinned->backward[s];
    to->b_bytes[s] = pinned->b_bytes[s];
    to->w_bytes[s] = pinned->w_bytes[s];
    to->f_bytes[s] = -pinned->b_bytes[s] - pinned->w_bytes[s];
  }
  for (int d = 0; d < to->devices; d++) to->limit_bytes[d] = pinned->limit[d];
  if (zb_profile_finish(to, NULL) == ZB_OK) return to;
  zb_profile_free(to);
  return NULL;
}

static int add_row(char *text, int at, int size, const char *name, const int64_t *value, int count) {
  at += snprintf(text + at, (size_t)(size - at), "; %s", name);
  for (int k = 0; k < count; k++)
    at += value[k] == ZB_NO_LIMIT ? snprintf(text + at, (size_t)(size - at), " none")
                                  : snprintf(text + at, (size_t)(size - at), " %lld", (long long)value[k]);
  return at;
}

const char *placed_text(const struct zb_profile *p, enum zb_objective objective) {
  enum { SIZE = 4000 };
  static char text[SIZE];
  int64_t device[PLACED_STAGES];
  for (int s = 0; s < p->stages; s++) device[s] = p->device_of[s];
  int at = snprintf(text, SIZE, "%s, m %d", objective == ZB_SPAN ? "span" : "makespan", p->microbatches);
  at = add_row(text, at, SIZE, "devices", device, p->stages);
  at = add_row(text, at, SIZE, "f", p->f_ns, p->stages);
  at = add_row(text, at, SIZE, "b", p->b_ns, p->stages);
  at = add_row(text, at, SIZE, "w", p->w_ns, p->stages);
  at = add_row(text, at, SIZE, "comm", p->comm_forward_ns, p->stages - 1);
  at = add_row(text, at, SIZE, "back", p->comm_backward_ns, p->stages - 1);
  at = add_row(text, at, SIZE, "f bytes", p->f_bytes, p->stages);
  at = add_row(text, at, SIZE, "b bytes", p->b_bytes, p->stages);
  at = add_row(text, at, SIZE, "w bytes", p->w_bytes, p->stages);
  at = add_row(text, at, SIZE, "static", p->static_bytes, p->devices);
  add_row(text, at, SIZE, "limit", p->limit_bytes, p->devices);
  return text;
}

// ---- one op after another ----

// All devices on one clock.
struct state {
  struct state *next;             // with the same F and B done
  uint8_t done[2][PLACED_STAGES]; // F and B
  int64_t first[PLACED_DEVICES], clock[PLACED_DEVICES], poured[PLACED_DEVICES];
  int64_t end[2][PLACED_STAGES][PLACED_MICROBATCHES];
};

// Of the B that device d has ended: their W in ns, and how many.
static int64_t weights_of(const struct zb_profile *p, const struct state *state, int d, int64_t *count) {
  int64_t work = 0;
  *count = 0;
  for (int s = 0; s < p->stages; s++) {
    if (p->device_of[s] != d) continue;
    work += state->done[1][s] * p->w_ns[s];
    *count += state->done[1][s];
  }
  return work;
}

static void wait_until(const struct zb_profile *p, struct state *state, int d, int64_t time) {
  int64_t count;
  const int64_t left = weights_of(p, state, d, &count) - state->poured[d];
  if (time <= state->clock[d]) return;
  state->poured[d] += least(time - state->clock[d], left);
  state->clock[d] = time;
}

static bool fits(const struct zb_profile *p, const struct state *state, int stage) {
  const int d = p->device_of[stage];
  int64_t weights, kept = p->static_bytes[d] + p->f_bytes[stage];
  weights_of(p, state, d, &weights);
  if (p->w_ns[stage] > 0) weights = state->poured[d] / p->w_ns[stage];
  for (int s = 0; s < p->stages; s++)
    if (p->device_of[s] == d) kept += state->done[0][s] * p->f_bytes[s] + state->done[1][s] * p->b_bytes[s];
  return p->limit_bytes[d] == ZB_NO_LIMIT || kept + weights * p->w_bytes[stage] <= p->limit_bytes[d];
}

// The next F or B of a stage, if its input is known. False if it is not, or if F never fits there.
static bool run_op(const struct zb_profile *p, struct state *state, struct placed_op op) {
  const int s = op.stage, d = p->device_of[s], k = state->done[op.is_b][s];
  int64_t arrival = 0;
  if (k == p->microbatches) return false;
  if (op.is_b && state->done[0][s] <= k) return false;
  if (!op.is_b && s > 0) {
    if (state->done[0][s - 1] <= k) return false;
    arrival = state->end[0][s - 1][k] + p->comm_forward_ns[s - 1];
  }
  if (op.is_b && s + 1 < p->stages) {
    if (state->done[1][s + 1] <= k) return false;
    arrival = state->end[1][s + 1][k] + p->comm_backward_ns[s];
  }
  wait_until(p, state, d, arrival);
  while (!op.is_b && !fits(p, state, s)) {
    int64_t count;
    if (state->poured[d] == weights_of(p, state, d, &count)) return false;
    wait_until(p, state, d, state->clock[d] + 1);
  }
  if (state->first[d] < 0) state->first[d] = state->clock[d];
  state->clock[d] += op.is_b ? p->b_ns[s] : p->f_ns[s];
  state->end[op.is_b][s][k] = state->clock[d];
  state->done[op.is_b][s]++;
  return true;
}

static void begin(struct state *state) {
  memset(state, 0, sizeof *state);
  for (int d = 0; d < PLACED_DEVICES; d++) state->first[d] = -1;
}

static int64_t end_cost(const struct zb_profile *p, const struct state *state, enum zb_objective objective) {
  int64_t cost = 0, count;
  for (int d = 0; d < p->devices; d++) {
    const int64_t end = state->clock[d] + weights_of(p, state, d, &count) - state->poured[d];
    cost = most(cost, end - (objective == ZB_SPAN ? state->first[d] : 0));
  }
  return cost;
}

int64_t placed_cost(const struct zb_profile *p, enum zb_objective objective, const struct placed_word *word) {
  struct state state;
  int next[PLACED_DEVICES] = {0};
  begin(&state);
  for (bool ran = true; ran;) {
    ran = false;
    for (int d = 0; d < p->devices; d++)
      for (; next[d] < word[d].count && run_op(p, &state, word[d].op[next[d]]); next[d]++) ran = true;
  }
  for (int s = 0; s < p->stages; s++)
    if (state.done[1][s] < p->microbatches) return placed_never;
  return end_cost(p, &state, objective);
}

// ---- all orders ----

enum { SLOTS = 1 << 12, MOST_STATES = 20000 };

struct states {
  struct state *slot[SLOTS];
  int count;
};

// Nothing that counts is later in x. Both have the same F and B done.
static bool beats(const struct zb_profile *p, const struct state *x, const struct state *y) {
  for (int d = 0; d < p->devices; d++)
    if (x->clock[d] > y->clock[d] || x->clock[d] - x->poured[d] > y->clock[d] - y->poured[d]) return false;
  for (int s = 0; s < p->stages; s++) {
    for (int k = s + 1 < p->stages ? x->done[0][s + 1] : x->done[0][s]; k < x->done[0][s]; k++)
      if (x->end[0][s][k] > y->end[0][s][k]) return false;
    for (int k = s > 0 ? x->done[1][s - 1] : x->done[1][s]; k < x->done[1][s]; k++)
      if (x->end[1][s][k] > y->end[1][s][k]) return false;
  }
  return true;
}

// False where memory ran out.
static bool add_state(const struct zb_profile *p, struct states *states, const struct state *new) {
  uint64_t key = 0;
  for (int s = 0; s < p->stages; s++)
    key = (key * 5 + new->done[0][s]) * 5 * 0x9e3779b97f4a7c15u + new->done[1][s];
  struct state **link = &states->slot[(key * 0x9e3779b97f4a7c15u) >> 52];
  while (*link) {
    struct state *old = *link;
    const bool same = memcmp(old->done, new->done, sizeof old->done) == 0;
    if (same && beats(p, old, new)) return true;
    if (same && beats(p, new, old)) {
      *link = old->next;
      free(old);
      states->count--;
    } else {
      link = &old->next;
    }
  }
  if (!(*link = malloc(sizeof *new))) return false;
  **link = *new;
  (*link)->next = NULL;
  states->count++;
  return true;
}

// All that one op more leads to; the states are freed. False where memory ran out.
static bool next_states(const struct zb_profile *p, struct states *from, struct states *to) {
  bool all = true;
  for (int slot = 0; slot < SLOTS; slot++) {
    while (from->slot[slot]) {
      struct state *state = from->slot[slot];
      for (int k = 0; k < 2 * p->stages && all && to->count < MOST_STATES; k++) {
        struct state more = *state;
        if (run_op(p, &more, (struct placed_op){k / 2, k % 2 == 1})) all = add_state(p, to, &more);
      }
      from->slot[slot] = state->next;
      free(state);
    }
  }
  from->count = 0;
  return all && to->count < MOST_STATES;
}

int64_t placed_optimum(const struct zb_profile *p, enum zb_objective objective) {
  static struct states both[2];
  struct state first;
  const int ops = 2 * p->stages * p->microbatches;
  int64_t optimum = placed_never;
  begin(&first);
  bool few = add_state(p, &both[0], &first);
  for (int k = 0; k < ops && few; k++) few = next_states(p, &both[k % 2], &both[(k + 1) % 2]);
  for (int k = 0; k < 2 * SLOTS; k++) {
    struct state **slot = &both[k / SLOTS].slot[k % SLOTS];
    while (*slot) {
      struct state *state = *slot;
      if (few) optimum = least(optimum, end_cost(p, state, objective));
      *slot = state->next;
      free(state);
    }
  }
  both[0].count = both[1].count = 0;
  return optimum;
}

static int64_t finish(const struct zb_profile *p, enum zb_objective objective, const struct state *state,
                      int left, int64_t *steps) {
  int64_t optimum = placed_never;
  if (left == 0) return end_cost(p, state, objective);
  for (int k = 0; k<2 * p->stages && * steps> 0; k++) {
    struct state more = *state;
    if (!run_op(p, &more, (struct placed_op){k / 2, k % 2 == 1})) continue;
    --*steps;
    optimum = least(optimum, finish(p, objective, &more, left - 1, steps));
  }
  return optimum;
}

int64_t placed_optimum_of_all(const struct zb_profile *p, enum zb_objective objective, int64_t steps) {
  struct state first;
  begin(&first);
  const int64_t optimum = finish(p, objective, &first, 2 * p->stages * p->microbatches, &steps);
  return steps > 0 ? optimum : placed_never;
}
