// A program run to its end and measured: for benches and tests that go through the command line.
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stdint.h>

struct child {
  int exit_code;      // 128 + its number where a signal ended it, as shells say
  double seconds;     // wall-clock, from before the fork until it was reaped
  int64_t peak_bytes; // largest resident set; never below the caller's own at the fork (Linux counts that in)
};

// Runs argv (NULL-terminated, argv[0] is the path) with standard input from /dev/null and output and errors
// into the two files. After `limit_s` seconds (rounded up, 0: none) SIGALRM ends it. False, with errno, where
// it could not be started; a program that is not there ends with exit code 127.
bool child_run(char *const argv[], const char *out_path, const char *err_path, double limit_s,
               struct child *child);

#endif
