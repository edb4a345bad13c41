// quantity.h - memory limits and multiples as people write them, exactly; and ratios as people read them.
#ifndef ZB_QUANTITY_H
#define ZB_QUANTITY_H

#include <stdint.h>

#include "solver/io/units.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"

#define ZB_MILLION 1000000

// What --memory-limit says.
struct zb_limit {
  enum { ZB_LIMIT_NOT_GIVEN, ZB_LIMIT_NONE, ZB_LIMIT_BYTES, ZB_LIMIT_MULTIPLE } kind;
  int64_t value; // bytes, or millionths of devices * activation
};

// "40GiB", "1.5x" or "none", exactly. BAD_INPUT says what was expected.
enum zb_status zb_limit_read(const char *text, struct zb_limit *limit, struct zb_error *error);

// "1.5x" in millionths.
enum zb_status zb_multiple_read(const char *text, int64_t *millionths, struct zb_error *error);

// Sets every device's limit: bytes as they are, static included, or zb_limit_set with the profile's own unit.
// The profile must be finished again afterwards.
enum zb_status zb_limit_apply(struct zb_limit limit, struct zb_profile *profile, struct zb_error *error);

// Sets every device's limit to floor(multiple * unit) plus the device's static; *bytes is the first of the
// two.
enum zb_status zb_limit_set(int64_t millionths, int64_t unit, struct zb_profile *profile, int64_t *bytes,
                            struct zb_error *error);

// devices * the activation of one microbatch: what 1x is.
int64_t zb_limit_unit(const struct zb_profile *profile);

// The least multiple, in millionths, whose limit is at least `bytes` (static excluded); 0 without a unit.
int64_t zb_multiple_for(int64_t bytes, int64_t unit);

// Each writes into `text`, of ZB_QUANTITY_TEXT bytes, and returns it.
const char *zb_multiple_text(int64_t millionths, char *text); // 1.125x
const char *zb_percent_text(double ratio, char *text);        // 4.33%

// One unit for a whole column of times: "ms" for costs around a second, so that their digits line up.
const struct zb_unit *zb_time_unit_for(int64_t largest_ns);
const char *zb_time_in(int64_t ns, const struct zb_unit *unit, char *text); // 1152.599

#endif
