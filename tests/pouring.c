// See pouring.h. Every op starts as early as its order and its input allow; an F that memory does not let in
// waits tick by tick for W.
#include "tests/pouring.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/brute.h"

enum { MOST_WORD_MICROBATCHES = 7, MOST_WORDS = 429 }; // of so many microbatches there are so many words

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// ---- chains ----

static struct pouring_chain random_size(struct generate_random *random, const int (*sizes)[2], size_t count) {
  const int *size = sizes[generate_between(random, 0, (int64_t)count - 1)];
  const bool large = generate_between(random, 0, 1) == 0;
  return (struct pouring_chain){.devices = large ? size[0] : (int)generate_between(random, 1, size[0]),
                                .microbatches = large ? size[1] : (int)generate_between(random, 1, size[1])};
}

struct pouring_chain pouring_random(struct generate_random *random, const int (*sizes)[2], size_t count) {
  struct pouring_chain c = random_size(random, sizes, count);
  const int64_t comm = generate_between(random, 0, 2) == 0 ? 12 : generate_between(random, 0, 3);
  const int64_t longest = generate_between(random, 0, 3) == 0 ? 30 : 7;
  const bool alike = generate_between(random, 0, 2) == 0;
  const int64_t no_limit = generate_between(random, 0, 3);
  // Of memory that is tight, all is W's to give back.
  const bool by_weights = generate_between(random, 0, 1) == 0;
  for (int i = 0; i < c.devices; i++) {
    c.f[i] = alike && i > 0 ? c.f[0] : generate_between(random, 0, longest);
    c.b[i] = alike && i > 0 ? c.b[0] : generate_between(random, 0, longest);
    c.w[i] = alike && i > 0 ? c.w[0] : generate_between(random, 0, longest);
    c.bw[i] = c.b[i] + c.w[i] + generate_between(random, 0, 1);
    c.forward[i] = generate_between(random, 0, comm);
    c.backward[i] = generate_between(random, 0, comm);
    c.f_bytes[i] = generate_between(random, 0, 9);
    c.w_bytes[i] = by_weights ? -c.f_bytes[i] : -generate_between(random, 0, c.f_bytes[i]);
    c.b_bytes[i] = -c.f_bytes[i] - c.w_bytes[i];
    c.standing[i] = generate_between(random, 0, 2);
    c.limit[i] = c.standing[i] + c.f_bytes[i];
    if (by_weights)
      c.limit[i] += c.f_bytes[i] * generate_between(random, 0, 2);
    else if (generate_between(random, 0, 3) < no_limit)
      c.limit[i] = ZB_NO_LIMIT;
    else
      c.limit[i] += generate_between(random, 0, 4 * (int64_t)c.microbatches);
  }
  return c;
}

struct pouring_chain pouring_tight(struct generate_random *random, const int (*sizes)[2], size_t count) {
  struct pouring_chain c = random_size(random, sizes, count);
  const int64_t longest = generate_between(random, 0, 1) == 0 ? 8 : 30;
  for (int i = 0; i < c.devices; i++) {
    const int64_t comm = generate_between(random, 0, 2) == 0 ? 20 : 2, each = generate_between(random, 1, 9);
    c.f[i] = generate_between(random, 0, generate_between(random, 0, 3) == 0 ? 2 : longest);
    c.b[i] = generate_between(random, 0, generate_between(random, 0, 3) == 0 ? 2 : longest);
    c.w[i] = generate_between(random, 0, generate_between(random, 0, 2) == 0 ? 2 : 2 * longest);
    c.bw[i] = c.b[i] + c.w[i];
    c.forward[i] = generate_between(random, 0, comm);
    c.backward[i] = generate_between(random, 0, comm);
    c.f_bytes[i] = each;
    c.b_bytes[i] = generate_between(random, 0, 1) == 0 ? 0 : -generate_between(random, 0, each / 2);
    c.w_bytes[i] = -each - c.b_bytes[i];
    const int64_t kept = generate_between(random, 1, c.microbatches);
    c.limit[i] = generate_between(random, 0, 5) == 0 ? ZB_NO_LIMIT
                                                     : each * kept + generate_between(random, 0, each - 1);
  }
  return c;
}

const char *pouring_text(const struct pouring_chain *c, enum zb_objective objective) {
  static char text[2000];
  int length = snprintf(text, sizeof text, "%s, %d devices, %d microbatches",
                        objective == ZB_SPAN ? "span" : "makespan", c->devices, c->microbatches);
  for (int i = 0; i < c->devices; i++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "; f %lld b %lld w %lld, comm %lld %lld, bytes %lld %lld %lld, room %lld",
                       (long long)c->f[i], (long long)c->b[i], (long long)c->w[i], (long long)c->forward[i],
                       (long long)c->backward[i], (long long)c->f_bytes[i], (long long)c->b_bytes[i],
                       (long long)c->w_bytes[i],
                       c->limit[i] == ZB_NO_LIMIT ? -1 : (long long)(c->limit[i] - c->standing[i]));
  return text;
}

struct zb_profile *pouring_profile(const struct pouring_chain *c) {
  struct zb_profile *profile = NULL;
  if (zb_profile_create(c->devices, 1, c->microbatches, ZB_CHAIN, &profile, NULL) != ZB_OK) return NULL;
  profile->has_bw = profile->has_memory = true;
  for (int i = 0; i < c->devices; i++) {
    profile->f_ns[i] = c->f[i];
    profile->b_ns[i] = c->b[i];
    profile->w_ns[i] = c->w[i];
    profile->bw_ns[i] = c->bw[i];
    profile->comm_forward_ns[i] = i + 1 < c->devices ? c->forward[i] : 0;
    profile->comm_backward_ns[i] = i + 1 < c->devices ? c->backward[i] : 0;
    profile->f_bytes[i] = c->f_bytes[i];
    profile->b_bytes[i] = c->b_bytes[i];
    profile->w_bytes[i] = c->w_bytes[i];
    profile->limit_bytes[i] = c->limit[i];
    profile->static_bytes[i] = c->standing[i];
  }
  if (zb_profile_finish(profile, NULL) == ZB_OK) return profile;
  zb_profile_free(profile);
  return NULL;
}

int64_t pouring_whole_optimum(const struct pouring_chain *c, enum zb_objective objective) {
  struct zb_profile *profile = pouring_profile(c);
  struct brute brute;
  int64_t optimum = -1;
  if (profile && brute_solve(profile, objective, 20000, &brute)) {
    if (brute.feasible) optimum = brute.cost_ns;
    brute_free(&brute);
  }
  zb_profile_free(profile);
  return optimum;
}

// ---- every order ----

// All words of m F and m B in which no beginning has more B than F.
static int all_words(int m, struct pouring_word *words) {
  int count = 0;
  for (uint32_t bits = 0; bits < 1u << (2 * m); bits++) {
    int ahead = 0, length = 0;
    for (; length < 2 * m && ahead >= 0; length++) ahead += bits >> length & 1 ? -1 : 1;
    if (length < 2 * m || ahead != 0) continue;
    for (int k = 0; k < 2 * m; k++) words[count].is_b[k] = bits >> k & 1;
    count++;
  }
  return count;
}

static void wait_until(const struct pouring_chain *c, int i, struct pouring_device *at, int64_t time) {
  const int64_t left = at->b * c->w[i] - at->poured;
  if (time <= at->clock) return;
  at->poured += least(time - at->clock, left);
  at->clock = time;
}

static bool fits(const struct pouring_chain *c, int i, const struct pouring_device *at) {
  const int64_t weights = c->w[i] > 0 ? at->poured / c->w[i] : at->b;
  return c->limit[i] == ZB_NO_LIMIT ||
         c->standing[i] + (at->f + 1) * c->f_bytes[i] + at->b * c->b_bytes[i] + weights * c->w_bytes[i] <=
             c->limit[i];
}

// The device's next op, if its input is known. False if it is not, or F never fits there.
static bool pour_op(const struct pouring_chain *c, int i, bool is_b, struct pouring_device *all) {
  struct pouring_device *at = &all[i];
  if (is_b) {
    if (i < c->devices - 1 && all[i + 1].b <= at->b) return false;
    wait_until(c, i, at, i < c->devices - 1 ? all[i + 1].b_end[at->b] + c->backward[i] : 0);
    at->b_end[at->b++] = at->clock += c->b[i];
    return true;
  }
  if (i > 0 && all[i - 1].f <= at->f) return false;
  wait_until(c, i, at, i > 0 ? all[i - 1].f_end[at->f] + c->forward[i - 1] : 0);
  while (!fits(c, i, at)) {
    if (at->poured == at->b * c->w[i]) return false;
    wait_until(c, i, at, at->clock + 1);
  }
  at->f_end[at->f++] = at->clock += c->f[i];
  return true;
}

static int64_t end_cost(const struct pouring_chain *c, const struct pouring_device *all,
                        enum zb_objective objective) {
  int64_t cost = 0, before = 0;
  for (int i = 0; i < c->devices; i++) {
    const int64_t end = all[i].clock + c->microbatches * c->w[i] - all[i].poured;
    cost = most(cost, end - (objective == ZB_SPAN ? before : 0));
    before += c->f[i] + c->forward[i];
  }
  return cost;
}

int64_t pouring_cost(const struct pouring_chain *c, enum zb_objective objective,
                     const struct pouring_word *const *word) {
  struct pouring_device all[POURING_DEVICES];
  for (int i = 0; i < c->devices; i++) {
    all[i].f = all[i].b = 0;
    all[i].clock = all[i].poured = 0;
  }
  for (bool ran = true; ran;) {
    ran = false;
    for (int i = 0; i < c->devices; i++)
      while (all[i].f + all[i].b < 2 * c->microbatches &&
             pour_op(c, i, word[i]->is_b[all[i].f + all[i].b], all))
        ran = true;
  }
  for (int i = 0; i < c->devices; i++)
    if (all[i].f + all[i].b < 2 * c->microbatches) return pouring_never;
  return end_cost(c, all, objective);
}

int64_t pouring_optimum(const struct pouring_chain *c, enum zb_objective objective) {
  static struct pouring_word words[MOST_WORDS];
  if (c->microbatches > MOST_WORD_MICROBATCHES) return pouring_never;
  const int count = all_words(c->microbatches, words);
  const struct pouring_word *word[POURING_DEVICES];
  int64_t optimum = pouring_never;
  for (int i = 0; i < c->devices; i++) word[i] = words;
  for (int i = 0; i < c->devices;) {
    optimum = least(optimum, pouring_cost(c, objective, word));
    for (i = 0; i < c->devices && ++word[i] == words + count; i++) word[i] = words;
  }
  return optimum;
}

// ---- every way on from every state that none beats ----

struct state {
  struct state *next; // with the same F and B done
  uint64_t key;       // all devices' F and B done
  struct pouring_device at[POURING_DEVICES];
};

enum { SLOTS = 1 << 16, MOST_STATES = 50000 };

struct states {
  struct state *slot[SLOTS];
  int64_t count;
};

static size_t state_size(const struct pouring_chain *c) {
  return offsetof(struct state, at) + (size_t)c->devices * sizeof(struct pouring_device);
}

// Nothing that counts is later in x.
static bool beats(const struct pouring_chain *c, const struct state *x, const struct state *y) {
  for (int i = 0; i < c->devices; i++) {
    const struct pouring_device *a = &x->at[i], *b = &y->at[i];
    if (a->clock > b->clock || a->clock - a->poured > b->clock - b->poured) return false;
    for (int k = i + 1 < c->devices ? a[1].f : a->f; k < a->f; k++)
      if (a->f_end[k] > b->f_end[k]) return false;
    for (int k = i > 0 ? a[-1].b : a->b; k < a->b; k++)
      if (a->b_end[k] > b->b_end[k]) return false;
  }
  return true;
}

// False where memory ran out.
static bool add_state(const struct pouring_chain *c, struct states *states, const struct state *new) {
  struct state **link = &states->slot[(new->key * 0x9e3779b97f4a7c15u) >> 48];
  while (*link) {
    struct state *old = *link;
    if (old->key == new->key && beats(c, old, new)) return true;
    if (old->key == new->key && beats(c, new, old)) {
      *link = old->next;
      free(old);
      states->count--;
    } else {
      link = &old->next;
    }
  }
  if (!(*link = malloc(state_size(c)))) return false;
  memcpy(*link, new, state_size(c));
  (*link)->next = NULL;
  states->count++;
  return true;
}

// All that one op more leads to; the states are freed. False where memory ran out.
static bool next_states(const struct pouring_chain *c, struct states *from, struct states *to) {
  bool all = true;
  for (int slot = 0; slot < SLOTS; slot++) {
    while (from->slot[slot]) {
      struct state *state = from->slot[slot];
      for (int i = 0; i < c->devices; i++) {
        for (int is_b = 0; is_b <= 1; is_b++) {
          struct state more;
          memcpy(&more, state, state_size(c));
          if (is_b ? more.at[i].b == more.at[i].f : more.at[i].f == c->microbatches) continue;
          if (!pour_op(c, i, is_b, more.at)) continue;
          more.key += (uint64_t)1 << (8 * i + 4 * is_b);
          all = add_state(c, to, &more) && all;
        }
      }
      from->slot[slot] = state->next;
      free(state);
    }
  }
  from->count = 0;
  return all;
}

int64_t pouring_optimum_by_states(const struct pouring_chain *c, enum zb_objective objective) {
  static struct states both[2];
  const struct state first = {0};
  const int ops = 2 * c->devices * c->microbatches;
  int64_t optimum = pouring_never;
  bool few = c->microbatches < 16 && add_state(c, &both[0], &first);
  for (int k = 0; k < ops && few; k++) {
    few = next_states(c, &both[k % 2], &both[(k + 1) % 2]);
    few = few && both[(k + 1) % 2].count < MOST_STATES;
  }
  for (int k = 0; k < 2 * SLOTS; k++) {
    struct state **slot = &both[k / SLOTS].slot[k % SLOTS];
    while (*slot) {
      struct state *state = *slot;
      if (few) optimum = least(optimum, end_cost(c, state->at, objective));
      *slot = state->next;
      free(state);
    }
  }
  both[0].count = both[1].count = 0;
  return optimum;
}

// ---- pinned chains ----

const struct pouring_pinned pouring_pinned[] = {
    {.why = "a B that could run first has to be held: the F that comes before it, whose input is not there "
            "yet, would have to wait for memory",
     .span = 183,
     .chain = {.devices = 4,
               .microbatches = 3,
               .f = {27, 7, 15, 4},
               .b = {5, 8, 15, 13},
               .w = {11, 3, 15, 27},
               .bw = {38, 11, 30, 40},
               .backward = {1, 1},
               .f_bytes = {1, 4, 1, 9},
               .w_bytes = {-1, -4, -1, -9},
               .limit = {3, 8, 2, 18}}},
    {.why = "an F that waits for a B does not wait for W behind it: another B gives more memory back",
     .span = 47,
     .chain = {.devices = 4,
               .microbatches = 3,
               .f = {3, 3, 3, 3},
               .b = {2, 2, 2, 2},
               .w = {6, 6, 6, 6},
               .bw = {8, 8, 8, 8},
               .forward = {2, 0, 2},
               .f_bytes = {6, 0, 6, 5},
               .b_bytes = {0, 0, -3, -5},
               .w_bytes = {-6, 0, -3, 0},
               .limit = {ZB_NO_LIMIT, ZB_NO_LIMIT, 12, ZB_NO_LIMIT}}},
    {.why = "a B that goes ahead of several F may make the last of them late, not the first",
     .span = 106,
     .chain = {.devices = 3,
               .microbatches = 5,
               .f = {1, 5, 2},
               .b = {5, 1, 1},
               .w = {0, 12, 7},
               .bw = {5, 13, 8},
               .forward = {2, 1},
               .backward = {14, 17},
               .f_bytes = {6, 7, 8},
               .w_bytes = {-6, -7, -8},
               .limit = {21, 24, ZB_NO_LIMIT}}},
    {.why = "looking ahead raises a clock that it has raised before",
     .span = 465,
     .chain = {.devices = 5,
               .microbatches = 5,
               .f = {1, 2, 9, 18, 18},
               .b = {21, 2, 4, 2, 15},
               .w = {34, 60, 34, 2, 60},
               .bw = {55, 62, 38, 4, 75},
               .forward = {0, 2, 0, 0},
               .backward = {2, 1, 0, 2},
               .f_bytes = {7, 8, 1, 2, 7},
               .b_bytes = {0, -4, 0, 0, -1},
               .w_bytes = {-7, -4, -1, -2, -6},
               .limit = {35, 25, 3, 4, 24}}},
};
const int pouring_pins = sizeof pouring_pinned / sizeof *pouring_pinned;
