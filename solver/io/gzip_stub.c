// gzip_stub.c - in a build without zlib.
#include "solver/io/gzip.h"

enum zb_status zb_gzip_expand(const char *bytes, size_t size, size_t limit, struct zb_text *text,
                              struct zb_error *error) {
  (void)bytes, (void)size, (void)limit, (void)text;
  return zb_fail(error, ZB_BAD_INPUT,
                 "packed by gzip, which this build cannot read: unpack it (gunzip), or build with zlib "
                 "(apt-get install zlib1g-dev)");
}
