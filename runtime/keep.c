// keep.c - free lists by size; a spare buffer holds the link to the next in itself.
#include "runtime/keep.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

struct zb_keep_block {
  struct zb_keep_block *next;
};

static size_t bytes_of(size_t count) {
  size_t bytes = (count ? count : 1) * sizeof(zb_real);
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

zb_real *zb_reals(size_t count) {
  zb_real *reals = aligned_alloc(ALIGNMENT, bytes_of(count));
  if (reals) memset(reals, 0, bytes_of(count));
  return reals;
}

static int size_index(struct zb_keep *keep, size_t count) {
  int k = 0;
  while (k < keep->sizes && keep->size[k] != count) k++;
  assert(k < ZB_KEEP_SIZES);
  if (k == keep->sizes) keep->size[keep->sizes++] = count;
  return k;
}

zb_real *zb_keep_take(struct zb_keep *keep, size_t count) {
  if (count == 0) return NULL;
  int k = size_index(keep, count);
  void *buffer = keep->spare[k];
  if (buffer) {
    keep->spare[k] = keep->spare[k]->next;
  } else {
    buffer = aligned_alloc(ALIGNMENT, bytes_of(count));
    if (!buffer) return NULL;
    keep->owned_bytes += (int64_t)bytes_of(count);
  }
  keep->in_use_bytes += (int64_t)(count * sizeof(zb_real));
  if (keep->in_use_bytes > keep->peak_bytes) keep->peak_bytes = keep->in_use_bytes;
  return buffer;
}

void zb_keep_give(struct zb_keep *keep, zb_real *buffer, size_t count) {
  if (!buffer) return;
  int k = size_index(keep, count);
  struct zb_keep_block *block = (void *)buffer;
  block->next = keep->spare[k];
  keep->spare[k] = block;
  keep->in_use_bytes -= (int64_t)(count * sizeof(zb_real));
}

void zb_keep_free(struct zb_keep *keep) {
  for (int k = 0; k < keep->sizes; k++) {
    while (keep->spare[k]) {
      struct zb_keep_block *block = keep->spare[k];
      keep->spare[k] = block->next;
      free(block);
    }
  }
  *keep = (struct zb_keep){0};
}
