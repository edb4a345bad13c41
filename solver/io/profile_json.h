// profile_json.h - a profile as JSON (contract.md section 2), in and out.
//
// What is read is exact or refused; what is printed is in ns and B and reads back as the same profile.
#ifndef ZB_PROFILE_JSON_H
#define ZB_PROFILE_JSON_H

#include <stddef.h>

#include "solver/io/json_read.h"
#include "solver/io/text.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"

// Reads the file `path` ("-": standard input). *profile is owned by the caller. BAD_INPUT fills the
// error's path, line and column (syntax, literals) or path and text (values).
enum zb_status zb_profile_read(const char *path, struct zb_profile **profile, struct zb_error *error);

// The same from text that is already in memory; the error's path is left alone.
enum zb_status zb_profile_read_text(const char *text, size_t size, struct zb_profile **profile,
                                    struct zb_error *error);

// The same from a parsed object; `place` names it in errors (NULL: the whole file).
enum zb_status zb_profile_from_json(const struct zb_json *node, const struct zb_json_place *place,
                                    struct zb_profile **profile, struct zb_error *error);

// Appends the profile as a JSON object without a newline after it; lines after the first are
// indented by `indent` more spaces.
void zb_profile_print(const struct zb_profile *profile, int indent, struct zb_text *text);

// Whether member "stages" of a device's object, which is number place->index in its list, names the stages
// that the profile's placement puts there: WRONG where it does not, BAD_INPUT where it is no list of numbers.
enum zb_status zb_profile_check_stages(const struct zb_json *device, const struct zb_json_place *place,
                                       const struct zb_profile *profile, struct zb_error *error);

#endif
