// export.h - a schedule in other people's formats: the one table of what `export` can write.
//
// A writer sees a schedule that has been checked and timed, and appends the whole file to the output's text.
// What a format cannot carry is refused, never dropped; what it makes of the schedule beyond plain copying,
// and what must go with the file, it says in notes and settings.
#ifndef ZB_EXPORT_H
#define ZB_EXPORT_H

#include "solver/io/text.h"
#include "solver/model/answer.h"
#include "solver/model/report.h"
#include "solver/model/status.h"
#include "solver/model/timeline.h"

// What a writer may look at. Everything is borrowed.
struct zb_export_input {
  const struct zb_answer *answer;       // with a schedule; every number in it has been recomputed
  const struct zb_timeline *timeline;   // of that schedule, complete, period included
  int torch_minor;                      // the release of torch to write for: 2.torch_minor
  int64_t layers;                       // of the model, 0: not said
  const struct zb_compare *compare;     // of its profile, for formats that show it; NULL: there is none
  const struct zb_frontiers *frontiers; // likewise
};

// A setting of a framework without which the file does not run as meant.
struct zb_export_setting {
  const char *framework, *key; // not owned
  char value[64];
};
enum { ZB_EXPORT_SETTINGS_MOST = 16 };

// What a writer leaves. Start from a zeroed struct; zb_export_output_free.
struct zb_export_output {
  struct zb_text text; // the file
  struct zb_export_setting settings[ZB_EXPORT_SETTINGS_MOST];
  int setting_count;
  struct zb_text notes; // for the user, each line ended by a line break
};

// What a format makes of an option that not all of them have.
enum {
  ZB_EXPORT_TARGET = 1,  // torch_minor
  ZB_EXPORT_LAYERS = 2,  // layers
  ZB_EXPORT_COMPARE = 4, // compare and frontiers, so that they are worth computing
};

struct zb_export_format {
  const char *name, *help; // help: one line
  unsigned uses;           // ZB_EXPORT_*
  // BAD_INPUT says what the format cannot carry, and what it can.
  enum zb_status (*write)(const struct zb_export_input *input, struct zb_export_output *output,
                          struct zb_error *error);
};

int zb_export_format_count(void);
const struct zb_export_format *zb_export_format_at(int index);

// Appends a setting; value as printf would print it.
void zb_export_set(struct zb_export_output *output, const char *framework, const char *key,
                   const char *format, ...) ZB_PRINTF(4, 5);

void zb_export_output_free(struct zb_export_output *output); // the fields, not the struct

#endif
