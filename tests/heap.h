// A program's own malloc: counts blocks and bytes, and can refuse. For the one file of a program that
// includes it.
//
// It defines malloc, calloc, realloc and free around glibc's, so that whatever the solver and the libraries
// under it allocate goes through here. Under a sanitizer, which replaces malloc itself, and without glibc,
// nothing is wrapped: HEAP_WRAPPED is 0 and the counts stay 0. For programs with one thread.
#ifndef HEAP_H
#define HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_WRAPPED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEAP_WRAPPED 0
#endif
#endif
#if !defined(HEAP_WRAPPED) && defined(__GLIBC__)
#define HEAP_WRAPPED 1
#elif !defined(HEAP_WRAPPED)
#define HEAP_WRAPPED 0
#endif

struct heap {
  long calls;          // to malloc, calloc and realloc, since the start
  long blocks;         // that are not freed
  int64_t bytes, most; // usable ones in those blocks, now and at most since `most` was last set
  long refuse_at;      // number of the call that fails, 0: none
  bool refuse_from;    // and all calls after it
};

static struct heap heap;

#if HEAP_WRAPPED
#include <malloc.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static bool heap_refuses(void) {
  heap.calls++;
  bool refused = heap.refuse_at != 0 &&
                 (heap.calls == heap.refuse_at || (heap.refuse_from && heap.calls > heap.refuse_at));
  if (refused) errno = ENOMEM;
  return refused;
}

static void *heap_entered(void *block) {
  if (!block) return NULL;
  heap.blocks++;
  heap.bytes += (int64_t)malloc_usable_size(block);
  if (heap.bytes > heap.most) heap.most = heap.bytes;
  return block;
}

static void heap_left(void *block) {
  if (!block) return;
  heap.blocks--;
  heap.bytes -= (int64_t)malloc_usable_size(block);
}

void *malloc(size_t size) { return heap_refuses() ? NULL : heap_entered(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) {
  return heap_refuses() ? NULL : heap_entered(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
  if (heap_refuses()) return NULL;
  int64_t old = block ? (int64_t)malloc_usable_size(block) : 0;
  void *moved = __libc_realloc(block, size);
  if (!moved && size > 0) return NULL; // the old block is still there
  heap.blocks -= block != NULL;
  heap.bytes -= old;
  return heap_entered(moved);
}

void free(void *block) {
  heap_left(block);
  __libc_free(block);
}
#endif

#endif
