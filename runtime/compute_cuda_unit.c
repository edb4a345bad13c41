// compute_cuda_unit.c - F, B and W of a unit as products and kernels. What they compute is gpt_block.c's and
// gpt_unit.c's, buffer by buffer.
//
// Scratch is [tokens x 4 hidden], of which the attention's backward pass uses the first quarter for the
// gradient of the context and the rest for q k v as F left them; and behind it the gradient of the scores.
#include <math.h>

#include "kernels/kernels.h"
#include "runtime/compute_cuda_parts.h"
#include "runtime/gpt_block.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t scores_of(const struct zb_gpt *gpt) {
  return (size_t)zb_gpt_tokens(gpt) * (size_t)gpt->heads * (size_t)gpt->sequence;
}

size_t zb_cuda_scratch_bytes(const struct zb_gpt *gpt, enum zb_dtype dtype) {
  return (4 * zb_gpt_message(gpt) + scores_of(gpt)) * zb_dtype_bytes(dtype);
}

size_t zb_cuda_column_floats(const struct zb_gpt *gpt) {
  int tokens = zb_gpt_tokens(gpt);
  size_t most = (size_t)tokens; // of the cross-entropy
  // Rows are cut into whole chunks, so that more columns may need less.
  for (int width = 1; width <= 4; width++)
    most = larger(most, zb_cuda_column_scratch(tokens, width * gpt->hidden));
  return most;
}

// cuBLAS splits sums where a result has few tiles: some copies of the largest result are what it can use. Its
// manual (cublasSetWorkspace) asks for a multiple of 16 KiB, and advises 32 MiB for the largest devices.
size_t zb_cuda_blas_bytes(const struct zb_gpt *gpt) {
  const size_t most = (size_t)32 << 20, step = (size_t)16 << 10;
  size_t h = (size_t)gpt->hidden, tokens = (size_t)zb_gpt_tokens(gpt);
  size_t result = larger(larger(4 * h * h, tokens * 4 * h),
                         larger(scores_of(gpt), larger(h, tokens) * (size_t)gpt->vocabulary));
  size_t bytes = (16 * result * sizeof(float) + step - 1) / step * step;
  return bytes < most ? bytes : most;
}

static void *at(const struct zb_cuda_pass *pass, const void *base, size_t numbers) {
  // Offsets into what is const here and written there: the caller knows which it is.
  union {
    const void *given;
    char *moved;
  } pointer = {.given = base};
  return pointer.moved + numbers * zb_dtype_bytes(zb_cuda_dtype(pass->cuda));
}

static struct zb_cuda_matrix matrix(const void *base, int step) {
  return (struct zb_cuda_matrix){.at = base, .step = step};
}

static struct zb_cuda_matrix turned(const void *base, int step) {
  return (struct zb_cuda_matrix){.at = base, .step = step, .turned = true};
}

// What a microbatch keeps on a block (gpt_block.h).
struct kept {
  float *rstd1, *rstd2;
  void *probability;
  void *normal1, *qkv, *context, *normal2, *before, *after;
  void *d_output, *d_attention, *d_norm2, *d_norm1;
};

static struct kept unpack(const struct zb_cuda_pass *pass, struct zb_cuda_kept kept) {
  const struct zb_gpt *gpt = zb_cuda_gpt(pass->cuda);
  size_t t = (size_t)zb_gpt_tokens(gpt), th = zb_gpt_message(gpt);
  struct kept k = {
      .normal1 = kept.long_,
      .qkv = at(pass, kept.long_, th),
      .context = at(pass, kept.long_, 4 * th),
      .normal2 = at(pass, kept.long_, 5 * th),
      .before = at(pass, kept.long_, 6 * th),
      .after = at(pass, kept.long_, 10 * th),
  };
  if (kept.brief) {
    k.rstd1 = kept.brief;
    k.rstd2 = k.rstd1 + t;
    k.probability = k.rstd2 + t;
  }
  if (kept.late) {
    k.d_output = kept.late;
    k.d_attention = at(pass, kept.late, th);
    k.d_norm2 = at(pass, kept.late, 2 * th);
    k.d_norm1 = at(pass, kept.late, 3 * th);
  }
  return k;
}

// out = keep * out + in[tokens x rows] factor[rows x columns].
static enum zb_status linear(const struct zb_cuda_pass *pass, const void *in, int rows, size_t factor,
                             int columns, int keep, void *out, struct zb_error *error) {
  return zb_cuda_product(pass->cuda, zb_gpt_tokens(zb_cuda_gpt(pass->cuda)), columns, rows, matrix(in, rows),
                         matrix(at(pass, pass->factors, factor), columns), keep,
                         (struct zb_cuda_result){.at = out, .step = columns}, 1, error);
}

// d_in[tokens x rows] = d_out[tokens x columns] factor'.
static enum zb_status linear_backward(const struct zb_cuda_pass *pass, const void *d_out, int columns,
                                      size_t factor, int rows, void *d_in, struct zb_error *error) {
  return zb_cuda_product(pass->cuda, zb_gpt_tokens(zb_cuda_gpt(pass->cuda)), rows, columns,
                         matrix(d_out, columns), turned(at(pass, pass->factors, factor), columns), 0,
                         (struct zb_cuda_result){.at = d_in, .step = rows}, 1, error);
}

// Adds in' d_out to d_factor[rows x columns].
static enum zb_status linear_weights(const struct zb_cuda_pass *pass, const void *in, int rows,
                                     const void *d_out, int columns, float *d_factor,
                                     struct zb_error *error) {
  return zb_cuda_product(pass->cuda, rows, columns, zb_gpt_tokens(zb_cuda_gpt(pass->cuda)), turned(in, rows),
                         matrix(d_out, columns), 1,
                         (struct zb_cuda_result){.at = d_factor, .step = columns, .exact = true}, 1, error);
}

static float attention_scale(const struct zb_gpt *gpt) {
  return (float)(1 / sqrt((double)gpt->hidden / gpt->heads));
}

// The heads of one sample, all at once: q, k and v lie in rows of 3h, their context in rows of h.
struct heads {
  struct zb_cuda_matrix q, k, v, scores, context;
};

static struct heads heads_of(const struct zb_cuda_pass *pass, const void *qkv, const void *scores,
                             const void *context, int sample) {
  const struct zb_gpt *gpt = zb_cuda_gpt(pass->cuda);
  size_t h = (size_t)gpt->hidden, sequence = (size_t)gpt->sequence, row = (size_t)sample * sequence;
  long long width = gpt->hidden / gpt->heads;
  return (struct heads){
      .q = {at(pass, qkv, row * 3 * h), 3 * gpt->hidden, false, width},
      .k = {at(pass, qkv, row * 3 * h + h), 3 * gpt->hidden, false, width},
      .v = {at(pass, qkv, row * 3 * h + 2 * h), 3 * gpt->hidden, false, width},
      .scores = {at(pass, scores, row * (size_t)gpt->heads * sequence), gpt->sequence, false,
                 (long long)(sequence * sequence)},
      .context = {at(pass, context, row * h), gpt->hidden, false, width},
  };
}

static struct zb_cuda_matrix turn(struct zb_cuda_matrix m) {
  m.turned = !m.turned;
  return m;
}

// c = a b of every head; the results lie where `c` does.
static enum zb_status multiply_heads(const struct zb_cuda_pass *pass, int columns, int inner,
                                     struct zb_cuda_matrix a, struct zb_cuda_matrix b,
                                     struct zb_cuda_matrix c, struct zb_error *error) {
  const struct zb_gpt *gpt = zb_cuda_gpt(pass->cuda);
  struct zb_cuda_result result = {.at = at(pass, c.at, 0), .step = c.step, .stride = c.stride};
  return zb_cuda_product(pass->cuda, gpt->sequence, columns, inner, a, b, 0, result, gpt->heads, error);
}

static enum zb_status attend(const struct zb_cuda_pass *pass, const struct kept *k, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  int sequence = gpt->sequence, width = gpt->hidden / gpt->heads;
  for (int sample = 0; sample < gpt->samples; sample++) {
    struct heads heads = heads_of(pass, k->qkv, k->probability, k->context, sample);
    ZB_CUDA_PASS(multiply_heads(pass, sequence, width, heads.q, turn(heads.k), heads.scores, error));
  }
  ZB_CUDA_TRY(zb_cuda_softmax_forward(cuda->stream, zb_cuda_dtype(cuda), k->probability,
                                      gpt->samples * gpt->heads, sequence, attention_scale(gpt)),
              error);
  for (int sample = 0; sample < gpt->samples; sample++) {
    struct heads heads = heads_of(pass, k->qkv, k->probability, k->context, sample);
    ZB_CUDA_PASS(multiply_heads(pass, width, sequence, heads.scores, heads.v, heads.context, error));
  }
  return ZB_OK;
}

// Replaces q k v by their gradients. d_context is the first quarter of the scratch.
static enum zb_status attend_backward(const struct zb_cuda_pass *pass, const struct kept *k,
                                      const void *d_context, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  int sequence = gpt->sequence, width = gpt->hidden / gpt->heads;
  size_t th = zb_gpt_message(gpt);
  void *qkv = at(pass, cuda->scratch, th), *d_scores = at(pass, cuda->scratch, 4 * th);
  ZB_CUDA_TRY(
      zb_cuda_copy(cuda->stream, k->qkv, qkv, (int64_t)(3 * th * zb_dtype_bytes(zb_cuda_dtype(cuda)))),
      error);
  for (int sample = 0; sample < gpt->samples; sample++) {
    struct heads was = heads_of(pass, qkv, d_scores, d_context, sample);
    ZB_CUDA_PASS(multiply_heads(pass, sequence, width, was.context, turn(was.v), was.scores, error));
  }
  ZB_CUDA_TRY(zb_cuda_softmax_backward(cuda->stream, zb_cuda_dtype(cuda), k->probability, d_scores,
                                       gpt->samples * gpt->heads, sequence, attention_scale(gpt)),
              error);
  for (int sample = 0; sample < gpt->samples; sample++) {
    struct heads was = heads_of(pass, qkv, d_scores, d_context, sample);
    struct heads becomes = heads_of(pass, k->qkv, k->probability, d_context, sample);
    ZB_CUDA_PASS(multiply_heads(pass, width, sequence, was.scores, was.k, becomes.q, error));
    ZB_CUDA_PASS(multiply_heads(pass, width, sequence, turn(was.scores), was.q, becomes.k, error));
    ZB_CUDA_PASS(multiply_heads(pass, width, sequence, turn(becomes.scores), was.context, becomes.v, error));
  }
  return ZB_OK;
}

static enum zb_status block_forward(const struct zb_cuda_pass *pass, const void *input,
                                    struct zb_cuda_kept kept, void *output, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  struct zb_block_parts part = zb_block_parts(gpt);
  struct kept k = unpack(pass, kept);
  const float *p = pass->parameters;
  enum zb_dtype dtype = zb_cuda_dtype(cuda);
  cudaStream_t stream = cuda->stream;
  int h = gpt->hidden, tokens = zb_gpt_tokens(gpt);
  void *normed = cuda->scratch;

  ZB_CUDA_TRY(zb_cuda_layernorm_forward(stream, dtype, input, NULL, NULL, NULL, p + part.gain1,
                                        p + part.shift1, tokens, h, k.normal1, k.rstd1, normed),
              error);
  ZB_CUDA_PASS(linear(pass, normed, h, part.qkv, 3 * h, 0, k.qkv, error));
  ZB_CUDA_TRY(zb_cuda_bias(stream, dtype, k.qkv, p + part.qkv_bias, NULL, tokens, 3 * h), error);
  ZB_CUDA_PASS(attend(pass, &k, error));
  ZB_CUDA_PASS(linear(pass, k.context, h, part.out, h, 0, output, error));
  // The bias, the residual and the second norm are one pass.
  ZB_CUDA_TRY(zb_cuda_layernorm_forward(stream, dtype, output, p + part.out_bias, input, output,
                                        p + part.gain2, p + part.shift2, tokens, h, k.normal2, k.rstd2,
                                        normed),
              error);
  ZB_CUDA_PASS(linear(pass, normed, h, part.up, 4 * h, 0, k.before, error));
  ZB_CUDA_TRY(zb_cuda_bias_gelu(stream, dtype, k.before, p + part.up_bias, tokens, 4 * h, k.after), error);
  ZB_CUDA_PASS(linear(pass, k.after, 4 * h, part.down, h, 1, output, error));
  ZB_CUDA_TRY(zb_cuda_bias(stream, dtype, output, p + part.down_bias, NULL, tokens, h), error);
  return ZB_OK;
}

static enum zb_status block_backward(const struct zb_cuda_pass *pass, const void *d_output,
                                     struct zb_cuda_kept kept, void *d_input, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  struct zb_block_parts part = zb_block_parts(gpt);
  struct kept k = unpack(pass, kept);
  const float *p = pass->parameters;
  enum zb_dtype dtype = zb_cuda_dtype(cuda);
  cudaStream_t stream = cuda->stream;
  int h = gpt->hidden, tokens = zb_gpt_tokens(gpt);
  int64_t th = (int64_t)zb_gpt_message(gpt);
  void *d_after = cuda->scratch, *d_context = cuda->scratch;

  ZB_CUDA_TRY(zb_cuda_copy(stream, d_output, k.d_output, th * (int64_t)zb_dtype_bytes(dtype)), error);
  ZB_CUDA_PASS(linear_backward(pass, d_output, h, part.down, 4 * h, d_after, error));
  ZB_CUDA_TRY(zb_cuda_gelu_backward(stream, dtype, d_after, k.before, 4 * th), error);
  ZB_CUDA_PASS(linear_backward(pass, k.before, 4 * h, part.up, h, k.d_norm2, error));
  ZB_CUDA_TRY(zb_cuda_layernorm_backward(stream, dtype, k.d_norm2, p + part.gain2, k.normal2, k.rstd2,
                                         d_output, tokens, h, k.d_attention),
              error);
  ZB_CUDA_PASS(linear_backward(pass, k.d_attention, h, part.out, h, d_context, error));
  ZB_CUDA_PASS(attend_backward(pass, &k, d_context, error));
  ZB_CUDA_PASS(linear_backward(pass, k.qkv, 3 * h, part.qkv, h, k.d_norm1, error));
  ZB_CUDA_TRY(zb_cuda_layernorm_backward(stream, dtype, k.d_norm1, p + part.gain1, k.normal1, k.rstd1,
                                         k.d_attention, tokens, h, d_input),
              error);
  return ZB_OK;
}

static enum zb_status block_weights(const struct zb_cuda_pass *pass, struct zb_cuda_kept kept,
                                    float *gradient, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  struct zb_block_parts part = zb_block_parts(gpt);
  struct kept k = unpack(pass, kept);
  const float *p = pass->parameters;
  float *g = gradient, *columns = cuda->columns;
  enum zb_dtype dtype = zb_cuda_dtype(cuda);
  cudaStream_t stream = cuda->stream;
  int h = gpt->hidden, tokens = zb_gpt_tokens(gpt);
  void *normed = cuda->scratch;

  ZB_CUDA_PASS(linear_weights(pass, k.after, 4 * h, k.d_output, h, g + part.down, error));
  ZB_CUDA_TRY(zb_cuda_bias_weights(stream, dtype, k.d_output, tokens, h, g + part.down_bias, columns), error);
  ZB_CUDA_TRY(zb_cuda_layernorm_weights(stream, dtype, k.d_norm2, k.normal2, p + part.gain2, p + part.shift2,
                                        tokens, h, g + part.gain2, g + part.shift2, normed, columns),
              error);
  ZB_CUDA_PASS(linear_weights(pass, normed, h, k.before, 4 * h, g + part.up, error));
  ZB_CUDA_TRY(zb_cuda_bias_weights(stream, dtype, k.before, tokens, 4 * h, g + part.up_bias, columns), error);
  ZB_CUDA_PASS(linear_weights(pass, k.context, h, k.d_attention, h, g + part.out, error));
  ZB_CUDA_TRY(zb_cuda_bias_weights(stream, dtype, k.d_attention, tokens, h, g + part.out_bias, columns),
              error);
  ZB_CUDA_TRY(zb_cuda_layernorm_weights(stream, dtype, k.d_norm1, k.normal1, p + part.gain1, p + part.shift1,
                                        tokens, h, g + part.gain1, g + part.shift1, normed, columns),
              error);
  ZB_CUDA_PASS(linear_weights(pass, normed, h, k.qkv, 3 * h, g + part.qkv, error));
  ZB_CUDA_TRY(zb_cuda_bias_weights(stream, dtype, k.qkv, tokens, 3 * h, g + part.qkv_bias, columns), error);
  return ZB_OK;
}

// The microbatch's tokens (0) or targets (1).
static const unsigned char *data_of(const struct zb_cuda_pass *pass, int which) {
  size_t tokens = (size_t)zb_gpt_tokens(zb_cuda_gpt(pass->cuda));
  size_t microbatches = (size_t)pass->cuda->setup->training->microbatches;
  return pass->cuda->data + ((size_t)which * microbatches + (size_t)pass->microbatch) * tokens;
}

static enum zb_status embedding_forward(const struct zb_cuda_pass *pass, const void *input,
                                        struct zb_cuda_kept kept, void *output, struct zb_error *error) {
  (void)input, (void)kept;
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  ZB_CUDA_TRY(zb_cuda_embedding_forward(cuda->stream, zb_cuda_dtype(cuda), data_of(pass, 0), pass->parameters,
                                        zb_gpt_tokens(gpt), gpt->sequence, gpt->vocabulary, gpt->hidden,
                                        output),
              error);
  return ZB_OK;
}

static enum zb_status embedding_backward(const struct zb_cuda_pass *pass, const void *d_output,
                                         struct zb_cuda_kept kept, void *d_input, struct zb_error *error) {
  (void)d_input;
  struct zb_cuda *cuda = pass->cuda;
  size_t bytes = zb_gpt_message(zb_cuda_gpt(cuda)) * zb_dtype_bytes(zb_cuda_dtype(cuda));
  ZB_CUDA_TRY(zb_cuda_copy(cuda->stream, d_output, kept.late, (int64_t)bytes), error);
  return ZB_OK;
}

static enum zb_status embedding_weights(const struct zb_cuda_pass *pass, struct zb_cuda_kept kept,
                                        float *gradient, struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  ZB_CUDA_TRY(zb_cuda_embedding_weights(cuda->stream, zb_cuda_dtype(cuda), data_of(pass, 0), kept.late,
                                        zb_gpt_tokens(gpt), gpt->sequence, gpt->vocabulary, gpt->hidden,
                                        gradient),
              error);
  return ZB_OK;
}

// long: normal [tokens x hidden], logits [tokens x vocabulary], which F turns into their gradient at once.
static enum zb_status head_forward(const struct zb_cuda_pass *pass, const void *input,
                                   struct zb_cuda_kept kept, void *output, struct zb_error *error) {
  (void)output;
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  const struct zb_training *training = cuda->setup->training;
  struct zb_head_parts part = zb_head_parts(gpt);
  int tokens = zb_gpt_tokens(gpt);
  void *logits = at(pass, kept.long_, zb_gpt_message(gpt)), *out = cuda->scratch;
  ZB_CUDA_TRY(zb_cuda_layernorm_forward(cuda->stream, zb_cuda_dtype(cuda), input, NULL, NULL, NULL,
                                        pass->parameters + part.gain, pass->parameters + part.shift, tokens,
                                        gpt->hidden, kept.long_, kept.brief, out),
              error);
  ZB_CUDA_PASS(linear(pass, out, gpt->hidden, part.matrix, gpt->vocabulary, 0, logits, error));
  ZB_CUDA_TRY(zb_cuda_cross_entropy(cuda->stream, zb_cuda_dtype(cuda), logits, data_of(pass, 1), tokens,
                                    gpt->vocabulary, (float)(1.0 / ((double)training->microbatches * tokens)),
                                    cuda->numbers + zb_gpt_units(gpt) + pass->microbatch, cuda->columns),
              error);
  return ZB_OK;
}

static enum zb_status head_backward(const struct zb_cuda_pass *pass, const void *d_output,
                                    struct zb_cuda_kept kept, void *d_input, struct zb_error *error) {
  (void)d_output;
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  struct zb_head_parts part = zb_head_parts(gpt);
  const void *d_logits = at(pass, kept.long_, zb_gpt_message(gpt));
  ZB_CUDA_PASS(linear_backward(pass, d_logits, gpt->vocabulary, part.matrix, gpt->hidden, kept.late, error));
  ZB_CUDA_TRY(zb_cuda_layernorm_backward(cuda->stream, zb_cuda_dtype(cuda), kept.late,
                                         pass->parameters + part.gain, kept.long_, kept.brief, NULL,
                                         zb_gpt_tokens(gpt), gpt->hidden, d_input),
              error);
  return ZB_OK;
}

static enum zb_status head_weights(const struct zb_cuda_pass *pass, struct zb_cuda_kept kept, float *gradient,
                                   struct zb_error *error) {
  struct zb_cuda *cuda = pass->cuda;
  const struct zb_gpt *gpt = zb_cuda_gpt(cuda);
  struct zb_head_parts part = zb_head_parts(gpt);
  const void *d_logits = at(pass, kept.long_, zb_gpt_message(gpt));
  void *out = cuda->scratch;
  ZB_CUDA_TRY(zb_cuda_layernorm_weights(cuda->stream, zb_cuda_dtype(cuda), kept.late, kept.long_,
                                        pass->parameters + part.gain, pass->parameters + part.shift,
                                        zb_gpt_tokens(gpt), gpt->hidden, gradient + part.gain,
                                        gradient + part.shift, out, cuda->columns),
              error);
  return linear_weights(pass, out, gpt->hidden, d_logits, gpt->vocabulary, gradient + part.matrix, error);
}

static const struct {
  enum zb_status (*forward)(const struct zb_cuda_pass *pass, const void *input, struct zb_cuda_kept kept,
                            void *output, struct zb_error *error);
  enum zb_status (*backward)(const struct zb_cuda_pass *pass, const void *d_output, struct zb_cuda_kept kept,
                             void *d_input, struct zb_error *error);
  enum zb_status (*weights)(const struct zb_cuda_pass *pass, struct zb_cuda_kept kept, float *gradient,
                            struct zb_error *error);
} kinds[] = {
    {embedding_forward, embedding_backward, embedding_weights},
    {block_forward, block_backward, block_weights},
    {head_forward, head_backward, head_weights},
};

static int kind_of(const struct zb_cuda_pass *pass, int unit) {
  return unit == 0 ? 0 : unit <= zb_cuda_gpt(pass->cuda)->blocks ? 1 : 2;
}

enum zb_status zb_cuda_unit_forward(const struct zb_cuda_pass *pass, int unit, const void *input,
                                    struct zb_cuda_kept kept, void *output, struct zb_error *error) {
  return kinds[kind_of(pass, unit)].forward(pass, input, kept, output, error);
}

enum zb_status zb_cuda_unit_backward(const struct zb_cuda_pass *pass, int unit, const void *d_output,
                                     struct zb_cuda_kept kept, void *d_input, struct zb_error *error) {
  return kinds[kind_of(pass, unit)].backward(pass, d_output, kept, d_input, error);
}

enum zb_status zb_cuda_unit_weights(const struct zb_cuda_pass *pass, int unit, struct zb_cuda_kept kept,
                                    float *gradient, struct zb_error *error) {
  return kinds[kind_of(pass, unit)].weights(pass, kept, gradient, error);
}
