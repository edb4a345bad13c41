// progress.c - one line, at a rate a person can read.
#include "solver/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "solver/cli/quantity.h"
#include "solver/model/number.h"

#define LIVE_EVERY_NS ((int64_t)100000000)
#define PLAIN_FIRST_NS ((int64_t)1000000000)
#define PLAIN_EVERY_NS ((int64_t)2000000000)

static void show(struct zb_progress *progress, const char *line) {
  size_t length = strlen(line);
  if (progress->mode != ZB_PROGRESS_LIVE) {
    fprintf(stderr, "%s\n", line);
    return;
  }
  size_t stale = progress->shown > length ? progress->shown - length : 0;
  fprintf(stderr, "\r%s%*s", line, (int)stale, "");
  fflush(stderr);
  progress->shown = length;
}

static void report(void *context, const char *what, int64_t cost_ns, int64_t bound_ns) {
  struct zb_progress *progress = context;
  int64_t now_ns = zb_clock_ns();
  if (progress->mode != ZB_PROGRESS_ALL && now_ns < progress->next_ns) return;
  progress->next_ns = now_ns + (progress->mode == ZB_PROGRESS_LIVE ? LIVE_EVERY_NS : PLAIN_EVERY_NS);

  char line[256], best[ZB_QUANTITY_TEXT] = "-", bound[ZB_QUANTITY_TEXT] = "-", gap[ZB_QUANTITY_TEXT] = "-";
  bool found = cost_ns != INT64_MAX;
  if (found) zb_time_text(cost_ns, best);
  if (bound_ns > 0) zb_time_text(bound_ns, bound);
  if (found && bound_ns > 0) zb_percent_text(zb_ratio(cost_ns, bound_ns), gap);
  snprintf(line, sizeof line, "%s%s%s: best %s, bound %s, gap %s, %.1f s",
           progress->label ? progress->label : "", progress->label ? " " : "", what, best, bound, gap,
           (double)(now_ns - progress->start_ns) * 1e-9);
  show(progress, line);
}

void zb_progress_start(struct zb_progress *progress, const struct zb_options *options, int64_t start_ns,
                       struct zb_problem *problem) {
  *progress = (struct zb_progress){.start_ns = start_ns};
  progress->mode = options->quiet          ? ZB_PROGRESS_OFF
                   : options->verbose      ? ZB_PROGRESS_ALL
                   : isatty(STDERR_FILENO) ? ZB_PROGRESS_LIVE
                                           : ZB_PROGRESS_PLAIN;
  progress->next_ns = start_ns + (progress->mode == ZB_PROGRESS_LIVE ? LIVE_EVERY_NS : PLAIN_FIRST_NS);
  if (progress->mode == ZB_PROGRESS_OFF) return;
  problem->progress = report;
  problem->progress_context = progress;
}

void zb_progress_label(struct zb_progress *progress, const char *label) {
  if (progress) progress->label = label;
}

void zb_progress_end(struct zb_progress *progress) {
  if (progress->mode == ZB_PROGRESS_LIVE && progress->shown) {
    fprintf(stderr, "\r%*s\r", (int)progress->shown, "");
    fflush(stderr);
  }
  progress->shown = 0;
}
