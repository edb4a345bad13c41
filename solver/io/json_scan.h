// json_scan.h - is this text JSON, and nothing that a JSON library would read differently from what is
// written? Says where it is not, by line and column.
#ifndef ZB_JSON_SCAN_H
#define ZB_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/model/status.h"

enum zb_json_literals {
  ZB_JSON_DECIMALS, // what people write: at most 15 significant digits
  ZB_JSON_INTEGERS, // what this program writes: also plain integers up to 2^53, which have 16 digits
  ZB_JSON_MEASURED, // what other programs log: any number of digits
};

enum { ZB_JSON_DEPTH = 64 }; // how many lists and objects may be inside each other

// ZB_OK, or BAD_INPUT with line and column (in characters, from 1) and what was expected there.
enum zb_status zb_json_scan(const char *text, size_t size, enum zb_json_literals literals,
                            struct zb_error *error);

// A bracket, its end, or any other value.
enum zb_json_visited { ZB_JSON_OPEN, ZB_JSON_CLOSE, ZB_JSON_SCALAR };

// What a walk comes by, in the order of the text. Keys and strings are as written, escapes and all, without
// their quotes; nothing is copied.
struct zb_json_visit {
  enum zb_json_visited what;
  int depth;       // brackets around it; the same for OPEN and CLOSE of one bracket
  const char *key; // of an object's member; NULL in a list and for a CLOSE
  size_t key_size;
  const char *text; // of a value: of a string what is between its quotes, of an OPEN or CLOSE its bracket
  size_t size;
  bool is_string;
};

// Scans as zb_json_scan does, telling `visit` of everything on the way, for files that are too large for a
// tree. A visit that fails ends it: its error gets the place of what was visited.
enum zb_status zb_json_walk(const char *text, size_t size, enum zb_json_literals literals,
                            enum zb_status (*visit)(void *context, const struct zb_json_visit *visit,
                                                    struct zb_error *error),
                            void *context, struct zb_error *error);

#endif
