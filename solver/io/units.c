// units.c - unit tables, and rounding a quantity for people.
//
// Rounding is integer arithmetic, half up, so that a printed value never depends on a double.
#include "solver/io/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct zb_unit zb_time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"unit", 1000}, {NULL, 0},
};

const struct zb_unit zb_memory_units[] = {
    {"B", 1},         {"KB", 1000},     {"MB", 1000000},   {"GB", 1000000000}, {"KiB", 1 << 10},
    {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"unit", 1000000}, {NULL, 0},
};

const struct zb_unit *zb_unit_find(const struct zb_unit *units, const char *word) {
  for (; units->word; units++)
    if (strcmp(units->word, word) == 0) return units;
  return NULL;
}

const char *zb_unit_list(const struct zb_unit *units, char *list) {
  size_t used = 0;
  list[0] = '\0';
  for (const struct zb_unit *unit = units; unit->word && used < ZB_UNIT_LIST; unit++) {
    const char *separator = unit == units ? "" : unit[1].word ? ", " : " or ";
    used += (size_t)snprintf(list + used, ZB_UNIT_LIST - used, "%s%s", separator, unit->word);
  }
  return list;
}

// One row a size: values below `below` are shown in `scale` with `decimals` digits.
struct shown_unit {
  const char *word;
  uint64_t below, scale;
  int decimals;
};

static const char *quantity_text(const struct shown_unit *unit, int64_t value, char *text) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  while (unit->below != 0 && magnitude >= unit->below) unit++;
  const char *sign = value < 0 ? "-" : "";
  if (unit->decimals == 0) {
    snprintf(text, ZB_QUANTITY_TEXT, "%s%" PRIu64 " %s", sign, magnitude, unit->word);
    return text;
  }
  uint64_t parts = unit->decimals == 3 ? 1000 : 100;
  uint64_t whole = magnitude / unit->scale;
  uint64_t part = ((magnitude % unit->scale) * parts + unit->scale / 2) / unit->scale;
  if (part == parts) {
    whole++;
    part = 0;
  }
  snprintf(text, ZB_QUANTITY_TEXT, "%s%" PRIu64 ".%0*" PRIu64 " %s", sign, whole, unit->decimals, part,
           unit->word);
  return text;
}

const char *zb_time_text(int64_t ns, char *text) {
  static const struct shown_unit units[] = {
      {"ns", 1000, 1, 0},
      {"us", 1000000, 1000, 3},
      {"ms", 100000000000, 1000000, 3},
      {"s", 0, 1000000000, 3},
  };
  return quantity_text(units, ns, text);
}

const char *zb_bytes_text(int64_t bytes, char *text) {
  static const struct shown_unit units[] = {
      {"B", 1 << 10, 1, 0},
      {"KiB", 1 << 20, 1 << 10, 2},
      {"MiB", 1 << 30, 1 << 20, 2},
      {"GiB", (uint64_t)1 << 40, 1 << 30, 2},
      {"TiB", 0, (uint64_t)1 << 40, 2},
  };
  return quantity_text(units, bytes, text);
}
