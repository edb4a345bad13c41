// kernels.h - the CUDA kernels of the model, as C functions that launch them.
//
// Every function only enqueues on `stream` and returns what the launch returned: no allocation, no
// synchronisation, no state. Pointers are the device's. Tensors are rows x columns, rows one behind another,
// of the dtype where they are `void *`; of 0 rows or elements nothing is launched. Element arithmetic is
// scalar.h's; sums are trees whose shape depends on the sizes alone, so that equal inputs give equal bits, on
// every device, at every address and in every schedule. Accesses are 16 bytes wide where all pointers of a
// call are 16-byte aligned and the columns fill whole 16 bytes, and single elements otherwise.
//
// What is stored in the dtype and used again in the same kernel is used as it was stored.
#ifndef ZB_KERNELS_H
#define ZB_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "kernels/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

// Floats of the scratch that the functions ending in _weights need: enough for any of them with these sizes.
size_t zb_cuda_column_scratch(int rows, int columns);

// Doubles of the scratch of zb_cuda_square_sum.
size_t zb_cuda_square_sum_scratch(int64_t count);

// out[t] = table[tokens[t]] + table[vocabulary + t % sequence], table[vocabulary + sequence][hidden].
cudaError_t zb_cuda_embedding_forward(cudaStream_t stream, enum zb_dtype dtype, const unsigned char *tokens,
                                      const float *table, int count, int sequence, int vocabulary, int hidden,
                                      void *out);

// Adds to gradient[vocabulary + sequence][hidden]. Tokens are below `vocabulary`.
cudaError_t zb_cuda_embedding_weights(cudaStream_t stream, enum zb_dtype dtype, const unsigned char *tokens,
                                      const void *d_out, int count, int sequence, int vocabulary, int hidden,
                                      float *gradient);

// x = in + bias + residual, of which bias and residual may be NULL; x is stored in `sum` where that is not
// NULL (it may be `in`). Then LayerNorm (arXiv 1607.06450): normal and rstd[rows] as zb_layernorm_row defines
// them, out = normal * gain + shift.
cudaError_t zb_cuda_layernorm_forward(cudaStream_t stream, enum zb_dtype dtype, const void *in,
                                      const float *bias, const void *residual, void *sum, const float *gain,
                                      const float *shift, int rows, int columns, void *normal, float *rstd,
                                      void *out);

// d_in = d_residual (NULL: 0) + the gradient through the norm. d_in may be d_out or d_residual.
cudaError_t zb_cuda_layernorm_backward(cudaStream_t stream, enum zb_dtype dtype, const void *d_out,
                                       const float *gain, const void *normal, const float *rstd,
                                       const void *d_residual, int rows, int columns, void *d_in);

// Adds to d_gain and d_shift. Where `out` is not NULL it becomes the norm's output once more; otherwise gain
// and shift are not read.
cudaError_t zb_cuda_layernorm_weights(cudaStream_t stream, enum zb_dtype dtype, const void *d_out,
                                      const void *normal, const float *gain, const float *shift, int rows,
                                      int columns, float *d_gain, float *d_shift, void *out, float *scratch);

// x += bias, and residual where that is not NULL.
cudaError_t zb_cuda_bias(cudaStream_t stream, enum zb_dtype dtype, void *x, const float *bias,
                         const void *residual, int rows, int columns);

// before += bias; after = gelu(before).
cudaError_t zb_cuda_bias_gelu(cudaStream_t stream, enum zb_dtype dtype, void *before, const float *bias,
                              int rows, int columns, void *after);

// before = d_after * gelu'(before).
cudaError_t zb_cuda_gelu_backward(cudaStream_t stream, enum zb_dtype dtype, const void *d_after, void *before,
                                  int64_t count);

// Adds the sum of the rows of d_out to d_bias.
cudaError_t zb_cuda_bias_weights(cudaStream_t stream, enum zb_dtype dtype, const void *d_out, int rows,
                                 int columns, float *d_bias, float *scratch);

// scores[matrices][sequence][sequence] to probabilities in place, causal: zb_softmax_causal_row. What is
// above the diagonal is not read and becomes 0.
cudaError_t zb_cuda_softmax_forward(cudaStream_t stream, enum zb_dtype dtype, void *scores, int matrices,
                                    int sequence, float scale);

// d_scores from the gradient for the probabilities to that for the scores, in place: zb_softmax_back_row.
cudaError_t zb_cuda_softmax_backward(cudaStream_t stream, enum zb_dtype dtype, const void *probability,
                                     void *d_scores, int matrices, int sequence, float scale);

// *loss = the sum of the rows' -log softmax(row)[target]; logits become weight times the gradient of that.
// Targets are below `columns`. scratch[rows].
cudaError_t zb_cuda_cross_entropy(cudaStream_t stream, enum zb_dtype dtype, void *logits,
                                  const unsigned char *targets, int rows, int columns, float weight,
                                  double *loss, float *scratch);

// *sum = the sum of squares, in double: fp32 neither overflows nor loses small terms, and NaN and infinity
// survive. 0 for a count of 0.
cudaError_t zb_cuda_square_sum(cudaStream_t stream, const float *x, int64_t count, double *sum,
                               double *scratch);

// One AdamW step of every element, and its inverse in place. shadow, where not NULL, becomes value in bf16.
cudaError_t zb_cuda_adamw_step(cudaStream_t stream, struct zb_adamw_step step, const float *gradient,
                               int64_t count, float *value, float *mean, float *square, void *shadow);
cudaError_t zb_cuda_adamw_inverse(cudaStream_t stream, struct zb_adamw_step step, const float *gradient,
                                  int64_t count, float *value, float *mean, float *square, void *shadow);

// to[count], bf16, becomes from[count].
cudaError_t zb_cuda_shadow(cudaStream_t stream, const float *from, int64_t count, void *to);

// A copy that reads and writes every byte once, 16 at a time: what the others' bytes are measured against.
cudaError_t zb_cuda_copy(cudaStream_t stream, const void *from, void *to, int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
