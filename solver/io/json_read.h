// json_read.h - strict reading of nodes: every failure names its place, e.g. "time.f[3]: ...".
#ifndef ZB_JSON_READ_H
#define ZB_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

#include "solver/io/json.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

// Where in the file a node is: a chain of keys and indices on the readers' stack. NULL is the whole file.
struct zb_json_place {
  const struct zb_json_place *parent;
  const char *key; // NULL: an entry of a list
  size_t index;
};

// Fills the error with "place: " and the formatted line. Returns `status`.
enum zb_status zb_json_fail(struct zb_error *error, enum zb_status status, const struct zb_json_place *place,
                            const char *format, ...) ZB_PRINTF(4, 5);

// Puts the place before an error whose text already starts with a field of it: "f: ..." in "profile" becomes
// "profile.f: ...". `error` is not NULL.
// Returns its status.
enum zb_status zb_json_fail_within(struct zb_error *error, const struct zb_json_place *place);

// BAD_INPUT unless node is an object that has only `known` keys (NULL-terminated); the message names
// the unknown key and the nearest known one.
enum zb_status zb_json_expect_object(const struct zb_json *node, const struct zb_json_place *place,
                                     const char *const *known, struct zb_error *error);

// The member of an object. A missing one is BAD_INPUT: "key: missing, expected `expected`".
enum zb_status zb_json_require(const struct zb_json *object, const char *key,
                               const struct zb_json_place *place, const char *expected,
                               const struct zb_json **member, struct zb_error *error);

// A member that is a list; otherwise BAD_INPUT.
enum zb_status zb_json_require_list(const struct zb_json *object, const char *key,
                                    const struct zb_json_place *place, const struct zb_json **list,
                                    struct zb_error *error);

// A whole number from `smallest` to `most`.
enum zb_status zb_json_read_integer(const struct zb_json *node, const struct zb_json_place *place,
                                    int64_t smallest, int64_t most, int64_t *value, struct zb_error *error);

// A string of the node's tree, not copied.
enum zb_status zb_json_read_string(const struct zb_json *node, const struct zb_json_place *place,
                                   const char **string, struct zb_error *error);

// BAD_INPUT: "found a string, expected `expected`".
enum zb_status zb_json_fail_type(const struct zb_json *node, const struct zb_json_place *place,
                                 const char *expected, struct zb_error *error);

// Text from a file made fit for one line of a message: control characters replaced, cut when long.
// `shown` has room for ZB_SHOWN bytes. Returns `shown`.
#define ZB_SHOWN 48
const char *zb_json_shown(const char *string, char *shown);

#endif
