// deadline.h - when to stop: a wall-clock limit, or the user's signal.
//
// The stop flag is the program's only mutable global: a signal handler sets it, everything that
// works for long polls it through its deadline.
#ifndef ZB_DEADLINE_H
#define ZB_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct zb_deadline {
  int64_t start_ns, end_ns; // of the monotonic clock; end INT64_MAX: none
};

// `limit_s` of wall-clock time from `start_ns` on; 0 is none.
struct zb_deadline zb_deadline_in(int64_t start_ns, double limit_s);
bool zb_deadline_passed(const struct zb_deadline *deadline);
double zb_deadline_elapsed_s(const struct zb_deadline *deadline);
double zb_deadline_left_s(const struct zb_deadline *deadline); // large when there is none

int64_t zb_clock_ns(void);  // monotonic
void zb_stop_request(void); // async-signal-safe
bool zb_stop_requested(void);

#endif
