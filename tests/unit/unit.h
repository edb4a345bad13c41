// What every unit test includes: cmocka with the headers it needs, and checks that say more than a line
// number.
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

// Fails with a printf-style message, so that a random test can say which instance it was.
#define expect(condition, ...)                                                                               \
  do {                                                                                                       \
    if (!(condition)) fail_msg(__VA_ARGS__);                                                                 \
  } while (0)

// int64_t, shown as decimals.
#define expect_equal(actual, wanted, what)                                                                   \
  do {                                                                                                       \
    long long actual_ = (actual), wanted_ = (wanted);                                                        \
    if (actual_ != wanted_) fail_msg("%s is %lld, expected %lld", what, actual_, wanted_);                   \
  } while (0)

// Of the instances of a random test: all, or a quarter where another build has passed all (ZB_AGAIN=1).
static inline int part_of(int count) { return getenv("ZB_AGAIN") ? count / 4 : count; }

// Whether case k of a table or of a product is left out then: all but one in `many` are.
static inline bool left_out(int k, int many) { return getenv("ZB_AGAIN") && k % many != 0; }

#endif
