// test_cuda_sizes - what the cuda backend sets aside before the first step is enough for every call that it
// makes, whatever the model's sizes are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/kernels.h"
#include "runtime/compute_cuda_parts.h"

static const int sequences[] = {1, 8, 100, 128, 1000, 1024, 2048};
enum { SEQUENCES = sizeof sequences / sizeof *sequences };

static struct zb_gpt model(int hidden, int sequence, int samples) {
  return (struct zb_gpt){
      .blocks = 1, .hidden = hidden, .heads = 4, .sequence = sequence, .vocabulary = 256, .samples = samples};
}

// A norm's parameters, and the biases of qkv, of the way up and of what is as wide as the model.
static void test_columns(void **state) {
  (void)state;
  for (int hidden = 4; hidden <= 8192; hidden += hidden < 1024 ? 4 : 64)
    for (int k = 0; k < SEQUENCES; k++)
      for (int samples = 1; samples <= 16; samples *= 4) {
        struct zb_gpt gpt = model(hidden, sequences[k], samples);
        const int tokens = samples * sequences[k], widths[] = {hidden, 3 * hidden, 4 * hidden};
        size_t floats = zb_cuda_column_floats(&gpt);
        assert_true(floats >= (size_t)tokens);
        for (int w = 0; w < 3; w++)
          if (zb_cuda_column_scratch(tokens, widths[w]) > floats)
            fail_msg("hidden %d, %d tokens: %d columns need %zu floats, there are %zu", hidden, tokens,
                     widths[w], zb_cuda_column_scratch(tokens, widths[w]), floats);
      }
}

static void test_blas(void **state) {
  (void)state;
  for (int hidden = 4; hidden <= 8192; hidden += 4)
    for (int k = 0; k < SEQUENCES; k++) {
      struct zb_gpt gpt = model(hidden, sequences[k], 1);
      size_t bytes = zb_cuda_blas_bytes(&gpt);
      assert_true(bytes > 0 && bytes <= (size_t)32 << 20 && bytes % (16 << 10) == 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns), cmocka_unit_test(test_blas)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
