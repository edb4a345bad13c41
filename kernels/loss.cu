// loss.cu - cross-entropy and its gradient in one go, a group of threads a row of logits.
//
// Bytes, for n elements of s bytes each: reads the logits, writes their gradient over them: 2 n s. The floor
// is that over the memory's bandwidth. A row is read once and held in registers. The rows' losses are added
// by one block in a second launch, in double.
#include "kernels/kernels.h"
#include "kernels/reduce.h"

// Threads that add the rows' losses, at most. All are one block, and wait for their reads together.
#define ZB_SUMMERS 1024

template <class T, bool WIDE, bool HELD>
__global__ void __launch_bounds__(1024) cross_entropy(T *logits, const unsigned char *__restrict__ targets,
                                                      int rows, int columns, float weight, float *loss) {
  constexpr int V = zb_pack<T>;
  zb_share<T, HELD> mine(rows, columns);
  int target = mine.end > 0 ? targets[mine.row] : -1;
  float x[zb_share<T, HELD>::KEPT][V], most = -INFINITY, sum = 0, chosen = 0;
  bool owner = false; // of the target's column

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)];
    zb_read<V, WIDE>(logits + mine.start + at, left, now);
    ZB_UNROLL for (int v = 0; v < V; v++) {
      if (v < left) most = fmaxf(most, now[v]);
      if (at + v == target) {
        owner = true;
        chosen = now[v];
      }
    }
  }
  most = zb_row_reduce<zb_most, 0>(most);

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)];
    if (!HELD) zb_read<V, WIDE>(logits + mine.start + at, left, now);
    ZB_UNROLL for (int v = 0; v < V; v++) {
      now[v] = v < left ? ZB_REAL_EXP(now[v] - most) : 0;
      sum += now[v];
    }
  }
  sum = zb_row_reduce<zb_add, 1>(sum);
  if (owner) loss[mine.row] = ZB_REAL_LOG(sum) - (chosen - most);

  ZB_UNROLL for (int k = 0; k < mine.packs(); k++) {
    int at = mine.at(k), left = mine.end - at;
    float *now = x[mine.slot(k)];
    if (!HELD) {
      zb_read<V, WIDE>(logits + mine.start + at, left, now);
      ZB_UNROLL for (int v = 0; v < V; v++) now[v] = ZB_REAL_EXP(now[v] - most);
    }
    ZB_UNROLL for (int v = 0; v < V; v++) now[v] = weight * (now[v] / sum - (at + v == target ? 1.0f : 0.0f));
    zb_write<V, WIDE>(logits + mine.start + at, left, now);
  }
}

__global__ void __launch_bounds__(ZB_SUMMERS) sum_losses(const float *loss, int rows, double *sum) {
  double mine = 0;
  ZB_UNROLL_BY_4 for (int row = (int)threadIdx.x; row < rows; row += (int)blockDim.x) mine +=
      (double)loss[row];
  mine = zb_row_reduce<zb_add, 0>(mine);
  if (threadIdx.x == 0) *sum = mine;
}

cudaError_t zb_cuda_cross_entropy(cudaStream_t stream, enum zb_dtype dtype, void *logits,
                                  const unsigned char *targets, int rows, int columns, float weight,
                                  double *loss, float *scratch) {
  if (rows <= 0 || columns <= 0) return cudaSuccess;
  struct zb_geometry shape = zb_row_geometry(rows, columns);
  cudaError_t error = zb_for_dtype(dtype, zb_aligned(logits), columns, [&](auto instance) {
    using T = typename decltype(instance)::type;
    constexpr bool WIDE = decltype(instance)::wide;
    auto kernel = shape.held ? cross_entropy<T, WIDE, true> : cross_entropy<T, WIDE, false>;
    return ZB_LAUNCH(kernel, shape.grid, shape.block, stream, (T *)logits, targets, rows, columns, weight,
                     scratch);
  });
  if (error != cudaSuccess) return error;
  unsigned summers = rows < ZB_SUMMERS ? (unsigned)zb_parts(rows, ZB_WARP) * ZB_WARP : ZB_SUMMERS;
  return ZB_LAUNCH(sum_losses, dim3(1), dim3(summers), stream, (const float *)scratch, rows, loss);
}
