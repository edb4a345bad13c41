// gzip.h - texts that were packed by gzip. Where the build has no zlib, it says how to get one.
#ifndef ZB_GZIP_H
#define ZB_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"
#include "solver/model/status.h"

// Whether the bytes begin as a gzip file does.
static inline bool zb_gzip_is(const char *bytes, size_t size) {
  return size >= 2 && (unsigned char)bytes[0] == 0x1F && (unsigned char)bytes[1] == 0x8B;
}

// Appends the unpacked bytes, all members of the file one after another. BAD_INPUT where it is cut short or
// damaged, unpacks to more than `limit` bytes, or the build cannot unpack.
enum zb_status zb_gzip_expand(const char *bytes, size_t size, size_t limit, struct zb_text *text,
                              struct zb_error *error);

#endif
