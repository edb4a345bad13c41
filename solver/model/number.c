// number.c - exact decimal conversion without floating point.
//
// A literal is digits * 10^exponent. Digits are at most 15 significant ones, so they and the scale
// fit int64; a negative exponent divides their product by 2 and 5 as often as it says, taken from
// whichever factor still has one, and what does not divide is finer than the base unit.
#include "solver/model/number.h"

#include <ctype.h>
#include <limits.h>

enum { SIGNIFICANT_DIGITS = 15, EXPONENT_CLAMP = 100000 };

struct literal {
  bool negative;
  int64_t digits; // without trailing zeros
  int exponent;
};

static enum zb_decimal read_literal(const char *text, struct literal *literal) {
  const char *c = text;
  literal->negative = *c == '-';
  if (*c == '-') c++;
  if (!isdigit((unsigned char)*c)) return ZB_DECIMAL_MALFORMED;
  if (c[0] == '0' && isdigit((unsigned char)c[1])) return ZB_DECIMAL_MALFORMED;
  int64_t digits = 0;
  int count = 0, pending_zeros = 0, exponent = 0;
  bool fraction = false;
  for (;; c++) {
    if (*c == '.' && !fraction) {
      fraction = true;
      if (!isdigit((unsigned char)c[1])) return ZB_DECIMAL_MALFORMED;
      continue;
    }
    if (!isdigit((unsigned char)*c)) break;
    if (fraction && exponent > -EXPONENT_CLAMP) exponent--;
    if (*c == '0') { // significant only if a later digit says so
      if (digits != 0 && pending_zeros < EXPONENT_CLAMP) pending_zeros++;
      continue;
    }
    count += pending_zeros + 1;
    if (count > SIGNIFICANT_DIGITS) return ZB_DECIMAL_DIGITS;
    for (; pending_zeros > 0; pending_zeros--) digits *= 10;
    digits = digits * 10 + (*c - '0');
  }
  exponent += pending_zeros;
  if (*c == 'e' || *c == 'E') {
    c++;
    int sign = *c == '-' ? -1 : 1, written = 0;
    if (*c == '-' || *c == '+') c++;
    if (!isdigit((unsigned char)*c)) return ZB_DECIMAL_MALFORMED;
    for (; isdigit((unsigned char)*c); c++)
      if (written < EXPONENT_CLAMP) written = written * 10 + (*c - '0');
    exponent += sign * written;
  }
  if (*c) return ZB_DECIMAL_MALFORMED;
  literal->digits = digits;
  literal->exponent = exponent;
  return ZB_DECIMAL_OK;
}

static bool divide_one_of(int64_t divisor, int64_t *a, int64_t *b) {
  int64_t *factor = *a % divisor == 0 ? a : *b % divisor == 0 ? b : 0;
  if (factor) *factor /= divisor;
  return factor != 0;
}

enum zb_decimal zb_decimal_parse(const char *text, int64_t scale, int64_t *value) {
  struct literal literal;
  enum zb_decimal status = read_literal(text, &literal);
  if (status != ZB_DECIMAL_OK) return status;
  int64_t digits = literal.digits;
  if (digits != 0) {
    for (; literal.exponent < 0; literal.exponent++)
      if (!divide_one_of(2, &digits, &scale) || !divide_one_of(5, &digits, &scale))
        return ZB_DECIMAL_FRACTION;
    for (; literal.exponent > 0; literal.exponent--) {
      if (digits > ZB_NUMBER_MAX / 10) return ZB_DECIMAL_RANGE;
      digits *= 10;
    }
    if (digits > ZB_NUMBER_MAX / scale) return ZB_DECIMAL_RANGE;
    digits *= scale;
  }
  *value = literal.negative ? -digits : digits;
  return ZB_DECIMAL_OK;
}

bool zb_add_checked(int64_t *sum, int64_t term) {
  if (term > 0 ? *sum > ZB_NUMBER_MAX - term : *sum < -ZB_NUMBER_MAX - term) return false;
  *sum += term;
  return true;
}

bool zb_add_product_checked(int64_t *sum, int64_t factor, int64_t term) {
  int64_t magnitude = term < 0 ? -term : term;
  if (factor != 0 && magnitude > 2 * ZB_NUMBER_MAX / factor) return false;
  return zb_add_checked(sum, factor * term);
}

double zb_ratio(int64_t whole, int64_t part) {
  return whole == 0 ? 0.0 : (double)(whole - part) / (double)whole;
}
