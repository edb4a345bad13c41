// Programs for real: every order ends in the bits of a run without pipeline, on any placement, with both
// optimizers; what the optimizer does, counted; and a hang is reported. The methods are in test_matrix.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gemm.h"
#include "tests/instances.h"
#include "tests/unit/trial.h"

static int64_t scaled(int64_t count) { return getenv("ZB_LONG") ? 20 * count : count; }

static int64_t notes(const struct zb_crew *crew, enum zb_note note) {
  int64_t sum = 0;
  for (int k = 0; k < crew->devices; k++) sum += zb_rank_log(crew->rank[k])->notes[note];
  return sum;
}

// Random orders on random placements, more stages than blocks and fewer, all kinds of backward.
static void test_random_orders(void **state) {
  (void)state;
  const uint64_t seed = 4321;
  int64_t repeats = 0, two_gradients = 0, rolled = 0;
  for (int64_t trials = 0; trials < scaled(60); trials++) {
    struct generate_random random = {seed + (uint64_t)trials};
    enum zb_placement placement = (enum zb_placement)(trials % ZB_PLACEMENT_COUNT);
    struct zb_profile *profile = instance_profile(&random, placement, 4, 5);
    enum instance_backward backward = (enum instance_backward)(trials / 4 % 4);
    struct zb_schedule *schedule = instance_order(profile, backward, &random);
    assert_non_null(schedule);
    assert_int_equal(zb_schedule_sort(profile, schedule, NULL), ZB_OK);
    char what[64];
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)(seed + (uint64_t)trials));
    for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++) {
      struct trial trial;
      struct zb_crew crew;
      int blocks = 1 + (int)(generate_bits(&random) % 9);
      open_trial(&trial, lowered(profile, schedule, (enum zb_optimizer)o), model(blocks));
      trial.gpt.adamw.clip = trials % 3 == 0 ? 0 : trials % 3 == 1 ? 1 : 1e-3;
      if (trials % 5 == 0) {
        trial.replay.nan_stage = (int32_t)(generate_bits(&random) % (uint64_t)profile->stages);
        trial.training.nan_step = (int64_t)(generate_bits(&random) % 4);
        trial.training.nan_unit = trial.first_unit[trial.replay.nan_stage];
        // A stage that holds nothing has no gradient.
        if (trial.first_unit[trial.replay.nan_stage + 1] == trial.training.nan_unit)
          trial.training.nan_step = -1;
      }
      run_and_verify(&trial, 0, &crew, what);
      rolled += notes(&crew, ZB_NOTE_ROLLED);
      for (int k = 0; k < crew.devices; k++) {
        const struct zb_rank_log *log = zb_rank_log(crew.rank[k]);
        const struct zb_memory_use *use = &log->memory;
        int64_t used = use->static_bytes + use->undo_bytes + use->kept_peak_bytes + log->buffer_bytes;
        int64_t foreseen = zb_replay_bytes(&trial.replay, k);
        expect(used <= foreseen && 3 * used >= foreseen, "%s: %lld bytes, %lld foreseen", what,
               (long long)used, (long long)foreseen);
        repeats += log->repeats;
        two_gradients += log->repeats > 0 && zb_rank_keeps_gradient(crew.rank[k]);
      }
      zb_crew_free(&crew);
      close_trial(&trial);
    }
    zb_schedule_free(schedule);
    zb_profile_free(profile);
  }
  // The rare ways were taken: steps undone, batches begun again, also after a W of the next batch.
  expect(repeats > 50 && rolled > 20 && two_gradients > 5, "%lld repeats, %lld undone, %lld after a W",
         (long long)repeats, (long long)rolled, (long long)two_gradients);
}

// What replay cannot run in microbatch order it refuses, naming the first op that is out of order.
static void test_backward_order(void **state) {
  (void)state;
  struct zb_profile *profile = even_profile(1, 2);
  struct zb_schedule_builder builder;
  struct zb_schedule *schedule = NULL;
  assert_int_equal(zb_builder_create(profile, &builder, NULL), ZB_OK);
  static const struct zb_op order[] = {{0, 0, ZB_F}, {0, 1, ZB_F}, {0, 1, ZB_BW}, {0, 0, ZB_BW}};
  for (size_t k = 0; k < 4; k++) zb_builder_append(&builder, 0, order[k].kind, order[k].microbatch);
  assert_int_equal(zb_builder_finish(&builder, &schedule, NULL), ZB_OK);
  for (int sorted = 0; sorted < 2; sorted++) {
    struct trial trial;
    struct zb_crew crew;
    struct zb_error error = {0};
    if (sorted) assert_int_equal(zb_schedule_sort(profile, schedule, NULL), ZB_OK);
    open_trial(&trial, lowered(profile, schedule, ZB_OPTIMIZER_BARRIER), model(1));
    enum zb_status status = zb_crew_run(&trial.replay, &crew, &error);
    if (sorted)
      assert_int_equal(status, ZB_OK);
    else
      expect(status == ZB_BAD_INPUT && strstr(error.text, "device 0, position 2: 0BW1"), "%s", error.text);
    zb_crew_free(&crew);
    close_trial(&trial);
  }
  zb_builder_free(&builder);
  zb_schedule_free(schedule);
  zb_profile_free(profile);
}

static void expect_notes(const struct zb_crew *crew, enum zb_note note, int64_t wanted) {
  expect(notes(crew, note) == wanted, "\"%s\" %lld times, expected %lld", zb_note_word(note),
         (long long)notes(crew, note), (long long)wanted);
}

// What the devices do about a step, counted: whole, clipped, with a NaN at each stage.
static void test_post_validation(void **state) {
  (void)state;
  enum { P = 4, M = 6, STEPS = 4 };
  struct zb_profile *profile = even_profile(P, M), *placed = NULL;
  struct zb_schedule *schedule = method_schedule("zb-h1", profile, &placed);
  struct trial trial;
  struct zb_crew crew;
  open_trial(&trial, lowered(placed, schedule, ZB_OPTIMIZER_POST_VALIDATION), model(8));

  trial.gpt.adamw.clip = 0;
  run_and_verify(&trial, 0, &crew, "no clipping");
  expect_notes(&crew, ZB_NOTE_STEPPED, P * STEPS);
  expect_notes(&crew, ZB_NOTE_RIGHT, P * STEPS);
  double middle = middle_norm(&trial, &crew);
  zb_crew_free(&crew);

  // Every device sees that its own part is too large.
  trial.gpt.adamw.clip = 1e-6;
  run_and_verify(&trial, 0, &crew, "clipped on every step, known everywhere");
  expect_notes(&crew, ZB_NOTE_HELD, P * STEPS);
  expect_notes(&crew, ZB_NOTE_LATE, P * STEPS);
  expect_equal(zb_rank_log(crew.rank[0])->repeats, STEPS - 1, "repeats");
  zb_crew_free(&crew);

  trial.gpt.adamw.clip = middle;
  run_and_verify(&trial, 0, &crew, "clipped on some steps");
  int64_t rolled = notes(&crew, ZB_NOTE_ROLLED), late = notes(&crew, ZB_NOTE_LATE);
  int64_t right = notes(&crew, ZB_NOTE_RIGHT);
  expect_equal(rolled + late + right, P * STEPS, "verdicts");
  expect(right > 0 && right < P * STEPS && rolled > 0, "%lld right, %lld rolled back", (long long)right,
         (long long)rolled);
  zb_crew_free(&crew);

  // The devices before the one with the NaN step and roll back, it and those behind hold.
  trial.gpt.adamw.clip = 0;
  for (int stage = 0; stage < P; stage++) {
    for (int step = 0; step < STEPS; step += STEPS - 1) {
      trial.training.nan_step = step;
      trial.replay.nan_stage = stage;
      trial.training.nan_unit = trial.first_unit[stage];
      run_and_verify(&trial, 0, &crew, "a NaN");
      expect_notes(&crew, ZB_NOTE_ROLLED, stage);
      expect_notes(&crew, ZB_NOTE_HELD, P - stage);
      expect_notes(&crew, ZB_NOTE_NOT_MADE, P - stage);
      expect_notes(&crew, ZB_NOTE_RIGHT, P * (STEPS - 1));
      zb_crew_free(&crew);
    }
  }

  // In place: no memory for a copy, and near enough.
  trial.training.nan_step = -1;
  trial.gpt.adamw.clip = middle;
  trial.replay.rollback = ZB_ROLLBACK_INVERSE;
  run_and_verify(&trial, 1e-4, &crew, "Algorithm 1");
  expect_equal(notes(&crew, ZB_NOTE_ROLLED), rolled, "rolled back");
  zb_crew_free(&crew);
  close_trial(&trial);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// A device steps before the full state can have arrived: its STEP comes before its RECV_STATE is posted.
static void test_steps_before_the_state(void **state) {
  (void)state;
  struct zb_profile *profile = even_profile(3, 4), *placed = NULL;
  struct zb_schedule *schedule = method_schedule("zb-h1", profile, &placed);
  struct trial trial;
  struct zb_crew crew;
  open_trial(&trial, lowered(placed, schedule, ZB_OPTIMIZER_POST_VALIDATION), model(4));
  run_and_verify(&trial, 0, &crew, "trace");
  for (int d = 0; d < 2; d++) {
    const struct zb_rank_log *log = zb_rank_log(crew.rank[d]);
    int64_t stepped_ns = 0;
    int states = 0;
    for (size_t k = 0; k < log->events; k++) {
      const struct zb_instruction *i = &trial.program->instructions[log->event[k].instruction];
      if (i->kind == ZB_DO_STEP) stepped_ns = log->event[k].when.end_ns;
      if (i->kind != ZB_DO_RECV_STATE) continue;
      states++;
      expect(stepped_ns > 0 && stepped_ns < log->event[k].when.end_ns,
             "device %d has the state before its step", d);
    }
    expect_equal(states, trial.training.steps, "full states");
  }
  zb_crew_free(&crew);
  close_trial(&trial);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// A NaN that should not be there, and one that is not where the reference has it: verify must see both.
static void test_verify_can_fail(void **state) {
  (void)state;
  struct zb_profile *profile = even_profile(2, 2), *placed = NULL;
  struct zb_schedule *schedule = method_schedule("1f1b", profile, &placed);
  struct trial trial;
  struct zb_crew crew;
  struct zb_error error = {0};
  struct zb_text said = {0};
  open_trial(&trial, lowered(placed, schedule, ZB_OPTIMIZER_BARRIER), model(2));
  assert_int_equal(zb_crew_run(&trial.replay, &crew, &error), ZB_OK);
  trial.training.nan_step = 3;
  assert_int_equal(zb_crew_verify(&crew, 0, &said, &error), ZB_WRONG);
  assert_non_null(strstr(error.text, "parameter"));
  trial.training.nan_step = 1;
  assert_int_equal(zb_crew_verify(&crew, 0, &said, &error), ZB_WRONG);
  assert_non_null(strstr(error.text, "step 2: loss"));
  zb_crew_free(&crew);
  zb_text_free(&said);
  close_trial(&trial);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// A program whose device 1 never sends its gradient: both say what they wait for, and the run ends in time.
static void test_hang_is_reported(void **state) {
  (void)state;
  struct zb_profile *profile = even_profile(3, 2), *placed = NULL;
  struct zb_schedule *schedule = method_schedule("1f1b", profile, &placed);
  struct trial trial;
  struct zb_crew crew;
  struct zb_error error = {0};
  open_trial(&trial, lowered(placed, schedule, ZB_OPTIMIZER_BARRIER), model(3));
  struct zb_program *program = trial.program;
  for (size_t k = program->first[1]; k < program->first[2]; k++) {
    struct zb_instruction *i = &program->instructions[k];
    // A wait for a send that was never posted is none.
    if (i->kind == ZB_DO_SEND_B && i->microbatch == 1) i->kind = ZB_DO_WAIT_SEND_B;
  }
  trial.replay.timeout_ns = 300000000;
  int64_t start_ns = zb_clock_ns();
  assert_int_equal(zb_crew_run(&trial.replay, &crew, &error), ZB_FAILED);
  assert_true(zb_clock_ns() - start_ns < INT64_C(3000000000));
  assert_non_null(strstr(error.text, "waiting for"));
  assert_non_null(strstr(error.text, "nothing came in time"));
  const char *text = crew.error[0].text;
  expect(strstr(text, "device 0, step 0: finished ") &&
             strstr(text, "waiting for 0RECV_B1 from device 1, 128 bytes"),
         "%s", text);
  for (int d = 0; d < 3; d++) assert_int_equal(crew.error[d].status, ZB_FAILED);
  zb_crew_free(&crew);
  close_trial(&trial);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// The sleep backend takes the profile's times: no less than the makespan, and its peaks are the profile's.
static void test_sleep(void **state) {
  (void)state;
  struct zb_profile *profile = even_profile(3, 4), *placed = NULL;
  for (int s = 0; s < 3; s++) {
    profile->f_ns[s] = profile->b_ns[s] = 2000000;
    profile->w_ns[s] = 1000000;
  }
  assert_int_equal(zb_profile_finish(profile, NULL), ZB_OK);
  struct zb_schedule *schedule = method_schedule("zb-h1", profile, &placed);
  struct trial trial;
  struct zb_crew crew;
  struct zb_error error = {0};
  open_trial(&trial, lowered(placed, schedule, ZB_OPTIMIZER_BARRIER), model(3));
  trial.replay.compute = &zb_compute_sleep;
  trial.training.steps = 2;
  expect(zb_crew_run(&trial.replay, &crew, &error) == ZB_OK, "%s", error.text);
  for (int d = 0; d < 3; d++) {
    const struct zb_rank_log *log = zb_rank_log(crew.rank[d]);
    expect_equal(log->memory.kept_peak_bytes, trial.program->peak_bytes[d], "peak");
    const struct zb_step_log *first = &zb_rank_log(crew.rank[0])->step[1];
    expect(log->step[1].end_ns - first->first_start_ns >= trial.program->makespan_ns - 100000,
           "device %d: %lld ns, makespan %lld ns", d,
           (long long)(log->step[1].end_ns - first->first_start_ns), (long long)trial.program->makespan_ns);
  }
  zb_crew_free(&crew);
  close_trial(&trial);
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

static int prepare(void **state) {
  (void)state;
  zb_gemm_prepare();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_orders),   cmocka_unit_test(test_backward_order),
      cmocka_unit_test(test_post_validation), cmocka_unit_test(test_steps_before_the_state),
      cmocka_unit_test(test_verify_can_fail), cmocka_unit_test(test_hang_is_reported),
      cmocka_unit_test(test_sleep),
  };
  return cmocka_run_group_tests(tests, prepare, NULL);
}
