// measured_formats.c - the table, and files that may be packed.
#include "solver/io/measured_formats.h"

#include <string.h>

#include "solver/io/file.h"
#include "solver/io/gzip.h"

static bool holds(const char *text, size_t size, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text; size >= length;) {
    const char *next = memchr(at, word[0], size - length + 1);
    if (!next) return false;
    if (memcmp(next, word, length) == 0) return true;
    size -= (size_t)(next + 1 - at);
    at = next + 1;
  }
  return false;
}

static size_t skip_blanks(const char *text, size_t size, size_t at) {
  while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n')) at++;
  return at;
}

// Behind a byte order mark, about which the reader complains, and blanks.
static size_t skip_start(const char *text, size_t size) {
  return skip_blanks(text, size, size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
}

// An object or a list of them; a launcher's "[default0]:" is neither.
static bool knows_trace(const char *text, size_t size) {
  size_t at = skip_start(text, size);
  if (at < size && text[at] == '[') at = skip_blanks(text, size, at + 1);
  return at < size && text[at] == '{';
}

static bool knows_zb_log(const char *text, size_t size) { return holds(text, size, "profiling conclusion:"); }

static bool knows_timers(const char *text, size_t size) { return holds(text, size, "forward-compute"); }

static bool knows_csv(const char *text, size_t size) {
  size_t at = skip_start(text, size);
  at += at < size && text[at] == '"';
  return size - at >= 5 && memcmp(text + at, "stage", 5) == 0;
}

static const struct zb_measured_format formats[] = {
    {"torch-trace", "torch profiler traces with PP: spans (one file a rank), and our own", true, knows_trace,
     zb_read_torch_trace},
    {"zb-log", "the zero-bubble fork's \"profiling conclusion\" lines", false, knows_zb_log, zb_read_zb_log},
    {"megatron-timers", "Megatron's timers of every rank, summed over --microbatches", true, knows_timers,
     zb_read_megatron_timers},
    {"csv", "stage,op,time_ms (or _ns, _us, _s), one sample a row", false, knows_csv, zb_read_timings_csv},
};

int zb_measured_format_count(void) { return sizeof formats / sizeof *formats; }

const struct zb_measured_format *zb_measured_format_at(int index) { return &formats[index]; }

enum zb_status zb_measured_format_guess(const char *text, size_t size,
                                        const struct zb_measured_format **format, struct zb_error *error) {
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
    if (formats[k].knows(text, size)) {
      *format = &formats[k];
      return ZB_OK;
    }
  return zb_fail(
      error, ZB_BAD_INPUT,
      "neither a trace, a zero-bubble log, Megatron's timers nor a table that begins with stage,op,time_ms");
}

enum zb_status zb_measured_file_read(const char *path, struct zb_text *text, struct zb_error *error) {
  const size_t limit = (size_t)ZB_MEASURED_MIB_MOST << 20;
  struct zb_text packed = {0};
  enum zb_status status = zb_file_read(path, limit, &packed, error);
  if (status == ZB_OK && packed.size > 0 && zb_gzip_is(packed.data, packed.size)) {
    status = zb_gzip_expand(packed.data, packed.size, limit, text, error);
    zb_text_free(&packed);
  } else if (status == ZB_OK) {
    *text = packed;
    packed = (struct zb_text){0};
  }
  zb_text_free(&packed);
  if (status != ZB_OK) zb_error_set_path(error, path);
  return status;
}
