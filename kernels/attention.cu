// attention.cu - the causal softmax between attention's two matrix products, and its gradient, a group of
// threads a row of scores.
//
// Bytes, for n = matrices * sequence^2 elements of s bytes each:
//   softmax_forward   reads the scores on and below the diagonal, writes all: 1.5 n s
//   softmax_backward  reads that half of probabilities and gradients, writes all: 2 n s
// The floor is that over the memory's bandwidth; one exp an element read is far below it. A row is read once
// and held in registers for its maximum, its sum and its quotients.
#include "kernels/kernels.h"
#include "kernels/reduce.h"

// A row of scores: the keys that the query sees, and the part of a pack that may be read for them.
template <class T, bool WIDE, bool HELD> struct causal_share : zb_share<T, HELD> {
  int seen;

  __device__ causal_share(int64_t rows, int sequence) : zb_share<T, HELD>(rows, sequence) {
    seen = this->end > 0 ? (int)(this->row % sequence) + 1 : 0;
  }
  // Whole packs lie inside the row, so a wide access may go past the diagonal.
  __device__ int left(int at) const { return !WIDE ? seen - at : at < seen ? zb_pack<T> : 0; }
};

template <class T, bool WIDE, bool HELD>
__global__ void __launch_bounds__(1024) causal_softmax(T *scores, int64_t rows, int sequence, float scale) {
  constexpr int V = zb_pack<T>;
  causal_share<T, WIDE, HELD> mine(rows, sequence);
  float x[zb_share<T, HELD>::KEPT][V], most = -INFINITY, sum = 0;

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k);
    float *now = x[mine.slot(k)];
    zb_read<V, WIDE>(scores + mine.start + at, mine.left(at), now);
    ZB_UNROLL for (int v = 0; v < V; v++) if (at + v < mine.seen) most = fmaxf(most, now[v]);
  }
  most = zb_row_reduce<zb_most, 0>(most);

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k);
    float *now = x[mine.slot(k)];
    if (!HELD) zb_read<V, WIDE>(scores + mine.start + at, mine.left(at), now);
    ZB_UNROLL for (int v = 0; v < V; v++) {
      now[v] = at + v < mine.seen ? ZB_REAL_EXP(scale * (now[v] - most)) : 0;
      sum += now[v];
    }
  }
  sum = zb_row_reduce<zb_add, 1>(sum);

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k);
    float *now = x[mine.slot(k)];
    if (!HELD) {
      zb_read<V, WIDE>(scores + mine.start + at, mine.left(at), now);
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] =
          at + v < mine.seen ? ZB_REAL_EXP(scale * (now[v] - most)) : 0;
    }
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] /= sum;
    zb_write<V, WIDE>(scores + mine.start + at, mine.end - at, now);
  }
}

template <class T, bool WIDE, bool HELD>
__global__ void __launch_bounds__(1024) causal_softmax_back(const T *__restrict__ probability, T *d_scores,
                                                            int64_t rows, int sequence, float scale) {
  constexpr int V = zb_pack<T>;
  causal_share<T, WIDE, HELD> mine(rows, sequence);
  float p[zb_share<T, HELD>::KEPT][V], d[zb_share<T, HELD>::KEPT][V], along = 0;

  auto fetch = [&](int k) {
    int at = mine.at(k);
    zb_read<V, WIDE>(probability + mine.start + at, mine.left(at), p[mine.slot(k)]);
    zb_read<V, WIDE>(d_scores + mine.start + at, mine.left(at), d[mine.slot(k)]);
  };

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    fetch(k);
    ZB_UNROLL for (int v = 0; v < V; v++) if (mine.at(k) + v < mine.seen) along +=
        p[mine.slot(k)][v] * d[mine.slot(k)][v];
  }
  along = zb_row_reduce<zb_add, 0>(along);

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k);
    if (!HELD) fetch(k);
    float *now = d[mine.slot(k)];
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] =
        at + v < mine.seen ? scale * p[mine.slot(k)][v] * (now[v] - along) : 0;
    zb_write<V, WIDE>(d_scores + mine.start + at, mine.end - at, now);
  }
}

cudaError_t zb_cuda_softmax_forward(cudaStream_t stream, enum zb_dtype dtype, void *scores, int matrices,
                                    int sequence, float scale) {
  if (matrices <= 0 || sequence <= 0) return cudaSuccess;
  int64_t rows = (int64_t)matrices * sequence;
  struct zb_geometry shape = zb_row_geometry(rows, sequence);
  return zb_for_dtype(dtype, zb_aligned(scores), sequence, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    auto kernel = shape.held ? causal_softmax<T, WIDE, true> : causal_softmax<T, WIDE, false>;
    return ZB_LAUNCH(kernel, shape.grid, shape.block, stream, (T *)scores, rows, sequence, scale);
  });
}

cudaError_t zb_cuda_softmax_backward(cudaStream_t stream, enum zb_dtype dtype, const void *probability,
                                     void *d_scores, int matrices, int sequence, float scale) {
  if (matrices <= 0 || sequence <= 0) return cudaSuccess;
  int64_t rows = (int64_t)matrices * sequence;
  struct zb_geometry shape = zb_row_geometry(rows, sequence);
  return zb_for_dtype(dtype, zb_aligned(probability, d_scores), sequence, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    auto kernel = shape.held ? causal_softmax_back<T, WIDE, true> : causal_softmax_back<T, WIDE, false>;
    return ZB_LAUNCH(kernel, shape.grid, shape.block, stream, (const T *)probability, (T *)d_scores, rows,
                     sequence, scale);
  });
}
