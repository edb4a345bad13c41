// progress.h - what long work says on stderr: best, bound, gap, elapsed.
#ifndef ZB_PROGRESS_H
#define ZB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/cli/options.h"
#include "solver/model/engine.h"

// A live line on a terminal, rewritten in place and gone at the end; plain lines otherwise, from the second
// second on and at most one every two. -v: every report a plain line. -q: nothing.
struct zb_progress {
  enum { ZB_PROGRESS_OFF, ZB_PROGRESS_LIVE, ZB_PROGRESS_PLAIN, ZB_PROGRESS_ALL } mode;
  int64_t start_ns, next_ns;
  const char *label; // what is being solved ("1f1b", "1.5x"), NULL: the engine says. Borrowed
  size_t shown;      // columns of the live line now on the terminal
};

// Listens to `problem`, which keeps a pointer to `progress`.
void zb_progress_start(struct zb_progress *progress, const struct zb_options *options, int64_t start_ns,
                       struct zb_problem *problem);
// What the next reports are about. `progress` NULL: nobody listens.
void zb_progress_label(struct zb_progress *progress, const char *label);
void zb_progress_end(struct zb_progress *progress);

#endif
