// Stages: the same bits however the model is cut and whenever W runs, what is kept to the byte, and that it
// learns.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gemm.h"
#include "runtime/random.h"
#include "runtime/stage.h"
#include "runtime/straight.h"
#include "tests/unit/unit.h"

enum { MICROBATCHES = 5, STAGES_MOST = 12 };

static struct zb_gpt tiny(void) {
  struct zb_gpt gpt;
  struct zb_error error = {0};
  expect(zb_gpt_read("configs/models/tiny.json", &gpt, &error) == ZB_OK, "%s", error.text);
  return gpt;
}

static struct zb_corpus text_of(const struct zb_gpt *gpt, uint64_t seed) {
  struct zb_corpus corpus;
  struct zb_error error = {0};
  expect(zb_corpus_read("configs/models/text.txt", gpt, seed, &corpus, &error) == ZB_OK, "%s", error.text);
  return corpus;
}

static void expect_bits(const zb_real *got, const zb_real *wanted, size_t count, const char *what) {
  for (size_t k = 0; k < count; k++)
    if (memcmp(got + k, wanted + k, sizeof *got) != 0)
      fail_msg("%s: number %zu is %.9g, expected %.9g", what, k, (double)got[k], (double)wanted[k]);
}

// A model cut into stages, all in one thread, with the messages between them.
struct rig {
  struct zb_gpt gpt;
  struct zb_corpus corpus;
  struct zb_workspace *workspace;
  int stages;
  struct zb_stage *stage[STAGES_MOST];
  zb_real *forward[STAGES_MOST], *backward[STAGES_MOST]; // between stage s and s + 1, last microbatch
};

static void open_rig(struct rig *rig, struct zb_gpt gpt, int stages) {
  int first[STAGES_MOST + 1];
  *rig = (struct rig){.gpt = gpt, .stages = stages};
  rig->corpus = text_of(&gpt, 5);
  assert_int_equal(zb_workspace_create(&rig->gpt, &rig->workspace, NULL), ZB_OK);
  assert_int_equal(zb_gpt_cut(&rig->gpt, stages, first, NULL), ZB_OK);
  for (int s = 0; s < stages; s++) {
    assert_int_equal(zb_stage_create(&rig->gpt, &rig->corpus, first[s], first[s + 1], MICROBATCHES, 7,
                                     ZB_STAGE_COPY, &rig->stage[s], NULL),
                     ZB_OK);
    rig->forward[s] = zb_reals(zb_gpt_message(&gpt));
    rig->backward[s] = zb_reals(zb_gpt_message(&gpt));
    zb_stage_begin(rig->stage[s], &rig->workspace->keep, 2);
  }
}

static void close_rig(struct rig *rig) {
  for (int s = 0; s < rig->stages; s++) {
    zb_stage_free(rig->stage[s], &rig->workspace->keep);
    free(rig->forward[s]);
    free(rig->backward[s]);
  }
  expect_equal(rig->workspace->keep.in_use_bytes, 0, "bytes in use after all was given back");
  zb_workspace_free(rig->workspace);
  zb_corpus_free(&rig->corpus);
}

static void all_forward(struct rig *rig, int microbatch) {
  for (int s = 0; s < rig->stages; s++)
    assert_int_equal(zb_stage_forward(rig->stage[s], rig->workspace, microbatch,
                                      s ? rig->forward[s - 1] : NULL,
                                      s < rig->stages - 1 ? rig->forward[s] : NULL, NULL),
                     ZB_OK);
}

enum backward { SPLIT, FUSED };

static void all_backward(struct rig *rig, int microbatch, enum backward how) {
  for (int s = rig->stages - 1; s >= 0; s--) {
    const zb_real *d_output = s < rig->stages - 1 ? rig->backward[s] : NULL;
    zb_real *d_input = s ? rig->backward[s - 1] : NULL;
    enum zb_status status =
        how == FUSED ? zb_stage_fused(rig->stage[s], rig->workspace, microbatch, d_output, d_input, NULL)
                     : zb_stage_backward(rig->stage[s], rig->workspace, microbatch, d_output, d_input, NULL);
    assert_int_equal(status, ZB_OK);
  }
}

static void all_weights(struct rig *rig) {
  for (int s = 0; s < rig->stages; s++) zb_stage_weights(rig->stage[s], rig->workspace);
}

// The gradient of the whole model, of `rig` against one stage that runs microbatch after microbatch.
static void expect_same_gradient(struct rig *rig, const struct rig *whole, const char *what) {
  size_t at = 0;
  for (int s = 0; s < rig->stages; s++) {
    expect_bits(rig->stage[s]->gradient, whole->stage[0]->gradient + at, rig->stage[s]->count, what);
    at += rig->stage[s]->count;
  }
  expect_equal((int64_t)at, (int64_t)whole->stage[0]->count, "parameters");
  for (int m = 0; m < MICROBATCHES; m++)
    if (!(rig->stage[rig->stages - 1]->loss[m] == whole->stage[0]->loss[m]))
      fail_msg("%s: the loss of microbatch %d differs", what, m);
}

static void run_plainly(struct rig *rig) {
  for (int m = 0; m < MICROBATCHES; m++) {
    all_forward(rig, m);
    all_backward(rig, m, SPLIT);
    all_weights(rig);
  }
}

static void test_fused_and_cut(void **state) {
  (void)state;
  struct zb_gpt gpt = tiny();
  struct rig whole;
  open_rig(&whole, gpt, 1);
  run_plainly(&whole);
  // More stages than blocks: some hold none.
  for (int stages = 1; stages <= 10; stages += 3) {
    struct rig rig;
    open_rig(&rig, gpt, stages);
    for (int m = 0; m < MICROBATCHES; m++) {
      all_forward(&rig, m);
      all_backward(&rig, m, FUSED);
    }
    expect_same_gradient(&rig, &whole, "fused");
    close_rig(&rig);

    open_rig(&rig, gpt, stages);
    for (int m = 0; m < MICROBATCHES; m++) all_forward(&rig, m);
    for (int m = 0; m < MICROBATCHES; m++) all_backward(&rig, m, m == 2 ? FUSED : SPLIT);
    while (rig.stage[0]->next_w < MICROBATCHES) all_weights(&rig);
    expect_same_gradient(&rig, &whole, "W late, one backward fused out of order");
    close_rig(&rig);
  }
  close_rig(&whole);
}

// F, B and W change what is kept by what zb_stage_memory says, and fused needs no more than F kept.
static void test_kept_bytes(void **state) {
  (void)state;
  struct zb_gpt gpt = tiny();
  for (int stages = 1; stages <= 4; stages++) {
    struct rig rig;
    open_rig(&rig, gpt, stages);
    int first[STAGES_MOST + 1];
    assert_int_equal(zb_gpt_cut(&gpt, stages, first, NULL), ZB_OK);
    int64_t f = 0, b = 0, w = 0;
    for (int s = 0; s < stages; s++) {
      int64_t stage_f, stage_b, stage_w;
      zb_stage_memory(&gpt, ZB_FP32, first[s], first[s + 1], &stage_f, &stage_b, &stage_w);
      expect_equal(stage_f + stage_b + stage_w, 0, "f + b + w");
      f += stage_f;
      b += stage_b;
      w += stage_w;
    }
    const struct zb_keep *keep = &rig.workspace->keep;
    all_forward(&rig, 0);
    expect_equal(keep->in_use_bytes, f, "kept after F");
    all_forward(&rig, 1);
    expect_equal(keep->in_use_bytes, 2 * f, "kept after two F");
    all_backward(&rig, 0, SPLIT);
    expect_equal(keep->in_use_bytes, 2 * f + b, "kept after B");
    expect_equal(keep->peak_bytes, 2 * f > 2 * f + b ? 2 * f : 2 * f + b, "peak");
    all_weights(&rig);
    expect_equal(keep->in_use_bytes, f, "kept after W");
    all_backward(&rig, 1, FUSED);
    expect_equal(keep->in_use_bytes, 0, "kept after BW");
    int64_t owned = keep->owned_bytes, peak = keep->peak_bytes;
    for (int s = 0; s < stages; s++) zb_stage_begin(rig.stage[s], &rig.workspace->keep, 3);
    all_forward(&rig, 0);
    all_backward(&rig, 0, SPLIT);
    all_weights(&rig);
    expect_equal(keep->owned_bytes, owned, "owned after another iteration");
    expect_equal(keep->peak_bytes, peak, "peak after another iteration");
    expect_equal(w, -f - b, "what W gives back");
    close_rig(&rig);
  }
}

// From 5.5 to below 2.5 in 200 steps, and down this curve.
static void test_learns(void **state) {
  (void)state;
  static const struct {
    int step;
    double loss;
  } curve[] = {{0, 5.556480},   {20, 4.245858},  {40, 3.160815},  {60, 2.964306},
               {80, 2.781860},  {100, 2.654758}, {120, 2.631128}, {140, 2.356689},
               {160, 2.391332}, {180, 2.397887}, {199, 2.242847}};
  struct zb_gpt gpt = tiny();
  struct zb_corpus corpus = text_of(&gpt, 1);
  struct zb_training training = {
      .gpt = &gpt, .corpus = &corpus, .seed = 1, .microbatches = 4, .steps = 200, .nan_step = -1};
  double loss[200];
  struct zb_checkpoint *trained = NULL;
  assert_int_equal(zb_straight_run(&training, &zb_compute_cpu, 0, loss, &trained, NULL), ZB_OK);
  for (size_t k = 0; k < sizeof curve / sizeof *curve; k++)
    expect(fabs(loss[curve[k].step] - curve[k].loss) <= 1e-3, "step %d: loss %.6f, expected %.6f",
           curve[k].step, loss[curve[k].step], curve[k].loss);
  expect(loss[0] > 5.5 && loss[199] < 2.5, "from %.3f to %.3f", loss[0], loss[199]);
  zb_checkpoint_free(trained);
  zb_corpus_free(&corpus);
}

// A step that met a NaN is as if it had not been made; the others go on.
static void test_nan_is_skipped(void **state) {
  (void)state;
  struct zb_gpt gpt = tiny();
  struct zb_corpus corpus = text_of(&gpt, 1);
  struct zb_training training = {
      .gpt = &gpt, .corpus = &corpus, .seed = 1, .microbatches = 2, .steps = 4, .nan_step = 1};
  double loss[4];
  struct zb_checkpoint *trained = NULL;
  assert_int_equal(zb_straight_run(&training, &zb_compute_cpu, 0, loss, &trained, NULL), ZB_OK);
  expect_equal(trained->made, 3, "steps made");
  for (int k = 0; k < 4; k++) assert_true(isfinite(loss[k]));
  for (size_t k = 0; k < trained->count; k++)
    expect(isfinite((double)trained->values[k]), "parameter %zu is not finite", k);
  zb_checkpoint_free(trained);
  zb_corpus_free(&corpus);
}

static void test_cuts(void **state) {
  (void)state;
  struct zb_gpt gpt = tiny();
  int first[STAGES_MOST + 1];
  static const int wanted[] = {0, 4, 7, 10};
  assert_int_equal(zb_gpt_cut(&gpt, 3, first, NULL), ZB_OK);
  assert_memory_equal(first, wanted, sizeof wanted);
  gpt.stages = 2;
  gpt.blocks_of[0] = 0;
  gpt.blocks_of[1] = 8;
  static const int uneven[] = {0, 1, 10};
  assert_int_equal(zb_gpt_cut(&gpt, 2, first, NULL), ZB_OK);
  assert_memory_equal(first, uneven, sizeof uneven);
  struct zb_error error = {0};
  assert_int_equal(zb_gpt_cut(&gpt, 3, first, &error), ZB_BAD_INPUT);
  assert_non_null(strstr(error.text, "2 stages"));
}

static void test_model_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"{}", "zbsolve_model: missing"},
      {"{\"zbsolve_model\": 2}", "zbsolve_model"},
      {"{\"zbsolve_model\": 1, \"blocks\": 0}", "blocks"},
      {"{\"zbsolve_model\": 1, \"block\": 1}", "block"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 9, \"heads\": 2, \"sequence\": 8}", "heads"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 8, \"heads\": 2, \"sequence\": 8, \"vocabulary\": "
       "9}",
       "vocabulary"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 8, \"heads\": 2, \"sequence\": 8, \"stages\": [1]}",
       "stages: 1 blocks in all"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 8, \"heads\": 2, \"sequence\": 8, \"stages\": []}",
       "stages: a list of 0"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 8, \"heads\": 2, \"sequence\": 8, \"optimizer\": "
       "{\"beta1\": 1}}",
       "optimizer.beta1"},
      {"{\"zbsolve_model\": 1, \"blocks\": 2, \"hidden\": 65536, \"heads\": 2, \"sequence\": 65536}",
       "sequence"},
  };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    struct zb_gpt gpt;
    struct zb_error error = {0};
    enum zb_status status = zb_gpt_read_text(bad[k].text, strlen(bad[k].text), &gpt, &error);
    expect(status == ZB_BAD_INPUT && strstr(error.text, bad[k].says), "%s: %s", bad[k].text, error.text);
  }
}

static int prepare(void **state) {
  (void)state;
  zb_gemm_prepare();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fused_and_cut), cmocka_unit_test(test_kept_bytes),
      cmocka_unit_test(test_learns),        cmocka_unit_test(test_nan_is_skipped),
      cmocka_unit_test(test_cuts),          cmocka_unit_test(test_model_files),
  };
  return cmocka_run_group_tests(tests, prepare, NULL);
}
