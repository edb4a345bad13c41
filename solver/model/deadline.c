// deadline.c - the monotonic clock and the stop flag.
#include "solver/model/deadline.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t stop_flag;

void zb_stop_request(void) { stop_flag = 1; }

bool zb_stop_requested(void) { return stop_flag != 0; }

int64_t zb_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct zb_deadline zb_deadline_in(int64_t start_ns, double limit_s) {
  bool none = !(limit_s > 0) || limit_s > 1e9;
  return (struct zb_deadline){start_ns, none ? INT64_MAX : start_ns + (int64_t)(limit_s * 1e9)};
}

bool zb_deadline_passed(const struct zb_deadline *deadline) {
  return stop_flag || (deadline->end_ns != INT64_MAX && zb_clock_ns() >= deadline->end_ns);
}

double zb_deadline_elapsed_s(const struct zb_deadline *deadline) {
  return (double)(zb_clock_ns() - deadline->start_ns) * 1e-9;
}

double zb_deadline_left_s(const struct zb_deadline *deadline) {
  if (stop_flag) return 0.0;
  return deadline->end_ns == INT64_MAX ? 1e9 : (double)(deadline->end_ns - zb_clock_ns()) * 1e-9;
}
