// line_cursor.h - reading a text line by line and word by word, with the place of every complaint.
#ifndef ZB_LINE_CURSOR_H
#define ZB_LINE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/status.h"

// `at` .. `end` is what is left of the current line, without its line break (LF or CRLF).
struct zb_cursor {
  const char *text;
  size_t size, at, end, next; // next: where the next line begins
};

// At the first line. BAD_INPUT for a text with a byte order mark or a NUL, or without anything in it.
enum zb_status zb_cursor_start(const char *text, size_t size, struct zb_cursor *cursor,
                               struct zb_error *error);
bool zb_cursor_next_line(struct zb_cursor *cursor); // false: there is none

void zb_cursor_skip_blanks(struct zb_cursor *cursor);
bool zb_cursor_take(struct zb_cursor *cursor, const char *word); // only if it stands there

// The run of characters up to one of `stops`, or the end of the line.
size_t zb_cursor_run(const struct zb_cursor *cursor, const char *stops);

// A number of up to 7 digits; false where there is none.
bool zb_cursor_count(struct zb_cursor *cursor, int *value);

// A decimal times 10^power, rounded (zb_measured_number); false where there is none.
bool zb_cursor_number(struct zb_cursor *cursor, int power, int64_t *value);

// The same for a time in ns: from 0 to 2^53.
bool zb_cursor_time(struct zb_cursor *cursor, int power, int64_t *ns);

// BAD_INPUT at the cursor: "found '..', expected `expected`".
enum zb_status zb_cursor_fail(const struct zb_cursor *cursor, struct zb_error *error, const char *expected,
                              ...) ZB_PRINTF(3, 4);

#endif
