// The shim that runs kernels on the CPU: what is wrong in a kernel shows, under some seed or as misuse, and
// what is right never does.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin.h"
#include "tests/unit/shim_kernels.h"
#include "tests/unit/unit.h"

enum { SEEDS = 40, ROOM = 4096 };

#define WORKS(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t error_ = (call);                                                                             \
    if (error_ != cudaSuccess) fail_msg("%s: %s", #call, cudaGetErrorString(error_));                        \
  } while (0)

static cudaStream_t stream;
static void *in, *out;

// in: ROOM floats 1, 2, 3..; out: ROOM bytes of 0.
static void begin(uint64_t seed) {
  static float values[ROOM];
  for (int k = 0; k < ROOM; k++) values[k] = (float)(k + 1);
  zb_standin_begin(&(struct zb_standin){.seed = seed});
  WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  WORKS(cudaMalloc(&in, sizeof values));
  WORKS(cudaMalloc(&out, sizeof values));
  WORKS(cudaMemcpyAsync(in, values, sizeof values, cudaMemcpyHostToDevice, stream));
  WORKS(cudaMemsetAsync(out, 0, sizeof values, stream));
}

// The first bytes of `out`; whether all was in order, and what was not.
static bool end(void *got, size_t size, char *report, size_t room) {
  WORKS(cudaMemcpyAsync(got, out, size, cudaMemcpyDeviceToHost, stream));
  WORKS(cudaStreamSynchronize(stream));
  WORKS(cudaFree(in));
  WORKS(cudaFree(out));
  WORKS(cudaStreamDestroy(stream));
  return zb_standin_end(report, room);
}

// Under how many seeds the result is right.
static int right_reverses(bool barrier) {
  int right = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    float got[192];
    char report[500] = "";
    bool same = true;
    begin(seed);
    WORKS(shim_reverse(stream, in, 2, barrier, out));
    expect(end(got, sizeof got, report, sizeof report), "seed %d: %s", (int)seed, report);
    for (int k = 0; k < 192; k++) same = same && got[k] == (float)(k / 96 * 96 + 96 - k % 96);
    right += same;
  }
  return right;
}

static int right_sums(bool barrier) {
  int right = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    float got[2];
    char report[500] = "";
    begin(seed);
    WORKS(shim_two_sums(stream, in, barrier, out));
    expect(end(got, sizeof got, report, sizeof report), "seed %d: %s", (int)seed, report);
    right += got[0] == 64 * 65 / 2 && got[1] == 64 * 65 * 129 / 6;
  }
  return right;
}

static void test_missing_barrier(void **state) {
  (void)state;
  expect_equal(right_reverses(true), SEEDS, "seeds right with the barrier");
  expect_equal(right_reverses(false), 0, "seeds right without: shared memory starts as NaN");
  expect_equal(right_sums(true), SEEDS, "seeds right with the second barrier");
  int right = right_sums(false);
  expect(right <= SEEDS * 9 / 10, "%d of %d seeds do not show that the second barrier is missing", right,
         SEEDS);
}

static void test_threads_that_do_not_come(void **state) {
  (void)state;
  for (int coming = 0; coming <= 64; coming += 32) {
    char got[4], report[500] = "";
    begin(3);
    WORKS(shim_barrier_of_some(stream, coming));
    // Another kernel runs as if nothing had been.
    WORKS(shim_reverse(stream, in, 1, true, out));
    bool fine = end(got, sizeof got, report, sizeof report);
    if (coming == 32)
      expect(!fine && strstr(report, "32 of 64 threads have ended, 32 stand at a barrier, 0 at a shuffle"),
             "report: %s", report);
    else
      expect(fine, "%d of 64: %s", coming, report);
  }
  for (int threads = 32; threads <= 64; threads += 16) {
    int got[64];
    char report[500] = "";
    begin(4);
    WORKS(shim_shuffle(stream, threads, out));
    bool fine = end(got, sizeof got, report, sizeof report);
    for (int k = 0; fine && k < threads; k++) expect_equal(got[k], k ^ 1, "shuffled");
    if (threads == 48)
      expect(!fine && strstr(report, "a shuffle of a part of a warp"), "report: %s", report);
    else
      expect(fine, "%d threads: %s", threads, report);
  }
}

// Each thread once, blocks one after another, both in an order that the seed draws.
static void test_order(void **state) {
  (void)state;
  enum { BLOCKS = 5, THREADS = 40, ALL = BLOCKS * THREADS };
  int got[1 + ALL], last[1 + ALL] = {0}, other_blocks = 0, other_threads = 0;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    bool seen[ALL] = {false};
    char report[500] = "";
    begin(seed);
    WORKS(shim_order(stream, BLOCKS, THREADS, out, (int *)out + 1));
    expect(end(got, sizeof got, report, sizeof report), "seed %d: %s", (int)seed, report);
    expect_equal(got[0], ALL, "threads that ran");
    for (int k = 0; k < ALL; k++) {
      expect(got[1 + k] >= 0 && got[1 + k] < ALL && !seen[got[1 + k]], "seed %d: thread %d twice", (int)seed,
             got[1 + k]);
      seen[got[1 + k]] = true;
      expect_equal(got[1 + k] / THREADS, got[1 + k / THREADS * THREADS] / THREADS, "block");
    }
    other_blocks += got[1] / THREADS != last[1] / THREADS;
    other_threads += got[1] % THREADS != last[1] % THREADS;
    memcpy(last, got, sizeof got);
  }
  expect(other_blocks > SEEDS / 2 && other_threads > SEEDS / 2,
         "first block changed %d times, thread %d times", other_blocks, other_threads);
}

static void test_refused_launch(void **state) {
  (void)state;
  char got[4], report[500] = "";
  begin(1);
  assert_int_equal(shim_shuffle(stream, 1025, out), cudaErrorInvalidConfiguration);
  assert_int_equal(shim_shuffle(stream, 0, out), cudaErrorInvalidConfiguration);
  expect(end(got, sizeof got, report, sizeof report), "%s", report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_missing_barrier),
      cmocka_unit_test(test_threads_that_do_not_come),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_refused_launch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
