// A layer keeps of what it was offered what a plain list would: those that nothing covers, the first of equal
// ones, the best if only so many may stay; also if more is offered after that. Paths are read as they were
// made, whatever was dropped since, and what is dropped is taken again.
#include <stdlib.h>
#include <string.h>

#include "solver/exact/layer.h"
#include "tests/generate.h"
#include "tests/unit/unit.h"

enum { OFFERS = 3000, ASIDE = 2, KEY = 2, MOST_NUMBERS = 11, MOST_WORDS = ASIDE + KEY + MOST_NUMBERS + 6 };

struct offer {
  int64_t word[MOST_WORDS];
  size_t words;
  int64_t score;
  uint32_t path;
  bool covered;
};

static bool covers(const struct offer *x, const struct offer *y, size_t aside) {
  if (x->words != y->words || memcmp(x->word + aside, y->word + aside, KEY * sizeof *x->word) != 0)
    return false;
  for (size_t i = aside + KEY; i < x->words; i++)
    if (x->word[i] > y->word[i]) return false;
  return true;
}

static bool better(const struct offer *x, const struct offer *y) {
  return x->score != y->score ? x->score > y->score : x < y;
}

// Few keys and few numbers apart, so that many cover others. How many words there are goes by the key. What
// is aside tells all apart.
static void draw(struct generate_random *random, const struct zb_layer_shape *shape, int keys, int64_t far,
                 struct offer *offer) {
  *offer = (struct offer){.score = generate_between(random, 0, 50)};
  const size_t key = shape->aside;
  for (size_t i = 0; i < key; i++) offer->word[i] = generate_between(random, 0, INT64_MAX - 1);
  offer->word[key] = generate_between(random, 0, keys - 1);
  offer->word[key + 1] = generate_between(random, 0, 1) << 60;
  offer->words = key + KEY + shape->numbers + (size_t)offer->word[key] % 6;
  for (size_t i = key + KEY; i < offer->words; i++)
    offer->word[i] = generate_between(random, 0, 4) > 0
                         ? 1
                         : generate_between(random, -2, 2) + far * generate_between(random, 0, 1);
}

// What was offered before and is covered now is marked. False: the new one is.
static bool offer_to_list(struct offer *list, int count, size_t aside) {
  for (int i = 0; i < count; i++)
    if (!list[i].covered && covers(&list[i], &list[count], aside)) return false;
  for (int i = 0; i < count; i++) list[i].covered = list[i].covered || covers(&list[count], &list[i], aside);
  return true;
}

static int compare_offers(const void *x, const void *y) {
  const struct offer *const *a = x, *const *b = y;
  return better(*a, *b) ? -1 : 1;
}

// What is left of a list, as it came. Where that is more than `most`: the best, best first, and the others
// cover nothing from then on.
static size_t leave_out(struct offer *list, int count, size_t most, struct offer **left) {
  size_t alive = 0;
  for (int i = 0; i < count; i++)
    if (!list[i].covered) left[alive++] = &list[i];
  if (alive <= most) return alive;
  qsort(left, alive, sizeof *left, compare_offers);
  for (size_t i = most; i < alive; i++) left[i]->covered = true;
  return most;
}

static int by_number(const void *left, const void *right) {
  const struct zb_kept *x = *(struct zb_kept *const *)left, *y = *(struct zb_kept *const *)right;
  return x->number < y->number ? -1 : 1;
}

static size_t count_alive(const struct offer *list, int count) {
  size_t alive = 0;
  for (int i = 0; i < count; i++) alive += !list[i].covered;
  return alive;
}

// What is kept, after `most`, against the list; best first where something was left out, else as it came.
static void expect_kept(struct zb_layer *layer, const struct zb_layer_shape *shape, size_t most, bool trimmed,
                        struct offer *list) {
  struct offer *left[OFFERS];
  const bool leaves_out = count_alive(list, OFFERS) > most;
  const size_t count = leave_out(list, OFFERS, most, left);
  assert_int_equal(zb_layer_close(layer, shape, most), leaves_out);
  assert_int_equal(layer->count, count);
  if (trimmed && !leaves_out) qsort(layer->kept, count, sizeof(struct zb_kept *), by_number);
  for (size_t i = 0; i < count; i++) {
    const struct zb_kept *kept = layer->kept[i];
    uint32_t choice[3];
    assert_memory_equal(kept->word, left[i]->word, left[i]->words * sizeof *kept->word);
    assert_int_equal(kept->score, left[i]->score);
    assert_int_equal(zb_paths_length(shape->paths, kept->path), 2);
    zb_paths_read(shape->paths, kept->path, 2, choice);
    assert_int_equal(choice[0], 77);
    assert_int_equal(choice[1], (left[i] - list) % 256);
  }
}

static void test_keeps_what_a_list_does(void **state) {
  static struct offer list[OFFERS];
  struct generate_random random = {3187};
  struct zb_paths paths = {0};
  (void)state;
  for (int round = 0; round < 40; round++) {
    const struct zb_layer_shape shape = {.aside = round % 2 ? ASIDE : 0,
                                         .key = KEY,
                                         .numbers = (size_t)generate_between(&random, 1, MOST_NUMBERS),
                                         .coarse = round % 4 == 0   ? 20
                                                   : round % 4 == 1 ? 1
                                                                    : 0,
                                         .paths = &paths};
    const int64_t far = (int64_t)1 << (30 + shape.coarse); // the most that rows can hold
    const int keys = (int)generate_between(&random, 1, 300);
    struct zb_layer layer = {0};
    const uint32_t before = zb_paths_add(&paths, 0, 77);
    const bool trimmed = round % 5 > 2;
    int covered = 0;
    for (int i = 0; i < OFFERS; i++) {
      if (trimmed && i % (OFFERS / 4) == 0) {
        struct offer *left[OFFERS];
        const size_t few = (size_t)generate_between(&random, 0, 200);
        const bool leaves_out = count_alive(list, i) > few;
        assert_int_equal(zb_layer_trim(&layer, &shape, few), leaves_out);
        assert_int_equal(layer.count, leave_out(list, i, few, left));
      }
      draw(&random, &shape, keys, far, &list[i]);
      const bool added = offer_to_list(list, i, shape.aside);
      const enum zb_layer_end end =
          zb_layer_add(&layer, &shape, list[i].word, list[i].words, list[i].score, before, (uint32_t)i % 256);
      assert_int_equal(end, added ? ZB_LAYER_ADDED : ZB_LAYER_COVERED);
      list[i].covered = !added;
      covered += !added;
    }
    assert_true(covered > OFFERS / 20 && zb_layer_bytes(&layer) > 0);
    const size_t most[] = {SIZE_MAX, count_alive(list, OFFERS), (size_t)generate_between(&random, 0, 200)};
    expect_kept(&layer, &shape, most[round % 3], trimmed, list);
    zb_layer_free(&layer, &shape);
    zb_paths_drop(&paths, before);
    assert_int_equal(zb_layer_bytes(&layer), 0);
    // All were dropped: there are no more steps than one round has ever had.
    assert_true(paths.count <= OFFERS + 2);
  }
  zb_paths_free(&paths);
}

enum { HELD = 60, STEPS = 20000, LONGEST = 40 };

// A path and what it must read as.
struct held {
  uint32_t path;
  size_t length;
  uint32_t choice[LONGEST];
};

static void test_paths(void **state) {
  struct generate_random random = {99};
  struct zb_paths paths = {0};
  struct held held[HELD] = {{0}}; // path 0: the empty one
  (void)state;
  for (int step = 0; step < STEPS; step++) {
    struct held *to = &held[generate_between(&random, 0, HELD - 1)];
    struct held made = held[generate_between(&random, 0, HELD - 1)];
    if (made.length == LONGEST) made = (struct held){0};
    const uint32_t choice = (uint32_t)generate_between(&random, 0, UINT32_MAX);
    made.path = zb_paths_add(&paths, made.path, choice);
    made.choice[made.length++] = choice;
    zb_paths_drop(&paths, to->path); // of path 0: nothing
    *to = made;
    for (int i = step % 16; i < HELD; i += 16) {
      uint32_t read[LONGEST];
      assert_int_equal(zb_paths_length(&paths, held[i].path), held[i].length);
      zb_paths_read(&paths, held[i].path, held[i].length, read);
      assert_memory_equal(read, held[i].choice, held[i].length * sizeof *read);
    }
  }
  // No more than all that is held ever had, were none of it shared.
  assert_true(paths.count <= HELD * LONGEST + 2);
  const size_t count = paths.count;
  for (int i = 0; i < HELD; i++) zb_paths_drop(&paths, held[i].path);
  // All of it is there to be taken again.
  for (size_t k = 1; k < count; k++) assert_int_not_equal(zb_paths_add(&paths, 0, 1), 0);
  assert_int_equal(paths.count, count);
  zb_paths_free(&paths);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_keeps_what_a_list_does),
                                     cmocka_unit_test(test_paths)};
  return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}
