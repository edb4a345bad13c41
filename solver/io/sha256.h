// sha256.h - the digest that ties a proof file to its schedule (FIPS 180-4).
#ifndef ZB_SHA256_H
#define ZB_SHA256_H

#include <stddef.h>

enum { ZB_SHA256_TEXT = 65 };

// Writes the digest of `size` bytes as 64 lower-case hexadecimal digits and a NUL.
void zb_sha256(const void *bytes, size_t size, char hex[ZB_SHA256_TEXT]);

#endif
