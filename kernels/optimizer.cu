// optimizer.cu - AdamW and its inverse, the sum of squares of a gradient, and the bf16 copy of fp32 weights.
//
// Bytes, for n elements of 4 bytes:
//   adamw_step, adamw_inverse  read gradient, value, mean, square, write the last three: 28 n; with a bf16
//   copy 30 n square_sum                 reads: 4 n shadow                     reads 4 n, writes 2 n
// The floor is that over the memory's bandwidth; a square root and a division an element stay below it. A
// thread owns 4 elements and nothing is read twice.
//
// The sum of squares is added up in double, block by block, with a grid whose size follows from the count,
// and the blocks' partial sums by one block in a second launch.
#include "kernels/kernels.h"
#include "kernels/reduce.h"

#define ZB_FLAT 256
#define ZB_SUMMERS 1024 // blocks of the first stage of the sum, at most
#define ZB_V 4

template <bool WIDE, bool BACK>
static __device__ inline void adamw_pack(const struct zb_adamw_step &step, const float *gradient, int64_t at,
                                         int left, float *value, float *mean, float *square,
                                         zb_bf16 *shadow) {
  float g[ZB_V], x[ZB_V], m[ZB_V], s[ZB_V];
  zb_read<ZB_V, WIDE>(gradient + at, left, g);
  zb_read<ZB_V, WIDE>(value + at, left, x);
  zb_read<ZB_V, WIDE>(mean + at, left, m);
  zb_read<ZB_V, WIDE>(square + at, left, s);
  ZB_UNROLL for (int v = 0; v < ZB_V; v++) {
    if (BACK)
      zb_adamw_inverse(&step, g[v], x + v, m + v, s + v);
    else
      zb_adamw_forward(&step, g[v], x + v, m + v, s + v);
  }
  zb_write<ZB_V, WIDE>(value + at, left, x);
  zb_write<ZB_V, WIDE>(mean + at, left, m);
  zb_write<ZB_V, WIDE>(square + at, left, s);
  if (shadow) zb_write<ZB_V, WIDE>(shadow + at, left, x);
}

template <bool BACK>
__global__ void __launch_bounds__(ZB_FLAT)
    adamw(struct zb_adamw_step step, const float *gradient, int64_t count, float *value, float *mean,
          float *square, zb_bf16 *shadow, bool aligned) {
  int64_t at = ((int64_t)blockIdx.x * ZB_FLAT + threadIdx.x) * ZB_V;
  int left = count - at < ZB_V ? (int)(count - at) : ZB_V;
  if (aligned && left == ZB_V)
    adamw_pack<true, BACK>(step, gradient, at, left, value, mean, square, shadow);
  else if (left > 0)
    adamw_pack<false, BACK>(step, gradient, at, left, value, mean, square, shadow);
}

template <bool BACK>
static cudaError_t launch_adamw(cudaStream_t stream, struct zb_adamw_step step, const float *gradient,
                                int64_t count, float *value, float *mean, float *square, void *shadow) {
  if (count <= 0) return cudaSuccess;
  return ZB_LAUNCH(adamw<BACK>, dim3((unsigned)zb_parts(count, ZB_FLAT * ZB_V)), dim3(ZB_FLAT), stream, step,
                   gradient, count, value, mean, square, (zb_bf16 *)shadow,
                   zb_aligned(gradient, value, mean, square, shadow));
}

cudaError_t zb_cuda_adamw_step(cudaStream_t stream, struct zb_adamw_step step, const float *gradient,
                               int64_t count, float *value, float *mean, float *square, void *shadow) {
  return launch_adamw<false>(stream, step, gradient, count, value, mean, square, shadow);
}

cudaError_t zb_cuda_adamw_inverse(cudaStream_t stream, struct zb_adamw_step step, const float *gradient,
                                  int64_t count, float *value, float *mean, float *square, void *shadow) {
  return launch_adamw<true>(stream, step, gradient, count, value, mean, square, shadow);
}

__global__ void __launch_bounds__(ZB_FLAT)
    to_bf16(const float *from, int64_t count, zb_bf16 *to, bool aligned) {
  int64_t at = ((int64_t)blockIdx.x * ZB_FLAT + threadIdx.x) * ZB_V;
  int left = count - at < ZB_V ? (int)(count - at) : ZB_V;
  float x[ZB_V];
  if (aligned && left == ZB_V) {
    zb_read<ZB_V, true>(from + at, left, x);
    zb_write<ZB_V, true>(to + at, left, x);
  } else if (left > 0) {
    zb_read<ZB_V, false>(from + at, left, x);
    zb_write<ZB_V, false>(to + at, left, x);
  }
}

cudaError_t zb_cuda_shadow(cudaStream_t stream, const float *from, int64_t count, void *to) {
  if (count <= 0) return cudaSuccess;
  return ZB_LAUNCH(to_bf16, dim3((unsigned)zb_parts(count, ZB_FLAT * ZB_V)), dim3(ZB_FLAT), stream, from,
                   count, (zb_bf16 *)to, zb_aligned(from, to));
}

static int64_t square_blocks(int64_t count) {
  int64_t blocks = zb_parts(count, (int64_t)ZB_FLAT * ZB_V * 4);
  return blocks < 1 ? 1 : blocks > ZB_SUMMERS ? ZB_SUMMERS : blocks;
}

size_t zb_cuda_square_sum_scratch(int64_t count) { return (size_t)square_blocks(count); }

__global__ void __launch_bounds__(ZB_FLAT)
    sum_squares(const float *__restrict__ x, int64_t count, bool aligned, double *partial) {
  double sum = 0;
  ZB_UNROLL_BY_4 for (int64_t at = ((int64_t)blockIdx.x * ZB_FLAT + threadIdx.x) * ZB_V; at < count;
                      at += (int64_t)gridDim.x * ZB_FLAT * ZB_V) {
    int left = count - at < ZB_V ? (int)(count - at) : ZB_V;
    float now[ZB_V];
    if (aligned && left == ZB_V)
      zb_read<ZB_V, true>(x + at, left, now);
    else
      zb_read<ZB_V, false>(x + at, left, now);
    ZB_UNROLL for (int v = 0; v < ZB_V; v++) sum += (double)now[v] * (double)now[v];
  }
  sum = zb_row_reduce<zb_add, 0>(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(ZB_FLAT) sum_partials(const double *partial, int count, double *total) {
  double sum = 0;
  for (int k = (int)threadIdx.x; k < count; k += (int)blockDim.x) sum += partial[k];
  sum = zb_row_reduce<zb_add, 0>(sum);
  if (threadIdx.x == 0) *total = sum;
}

cudaError_t zb_cuda_square_sum(cudaStream_t stream, const float *x, int64_t count, double *sum,
                               double *scratch) {
  int64_t blocks = square_blocks(count);
  cudaError_t error =
      ZB_LAUNCH(sum_squares, dim3((unsigned)blocks), dim3(ZB_FLAT), stream, x, count, zb_aligned(x), scratch);
  if (error != cudaSuccess) return error;
  unsigned summers = blocks < ZB_FLAT ? (unsigned)zb_parts(blocks, ZB_WARP) * ZB_WARP : ZB_FLAT;
  return ZB_LAUNCH(sum_partials, dim3(1), dim3(summers), stream, (const double *)scratch, (int)blocks, sum);
}
