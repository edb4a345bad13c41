// read_zb_log.c - what the zero-bubble fork of Megatron logs once it has measured itself.
//
// Somewhere in a line: `rank 3 profiling conclusion: [(f, ..), (b, ..), (w, ..), comm, (fmem, ..), (bmem,
// ..), (wmem, ..)]`, one entry a chunk; microseconds and MB of 1e6 bytes. Two chunks a rank lie on a V, as in
// every schedule of the fork that has them; more are placed on a loop. Other lines are none of ours.
#include <string.h>

#include "solver/io/line_cursor.h"
#include "solver/io/measured_formats.h"
#include "solver/io/text_place.h"

enum { US_TO_NS = 3, MB_TO_BYTES = 6, CHUNKS_MOST = 64, PARTS = 7, COMM = 3 };

struct conclusion {
  int rank, chunks;
  int64_t values[PARTS][CHUNKS_MOST];
  size_t at; // in the text
};

static bool take_bracket(struct zb_cursor *cursor, const char *brackets) {
  zb_cursor_skip_blanks(cursor);
  if (cursor->at == cursor->end || !strchr(brackets, cursor->text[cursor->at])) return false;
  cursor->at++;
  return true;
}

// (1.5, 2.5) or (1.5,) or [1.5], or a bare number for a single chunk.
static enum zb_status read_part(struct zb_cursor *cursor, int part, int *chunks, int64_t *values,
                                struct zb_error *error) {
  const bool bare = !take_bracket(cursor, "([");
  int count = 0;
  do {
    zb_cursor_skip_blanks(cursor);
    if (!bare && count > 0 && take_bracket(cursor, ")]")) break;
    if (count == CHUNKS_MOST) return zb_cursor_fail(cursor, error, "at most %d chunks", CHUNKS_MOST);
    const struct zb_cursor before = *cursor;
    const bool holds = part <= COMM ? zb_cursor_time(cursor, US_TO_NS, &values[count])
                                    : zb_cursor_number(cursor, MB_TO_BYTES, &values[count]);
    if (!holds) return zb_cursor_fail(&before, error, part <= COMM ? "microseconds from 0 to 2^53 ns" : "MB");
    count++;
    if (bare) break;
    zb_cursor_skip_blanks(cursor);
    if (zb_cursor_take(cursor, ",")) continue;
    if (!take_bracket(cursor, ")]")) return zb_cursor_fail(cursor, error, "',' or ')'");
    break;
  } while (true);
  if (part != COMM && *chunks && count != *chunks)
    return zb_cursor_fail(cursor, error, "%d entries, as in the first tuple, not %d", *chunks, count);
  if (part != COMM) *chunks = count;
  return ZB_OK;
}

static enum zb_status read_conclusion(struct zb_cursor *cursor, struct conclusion *conclusion,
                                      struct zb_error *error) {
  conclusion->at = cursor->at;
  conclusion->chunks = 0;
  if (!take_bracket(cursor, "[(")) return zb_cursor_fail(cursor, error, "'['");
  for (int part = 0; part < PARTS; part++) {
    enum zb_status status = read_part(cursor, part, &conclusion->chunks, conclusion->values[part], error);
    if (status != ZB_OK) return status;
    zb_cursor_skip_blanks(cursor);
    if (part + 1 < PARTS && !zb_cursor_take(cursor, ",")) return zb_cursor_fail(cursor, error, "','");
  }
  if (!take_bracket(cursor, "])")) return zb_cursor_fail(cursor, error, "']'");
  return ZB_OK;
}

// The cursor behind "profiling conclusion:" and the rank before it; false where the line has none.
static bool find_conclusion(struct zb_cursor *cursor, int *rank) {
  for (; cursor->at < cursor->end; cursor->at++) {
    struct zb_cursor here = *cursor;
    if (!zb_cursor_take(&here, "rank")) continue;
    zb_cursor_skip_blanks(&here);
    if (!zb_cursor_count(&here, rank)) continue;
    zb_cursor_skip_blanks(&here);
    if (!zb_cursor_take(&here, "profiling conclusion:")) continue;
    *cursor = here;
    return true;
  }
  return false;
}

static int stage_of(int rank, int chunk, int chunks, int devices) {
  if (chunks == 2) return chunk == 0 ? rank : 2 * devices - 1 - rank;
  return chunk * devices + rank;
}

static enum zb_status add(const struct conclusion *c, int devices, struct zb_measurements *measurements,
                          struct zb_error *error) {
  static const enum zb_measure measures[PARTS] = {
      ZB_MEASURE_F,       ZB_MEASURE_B,       ZB_MEASURE_W,      ZB_MEASURE_COMM_FORWARD,
      ZB_MEASURE_F_BYTES, ZB_MEASURE_B_BYTES, ZB_MEASURE_W_BYTES};
  enum zb_status status = ZB_OK;
  for (int chunk = 0; chunk < c->chunks && status == ZB_OK; chunk++) {
    struct zb_sample sample = {.stage = stage_of(c->rank, chunk, c->chunks, devices), .microbatch = -1};
    sample.order = (int64_t)c->at;
    status = zb_measurements_home(measurements, sample.stage, c->rank, error);
    const bool last = sample.stage == devices * c->chunks - 1;
    for (int part = 0; part < PARTS && status == ZB_OK; part++) {
      if (part == COMM && last) continue;
      sample.measure = measures[part];
      sample.value = c->values[part][part == COMM ? 0 : chunk];
      status = zb_measurements_add(measurements, sample, error);
    }
    // Its c is of no boundary in particular: it is taken for the one behind the stage, both ways.
    sample.measure = ZB_MEASURE_COMM_BACKWARD;
    sample.value = c->values[COMM][0];
    if (status == ZB_OK && !last) status = zb_measurements_add(measurements, sample, error);
  }
  return status;
}

// First how many ranks there are, then their stages.
enum zb_status zb_read_zb_log(const char *text, size_t size, const struct zb_measured_hints *hints,
                              struct zb_measurements *measurements, struct zb_error *error) {
  struct zb_cursor cursor;
  struct conclusion conclusion;
  int devices = hints->devices, chunks = 0, found = 0;
  for (int pass = 0; pass < 2; pass++) {
    enum zb_status status = zb_cursor_start(text, size, &cursor, error);
    for (bool more = status == ZB_OK; more && status == ZB_OK; more = zb_cursor_next_line(&cursor)) {
      if (!find_conclusion(&cursor, &conclusion.rank)) continue;
      status = read_conclusion(&cursor, &conclusion, error);
      if (status != ZB_OK) continue;
      const bool odd = chunks && chunks != conclusion.chunks;
      if (odd)
        status = zb_fail(error, ZB_BAD_INPUT, "rank %d has %d chunks, expected %d as on the ranks before",
                         conclusion.rank, conclusion.chunks, chunks);
      else if (conclusion.rank >= ZB_MEASURED_STAGES / CHUNKS_MOST)
        status = zb_fail(error, ZB_BAD_INPUT, "rank %d, expected one below %d", conclusion.rank,
                         ZB_MEASURED_STAGES / CHUNKS_MOST);
      if (status != ZB_OK) zb_text_locate(text, conclusion.at, error);
      chunks = conclusion.chunks;
      if (status != ZB_OK) continue;
      if (pass == 0 && conclusion.rank >= devices)
        devices = conclusion.rank + 1;
      else if (pass == 1)
        status = add(&conclusion, devices, measurements, error);
      found++;
    }
    if (status != ZB_OK) return status;
    if (found == 0) return zb_fail(error, ZB_BAD_INPUT, "no line with \"rank N profiling conclusion: [..]\"");
  }
  return ZB_OK;
}
