// progress.h - what a device is at, in a form that another process can read when this one is gone.
#ifndef ZB_PROGRESS_H
#define ZB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/io/text.h"
#include "solver/program/program.h"

struct zb_progress {
  int32_t device; // -1: none here yet
  int64_t step;   // training steps; -1: not begun
  bool finished, waits, through;
  struct zb_instruction last;    // done, with `finished`
  struct zb_instruction at;      // begun
  struct zb_instruction awaited; // the message that it waits for, with `waits`
  size_t bytes;                  // of that message
};

// "device 1, step 0: finished 1RECV_B1", and with `pending` ", at 1B1, waiting for 1RECV_B1 from device 2,
// 128 bytes".
void zb_progress_print(const struct zb_progress *progress, bool pending, struct zb_text *out);

// "waiting for 1RECV_B1 from device 2, 128 bytes".
void zb_progress_print_wait(const struct zb_progress *progress, struct zb_text *out);

#endif
