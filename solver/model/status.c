// status.c - words and codes of the outcomes, and filling an error.
#include "solver/model/status.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
  const char *word;
  int exit_code;
} table[ZB_STATUS_COUNT] = {
#define X(name, word, code) {word, code},
    ZB_STATUS_TABLE(X)
#undef X
};

const char *zb_status_word(enum zb_status status) { return table[status].word; }

int zb_status_exit_code(enum zb_status status) { return table[status].exit_code; }

enum zb_status zb_fail(struct zb_error *error, enum zb_status status, const char *format, ...) {
  if (!error) return status;
  error->status = status;
  error->line = error->column = 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  return status;
}

enum zb_status zb_fail_memory(struct zb_error *error) { return zb_fail(error, ZB_FAILED, "out of memory"); }
