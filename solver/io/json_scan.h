// json_scan.h - is this text JSON, and nothing that a JSON library would read differently from what is
// written? Says where it is not, by line and column.
#ifndef ZB_JSON_SCAN_H
#define ZB_JSON_SCAN_H

#include <stddef.h>

#include "solver/model/status.h"

enum zb_json_literals {
  ZB_JSON_DECIMALS, // what people write: at most 15 significant digits
  ZB_JSON_INTEGERS, // what this program writes: also plain integers up to 2^53, which have 16 digits
};

enum { ZB_JSON_DEPTH = 64 }; // how many lists and objects may be inside each other

// ZB_OK, or BAD_INPUT with line and column (in characters, from 1) and what was expected there.
enum zb_status zb_json_scan(const char *text, size_t size, enum zb_json_literals literals,
                            struct zb_error *error);

#endif
