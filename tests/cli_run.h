// One solve as a user runs it: `zbsolve solve --json -v`, then `zbcheck` on what it wrote; measured and
// judged.
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/status.h"
#include "tests/child.h"

enum { CLI_RUN_WORD = 64, CLI_RUN_PATH = 512 };

struct cli_run {
  // What to run. Texts are borrowed.
  const char *build;        // the directory of both programs
  const char *folder;       // where schedule.json, out and err go
  const char *profile;      // path
  const char *memory_limit; // NULL: the profile's own
  int microbatches;         // 0: the profile's own
  double limit_s;           // 0: none
  long threads;             // 0: zbsolve's default

  // What came of it.
  struct child solve, check;
  char status[CLI_RUN_WORD]; // of the schedule; "failed" where zbsolve printed none
  bool good;                 // the solve ended in a way it may, and zbcheck agrees to what it wrote
  int64_t cost_ns, bound_ns; // cost 0: no schedule
  double gap;                // 0 where infeasible, 1 without a schedule
  // When the cost and the bound last became better, in s as the progress lines tell (to 0.1), and which of
  // the two moved last: "schedule", "bound" or "both" (in one line). "-" where neither is told.
  double schedule_moved_s, bound_moved_s;
  const char *last_moved;
};

// FAILED where a program could not be run or its output not be read; whatever the programs say is a result.
enum zb_status cli_run(struct cli_run *run, struct zb_error *error);

bool cli_run_closed(const struct cli_run *run); // optimal, or proven infeasible

#endif
