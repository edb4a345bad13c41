// line_cursor.c - a place in a text that never leaves its line by itself.
#include "solver/io/line_cursor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "solver/io/measurements.h"
#include "solver/io/text_place.h"
#include "solver/model/number.h"

static void find_line(struct zb_cursor *cursor, size_t at) {
  const char *end = at < cursor->size ? memchr(cursor->text + at, '\n', cursor->size - at) : NULL;
  cursor->at = at;
  cursor->end = end ? (size_t)(end - cursor->text) : cursor->size;
  cursor->next = end ? cursor->end + 1 : cursor->size;
  if (end && cursor->end > at && cursor->text[cursor->end - 1] == '\r') cursor->end--;
}

enum zb_status zb_cursor_start(const char *text, size_t size, struct zb_cursor *cursor,
                               struct zb_error *error) {
  *cursor = (struct zb_cursor){.text = text, .size = size};
  enum zb_status status = ZB_OK;
  size_t at = 0;
  const char *nul = size ? memchr(text, 0, size) : NULL;
  if (size == 0) {
    status = zb_fail(error, ZB_BAD_INPUT, "the file is empty, expected text");
  } else if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
    status = zb_fail(error, ZB_BAD_INPUT, "found a byte order mark, expected UTF-8 without one");
  } else if (nul) {
    at = (size_t)(nul - text);
    status = zb_fail(error, ZB_BAD_INPUT, "found a NUL byte, expected text");
  }
  if (status != ZB_OK)
    zb_text_locate(text, at, error);
  else
    find_line(cursor, 0);
  return status;
}

bool zb_cursor_next_line(struct zb_cursor *cursor) {
  if (cursor->next >= cursor->size) return false;
  find_line(cursor, cursor->next);
  return true;
}

void zb_cursor_skip_blanks(struct zb_cursor *cursor) {
  while (cursor->at < cursor->end && (cursor->text[cursor->at] == ' ' || cursor->text[cursor->at] == '\t'))
    cursor->at++;
}

bool zb_cursor_take(struct zb_cursor *cursor, const char *word) {
  const size_t length = strlen(word);
  if (cursor->end - cursor->at < length || memcmp(cursor->text + cursor->at, word, length) != 0) return false;
  cursor->at += length;
  return true;
}

size_t zb_cursor_run(const struct zb_cursor *cursor, const char *stops) {
  size_t length = 0;
  while (cursor->at + length < cursor->end && !strchr(stops, cursor->text[cursor->at + length])) length++;
  return length;
}

bool zb_cursor_count(struct zb_cursor *cursor, int *value) {
  enum { DIGITS = 7 };
  int number = 0;
  size_t at = cursor->at;
  for (; at < cursor->end && cursor->text[at] >= '0' && cursor->text[at] <= '9'; at++) {
    if (at - cursor->at == DIGITS) return false;
    number = number * 10 + (cursor->text[at] - '0');
  }
  if (at == cursor->at) return false;
  cursor->at = at;
  *value = number;
  return true;
}

bool zb_cursor_number(struct zb_cursor *cursor, int power, int64_t *value) {
  size_t length = 0;
  while (cursor->at + length < cursor->end && strchr("+-.0123456789eE", cursor->text[cursor->at + length]))
    length++;
  if (!zb_measured_number(cursor->text + cursor->at, length, power, value)) return false;
  cursor->at += length;
  return true;
}

bool zb_cursor_time(struct zb_cursor *cursor, int power, int64_t *ns) {
  return zb_cursor_number(cursor, power, ns) && *ns >= 0 && *ns <= ZB_NUMBER_MAX;
}

// What stands there is shown up to the next blank, and only as far as it is printable.
enum zb_status zb_cursor_fail(const struct zb_cursor *cursor, struct zb_error *error, const char *expected,
                              ...) {
  enum { SHOWN = 24 };
  char words[256], found[SHOWN + 1];
  va_list arguments;
  va_start(arguments, expected);
  vsnprintf(words, sizeof words, expected, arguments);
  va_end(arguments);
  size_t length = 0;
  while (length < SHOWN && cursor->at + length < cursor->end && cursor->text[cursor->at + length] > ' ' &&
         cursor->text[cursor->at + length] < 0x7F) {
    found[length] = cursor->text[cursor->at + length];
    length++;
  }
  found[length] = '\0';
  if (length > 0)
    zb_fail(error, ZB_BAD_INPUT, "found \"%s\", expected %s", found, words);
  else if (cursor->at < cursor->end)
    zb_fail(error, ZB_BAD_INPUT, "found byte 0x%02X, expected %s", (unsigned char)cursor->text[cursor->at],
            words);
  else
    zb_fail(error, ZB_BAD_INPUT, "the line ends here, expected %s", words);
  zb_text_locate(cursor->text, cursor->at, error);
  return ZB_BAD_INPUT;
}
