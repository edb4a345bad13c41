// test_cuda_look - what look leaves behind: GPUs that devices of this process use reach each other's memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>

#include "runtime/compute.h"
#include "tests/standin/standin.h"

enum { GPUS = 4 };

static cudaError_t enable(int gpu, int other) {
  assert_int_equal(cudaSetDevice(gpu), cudaSuccess);
  cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  cudaGetLastError();
  return code;
}

static void test_peers(void **state) {
  (void)state;
  // Device 2 is another process'.
  const struct zb_demand need[] = {
      {0, 0, true, 1000}, {1, 1, true, 1000}, {2, 2, false, 1000}, {3, 3, true, 1000}};
  const struct zb_training training = {.dtype = ZB_FP32};
  struct zb_error error = {0};
  char report[1000];
  zb_standin_begin(&(struct zb_standin){.seed = 1, .devices = GPUS});
  for (int again = 0; again < 2; again++) {
    assert_int_equal(zb_compute_cuda.look(&training, need, 4, &error), ZB_OK);
    // No error waits for the next kernel's launch.
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  }
  for (int gpu = 0; gpu < GPUS; gpu++)
    for (int other = 0; other < GPUS; other++)
      if (gpu != other)
        assert_int_equal(enable(gpu, other),
                         gpu == 2 || other == 2 ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
  if (!zb_standin_end(report, sizeof report)) fail_msg("%s", report);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_peers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
