// read_timings_csv.c - a table of samples: stage,op,time.
//
// The header says the unit of the times: time_ns, time_us, time_ms or time_s. An op is F, B, W, BW, or COMM
// for both directions of the boundary behind a stage. Several rows of one stage and op are several samples.
#include <string.h>

#include "solver/io/line_cursor.h"
#include "solver/io/measured_formats.h"

static const struct {
  const char *word;
  int power; // of ten, to ns
} units[] = {{"time_ns", 0}, {"time_us", 3}, {"time_ms", 6}, {"time_s", 9}};

static const struct {
  const char *word;
  enum zb_measure measure;
} ops[] = {{"BW", ZB_MEASURE_BW},
           {"F", ZB_MEASURE_F},
           {"B", ZB_MEASURE_B},
           {"W", ZB_MEASURE_W},
           {"COMM", ZB_MEASURE_COMM_FORWARD}};

// Cells may have blanks and quotes around them. Returns whether the cell was quoted.
static bool open_cell(struct zb_cursor *cursor) {
  zb_cursor_skip_blanks(cursor);
  return zb_cursor_take(cursor, "\"");
}

static enum zb_status close_cell(struct zb_cursor *cursor, bool quoted, bool last, struct zb_error *error) {
  if (quoted && !zb_cursor_take(cursor, "\"")) return zb_cursor_fail(cursor, error, "a closing '\"'");
  zb_cursor_skip_blanks(cursor);
  if (last && cursor->at < cursor->end) return zb_cursor_fail(cursor, error, "the end of the row");
  if (!last && !zb_cursor_take(cursor, ",")) return zb_cursor_fail(cursor, error, "','");
  return ZB_OK;
}

// One of `words` and nothing more in the cell; -1 where none is there.
static int take_word(struct zb_cursor *cursor, const char *const *words, int count) {
  const size_t length = zb_cursor_run(cursor, " \t\",");
  for (int k = 0; k < count; k++)
    if (strlen(words[k]) == length && memcmp(words[k], cursor->text + cursor->at, length) == 0) {
      cursor->at += length;
      return k;
    }
  return -1;
}

static enum zb_status read_header(struct zb_cursor *cursor, int *power, struct zb_error *error) {
  const char *words[4];
  for (int k = 0; k < 4; k++) words[k] = units[k].word;
  bool quoted = open_cell(cursor);
  if (!zb_cursor_take(cursor, "stage")) return zb_cursor_fail(cursor, error, "the header stage,op,time_ms");
  enum zb_status status = close_cell(cursor, quoted, false, error);
  if (status != ZB_OK) return status;
  quoted = open_cell(cursor);
  if (!zb_cursor_take(cursor, "op")) return zb_cursor_fail(cursor, error, "op");
  status = close_cell(cursor, quoted, false, error);
  if (status != ZB_OK) return status;
  quoted = open_cell(cursor);
  const int unit = take_word(cursor, words, 4);
  if (unit < 0) return zb_cursor_fail(cursor, error, "time_ns, time_us, time_ms or time_s");
  *power = units[unit].power;
  return close_cell(cursor, quoted, true, error);
}

static enum zb_status read_row(struct zb_cursor *cursor, int power, struct zb_measurements *measurements,
                               struct zb_error *error) {
  enum { OPS = sizeof ops / sizeof *ops };
  const char *words[OPS];
  struct zb_sample sample = {.microbatch = -1, .order = (int64_t)cursor->at};
  for (int k = 0; k < OPS; k++) words[k] = ops[k].word;
  bool quoted = open_cell(cursor);
  const struct zb_cursor before = *cursor;
  if (!zb_cursor_count(cursor, &sample.stage) || sample.stage >= ZB_MEASURED_STAGES)
    return zb_cursor_fail(&before, error, "a stage below %d", ZB_MEASURED_STAGES);
  enum zb_status status = close_cell(cursor, quoted, false, error);
  if (status != ZB_OK) return status;
  quoted = open_cell(cursor);
  const int op = take_word(cursor, words, OPS);
  if (op < 0) return zb_cursor_fail(cursor, error, "F, B, W, BW or COMM");
  sample.measure = ops[op].measure;
  status = close_cell(cursor, quoted, false, error);
  if (status != ZB_OK) return status;
  quoted = open_cell(cursor);
  const struct zb_cursor time = *cursor;
  if (!zb_cursor_time(cursor, power, &sample.value))
    return zb_cursor_fail(&time, error, "a time from 0 to 2^53 ns");
  status = close_cell(cursor, quoted, true, error);
  if (status == ZB_OK) status = zb_measurements_add(measurements, sample, error);
  sample.measure = ZB_MEASURE_COMM_BACKWARD;
  if (status == ZB_OK && ops[op].measure == ZB_MEASURE_COMM_FORWARD)
    status = zb_measurements_add(measurements, sample, error);
  return status;
}

enum zb_status zb_read_timings_csv(const char *text, size_t size, const struct zb_measured_hints *hints,
                                   struct zb_measurements *measurements, struct zb_error *error) {
  (void)hints;
  struct zb_cursor cursor;
  int power = 0;
  enum zb_status status = zb_cursor_start(text, size, &cursor, error);
  if (status == ZB_OK) status = read_header(&cursor, &power, error);
  while (status == ZB_OK && zb_cursor_next_line(&cursor)) {
    zb_cursor_skip_blanks(&cursor);
    if (cursor.at == cursor.end && cursor.next == cursor.size) break; // a blank line at the end
    status = read_row(&cursor, power, measurements, error);
  }
  if (status == ZB_OK && measurements->count == 0)
    status = zb_fail(error, ZB_BAD_INPUT, "a header without rows");
  return status;
}
