// json_scan.c - a recursive descent over the JSON grammar (RFC 8259) that builds nothing.
//
// It is stricter than the library behind it wherever that one is silent: literals that a double or the
// library's buffer would change, bytes that are not UTF-8, a NUL (written or escaped) that would
// cut a string, and anything after the end. What passes here, the library reads as it is written.
#include "solver/io/json_scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "solver/io/text_place.h"
#include "solver/model/number.h"

enum {
  SIGNIFICANT_DIGITS = 15,
  LITERAL_LENGTH = 63, // the library copies a number into 64 bytes
  EXPONENT_MOST = 300, // beyond it a double loses digits or overflows
  SHOWN_LENGTH = 40,   // of a literal in a message
};

struct scanner {
  const char *text;
  size_t size, at;
  enum zb_json_literals literals;
  struct zb_error *error;
  enum zb_status (*visit)(void *context, const struct zb_json_visit *visit,
                          struct zb_error *error); // or NULL
  void *context;
  enum zb_status status; // of the visit that failed
  const char *key;       // of the value that comes next, NULL in a list
  size_t key_size;
};

static int peek(const struct scanner *s) { return s->at < s->size ? (unsigned char)s->text[s->at] : -1; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static bool is_word(int c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.' || c == '_';
}

// Puts the place `at` into an error that zb_fail has filled.
static bool locate(const struct scanner *s, size_t at) {
  zb_text_locate(s->text, at, s->error);
  return false;
}

// What stands at the scanner is not what was expected. Returns false.
static bool fail_expected(const struct scanner *s, const char *expected) {
  int c = peek(s);
  if (c < 0)
    zb_fail(s->error, ZB_BAD_INPUT, "the text ends here, expected %s", expected);
  else if (c == '\'')
    zb_fail(s->error, ZB_BAD_INPUT, "found a single quote, expected %s", expected);
  else if (c == 0)
    zb_fail(s->error, ZB_BAD_INPUT, "found a NUL byte, expected %s", expected);
  else if (c > 0x20 && c < 0x7F)
    zb_fail(s->error, ZB_BAD_INPUT, "found '%c', expected %s", c, expected);
  else
    zb_fail(s->error, ZB_BAD_INPUT, "found byte 0x%02X, expected %s", (unsigned)c, expected);
  return locate(s, s->at);
}

static void skip_blanks(struct scanner *s) {
  for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s)) s->at++;
}

// Length of the UTF-8 sequence at `at`, 0 if it is none (overlong, surrogate, beyond U+10FFFF, cut).
static size_t utf8_length(const struct scanner *s, size_t at) {
  const unsigned char *c = (const unsigned char *)s->text + at;
  size_t left = s->size - at;
  size_t length = c[0] < 0x80 ? 1 : c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : c[0] < 0xF5 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((c[i] & 0xC0) != 0x80) return 0;
  if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F)) return 0;
  if ((c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F)) return 0;
  return length;
}

static bool fail_escape(const struct scanner *s, const char *what) {
  zb_fail(s->error, ZB_BAD_INPUT, "%s", what);
  return locate(s, s->at);
}

// The four hexadecimal digits of a \uXXXX that starts at `at`, -1 if that is not one.
static long hex_escape(const struct scanner *s, size_t at) {
  if (s->size - at < 6 || s->text[at] != '\\' || s->text[at + 1] != 'u') return -1;
  long value = 0;
  for (size_t i = at + 2; i < at + 6; i++) {
    int c = (unsigned char)s->text[i], lower = c | 0x20;
    if (is_digit(c))
      value = value * 16 + (c - '0');
    else if (lower >= 'a' && lower <= 'f')
      value = value * 16 + (lower - 'a') + 10;
    else
      return -1;
  }
  return value;
}

static bool scan_escape(struct scanner *s) {
  if (s->at + 1 < s->size && s->text[s->at + 1] != '\0' && strchr("\"\\/bfnrt", s->text[s->at + 1])) {
    s->at += 2;
    return true;
  }
  long unit = hex_escape(s, s->at);
  if (unit < 0)
    return fail_escape(s,
                       "found a stray backslash, expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  if (unit == 0) return fail_escape(s, "\\u0000 in a string, expected text without NUL");
  bool high = unit >= 0xD800 && unit <= 0xDBFF, low = unit >= 0xDC00 && unit <= 0xDFFF;
  if (high) {
    long second = hex_escape(s, s->at + 6);
    if (second < 0xDC00 || second > 0xDFFF)
      return fail_escape(s, "half a surrogate pair, expected \\uD800-\\uDBFF then \\uDC00-\\uDFFF");
  }
  if (low) return fail_escape(s, "the second half of a surrogate pair, expected \\uD800-\\uDBFF before it");
  s->at += high ? 12 : 6;
  return true;
}

static bool scan_string(struct scanner *s) {
  size_t start = s->at++;
  for (;;) {
    int c = peek(s);
    if (c == '"') {
      s->at++;
      return true;
    }
    if (c == '\\') {
      if (!scan_escape(s)) return false;
      continue;
    }
    if (c < 0) {
      zb_fail(s->error, ZB_BAD_INPUT, "this string never ends, expected a closing '\"'");
      return locate(s, start);
    }
    if (c == '\n' || c == '\r') {
      zb_fail(s->error, ZB_BAD_INPUT, "line break in a string, expected a closing '\"' or \\n");
      return locate(s, s->at);
    }
    if (c == 0) return fail_expected(s, "text or a closing '\"'");
    if (c < 0x20) {
      zb_fail(s->error, ZB_BAD_INPUT, "control character 0x%02X in a string, expected \\u%04X", (unsigned)c,
              (unsigned)c);
      return locate(s, s->at);
    }
    size_t length = utf8_length(s, s->at);
    if (length == 0) {
      zb_fail(s->error, ZB_BAD_INPUT, "byte 0x%02X is not UTF-8", (unsigned)c);
      return locate(s, s->at);
    }
    s->at += length;
  }
}

// A number's shape: what decides whether a double keeps it.
struct literal_shape {
  int digits;    // significant ones
  long exponent; // of the first significant digit
  bool plain;    // neither a point nor an exponent
};

// Whether literal[0 .. length-1] is a JSON number.
static bool is_number(const char *literal, size_t length, struct literal_shape *shape) {
  size_t i = 0;
  long leading = 0, written = 0; // exponent of the digit read first that is not 0; the exponent part
  int digits = 0, zeros = 0;
  bool point = false;
  if (i < length && literal[i] == '-') i++;
  size_t first = i;
  for (; i < length && (is_digit(literal[i]) || (literal[i] == '.' && !point)); i++) {
    if (literal[i] == '.') {
      if (i == first || i + 1 == length || !is_digit(literal[i + 1])) return false;
      point = true;
      continue;
    }
    if (literal[i] == '0') {
      if (digits > 0)
        zeros++;
      else if (point)
        leading--;
    } else {
      digits += zeros + 1;
      zeros = 0;
    }
    if (digits > 0 && !point) leading++;
  }
  if (i == first || (literal[first] == '0' && first + 1 < length && is_digit(literal[first + 1])))
    return false;
  bool exponent = i < length && (literal[i] == 'e' || literal[i] == 'E');
  if (exponent) {
    i++;
    long sign = i < length && literal[i] == '-' ? -1 : 1;
    if (i < length && (literal[i] == '-' || literal[i] == '+')) i++;
    if (i == length) return false;
    for (; i < length && is_digit(literal[i]); i++)
      if (written < 100000) written = written * 10 + (literal[i] - '0');
    written *= sign;
  }
  *shape = (struct literal_shape){digits, leading + written, !point && !exponent};
  return i == length;
}

static bool is_wide_integer(const char *literal, size_t length, const struct literal_shape *shape) {
  if (!shape->plain || length > 17) return false;
  int64_t value = 0;
  for (size_t i = 0; i < length; i++)
    if (is_digit(literal[i])) value = value * 10 + (literal[i] - '0');
  return value <= ZB_NUMBER_MAX;
}

// Tells of what begins at `at`; false where nobody wants more.
static bool tell(struct scanner *s, enum zb_json_visited what, int depth, size_t at, size_t size,
                 bool is_string) {
  if (!s->visit) return true;
  if (what == ZB_JSON_CLOSE) s->key = NULL; // of a child
  const struct zb_json_visit visit = {what, depth, s->key, s->key_size, s->text + at, size, is_string};
  s->status = s->visit(s->context, &visit, s->error);
  return s->status == ZB_OK || locate(s, at);
}

// true, false, null or a number: a run of letters, digits and signs.
static bool scan_literal(struct scanner *s) {
  const char *literal = s->text + s->at;
  size_t length = 0;
  while (s->at + length < s->size && is_word((unsigned char)literal[length])) length++;
  static const char *const words[] = {"true", "false", "null"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && memcmp(words[i], literal, length) == 0) {
      s->at += length;
      return true;
    }
  int shown = length > SHOWN_LENGTH ? SHOWN_LENGTH : (int)length;
  const char *cut = length > SHOWN_LENGTH ? "..." : "";
  struct literal_shape shape;
  bool numeric = is_digit(literal[0]) || literal[0] == '-' || literal[0] == '+' || literal[0] == '.';
  if (!is_number(literal, length, &shape))
    zb_fail(
        s->error, ZB_BAD_INPUT, "%.*s%s is no JSON %s", shown, literal, cut,
        numeric
            ? "number, expected one like 12, -0.5 or 1e3"
            : "value, expected a number, a string in double quotes, a list, an object, true, false or null");
  else if (length > LITERAL_LENGTH)
    zb_fail(s->error, ZB_BAD_INPUT, "%.*s%s has %zu characters, expected at most %d", shown, literal, cut,
            length, LITERAL_LENGTH);
  else if (shape.digits > 0 && shape.exponent > EXPONENT_MOST)
    zb_fail(s->error, ZB_BAD_INPUT, "%.*s%s is out of range, expected at most 2^53", shown, literal, cut);
  else if (shape.digits > 0 && shape.exponent < -EXPONENT_MOST)
    zb_fail(s->error, ZB_BAD_INPUT, "%.*s%s is out of range, expected 0 or a number that is not so small",
            shown, literal, cut);
  else if (shape.digits > SIGNIFICANT_DIGITS && s->literals != ZB_JSON_MEASURED &&
           !(s->literals == ZB_JSON_INTEGERS && is_wide_integer(literal, length, &shape)))
    zb_fail(s->error, ZB_BAD_INPUT, "%.*s%s has %d significant digits, expected at most %d", shown, literal,
            cut, shape.digits, SIGNIFICANT_DIGITS);
  else {
    s->at += length;
    return true;
  }
  return locate(s, s->at);
}

static bool scan_value(struct scanner *s, int depth);

static bool scan_key(struct scanner *s, const char *expected) {
  if (peek(s) != '"') return fail_expected(s, expected);
  s->key = s->text + s->at + 1;
  if (!scan_string(s)) return false;
  s->key_size = (size_t)(s->text + s->at - 1 - s->key);
  skip_blanks(s);
  if (peek(s) != ':') return fail_expected(s, "':' after the key");
  s->at++;
  return true;
}

// A list or an object, from its opening bracket to its closing one.
static bool scan_children(struct scanner *s, bool object, int depth) {
  int close = object ? '}' : ']';
  s->at++;
  skip_blanks(s);
  if (peek(s) == close) {
    s->at++;
    return true;
  }
  for (bool first = true;; first = false) {
    skip_blanks(s);
    s->key = NULL;
    s->key_size = 0;
    if (object && !scan_key(s, first ? "a key in double quotes or '}'" : "a key in double quotes"))
      return false;
    if (!scan_value(s, depth)) return false;
    skip_blanks(s);
    int c = peek(s);
    if (c != close && c != ',') return fail_expected(s, object ? "',' or '}'" : "',' or ']'");
    s->at++;
    if (c == close) return true;
  }
}

static bool scan_value(struct scanner *s, int depth) {
  skip_blanks(s);
  int c = peek(s);
  const size_t at = s->at;
  if (c == '"') return scan_string(s) && tell(s, ZB_JSON_SCALAR, depth, at + 1, s->at - at - 2, true);
  if (c == '{' || c == '[') {
    if (depth == ZB_JSON_DEPTH) {
      zb_fail(s->error, ZB_BAD_INPUT, "nested too deep, expected at most %d levels", ZB_JSON_DEPTH);
      return locate(s, s->at);
    }
    return tell(s, ZB_JSON_OPEN, depth, at, 1, false) && scan_children(s, c == '{', depth + 1) &&
           tell(s, ZB_JSON_CLOSE, depth, s->at - 1, 1, false);
  }
  if (is_word(c)) return scan_literal(s) && tell(s, ZB_JSON_SCALAR, depth, at, s->at - at, false);
  return fail_expected(s, "a value");
}

static enum zb_status scan(struct scanner *s) {
  skip_blanks(s);
  bool holds;
  if (s->size == 0) {
    zb_fail(s->error, ZB_BAD_INPUT, "the file is empty, expected a JSON object");
    holds = locate(s, 0);
  } else if (s->size >= 3 && memcmp(s->text, "\xEF\xBB\xBF", 3) == 0) {
    zb_fail(s->error, ZB_BAD_INPUT, "found a byte order mark, expected UTF-8 without one");
    holds = locate(s, 0);
  } else {
    holds = scan_value(s, 0);
    if (holds) {
      skip_blanks(s);
      holds = s->at == s->size || fail_expected(s, "nothing more after the value");
    }
  }
  if (holds) return ZB_OK;
  return s->status != ZB_OK ? s->status : ZB_BAD_INPUT;
}

enum zb_status zb_json_scan(const char *text, size_t size, enum zb_json_literals literals,
                            struct zb_error *error) {
  struct scanner s = {.text = text, .size = size, .literals = literals, .error = error};
  return scan(&s);
}

enum zb_status zb_json_walk(const char *text, size_t size, enum zb_json_literals literals,
                            enum zb_status (*visit)(void *context, const struct zb_json_visit *visit,
                                                    struct zb_error *error),
                            void *context, struct zb_error *error) {
  struct scanner s = {.text = text, .size = size, .literals = literals, .error = error};
  s.visit = visit;
  s.context = context;
  return scan(&s);
}
