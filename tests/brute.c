// See brute.h. Each device's orders ("words") are listed first, those that break its limit left out. Then one
// word is chosen a device, depth first. What is chosen so far is timed as if the other devices never made
// anyone wait; if even so some device needs as long from its first op to its last as the best known cost,
// which is no less under any objective, no completion can be better.
#include "tests/brute.h"

#include <stdlib.h>
#include <string.h>

#define NEVER (INT64_MIN / 4)

enum { MAX_CHUNKS = 4, MAX_WORD = 3 * BRUTE_MAX_PASSES };

struct step {
  int32_t kind, stage, microbatch;
};

struct words {
  size_t count, capacity, length; // all words of a device have room for `length` steps
  struct step *steps;
  size_t *used; // [count] steps of each word
};

struct search {
  const struct zb_profile *profile;
  enum zb_objective objective;
  struct words words[BRUTE_MAX_DEVICES];
  const struct step *word[BRUTE_MAX_DEVICES]; // chosen; NULL: none yet
  size_t length[BRUTE_MAX_DEVICES], best_word[BRUTE_MAX_DEVICES], current[BRUTE_MAX_DEVICES];
  int64_t best;
  uint64_t timed;
  int64_t first_start[BRUTE_MAX_DEVICES], last_end[BRUTE_MAX_DEVICES]; // of the last sweep
};

// One device's word as far as it is written: per chunk how many F, gradients, W and fused backwards.
struct writer {
  const struct zb_profile *profile;
  struct words *words;
  int device;
  int f[MAX_CHUNKS], gradients[MAX_CHUNKS], w[MAX_CHUNKS], split[MAX_CHUNKS];
  int split_microbatch[MAX_CHUNKS][BRUTE_MAX_PASSES];
  int64_t kept;
  struct step word[MAX_WORD];
  size_t length, most;
  bool failed;
};

static void keep_word(struct writer *w) {
  struct words *to = w->words;
  if (to->count == w->most) {
    w->failed = true;
    return;
  }
  if (to->count == to->capacity) {
    size_t capacity = to->capacity ? 2 * to->capacity : 64;
    struct step *steps = realloc(to->steps, capacity * to->length * sizeof *steps);
    if (steps) to->steps = steps;
    size_t *used = realloc(to->used, capacity * sizeof *used);
    if (used) to->used = used;
    if (!steps || !used) {
      w->failed = true;
      return;
    }
    to->capacity = capacity;
  }
  memcpy(to->steps + to->count * to->length, w->word, w->length * sizeof *w->word);
  to->used[to->count++] = w->length;
}

static void write_words(struct writer *w);

static void write_step(struct writer *w, enum zb_kind kind, int stage, int microbatch, int64_t bytes) {
  const struct zb_profile *p = w->profile;
  if (p->static_bytes[w->device] + w->kept + bytes > p->limit_bytes[w->device]) return;
  w->kept += bytes;
  w->word[w->length++] = (struct step){(int32_t)kind, stage, microbatch};
  write_words(w);
  w->length--;
  w->kept -= bytes;
}

// Tries every step that can come next. On one device, a chunk's F comes after the same microbatch's F of the
// chunk before it and its gradient after that of the chunk behind it.
static void write_words(struct writer *w) {
  const struct zb_profile *p = w->profile;
  int m = p->microbatches;
  bool complete = true;
  for (int c = 0; c < p->chunks && !w->failed; c++) {
    int s = p->stage_at[w->device * p->chunks + c];
    if (w->gradients[c] < w->f[c] && (c == p->chunks - 1 || w->gradients[c] < w->gradients[c + 1])) {
      int j = w->gradients[c]++;
      if (p->bw_ns[s] < p->b_ns[s] + p->w_ns[s] || p->b_bytes[s] > 0)
        write_step(w, ZB_BW, s, j, p->b_bytes[s] + p->w_bytes[s]);
      w->split_microbatch[c][w->split[c]++] = j;
      write_step(w, ZB_B, s, j, p->b_bytes[s]);
      w->split[c]--;
      w->gradients[c]--;
    }
    if (w->w[c] < w->split[c]) {
      int j = w->split_microbatch[c][w->w[c]++];
      write_step(w, ZB_W, s, j, p->w_bytes[s]);
      w->w[c]--;
    }
    if (w->f[c] < m && (c == 0 || w->f[c] < w->f[c - 1])) {
      int j = w->f[c]++;
      write_step(w, ZB_F, s, j, p->f_bytes[s]);
      w->f[c]--;
    }
    complete = complete && w->gradients[c] == m && w->w[c] == w->split[c];
  }
  if (complete && !w->failed) keep_word(w);
}

// Times the chosen words with device `from` released at 0 and, where `all` is false, no other: the longest
// ways from its first op. False where they wait for each other for ever.
static bool sweep(struct search *search, int from, bool all) {
  const struct zb_profile *p = search->profile;
  int m = p->microbatches;
  size_t next[BRUTE_MAX_DEVICES] = {0};
  int64_t f_end[BRUTE_MAX_PASSES], gradient_end[BRUTE_MAX_PASSES];
  bool f_done[BRUTE_MAX_PASSES] = {false}, gradient_done[BRUTE_MAX_PASSES] = {false};
  for (int d = 0; d < p->devices; d++) search->last_end[d] = all || d == from ? 0 : NEVER;
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < p->devices; d++) {
      if (!search->word[d]) continue;
      for (; next[d] < search->length[d]; next[d]++) {
        const struct step step = search->word[d][next[d]];
        int s = step.stage, pass = s * m + step.microbatch;
        int64_t start = search->last_end[d], time = p->w_ns[s];
        if (step.kind == ZB_F) {
          time = p->f_ns[s];
          if (s > 0 && search->word[p->device_of[s - 1]]) {
            if (!f_done[pass - m]) break;
            if (f_end[pass - m] + p->comm_forward_ns[s - 1] > start)
              start = f_end[pass - m] + p->comm_forward_ns[s - 1];
          }
        } else if (step.kind != ZB_W) {
          time = step.kind == ZB_B ? p->b_ns[s] : p->bw_ns[s];
          if (s < p->stages - 1 && search->word[p->device_of[s + 1]]) {
            if (!gradient_done[pass + m]) break;
            if (gradient_end[pass + m] + p->comm_backward_ns[s] > start)
              start = gradient_end[pass + m] + p->comm_backward_ns[s];
          }
        }
        int64_t end = start + time;
        if (step.kind == ZB_F) {
          f_end[pass] = end;
          f_done[pass] = true;
        } else if (step.kind != ZB_W) {
          gradient_end[pass] = end;
          gradient_done[pass] = true;
        }
        if (next[d] == 0) search->first_start[d] = start;
        search->last_end[d] = end;
        moved = true;
      }
    }
  }
  for (int d = 0; d < p->devices; d++)
    if (search->word[d] && next[d] < search->length[d]) return false;
  return true;
}

// The largest mean, rounded up, of the cycles through `root` that visit only larger devices.
static int64_t largest_mean(int64_t length[BRUTE_MAX_DEVICES][BRUTE_MAX_DEVICES], int devices, int root,
                            int at, unsigned visited, int64_t total, int count) {
  int64_t best = length[at][root] < NEVER / 2 ? 0 : (total + length[at][root] + count - 1) / count;
  for (int next = root + 1; next < devices; next++) {
    if (visited >> next & 1 || length[at][next] < NEVER / 2) continue;
    int64_t mean =
        largest_mean(length, devices, root, next, visited | 1u << next, total + length[at][next], count + 1);
    if (mean > best) best = mean;
  }
  return best;
}

// Cost of the chosen words, all devices being chosen; INT64_MAX where they never finish.
static int64_t cost_of(struct search *search) {
  int devices = search->profile->devices;
  int64_t cost = 0;
  search->timed++;
  if (search->objective != ZB_PERIOD) {
    if (!sweep(search, 0, true)) return INT64_MAX;
    for (int d = 0; d < devices; d++) {
      int64_t first = search->objective == ZB_SPAN ? search->first_start[d] : 0;
      if (search->last_end[d] - first > cost) cost = search->last_end[d] - first;
    }
    return cost;
  }
  int64_t length[BRUTE_MAX_DEVICES][BRUTE_MAX_DEVICES];
  for (int from = 0; from < devices; from++) {
    if (!sweep(search, from, false)) return INT64_MAX;
    for (int to = 0; to < devices; to++) length[from][to] = search->last_end[to];
  }
  for (int root = 0; root < devices; root++) {
    int64_t mean = largest_mean(length, devices, root, root, 0, 0, 1);
    if (mean > cost) cost = mean;
  }
  return cost;
}

static bool hopeless(struct search *search, int chosen_from) {
  if (search->best == INT64_MAX) return false;
  for (int d = chosen_from; d < search->profile->devices; d++)
    if (!sweep(search, d, false) || search->last_end[d] >= search->best) return true;
  return false;
}

// Chooses words for devices device, device-1, .. 0.
static void choose(struct search *search, int device) {
  const struct words *words = &search->words[device];
  for (size_t i = 0; i < words->count; i++) {
    search->word[device] = words->steps + i * words->length;
    search->length[device] = words->used[i];
    search->current[device] = i;
    if (hopeless(search, device)) continue;
    if (device > 0) {
      choose(search, device - 1);
      continue;
    }
    int64_t cost = cost_of(search);
    if (cost < search->best) {
      search->best = cost;
      memcpy(search->best_word, search->current, sizeof search->best_word);
    }
  }
  search->word[device] = NULL;
}

static bool list_words(struct search *search, uint64_t most) {
  const struct zb_profile *p = search->profile;
  static struct writer writer; // large, and tests have one thread
  uint64_t combinations = 1;
  for (int d = 0; d < p->devices; d++) {
    writer = (struct writer){.profile = p, .words = &search->words[d], .device = d, .most = (size_t)most};
    search->words[d].length = (size_t)(3 * p->chunks * p->microbatches);
    write_words(&writer);
    if (writer.failed) return false;
    if (search->words[d].count > 0 && combinations > most / search->words[d].count) return false;
    combinations *= search->words[d].count;
  }
  return true;
}

static bool build_best(const struct search *search, struct zb_schedule **schedule) {
  const struct zb_profile *p = search->profile;
  struct zb_schedule_builder builder;
  if (zb_builder_create(p, &builder, NULL) != ZB_OK) return false;
  for (int d = 0; d < p->devices; d++) {
    const struct words *words = &search->words[d];
    const struct step *word = words->steps + search->best_word[d] * words->length;
    for (size_t i = 0; i < words->used[search->best_word[d]]; i++)
      zb_builder_append(&builder, word[i].stage, (enum zb_kind)word[i].kind, word[i].microbatch);
  }
  bool built = zb_builder_finish(&builder, schedule, NULL) == ZB_OK;
  zb_builder_free(&builder);
  return built;
}

bool brute_solve(const struct zb_profile *profile, enum zb_objective objective, uint64_t most,
                 struct brute *out) {
  if (profile->devices > BRUTE_MAX_DEVICES || profile->chunks > MAX_CHUNKS ||
      profile->stages * profile->microbatches > BRUTE_MAX_PASSES)
    return false;
  struct search search = {.profile = profile, .objective = objective, .best = INT64_MAX};
  struct brute found = {0};
  bool done = list_words(&search, most);
  if (done) {
    choose(&search, profile->devices - 1);
    for (int d = 0; d < profile->devices; d++) found.words += search.words[d].count;
    found.timed = search.timed;
    found.feasible = search.best != INT64_MAX;
    if (found.feasible) {
      found.cost_ns = search.best;
      done = build_best(&search, &found.schedule);
    }
  }
  for (int d = 0; d < profile->devices; d++) {
    free(search.words[d].steps);
    free(search.words[d].used);
  }
  if (done) *out = found;
  return done;
}

void brute_free(struct brute *brute) {
  zb_schedule_free(brute->schedule);
  *brute = (struct brute){0};
}
