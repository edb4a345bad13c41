// measurements.c - the samples, and numbers as logs write them.
#include "solver/io/measurements.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

static const char *const measure_words[ZB_MEASURE_COUNT] = {
#define X(name, word) word,
    ZB_MEASURE_TABLE(X)
#undef X
};

const char *zb_measure_word(enum zb_measure measure) { return measure_words[measure]; }

// Room for one more of `size` bytes; false when memory ends.
static bool grow(void **data, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return true;
  const size_t more = *capacity ? 2 * *capacity : 256;
  void *moved = realloc(*data, more * size);
  if (!moved) return false;
  *data = moved;
  *capacity = more;
  return true;
}

enum zb_status zb_measurements_add(struct zb_measurements *measurements, struct zb_sample sample,
                                   struct zb_error *error) {
  void *data = measurements->samples;
  if (sample.value > ZB_NUMBER_MAX || sample.value < -ZB_NUMBER_MAX)
    return zb_fail(error, ZB_BAD_INPUT, "%s of stage %d is beyond 2^53", zb_measure_word(sample.measure),
                   sample.stage);
  if (!grow(&data, measurements->count, &measurements->capacity, sizeof sample)) return zb_fail_memory(error);
  measurements->samples = data;
  measurements->samples[measurements->count++] = sample;
  return ZB_OK;
}

// A trace has its spans rank by rank, so that most homes repeat the one before.
enum zb_status zb_measurements_home(struct zb_measurements *measurements, int stage, int rank,
                                    struct zb_error *error) {
  const size_t count = measurements->home_count;
  if (count > 0 && measurements->homes[count - 1].stage == stage &&
      measurements->homes[count - 1].rank == rank)
    return ZB_OK;
  void *data = measurements->homes;
  if (!grow(&data, count, &measurements->home_capacity, sizeof *measurements->homes))
    return zb_fail_memory(error);
  measurements->homes = data;
  measurements->homes[measurements->home_count++] = (struct zb_home){stage, rank};
  return ZB_OK;
}

void zb_measurements_free(struct zb_measurements *measurements) {
  free(measurements->samples);
  free(measurements->homes);
  zb_text_free(&measurements->notes);
  *measurements = (struct zb_measurements){0};
}

bool zb_measured_number(const char *text, size_t size, int power, int64_t *value) {
  enum { DIGITS = 18, POWER_MOST = 1000 };
  const int64_t most = (int64_t)1 << 62;
  size_t i = 0;
  const bool negative = size > 0 && text[0] == '-';
  int64_t number = 0;
  int digits = 0, exponent = power;
  bool point = false, any = false;
  if (size > 0 && (text[0] == '-' || text[0] == '+')) i++;
  for (; i < size && (isdigit((unsigned char)text[i]) || (text[i] == '.' && !point)); i++) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (point && exponent > -POWER_MOST) exponent--;
    if (digits == DIGITS) { // the rest is far below the last digit that counts
      if (exponent < POWER_MOST) exponent++;
      continue;
    }
    number = number * 10 + (text[i] - '0');
    if (number > 0) digits++;
  }
  if (!any) return false;
  if (i < size && (text[i] == 'e' || text[i] == 'E')) {
    i++;
    const int sign = i < size && text[i] == '-' ? -1 : 1;
    int written = 0;
    if (i < size && (text[i] == '-' || text[i] == '+')) i++;
    if (i == size) return false;
    for (; i < size && isdigit((unsigned char)text[i]); i++)
      if (written < POWER_MOST) written = written * 10 + (text[i] - '0');
    exponent += sign * written;
  }
  if (i != size) return false;
  for (; exponent > 0 && number != 0; exponent--) {
    if (number > most / 10) return false;
    number *= 10;
  }
  int last = 0;
  for (; exponent < 0 && (number != 0 || last != 0); exponent++) {
    last = (int)(number % 10);
    number /= 10;
  }
  if (exponent == 0 && last >= 5) number++;
  if (number > most) return false;
  *value = negative ? -number : number;
  return true;
}
