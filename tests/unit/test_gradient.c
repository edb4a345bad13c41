// Every parameter's gradient against central differences of the loss, in the double build of the same
// arithmetic.
//
// Small models of every shape that the code treats apart: one and several samples, heads and blocks, hidden
// widths that are no power of two. Each parameter is moved up and down alone, and the loss recomputed.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gemm.h"
#include "runtime/random.h"
#include "runtime/stage.h"
#include "tests/unit/unit.h"

enum { MICROBATCHES = 2 };

static struct zb_corpus random_corpus(uint64_t seed) {
  struct zb_corpus corpus = {.seed = seed};
  for (uint64_t k = 0; k < 200; k++) {
    char byte = (char)(zb_random_mix(seed, k) & 0xff);
    zb_text_add(&corpus.text, &byte, 1);
  }
  return corpus;
}

// The loss that the gradient is of: the mean over all tokens of the batch.
static double loss_of(struct zb_stage *stage, struct zb_workspace *workspace) {
  double sum = 0;
  zb_stage_begin(stage, &workspace->keep, 3);
  for (int m = 0; m < MICROBATCHES; m++) {
    assert_int_equal(zb_stage_forward(stage, workspace, m, NULL, NULL, NULL), ZB_OK);
    sum += stage->loss[m];
  }
  return sum / (MICROBATCHES * zb_gpt_tokens(stage->gpt));
}

// Moves far enough from the start values that no gradient is near 0 by symmetry.
static void shake(struct zb_stage *stage, uint64_t seed) {
  for (size_t k = 0; k < stage->count; k++) stage->parameters[k] += 0.3 * zb_random_even(seed, k);
}

// Fourth-order central difference: its own error is far below what is asserted.
static double slope_of(struct zb_stage *stage, struct zb_workspace *workspace, size_t k) {
  const double step = 1e-3;
  double kept = stage->parameters[k], at[4];
  const double move[4] = {-2, -1, 1, 2};
  for (int i = 0; i < 4; i++) {
    stage->parameters[k] = kept + move[i] * step;
    at[i] = loss_of(stage, workspace);
  }
  stage->parameters[k] = kept;
  return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step);
}

static void check_model(struct zb_gpt gpt, uint64_t seed) {
  struct zb_corpus corpus = random_corpus(seed);
  struct zb_workspace *workspace = NULL;
  struct zb_stage *stage = NULL;
  assert_int_equal(zb_workspace_create(&gpt, &workspace, NULL), ZB_OK);
  assert_int_equal(zb_stage_create(&gpt, &corpus, 0, zb_gpt_units(&gpt), MICROBATCHES, seed, 0, &stage, NULL),
                   ZB_OK);
  shake(stage, seed + 1);

  loss_of(stage, workspace);
  for (int m = 0; m < MICROBATCHES; m++) {
    assert_int_equal(zb_stage_backward(stage, workspace, m, NULL, NULL, NULL), ZB_OK);
    zb_stage_weights(stage, workspace);
  }
  double *gradient = malloc(stage->count * sizeof *gradient);
  assert_non_null(gradient);
  memcpy(gradient, stage->gradient, stage->count * sizeof *gradient);
  double most = 0;
  for (size_t k = 0; k < stage->count; k++) most = fmax(most, fabs(gradient[k]));
  assert_true(most > 0.01);

  // Of the embedding and the head only every 37th in the fast run: there are thousands that differ in
  // nothing.
  const size_t stride = getenv("ZB_LONG") ? 1 : 37;
  for (int u = 0; u < zb_gpt_units(&gpt); u++) {
    bool block = u > 0 && u <= gpt.blocks;
    for (size_t k = stage->offset[u]; k < stage->offset[u + 1]; k += block ? 1 : stride) {
      double slope = slope_of(stage, workspace, k);
      double scale = fmax(fmax(fabs(slope), fabs(gradient[k])), 1e-3 * most);
      if (!(fabs(slope - gradient[k]) <= 1e-6 * scale))
        fail_msg("seed %llu: unit %d, parameter %zu: gradient %.12g, central difference %.12g",
                 (unsigned long long)seed, u, k - stage->offset[u], gradient[k], slope);
    }
  }
  free(gradient);
  zb_stage_free(stage, &workspace->keep);
  zb_workspace_free(workspace);
  zb_corpus_free(&corpus);
}

static void test_central_differences(void **state) {
  (void)state;
  zb_gemm_prepare();
  static const struct zb_gpt shapes[] = {
      {.name = "one", .blocks = 1, .hidden = 4, .heads = 1, .sequence = 5, .vocabulary = 256, .samples = 1},
      {.name = "heads", .blocks = 2, .hidden = 6, .heads = 3, .sequence = 4, .vocabulary = 256, .samples = 2},
      {.name = "short", .blocks = 1, .hidden = 4, .heads = 2, .sequence = 1, .vocabulary = 256, .samples = 3},
  };
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) check_model(shapes[k], 11 + k);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_central_differences)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
