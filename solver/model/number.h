// number.h - exact numbers: decimal text to int64, and sums that say when they overflow.
//
// Every time in the program is int64_t nanoseconds and every size int64_t bytes, at most 2^53 in
// magnitude (contract.md section 1), so that a JSON reader holding doubles has them exactly.
#ifndef ZB_NUMBER_H
#define ZB_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define ZB_NUMBER_MAX ((int64_t)1 << 53)

enum zb_decimal {
  ZB_DECIMAL_OK,
  ZB_DECIMAL_MALFORMED, // not a JSON number
  ZB_DECIMAL_DIGITS,    // more than 15 significant digits
  ZB_DECIMAL_FRACTION,  // finer than one base unit
  ZB_DECIMAL_RANGE,     // beyond 2^53 base units
};

// Multiplies the JSON number `text` (NUL-terminated) by `scale` > 0, exactly. *value is written
// only on ZB_DECIMAL_OK. Example: ("18.522", 1000000) gives 18522000.
enum zb_decimal zb_decimal_parse(const char *text, int64_t scale, int64_t *value);

// *sum += term, or false (and *sum unchanged) when the result would leave +-2^53.
bool zb_add_checked(int64_t *sum, int64_t term);

// *sum += factor * term with factor >= 0, under the same rule.
bool zb_add_product_checked(int64_t *sum, int64_t factor, int64_t term);

// (whole - part) / whole for printing; 0 when whole is 0.
double zb_ratio(int64_t whole, int64_t part);

static inline int64_t zb_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t zb_min(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
