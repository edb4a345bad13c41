// The stand-in device itself: that what CUDA promises holds in every run, and that what it does not promise
// goes wrong in some. Each run is a seed and a way of running; a failed check says which.
#include <math.h>
#include <time.h>

#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

// Two streams append 1 and 2. With an event between them always in that order, without one not always.
static int one_then_two(bool with_event) {
  cudaStream_t one = new_stream(), two = new_stream();
  cudaEvent_t event = new_event();
  int *number = new_numbers(1);
  zero(one, number);
  good(cudaStreamSynchronize(one));
  append(one, number, 1);
  if (with_event) {
    good(cudaEventRecord(event, one));
    good(cudaStreamWaitEvent(two, event, 0));
  }
  append(two, number, 2);
  good(cudaStreamSynchronize(two));
  good(cudaStreamSynchronize(one));
  int value = value_of(number);
  good(cudaFree(number));
  good(cudaEventDestroy(event));
  good(cudaStreamDestroy(one));
  good(cudaStreamDestroy(two));
  return value;
}

static void test_a_missing_wait_shows(void **state) {
  (void)state;
  int wrong[3] = {0};
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    int with = one_then_two(true), without = one_then_two(false);
    expect(with == 12, "seed %d: %d", seed, with);
    wrong[seed % 3] += without != 12;
    end_well();
  }
  // An eager device has run the first before the second is asked for.
  expect(wrong[ZB_STANDIN_RANDOM] > seeds() / 30, "%d in random runs", wrong[ZB_STANDIN_RANDOM]);
  expect(wrong[ZB_STANDIN_LATE] > seeds() / 30, "%d in late runs", wrong[ZB_STANDIN_LATE]);
  expect(wrong[ZB_STANDIN_EAGER] == 0, "%d in eager runs", wrong[ZB_STANDIN_EAGER]);
}

static void test_a_stream_is_a_queue(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    cudaStream_t stream = new_stream();
    int *number = new_numbers(1);
    zero(stream, number);
    for (int digit = 1; digit < 8; digit++) append(stream, number, digit);
    good(cudaStreamSynchronize(stream));
    expect(value_of(number) == 1234567, "seed %d: %d", seed, value_of(number));
    good(cudaFree(number));
    good(cudaStreamDestroy(stream));
    end_well();
  }
}

// Pinned memory is read when the copy happens, ordinary memory then or when it is asked for; into ordinary
// memory the call may or may not wait.
static void test_copies_land_late(void **state) {
  (void)state;
  int later = 0, early = 0, staged = 0, waited = 0;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    cudaStream_t stream = new_stream();
    int *device = new_numbers(2), ordinary = 1, *pinned;
    good(cudaMallocHost((void **)&pinned, 2 * sizeof *pinned));
    pinned[0] = 1;
    pinned[1] = 7;
    good(cudaMemcpyAsync(device, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
    good(cudaMemcpyAsync(device + 1, &ordinary, sizeof(int), cudaMemcpyHostToDevice, stream));
    pinned[0] = ordinary = 2;
    good(cudaMemcpyAsync(pinned + 1, device + 1, sizeof(int), cudaMemcpyDeviceToHost, stream));
    early += pinned[1] == 7;
    int read = 7;
    good(cudaMemcpyAsync(&read, device + 1, sizeof(int), cudaMemcpyDeviceToHost, stream));
    waited += read != 7;
    good(cudaStreamSynchronize(stream));
    staged += read == 1;
    expect((read == 1 || read == 2) && pinned[1] == read, "seed %d: %d, %d", seed, read, pinned[1]);
    later += value_of(device) == 2;
    good(cudaFree(device));
    good(cudaFreeHost(pinned));
    good(cudaStreamDestroy(stream));
    end_well();
  }
  expect(later > seeds() / 4 && later < seeds(), "%d of %d copies read what was written behind the call",
         later, seeds());
  expect(early > seeds() / 4 && early < seeds(), "%d of %d copies were late", early, seeds());
  expect(staged > seeds() / 2 && staged < seeds(), "%d of %d copies took ordinary memory at the call", staged,
         seeds());
  expect(waited > seeds() / 2 && waited < seeds(), "%d of %d copies into it were over", waited, seeds());
}

static void test_events(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){.hang_kernel = 1});
    cudaStream_t stuck = new_stream(), from = new_stream(), to = new_stream();
    cudaEvent_t event = new_event(), never = new_event();
    int *number = new_numbers(1);
    append(stuck, number, 0); // and never ends
    // Let it be the first that runs.
    while (zb_standin_counts().faults == 0) cudaStreamQuery(stuck);
    cudaGetLastError();
    zero(from, number);
    append(from, number, 1);
    good(cudaEventRecord(event, from));
    good(cudaStreamWaitEvent(to, event, 0));
    // What is recorded later is nothing to a wait that was there before; nor is what was never recorded.
    good(cudaEventRecord(event, stuck));
    good(cudaStreamWaitEvent(to, never, 0));
    good(cudaEventQuery(never));
    good(cudaEventSynchronize(never));
    append(to, number, 2);
    good(cudaStreamSynchronize(to));
    good(cudaStreamSynchronize(from));
    expect(value_of(number) == 12, "seed %d: %d", seed, value_of(number));
    // But a wait from now on is for the latest record.
    good(cudaStreamWaitEvent(to, event, 0));
    append(to, number, 3);
    for (int k = 0; k < 20; k++) gives(cudaStreamQuery(to), cudaErrorNotReady);
    gives(cudaEventQuery(event), cudaErrorNotReady);
    gives(cudaGetLastError(), cudaErrorNotReady);
    char text[1000];
    zb_standin_stuck(text, sizeof text);
    expect(strstr(text, "append does not end") && strstr(text, "waits for stream 0"), "%s", text);
    zb_standin_end(NULL, 0);
  }
}

// Asking is enough: a query makes a device go on that runs as late as it can.
static void test_polling_ends(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){.when = seed % 2 ? ZB_STANDIN_LATE : ZB_STANDIN_RANDOM});
    cudaStream_t stream = new_stream(), other = new_stream();
    cudaEvent_t event = new_event();
    int *number = new_numbers(2), asked = 0;
    zero(stream, number);
    zero(other, number + 1);
    for (int k = 0; k < 10; k++) {
      append(stream, number, k % 2);
      append(other, number + 1, k % 2);
    }
    good(cudaEventRecord(event, stream));
    while (cudaEventQuery(event) == cudaErrorNotReady) asked++;
    expect(asked <= 22, "seed %d: asked %d times", seed, asked);
    while (cudaStreamQuery(other) == cudaErrorNotReady) asked++;
    expect(asked <= 22, "seed %d: asked %d times", seed, asked);
    good(cudaDeviceSynchronize());
    good(cudaFree(number));
    good(cudaEventDestroy(event));
    good(cudaStreamDestroy(stream));
    good(cudaStreamDestroy(other));
    end_well();
  }
}

// A late device does nothing before it is asked, and then one thing.
static void test_late_is_late(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){.when = ZB_STANDIN_LATE, .idle_ms = 100000});
    cudaStream_t stream = new_stream();
    int *number = new_numbers(1), device;
    zero(stream, number);
    append(stream, number, 1);
    for (int k = 0; k < 200; k++) good(cudaGetDevice(&device));
    expect_equal(zb_standin_counts().operations, 0, "operations");
    gives(cudaStreamQuery(stream), cudaErrorNotReady);
    expect_equal(zb_standin_counts().operations, 1, "operations");
    good(cudaStreamSynchronize(stream));
    expect_equal(zb_standin_counts().operations, 2, "operations");
    good(cudaFree(number));
    good(cudaStreamDestroy(stream));
    end_well();
  }
}

static void raise_flag(void *flag) { *(volatile int *)flag = 1; }

// A device works whether or not its host looks.
static void test_nobody_asks(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){.when = ZB_STANDIN_LATE});
  cudaStream_t stream = new_stream();
  int flag = 0;
  zb_standin_enqueue(stream, "raise_flag", raise_flag, &flag, NULL);
  for (int waited = 0; waited < 2000 && !zb_standin_counts().kernels; waited++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  assert_int_equal(zb_standin_counts().kernels, 1);
  assert_int_equal(flag, 1);
  good(cudaStreamDestroy(stream));
  end_well();
}

static int64_t host_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void take_a_while(void *argument) {
  (void)argument;
  for (int64_t start_ns = host_ns(); host_ns() < start_ns + 100000;) {
  }
}

static void test_times(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    cudaStream_t stream = new_stream();
    cudaEvent_t start, stop, untimed = new_event();
    good(cudaEventCreate(&start));
    good(cudaEventCreate(&stop));
    float ms;
    gives(cudaEventElapsedTime(&ms, start, stop), cudaErrorInvalidResourceHandle);
    int64_t before_ns = host_ns();
    good(cudaEventRecord(start, stream));
    zb_standin_enqueue(stream, "take_a_while", take_a_while, NULL, NULL);
    good(cudaEventRecord(stop, stream));
    good(cudaEventRecord(untimed, stream));
    good(cudaStreamSynchronize(stream));
    int64_t whole_ns = host_ns() - before_ns;
    good(cudaEventElapsedTime(&ms, start, stop));
    expect(ms >= 0.1F && (double)ms * 1e6 <= (double)whole_ns * 1.0001, "seed %d: %g ms of %lld ns", seed,
           (double)ms, (long long)whole_ns);
    gives(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
    good(cudaEventDestroy(start));
    good(cudaEventDestroy(stop));
    good(cudaEventDestroy(untimed));
    good(cudaStreamDestroy(stream));
    end_well();
  }
}

// Memory

static void test_memory_is_garbage(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){.memory_bytes = 1000});
  float *at, *more, value;
  good(cudaMalloc((void **)&at, 600));
  gives(cudaMalloc((void **)&more, 600), cudaErrorMemoryAllocation);
  size_t left, total;
  good(cudaMemGetInfo(&left, &total));
  assert_int_equal(left, 400);
  assert_int_equal(total, 1000);
  good(cudaMemcpy(&value, at + 149, sizeof value, cudaMemcpyDeviceToHost));
  assert_true(isnan(value));
  assert_int_equal((uintptr_t)at % 256, 0);
  good(cudaFree(at));
  good(cudaMalloc((void **)&more, 1000));
  good(cudaFree(more));
  good(cudaFree(NULL));
  end_well();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_missing_wait_shows), cmocka_unit_test(test_a_stream_is_a_queue),
      cmocka_unit_test(test_copies_land_late),     cmocka_unit_test(test_events),
      cmocka_unit_test(test_polling_ends),         cmocka_unit_test(test_late_is_late),
      cmocka_unit_test(test_nobody_asks),          cmocka_unit_test(test_times),
      cmocka_unit_test(test_memory_is_garbage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
