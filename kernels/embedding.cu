// embedding.cu - a row of the table a token, and the way back.
//
// Bytes, for n = count * hidden elements of s bytes each (the table's rows are few and stay in the cache):
//   forward  writes out: n s
//   weights  reads d_out twice, for the bytes' rows and for the positions': 2 n s, and adds to the table
// The floor is that over the memory's bandwidth.
//
// The way back adds rows of d_out that have the same byte, however often that is. No atomics: a block owns
// one row of the table and a tile of its columns, and looks through all tokens for its own; each warp looks
// at 32 tokens at a time, and so finds its rows in order and adds them in order.
#include "kernels/device.h"
#include "kernels/kernels.h"

#define ZB_TALL 8 // threads of a block, down the rows, at most

template <class T, bool WIDE>
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    embed(const unsigned char *__restrict__ tokens, const float *__restrict__ table, int count, int sequence,
          int vocabulary, int hidden, T *out) {
  constexpr int V = zb_pack<T>;
  int at = ((int)blockIdx.y * ZB_WARP + (int)threadIdx.x) * V, left = hidden - at;
  int64_t t = (int64_t)blockIdx.x * ZB_TALL + threadIdx.y;
  if (t >= count) return;
  float x[V], position[V];
  zb_read<V, WIDE>(table + (int64_t)tokens[t] * hidden + at, left, x);
  zb_read<V, WIDE>(table + (vocabulary + t % sequence) * hidden + at, left, position);
  ZB_UNROLL for (int v = 0; v < V; v++) x[v] += position[v];
  zb_write<V, WIDE>(out + t * hidden + at, left, x);
}

// Adds sum[V] of each thread over threadIdx.y, as a tree, to a row of the gradient.
template <int V, bool WIDE>
static __device__ inline void add_down(const float (&sum)[V], int left, float *to) {
  ZB_SHARED(float, partial, ZB_TALL *V *ZB_WARP);
  int lane = (int)threadIdx.x, tall = (int)threadIdx.y;
  ZB_UNROLL for (int v = 0; v < V; v++) partial[(tall * V + v) * ZB_WARP + lane] = sum[v];
  __syncthreads(); // below, one row of threads adds what all left
  if (tall != 0) return;
  float x[V];
  zb_read<V, WIDE>(to, left, x);
  ZB_UNROLL for (int v = 0; v < V; v++) {
    float down[ZB_TALL];
    ZB_UNROLL for (int k = 0; k < ZB_TALL; k++) down[k] =
        k < (int)blockDim.y ? partial[(k * V + v) * ZB_WARP + lane] : 0;
    x[v] += ((down[0] + down[1]) + (down[2] + down[3])) + ((down[4] + down[5]) + (down[6] + down[7]));
  }
  zb_write<V, WIDE>(to, left, x);
}

// blockIdx.x: the byte.
template <class T, bool WIDE>
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    gather_tokens(const unsigned char *__restrict__ tokens, const T *__restrict__ d_out, int count,
                  int hidden, float *gradient) {
  constexpr int V = zb_pack<T>, TOGETHER = 4;
  int lane = (int)threadIdx.x, at = ((int)blockIdx.y * ZB_WARP + lane) * V, left = hidden - at;
  float sum[V] = {};
  for (int64_t from = (int64_t)threadIdx.y * ZB_WARP; from < count; from += (int64_t)ZB_WARP * blockDim.y) {
    bool match = from + lane < count && tokens[from + lane] == blockIdx.x;
    unsigned found = __ballot_sync(~0u, match);
    while (found) { // some at a time, so that their reads do not wait for each other
      float d[TOGETHER][V];
      ZB_UNROLL for (int k = 0; k < TOGETHER; k++) {
        int one = __ffs((int)found) - 1;
        zb_read<V, WIDE>(d_out + (from + (one < 0 ? 0 : one)) * hidden + at, one < 0 ? 0 : left, d[k]);
        found &= found - 1;
      }
      ZB_UNROLL for (int k = 0; k < TOGETHER; k++) ZB_UNROLL for (int v = 0; v < V; v++) sum[v] += d[k][v];
    }
  }
  add_down<V, WIDE>(sum, left, gradient + (int64_t)blockIdx.x * hidden + at);
}

// blockIdx.x: the position.
template <class T, bool WIDE>
__global__ void __launch_bounds__(ZB_WARP *ZB_TALL)
    gather_positions(const T *__restrict__ d_out, int count, int sequence, int hidden, float *gradient) {
  constexpr int V = zb_pack<T>;
  int at = ((int)blockIdx.y * ZB_WARP + (int)threadIdx.x) * V, left = hidden - at;
  float sum[V] = {};
  ZB_UNROLL_BY_4 for (int64_t t = blockIdx.x + (int64_t)threadIdx.y * sequence; t < count;
                      t += (int64_t)blockDim.y * sequence) {
    float d[V];
    zb_read<V, WIDE>(d_out + t * hidden + at, left, d);
    ZB_UNROLL for (int v = 0; v < V; v++) sum[v] += d[v];
  }
  add_down<V, WIDE>(sum, left, gradient + (int64_t)blockIdx.x * hidden + at);
}

static unsigned tall(int64_t work) { return (unsigned)(work < ZB_TALL ? work : ZB_TALL); }

cudaError_t zb_cuda_embedding_forward(cudaStream_t stream, enum zb_dtype dtype, const unsigned char *tokens,
                                      const float *table, int count, int sequence, int vocabulary, int hidden,
                                      void *out) {
  if (count <= 0 || hidden <= 0) return cudaSuccess;
  return zb_for_dtype(dtype, zb_aligned(table, out), hidden, [&](auto instance) {
    using T = typename decltype(instance)::type;
    auto kernel = embed<T, decltype(instance)::wide>;
    dim3 grid((unsigned)zb_parts(count, ZB_TALL), (unsigned)zb_parts(hidden, ZB_WARP * zb_pack<T>));
    return ZB_LAUNCH(kernel, grid, dim3(ZB_WARP, ZB_TALL), stream, tokens, table, count, sequence, vocabulary,
                     hidden, (T *)out);
  });
}

cudaError_t zb_cuda_embedding_weights(cudaStream_t stream, enum zb_dtype dtype, const unsigned char *tokens,
                                      const void *d_out, int count, int sequence, int vocabulary, int hidden,
                                      float *gradient) {
  if (count <= 0 || hidden <= 0) return cudaSuccess;
  float *positions = gradient + (int64_t)vocabulary * hidden;
  return zb_for_dtype(dtype, zb_aligned(d_out, gradient), hidden, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    unsigned tiles = (unsigned)zb_parts(hidden, ZB_WARP * zb_pack<T>);
    dim3 few(ZB_WARP, tall(zb_parts(count, ZB_WARP))), fewer(ZB_WARP, tall(zb_parts(count, sequence)));
    auto kernel = gather_tokens<T, WIDE>;
    cudaError_t error = ZB_LAUNCH(kernel, dim3((unsigned)vocabulary, tiles), few, stream, tokens,
                                  (const T *)d_out, count, hidden, gradient);
    if (error != cudaSuccess) return error;
    auto second = gather_positions<T, WIDE>;
    return ZB_LAUNCH(second, dim3((unsigned)sequence, tiles), fewer, stream, (const T *)d_out, count,
                     sequence, hidden, positions);
  });
}
