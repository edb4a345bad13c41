// test_mutants.c - whatever one instruction of a program is changed to, the check refuses it or the program
// plays as well as before.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/program/program_check.h"
#include "solver/program/simulate.h"
#include "tests/instances.h"
#include "tests/player.h"
#include "tests/unit/unit.h"

enum { SEED = 20, LONG_FACTOR = 20, MUTANTS = 10000 };

static int long_factor(void) { return getenv("ZB_LONG") ? LONG_FACTOR : 1; }

static struct zb_program *copy_program(const struct zb_program *program, size_t more) {
  struct zb_program *copy = NULL;
  const size_t total = program->first[program->devices];
  assert_int_equal(zb_program_create(program->profile, total + more, &copy, NULL), ZB_OK);
  memcpy(copy->first, program->first, ((size_t)program->devices + 1) * sizeof *copy->first);
  memcpy(copy->peak_bytes, program->peak_bytes, (size_t)program->devices * sizeof *copy->peak_bytes);
  memcpy(copy->instructions, program->instructions, total * sizeof *copy->instructions);
  memcpy(copy->slots, program->slots, (size_t)program->profile->stages * ZB_SLOT_KINDS * sizeof *copy->slots);
  copy->span_ns = program->span_ns;
  copy->period_ns = program->period_ns;
  copy->makespan_ns = program->makespan_ns;
  copy->channels = program->channels;
  copy->optimizer = program->optimizer;
  return copy;
}

static int device_of(const struct zb_program *program, size_t at) {
  int d = 0;
  while (at >= program->first[d + 1]) d++;
  return d;
}

static void shift(struct zb_program *program, int device, size_t at, bool more) {
  const size_t total = program->first[program->devices];
  struct zb_instruction *i = program->instructions + at;
  memmove(more ? i + 1 : i, more ? i : i + 1, (total - at - !more) * sizeof *i);
  for (int d = device; d < program->devices; d++) program->first[d + 1] += more ? 1 : (size_t)-1;
}

enum mutation { DROP, DUPLICATE, SWAP, RETARGET, MUTATIONS };
static const char *const mutation_words[] = {"drop", "duplicate", "swap", "retarget"};

static int other(struct generate_random *random, int value, int low, int high) {
  int drawn = value;
  while (drawn == value && low < high) drawn = (int)generate_between(random, low, high);
  return drawn;
}

// One field of the instruction gets another value, now and then one that nothing has.
static void retarget(struct zb_program *program, struct zb_instruction *i, struct generate_random *random) {
  const struct zb_profile *profile = program->profile;
  int32_t *const slots[] = {&i->keeps, &i->reads, &i->writes};
  switch (generate_between(random, 0, 4)) {
  case 0:
    i->kind = (enum zb_instruction_kind)other(random, (int)i->kind, 0, ZB_INSTRUCTION_KINDS - 1);
    break;
  case 1:
    i->stage = other(random, i->stage, -1, profile->stages);
    break;
  case 2:
    i->microbatch = other(random, i->microbatch, -1, profile->microbatches);
    break;
  case 3:
    i->peer = other(random, i->peer, -1, program->devices);
    break;
  default: {
    int32_t *slot = slots[generate_between(random, 0, 2)];
    *slot = other(random, *slot, -1, 4);
    break;
  }
  }
}

static struct zb_program *mutate(const struct zb_program *program, enum mutation mutation,
                                 struct generate_random *random, char *what, size_t room) {
  struct zb_program *copy = copy_program(program, 1);
  const size_t total = program->first[program->devices];
  const size_t at = (size_t)generate_between(random, 0, (int64_t)total - 1);
  const int d = device_of(program, at);
  const size_t to =
      (size_t)generate_between(random, (int64_t)program->first[d], (int64_t)program->first[d + 1] - 1);
  struct zb_instruction *i = &copy->instructions[at];
  const struct zb_instruction before = *i;
  char name[ZB_INSTRUCTION_TEXT];
  zb_instruction_print(before, name);
  snprintf(what, room, "%s device %d, position %zu, %s, to %zu", mutation_words[mutation], d,
           at - program->first[d], name, to - program->first[d]);
  switch (mutation) {
  case DROP:
    shift(copy, d, at, false);
    break;
  case DUPLICATE:
    shift(copy, d, to, true);
    copy->instructions[to] = before;
    break;
  case SWAP:
    *i = copy->instructions[to];
    copy->instructions[to] = before;
    break;
  default:
    retarget(copy, i, random);
    break;
  }
  return copy;
}

// What came of the mutants of one kind.
struct tally {
  int passed, refused;
  int lost; // refused, and lost by the player too
};

static void judge(const struct zb_program *mutant, bool play_refused, struct generate_random *random,
                  struct tally *tally, const char *what, int index) {
  struct zb_run run = {0};
  struct zb_error error = {0};
  char why[256];
  const struct player_game game = {mutant->channels, PLAYER_GOES_ON, 3, 1};
  const enum zb_status status = zb_program_check(mutant, &run, &error);
  if (status == ZB_OK) {
    tally->passed++;
    expect(player_play(mutant, game, random, why, sizeof why), "seed %d, mutant %d, %s: %s", SEED, index,
           what, why);
  } else {
    tally->refused++;
    expect(status == ZB_WRONG && error.text[0] && !strchr(error.text, '\n'), "seed %d, mutant %d, %s: %s",
           SEED, index, what, error.text);
    if (play_refused) tally->lost += !player_play(mutant, game, random, why, sizeof why);
  }
  zb_run_free(&run);
}

// What is let through plays as well as the program that it came from: two instructions may stand the other
// way round, but nothing can be left out and nothing come twice. That the player sees anything at all is
// shown by the exchanges that are refused.
static void test_mutants(void **state) {
  (void)state;
  enum { A_PROGRAM = 50 };
  struct generate_random random = {SEED};
  struct zb_program *program = NULL;
  struct tally tallies[MUTATIONS] = {{0, 0, 0}};
  for (int index = 0; index < MUTANTS * long_factor(); index++) {
    if (index % A_PROGRAM == 0) {
      zb_program_free(program);
      program = instance_program(&random, index / A_PROGRAM);
    }
    char what[160];
    const enum mutation mutation = (enum mutation)(index % MUTATIONS);
    struct zb_program *mutant = mutate(program, mutation, &random, what, sizeof what);
    judge(mutant, mutation == SWAP, &random, &tallies[mutation], what, index);
    zb_program_free(mutant);
  }
  zb_program_free(program);
  for (int k = 0; k < MUTATIONS; k++)
    print_message("%s: %d refused, %d equivalent\n", mutation_words[k], tallies[k].refused,
                  tallies[k].passed);
  expect_equal(tallies[DROP].passed, 0, "dropped instructions that were not missed");
  expect_equal(tallies[DUPLICATE].passed, 0, "duplicates that were not seen");
  expect(tallies[SWAP].lost * 10 > tallies[SWAP].refused * 9, "the player lost only %d of %d",
         tallies[SWAP].lost, tallies[SWAP].refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
