// What every compute backend must do, held against the stages of the CPU: losses, partial norms, parameters
// after steps, steps taken back, batches begun again, and what is kept. A backend that trains nothing is held
// to the calls. The cuda backend runs on the stand-in (tests/standin), and is left out of a build without
// CUDA.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compute.h"
#include "runtime/gemm.h"
#include "runtime/stage.h"
#include "solver/model/deadline.h"
#include "tests/unit/unit.h"

// What a backend may differ from the CPU by, relative to 1 + |value|; 0: to the bit. Sums of the GPU are
// trees, and bf16 has 8 bits: an activation is off by up to 1 in 256, and a loss of three tokens by some of
// it.
static const struct {
  const struct zb_compute *compute;
  enum zb_dtype dtype;
  double tolerance;
} backends[] = {{&zb_compute_cpu, ZB_FP32, 0},
                {&zb_compute_sleep, ZB_FP32, 0},
                {&zb_compute_cuda, ZB_FP32, 1e-5},
                {&zb_compute_cuda, ZB_BF16, 2e-2}};
enum { BACKENDS = sizeof backends / sizeof *backends };

// In the build: one that is and finds no device fails.
static bool is_here(int backend) {
  return backends[backend].compute != &zb_compute_cuda || strcmp(zb_cuda_name, "none") != 0;
}

enum { DEVICES = 2, STAGES = 4, MICROBATCHES = 3 };

static int64_t soon(void) { return zb_clock_ns() + INT64_C(20000000000); }

struct bench {
  struct zb_gpt gpt;
  struct zb_corpus corpus;
  struct zb_training training;
  struct zb_profile *profile;
  int first_unit[STAGES + 1];
  const struct zb_compute *compute;
  double tolerance;
  struct zb_compute_setup setup[DEVICES];
  void *state[DEVICES];
  void *forward[STAGES], *backward[STAGES]; // allocated by the device that holds the stage
  struct zb_stage *stage[STAGES];           // the CPU's
  struct zb_workspace *workspace;
  zb_real *cpu_forward[STAGES], *cpu_backward[STAGES];
};

static void open_bench(struct bench *b, int backend, enum zb_rollback rollback) {
  *b = (struct bench){.compute = backends[backend].compute, .tolerance = backends[backend].tolerance};
  zb_gpt_smallest(5, &b->gpt);
  assert_int_equal(zb_corpus_read("configs/models/text.txt", &b->gpt, 1, &b->corpus, NULL), ZB_OK);
  b->training = (struct zb_training){.gpt = &b->gpt,
                                     .corpus = &b->corpus,
                                     .seed = 1,
                                     .microbatches = MICROBATCHES,
                                     .steps = 1,
                                     .nan_step = -1,
                                     .dtype = backends[backend].dtype};
  assert_int_equal(zb_profile_create(DEVICES, 2, MICROBATCHES, ZB_V, &b->profile, NULL), ZB_OK);
  for (int s = 0; s < STAGES; s++) {
    b->profile->f_ns[s] = b->profile->b_ns[s] = b->profile->w_ns[s] = 10000;
    b->profile->f_bytes[s] = 7;
    b->profile->w_bytes[s] = -7;
  }
  assert_int_equal(zb_profile_finish(b->profile, NULL), ZB_OK);
  assert_int_equal(zb_gpt_cut(&b->gpt, STAGES, b->first_unit, NULL), ZB_OK);
  for (int d = 0; d < DEVICES; d++) {
    b->setup[d] = (struct zb_compute_setup){.profile = b->profile,
                                            .training = &b->training,
                                            .first_unit = b->first_unit,
                                            .device = d,
                                            .seat = d,
                                            .may_undo = true,
                                            .rollback = rollback};
    struct zb_error error = {0};
    expect(b->compute->open(&b->setup[d], &b->state[d], &error) == ZB_OK, "%s", error.text);
  }
  assert_int_equal(zb_workspace_create(&b->gpt, &b->workspace, NULL), ZB_OK);
  for (int s = 0; s < STAGES; s++) {
    size_t bytes = zb_training_message_bytes(&b->training);
    void *state = b->state[b->profile->device_of[s]];
    assert_int_equal(b->compute->allocate(state, bytes, &b->forward[s], NULL), ZB_OK);
    assert_int_equal(b->compute->allocate(state, bytes, &b->backward[s], NULL), ZB_OK);
    b->cpu_forward[s] = zb_reals(zb_gpt_message(&b->gpt));
    b->cpu_backward[s] = zb_reals(zb_gpt_message(&b->gpt));
    assert_int_equal(zb_stage_create(&b->gpt, &b->corpus, b->first_unit[s], b->first_unit[s + 1],
                                     MICROBATCHES, 1, 0, &b->stage[s], NULL),
                     ZB_OK);
  }
}

static void close_bench(struct bench *b) {
  for (int s = 0; s < STAGES; s++) {
    void *state = b->state[b->profile->device_of[s]];
    b->compute->release(state, b->forward[s]);
    b->compute->release(state, b->backward[s]);
    free(b->cpu_forward[s]);
    free(b->cpu_backward[s]);
    zb_stage_free(b->stage[s], &b->workspace->keep);
  }
  for (int d = 0; d < DEVICES; d++) b->compute->close(b->state[d]);
  b->compute->close(NULL);
  zb_workspace_free(b->workspace);
  zb_profile_free(b->profile);
  zb_corpus_free(&b->corpus);
}

static void do_op(struct bench *b, int s, enum zb_kind kind, int microbatch, struct zb_interval *when) {
  void *state = b->state[b->profile->device_of[s]], *event = NULL;
  bool first = s == 0, last = s == STAGES - 1, forward = kind == ZB_F;
  void *in = forward ? (first ? NULL : b->forward[s - 1]) : last ? NULL : b->backward[s];
  void *out = forward ? (last ? NULL : b->forward[s]) : first ? NULL : b->backward[s - 1];
  if (kind == ZB_W) in = out = NULL;
  struct zb_error error = {0};
  expect(b->compute->op(state, (struct zb_op){s, microbatch, kind}, in, out, when, &error) == ZB_OK, "%s",
         error.text);
  // What a neighbour on another device reads next must be there.
  assert_int_equal(b->compute->record(state, &event, NULL), ZB_OK);
  assert_int_equal(zb_compute_finish(b->compute, state, soon(), NULL), ZB_OK);
  for (int d = 0; d < DEVICES; d++) assert_int_equal(b->compute->await(b->state[d], event, NULL), ZB_OK);

  zb_real *cpu_in = forward ? (first ? NULL : b->cpu_forward[s - 1]) : last ? NULL : b->cpu_backward[s];
  zb_real *cpu_out = forward ? (last ? NULL : b->cpu_forward[s]) : first ? NULL : b->cpu_backward[s - 1];
  switch (kind) {
  case ZB_F:
    zb_stage_forward(b->stage[s], b->workspace, microbatch, cpu_in, cpu_out, NULL);
    break;
  case ZB_B:
    zb_stage_backward(b->stage[s], b->workspace, microbatch, cpu_in, cpu_out, NULL);
    break;
  case ZB_W:
    zb_stage_weights(b->stage[s], b->workspace);
    break;
  case ZB_BW:
    zb_stage_fused(b->stage[s], b->workspace, microbatch, cpu_in, cpu_out, NULL);
    break;
  }
}

// One batch: the second microbatch fused, the Ws late.
static void do_batch(struct bench *b, int64_t step) {
  struct zb_interval when[STAGES * MICROBATCHES * 3];
  size_t ops = 0;
  for (int d = 0; d < DEVICES; d++) assert_int_equal(b->compute->begin(b->state[d], step, NULL), ZB_OK);
  for (int s = 0; s < STAGES; s++) zb_stage_begin(b->stage[s], &b->workspace->keep, step);
  for (int m = 0; m < MICROBATCHES; m++)
    for (int s = 0; s < STAGES; s++) do_op(b, s, ZB_F, m, &when[ops++]);
  for (int m = 0; m < MICROBATCHES; m++)
    for (int s = STAGES - 1; s >= 0; s--) do_op(b, s, m == 1 ? ZB_BW : ZB_B, m, &when[ops++]);
  for (int w = 0; w < MICROBATCHES - 1; w++)
    for (int s = 0; s < STAGES; s++) do_op(b, s, ZB_W, w ? 2 : 0, &when[ops++]);
  for (size_t k = 0; k < ops; k++) assert_true(when[k].start_ns > 0 && when[k].end_ns >= when[k].start_ns);
}

static void expect_near(const struct bench *b, double got, double wanted, const char *what) {
  expect(fabs(got - wanted) <= b->tolerance * (1 + fabs(wanted)), "%s: %s %.9g, expected %.9g",
         b->compute->name, what, got, wanted);
}

static void expect_parameters(struct bench *b) {
  for (int s = 0; s < STAGES && b->compute->trains; s++) {
    void *state = b->state[b->profile->device_of[s]];
    expect_equal((int64_t)b->compute->parameters(state, s), (int64_t)b->stage[s]->count, "parameters");
    zb_real *got = zb_reals(b->stage[s]->count);
    assert_int_equal(b->compute->fetch(state, s, got, NULL), ZB_OK);
    for (size_t k = 0; k < b->stage[s]->count; k++)
      expect_near(b, (double)got[k], (double)b->stage[s]->parameters[k], "parameter");
    free(got);
  }
}

static void form_partials(struct bench *b, int d, double *partial) {
  struct zb_error error = {0};
  expect(b->compute->norm(b->state[d], &error) == ZB_OK, "%s", error.text);
  expect(zb_compute_finish(b->compute, b->state[d], soon(), &error) == ZB_OK, "%s", error.text);
  b->compute->partials(b->state[d], partial);
}

static void expect_losses_and_norms(struct bench *b) {
  double loss[MICROBATCHES], partial[16], wanted[16];
  bool any = false;
  for (int u = 0; u < 16; u++) partial[u] = wanted[u] = -1;
  for (int d = 0; d < DEVICES; d++) {
    form_partials(b, d, partial);
    any |= b->compute->loss(b->state[d], loss);
  }
  for (int u = 0; u < zb_gpt_units(&b->gpt); u++) assert_true(partial[u] >= 0);
  for (int u = zb_gpt_units(&b->gpt); u < 16; u++) assert_true(partial[u] == -1);
  for (int s = 0; s < STAGES; s++) zb_stage_norm(b->stage[s], wanted);
  assert_true(any == b->compute->trains);
  for (int m = 0; any && m < MICROBATCHES; m++)
    expect_near(b, loss[m], b->stage[STAGES - 1]->loss[m], "loss");
  for (int u = 0; any && u < zb_gpt_units(&b->gpt); u++)
    expect_near(b, partial[u], wanted[u], "partial norm");
}

static void step_all(struct bench *b, double scale, bool undoable) {
  for (int d = 0; d < DEVICES; d++)
    assert_int_equal(b->compute->step(b->state[d], scale, undoable, NULL), ZB_OK);
}

static void test_training(void **state) {
  (void)state;
  for (int k = 0; k < BACKENDS; k++) {
    if (!is_here(k)) continue;
    struct bench b;
    open_bench(&b, k, ZB_ROLLBACK_COPY);
    expect_parameters(&b);
    for (int step = 0; step < 3; step++) {
      do_batch(&b, step);
      expect_losses_and_norms(&b);
      step_all(&b, 0.5, false);
      for (int s = 0; s < STAGES; s++) zb_stage_step(b.stage[s], 0.5);
      expect_parameters(&b);
    }
    close_bench(&b);
  }
}

// A step taken back is as if it had not been made, also when the next batch has begun; a batch begun again
// counts once.
static void test_undo(void **state) {
  (void)state;
  for (int k = 0; k < BACKENDS; k++) {
    for (int rollback = 0; is_here(k) && rollback < 2; rollback++) {
      struct bench b;
      open_bench(&b, k, (enum zb_rollback)rollback);
      if (rollback == ZB_ROLLBACK_INVERSE) b.tolerance = fmax(b.tolerance, 1e-6);
      do_batch(&b, 0);
      expect_losses_and_norms(&b);
      step_all(&b, 1, true);
      for (int d = 0; d < DEVICES; d++) {
        assert_int_equal(b.compute->begin(b.state[d], 1, NULL), ZB_OK);
        assert_int_equal(b.compute->undo(b.state[d], 1, NULL), ZB_OK);
      }
      expect_parameters(&b);
      step_all(&b, 0.25, false);
      for (int s = 0; s < STAGES; s++) zb_stage_step(b.stage[s], 0.25);
      expect_parameters(&b);
      do_batch(&b, 1);
      do_batch(&b, 1);
      b.tolerance = fmax(b.tolerance, rollback == ZB_ROLLBACK_INVERSE ? 1e-4 : 0);
      expect_losses_and_norms(&b);
      close_bench(&b);
    }
  }
}

// A poisoned stage shows in its device's partials, and in no other's.
static void test_poison(void **state) {
  (void)state;
  for (int k = 0; k < BACKENDS; k++) {
    if (!is_here(k)) continue;
    struct bench b;
    double partial[16];
    open_bench(&b, k, ZB_ROLLBACK_COPY);
    do_batch(&b, 0);
    for (int d = 0; d < DEVICES; d++) {
      if (b.profile->device_of[1] == d) assert_int_equal(b.compute->poison(b.state[d], 1, NULL), ZB_OK);
      form_partials(&b, d, partial);
    }
    bool any = false;
    for (int s = 0; s < STAGES; s++) {
      for (int u = b.first_unit[s]; u < b.first_unit[s + 1]; u++) {
        if (b.profile->device_of[s] != b.profile->device_of[1])
          assert_true(isfinite(partial[u]));
        else
          any |= isnan(partial[u]);
      }
    }
    assert_true(any);
    close_bench(&b);
  }
}

static int prepare(void **state) {
  (void)state;
  zb_gemm_prepare();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_training), cmocka_unit_test(test_undo),
                                     cmocka_unit_test(test_poison)};
  return cmocka_run_group_tests(tests, prepare, NULL);
}
