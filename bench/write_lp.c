// Writes the integer program of a profile as CPLEX LP text, for the peers that read one.
//
//   write_lp PROFILE LIMIT COST_NS FILE [--no-windows]
//
// LIMIT is a --memory-limit or `profile` for the profile's own; schedules above COST_NS are no solutions (0:
// above what one microbatch after the other costs). Span. A tick, the program's unit of time, is named in its
// first line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ilp/ilp_engine.h"
#include "solver/cli/quantity.h"
#include "solver/io/profile_json.h"

static enum zb_status write_program(const struct zb_profile *profile, int64_t most_ns, bool no_windows,
                                    const char *path, struct zb_error *error) {
  const struct zb_problem problem = {.profile = profile,
                                     .objective = ZB_SPAN,
                                     .threads = 1,
                                     .seed = 1,
                                     .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  const struct zb_ilp_options options = {.no_windows = no_windows};
  FILE *file = fopen(path, "w");
  if (!file) return zb_fail(error, ZB_FAILED, "%s: cannot be opened", path);
  enum zb_status status = zb_ilp_write_lp(&problem, &options, most_ns, file, error);
  if (fclose(file) != 0 && status == ZB_OK) status = zb_fail(error, ZB_FAILED, "%s: cannot be written", path);
  return status;
}

int main(int argc, char **argv) {
  const bool no_windows = argc == 6 && strcmp(argv[5], "--no-windows") == 0;
  if (argc != 5 && !no_windows) {
    fputs("usage: write_lp PROFILE LIMIT COST_NS FILE [--no-windows]\n", stderr);
    return 2;
  }
  struct zb_error error = {0};
  struct zb_profile *profile = NULL;
  struct zb_limit limit;
  enum zb_status status = zb_profile_read(argv[1], &profile, &error);
  if (status == ZB_OK && strcmp(argv[2], "profile") != 0) {
    status = zb_limit_read(argv[2], &limit, &error);
    if (status == ZB_OK) status = zb_limit_apply(limit, profile, &error);
  }
  if (status == ZB_OK)
    status = write_program(profile, strtoll(argv[3], NULL, 10), no_windows, argv[4], &error);
  zb_profile_free(profile);
  if (status != ZB_OK)
    fprintf(stderr, "write_lp: %s%s%s\n", error.path, error.path[0] ? ": " : "", error.text);
  return status == ZB_OK ? 0 : zb_status_exit_code(status);
}
