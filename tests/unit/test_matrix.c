// The matrix: one model; every method, p and m of 1, 3, 8 and 16; backward split and fused; barrier and
// post-validation; clipping on every step, on some, on none, and a NaN in the gradient of each stage. Each
// ends in the losses, parameters and peaks of a run without pipeline, to the bit, and so all in the same.
//
// `test_matrix mpi P`, started by mpirun with P processes, runs those of that p over MPI
// (tests/mpi_test.sh). ZB_LONG=1 takes all of them, else each method takes each p and each m once, and the
// NaN comes to one stage.
#include "runtime/gemm.h"
#include "runtime/replay_commands.h"
#include "solver/model/deadline.h"
#include "tests/unit/trial.h"

static const char *const methods[] = {"gpipe",  "1f1b", "1f1b-interleaved", "zb-h1", "zb-h2", "zb-2p",
                                      "1f1b-v", "zb-v", "v-half",           "v-min", "window"};
static const int all_devices[] = {1, 2, 4, 8}, all_microbatches[] = {1, 3, 8, 16};
enum { METHODS = sizeof methods / sizeof *methods, SHAPES = 16 };

struct matrix {
  const struct zb_transport *transport;
  void *shared; // of a transport that is started once, or NULL
  int64_t runs;
};

// The same order with every backward in one piece, or in two.
static struct zb_schedule *reshaped(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                    bool fused) {
  struct zb_schedule_builder builder;
  struct zb_schedule *made = NULL;
  assert_int_equal(zb_builder_create(profile, &builder, NULL), ZB_OK);
  for (int d = 0; d < profile->devices; d++)
    for (size_t k = schedule->first[d]; k < schedule->first[d + 1]; k++) {
      struct zb_op op = schedule->ops[k];
      bool backward = op.kind == ZB_B || op.kind == ZB_BW;
      if (op.kind == ZB_F) zb_builder_append(&builder, op.stage, ZB_F, op.microbatch);
      if (backward) zb_builder_append(&builder, op.stage, fused ? ZB_BW : ZB_B, op.microbatch);
      if (!fused && (op.kind == ZB_W || op.kind == ZB_BW))
        zb_builder_append(&builder, op.stage, ZB_W, op.microbatch);
    }
  assert_int_equal(zb_builder_finish(&builder, &made, NULL), ZB_OK);
  zb_builder_free(&builder);
  return made;
}

static void run_one(struct matrix *matrix, struct trial *trial, struct zb_crew *crew, const char *what) {
  struct zb_error error = {0};
  struct zb_text said = {0};
  trial->replay.transport = matrix->transport;
  trial->replay.traces = false;
  enum zb_status status = ZB_OK;
  if (matrix->shared) {
    *crew = (struct zb_crew){.transport = matrix->transport, .shared = matrix->shared};
    status = zb_crew_join(crew, &trial->replay, zb_replay_digest(&trial->replay), &error);
    if (status == ZB_OK) status = zb_crew_work(crew, &error);
  } else {
    status = zb_crew_run(&trial->replay, crew, &error);
  }
  if (status == ZB_OK) status = zb_crew_verify(crew, 0, &said, &error);
  expect(status == ZB_OK, "%s, %s: %s", matrix->transport->name, what, error.text);
  zb_text_free(&said);
  matrix->runs++;
}

static void end_one(struct matrix *matrix, struct zb_crew *crew) {
  if (matrix->shared) crew->shared = NULL; // goes on
  zb_crew_free(crew);
}

// All clips and NaNs of one program.
static void run_program(struct matrix *matrix, struct zb_program *program, const char *name) {
  struct trial trial;
  struct zb_crew crew;
  char what[128];
  open_trial(&trial, program, model(16));
  trial.training.steps = 3;
  double middle = 0;
  for (int clip = 0; clip < 3; clip++) {
    static const char *const word[] = {"none", "every", "some"};
    snprintf(what, sizeof what, "%s, clip on %s", name, word[clip]);
    trial.gpt.adamw.clip = clip == 0 ? 0 : clip == 1 ? 1e-6 : middle;
    run_one(matrix, &trial, &crew, what);
    if (clip == 0) middle = middle_norm(&trial, &crew);
    end_one(matrix, &crew);
  }
  trial.gpt.adamw.clip = 0;
  int poisoned = (int)(matrix->runs % program->profile->stages);
  for (int stage = 0; stage < program->profile->stages; stage++) {
    if (!getenv("ZB_LONG") && stage != poisoned) continue;
    trial.training.nan_step = 1;
    trial.training.nan_unit = trial.first_unit[stage];
    trial.replay.nan_stage = stage;
    snprintf(what, sizeof what, "%s, NaN at stage %d", name, stage);
    run_one(matrix, &trial, &crew, what);
    end_one(matrix, &crew);
  }
  close_trial(&trial);
}

static void run_shape(struct matrix *matrix, const char *method, int p, int m) {
  struct zb_profile *profile = even_profile(p, m), *placed = NULL;
  struct zb_schedule *schedule = method_schedule(method, profile, &placed);
  for (int fused = 0; schedule && fused < 2; fused++) {
    struct zb_schedule *shaped = reshaped(placed, schedule, fused != 0);
    for (int o = ZB_OPTIMIZER_BARRIER; o < ZB_OPTIMIZER_COUNT; o++) {
      if (left_out(fused + o + p + m, 2)) continue;
      char name[96];
      snprintf(name, sizeof name, "%s, p %d, m %d, %s, %s", method, p, m, fused ? "fused" : "split",
               zb_optimizer_word((enum zb_optimizer)o));
      run_program(matrix, lowered(placed, shaped, (enum zb_optimizer)o), name);
    }
    zb_schedule_free(shaped);
  }
  zb_schedule_free(schedule);
  zb_profile_free(placed);
  zb_profile_free(profile);
}

// devices 0: all of them.
static void run_matrix(struct matrix *matrix, int devices) {
  for (size_t k = 0; k < METHODS; k++)
    for (size_t shape = 0; shape < SHAPES; shape++) {
      int p = all_devices[shape / 4], m = all_microbatches[shape % 4];
      if (devices && p != devices) continue;
      if (!getenv("ZB_LONG") && (shape / 4 + shape % 4 + k) % 4 != 0) continue;
      run_shape(matrix, methods[k], p, m);
    }
}

static void test_threads(void **state) {
  (void)state;
  struct matrix matrix = {.transport = &zb_transport_threads};
  run_matrix(&matrix, 0);
  expect(matrix.runs > part_of(500), "%lld runs", (long long)matrix.runs);
  printf("# threads: %lld runs, all to the bit\n", (long long)matrix.runs);
}

static int play_mpi(int devices) {
  struct matrix matrix = {.transport = &zb_transport_mpi};
  struct zb_error error = {0};
  expect(matrix.transport->start(&matrix.shared, &error) == ZB_OK, "%s", error.text);
  run_matrix(&matrix, devices);
  enum zb_status status =
      matrix.transport->agree(matrix.shared, ZB_OK, zb_clock_ns() + INT64_C(20000000000), &error);
  printf("mpi, p %d: %lld runs, all to the bit\n", devices, (long long)matrix.runs);
  fflush(stdout);
  matrix.transport->leave(matrix.shared, status);
  return status != ZB_OK;
}

int main(int count, char **arguments) {
  zb_gemm_prepare();
  if (count == 3 && strcmp(arguments[1], "mpi") == 0) return play_mpi(atoi(arguments[2]));
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
