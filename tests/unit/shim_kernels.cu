// shim_kernels.cu - see the header. Compiled for the stand-in only.
#include "tests/unit/shim_kernels.h"

#include "kernels/reduce.h"

__global__ void reverse(const float *in, bool barrier, float *out) {
  ZB_SHARED(float, kept, 96);
  unsigned at = blockIdx.x * 96 + threadIdx.x;
  kept[threadIdx.x] = in[at];
  if (barrier) __syncthreads();
  out[at] = kept[95 - threadIdx.x];
}

cudaError_t shim_reverse(cudaStream_t stream, const float *in, int blocks, bool barrier, float *out) {
  return ZB_LAUNCH(reverse, dim3((unsigned)blocks), dim3(96), stream, in, barrier, out);
}

__global__ void two_sums(const float *in, bool barrier, float *out) {
  ZB_SHARED(float, partial, 2);
  int warp = (int)threadIdx.x / ZB_WARP, lane = (int)threadIdx.x % ZB_WARP;
  float x = in[threadIdx.x];
  for (int power = 0; power < 2; power++) {
    float sum = zb_warp_reduce<zb_add>(power ? x * x : x);
    if (power && barrier) __syncthreads(); // what this overwrites has been read
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    sum = partial[0] + partial[1];
    if (threadIdx.x == 63) out[power] = sum;
  }
}

cudaError_t shim_two_sums(cudaStream_t stream, const float *in, bool barrier, float *out) {
  return ZB_LAUNCH(two_sums, dim3(1), dim3(64), stream, in, barrier, out);
}

__global__ void barrier_of_some(int coming) {
  if ((int)threadIdx.x < coming) __syncthreads();
}

cudaError_t shim_barrier_of_some(cudaStream_t stream, int coming) {
  return ZB_LAUNCH(barrier_of_some, dim3(3), dim3(64), stream, coming);
}

__global__ void shuffle(int *out) { out[threadIdx.x] = __shfl_xor_sync(~0u, (int)threadIdx.x, 1); }

cudaError_t shim_shuffle(cudaStream_t stream, int threads, int *out) {
  return ZB_LAUNCH(shuffle, dim3(1), dim3((unsigned)threads), stream, out);
}

__global__ void note_order(int *next, int *order) {
  order[(*next)++] = (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

cudaError_t shim_order(cudaStream_t stream, int blocks, int threads, int *next, int *order) {
  return ZB_LAUNCH(note_order, dim3((unsigned)blocks), dim3((unsigned)threads), stream, next, order);
}
