// measured_formats.h - the one table of logs and traces that `profile` can read.
#ifndef ZB_MEASURED_FORMATS_H
#define ZB_MEASURED_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/io/measurements.h"
#include "solver/model/status.h"

enum { ZB_MEASURED_MIB_MOST = 512 }; // that is read of a file, packed or unpacked

// What a reader has to be told.
struct zb_measured_hints {
  int microbatches; // of an iteration, for files that hold sums over them; 0: not said
  int devices;      // for files that count ranks of other dimensions too; 0: every rank is one
};

struct zb_measured_format {
  const char *name, *help; // help: one line
  bool warms_up;           // the first of several iterations is dropped unless --skip says otherwise
  // Whether a text of unknown kind looks like this one.
  bool (*knows)(const char *text, size_t size);
  // Adds the samples of one file. BAD_INPUT with line and column for what cannot be read; a text without any
  // sample is one.
  enum zb_status (*read)(const char *text, size_t size, const struct zb_measured_hints *hints,
                         struct zb_measurements *measurements, struct zb_error *error);
};

int zb_measured_format_count(void);
const struct zb_measured_format *zb_measured_format_at(int index);

// The format that knows the text. BAD_INPUT where none does.
enum zb_status zb_measured_format_guess(const char *text, size_t size,
                                        const struct zb_measured_format **format, struct zb_error *error);

// Reads the file `path` ("-": standard input), unpacked if it is a gzip file, appending to *text. Errors
// carry the path.
enum zb_status zb_measured_file_read(const char *path, struct zb_text *text, struct zb_error *error);

// The readers; arguments as above.
enum zb_status zb_read_torch_trace(const char *text, size_t size, const struct zb_measured_hints *hints,
                                   struct zb_measurements *measurements, struct zb_error *error);
enum zb_status zb_read_zb_log(const char *text, size_t size, const struct zb_measured_hints *hints,
                              struct zb_measurements *measurements, struct zb_error *error);
enum zb_status zb_read_megatron_timers(const char *text, size_t size, const struct zb_measured_hints *hints,
                                       struct zb_measurements *measurements, struct zb_error *error);
enum zb_status zb_read_timings_csv(const char *text, size_t size, const struct zb_measured_hints *hints,
                                   struct zb_measurements *measurements, struct zb_error *error);

#endif
