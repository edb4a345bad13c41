// measurements.h - times and memory that someone measured, and the profile that follows from them.
//
// Readers of logs and traces add samples; a profile takes the median of each stage and op, with what it can
// say about how far to trust it. Samples are whole ns and bytes: measured numbers are rounded, unlike what
// people write into a profile.
#ifndef ZB_MEASUREMENTS_H
#define ZB_MEASUREMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/io/text.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"

// What a sample is of. Times come first; comm k is of the boundary between stages k and k+1.
#define ZB_MEASURE_TABLE(X)                                                                                  \
  X(ZB_MEASURE_F, "F")                                                                                       \
  X(ZB_MEASURE_B, "B")                                                                                       \
  X(ZB_MEASURE_W, "W")                                                                                       \
  X(ZB_MEASURE_BW, "BW")                                                                                     \
  X(ZB_MEASURE_COMM_FORWARD, "comm forward")                                                                 \
  X(ZB_MEASURE_COMM_BACKWARD, "comm backward")                                                               \
  X(ZB_MEASURE_F_BYTES, "memory F")                                                                          \
  X(ZB_MEASURE_B_BYTES, "memory B")                                                                          \
  X(ZB_MEASURE_W_BYTES, "memory W")

enum zb_measure {
#define X(name, word) name,
  ZB_MEASURE_TABLE(X)
#undef X
      ZB_MEASURE_COUNT
};
const char *zb_measure_word(enum zb_measure measure);

struct zb_sample {
  enum zb_measure measure;
  int stage;      // or boundary
  int microbatch; // -1: not said
  int64_t order;  // grows with the time at which it was taken, within its stage and measure
  int64_t value;  // ns or bytes
};

struct zb_home {
  int stage, rank;
};

enum { ZB_MEASURED_STAGES = 100000, ZB_MEASURED_MICROBATCHES = 1000000 }; // at most

// Everything is owned. Start from a zeroed struct; zb_measurements_free.
struct zb_measurements {
  struct zb_sample *samples; // [count]
  size_t count, capacity;
  struct zb_home *homes; // [home_count] which rank was seen to run which stage
  size_t home_count, home_capacity;
  bool shortest_comm;   // comm samples hold waiting too: the shortest counts, not the median
  struct zb_text notes; // of the readers, for the profile's note: sentences, each ended by a line break
};

// BAD_INPUT where the value is beyond 2^53.
enum zb_status zb_measurements_add(struct zb_measurements *measurements, struct zb_sample sample,
                                   struct zb_error *error);
// That `rank` runs `stage`. Without any, stage s is on device s.
enum zb_status zb_measurements_home(struct zb_measurements *measurements, int stage, int rank,
                                    struct zb_error *error);
void zb_measurements_free(struct zb_measurements *measurements); // the fields, not the struct

// A number as logs write it, times 10^power, rounded to a whole one, half away from 0. False: not a number,
// or beyond 2^62. `size` bytes at `text`.
bool zb_measured_number(const char *text, size_t size, int power, int64_t *value);

// Of one stage and measure.
struct zb_measured_row {
  enum zb_measure measure;
  int stage;
  size_t samples;
  int64_t value;                  // that the profile takes
  int64_t least, low, high, most; // quartiles: a quarter of the samples is below `low`, one above `high`
};

// What a profile was made of. Owned: zb_measured_free.
struct zb_measured {
  struct zb_profile *profile;
  struct zb_measured_row *rows; // [row_count] by stage, then measure
  size_t row_count;
  struct zb_text warnings; // what looks odd, each ended by a line break
};

// How to read the samples.
struct zb_measured_options {
  const char *name, *source; // for the profile
  int skip;                  // drop so many first samples of each stage, measure and microbatch; -1: none, or
                             // one where there are several and `warms_up`
  bool warms_up;
  int microbatches; // 0: as many as the samples have
  int64_t comm_ns;  // -1: as measured
};

// Makes the profile: stages on the devices that the homes say (ranks with the same stages are replicas of one
// device), placement named where it has a name. BAD_INPUT where stages or ops are missing, a stage has no
// home of its own, or nothing says how many microbatches there are.
enum zb_status zb_measurements_profile(const struct zb_measurements *measurements,
                                       const struct zb_measured_options *options,
                                       struct zb_measured *measured, struct zb_error *error);
void zb_measured_free(struct zb_measured *measured); // the fields, not the struct

#endif
