// keep.h - the buffers in which microbatches wait, counted to the byte.
//
// Buffers come in a few sizes. What is given back is used again for the same size, so that after the first
// iteration nothing is allocated, and what is in use at any time is exactly what the profile's memory counts.
#ifndef ZB_KEEP_H
#define ZB_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/scalar.h"

enum { ZB_KEEP_SIZES = 16 };

struct zb_keep_block;

// Start from a zeroed struct.
struct zb_keep {
  int64_t in_use_bytes, peak_bytes;
  int64_t owned_bytes; // in use and waiting to be used again
  int sizes;
  size_t size[ZB_KEEP_SIZES]; // numbers in a buffer
  struct zb_keep_block *spare[ZB_KEEP_SIZES];
};

// A buffer of `count` numbers, 64-byte aligned, whatever in it; NULL for count 0, or when memory ends (and
// then nothing has changed). At most ZB_KEEP_SIZES different counts.
zb_real *zb_keep_take(struct zb_keep *keep, size_t count);
// `buffer` was taken with this count; NULL is nothing.
void zb_keep_give(struct zb_keep *keep, zb_real *buffer, size_t count);
// Frees the spare buffers. All must have been given back.
void zb_keep_free(struct zb_keep *keep);

// `count` numbers, 64-byte aligned and zero; free() frees them. At least one is allocated, NULL is an error.
zb_real *zb_reals(size_t count);

#endif
