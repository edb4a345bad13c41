// quantity.c - exact reading, readable printing.
#include "solver/cli/quantity.h"

#include <stdio.h>
#include <string.h>

#include "solver/model/number.h"

enum { NUMBER_TEXT = 48 };

static enum zb_status explain(enum zb_decimal why, const char *text, const char *finest,
                              struct zb_error *error) {
  switch (why) {
  case ZB_DECIMAL_DIGITS:
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" has more than 15 significant digits", text);
  case ZB_DECIMAL_FRACTION:
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is finer than %s", text, finest);
  case ZB_DECIMAL_RANGE:
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is more than 2^53 times %s", text, finest);
  default:
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" does not start with a number", text);
  }
}

// Splits "1.5GiB" or "1.5 GiB" into number and unit; false where there is no number.
static bool split(const char *text, char *number, const char **unit) {
  size_t length = strspn(text, "+-.0123456789");
  if (length == 0 || length >= NUMBER_TEXT) return false;
  memcpy(number, text, length);
  number[length] = 0;
  *unit = text + length + (text[length] == ' ');
  return true;
}

enum zb_status zb_multiple_read(const char *text, int64_t *millionths, struct zb_error *error) {
  char number[NUMBER_TEXT];
  const char *unit;
  if (!split(text, number, &unit) || strcmp(unit, "x") != 0)
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a multiple like 1.5x", text);
  int64_t value;
  enum zb_decimal why = zb_decimal_parse(number, ZB_MILLION, &value);
  if (why != ZB_DECIMAL_OK) return explain(why, text, "0.000001x", error);
  if (value < 0 || value > (int64_t)ZB_MILLION * ZB_MILLION)
    return zb_fail(error, ZB_BAD_INPUT, "%s is out of range (0x to 1000000x)", text);
  *millionths = value;
  return ZB_OK;
}

static enum zb_status read_bytes(const char *text, const char *number, const char *word, int64_t *bytes,
                                 struct zb_error *error) {
  char list[ZB_UNIT_LIST];
  const struct zb_unit *unit = zb_unit_find(zb_memory_units, word);
  if (!unit)
    return zb_fail(error, ZB_BAD_INPUT, "\"%s\" has %s unit (x, %s)", text, *word ? "an unknown" : "no",
                   zb_unit_list(zb_memory_units, list));
  enum zb_decimal why = zb_decimal_parse(number, unit->scale, bytes);
  if (why != ZB_DECIMAL_OK) return explain(why, text, "1 byte", error);
  if (*bytes < 0) return zb_fail(error, ZB_BAD_INPUT, "%s is negative", text);
  return ZB_OK;
}

enum zb_status zb_limit_read(const char *text, struct zb_limit *limit, struct zb_error *error) {
  char number[NUMBER_TEXT];
  const char *unit;
  struct zb_limit read = {ZB_LIMIT_NONE, 0};
  enum zb_status status = ZB_OK;
  if (strcmp(text, "none") != 0) {
    if (!split(text, number, &unit))
      return zb_fail(error, ZB_BAD_INPUT, "\"%s\" is not a limit like 40GiB, 1.5x or none", text);
    read.kind = strcmp(unit, "x") == 0 ? ZB_LIMIT_MULTIPLE : ZB_LIMIT_BYTES;
    status = read.kind == ZB_LIMIT_MULTIPLE ? zb_multiple_read(text, &read.value, error)
                                            : read_bytes(text, number, unit, &read.value, error);
  }
  if (status == ZB_OK) *limit = read;
  return status;
}

// floor(multiple * unit) as (q * million + r) * x / million, so that no product leaves int64: x is at most
// 10^12 and r below 10^6. False beyond 2^53.
static bool multiple_of(int64_t millionths, int64_t unit, int64_t *bytes) {
  int64_t sum = unit % ZB_MILLION * millionths / ZB_MILLION;
  if (!zb_add_product_checked(&sum, unit / ZB_MILLION, millionths)) return false;
  *bytes = sum;
  return true;
}

int64_t zb_limit_unit(const struct zb_profile *profile) {
  return profile->devices * zb_profile_activation(profile);
}

enum zb_status zb_limit_set(int64_t millionths, int64_t unit, struct zb_profile *profile, int64_t *bytes,
                            struct zb_error *error) {
  int64_t relative;
  bool fits = multiple_of(millionths, unit, &relative);
  for (int d = 0; d < profile->devices && fits; d++) {
    int64_t limit = relative;
    fits = zb_add_checked(&limit, profile->static_bytes[d]);
    profile->limit_bytes[d] = limit;
  }
  if (!fits) return zb_fail(error, ZB_BAD_INPUT, "the memory limit is above 2^53 bytes");
  *bytes = relative;
  return ZB_OK;
}

enum zb_status zb_limit_apply(struct zb_limit limit, struct zb_profile *profile, struct zb_error *error) {
  if (limit.kind == ZB_LIMIT_NOT_GIVEN) return ZB_OK;
  if (limit.kind != ZB_LIMIT_NONE && !profile->has_memory)
    return zb_fail(error, ZB_BAD_INPUT, "memory: missing, a limit needs it");
  int64_t bytes = limit.kind == ZB_LIMIT_NONE ? ZB_NO_LIMIT : limit.value;
  if (limit.kind == ZB_LIMIT_MULTIPLE)
    return zb_limit_set(limit.value, zb_limit_unit(profile), profile, &bytes, error);
  for (int d = 0; d < profile->devices; d++) profile->limit_bytes[d] = bytes;
  return ZB_OK;
}

int64_t zb_multiple_for(int64_t bytes, int64_t unit) {
  if (unit <= 0 || bytes <= 0) return 0;
  int64_t low = 0, high = (int64_t)ZB_MILLION * ZB_MILLION, reached;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (!multiple_of(middle, unit, &reached) || reached >= bytes)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

const char *zb_multiple_text(int64_t millionths, char *text) {
  int length = snprintf(text, ZB_QUANTITY_TEXT - 1, "%lld.%06lld", (long long)(millionths / ZB_MILLION),
                        (long long)(millionths % ZB_MILLION));
  while (text[length - 1] == '0') length--;
  if (text[length - 1] == '.') length--;
  text[length] = 'x';
  text[length + 1] = 0;
  return text;
}

const char *zb_percent_text(double ratio, char *text) {
  snprintf(text, ZB_QUANTITY_TEXT, "%.2f%%", 100 * ratio);
  return text;
}

const struct zb_unit *zb_time_unit_for(int64_t largest_ns) {
  static const char *const words[] = {"s", "ms", "us", "ns"};
  for (size_t k = 0; k < 3; k++) {
    const struct zb_unit *unit = zb_unit_find(zb_time_units, words[k]);
    if (largest_ns / unit->scale >= (k == 0 ? 100 : 10)) return unit;
  }
  return zb_unit_find(zb_time_units, words[3]);
}

// Half up in whole numbers, as zb_time_text, so that one time never shows two roundings.
const char *zb_time_in(int64_t ns, const struct zb_unit *unit, char *text) {
  if (unit->scale == 1) {
    snprintf(text, ZB_QUANTITY_TEXT, "%lld", (long long)ns);
    return text;
  }
  int64_t thousandth = unit->scale / 1000, rounded = (ns + thousandth / 2) / thousandth;
  snprintf(text, ZB_QUANTITY_TEXT, "%lld.%03lld", (long long)(rounded / 1000), (long long)(rounded % 1000));
  return text;
}
