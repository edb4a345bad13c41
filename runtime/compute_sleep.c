// compute_sleep.c - computes nothing and takes the profile's times, so that schedules can be watched on a
// machine that has neither the devices nor the cores.
//
// An op ends its time after it began, by the clock: what waking up costs is not added to it but taken from
// what comes next, as far as that begins at once.
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/prctl.h>
#endif
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/compute.h"
#include "solver/model/deadline.h"

// An op that begins this soon after the one before it did not wait for anything.
enum { AT_ONCE_NS = 20000 };

struct sleeper {
  const struct zb_compute_setup *setup;
  int64_t kept_bytes, peak_bytes;
  int64_t planned_end_ns, end_ns; // of the last op: when it should have ended, and when it did
  double nan_in;                  // added to the partials of the device's units: 0, or a NaN after poison
  int64_t ops_done;
};

static enum zb_status look(const struct zb_training *training, const struct zb_demand *need, int count,
                           struct zb_error *error) {
  (void)training, (void)need, (void)count, (void)error;
  return ZB_OK;
}

static int64_t needs(const struct zb_compute_setup *setup) {
  (void)setup;
  return (int64_t)sizeof(struct sleeper);
}

static enum zb_status open_state(const struct zb_compute_setup *setup, void **state, struct zb_error *error) {
  struct sleeper *sleeper = calloc(1, sizeof *sleeper);
  if (!sleeper) return zb_fail_memory(error);
  sleeper->setup = setup;
  *state = sleeper;
  return ZB_OK;
}

static enum zb_status allocate(void *state, size_t bytes, void **buffer, struct zb_error *error) {
  (void)state;
  *buffer = calloc(1, bytes + 1);
  return *buffer ? ZB_OK : zb_fail_memory(error);
}

static void release(void *state, void *buffer) {
  (void)state;
  free(buffer);
}

static enum zb_status begin(void *state, int64_t step, struct zb_error *error) {
  (void)step, (void)error;
  struct sleeper *sleeper = state;
  sleeper->kept_bytes = 0;
  sleeper->planned_end_ns = sleeper->end_ns = 0; // a batch begins when it begins
  sleeper->nan_in = 0;
  sleeper->ops_done = 0;
#ifdef __linux__
  // The kernel may put off a wake-up by 50 us to save power, and the ops are short.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
  return ZB_OK;
}

static void sleep_until(int64_t ns) {
  struct timespec until = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

static enum zb_status run_op(void *state, struct zb_op op, const void *in, void *out,
                             struct zb_interval *when, struct zb_error *error) {
  (void)in, (void)out, (void)error;
  struct sleeper *sleeper = state;
  const struct zb_profile *profile = sleeper->setup->profile;
  int64_t change = zb_op_memory(profile, op), time_ns = zb_op_time(profile, op);
  when->start_ns = zb_clock_ns();
  sleeper->kept_bytes += change;
  if (sleeper->kept_bytes > sleeper->peak_bytes) sleeper->peak_bytes = sleeper->kept_bytes;
  int64_t from_ns = when->start_ns - sleeper->end_ns < AT_ONCE_NS ? sleeper->planned_end_ns : when->start_ns;
  sleeper->planned_end_ns = from_ns + time_ns;
  if (time_ns) sleep_until(sleeper->planned_end_ns);
  when->end_ns = sleeper->end_ns = zb_clock_ns();
  sleeper->ops_done++;
  return ZB_OK;
}

static enum zb_status record(void *state, void **event, struct zb_error *error) {
  (void)state, (void)error;
  *event = NULL;
  return ZB_OK;
}

static enum zb_status await(void *state, void *event, struct zb_error *error) {
  (void)state, (void)event, (void)error;
  return ZB_OK;
}

static enum zb_status finish(void *state, int64_t deadline_ns, bool *done, struct zb_error *error) {
  (void)state, (void)deadline_ns, (void)error;
  *done = true;
  return ZB_OK;
}

static int64_t ops_done(void *state) {
  struct sleeper *sleeper = state;
  return sleeper->ops_done;
}

static enum zb_status norm(void *state, struct zb_error *error) {
  (void)state, (void)error;
  return ZB_OK;
}

static void partials(void *state, double *partial) {
  struct sleeper *sleeper = state;
  const struct zb_compute_setup *setup = sleeper->setup;
  for (int s = 0; s < setup->profile->stages; s++)
    for (int u = setup->first_unit[s];
         setup->profile->device_of[s] == setup->device && u < setup->first_unit[s + 1]; u++)
      partial[u] = sleeper->nan_in;
}

static enum zb_status step(void *state, double scale, bool undoable, struct zb_error *error) {
  (void)state, (void)scale, (void)undoable, (void)error;
  return ZB_OK;
}

static enum zb_status undo(void *state, double scale, struct zb_error *error) {
  (void)state, (void)scale, (void)error;
  return ZB_OK;
}

static enum zb_status poison(void *state, int stage, struct zb_error *error) {
  (void)error;
  struct sleeper *sleeper = state;
  if (sleeper->setup->profile->device_of[stage] == sleeper->setup->device) sleeper->nan_in = (double)NAN;
  return ZB_OK;
}

static bool loss(void *state, double *values) {
  (void)state, (void)values;
  return false;
}

static size_t parameters(void *state, int stage) {
  (void)state, (void)stage;
  return 0;
}

static enum zb_status fetch(void *state, int stage, zb_real *values, struct zb_error *error) {
  (void)state, (void)stage, (void)values, (void)error;
  return ZB_OK;
}

static struct zb_memory_use memory(void *state) {
  struct sleeper *sleeper = state;
  return (struct zb_memory_use){.kept_peak_bytes = sleeper->peak_bytes};
}

const struct zb_compute zb_compute_sleep = {
    .name = "sleep",
    .help = "computes nothing, waits the profile's times",
    .pretends = true,
    .at_once = zb_compute_cores,
    .look = look,
    .needs = needs,
    .open = open_state,
    .close = free,
    .allocate = allocate,
    .release = release,
    .begin = begin,
    .op = run_op,
    .record = record,
    .await = await,
    .finish = finish,
    .ops_done = ops_done,
    .norm = norm,
    .partials = partials,
    .step = step,
    .undo = undo,
    .poison = poison,
    .loss = loss,
    .parameters = parameters,
    .fetch = fetch,
    .memory = memory,
};
