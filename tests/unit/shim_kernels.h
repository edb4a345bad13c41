// shim_kernels.h - kernels made to be wrong, for the test of the shim that must show it.
#ifndef SHIM_KERNELS_H
#define SHIM_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// out[k] of each block's 96 = in[95 - k], through shared memory; the barrier between can be left out.
cudaError_t shim_reverse(cudaStream_t stream, const float *in, int blocks, bool barrier, float *out);

// out[0], out[1] of 64 threads: their sum of in[k], then of in[k]^2, with the same shared memory for both;
// the barrier between the two can be left out.
cudaError_t shim_two_sums(cudaStream_t stream, const float *in, bool barrier, float *out);

// Of 64 threads, the first `coming` meet at a barrier, and the others end.
cudaError_t shim_barrier_of_some(cudaStream_t stream, int coming);

// `threads` threads shuffle; what lane ^ 1 had goes to out[thread].
cudaError_t shim_shuffle(cudaStream_t stream, int threads, int *out);

// order[] becomes block * threads + thread in the order in which they ran; *next starts at 0.
cudaError_t shim_order(cudaStream_t stream, int blocks, int threads, int *next, int *order);

#ifdef __cplusplus
}
#endif

#endif
