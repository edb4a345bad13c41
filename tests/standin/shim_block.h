// shim_block.h - runs a kernel on the CPU, block by block, each thread of a block on a fiber.
//
// What a GPU leaves open is drawn from the stand-in's seed: the order of blocks, and the order of the threads
// of a block between two points where they wait for each other. Shared memory starts as NaN in every block.
// That all threads of a block meet at a barrier, and all of a warp at a shuffle, is checked, more strictly
// than CUDA asks: a thread that has ended meets nobody.
//
// One kernel at a time in a process: the caller's lock.
#ifndef ZB_SHIM_BLOCK_H
#define ZB_SHIM_BLOCK_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZB_SHIM_WARP 32

// What a thread knows about itself.
struct zb_shim_thread {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
const struct zb_shim_thread *zb_shim_self(void);

// Queues a launch, in which body(argument) is called once for each thread; `argument` came from malloc and is
// freed when nobody needs it any more. `name` is for reports, and must stay. What cudaGetLastError would say.
cudaError_t zb_shim_launch(const char *name, dim3 grid, dim3 block, cudaStream_t stream,
                           void (*body)(void *argument), void *argument);

// The rest is called by a kernel's threads.

// The block's shared memory that belongs to `site`.
void *zb_shim_shared(const void *site, size_t bytes);

// Waits for all threads of the block.
void zb_shim_barrier(void);

// Leaves `value`, waits for all lanes of the warp, and returns what each left. Good until the lane's next
// call.
const uint64_t *zb_shim_warp(unsigned mask, uint64_t value);

#ifdef __cplusplus
}
#endif

#endif
