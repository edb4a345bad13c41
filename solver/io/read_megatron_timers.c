// read_megatron_timers.c - Megatron's timers, logged for every rank (--timing-log-option all).
//
// A section names a timer (`forward-compute:`), the lines below it have a rank each (`rank  0: 123.45`, ms,
// summed over the microbatches of one iteration). Of all sections forward-compute and backward-compute are
// ours; there is no W in them.
#include <string.h>

#include "solver/io/line_cursor.h"
#include "solver/io/measured_formats.h"

enum { MS_TO_NS = 6 };

static const struct {
  const char *word;
  enum zb_measure measure;
} timers[] = {{"forward-compute", ZB_MEASURE_F}, {"backward-compute", ZB_MEASURE_BW}};

// Ranks are numbered tensor- and data-parallel first: so many ranks one after another make a device.
static int device_of(int rank, int ranks, int devices) {
  if (devices <= 0 || devices >= ranks) return rank;
  return (int)((int64_t)rank * devices / ranks);
}

// `forward-compute:` or `forward-compute ......:`: which timer, -1: none of ours. Behind a name other than
// the colon, a rest of the line is left.
static int take_timer(struct zb_cursor *cursor) {
  for (size_t k = 0; k < sizeof timers / sizeof *timers; k++) {
    struct zb_cursor here = *cursor;
    if (!zb_cursor_take(&here, timers[k].word)) continue;
    while (here.at < here.end && strchr(" .\t", here.text[here.at])) here.at++;
    if (!zb_cursor_take(&here, ":")) continue;
    zb_cursor_skip_blanks(&here);
    *cursor = here;
    return (int)k;
  }
  return -1;
}

// Behind what a launcher puts before a line: `[default0]:`, `0: `.
static void skip_prefix(struct zb_cursor *cursor) {
  zb_cursor_skip_blanks(cursor);
  if (cursor->at == cursor->end || cursor->text[cursor->at] != '[') return;
  const size_t length = zb_cursor_run(cursor, "]");
  if (cursor->at + length == cursor->end) return;
  cursor->at += length + 1;
  zb_cursor_take(cursor, ":");
  zb_cursor_skip_blanks(cursor);
}

struct reading {
  const struct zb_measured_hints *hints;
  struct zb_measurements *measurements;
  int ranks;
  bool adds; // the second time through
};

static enum zb_status read_rank(struct reading *reading, struct zb_cursor *cursor, int timer,
                                struct zb_error *error) {
  int rank = 0;
  struct zb_sample sample = {.measure = timers[timer].measure, .microbatch = -1};
  zb_cursor_skip_blanks(cursor);
  const struct zb_cursor before = *cursor;
  if (!zb_cursor_count(cursor, &rank) || rank >= ZB_MEASURED_STAGES)
    return zb_cursor_fail(&before, error, "a rank below %d", ZB_MEASURED_STAGES);
  zb_cursor_skip_blanks(cursor);
  if (!zb_cursor_take(cursor, ":")) return zb_cursor_fail(cursor, error, "':' behind the rank");
  zb_cursor_skip_blanks(cursor);
  const struct zb_cursor time = *cursor;
  if (!zb_cursor_time(cursor, MS_TO_NS, &sample.value))
    return zb_cursor_fail(&time, error, "milliseconds from 0 to 2^53 ns");
  zb_cursor_skip_blanks(cursor);
  if (cursor->at < cursor->end) return zb_cursor_fail(cursor, error, "the end of the line");
  if (rank >= reading->ranks) reading->ranks = rank + 1;
  if (!reading->adds) return ZB_OK;
  sample.stage = device_of(rank, reading->ranks, reading->hints->devices);
  sample.microbatch =
      rank; // keeps the iterations of replicas apart; how many microbatches there are is a hint
  sample.order = (int64_t)cursor->at;
  sample.value = (sample.value + reading->hints->microbatches / 2) / reading->hints->microbatches;
  enum zb_status status = zb_measurements_home(reading->measurements, sample.stage, sample.stage, error);
  if (status == ZB_OK) status = zb_measurements_add(reading->measurements, sample, error);
  return status;
}

static enum zb_status read_lines(struct reading *reading, struct zb_cursor *cursor, int *found,
                                 struct zb_error *error) {
  int timer = -1;
  enum zb_status status = ZB_OK;
  for (bool more = true; more && status == ZB_OK; more = zb_cursor_next_line(cursor)) {
    skip_prefix(cursor);
    const int named = take_timer(cursor);
    if (named >= 0 && cursor->at < cursor->end)
      return zb_cursor_fail(cursor, error, "a line a rank below it (--timing-log-option all)");
    if (named >= 0) {
      timer = named;
      (*found)++;
    } else if (timer >= 0 && zb_cursor_take(cursor, "rank")) {
      status = read_rank(reading, cursor, timer, error);
    } else if (cursor->at < cursor->end) { // whatever else ends the section
      timer = -1;
    }
  }
  return status;
}

enum zb_status zb_read_megatron_timers(const char *text, size_t size, const struct zb_measured_hints *hints,
                                       struct zb_measurements *measurements, struct zb_error *error) {
  struct reading reading = {hints, measurements, 0, false};
  int found = 0;
  if (hints->microbatches <= 0)
    return zb_fail(error, ZB_BAD_INPUT,
                   "these times are sums over an iteration's microbatches: --microbatches N");
  for (int pass = 0; pass < 2; pass++) {
    struct zb_cursor cursor;
    reading.adds = pass == 1;
    enum zb_status status = zb_cursor_start(text, size, &cursor, error);
    if (status == ZB_OK) status = read_lines(&reading, &cursor, &found, error);
    if (status != ZB_OK) return status;
    if (found == 0) return zb_fail(error, ZB_BAD_INPUT, "no section forward-compute:");
  }
  zb_text_put(&measurements->notes,
              "Megatron's timers: each sample is an iteration's sum divided by its microbatches.\n");
  return ZB_OK;
}
