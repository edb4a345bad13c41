// columns.cu - sums down the columns: the gradients of a bias and of a norm's gain and shift.
//
// Bytes, for n elements of s bytes each (sums are rows, not counted):
//   bias_weights       reads d_out: n s
//   layernorm_weights  reads d_out and normal: 2 n s; writes the norm's output too where it is wanted: 3 n s
// The floor is that over the memory's bandwidth. Two stages, because the rows alone are the parallelism:
// blocks sum chunks of rows for a tile of columns, enough of them to fill a GPU, and leave a row of partial
// sums each; a second launch adds those. How rows are cut follows from the sizes alone, so that the order of
// every sum does too.
#include "kernels/device.h"
#include "kernels/kernels.h"

#define ZB_TALL 8      // threads of a block, down the rows
#define ZB_CHUNK 32    // rows of a chunk, at least
#define ZB_BLOCKS 1024 // of the first stage, about, where there are rows enough

static int64_t rows_of_chunk(int rows, int columns) {
  int64_t chunks = ZB_BLOCKS / zb_parts(columns, 4 * ZB_WARP);
  int64_t each = chunks > 0 ? zb_parts(zb_parts(rows, chunks), ZB_TALL) * ZB_TALL : rows;
  return each < ZB_CHUNK ? ZB_CHUNK : each;
}

size_t zb_cuda_column_scratch(int rows, int columns) {
  return rows <= 0 || columns <= 0
             ? 0
             : 2 * (size_t)columns * (size_t)zb_parts(rows, rows_of_chunk(rows, columns));
}

// x[ZB_TALL] as a tree.
static __device__ inline float sum_down(const float *x, int step) {
  return ((x[0] + x[step]) + (x[2 * step] + x[3 * step])) +
         ((x[4 * step] + x[5 * step]) + (x[6 * step] + x[7 * step]));
}

// scratch[which][chunk][column]: the sums of d_out, then of d_out * normal where there is a norm.
template <class T, bool WIDE, bool NORM>
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    sum_chunks(const T *__restrict__ d_out, const T *__restrict__ normal, const float *__restrict__ gain,
               const float *__restrict__ shift, int rows, int columns, int each, T *out, float *scratch) {
  constexpr int V = zb_pack<T>, SUMS = NORM ? 2 : 1;
  ZB_SHARED(float, partial, SUMS *ZB_TALL *V *ZB_WARP);
  int lane = (int)threadIdx.x, tall = (int)threadIdx.y;
  int at = ((int)blockIdx.y * ZB_WARP + lane) * V, left = columns - at;
  int64_t from = (int64_t)blockIdx.x * each, to = from + each < rows ? from + each : rows;
  float sum[SUMS][V] = {}, factor[V] = {}, term[V] = {};
  if (NORM && out) {
    zb_read<V, WIDE>(gain + at, left, factor);
    zb_read<V, WIDE>(shift + at, left, term);
  }

  ZB_UNROLL_BY_4 for (int64_t row = from + tall; row < to; row += ZB_TALL) {
    float d[V], n[V];
    zb_read<V, WIDE>(d_out + row * columns + at, left, d);
    ZB_UNROLL for (int v = 0; v < V; v++) sum[0][v] += d[v];
    if constexpr (NORM) {
      zb_read<V, WIDE>(normal + row * columns + at, left, n);
      ZB_UNROLL for (int v = 0; v < V; v++) sum[1][v] += d[v] * n[v];
      if (out) {
        ZB_UNROLL for (int v = 0; v < V; v++) n[v] = n[v] * factor[v] + term[v];
        zb_write<V, WIDE>(out + row * columns + at, left, n);
      }
    }
  }

  ZB_UNROLL for (int which = 0; which < SUMS; which++) ZB_UNROLL for (int v = 0; v < V; v++)
      partial[((which * ZB_TALL + tall) * V + v) * ZB_WARP + lane] = sum[which][v];
  __syncthreads(); // below, one thread adds what a column of threads left
  if (tall < V && tall < left)
    ZB_UNROLL for (int which = 0; which < SUMS; which++)
        scratch[((int64_t)which * gridDim.x + blockIdx.x) * columns + at + tall] =
            sum_down(partial + (which * ZB_TALL * V + tall) * ZB_WARP + lane, V * ZB_WARP);
}

// to[which] += the sum of scratch[which][chunks][columns] over the chunks.
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    add_chunks(const float *__restrict__ scratch, int chunks, int columns, float *to0, float *to1) {
  ZB_SHARED(float, partial, ZB_TALL *ZB_WARP);
  int column = (int)blockIdx.x * ZB_WARP + (int)threadIdx.x;
  float *to = blockIdx.y ? to1 : to0;
  const float *from = scratch + (int64_t)blockIdx.y * chunks * columns;
  float sum = 0;
  if (column < columns)
    for (int chunk = (int)threadIdx.y; chunk < chunks; chunk += ZB_TALL)
      sum += from[(int64_t)chunk * columns + column];
  partial[threadIdx.y * ZB_WARP + threadIdx.x] = sum;
  __syncthreads(); // below, one thread adds what a column of threads left
  if (threadIdx.y == 0 && column < columns) to[column] += sum_down(partial + threadIdx.x, ZB_WARP);
}

template <bool NORM>
static cudaError_t column_sums(cudaStream_t stream, enum zb_dtype dtype, const void *d_out,
                               const void *normal, const float *gain, const float *shift, int rows,
                               int columns, float *to0, float *to1, void *out, float *scratch) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  int each = (int)rows_of_chunk(rows, columns);
  unsigned chunks = (unsigned)zb_parts(rows, each);
  bool aligned = zb_aligned(d_out, normal, out) && (!out || zb_aligned(gain, shift));
  cudaError_t error = zb_for_dtype(dtype, aligned, columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    auto kernel = sum_chunks<T, decltype(instance)::wide, NORM>;
    dim3 grid(chunks, (unsigned)zb_parts(columns, ZB_WARP * zb_pack<T>));
    return ZB_LAUNCH(kernel, grid, dim3(ZB_WARP, ZB_TALL), stream, (const T *)d_out, (const T *)normal, gain,
                     shift, rows, columns, each, (T *)out, scratch);
  });
  if (error != cudaSuccess) return error;
  return ZB_LAUNCH(add_chunks, dim3((unsigned)zb_parts(columns, ZB_WARP), NORM ? 2 : 1),
                   dim3(ZB_WARP, ZB_TALL), stream, (const float *)scratch, (int)chunks, columns, to0, to1);
}

cudaError_t zb_cuda_bias_weights(cudaStream_t stream, enum zb_dtype dtype, const void *d_out, int rows,
                                 int columns, float *d_bias, float *scratch) {
  return column_sums<false>(stream, dtype, d_out, nullptr, nullptr, nullptr, rows, columns, d_bias, nullptr,
                            nullptr, scratch);
}

cudaError_t zb_cuda_layernorm_weights(cudaStream_t stream, enum zb_dtype dtype, const void *d_out,
                                      const void *normal, const float *gain, const float *shift, int rows,
                                      int columns, float *d_gain, float *d_shift, void *out, float *scratch) {
  return column_sums<true>(stream, dtype, d_out, normal, gain, shift, rows, columns, d_shift, d_gain, out,
                           scratch);
}
