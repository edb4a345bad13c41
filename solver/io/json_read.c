// json_read.c - places, and the checks that every reader of a node repeats.
#include "solver/io/json_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MOST = 31 }; // longer keys are nobody's typing error

const char *zb_json_shown(const char *string, char *shown) {
  size_t length = strlen(string), keep = length;
  if (length >= ZB_SHOWN) {
    keep = ZB_SHOWN - 4;
    while (keep > 0 && ((unsigned char)string[keep] & 0xC0) == 0x80) keep--; // not inside a character
  }
  for (size_t i = 0; i < keep; i++) {
    unsigned char c = (unsigned char)string[i];
    shown[i] = c < 0x20 || c == 0x7F ? '?' : string[i];
  }
  strcpy(shown + keep, keep < length ? "..." : "");
  return shown;
}

// Appends to a buffer of fixed room, cutting what does not fit.
static size_t append(char *buffer, size_t room, size_t used, const char *format, ...) ZB_PRINTF(4, 5);
static size_t append(char *buffer, size_t room, size_t used, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(buffer + used, room - used, format, arguments);
  va_end(arguments);
  if (size < 0) return used;
  return (size_t)size < room - used ? used + (size_t)size : room - 1;
}

static size_t append_place(char *buffer, size_t room, size_t used, const struct zb_json_place *place) {
  if (!place) return used;
  used = append_place(buffer, room, used, place->parent);
  if (!place->key) return append(buffer, room, used, "[%zu]", place->index);
  char shown[ZB_SHOWN];
  const char *key = *place->key ? zb_json_shown(place->key, shown) : "\"\"";
  return append(buffer, room, used, "%s%s", used > 0 ? "." : "", key);
}

enum zb_status zb_json_fail(struct zb_error *error, enum zb_status status, const struct zb_json_place *place,
                            const char *format, ...) {
  if (!error) return status;
  char line[sizeof error->text];
  size_t used = append_place(line, sizeof line / 2, 0, place);
  if (used > 0) used = append(line, sizeof line, used, ": ");
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + used, sizeof line - used, format, arguments);
  va_end(arguments);
  return zb_fail(error, status, "%s", line);
}

enum zb_status zb_json_fail_within(struct zb_error *error, const struct zb_json_place *place) {
  char line[sizeof error->text];
  size_t used = append_place(line, sizeof line / 2, 0, place);
  append(line, sizeof line, used, "%s%s", used > 0 ? "." : "", error->text);
  return zb_fail(error, error->status, "%s", line);
}

static const char *type_words(const struct zb_json *node) {
  static const char *const words[] = {"null", "true or false", "a number", "a string", "a list", "an object"};
  return words[zb_json_type(node)];
}

enum zb_status zb_json_fail_type(const struct zb_json *node, const struct zb_json_place *place,
                                 const char *expected, struct zb_error *error) {
  return zb_json_fail(error, ZB_BAD_INPUT, place, "found %s, expected %s", type_words(node), expected);
}

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c; }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// Edits (insert, delete, replace, swap neighbours) that turn one word into the other, ignoring case.
static size_t edit_distance(const char *a, const char *b) {
  size_t rows[3][KEY_MOST + 2];
  size_t *older = rows[0], *old = rows[1], *now = rows[2];
  size_t width = strlen(b);
  for (size_t j = 0; j <= width; j++) old[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    now[0] = i;
    for (size_t j = 1; j <= width; j++) {
      bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = least(old[j - 1] + !same, least(old[j], now[j - 1]) + 1);
      bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) now[j] = least(now[j], older[j - 2] + 1);
    }
    size_t *spare = older;
    older = old;
    old = now;
    now = spare;
  }
  return old[width];
}

// The known key that a typing error would turn into `key`, NULL if none is near.
static const char *nearest(const char *key, const char *const *known) {
  if (strlen(key) > KEY_MOST) return NULL;
  const char *best = NULL;
  size_t best_distance = 3;
  for (; *known; known++) {
    size_t distance = edit_distance(key, *known);
    if (distance >= best_distance || 2 * distance >= strlen(*known) + (distance == 0)) continue;
    best = *known;
    best_distance = distance;
  }
  return best;
}

static enum zb_status fail_unknown(const char *key, const struct zb_json_place *place,
                                   const char *const *known, struct zb_error *error) {
  struct zb_json_place here = {place, key, 0};
  const char *meant = nearest(key, known);
  if (meant) return zb_json_fail(error, ZB_BAD_INPUT, &here, "unknown key, did you mean \"%s\"?", meant);
  char list[256] = "";
  size_t used = 0;
  for (size_t i = 0; known[i]; i++)
    used = append(list, sizeof list, used, "%s%s", i == 0 ? "" : known[i + 1] ? ", " : " or ", known[i]);
  return zb_json_fail(error, ZB_BAD_INPUT, &here, "unknown key, expected %s", list);
}

enum zb_status zb_json_expect_object(const struct zb_json *node, const struct zb_json_place *place,
                                     const char *const *known, struct zb_error *error) {
  if (zb_json_type(node) != ZB_JSON_OBJECT) return zb_json_fail_type(node, place, "an object", error);
  for (const struct zb_json *child = zb_json_first(node); child; child = zb_json_next(child)) {
    const char *const *match = known;
    while (*match && strcmp(*match, zb_json_key(child)) != 0) match++;
    if (!*match) return fail_unknown(zb_json_key(child), place, known, error);
  }
  return ZB_OK;
}

enum zb_status zb_json_require(const struct zb_json *object, const char *key,
                               const struct zb_json_place *place, const char *expected,
                               const struct zb_json **member, struct zb_error *error) {
  const struct zb_json *found = zb_json_member(object, key);
  struct zb_json_place here = {place, key, 0};
  if (!found) return zb_json_fail(error, ZB_BAD_INPUT, &here, "missing, expected %s", expected);
  *member = found;
  return ZB_OK;
}

enum zb_status zb_json_read_integer(const struct zb_json *node, const struct zb_json_place *place,
                                    int64_t smallest, int64_t most, int64_t *value, struct zb_error *error) {
  if (zb_json_type(node) != ZB_JSON_NUMBER) return zb_json_fail_type(node, place, "a whole number", error);
  int64_t read = 0;
  enum zb_decimal decimal = zb_json_scaled(node, 1, &read);
  if (decimal == ZB_DECIMAL_OK && read >= smallest && read <= most) {
    *value = read;
    return ZB_OK;
  }
  double shown = zb_json_number(node);
  if (decimal == ZB_DECIMAL_FRACTION)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.15g, expected a whole number", shown);
  if (most < INT32_MAX)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.16g, expected %" PRId64 " to %" PRId64, shown,
                        smallest, most);
  if (shown < (double)smallest)
    return zb_json_fail(error, ZB_BAD_INPUT, place, "%.16g, expected at least %" PRId64, shown, smallest);
  return zb_json_fail(error, ZB_BAD_INPUT, place, "%.16g, expected at most %" PRId64, shown, most);
}

enum zb_status zb_json_read_string(const struct zb_json *node, const struct zb_json_place *place,
                                   const char **string, struct zb_error *error) {
  if (zb_json_type(node) != ZB_JSON_STRING) return zb_json_fail_type(node, place, "a string", error);
  *string = zb_json_string(node);
  return ZB_OK;
}

enum zb_status zb_json_require_list(const struct zb_json *object, const char *key,
                                    const struct zb_json_place *place, const struct zb_json **list,
                                    struct zb_error *error) {
  struct zb_json_place here = {place, key, 0};
  enum zb_status status = zb_json_require(object, key, place, "a list", list, error);
  if (status == ZB_OK && zb_json_type(*list) != ZB_JSON_LIST)
    status = zb_json_fail_type(*list, &here, "a list", error);
  return status;
}
