// test_program.c - programs that the lowering makes are played with tokens, their slots and times compared
// with readings of the schedule that share no code with it.
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

enum { SEED = 17, LONG_FACTOR = 20, INSTANCES = 150 };

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

// A receive is where program.h's rules and the times put it: behind the next op its message would leave late,
// and before that it would only hold a slot longer. The SEND follows its op at once.
static void test_receives_are_at_need(void **state) {
  (void)state;
  struct generate_random random = {SEED + 5};
  for (int index = 0; index < INSTANCES * long_factor(); index++) {
    struct zb_program *program = instance_program(&random, index);
    struct zb_run run = {0};
    assert_int_equal(zb_program_simulate(program, ZB_CHANNELS_RANK, false, &run, NULL), ZB_OK);
    for (int d = 0; d < program->devices; d++) {
      const size_t end = program->first[d + 1];
      int64_t over_ns = 0; // end of the last op
      for (size_t at = program->first[d]; at < end; at++) {
        const enum zb_instruction_kind kind = program->instructions[at].kind;
        if (zb_instruction_acts(kind) == ZB_ACTS_OP) over_ns = run.end_ns[at];
        if (kind == ZB_DO_SEND_F || kind == ZB_DO_SEND_B) {
          expect(zb_instruction_acts(program->instructions[at - 1].kind) == ZB_ACTS_OP &&
                     run.start_ns[at] == run.end_ns[at - 1],
                 "seed %d, number %d: a message leaves late", SEED + 5, index);
        } else if (kind == ZB_DO_RECV_F || kind == ZB_DO_RECV_B) {
          size_t next = at;
          while (zb_instruction_acts(program->instructions[next].kind) != ZB_ACTS_OP) next++;
          expect(over_ns <= run.start_ns[at] && run.end_ns[next] >= run.start_ns[at],
                 "seed %d, number %d: a receive at %lld ns, its message leaves at %lld ns", SEED + 5, index,
                 (long long)over_ns, (long long)run.start_ns[at]);
        }
      }
    }
    zb_run_free(&run);
    zb_program_free(program);
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
      cmocka_unit_test(test_receives_are_at_need),
      cmocka_unit_test(test_hanging_orders),

      cmocka_unit_test(test_names),
      cmocka_unit_test(test_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
