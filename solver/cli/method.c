// method.c - what solve, compare and frontier share between the options and the answer.
#include "solver/cli/method.h"

#include <stdio.h>
#include <unistd.h>

#include "solver/cli/engines.h"
#include "solver/cli/entry.h"
#include "solver/io/file.h"
#include "solver/io/profile_json.h"
#include "solver/model/number.h"

enum zb_status zb_method_profile_at(const struct zb_options *options, const char *path,
                                    struct zb_profile **profile, struct zb_error *error) {
  struct zb_profile *read = NULL;
  enum zb_status status = zb_profile_read(path, &read, error);
  if (status != ZB_OK) return status;
  if (options->microbatches) read->microbatches = (int)options->microbatches;
  status = zb_limit_apply(options->memory_limit, read, error);
  if (status == ZB_OK) status = zb_profile_finish(read, error);
  if (status != ZB_OK) {
    zb_error_set_path(error, path);
    zb_profile_free(read);
    return status;
  }
  *profile = read;
  return ZB_OK;
}

enum zb_status zb_method_profile(const struct zb_options *options, struct zb_profile **profile,
                                 struct zb_error *error) {
  return zb_method_profile_at(options, options->operand, profile, error);
}

static int processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > 1024 ? 1024 : (int)count;
}

struct zb_problem zb_method_problem(const struct zb_options *options, int64_t start_ns) {
  return (struct zb_problem){
      .objective = (enum zb_objective)options->objective,
      .threads = options->threads ? (int)options->threads : processors(),
      .seed = (uint64_t)options->seed,
      .deadline = zb_deadline_in(start_ns, options->time_limit_s),
  };
}

// What --chunks asks for decides the placement only where the method leaves it open: one stage a device is a
// chain, several are a loop, unless the profile already has that many in a place of its own.
enum zb_status zb_method_where(const struct zb_engine *engine, const struct zb_profile *profile,
                               int64_t chunks, enum zb_placement *where, int *stages_each,
                               struct zb_error *error) {
  enum zb_placement placement = profile->placement;
  int stages = chunks ? (int)chunks : profile->chunks;
  switch (engine->need) {
  case ZB_NEED_ANY:
    if (stages != profile->chunks) placement = stages == 1 ? ZB_CHAIN : ZB_LOOP;
    break;
  case ZB_NEED_CHAIN:
    if (chunks > 1) return zb_fail(error, ZB_BAD_INPUT, "--chunks: %s runs one stage a device", engine->name);
    placement = ZB_CHAIN;
    stages = 1;
    break;
  case ZB_NEED_LOOP:
    placement = ZB_LOOP;
    if (!chunks && stages == 1) stages = 2;
    break;
  case ZB_NEED_V:
    if (chunks && chunks != 2)
      return zb_fail(error, ZB_BAD_INPUT, "--chunks: %s runs two stages a device", engine->name);
    placement = ZB_V;
    stages = 2;
    break;
  }
  *where = placement;
  *stages_each = stages;
  return ZB_OK;
}

enum zb_status zb_method_place(const struct zb_engine *engine, const struct zb_profile *profile,
                               int64_t chunks, struct zb_profile **placed, struct zb_error *error) {
  struct zb_entry entry = {.engine = engine};
  enum zb_status status = zb_method_where(engine, profile, chunks, &entry.placement, &entry.chunks, error);
  return status == ZB_OK ? zb_entry_place(&entry, profile, placed, error) : status;
}

struct zb_deadline zb_method_deadline(const struct zb_deadline *all, int shares) {
  struct zb_deadline part = *all;
  int64_t now_ns = zb_clock_ns();
  if (all->end_ns != INT64_MAX && now_ns < all->end_ns)
    part.end_ns = now_ns + (all->end_ns - now_ns) / shares;
  return part;
}

// A search starts from the heuristics' best where that beats what it is given: milliseconds that save it
// seconds.
static enum zb_status solve_from_best(const struct zb_engine *engine, const struct zb_problem *problem,
                                      const struct zb_schedule *incumbent, struct zb_result *result,
                                      struct zb_error *error) {
  struct zb_result start;
  enum zb_status status = zb_auto_heuristics(problem, incumbent, &start, error);
  if (status != ZB_OK) return status;
  status = engine->solve(problem, start.schedule, result, error);
  zb_result_free(&start);
  return status;
}

enum zb_status zb_method_run(const struct zb_engine *engine, const struct zb_problem *problem,
                             const struct zb_schedule *incumbent, struct zb_answer *answer,
                             struct zb_error *error) {
  struct zb_result result;
  struct zb_error why = {0}; // an engine may fill it on its way and still succeed
  const enum zb_engine_part part = zb_engine_part_of(engine);
  const bool searches = part == ZB_PART_SEARCH || part == ZB_PART_ALONE;
  enum zb_status status = searches ? solve_from_best(engine, problem, incumbent, &result, &why)
                                   : engine->solve(problem, incumbent, &result, &why);
  if (status != ZB_OK) return zb_fail(error, status, "%s", why.text);
  return zb_answer_from_result(problem, engine->name, &result, answer, error);
}

// Bytes as people read them and exactly, which for small numbers is the same.
static const char *describe(int64_t bytes, char *text, size_t size) {
  char shown[ZB_QUANTITY_TEXT];
  zb_bytes_text(bytes, shown);
  if (bytes < 1024)
    snprintf(text, size, "%s", shown);
  else
    snprintf(text, size, "%s (%lld B)", shown, (long long)bytes);
  return text;
}

enum { DESCRIPTION = 96 };

// The device that asks for most of those above their limit; with equal limits that is also the least that
// would do.
void zb_method_explain_over_limit(const struct zb_answer *answer, struct zb_error *error) {
  const struct zb_profile *profile = answer->profile;
  const int64_t *peak = answer->timeline.peak_bytes;
  int most = -1, over = 0;
  for (int d = 0; d < profile->devices; d++) {
    if (peak[d] <= profile->limit_bytes[d]) continue;
    over++;
    if (most < 0 || peak[d] > peak[most]) most = d;
  }
  if (most < 0) return;
  char shown[ZB_QUANTITY_TEXT], multiple[ZB_QUANTITY_TEXT], limit[DESCRIPTION], others[48] = "";
  int64_t x = zb_multiple_for(peak[most] - profile->static_bytes[most], zb_limit_unit(profile));
  if (over > 1) snprintf(others, sizeof others, "; %d devices are over theirs", over);
  zb_fail(error, ZB_OVER_LIMIT, "%s needs %s (%lld B, %s) on device %d, its limit is %s%s", answer->method,
          zb_bytes_text(peak[most], shown), (long long)peak[most], zb_multiple_text(x, multiple), most,
          describe(profile->limit_bytes[most], limit, sizeof limit), others);
}

void zb_method_explain_infeasible(const struct zb_reason *reason, struct zb_error *error) {
  char limit[DESCRIPTION], least[DESCRIPTION];
  zb_fail(error, ZB_INFEASIBLE, "infeasible: any order keeps at least %s on device %d, its limit is %s",
          describe(reason->least_peak_bytes, least, sizeof least), reason->device,
          describe(reason->limit_bytes, limit, sizeof limit));
}

int64_t zb_method_most_bytes(const struct zb_timeline *timeline, int *device) {
  int most = 0;
  for (int d = 1; d < timeline->devices; d++)
    if (timeline->peak_bytes[d] > timeline->peak_bytes[most]) most = d;
  if (device) *device = most;
  return timeline->peak_bytes[most];
}

void zb_method_sends(const struct zb_profile *profile, int *sends) {
  for (int d = 0; d < profile->devices; d++) sends[d] = 0;
  for (int s = 0; s + 1 < profile->stages; s++) {
    if (profile->device_of[s] == profile->device_of[s + 1]) continue;
    sends[profile->device_of[s]]++;
    sends[profile->device_of[s + 1]]++;
  }
}

int64_t zb_method_comm_count(const struct zb_profile *profile) {
  int64_t crossings = 0;
  for (int s = 0; s + 1 < profile->stages; s++)
    crossings += profile->device_of[s] != profile->device_of[s + 1];
  return 2 * crossings * profile->microbatches;
}
