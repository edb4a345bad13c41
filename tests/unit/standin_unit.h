// standin_unit.h - what the tests of the stand-in device share: runs by seed, checked calls, a small kernel.
#ifndef STANDIN_UNIT_H
#define STANDIN_UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/standin/standin.h"
#include "tests/unit/unit.h"

// How many runs a test makes.
static inline int seeds(void) { return getenv("ZB_LONG") ? 1000 : 120; }

#define good(call)                                                                                           \
  do {                                                                                                       \
    cudaError_t status_ = (call);                                                                            \
    if (status_) fail_msg("seed %d: %s: %s", seed, #call, cudaGetErrorName(status_));                        \
  } while (0)
#define gives(call, wanted)                                                                                  \
  do {                                                                                                       \
    cudaError_t status_ = (call);                                                                            \
    if (status_ != (wanted)) fail_msg("%s: %s, expected %s", #call, cudaGetErrorName(status_), #wanted);     \
  } while (0)

static int seed; // of this run; every failed check says it

static inline void begin(struct zb_standin setup) {
  setup.seed = (uint64_t)seed;
  if (!setup.when) setup.when = (enum zb_standin_when)(seed % 3);
  zb_standin_begin(&setup);
}

static inline void end_well(void) {
  char report[4096];
  expect(zb_standin_end(report, sizeof report), "seed %d: %s", seed, report);
}

// Ends with a report that has these words.
static inline void end_badly(const char *words) {
  char report[4096];
  expect(!zb_standin_end(report, sizeof report), "nothing reported, expected: %s", words);
  expect(strstr(report, words), "reported: %s, expected: %s", report, words);
}

static inline cudaStream_t new_stream(void) {
  cudaStream_t stream;
  good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
static inline cudaEvent_t new_event(void) {
  cudaEvent_t event;
  good(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}
static inline int *new_numbers(int count) {
  void *at;
  good(cudaMalloc(&at, (size_t)count * sizeof(int)));
  return at;
}

// A kernel that appends a digit to a number in device memory.
struct append {
  int *number, digit;
};
static inline void append_run(void *argument) {
  struct append *append = argument;
  *append->number = *append->number * 10 + append->digit;
}
static inline void append(cudaStream_t stream, int *number, int digit) {
  struct append *made = malloc(sizeof *made);
  assert_non_null(made);
  *made = (struct append){number, digit};
  zb_standin_enqueue(stream, "append", append_run, made, free);
  good(cudaGetLastError());
}
static inline void zero(cudaStream_t stream, int *number) {
  good(cudaMemsetAsync(number, 0, sizeof *number, stream));
}

static inline int value_of(const int *number) {
  int value;
  good(cudaMemcpy(&value, number, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

#endif
