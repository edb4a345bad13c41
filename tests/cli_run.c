#include "tests/cli_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/model/number.h"

enum { CHECK_LIMIT_S = 1800, GRACE_S = 30, NOT_STARTED = 127 };

// "1310.405 ms" in ns; negative where there is no such time.
static double time_ns(const char *text) {
  static const struct {
    const char *unit;
    double ns;
  } units[] = {{" ns", 1}, {" us", 1e3}, {" ms", 1e6}, {" s", 1e9}};
  char *end;
  double value = strtod(text, &end);
  for (size_t k = 0; k < sizeof units / sizeof *units && end != text; k++)
    if (strncmp(end, units[k].unit, strlen(units[k].unit)) == 0) return value * units[k].ns;
  return -1;
}

// The progress lines: "what: best T, bound T, gap G, S s".
static enum zb_status read_progress(const char *path, struct cli_run *run, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, 1 << 26, &text, error);
  double best_ns = INFINITY, bound_ns = 0;
  for (char *line = text.data, *next; line && *line && status == ZB_OK;
       line = next ? next : line + strlen(line)) {
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    const char *best = strstr(line, ": best "), *bound = best ? strstr(best, ", bound ") : NULL;
    const char *gap = bound ? strstr(bound, ", gap ") : NULL, *at = gap ? strstr(gap + 2, ", ") : NULL;
    if (!at) continue;
    double cost = time_ns(best + 7), proven = time_ns(bound + 8), second = strtod(at + 2, NULL);
    bool better = cost >= 0 && cost<best_ns, tighter = proven> bound_ns;
    if (better) {
      best_ns = cost;
      run->schedule_moved_s = second;
    }
    if (tighter) {
      bound_ns = proven;
      run->bound_moved_s = second;
    }
    if (better || tighter) run->last_moved = !tighter ? "schedule" : !better ? "bound" : "both";
  }
  zb_text_free(&text);
  return status;
}

static int64_t integer_of(const struct zb_json *object, const char *key) {
  const struct zb_json *member = zb_json_member(object, key);
  int64_t value = 0;
  if (member) zb_json_scaled(member, 1, &value);
  return value;
}

// The header that solve printed. False where there is none: the solve failed.
static bool read_header(const char *path, struct cli_run *run) {
  struct zb_text text = {0};
  struct zb_json *root = NULL;
  struct zb_error unread;
  bool read = zb_file_read(path, 1 << 20, &text, &unread) == ZB_OK &&
              zb_json_parse(text.data, text.size, ZB_JSON_INTEGERS, &root, &unread) == ZB_OK;
  const struct zb_json *status = read ? zb_json_member(root, "status") : NULL;
  if (status) {
    snprintf(run->status, sizeof run->status, "%.20s", zb_json_string(status));
    run->cost_ns = integer_of(root, "cost_ns");
    run->bound_ns = integer_of(root, "bound_ns");
  }
  zb_json_free(root);
  zb_text_free(&text);
  return status != NULL;
}

static enum zb_status start(char *const argv[], const char *out, const char *err, double limit_s,
                            struct child *child, struct zb_error *error) {
  if (!child_run(argv, out, err, limit_s, child))
    return zb_fail(error, ZB_FAILED, "%s: %s", argv[0], strerror(errno));
  if (child->exit_code == NOT_STARTED)
    return zb_fail(error, ZB_FAILED, "%s: could not be started, or its output not be written", argv[0]);
  return ZB_OK;
}

static void clear(struct cli_run *run) {
  run->solve = run->check = (struct child){.exit_code = 0};
  snprintf(run->status, sizeof run->status, "failed");
  run->good = false;
  run->cost_ns = run->bound_ns = 0;
  run->gap = 1;
  run->schedule_moved_s = run->bound_moved_s = 0;
  run->last_moved = "-";
}

enum zb_status cli_run(struct cli_run *run, struct zb_error *error) {
  enum { PATH = CLI_RUN_PATH, MOST = 400, ARGUMENTS = 20 };
  char program[PATH], checker[PATH], schedule[PATH], out[PATH], err[PATH];
  char limit[CLI_RUN_WORD], threads[CLI_RUN_WORD], microbatches[CLI_RUN_WORD];
  snprintf(program, PATH, "%.*s/zbsolve", MOST, run->build);
  snprintf(checker, PATH, "%.*s/zbcheck", MOST, run->build);
  snprintf(schedule, PATH, "%.*s/schedule.json", MOST, run->folder);
  snprintf(out, PATH, "%.*s/out", MOST, run->folder);
  snprintf(err, PATH, "%.*s/err", MOST, run->folder);
  snprintf(limit, sizeof limit, "%.3f", run->limit_s);
  snprintf(threads, sizeof threads, "%ld", run->threads);
  snprintf(microbatches, sizeof microbatches, "%d", run->microbatches);

  char *solving[ARGUMENTS] = {program,        "solve", (char *)run->profile, "--json", "-v", "-o", schedule,
                              "--time-limit", limit,   "--threads",          threads};
  size_t used = 11;
  if (run->memory_limit) {
    solving[used++] = "--memory-limit";
    solving[used++] = (char *)run->memory_limit;
  }
  if (run->microbatches > 0) {
    solving[used++] = "--microbatches";
    solving[used++] = microbatches;
  }
  clear(run);
  remove(schedule);
  enum zb_status status =
      start(solving, out, err, run->limit_s > 0 ? run->limit_s + GRACE_S : 0, &run->solve, error);
  if (status != ZB_OK || !read_header(out, run)) return status;

  bool infeasible = strcmp(run->status, "infeasible") == 0, unknown = strcmp(run->status, "unknown") == 0;
  if (run->cost_ns > 0) run->gap = zb_ratio(run->cost_ns, run->bound_ns);
  if (infeasible) run->gap = 0;
  status = read_progress(err, run, error);
  if (status != ZB_OK || unknown) { // nothing was written
    run->good = run->solve.exit_code == 30;
    return status;
  }
  char *checking[] = {checker, schedule, NULL};
  status = start(checking, out, err, CHECK_LIMIT_S, &run->check, error);
  run->good = run->solve.exit_code == (infeasible ? 20 : 0) && run->check.exit_code == run->solve.exit_code;
  return status;
}

bool cli_run_closed(const struct cli_run *run) {
  return strcmp(run->status, "optimal") == 0 || strcmp(run->status, "infeasible") == 0;
}
