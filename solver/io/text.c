// text.c - a growing text with one sticky failure.
#include "solver/io/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Room for `more` bytes and a NUL after what is there.
static bool reserve(struct zb_text *text, size_t more) {
  if (text->failed) return false;
  if (more < text->capacity - text->size) return true;
  size_t capacity = text->capacity ? text->capacity : 256;
  while (capacity - text->size <= more) {
    if (capacity > SIZE_MAX / 2) {
      text->failed = true;
      return false;
    }
    capacity *= 2;
  }
  char *data = realloc(text->data, capacity);
  if (!data) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->capacity = capacity;
  return true;
}

void zb_text_add(struct zb_text *text, const char *bytes, size_t size) {
  if (!reserve(text, size)) return;
  if (size > 0) memcpy(text->data + text->size, bytes, size);
  text->size += size;
  text->data[text->size] = '\0';
}

void zb_text_put(struct zb_text *text, const char *string) { zb_text_add(text, string, strlen(string)); }

void zb_text_repeat(struct zb_text *text, const char *string, size_t times) {
  size_t size = strlen(string);
  while (times-- > 0) zb_text_add(text, string, size);
}

void zb_text_print(struct zb_text *text, const char *format, ...) {
  for (size_t room = 64;;) {
    if (!reserve(text, room)) return;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->data + text->size, room + 1, format, arguments);
    va_end(arguments);
    if (size < 0) {
      text->data[text->size] = '\0';
      text->failed = true;
      return;
    }
    if ((size_t)size <= room) {
      text->size += (size_t)size;
      return;
    }
    room = (size_t)size;
  }
}

void zb_text_integer(struct zb_text *text, int64_t value) {
  char digits[24];
  char *end = digits + sizeof digits, *first = end;
  uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do *--first = (char)('0' + left % 10);
  while ((left /= 10) != 0);
  if (value < 0) *--first = '-';
  zb_text_add(text, first, (size_t)(end - first));
}

static const char *entity_of(char c) {
  switch (c) {
  case '<':
    return "&lt;";
  case '>':
    return "&gt;"; // for "]]>", which XML forbids
  case '&':
    return "&amp;";
  default:
    return (unsigned char)c < 0x20 ? " " : NULL;
  }
}

void zb_text_markup(struct zb_text *text, const char *string) {
  for (const char *c = string; *c; c++) {
    const char *entity = entity_of(*c);
    if (entity) {
      zb_text_put(text, entity);
    } else if (strncmp(c, "\xEF\xBF\xBE", 3) == 0 || strncmp(c, "\xEF\xBF\xBF", 3) == 0) {
      zb_text_put(text, " ");
      c += 2;
    } else {
      zb_text_add(text, c, 1);
    }
  }
}

enum zb_status zb_text_status(const struct zb_text *text, struct zb_error *error) {
  return text->failed ? zb_fail_memory(error) : ZB_OK;
}

void zb_text_clear(struct zb_text *text) {
  text->size = 0;
  text->failed = false;
  if (text->data) text->data[0] = '\0';
}

void zb_text_free(struct zb_text *text) {
  free(text->data);
  *text = (struct zb_text){0};
}
