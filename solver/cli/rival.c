// rival.c - how much better the memory of one method can be used.
//
// A method that keeps less than the limit is not beaten fairly by one that fills it. So each device's limit
// becomes what the method's own schedule keeps there, and `auto` starts from that schedule: it has what it
// needs to be as good, and what it finds beyond fits wherever the method does.
#include "solver/cli/compare.h"
#include "solver/cli/engines.h"
#include "solver/cli/method.h"

#include <string.h>

static enum zb_status run_again(const struct zb_problem *problem, const char *method,
                                struct zb_answer *answer, struct zb_error *error) {
  const struct zb_engine *engine;
  enum zb_status status = zb_engine_find(method, strlen(method), &engine, error);
  return status == ZB_OK ? zb_method_run(engine, problem, NULL, answer, error) : status;
}

enum zb_status zb_compare_challenge(const struct zb_profile *placed, const struct zb_problem *shared,
                                    const struct zb_compare_row *row, struct zb_compare_rival *rival,
                                    struct zb_error *error) {
  struct zb_problem problem = *shared;
  struct zb_profile *tight = NULL;
  struct zb_answer first = {0}, second = {0};
  problem.profile = placed;
  problem.progress = NULL;
  enum zb_status status = run_again(&problem, row->method, &first, error);
  if (status == ZB_OK) status = zb_profile_copy(placed, &tight, error);
  if (status == ZB_OK) {
    for (int d = 0; d < placed->devices && placed->has_memory; d++)
      tight->limit_bytes[d] = first.timeline.peak_bytes[d];
    status = zb_profile_finish(tight, error);
  }
  if (status == ZB_OK) {
    problem.profile = tight;
    problem.progress = shared->progress;
    status = zb_method_run(&zb_engine_auto, &problem, first.schedule, &second, error);
  }
  if (status == ZB_OK && second.schedule)
    *rival = (struct zb_compare_rival){.method = row->method,
                                       .placement = row->placement,
                                       .chunks = row->chunks,
                                       .has_memory = placed->has_memory,
                                       .method_ns = first.cost_ns,
                                       .auto_ns = second.cost_ns,
                                       .bound_ns = second.bound_ns};
  zb_answer_free(&first);
  zb_answer_free(&second);
  zb_profile_free(tight);
  return status;
}
