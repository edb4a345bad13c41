/* zbcheck: JSON by the grammar of RFC 8259, and numbers without rounding.
 *
 * A value keeps the byte where it stands; line and column are counted only when there is something to report.
 * Numbers keep their text, so that zc_exact can turn 18.522 ms into 18522000 ns by shifting digits. Repeated
 * keys are found when an object is read against its table of known keys, where there are only a few to
 * compare with. */
#include "zbcheck.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, NODES_A_CHUNK = 1024, MOST_DIGITS = 15 };

struct parser {
  struct zc_run *run;
  const char *path, *source, *at, *end;
  char *strings; /* decoded text goes here; never longer than the source, as an escape shrinks */
  struct zc_node *chunk;
  size_t left;
};

static bool stop_at(struct zc_run *run, const char *path, const char *source, size_t at, const char *format,
                    va_list list) {
  char text[480];
  size_t line = 1, column = 1;

  for (size_t i = 0; i < at; i++) {
    column++;
    if (source[i] == '\n') {
      line++;
      column = 1;
    }
  }
  vsnprintf(text, sizeof text, format, list);
  return zc_stop(run, ZC_BAD_INPUT, "%s:%zu:%zu: %s", path, line, column, text);
}

bool zc_bad(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
            const char *format, ...) {
  va_list list;

  va_start(list, format);
  stop_at(run, document->path, document->source, node->at, format, list);
  va_end(list);
  return false;
}

ZC_PRINTF(2, 3)
static bool syntax(struct parser *p, const char *format, ...) {
  va_list list;

  va_start(list, format);
  stop_at(p->run, p->path, p->source, (size_t)(p->at - p->source), format, list);
  va_end(list);
  return false;
}

/* What stands at the parser, for a message. */
static const char *here(const struct parser *p, char word[16]) {
  if (p->at == p->end) return "the end of the file";
  unsigned char c = (unsigned char)*p->at;
  snprintf(word, 16, c > ' ' && c < 127 ? "'%c'" : "byte 0x%02x", c);
  return word;
}

static void skip_blanks(struct parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static struct zc_node *new_node(struct parser *p, enum zc_type type) {
  if (p->left == 0) {
    p->chunk = zc_alloc(p->run, NODES_A_CHUNK, sizeof *p->chunk);
    if (!p->chunk) return NULL;
    p->left = NODES_A_CHUNK;
  }
  p->left--;
  struct zc_node *node = p->chunk++;
  node->type = type;
  node->at = (uint32_t)(p->at - p->source);
  return node;
}

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The four digits after \u, as UTF-8. Halves of a surrogate pair stay apart: no key or word here has one. */
static bool parse_unicode(struct parser *p) {
  unsigned code = 0;

  for (int i = 0; i < 4; i++, p->at++) {
    int digit = p->at < p->end ? hex_value(*p->at) : -1;
    if (digit < 0) return syntax(p, "bad \\u escape, expected four hexadecimal digits");
    code = code * 16 + (unsigned)digit;
  }
  if (code < 0x80) {
    *p->strings++ = (char)code;
    return true;
  }
  if (code < 0x800) {
    *p->strings++ = (char)(0xc0 | code >> 6);
  } else {
    *p->strings++ = (char)(0xe0 | code >> 12);
    *p->strings++ = (char)(0x80 | (code >> 6 & 0x3f));
  }
  *p->strings++ = (char)(0x80 | (code & 0x3f));
  return true;
}

static bool parse_escape(struct parser *p) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *found = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;

  if (found) {
    *p->strings++ = to[found - from];
    p->at++;
    return true;
  }
  if (p->at < p->end && *p->at == 'u') {
    p->at++;
    return parse_unicode(p);
  }
  return syntax(p, "bad escape in a string, expected one of \" \\ / b f n r t u");
}

/* A string's decoded bytes. The opening quote is the current byte. */
static bool parse_text(struct parser *p, const char **text, uint32_t *length) {
  char word[16], *start = p->strings;

  for (p->at++; p->at < p->end && *p->at != '"';) {
    if ((unsigned char)*p->at < ' ')
      return syntax(p, "%s in a string, expected an escape or the closing quote", here(p, word));
    if (*p->at == '\\') {
      p->at++;
      if (!parse_escape(p)) return false;
    } else {
      *p->strings++ = *p->at++;
    }
  }
  if (p->at == p->end) return syntax(p, "a string does not end, expected '\"'");
  p->at++;
  *p->strings++ = '\0';
  *text = start;
  *length = (uint32_t)(p->strings - start - 1);
  return true;
}

static bool digits(struct parser *p, const char *what) {
  char word[16];

  if (p->at == p->end || *p->at < '0' || *p->at > '9')
    return syntax(p, "%s in a number, expected a digit %s", here(p, word), what);
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
  return true;
}

static struct zc_node *parse_number(struct parser *p) {
  struct zc_node *node = new_node(p, ZC_NUMBER);

  if (!node) return NULL;
  node->text = p->at;
  if (*p->at == '-') p->at++;
  if (p->at + 1 < p->end && p->at[0] == '0' && p->at[1] >= '0' && p->at[1] <= '9') {
    syntax(p, "a number begins with 0, expected no leading zero");
    return NULL;
  }
  if (!digits(p, "after the sign")) return NULL;
  if (p->at < p->end && *p->at == '.') {
    p->at++;
    if (!digits(p, "after the point")) return NULL;
  }
  if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
    p->at++;
    if (p->at < p->end && (*p->at == '+' || *p->at == '-')) p->at++;
    if (!digits(p, "in the exponent")) return NULL;
  }
  node->length = (uint32_t)(p->at - node->text);
  return node;
}

static struct zc_node *parse_word(struct parser *p) {
  static const struct {
    const char *word;
    enum zc_type type;
  } words[] = {{"null", ZC_NULL}, {"true", ZC_BOOL}, {"false", ZC_BOOL}};
  char word[16];

  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t length = strlen(words[i].word);
    if ((size_t)(p->end - p->at) >= length && memcmp(p->at, words[i].word, length) == 0) {
      struct zc_node *node = new_node(p, words[i].type);
      p->at += length;
      return node;
    }
  }
  syntax(p, "%s, expected a JSON value", here(p, word));
  return NULL;
}

static struct zc_node *parse_value(struct parser *p, int depth);

/* A member's `"key" :`, into *key. */
static bool parse_key(struct parser *p, const char **key, uint32_t *key_at) {
  char word[16];
  uint32_t length;

  if (p->at == p->end || *p->at != '"')
    return syntax(p, "%s, expected a key in double quotes", here(p, word));
  *key_at = (uint32_t)(p->at - p->source);
  if (!parse_text(p, key, &length)) return false;
  if (strlen(*key) != length) return syntax(p, "a key with a zero byte, expected none");
  skip_blanks(p);
  if (p->at == p->end || *p->at != ':') return syntax(p, "%s, expected ':' after a key", here(p, word));
  p->at++;
  skip_blanks(p);
  return true;
}

static struct zc_node *parse_collection(struct parser *p, int depth) {
  bool object = *p->at == '{';
  char close = object ? '}' : ']', word[16];
  struct zc_node *node = new_node(p, object ? ZC_OBJECT : ZC_ARRAY), **tail;

  if (!node) return NULL;
  if (depth == DEEPEST) {
    syntax(p, "nested deeper than %d levels, expected less", DEEPEST);
    return NULL;
  }
  tail = &node->first;
  p->at++;
  skip_blanks(p);
  if (p->at < p->end && *p->at == close) {
    p->at++;
    return node;
  }
  for (;;) {
    const char *key = NULL;
    uint32_t key_at = 0;
    if (object && !parse_key(p, &key, &key_at)) return NULL;
    struct zc_node *value = parse_value(p, depth + 1);
    if (!value) return NULL;
    value->key = key;
    value->key_at = key_at;
    *tail = value;
    tail = &value->next;
    node->count++;
    skip_blanks(p);
    if (p->at < p->end && *p->at == close) {
      p->at++;
      return node;
    }
    if (p->at == p->end || *p->at != ',') {
      syntax(p, "%s, expected ',' or '%c'", here(p, word), close);
      return NULL;
    }
    p->at++;
    skip_blanks(p);
  }
}

static struct zc_node *parse_value(struct parser *p, int depth) {
  char c = p->at < p->end ? *p->at : '\0';

  if (c == '{' || c == '[') return parse_collection(p, depth);
  if (c == '-' || (c >= '0' && c <= '9')) return parse_number(p);
  if (c == '"') {
    struct zc_node *node = new_node(p, ZC_STRING);
    return node && parse_text(p, &node->text, &node->length) ? node : NULL;
  }
  return parse_word(p);
}

bool zc_read_file(struct zc_run *run, const char *path, const char **bytes, size_t *length, bool *missing) {
  char *text = NULL;
  size_t room = 0, used = 0;
  bool good = false;
  FILE *file = fopen(path, "rb");

  if (missing) *missing = !file && errno == ENOENT;
  if (!file) return zc_stop(run, ZC_BAD_INPUT, "%s: cannot open: %s", path, strerror(errno));
  do {
    void *table = text;
    if (!zc_grow(run, &table, &room, used + 65536, 1)) goto done;
    text = table;
    used += fread(text + used, 1, room - used, file);
  } while (used == room && used < UINT32_MAX);
  if (ferror(file)) {
    zc_stop(run, ZC_BAD_INPUT, "%s: cannot read: %s", path, strerror(errno));
    goto done;
  }
  if (used >= UINT32_MAX / 2) {
    zc_stop(run, ZC_BAD_INPUT, "%s: 2 GiB or more, expected a smaller file", path);
    goto done;
  }
  char *copy = zc_alloc(run, used + 1, 1);
  if (!copy) goto done;
  memcpy(copy, text, used);
  *bytes = copy;
  *length = used;
  good = true;
done:
  free(text);
  fclose(file);
  return good;
}

bool zc_parse(struct zc_run *run, const char *path, const char *bytes, size_t length,
              struct zc_document *document) {
  struct parser p = {.run = run, .path = path, .source = bytes, .at = bytes, .end = bytes + length};
  char word[16];

  /* Each string costs its quotes in the source and its final zero here, so the source's length is enough. */
  p.strings = zc_alloc(run, length + 1, 1);
  if (!p.strings) return false;
  skip_blanks(&p);
  struct zc_node *root = parse_value(&p, 0);
  if (!root) return false;
  skip_blanks(&p);
  if (p.at != p.end) return syntax(&p, "%s after the value, expected the end of the file", here(&p, word));
  *document = (struct zc_document){.path = path, .source = bytes, .length = length, .root = root};
  return true;
}

static const char *type_name(unsigned types) {
  static const struct {
    unsigned types;
    const char *name;
  } names[] = {
      {ZC_NULL, "null"},
      {ZC_BOOL, "a truth value"},
      {ZC_NUMBER, "a number"},
      {ZC_STRING, "a string"},
      {ZC_ARRAY, "a list"},
      {ZC_OBJECT, "an object"},
      {ZC_NUMBER | ZC_NULL, "a number or null"},
      {ZC_NUMBER | ZC_ARRAY, "a number or a list"},
      {ZC_STRING | ZC_ARRAY, "a string or a list"},
      {ZC_ARRAY | ZC_OBJECT, "a list or an object"},
      {ZC_NUMBER | ZC_ARRAY | ZC_OBJECT, "a number, a list or an object"},
      {ZC_NUMBER | ZC_ARRAY | ZC_NULL, "a number, a list or null"},
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].types == types) return names[i].name;
  return "something else";
}

static bool read_field(struct zc_run *run, const struct zc_document *document, const struct zc_node *member,
                       const char *where, const struct zc_field *fields, size_t count) {
  const char *dot = *where ? "." : "";
  struct zc_node key = {.at = member->key_at};
  size_t i = 0;

  while (i < count && strcmp(fields[i].key, member->key) != 0) i++;
  if (i == count) return zc_bad(run, document, &key, "%s%s%.60s: unknown key", where, dot, member->key);
  if (*fields[i].value) return zc_bad(run, document, &key, "%s%s%s: repeated key", where, dot, member->key);
  if (!(member->type & fields[i].types))
    return zc_bad(run, document, member, "%s%s%s: %s, expected %s", where, dot, member->key,
                  type_name(member->type), type_name(fields[i].types));
  *fields[i].value = member;
  return true;
}

bool zc_fields(struct zc_run *run, const struct zc_document *document, const struct zc_node *object,
               const char *where, const struct zc_field *fields, size_t count) {
  for (size_t i = 0; i < count; i++) *fields[i].value = NULL;
  for (const struct zc_node *member = object->first; member; member = member->next)
    if (!read_field(run, document, member, where, fields, count)) return false;
  for (size_t i = 0; i < count; i++)
    if (fields[i].required && !*fields[i].value)
      return zc_bad(run, document, object, "%s%s%s: missing, expected %s", where, *where ? "." : "",
                    fields[i].key, type_name(fields[i].types));
  return true;
}

int zc_shown(const struct zc_node *number) { return number->length < 60 ? (int)number->length : 60; }

bool zc_text_is(const struct zc_node *node, const char *text) {
  return node->length == strlen(text) && memcmp(node->text, text, node->length) == 0;
}

/* A literal as digits * 10^power, with neither leading nor trailing zeros in digits. */
struct decimal {
  bool negative, plain; /* plain: no point and no exponent */
  int count;            /* digits; as many as fit are in `digits` */
  int64_t digits;
  int64_t power;
};

static struct decimal read_decimal(const struct zc_node *number) {
  struct decimal d = {.plain = true};
  const char *at = number->text, *end = at + number->length;
  int64_t zeros = 0, exponent = 0;
  bool point = false, minus = false;

  if (*at == '-') {
    d.negative = true;
    at++;
  }
  for (; at < end && *at != 'e' && *at != 'E'; at++) {
    if (*at == '.') {
      point = true;
      d.plain = false;
      continue;
    }
    d.power -= point;
    if (*at == '0') {
      zeros += d.count > 0; /* trailing until another digit follows */
      continue;
    }
    for (int64_t i = zeros + 1; i > 0; i--) {
      d.count++;
      if (d.count <= 18) d.digits *= 10;
    }
    if (d.count <= 18) d.digits += *at - '0';
    zeros = 0;
  }
  d.power += zeros;
  if (at < end) {
    d.plain = false;
    at++;
    minus = *at == '-';
    at += *at == '-' || *at == '+';
    for (; at < end; at++)
      if (exponent < INT32_MAX) exponent = exponent * 10 + (*at - '0');
  }
  d.power += minus ? -exponent : exponent;
  return d;
}

const char *zc_exact(const struct zc_node *number, int64_t unit, const char *base, int64_t *value) {
  static const int prime[2] = {2, 5};
  struct decimal d = read_decimal(number);

  if (d.count > (d.plain ? MOST_DIGITS + 1 : MOST_DIGITS)) return "has more than 15 significant digits";
  if (d.digits == 0) {
    *value = 0;
    return NULL;
  }
  /* digits * unit / 10^-power: cancel each 2 and 5 of the divisor against either factor. */
  for (; d.power < 0; d.power++) {
    for (int i = 0; i < 2; i++) {
      if (unit % prime[i] == 0)
        unit /= prime[i];
      else if (d.digits % prime[i] == 0)
        d.digits /= prime[i];
      else
        return base;
    }
  }
  for (; d.power > 0; d.power--) {
    if (d.digits > ZC_MOST / 10) return "is above 2^53";
    d.digits *= 10;
  }
  if (d.digits > ZC_MOST / unit) return "is above 2^53";
  *value = d.negative ? -d.digits * unit : d.digits * unit;
  return NULL;
}

bool zc_integer(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
                const char *where, int64_t low, int64_t high, int64_t *value) {
  int64_t read = 0;

  if (node->type != ZC_NUMBER)
    return zc_bad(run, document, node, "%s: %s, expected an integer", where, type_name(node->type));
  const char *why = zc_exact(node, 1, "is not an integer", &read);
  if (why) return zc_bad(run, document, node, "%s: %.*s %s", where, zc_shown(node), node->text, why);
  if (read < low || read > high)
    return zc_bad(run, document, node, "%s: %lld, expected an integer from %lld to %lld", where,
                  (long long)read, (long long)low, (long long)high);
  *value = read;
  return true;
}
