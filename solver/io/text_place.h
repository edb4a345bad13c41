// text_place.h - where in a text something is, for people.
#ifndef ZB_TEXT_PLACE_H
#define ZB_TEXT_PLACE_H

#include <stddef.h>

#include "solver/model/status.h"

// Puts line and column (in characters, from 1) of text[at] into an error that is filled already; NULL is
// fine.
void zb_text_locate(const char *text, size_t at, struct zb_error *error);

#endif
