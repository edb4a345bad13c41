// zbcheck's search of `fluid-fronts` against every order of F and B with W poured, and against every order of
// F, B and W: it refutes a target if and only if it is below the first optimum, so never one that the second
// reaches.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/profile.h"
#include "tests/brute.h"
#include "tests/generate.h"
#include "tests/unit/unit.h"
#include "tests/zbcheck_fluid.h"

enum { MOST_DEVICES = 6, MOST_PASSES = 14, MOST_WORDS = 429 };

// ---- what zbcheck.c has and this program needs: it reports nothing, and its memory is freed trial by trial
// ----

struct zc_block {
  struct zc_block *next;
  max_align_t bytes[];
};

void *zc_alloc(struct zc_run *run, size_t count, size_t size) {
  struct zc_block *block = calloc(1, sizeof *block + count * size);
  assert_non_null(block);
  block->next = run->blocks;
  run->blocks = block;
  return block->bytes;
}

bool zc_grow(struct zc_run *run, void **table, size_t *room, size_t need, size_t size) {
  (void)run;
  if (need <= *room) return true;
  *room = 2 * need;
  *table = realloc(*table, *room * size);
  assert_non_null(*table);
  return true;
}

bool zc_stop(struct zc_run *run, enum zc_verdict verdict, const char *format, ...) {
  run->finding.verdict = verdict;
  fail_msg("zbcheck stops: %s", format);
  return false;
}

void zc_note(const struct zc_run *run, const char *format, ...) {
  (void)run;
  (void)format;
}

static void free_blocks(struct zc_run *run) {
  while (run->blocks) {
    struct zc_block *next = run->blocks->next;
    free(run->blocks);
    run->blocks = next;
  }
}

// ---- random chains ----

struct chain {
  int32_t devices, m, number[MOST_DEVICES]; // which stage is on which device: each on its own
  int64_t f[MOST_DEVICES], b[MOST_DEVICES], w[MOST_DEVICES], bw[MOST_DEVICES];
  int64_t forward[MOST_DEVICES], backward[MOST_DEVICES];
  int64_t keep_f[MOST_DEVICES], keep_b[MOST_DEVICES], keep_w[MOST_DEVICES];
  int64_t limit[MOST_DEVICES], standing[MOST_DEVICES];
};

// The size one of `sizes`, or half the time less.
static struct chain random_chain(struct generate_random *random, const int32_t (*sizes)[2], size_t count) {
  const int32_t *size = sizes[generate_between(random, 0, (int64_t)count - 1)];
  const bool large = generate_between(random, 0, 1) == 0;
  struct chain c = {.devices = large ? size[0] : (int32_t)generate_between(random, 1, size[0]),
                    .m = large ? size[1] : (int32_t)generate_between(random, 1, size[1])};
  const int64_t comm = generate_between(random, 0, 2) == 0 ? 12 : generate_between(random, 0, 3);
  const int64_t most = generate_between(random, 0, 3) == 0 ? 30 : 7;
  const bool alike = generate_between(random, 0, 2) == 0;
  const int64_t no_limit = generate_between(random, 0, 3);
  const bool by_weights =
      generate_between(random, 0, 1) == 0; // of memory that is tight, all is W's to give back
  for (int32_t i = 0; i < c.devices; i++) {
    c.number[i] = i;
    c.f[i] = alike && i > 0 ? c.f[0] : generate_between(random, 0, most);
    c.b[i] = alike && i > 0 ? c.b[0] : generate_between(random, 0, most);
    c.w[i] = alike && i > 0 ? c.w[0] : generate_between(random, 0, most);
    c.bw[i] = c.b[i] + c.w[i] + generate_between(random, 0, 1);
    c.forward[i] = generate_between(random, 0, comm);
    c.backward[i] = generate_between(random, 0, comm);
    c.keep_f[i] = generate_between(random, 0, 9);
    c.keep_w[i] = by_weights ? -c.keep_f[i] : -generate_between(random, 0, c.keep_f[i]);
    c.keep_b[i] = -c.keep_f[i] - c.keep_w[i];
    c.standing[i] = generate_between(random, 0, 2);
    c.limit[i] = c.standing[i] + c.keep_f[i];
    if (by_weights)
      c.limit[i] += c.keep_f[i] * generate_between(random, 0, 2);
    else if (generate_between(random, 0, 3) < no_limit)
      c.limit[i] = ZC_NO_LIMIT;
    else
      c.limit[i] += generate_between(random, 0, 4 * (int64_t)c.m);
  }
  return c;
}

static struct zc_profile checked_profile(struct chain *c) {
  return (struct zc_profile){.devices = c->devices,
                             .chunks = 1,
                             .stages = c->devices,
                             .microbatches = c->m,
                             .device_of = c->number,
                             .stages_of = c->number,
                             .f = c->f,
                             .b = c->b,
                             .w = c->w,
                             .bw = c->bw,
                             .forward = c->forward,
                             .backward = c->backward,
                             .keep_f = c->keep_f,
                             .keep_b = c->keep_b,
                             .keep_w = c->keep_w,
                             .limit = c->limit,
                             .standing = c->standing};
}

// ---- every order, W poured ----

struct word {
  bool is_b[MOST_PASSES];
};

// All words of m F and m B in which no beginning has more B than F.
static int32_t all_words(int32_t m, struct word *words) {
  int32_t count = 0;
  for (uint32_t bits = 0; bits < 1u << (2 * m); bits++) {
    int32_t ahead = 0, length = 0;
    for (; length < 2 * m && ahead >= 0; length++) ahead += bits >> length & 1 ? -1 : 1;
    if (length < 2 * m || ahead != 0) continue;
    for (int32_t k = 0; k < 2 * m; k++) words[count].is_b[k] = bits >> k & 1;
    count++;
  }
  return count;
}

// One device on the common clock.
struct pouring {
  int32_t f, b;
  int64_t clock, poured;
  int64_t f_end[MOST_PASSES], b_end[MOST_PASSES];
};

static void wait_until(const struct chain *c, int32_t i, struct pouring *at, int64_t time) {
  const int64_t left = at->b * c->w[i] - at->poured;
  if (time <= at->clock) return;
  at->poured += time - at->clock < left ? time - at->clock : left;
  at->clock = time;
}

static bool fits(const struct chain *c, int32_t i, const struct pouring *at) {
  const int64_t weights = c->w[i] > 0 ? at->poured / c->w[i] : at->b;
  return c->limit[i] == ZC_NO_LIMIT ||
         c->standing[i] + (at->f + 1) * c->keep_f[i] + at->b * c->keep_b[i] + weights * c->keep_w[i] <=
             c->limit[i];
}

// The device's next op, if its input is known. False if it is not, or F never fits there.
static bool pour_op(const struct chain *c, int32_t i, bool is_b, struct pouring *all) {
  struct pouring *at = &all[i];
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

static int64_t end_cost(const struct chain *c, const struct pouring *all, enum zc_objective objective) {
  int64_t cost = 0, before = 0;
  for (int32_t i = 0; i < c->devices; i++) {
    cost = zc_most(cost, all[i].clock + c->m * c->w[i] - all[i].poured - (objective == ZC_SPAN ? before : 0));
    before += c->f[i] + c->forward[i];
  }
  return cost;
}

// The cost of one order a device, zc_never if it does not finish.
static int64_t pour_orders(const struct chain *c, const struct word *words, const int32_t *chosen,
                           enum zc_objective objective) {
  struct pouring all[MOST_DEVICES] = {{0}};
  for (bool ran = true; ran;) {
    ran = false;
    for (int32_t i = 0; i < c->devices; i++)
      while (all[i].f + all[i].b < 2 * c->m && pour_op(c, i, words[chosen[i]].is_b[all[i].f + all[i].b], all))
        ran = true;
  }
  for (int32_t i = 0; i < c->devices; i++)
    if (all[i].f + all[i].b < 2 * c->m) return zc_never;
  return end_cost(c, all, objective);
}

static int64_t poured_optimum(const struct chain *c, enum zc_objective objective) {
  static struct word words[MOST_WORDS];
  const int32_t count = all_words(c->m, words);
  int32_t chosen[MOST_DEVICES] = {0};
  int64_t optimum = zc_never;
  for (int32_t i = 0; i < c->devices;) {
    optimum = zc_least(optimum, pour_orders(c, words, chosen, objective));
    for (i = 0; i < c->devices && ++chosen[i] == count; i++) chosen[i] = 0;
  }
  return optimum;
}

// ---- every way on from every state that none beats, W poured: for what has too many orders ----

struct state {
  struct state *next; // with the same F and B done
  uint64_t key;       // all devices' F and B done
  struct pouring at[MOST_DEVICES];
};

enum { SLOTS = 1 << 16 };

struct states {
  struct state *slot[SLOTS];
  int64_t count;
};

static size_t state_size(const struct chain *c) {
  return offsetof(struct state, at) + (size_t)c->devices * sizeof(struct pouring);
}

// Nothing that counts is later in x.
static bool beats(const struct chain *c, const struct state *x, const struct state *y) {
  for (int32_t i = 0; i < c->devices; i++) {
    const struct pouring *a = &x->at[i], *b = &y->at[i];
    if (a->clock > b->clock || a->clock - a->poured > b->clock - b->poured) return false;
    for (int32_t k = i + 1 < c->devices ? a[1].f : a->f; k < a->f; k++)
      if (a->f_end[k] > b->f_end[k]) return false;
    for (int32_t k = i > 0 ? a[-1].b : a->b; k < a->b; k++)
      if (a->b_end[k] > b->b_end[k]) return false;
  }
  return true;
}

static void add_state(const struct chain *c, struct states *states, const struct state *new) {
  struct state **link = &states->slot[(new->key * 0x9e3779b97f4a7c15u) >> 48];
  while (*link) {
    struct state *old = *link;
    if (old->key == new->key && beats(c, old, new)) return;
    if (old->key == new->key && beats(c, new, old)) {
      *link = old->next;
      free(old);
      states->count--;
    } else {
      link = &old->next;
    }
  }
  *link = malloc(state_size(c));
  assert_non_null(*link);
  memcpy(*link, new, state_size(c));
  (*link)->next = NULL;
  states->count++;
}

// All that one op more leads to; the states are freed.
static void next_states(const struct chain *c, struct states *from, struct states *to) {
  for (int32_t slot = 0; slot < SLOTS; slot++) {
    while (from->slot[slot]) {
      struct state *state = from->slot[slot];
      for (int32_t i = 0; i < c->devices; i++) {
        for (int is_b = 0; is_b <= 1; is_b++) {
          struct state more;
          memcpy(&more, state, state_size(c));
          if (is_b ? more.at[i].b == more.at[i].f : more.at[i].f == c->m) continue;
          if (!pour_op(c, i, is_b, more.at)) continue;
          more.key += (uint64_t)1 << (8 * i + 4 * is_b);
          add_state(c, to, &more);
        }
      }
      from->slot[slot] = state->next;
      free(state);
    }
  }
  from->count = 0;
}

// zc_never where there are too many states.
static int64_t poured_optimum_by_states(const struct chain *c, enum zc_objective objective) {
  static struct states both[2];
  const struct state first = {0};
  const int32_t ops = 2 * c->devices * c->m;
  int64_t optimum = zc_never;
  bool few = true;
  add_state(c, &both[0], &first);
  for (int32_t k = 0; k < ops && few; k++) {
    next_states(c, &both[k % 2], &both[(k + 1) % 2]);
    few = both[(k + 1) % 2].count < 50000;
  }
  for (int32_t k = 0; k < 2 * SLOTS; k++) {
    struct state **slot = &both[k / SLOTS].slot[k % SLOTS];
    while (*slot) {
      struct state *state = *slot;
      if (few) optimum = zc_least(optimum, end_cost(c, state->at, objective));
      *slot = state->next;
      free(state);
    }
  }
  both[0].count = both[1].count = 0;
  return optimum;
}

// ---- every order of F, B and W ----

// -1 where there is none, or too many to try.
static int64_t real_optimum(const struct chain *c, enum zc_objective objective) {
  struct zb_profile *profile = NULL;
  struct brute brute;
  int64_t optimum = -1;
  assert_int_equal(zb_profile_create(c->devices, 1, c->m, ZB_CHAIN, &profile, NULL), ZB_OK);
  profile->has_bw = profile->has_memory = true;
  for (int32_t i = 0; i < c->devices; i++) {
    profile->f_ns[i] = c->f[i];
    profile->b_ns[i] = c->b[i];
    profile->w_ns[i] = c->w[i];
    profile->bw_ns[i] = c->bw[i];
    profile->comm_forward_ns[i] = i + 1 < c->devices ? c->forward[i] : 0;
    profile->comm_backward_ns[i] = i + 1 < c->devices ? c->backward[i] : 0;
    profile->f_bytes[i] = c->keep_f[i];
    profile->b_bytes[i] = c->keep_b[i];
    profile->w_bytes[i] = c->keep_w[i];
    profile->limit_bytes[i] = c->limit[i] == ZC_NO_LIMIT ? ZB_NO_LIMIT : c->limit[i];
    profile->static_bytes[i] = c->standing[i];
  }
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  if (brute_solve(profile, objective == ZC_SPAN ? ZB_SPAN : ZB_MAKESPAN, 20000, &brute)) {
    if (brute.feasible) optimum = brute.cost_ns;
    brute_free(&brute);
  }
  zb_profile_free(profile);
  return optimum;
}

// ---- what zbcheck says ----

// Of a target, with the windows that propagation leaves or those that know nothing but the target.
static enum zc_outcome search(struct chain *c, enum zc_objective objective, int64_t target, bool propagate) {
  const struct zc_profile profile = checked_profile(c);
  struct zc_run run = {.verbose = false};
  struct zc_windows *windows = zc_windows_new(&run, &profile, objective, target, false);
  enum zc_outcome outcome = target < 0 ? ZC_REFUTED : propagate ? zc_windows_propagate(windows) : ZC_OPEN;
  if (outcome == ZC_OPEN) outcome = zc_fluid_search(windows);
  zc_windows_free(windows);
  free_blocks(&run);
  return outcome;
}

static const char *described(const struct chain *c, enum zc_objective objective) {
  static char text[2000];
  int length = snprintf(text, sizeof text, "%s, %d devices, %d microbatches",
                        objective == ZC_SPAN ? "span" : "makespan", c->devices, c->m);
  for (int32_t i = 0; i < c->devices; i++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "; f %lld b %lld w %lld, comm %lld %lld, keeps %lld %lld %lld, limit %lld",
                       (long long)c->f[i], (long long)c->b[i], (long long)c->w[i], (long long)c->forward[i],
                       (long long)c->backward[i], (long long)c->keep_f[i], (long long)c->keep_b[i],
                       (long long)c->keep_w[i],
                       c->limit[i] == ZC_NO_LIMIT ? -1 : (long long)(c->limit[i] - c->standing[i]));
  return text;
}

static void try_poured(struct chain *c, enum zc_objective objective, int64_t optimum) {
  for (int64_t more = -3; more <= 2; more++) {
    const enum zc_outcome wanted = more < 0 ? ZC_REFUTED : ZC_OPEN;
    expect(search(c, objective, optimum + more, false) == wanted, "poured optimum %lld, not so at %+lld: %s",
           (long long)optimum, (long long)more, described(c, objective));
    if (more >= 0) continue;
    expect(search(c, objective, optimum + more, true) == wanted,
           "poured optimum %lld, not so with windows at %+lld: %s", (long long)optimum, (long long)more,
           described(c, objective));
  }
}

static void try_real(struct chain *c, enum zc_objective objective, int64_t optimum) {
  for (int64_t more = 0; more <= 3; more++)
    expect(search(c, objective, optimum + more, true) == ZC_OPEN, "optimum %lld, refuted at %+lld: %s",
           (long long)optimum, (long long)more, described(c, objective));
}

static struct generate_random begin_random(uint64_t seed) {
  const char *given = getenv("FLUID_SEED");
  if (given) seed = strtoull(given, NULL, 10);
  print_message("# FLUID_SEED=%llu\n", (unsigned long long)seed);
  return (struct generate_random){seed};
}

static void test_every_order(void **state) {
  static const int32_t sizes[][2] = {{1, 7}, {2, 5}, {2, 7}, {3, 4}, {3, 5}, {4, 3}, {4, 4}, {5, 3}, {6, 2}};
  const int count = getenv("ZB_LONG") ? 20000 : part_of(1600);
  struct generate_random random = begin_random(10241);
  int known = 0, equal = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    struct chain chain = random_chain(&random, sizes, sizeof sizes / sizeof sizes[0]);
    const enum zc_objective objective = k % 2 == 0 ? ZC_SPAN : ZC_MAKESPAN;
    const int64_t poured = poured_optimum(&chain, objective), real = real_optimum(&chain, objective);
    assert_true(poured < zc_never);
    try_poured(&chain, objective, poured);
    if (k % 4 == 0) expect_equal(poured_optimum_by_states(&chain, objective), poured, "optimum by states");
    if (real < 0) continue;
    assert_true(real >= poured);
    try_real(&chain, objective, real);
    known++;
    equal += real == poured;
  }
  expect(known > count / 4 && equal < known, "%d real optima known, %d of them equal to the poured one",
         known, equal);
}

static void test_every_state(void **state) {
  static const int32_t sizes[][2] = {{2, 13}, {3, 9}, {4, 7}, {5, 5}, {6, 4}};
  const int count = getenv("ZB_LONG") ? 2000 : part_of(100);
  struct generate_random random = begin_random(5162);
  int known = 0;
  (void)state;
  for (int k = 0; k < count; k++) {
    struct chain chain = random_chain(&random, sizes, sizeof sizes / sizeof sizes[0]);
    const enum zc_objective objective = k % 2 == 0 ? ZC_SPAN : ZC_MAKESPAN;
    const int64_t poured = poured_optimum_by_states(&chain, objective);
    if (poured == zc_never) continue;
    try_poured(&chain, objective, poured);
    known++;
  }
  expect(known > count / 2, "%d optima known", known);
}

// What random chains seldom have.
static void test_rare(void **state) {
  // A B that could run first has to be held: the F that comes before it, whose input is not there yet, would
  // have to wait for memory.
  struct chain held = {.devices = 4,
                       .m = 3,
                       .number = {0, 1, 2, 3},
                       .f = {27, 7, 15, 4},
                       .b = {5, 8, 15, 13},
                       .w = {11, 3, 15, 27},
                       .bw = {38, 11, 30, 40},
                       .backward = {1, 1},
                       .keep_f = {1, 4, 1, 9},
                       .keep_w = {-1, -4, -1, -9},
                       .limit = {3, 8, 2, 18}};
  // An F that waits for a B does not wait for W behind it: another B gives more memory back.
  struct chain other_b = {.devices = 4,
                          .m = 3,
                          .number = {0, 1, 2, 3},
                          .f = {3, 3, 3, 3},
                          .b = {2, 2, 2, 2},
                          .w = {6, 6, 6, 6},
                          .bw = {8, 8, 8, 8},
                          .forward = {2, 0, 2},
                          .keep_f = {6, 0, 6, 5},
                          .keep_b = {0, 0, -3, -5},
                          .keep_w = {-6, 0, -3, 0},
                          .limit = {ZC_NO_LIMIT, ZC_NO_LIMIT, 12, ZC_NO_LIMIT}};
  (void)state;
  assert_int_equal(poured_optimum(&held, ZC_SPAN), 183);
  try_poured(&held, ZC_SPAN, 183);
  assert_int_equal(poured_optimum(&other_b, ZC_SPAN), 47);
  try_poured(&other_b, ZC_SPAN, 47);
}

// ---- what is kept ----

enum { STORE_DEVICES = 5, STORE_M = 9, STORE_LENGTH = 13, GROUPS = 9000, EACH = 12 };

struct offered {
  uint16_t count[3 * STORE_DEVICES];
  int64_t times[EACH][STORE_LENGTH];
};

static bool none_later(const int64_t *x, const int64_t *y) {
  for (int32_t k = 0; k < STORE_LENGTH; k++)
    if (x[k] > y[k]) return false;
  return true;
}

static void offer(struct fluid *s, const struct offered *group, int32_t k) {
  const struct fluid_node node = {.device = k};
  s->done = s->holds = 0;
  s->hash = 0;
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++) {
    if (i < 2 * STORE_DEVICES)
      s->done += group->count[i];
    else
      s->holds += group->count[i];
    s->hash += group->count[i] * s->mark[i];
  }
  memcpy(s->count, group->count, sizeof group->count);
  memcpy(s->times, group->times[k], sizeof group->times[k]);
  s->length = STORE_LENGTH;
  zc_fluid_keep(s, &node);
}

// Those kept are offered, each other is covered by one of them, and none of them by another.
static void expect_least(const struct fluid_group *group, const struct offered *offered) {
  assert_memory_equal(group->count, offered->count, sizeof offered->count);
  for (int32_t k = 0; k < group->entries; k++) {
    struct fluid_node *node = group->entry[k].node;
    assert_memory_equal(zc_fluid_times(node), offered->times[node->device], sizeof offered->times[0]);
    for (int32_t l = 0; l < group->entries; l++)
      assert_true(l == k || !none_later(zc_fluid_times(group->entry[l].node), zc_fluid_times(node)));
  }
  for (int32_t k = 0; k < EACH; k++) {
    bool covered = false;
    for (int32_t l = 0; l < group->entries; l++)
      covered = covered || none_later(zc_fluid_times(group->entry[l].node), offered->times[k]);
    assert_true(covered);
  }
}

static void draw_group(struct generate_random *random, struct offered *group, uint16_t number) {
  const int64_t most = generate_between(random, 1, 3),
                far = generate_between(random, 0, 3) == 0 ? 1 << 20 : 0;
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++)
    group->count[i] = (uint16_t)generate_between(random, 0, i < 2 * STORE_DEVICES ? STORE_M : 1);
  for (int32_t i = 0; i < 5; i++, number /= 9) group->count[i] = number % 9; // no two alike
  for (int32_t k = 0; k < EACH; k++)
    for (int32_t l = 0; l < STORE_LENGTH; l++) // few apart, so that some cover others
      group->times[k][l] = generate_between(random, 0, 3) > 0 ? 1 : generate_between(random, 0, most) + far;
}

// Many groups at once, their nodes in turn, some layers forgotten and filled again.
static void test_store(void **state) {
  struct zc_run run = {.verbose = false};
  const int32_t layers = (2 * STORE_DEVICES * STORE_M + 1) * (STORE_DEVICES + 1);
  struct generate_random random = begin_random(77);
  struct fluid s = {.run = &run, .devices = STORE_DEVICES, .m = STORE_M};
  struct offered *offered = zc_alloc(&run, GROUPS, sizeof *offered);
  (void)state;
  s.mark = zc_alloc(&run, 3 * STORE_DEVICES, sizeof *s.mark);
  s.count = zc_alloc(&run, 3 * STORE_DEVICES, sizeof *s.count);
  s.times = zc_alloc(&run, STORE_LENGTH, sizeof *s.times);
  s.layer = zc_alloc(&run, (size_t)layers, sizeof *s.layer);
  // hashes that meet, too
  for (int32_t i = 0; i < 3 * STORE_DEVICES; i++) s.mark[i] = (uint64_t)generate_between(&random, 0, 40);
  for (int32_t g = 0; g < GROUPS; g++) draw_group(&random, &offered[g], (uint16_t)g);
  for (int32_t round = 0; round < 2; round++) {
    s.lane_shift = 2 * round;
    for (int32_t k = 0; k < EACH; k++)
      for (int32_t g = 0; g < GROUPS; g++) offer(&s, &offered[g], k);
    int32_t groups = 0;
    for (int32_t l = 0; l < layers; l++) {
      for (const struct fluid_group *group = s.layer[l].groups; group; group = group->next, groups++) {
        int32_t number = 0;
        for (int32_t i = 4; i >= 0; i--) number = 9 * number + group->count[i];
        expect_least(group, &offered[number]);
      }
      zc_fluid_forget(&s, &s.layer[l]);
    }
    assert_int_equal(groups, GROUPS);
  }
  zc_fluid_free(&s);
  free_blocks(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_order), cmocka_unit_test(test_every_state),
                                     cmocka_unit_test(test_rare), cmocka_unit_test(test_store)};
  return cmocka_run_group_tests_name("fluid", tests, NULL, NULL);
}
