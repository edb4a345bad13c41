// test_program.c - programs that the lowering makes are played with tokens, their slots and times compared
// with readings of the schedule that share no code with it; and everything that is changed in one is found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/program_json.h"
#include "solver/model/timeline.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"
#include "solver/program/simulate.h"
#include "tests/heap.h"
#include "tests/instances.h"
#include "tests/player.h"
#include "tests/unit/unit.h"

enum { SEED = 17, LONG_FACTOR = 20, INSTANCES = 150, MUTANTS = 10000 };

static int long_factor(void) { return getenv("ZB_LONG") ? LONG_FACTOR : 1; }

// A random profile without limits, so that every order fits.
static struct zb_profile *draw_profile(struct generate_random *random, int index) {
  struct zb_profile *profile =
      instance_profile(random, (enum zb_placement)(index % ZB_PLACEMENT_COUNT), 5, 6);
  assert_non_null(profile);
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = ZB_NO_LIMIT;
  return profile;
}

static void expect_checked(const struct zb_program *program, const char *what, int index) {
  for (int channels = 0; channels < ZB_CHANNELS_COUNT; channels++) {
    struct zb_program claimed = *program;
    struct zb_run run = {0};
    struct zb_error error = {0};
    claimed.channels = (enum zb_channels)channels;
    expect(zb_program_check(&claimed, &run, &error) == ZB_OK, "seed %d, number %d, %s, %s: %s", SEED, index,
           what, zb_channels_word(claimed.channels), error.text);
    zb_run_free(&run);
  }
}

static void expect_played(const struct zb_program *program, enum player_posts posts, int wrong_step,
                          struct generate_random *random, const char *what, int index) {
  char why[256];
  const struct player_game game = {(enum zb_channels)(index % ZB_CHANNELS_COUNT), posts, 3, wrong_step};
  expect(player_play(program, game, random, why, sizeof why), "seed %d, number %d, %s, %s: %s", SEED, index,
         what, posts == PLAYER_BLOCKS ? "blocking" : "going on", why);
}

// Every placement, order, optimizer and channel model: checked, and played to the end with sends that block
// and sends that do not, through a step that is undone.
static void test_every_program_finishes(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  for (int index = 0; index < INSTANCES * long_factor(); index++) {
    struct zb_profile *profile = draw_profile(&random, index);
    struct zb_schedule *schedule = instance_order(profile, (enum instance_backward)(index / 4 % 3), &random);
    assert_non_null(schedule);
    for (int optimizer = 0; optimizer < ZB_OPTIMIZER_COUNT; optimizer++) {
      const char *what = zb_optimizer_word((enum zb_optimizer)optimizer);
      struct zb_program *program = NULL;
      struct zb_error error = {0};
      expect(zb_program_lower(profile, schedule, "drawn", (enum zb_optimizer)optimizer, &program, &error) ==
                 ZB_OK,
             "seed %d, number %d, %s: %s", SEED, index, what, error.text);
      expect_checked(program, what, index);
      expect_played(program, PLAYER_GOES_ON, 1, &random, what, index);
      expect_played(program, PLAYER_BLOCKS, 0, &random, what, index);
      zb_program_free(program);
    }
    zb_schedule_free(schedule);
    zb_profile_free(profile);
  }
}

// At most how many microbatches of a stage have started F and not ended W.
static int count_kept(const struct zb_schedule *schedule, const struct zb_profile *profile, int stage) {
  const int device = profile->device_of[stage];
  int kept = 0, most = 0;
  for (size_t k = schedule->first[device]; k < schedule->first[device + 1]; k++) {
    if (schedule->ops[k].stage != stage || schedule->ops[k].kind == ZB_B) continue;
    kept += schedule->ops[k].kind == ZB_F ? 1 : -1;
    if (kept > most) most = kept;
  }
  return most;
}

static void test_slots_are_the_schedules_own(void **state) {
  (void)state;
  struct generate_random random = {SEED + 1};
  for (int index = 0; index < INSTANCES * long_factor(); index++) {
    struct zb_profile *profile = draw_profile(&random, index);
    struct zb_schedule *schedule = instance_order(profile, INSTANCE_MIXED, &random);
    struct zb_program *program = NULL;
    assert_int_equal(zb_program_lower(profile, schedule, "drawn", ZB_OPTIMIZER_NONE, &program, NULL), ZB_OK);
    for (int s = 0; s < profile->stages; s++)
      expect_equal(zb_program_slots(program, s, ZB_SLOT_KEPT), count_kept(schedule, profile, s), "kept");
    zb_program_free(program);
    zb_schedule_free(schedule);
    zb_profile_free(profile);
  }
}

// Ops start when the schedule says; where messages follow each other they start no earlier.
static void test_messages_cost_nothing(void **state) {
  (void)state;
  struct generate_random random = {SEED + 2};
  for (int index = 0; index < INSTANCES * long_factor(); index++) {
    struct zb_profile *profile = draw_profile(&random, index);
    struct zb_schedule *schedule = instance_order(profile, (enum instance_backward)(index % 3), &random);
    struct zb_program *program = NULL;
    struct zb_timeline timeline = {0};
    assert_int_equal(zb_timeline_compute(profile, schedule, &timeline, NULL), ZB_OK);
    assert_int_equal(
        zb_program_lower(profile, schedule, "drawn", (enum zb_optimizer)(index % 3), &program, NULL), ZB_OK);
    for (int channels = 0; channels < ZB_CHANNELS_COUNT; channels++) {
      struct zb_run free_run = {0}, serial = {0};
      assert_int_equal(zb_program_simulate(program, (enum zb_channels)channels, false, &free_run, NULL),
                       ZB_OK);
      assert_int_equal(zb_program_simulate(program, (enum zb_channels)channels, true, &serial, NULL), ZB_OK);
      expect_equal(free_run.span_ns, timeline.span_ns, "span");
      expect_equal(free_run.makespan_ns, timeline.makespan_ns, "makespan");
      size_t op = 0;
      for (size_t at = 0; at < program->first[program->devices]; at++) {
        if (zb_instruction_acts(program->instructions[at].kind) != ZB_ACTS_OP) continue;
        expect_equal(free_run.start_ns[at], timeline.start_ns[op], "start");
        expect(serial.start_ns[at] >= timeline.start_ns[op],
               "seed %d, number %d: earlier with serial channels", SEED + 2, index);
        op++;
      }
      zb_run_free(&free_run);
      zb_run_free(&serial);
    }
    zb_timeline_free(&timeline);
    zb_program_free(program);
    zb_schedule_free(schedule);
    zb_profile_free(profile);
  }
}

// Hanging orders.

// A program of these lists, one text a device; slots are left out.
static struct zb_program *read_lists(const struct zb_profile *profile, const char *const *lists) {
  struct zb_program *program = NULL;
  assert_int_equal(zb_program_create(profile, 200, &program, NULL), ZB_OK);
  size_t count = 0;
  for (int d = 0; d < profile->devices; d++) {
    size_t length;
    for (const char *c = lists[d]; *c; c += length + (c[length] == ' ')) {
      struct zb_instruction *i = &program->instructions[count++];
      length = zb_instruction_parse(c, i);
      expect(length > 0, "no instruction: %s", c);
      if (zb_instruction_acts(i->kind) == ZB_ACTS_MESSAGE)
        i->peer =
            profile->device_of[i->stage + (i->kind == ZB_DO_SEND_F || i->kind == ZB_DO_RECV_B ? 1 : -1)];
    }
    program->first[d + 1] = count;
  }
  return program;
}

// The orders of formats that hang where a device has one channel, or one to each peer, each within whole
// programs; with one channel a direction and sends that do not block they finish. Rank 0 has the even stages,
// rank 1 the odd ones.
static const struct {
  const char *what;
  int microbatches;
  enum zb_placement placement;
  const char *lists[2];
  const char *says;
  size_t cycle;
} hanging[] = {
    {"0SEND_F1,2RECV_F0,2F0 and 1SEND_F0,1RECV_F1,1F1",
     2,
     ZB_LOOP,
     {"0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 2RECV_B0 2BW0 2SEND_B0 2RECV_B1 "
      "2BW1 "
      "2SEND_B1 0RECV_B0 0BW0 0RECV_B1 0BW1",
      "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3BW0 3SEND_B0 3RECV_F1 3F1 3BW1 3SEND_B1 "
      "1RECV_B0 "
      "1BW0 1SEND_B0 1RECV_B1 1BW1 1SEND_B1"},
     "device 0, position 4, 2RECV_F0: waits for ever, in a cycle of 4: in its channel behind 0SEND_F1, ..",
     4},
    {"2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0 and 3RECV_F1,3SEND_B0,3F1,3B1,1RECV_F2,3SEND_B1,1F2",
     3,
     ZB_LOOP,
     {"0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1 0F2 0SEND_F2 2RECV_B0 2BW0 "
      "2RECV_B1 "
      "2BW1 2RECV_F2 2F2 2SEND_F2 2SEND_B0 2SEND_B1 2RECV_B2 2BW2 2SEND_B2 0RECV_B0 0BW0 0RECV_B1 0BW1 "
      "0RECV_B2 0BW2",
      "1RECV_F0 1F0 1RECV_F1 1SEND_F0 1F1 3RECV_F0 3F0 1SEND_F1 3BW0 3RECV_F1 3SEND_B0 3F1 3BW1 1RECV_F2 "
      "3SEND_B1 "
      "1F2 1SEND_F2 3RECV_F2 3F2 3BW2 3SEND_B2 1RECV_B0 1BW0 1SEND_B0 1RECV_B1 1BW1 1SEND_B1 1RECV_B2 1BW2 "
      "1SEND_B2"},
     "device 0, position 12, 2RECV_B0: waits for ever, in a cycle of 4: in its channel behind 0SEND_F2, ..",
     4},
    {"both send, then receive",
     2,
     ZB_CHAIN,
     {"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0BW0 0RECV_B1 0BW1",
      "1RECV_F0 1F0 1BW0 1SEND_B0 1RECV_F1 1F1 1BW1 1SEND_B1"},
     "device 0, position 4, 0RECV_B0: waits for ever, in a cycle of 4: in its channel behind 0SEND_F1, ..",
     4},
};

static void test_hanging_orders(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof hanging / sizeof *hanging; k++) {
    struct zb_profile *profile = NULL;
    const int chunks = hanging[k].placement == ZB_LOOP ? 2 : 1;
    assert_int_equal(
        zb_profile_create(2, chunks, hanging[k].microbatches, hanging[k].placement, &profile, NULL), ZB_OK);
    assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
    struct zb_program *program = read_lists(profile, hanging[k].lists);
    for (int channels = 0; channels < ZB_CHANNELS_COUNT; channels++) {
      struct zb_run run = {0};
      struct zb_error error = {0};
      const enum zb_status status =
          zb_program_simulate(program, (enum zb_channels)channels, false, &run, &error);
      if (channels == ZB_CHANNELS_EDGE) {
        expect(status == ZB_OK, "%s: %s", hanging[k].what, error.text);
      } else {
        expect(status == ZB_WRONG && strcmp(error.text, hanging[k].says) == 0, "%s: %s", hanging[k].what,
               error.text);
        expect_equal((long long)run.cycle_length, (long long)hanging[k].cycle, hanging[k].what);
      }
      zb_run_free(&run);
    }
    zb_program_free(program);
    zb_profile_free(profile);
  }
}

// Mutants.

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

static struct zb_program *draw_program(struct generate_random *random, int index) {
  struct zb_program *program = NULL;
  struct zb_profile *profile = draw_profile(random, index);
  struct zb_schedule *schedule = instance_order(profile, (enum instance_backward)(index % 3), random);
  assert_int_equal(
      zb_program_lower(profile, schedule, "drawn", (enum zb_optimizer)(index % 3), &program, NULL), ZB_OK);
  program->channels = (enum zb_channels)(index / 3 % 3);
  zb_schedule_free(schedule);
  zb_profile_free(profile);
  return program;
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
    expect(player_play(mutant, game, random, why, sizeof why), "seed %d, mutant %d, %s: %s", SEED + 3, index,
           what, why);
  } else {
    tally->refused++;
    expect(status == ZB_WRONG && error.text[0] && !strchr(error.text, '\n'), "seed %d, mutant %d, %s: %s",
           SEED + 3, index, what, error.text);
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
  struct generate_random random = {SEED + 3};
  struct zb_program *program = NULL;
  struct tally tallies[MUTATIONS] = {{0, 0, 0}};
  for (int index = 0; index < MUTANTS * long_factor(); index++) {
    if (index % A_PROGRAM == 0) {
      zb_program_free(program);
      program = draw_program(&random, index / A_PROGRAM);
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

// From a schedule to a file and back.
static enum zb_status go_round(const struct zb_profile *profile, const struct zb_schedule *schedule,
                               struct zb_error *error) {
  struct zb_program *program = NULL, *again = NULL;
  struct zb_run run = {0};
  struct zb_text text = {0}, text_again = {0};
  enum zb_status status =
      zb_program_lower(profile, schedule, "drawn", ZB_OPTIMIZER_POST_VALIDATION, &program, error);
  if (status == ZB_OK) status = zb_program_check(program, &run, error);
  if (status == ZB_OK) zb_program_print(program, &text);
  if (status == ZB_OK) status = zb_text_status(&text, error);
  if (status == ZB_OK) status = zb_program_read_text(text.data, text.size, &again, error);
  if (status == ZB_OK) status = zb_program_check(again, &run, error);
  if (status == ZB_OK) zb_program_print(again, &text_again);
  if (status == ZB_OK) status = zb_text_status(&text_again, error);
  if (status == ZB_OK) assert_string_equal(text.data, text_again.data);
  zb_program_free(program);
  zb_program_free(again);
  zb_run_free(&run);
  zb_text_free(&text);
  zb_text_free(&text_again);
  return status;
}

// Each allocation fails once; the status says so and no block is left over.
static void test_allocations(void **state) {
  (void)state;
  if (!HEAP_WRAPPED) skip();
  struct generate_random random = {SEED + 4};
  struct zb_profile *profile = instance_profile(&random, ZB_V, 3, 3);
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = ZB_NO_LIMIT;
  struct zb_schedule *schedule = instance_order(profile, INSTANCE_SPLIT, &random);
  enum zb_status status = ZB_FAILED;
  for (long n = 1; status != ZB_OK; n++) {
    const long first = heap.calls, blocks = heap.blocks;
    struct zb_error error = {0};
    heap.refuse_at = first + n;
    status = go_round(profile, schedule, &error);
    heap.refuse_at = 0;
    expect(heap.blocks == blocks, "allocation %ld: %ld blocks left over", n, heap.blocks - blocks);
    expect(status == ZB_OK ? heap.calls - first < n : status == ZB_FAILED && error.text[0],
           "allocation %ld: %s: %s", n, zb_status_word(status), error.text);
  }
  zb_schedule_free(schedule);
  zb_profile_free(profile);
}

static void test_names(void **state) {
  (void)state;
  for (int kind = 0; kind < ZB_INSTRUCTION_KINDS; kind++) {
    const bool staged = zb_instruction_acts((enum zb_instruction_kind)kind) <= ZB_ACTS_MESSAGE;
    const struct zb_instruction made = {
        (enum zb_instruction_kind)kind, staged ? 12 : -1, staged ? 345 : -1, -1, -1, -1, -1};
    struct zb_instruction read;
    char text[ZB_INSTRUCTION_TEXT];
    zb_instruction_print(made, text);
    assert_int_equal(zb_instruction_parse(text, &read), strlen(text));
    assert_memory_equal(&read, &made, sizeof made);
  }
  const char *const wrong[] = {"",     "0",       "F",     "0F",    "F0",  "00F1",
                               "0F01", "0SENDF0", "STEP0", "0STEP", "0f0", "99999999999F0",
                               "-1F0", "0I0"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    struct zb_instruction read;
    expect(zb_instruction_parse(wrong[k], &read) == 0, "\"%s\" is read", wrong[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_program_finishes),
      cmocka_unit_test(test_slots_are_the_schedules_own),
      cmocka_unit_test(test_messages_cost_nothing),
      cmocka_unit_test(test_hanging_orders),
      cmocka_unit_test(test_mutants),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
