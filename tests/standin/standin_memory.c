// standin_memory.c - device memory and pinned memory of the host.
//
// Each block is a mapping of its own that ends, but for the rounding to 256 bytes that CUDA promises, at a
// page that nobody can touch; the bytes of the rounding are a pattern that is looked at when the block is
// freed. What is freed cannot be touched at all, and its addresses are not used again before the end. Fresh
// memory is all ones: a NaN in every format.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS, madvise
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/standin/standin_parts.h"

enum { ALIGNMENT = 256, FRESH = 0xff, BEYOND = 0xa5 };

// By address; freed ones stay.
static struct block **blocks;
static size_t block_count, block_room;
static struct sigaction before; // what SIGSEGV did

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static size_t first_behind(const void *at) { // the first block that begins behind the address
  size_t low = 0, high = block_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((const unsigned char *)at < blocks[middle]->map)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

struct block *zb_standin_block(const void *at) {
  size_t k = first_behind(at);
  if (!k) return NULL;
  struct block *block = blocks[k - 1];
  return (const unsigned char *)at < block->map + block->map_bytes ? block : NULL;
}

static const char *place_name(const struct block *block, char *text, size_t size) {
  if (block->device < 0)
    snprintf(text, size, "pinned memory of %lld bytes", (long long)block->bytes);
  else
    snprintf(text, size, "device %d's memory of %lld bytes", block->device, (long long)block->bytes);
  return text;
}

bool zb_standin_range(const char *what, const void *at, int64_t bytes, enum place place) {
  struct block *block = zb_standin_block(at);
  char name[80];
  if (!block) {
    if (place != PLACE_DEVICE) return true;
    zb_standin_report("%s: the address is not in device memory", what);
    return false;
  }
  int64_t offset = (const unsigned char *)at - block->at;
  place_name(block, name, sizeof name);
  if (!block->alive)
    zb_standin_report("%s: %s was freed", what, name);
  else if (offset < 0 || bytes < 0 || bytes > block->bytes - offset)
    zb_standin_report("%s: %lld bytes from %lld of %s", what, (long long)bytes, (long long)offset, name);
  else if ((place == PLACE_DEVICE && block->device < 0) || (place == PLACE_HOST && block->device >= 0))
    zb_standin_report("%s: %s is on the wrong side", what, name);
  else
    return true;
  return false;
}

static struct block *make(size_t bytes, int device) {
  size_t page = page_bytes(), rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t body = (rounded + page - 1) / page * page;
  unsigned char *map = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return NULL;
  mprotect(map + body, page, PROT_NONE);
  struct block *block = zb_standin_new(sizeof *block);
  *block = (struct block){.at = map + body - rounded,
                          .bytes = (int64_t)bytes,
                          .device = device,
                          .alive = true,
                          .map = map,
                          .map_bytes = body + page};
  memset(block->at, FRESH, bytes);
  memset(block->at + bytes, BEYOND, rounded - bytes);
  if (block_count == block_room) {
    block_room = block_room ? 2 * block_room : 64;
    blocks = realloc(blocks, block_room * sizeof *blocks);
    if (!blocks) abort();
  }
  size_t place = first_behind(map);
  memmove(blocks + place + 1, blocks + place, (block_count - place) * sizeof *blocks);
  blocks[place] = block;
  block_count++;
  return block;
}

static cudaError_t allocate(void **at, size_t bytes, int device) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS | ENTER_CAPTURED);
  if (status) return zb_standin_leave(status);
  zb_standin_count.allocations++;
  *at = NULL;
  if (zb_standin_fault(zb_standin_setup.fail_allocation, zb_standin_count.allocations))
    return zb_standin_leave(cudaErrorMemoryAllocation);
  if (!bytes) return zb_standin_leave(cudaSuccess);
  if (device >= 0 && (int64_t)bytes > zb_standin_setup.memory_bytes - zb_standin_device[device].used_bytes)
    return zb_standin_leave(cudaErrorMemoryAllocation);
  struct block *block = make(bytes, device);
  if (!block) return zb_standin_leave(cudaErrorMemoryAllocation);
  if (device >= 0) zb_standin_device[device].used_bytes += (int64_t)bytes;
  *at = block->at;
  return zb_standin_leave(cudaSuccess);
}

static void look_beyond(const struct block *block) {
  char name[80];
  const unsigned char *end = block->map + block->map_bytes - page_bytes();
  for (const unsigned char *at = block->at + block->bytes; at < end; at++)
    if (*at != BEYOND) {
      zb_standin_report("something wrote behind the end of %s", place_name(block, name, sizeof name));
      return;
    }
}

static cudaError_t release(void *at, bool on_device, const char *call) {
  cudaError_t status = zb_standin_enter(ENTER_CAPTURED);
  if (status || !at) return zb_standin_leave(status);
  struct block *block = zb_standin_block(at);
  if (!block || block->at != at || !block->alive || (block->device >= 0) != on_device) {
    zb_standin_report("%s: the address is not one that was given out, or was given back before", call);
    return zb_standin_leave(cudaErrorInvalidValue);
  }
  look_beyond(block);
  block->alive = false;
  if (block->device >= 0) zb_standin_device[block->device].used_bytes -= block->bytes;
  // Drops the pages and keeps the addresses.
  mprotect(block->map, block->map_bytes, PROT_NONE);
  madvise(block->map, block->map_bytes, MADV_DONTNEED);
  return zb_standin_leave(cudaSuccess);
}

// Says which block it was, then leaves the fault to whom it was left to before.
static void name_fault(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  sigaction(SIGSEGV, &before, NULL);
  struct block *block = zb_standin_block(info->si_addr);
  if (!block) return;
  char text[240], name[80];
  int length = snprintf(text, sizeof text, "standin: %s touches byte %lld of %s%s\n",
                        zb_standin_running ? zb_standin_running : "the host",
                        (long long)((unsigned char *)info->si_addr - block->at),
                        place_name(block, name, sizeof name), block->alive ? "" : ", which was freed");
  if (write(STDERR_FILENO, text, (size_t)length) < 0) return;
}

void zb_standin_memory_watch(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = name_fault};
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before);
}

void zb_standin_memory_reset(bool report) {
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == name_fault) sigaction(SIGSEGV, &before, NULL);
  char name[80];
  for (size_t k = 0; k < block_count; k++) {
    if (blocks[k]->alive && report) {
      look_beyond(blocks[k]);
      zb_standin_report("not freed: %s", place_name(blocks[k], name, sizeof name));
    }
    munmap(blocks[k]->map, blocks[k]->map_bytes);
    free(blocks[k]);
  }
  free(blocks);
  blocks = NULL;
  block_count = block_room = 0;
}

cudaError_t cudaMalloc(void **at, size_t bytes) { return allocate(at, bytes, zb_standin_current()); }
cudaError_t cudaMallocHost(void **at, size_t bytes) { return allocate(at, bytes, -1); }
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(at, bytes, -1);
}
cudaError_t cudaFree(void *at) { return release(at, true, "cudaFree"); }
cudaError_t cudaFreeHost(void *at) { return release(at, false, "cudaFreeHost"); }

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  cudaError_t status = zb_standin_enter(ENTER_FAILS);
  if (!status) {
    *total = (size_t)zb_standin_setup.memory_bytes;
    *free_bytes = *total - (size_t)zb_standin_device[zb_standin_current()].used_bytes;
  }
  return zb_standin_leave(status);
}
