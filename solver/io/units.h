// units.h - the units that input may be written in, and numbers for people.
#ifndef ZB_UNITS_H
#define ZB_UNITS_H

#include <stddef.h>
#include <stdint.h>

struct zb_unit {
  const char *word;
  int64_t scale; // ns or bytes in one
};

// Both end with a NULL word. `unit` has no physical size and counts as 1 us, or 1 MB.
extern const struct zb_unit zb_time_units[];
extern const struct zb_unit zb_memory_units[];

// The unit of that name, NULL if there is none.
const struct zb_unit *zb_unit_find(const struct zb_unit *units, const char *word);

// "ns, us, ms, s or unit" for messages and help; `list` has room for ZB_UNIT_LIST bytes. Returns `list`.
#define ZB_UNIT_LIST 64
const char *zb_unit_list(const struct zb_unit *units, char *list);

// Rounded, with a unit that suits the size: "1152.599 ms", "18.522 us", "7 ns"; "1.41 GiB", "512 B".
// `text` has room for ZB_QUANTITY_TEXT bytes. Returns `text`.
#define ZB_QUANTITY_TEXT 32
const char *zb_time_text(int64_t ns, char *text);
const char *zb_bytes_text(int64_t bytes, char *text);

#endif
