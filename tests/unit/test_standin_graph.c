// Captured streams and graphs of the stand-in device.
#include "tests/standin/standin.h"
#include "tests/unit/standin_unit.h"

// `one` appends 1, then `two` appends 2 while `one` goes on with its own number, then both are joined.
static cudaGraph_t fork_and_join(cudaStream_t one, cudaStream_t two, int *number, bool wait) {
  cudaGraph_t graph;
  cudaEvent_t forked = new_event(), joined = new_event(), start = new_event();
  good(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
  good(cudaEventRecord(start, one));
  good(cudaStreamWaitEvent(two, start, 0));
  append(one, number, 1);
  append(one, number + 1, 1);
  if (wait) {
    good(cudaEventRecord(forked, one));
    good(cudaStreamWaitEvent(two, forked, 0));
  }
  append(two, number, 2);
  append(one, number + 1, 2);
  good(cudaEventRecord(joined, two));
  good(cudaStreamWaitEvent(one, joined, 0));
  append(one, number, 3);
  good(cudaStreamEndCapture(one, &graph));
  good(cudaEventDestroy(forked));
  good(cudaEventDestroy(joined));
  good(cudaEventDestroy(start));
  return graph;
}

// Launched in both streams, so that the second launch waits for the first by itself.
static int launched_twice(bool wait) {
  cudaStream_t one = new_stream(), two = new_stream();
  int *number = new_numbers(2);
  cudaGraphExec_t executable;
  zero(one, number);
  zero(one, number + 1);
  good(cudaStreamSynchronize(one));
  cudaGraph_t graph = fork_and_join(one, two, number, wait);
  // Nothing has run yet.
  good(cudaStreamSynchronize(one));
  expect(value_of(number) == 0, "seed %d: a captured operation ran", seed);
  good(cudaGraphInstantiate(&executable, graph, 0));
  good(cudaGraphDestroy(graph));
  good(cudaGraphLaunch(executable, one));
  good(cudaGraphLaunch(executable, two));
  append(two, number + 1, 5);
  good(cudaStreamSynchronize(two));
  good(cudaStreamSynchronize(one));
  expect(value_of(number + 1) == 12125, "seed %d: %d", seed, value_of(number + 1));
  int value = value_of(number);
  good(cudaGraphExecDestroy(executable));
  good(cudaFree(number));
  good(cudaStreamDestroy(one));
  good(cudaStreamDestroy(two));
  return value;
}

static void test_fork_and_join(void **state) {
  (void)state;
  int wrong = 0;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    int with = launched_twice(true), without = launched_twice(false);
    expect(with == 123123, "seed %d: %d", seed, with);
    wrong += without != 123123;
    end_well();
  }
  expect(wrong > seeds() / 10, "a missing wait in a graph showed in %d of %d runs", wrong, seeds());
}

// An event that a graph records is recorded by each launch, and others can wait for it.
static void test_external_events(void **state) {
  (void)state;
  for (seed = 0; seed < seeds(); seed++) {
    begin((struct zb_standin){0});
    cudaStream_t one = new_stream(), two = new_stream();
    cudaEvent_t start, stop;
    good(cudaEventCreate(&start));
    good(cudaEventCreate(&stop));
    int *number = new_numbers(1);
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    gives(cudaEventRecordWithFlags(start, one, cudaEventRecordExternal), cudaErrorInvalidValue);
    cudaGetLastError();
    good(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    good(cudaEventRecordWithFlags(start, one, cudaEventRecordExternal));
    append(one, number, 1);
    good(cudaEventRecordWithFlags(stop, one, cudaEventRecordExternal));
    good(cudaStreamEndCapture(one, &graph));
    good(cudaGraphInstantiate(&executable, graph, 0));
    for (int launch = 0; launch < 3; launch++) {
      float ms = -1;
      good(cudaMemset(number, 0, sizeof *number));
      good(cudaGraphLaunch(executable, one));
      good(cudaStreamWaitEvent(two, stop, 0));
      append(two, number, 2);
      good(cudaStreamSynchronize(two));
      expect(value_of(number) == 12, "seed %d, launch %d: %d", seed, launch, value_of(number));
      good(cudaEventElapsedTime(&ms, start, stop));
      expect(ms >= 0, "seed %d: %g ms", seed, (double)ms);
      good(cudaStreamSynchronize(one));
    }
    good(cudaGraphExecDestroy(executable));
    good(cudaGraphDestroy(graph));
    good(cudaFree(number));
    good(cudaEventDestroy(start));
    good(cudaEventDestroy(stop));
    good(cudaStreamDestroy(one));
    good(cudaStreamDestroy(two));
    end_well();
  }
}

static void misuse_capture(int which) {
  cudaStream_t one = new_stream(), two = new_stream();
  cudaEvent_t before = new_event(), event = new_event(), other = new_event();
  int *number = new_numbers(1), ordinary = 0;
  void *more;
  cudaGraph_t graph = NULL;
  enum cudaStreamCaptureStatus capturing;
  zero(two, number);
  good(cudaEventRecord(before, two));
  good(cudaStreamSynchronize(two));
  good(cudaStreamBeginCapture(one,
                              which == 7 ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal));
  append(one, number, 1);
  good(cudaEventRecord(event, one));
  switch (which) {
  case 0: // forked and never joined
    good(cudaStreamWaitEvent(two, event, 0));
    append(two, number, 2);
    gives(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
    break;
  case 1: // ended where it did not begin
    good(cudaStreamWaitEvent(two, event, 0));
    gives(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
    good(cudaStreamEndCapture(one, &graph));
    break;
  case 2: // a wait for what is not in the graph
    gives(cudaStreamWaitEvent(one, before, 0), cudaErrorStreamCaptureIsolation);
    gives(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
    break;
  case 3: // two captures become one
    good(cudaStreamBeginCapture(two, cudaStreamCaptureModeThreadLocal));
    good(cudaEventRecord(other, two));
    gives(cudaStreamWaitEvent(one, other, 0), cudaErrorStreamCaptureMerge);
    gives(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureInvalidated);
    gives(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
    break;
  case 4: // a host that waits for what does not run
    gives(cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
    gives(cudaStreamIsCapturing(one, &capturing), cudaSuccess);
    assert_int_equal(capturing, cudaStreamCaptureStatusInvalidated);
    gives(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
    break;
  case 5: // an event that was only captured
    good(cudaStreamEndCapture(one, &graph));
    gives(cudaEventQuery(event), cudaErrorCapturedEvent);
    gives(cudaStreamWaitEvent(two, event, 0), cudaErrorCapturedEvent);
    break;
  case 6: // ordinary memory
    gives(cudaMemcpyAsync(number, &ordinary, 4, cudaMemcpyHostToDevice, one),
          cudaErrorStreamCaptureUnsupported);
    good(cudaStreamEndCapture(one, &graph));
    break;
  case 7: // an allocation meanwhile
    gives(cudaMalloc(&more, 4), cudaErrorStreamCaptureUnsupported);
    gives(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
    break;
  default:
    break;
  }
  cudaStreamIsCapturing(one, &capturing);
  assert_int_equal(capturing == cudaStreamCaptureStatusNone, which < 8);
  if (graph) good(cudaGraphDestroy(graph));
  if (which == 8) return;
  good(cudaStreamSynchronize(two));
  good(cudaFree(number));
  good(cudaEventDestroy(before));
  good(cudaEventDestroy(event));
  good(cudaEventDestroy(other));
  good(cudaStreamDestroy(one));
  good(cudaStreamDestroy(two));
}

static void test_misuse_of_a_capture(void **state) {
  (void)state;
  // NULL: an error, and nothing to report besides.
  static const char *const words[] = {NULL,
                                      NULL,
                                      "was recorded outside of the capture",
                                      NULL,
                                      NULL,
                                      "was recorded in a capture that has ended",
                                      "ordinary memory of the host in a captured stream",
                                      NULL,
                                      "a capture was not ended"};
  for (int which = 0; which < (int)(sizeof words / sizeof words[0]); which++) {
    seed = which;
    begin((struct zb_standin){0});
    misuse_capture(which);
    if (words[which])
      end_badly(words[which]);
    else
      end_well();
  }
}

static void test_destroyed_while_launched(void **state) {
  (void)state;
  seed = 1;
  begin((struct zb_standin){.when = ZB_STANDIN_LATE, .idle_ms = 100000});
  cudaStream_t stream = new_stream(), other = new_stream();
  int *number = new_numbers(2);
  cudaGraph_t graph = fork_and_join(stream, other, number, true);
  cudaGraphExec_t executable;
  good(cudaGraphInstantiate(&executable, graph, 0));
  good(cudaGraphLaunch(executable, stream));
  good(cudaGraphExecDestroy(executable));
  end_badly("cudaGraphExecDestroy: a launch of it is still queued");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fork_and_join),
      cmocka_unit_test(test_external_events),
      cmocka_unit_test(test_misuse_of_a_capture),
      cmocka_unit_test(test_destroyed_while_launched),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
