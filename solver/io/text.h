// text.h - a growing text: everything the program prints or writes is built in one of these.
//
// Appending never fails where it is called: a failed allocation sets `failed`, later appends do
// nothing, and zb_text_status tells once, at the end. Start from a zeroed struct.
#ifndef ZB_TEXT_H
#define ZB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"

#if defined(__GNUC__)
#define ZB_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define ZB_PRINTF(at, first)
#endif

struct zb_text {
  char *data; // NUL-terminated once anything was appended; NULL before
  size_t size, capacity;
  bool failed;
};

void zb_text_print(struct zb_text *text, const char *format, ...) ZB_PRINTF(2, 3);
void zb_text_add(struct zb_text *text, const char *bytes, size_t size);
void zb_text_put(struct zb_text *text, const char *string);
void zb_text_integer(struct zb_text *text, int64_t value); // what "%" PRId64 prints, for long lists
// A string between the tags of HTML or XML. What XML cannot hold (controls, U+FFFE and U+FFFF) is a blank.
void zb_text_markup(struct zb_text *text, const char *string);
void zb_text_repeat(struct zb_text *text, const char *string, size_t times);

// ZB_OK, or the out-of-memory failure that happened on the way.
enum zb_status zb_text_status(const struct zb_text *text, struct zb_error *error);

void zb_text_clear(struct zb_text *text); // empty again, `failed` too; keeps the room
void zb_text_free(struct zb_text *text);  // empty again, room given back

#endif
