// What the stand-in device says of misuse, and what goes wrong in it on demand.
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

static void misuse_copy(int which) {
  cudaStream_t stream = new_stream();
  int *a = new_numbers(8), *pinned;
  good(cudaMallocHost((void **)&pinned, 32));
  switch (which) {
  case 0:
    gives(cudaMemcpyAsync(a, pinned, 36, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
    break;
  case 1:
    gives(cudaMemcpyAsync(a + 1, a, 8, cudaMemcpyDeviceToDevice, stream), cudaErrorInvalidValue);
    break;
  case 2:
    gives(cudaMemcpyAsync(pinned, a, 4, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
    break;
  case 3:
    good(cudaMemcpyAsync(a, pinned, 4, cudaMemcpyHostToDevice, stream));
    good(cudaFreeHost(pinned));
    good(cudaStreamSynchronize(stream));
    break;
  case 4:
    good(cudaFree(a));
    gives(cudaFree(a), cudaErrorInvalidValue);
    break;
  case 5:
    a[8] = 0;
    good(cudaFree(a));
    break;
  case 6:
    good(cudaMemcpyAsync(a, pinned, 4, cudaMemcpyHostToDevice, stream));
    good(cudaStreamDestroy(stream));
    break;
  case 7:
    gives(cudaMemsetAsync(a, 0, 4, NULL), cudaErrorInvalidResourceHandle);
    break;
  case 8:
    good(cudaSetDevice(1));
    zb_standin_enqueue(stream, "append", append_run, NULL, NULL);
    gives(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    break;
  case 9:
    gives(cudaMemcpyPeerAsync(a, 1, a + 4, 0, 4, stream), cudaErrorInvalidValue);
    break;
  default:
    break; // leaks alone
  }
}

static void test_misuse_is_reported(void **state) {
  (void)state;
  static const char *const words[] = {"36 bytes from 0 of device 0's memory of 32 bytes",
                                      "source and destination overlap",
                                      "pinned memory of 32 bytes is on the wrong side",
                                      "pinned memory of 32 bytes was freed",
                                      "was given back before",
                                      "something wrote behind the end of device 0's memory of 32 bytes",
                                      "still has 1 operations queued, cudaMemcpyAsync first",
                                      "cudaMemsetAsync: the default stream",
                                      "launched to a stream of device 0 from a thread on device 1",
                                      "not of the devices that it names",
                                      "not destroyed: stream 0 of device 0",
                                      "not freed: device 0's memory of 32 bytes",
                                      "not freed: pinned memory of 32 bytes"};
  for (int which = 0; which < (int)(sizeof words / sizeof words[0]); which++) {
    seed = 2;
    begin((struct zb_standin){.when = ZB_STANDIN_LATE, .idle_ms = 100000});
    misuse_copy(which);
    end_badly(words[which]);
  }
}

// What goes wrong on demand

static int discarded;
static void nothing(void *argument) { (void)argument; }
static void discard(void *argument) {
  (void)argument;
  discarded++;
}

// Makes, runs and releases a little of everything; the first error, and all released whatever happens.
static cudaError_t little_program(void) {
  cudaStream_t stream = NULL;
  cudaEvent_t event = NULL;
  void *device = NULL, *pinned = NULL;
  cudaError_t status;
  if ((status = cudaSetDevice(0))) goto done;
  if ((status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) goto done;
  if ((status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) goto done;
  if ((status = cudaMalloc(&device, 64))) goto done;
  if ((status = cudaMallocHost(&pinned, 64))) goto done;
  if ((status = cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream))) goto done;
  zb_standin_enqueue(stream, "nothing", nothing, NULL, discard);
  if ((status = cudaGetLastError())) goto done;
  if ((status = cudaEventRecord(event, stream))) goto done;
  status = cudaEventSynchronize(event);
done:
  // Waiting may be the call that fails.
  while (stream && cudaStreamSynchronize(stream) == cudaErrorUnknown) {
  }
  cudaFree(device);
  cudaFreeHost(pinned);
  if (event) cudaEventDestroy(event);
  if (stream) cudaStreamDestroy(stream);
  cudaGetLastError();
  return status;
}

static void test_every_call_can_fail(void **state) {
  (void)state;
  int failed = 0;
  for (seed = 1; seed < 100; seed++) {
    discarded = 0;
    begin((struct zb_standin){.fail_call = seed});
    cudaError_t status = little_program();
    struct zb_standin_counts counts = zb_standin_counts();
    end_well();
    if (!counts.faults) break;
    failed += status == cudaErrorUnknown;
    assert_true(discarded <= 1);
  }
  // Each of the nine before the last synchronisation, which is not the program's own.
  assert_int_equal(failed, 9);
  assert_int_equal(discarded, 1);
}

static void test_no_device(void **state) {
  (void)state;
  seed = 1;
  int count;
  begin((struct zb_standin){.no_driver = 1});
  gives(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  assert_int_equal(little_program(), cudaErrorInsufficientDriver);
  end_well();
  begin((struct zb_standin){.no_device = 1});
  gives(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  end_well();
  begin((struct zb_standin){.fail_allocation = 2});
  assert_int_equal(little_program(), cudaErrorMemoryAllocation);
  assert_int_equal(zb_standin_counts().faults, 1);
  end_well();
  begin((struct zb_standin){.devices = 3});
  good(cudaGetDeviceCount(&count));
  assert_int_equal(count, 3);
  gives(cudaSetDevice(3), cudaErrorInvalidDevice);
  end_well();
  char bus[16];
  begin((struct zb_standin){.visible = 31});
  good(cudaGetDeviceCount(&count));
  assert_int_equal(count, 2);
  good(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  assert_string_equal(bus, "0000:03:00.0");
  good(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
  assert_string_equal(bus, "0000:01:00.0");
  end_well();
  begin((struct zb_standin){.visible = 331});
  gives(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  end_well();
}

static void test_a_kernel_breaks_its_device(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){.fail_kernel = 2});
    cudaStream_t stream = new_stream();
    int *number = new_numbers(1);
    zero(stream, number);
    append(stream, number, 1);
    append(stream, number, 2);
    gives(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    void *more;
    gives(cudaMalloc(&more, 4), cudaErrorIllegalAddress);
    gives(cudaStreamQuery(stream), cudaErrorIllegalAddress);
    good(cudaFree(number));
    gives(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
    end_well();
  }
}

static void test_a_kernel_hangs(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){.hang_kernel = 1, .patience_ms = 20});
  cudaStream_t stream = new_stream();
  zb_standin_enqueue(stream, "nothing", nothing, NULL, discard);
  gives(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  end_badly("stream 0 of device 0: nothing does not end, 1 queued");
}

// Many threads at once, each with what is its own.
static void *little_programs(void *argument) {
  for (int k = 0; k < 50; k++)
    if (little_program()) *(int *)argument = 1;
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  for (seed = 0; seed < 6; seed++) {
    begin((struct zb_standin){0});
    pthread_t threads[4];
    int failed[4] = {0};
    for (int t = 0; t < 4; t++) pthread_create(&threads[t], NULL, little_programs, &failed[t]);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < 4; t++) assert_int_equal(failed[t], 0);
    assert_int_equal(zb_standin_counts().kernels, 200);
    end_well();
  }
}

// Set up by the environment, it says at exit what is wrong.
static int exit_code_of(const char *setup, bool leak) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    void *at;
    setenv("ZB_STANDIN", setup, 1);
    if (!freopen("/dev/null", "w", stderr) || cudaMalloc(&at, 4)) _exit(2);
    if (!leak) cudaFree(at);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_environment(void **state) {
  (void)state;
  assert_int_equal(exit_code_of("seed=4,when=late", false), 0);
  assert_int_equal(exit_code_of("seed=4,when=late", true), 99);
  assert_int_equal(exit_code_of("seed=4,unchecked=1", true), 0);
  assert_int_equal(exit_code_of("memory_bytes=3", false), 2);
  assert_int_equal(exit_code_of("sead=4", false), 99);
  assert_int_equal(exit_code_of("when=soon", false), 99);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      // First: a child starts threads of its own.
      cmocka_unit_test(test_environment),
      cmocka_unit_test(test_misuse_is_reported),
      cmocka_unit_test(test_every_call_can_fail),
      cmocka_unit_test(test_no_device),
      cmocka_unit_test(test_a_kernel_breaks_its_device),
      cmocka_unit_test(test_a_kernel_hangs),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
