// start_schedule.c - only the orders are taken: times, peaks and bounds are this problem's own.
#include "solver/cli/start_schedule.h"

#include <string.h>

#include "solver/cli/engines.h"
#include "solver/io/file.h"
#include "solver/io/schedule_json.h"
#include "solver/model/check.h"

static enum zb_status check_shape(const struct zb_profile *from, const struct zb_profile *to,
                                  struct zb_error *error) {
  if (from->devices != to->devices || from->stages != to->stages || from->microbatches != to->microbatches)
    return zb_fail(error, ZB_BAD_INPUT,
                   "--start: %d devices, %d stages, %d microbatches, expected %d, %d, %d", from->devices,
                   from->stages, from->microbatches, to->devices, to->stages, to->microbatches);
  for (int s = 0; s < to->stages; s++)
    if (from->device_of[s] != to->device_of[s])
      return zb_fail(error, ZB_BAD_INPUT, "--start: stage %d is on device %d, expected on device %d", s,
                     from->device_of[s], to->device_of[s]);
  return ZB_OK;
}

// Span bounds are about schedules whose devices all begin with the same microbatch (README, Words).
static enum zb_status check_first(const struct zb_problem *problem, const struct zb_schedule *schedule,
                                  struct zb_error *error) {
  if (problem->objective != ZB_SPAN) return ZB_OK;
  for (int d = 1; d < schedule->devices; d++) {
    const struct zb_op *a = &schedule->ops[schedule->first[0]], *b = &schedule->ops[schedule->first[d]];
    if (a->microbatch != b->microbatch)
      return zb_fail(
          error, ZB_BAD_INPUT,
          "--start: device 0 begins with microbatch %d, device %d with %d: span bounds are not about "
          "such orders",
          (int)a->microbatch, d, (int)b->microbatch);
  }
  return ZB_OK;
}

enum zb_status zb_start_schedule_read(const char *path, const struct zb_engine *engine,
                                      const struct zb_problem *problem, struct zb_schedule **schedule,
                                      struct zb_error *error) {
  if (zb_engine_part_of(engine) == ZB_PART_HEURISTIC)
    return zb_fail(error, ZB_BAD_INPUT, "--start: %s constructs, it does not search on from a schedule",
                   engine->name);
  struct zb_answer answer = {0};
  struct zb_timeline timeline = {0};
  struct zb_error why = {0};
  enum zb_status status = zb_answer_read(path, &answer, error);
  if (status == ZB_OK && !answer.schedule)
    status =
        zb_fail(error, ZB_BAD_INPUT, "--start: an %s answer has no schedule", zb_status_word(answer.status));
  if (status == ZB_OK) status = check_shape(answer.profile, problem->profile, error);
  if (status == ZB_OK) {
    status = zb_check_schedule(problem->profile, answer.schedule, &timeline, &why);
    if (status == ZB_WRONG || status == ZB_OVER_LIMIT)
      status = zb_fail(error, ZB_BAD_INPUT, "--start: %s", why.text);
    else if (status != ZB_OK)
      status = zb_fail(error, status, "%s", why.text);
  }
  if (status == ZB_OK) status = check_first(problem, answer.schedule, error);
  if (status == ZB_OK) {
    *schedule = answer.schedule;
    answer.schedule = NULL;
  } else if (error && !error->path[0]) {
    zb_error_set_path(error, path);
  }
  zb_timeline_free(&timeline);
  zb_answer_free(&answer);
  return status;
}
