// import.h - schedules in other people's formats: the one table of what `import` can read.
//
// A reader turns a file's text into orders; everything after that (zb_file_orders_check and on) is the same
// for all.
#ifndef ZB_IMPORT_H
#define ZB_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/io/file_orders.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

struct zb_import_format {
  const char *name, *help; // help: one line
  // Fills *orders (zeroed at first but for its channels; the caller's, also after a failure) and appends to
  // `notes` what of the file a schedule does not hold, each line ended by a line break. BAD_INPUT for syntax,
  // WRONG for what the format itself forbids.
  enum zb_status (*read)(const char *text, size_t size, struct zb_file_orders *orders, struct zb_text *notes,
                         struct zb_error *error);
  bool own; // the format of this program, which also says what a schedule costs
};

int zb_import_format_count(void);
const struct zb_import_format *zb_import_format_at(int index);

struct zb_imported {
  struct zb_profile *placed;    // the profile, on the file's placement
  struct zb_schedule *schedule; // finishes under it; memory is the caller's to check
  struct zb_text notes;
};

// Reads the file `path` ("-": standard input) and holds it against the profile; `channels` is how its
// messages wait for each other, if it has any. BAD_INPUT and WRONG as above and as file_orders.h has them,
// with the path. *imported: zb_imported_free; written only on success.
enum zb_status zb_import_read(const struct zb_import_format *format, const char *path,
                              const struct zb_profile *profile, enum zb_channels channels,
                              struct zb_imported *imported, struct zb_error *error);

// The same from text that is already in memory; the error's path is left alone.
enum zb_status zb_import_read_text(const struct zb_import_format *format, const char *text, size_t size,
                                   const struct zb_profile *profile, enum zb_channels channels,
                                   struct zb_imported *imported, struct zb_error *error);

void zb_imported_free(struct zb_imported *imported); // the fields, not the struct

#endif
