// json.h - JSON text to a tree of nodes. The only unit that knows the JSON library.
//
// The text is checked by json_scan.h first: grammar, literals, depth, UTF-8, each with line and
// column. What the library then loses (the text of a number) is recovered exactly, because a literal
// of at most 15 significant digits survives a double.
#ifndef ZB_JSON_H
#define ZB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/io/json_scan.h"
#include "solver/io/text.h"
#include "solver/model/number.h"
#include "solver/model/status.h"

struct zb_json; // a node; the root owns the tree

enum zb_json_type {
  ZB_JSON_NULL,
  ZB_JSON_BOOL,
  ZB_JSON_NUMBER,
  ZB_JSON_STRING,
  ZB_JSON_LIST,
  ZB_JSON_OBJECT
};

// Parses the whole text. BAD_INPUT with line and column, or with the place of a repeated key; FAILED
// when memory ends. *root is owned by the caller: zb_json_free.
enum zb_status zb_json_parse(const char *text, size_t size, enum zb_json_literals literals,
                             struct zb_json **root, struct zb_error *error);
void zb_json_free(struct zb_json *root);

enum zb_json_type zb_json_type(const struct zb_json *node);

// Children in order: first, then next until NULL. Lists of any length are walked, never indexed.
const struct zb_json *zb_json_first(const struct zb_json *node);
const struct zb_json *zb_json_next(const struct zb_json *node);
size_t zb_json_count(const struct zb_json *node);                                    // counts by walking
const char *zb_json_key(const struct zb_json *node);                                 // in its object
const struct zb_json *zb_json_member(const struct zb_json *object, const char *key); // NULL: none

const char *zb_json_string(const struct zb_json *node); // of a STRING, in UTF-8
double zb_json_number(const struct zb_json *node);      // of a NUMBER, nearest double
// A NUMBER times `scale`, exactly, under the rules of zb_decimal_parse.
enum zb_decimal zb_json_scaled(const struct zb_json *node, int64_t scale, int64_t *value);

// Appends the node as compact JSON; sets text->failed when memory ends.
void zb_json_print(const struct zb_json *node, struct zb_text *text);
// Appends a string with its quotes and escapes.
void zb_json_print_string(const char *string, struct zb_text *text);
// Appends a list with a string for each line.
void zb_json_print_lines(const char *lines, struct zb_text *text);

#endif
