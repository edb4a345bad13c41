// gpt_block.c - F, B and W of a block as matrix products and rows of scalar.h.
#include "runtime/gpt_block.h"

#include <math.h>
#include <string.h>

#include "runtime/gemm.h"

struct zb_block_parts zb_block_parts(const struct zb_gpt *gpt) {
  size_t h = (size_t)gpt->hidden, next = 0;
  struct zb_block_parts parts;
  const struct {
    size_t *part, count;
  } order[] = {
      {&parts.gain1, h},      {&parts.shift1, h},      {&parts.qkv, 3 * h * h},  {&parts.qkv_bias, 3 * h},
      {&parts.out, h * h},    {&parts.out_bias, h},    {&parts.gain2, h},        {&parts.shift2, h},
      {&parts.up, 4 * h * h}, {&parts.up_bias, 4 * h}, {&parts.down, 4 * h * h}, {&parts.down_bias, h},
  };
  for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
    *order[k].part = next;
    next += order[k].count;
  }
  parts.count = next;
  return parts;
}

// What a microbatch keeps, as pointers.
struct kept {
  zb_real *rstd1, *rstd2, *probability;
  zb_real *normal1, *qkv, *context, *normal2, *before, *after;
  zb_real *d_output, *d_attention, *d_norm2, *d_norm1;
};

static struct kept unpack(const struct zb_gpt *gpt, struct zb_unit_kept kept) {
  size_t t = (size_t)zb_gpt_tokens(gpt), th = zb_gpt_message(gpt);
  struct kept k = {
      .normal1 = kept.long_,
      .qkv = kept.long_ + th,
      .context = kept.long_ + 4 * th,
      .normal2 = kept.long_ + 5 * th,
      .before = kept.long_ + 6 * th,
      .after = kept.long_ + 10 * th,
  };
  if (kept.brief) {
    k.rstd1 = kept.brief;
    k.rstd2 = kept.brief + t;
    k.probability = kept.brief + 2 * t;
  }
  if (kept.late) {
    k.d_output = kept.late;
    k.d_attention = kept.late + th;
    k.d_norm2 = kept.late + 2 * th;
    k.d_norm1 = kept.late + 3 * th;
  }
  return k;
}

struct zb_unit_sizes zb_block_sizes(const struct zb_gpt *gpt) {
  size_t t = (size_t)zb_gpt_tokens(gpt), th = zb_gpt_message(gpt), sequence = (size_t)gpt->sequence;
  size_t head = sequence * (size_t)(gpt->hidden / gpt->heads);
  size_t backward =
      4 * th > th + sequence * sequence + 3 * head ? 4 * th : th + sequence * sequence + 3 * head;
  return (struct zb_unit_sizes){
      .parameters = zb_block_parts(gpt).count,
      .brief = 2 * t + t * (size_t)gpt->heads * sequence,
      .exact = 2 * t,
      .long_ = 14 * th,
      .late = 4 * th,
      .scratch = backward,
  };
}

void zb_block_start(const struct zb_gpt *gpt, struct zb_start *start, zb_real *parameters) {
  struct zb_block_parts parts = zb_block_parts(gpt);
  size_t h = (size_t)gpt->hidden;
  double residual = 0.02 / sqrt(2.0 * gpt->blocks);
  zb_start_constant(parts.count, 0, parameters);
  zb_start_constant(h, 1, parameters + parts.gain1);
  zb_start_constant(h, 1, parameters + parts.gain2);
  zb_start_matrix(start, 3 * h * h, 0.02, parameters + parts.qkv);
  zb_start_matrix(start, h * h, residual, parameters + parts.out);
  zb_start_matrix(start, 4 * h * h, 0.02, parameters + parts.up);
  zb_start_matrix(start, 4 * h * h, residual, parameters + parts.down);
}

// out[tokens x columns] = keep * out + in[tokens x rows] matrix + bias.
static void linear(const struct zb_gpt *gpt, const zb_real *in, int rows, const zb_real *matrix,
                   const zb_real *bias, int columns, int keep, zb_real *out) {
  zb_gemm(zb_gpt_tokens(gpt), columns, rows, zb_matrix(in, rows), zb_matrix(matrix, columns), keep, out,
          columns);
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) zb_add_row(bias, columns, out + (size_t)t * (size_t)columns);
}

// d_in[tokens x rows] = d_out[tokens x columns] matrix^T.
static void linear_backward(const struct zb_gpt *gpt, const zb_real *d_out, int columns,
                            const zb_real *matrix, int rows, zb_real *d_in) {
  zb_gemm(zb_gpt_tokens(gpt), rows, columns, zb_matrix(d_out, columns), zb_turned(matrix, columns), 0, d_in,
          rows);
}

// Adds in^T d_out to the matrix' gradient and the rows of d_out to the bias'.
static void linear_weights(const struct zb_gpt *gpt, const zb_real *in, int rows, const zb_real *d_out,
                           int columns, zb_real *d_matrix, zb_real *d_bias) {
  zb_gemm(rows, columns, zb_gpt_tokens(gpt), zb_turned(in, rows), zb_matrix(d_out, columns), 1, d_matrix,
          columns);
  for (int t = 0; t < zb_gpt_tokens(gpt); t++)
    zb_add_row(d_out + (size_t)t * (size_t)columns, columns, d_bias);
}

// out = LayerNorm(in), keeping `normal` and rstd.
static void norm(const struct zb_gpt *gpt, const zb_real *in, const zb_real *gain, const zb_real *shift,
                 zb_real *normal, zb_real *rstd, zb_real *out) {
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_layernorm_row(in + at, gpt->hidden, normal + at, rstd + t);
    zb_affine_row(normal + at, gain, shift, gpt->hidden, out + at);
  }
}

// d_in = d_residual + the gradient through the norm.
static void norm_backward(const struct zb_gpt *gpt, const zb_real *d_out, const zb_real *gain,
                          const zb_real *normal, const zb_real *rstd, const zb_real *d_residual,
                          zb_real *d_in) {
  memcpy(d_in, d_residual, zb_gpt_message(gpt) * sizeof *d_in);
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_layernorm_back_row(d_out + at, gain, normal + at, rstd[t], gpt->hidden, d_in + at);
  }
}

// The norm's output once more, and its parameters' gradients.
static void norm_weights(const struct zb_gpt *gpt, const zb_real *d_out, const zb_real *normal,
                         const zb_real *gain, const zb_real *shift, zb_real *d_gain, zb_real *d_shift,
                         zb_real *out) {
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_affine_row(normal + at, gain, shift, gpt->hidden, out + at);
    zb_affine_gradient_row(d_out + at, normal + at, gpt->hidden, d_gain, d_shift);
  }
}

static zb_real attention_scale(const struct zb_gpt *gpt) {
  return (zb_real)(1 / sqrt((double)gpt->hidden / gpt->heads));
}

// One head of one sample: its columns of q k v, its probabilities, its columns of the context.
struct head {
  zb_real *q, *k, *v; // [sequence x width], rows 3h apart
  zb_real *probability;
  size_t context; // offset in [tokens x hidden]
  int width;
};

static struct head head_of(const struct zb_gpt *gpt, const struct kept *k, int sample, int head) {
  size_t h = (size_t)gpt->hidden, sequence = (size_t)gpt->sequence, width = h / (size_t)gpt->heads;
  zb_real *q = k->qkv + (size_t)sample * sequence * 3 * h + (size_t)head * width;
  return (struct head){
      .q = q,
      .k = q + h,
      .v = q + 2 * h,
      .probability =
          k->probability + ((size_t)sample * (size_t)gpt->heads + (size_t)head) * sequence * sequence,
      .context = (size_t)sample * sequence * h + (size_t)head * width,
      .width = (int)width,
  };
}

static void attend(const struct zb_gpt *gpt, const struct kept *k) {
  int sequence = gpt->sequence, step = 3 * gpt->hidden;
  zb_real scale = attention_scale(gpt);
  for (int sample = 0; sample < gpt->samples; sample++) {
    for (int number = 0; number < gpt->heads; number++) {
      struct head head = head_of(gpt, k, sample, number);
      zb_gemm(sequence, sequence, head.width, zb_matrix(head.q, step), zb_turned(head.k, step), 0,
              head.probability, sequence);
      for (int i = 0; i < sequence; i++)
        zb_softmax_causal_row(head.probability + (size_t)i * (size_t)sequence, i + 1, sequence, scale);
      zb_gemm(sequence, head.width, sequence, zb_matrix(head.probability, sequence), zb_matrix(head.v, step),
              0, k->context + head.context, gpt->hidden);
    }
  }
}

// Replaces q k v by their gradients, head by head: no other head reads these columns. Scratch: d_scores
// [sequence x sequence] and three of [sequence x width].
static void attend_backward(const struct zb_gpt *gpt, const struct kept *k, const zb_real *d_context,
                            zb_real *scratch) {
  int sequence = gpt->sequence, step = 3 * gpt->hidden;
  zb_real scale = attention_scale(gpt);
  zb_real *d_scores = scratch, *fresh = scratch + (size_t)sequence * (size_t)sequence;
  for (int sample = 0; sample < gpt->samples; sample++) {
    for (int number = 0; number < gpt->heads; number++) {
      struct head head = head_of(gpt, k, sample, number);
      const zb_real *d_out = d_context + head.context;
      size_t part = (size_t)sequence * (size_t)head.width;
      zb_gemm(sequence, sequence, head.width, zb_matrix(d_out, gpt->hidden), zb_turned(head.v, step), 0,
              d_scores, sequence);
      for (int i = 0; i < sequence; i++)
        zb_softmax_back_row(head.probability + (size_t)i * (size_t)sequence,
                            d_scores + (size_t)i * (size_t)sequence, i + 1, sequence, scale);
      zb_gemm(sequence, head.width, sequence, zb_matrix(d_scores, sequence), zb_matrix(head.k, step), 0,
              fresh, head.width);
      zb_gemm(sequence, head.width, sequence, zb_turned(d_scores, sequence), zb_matrix(head.q, step), 0,
              fresh + part, head.width);
      zb_gemm(sequence, head.width, sequence, zb_turned(head.probability, sequence),
              zb_matrix(d_out, gpt->hidden), 0, fresh + 2 * part, head.width);
      for (int which = 0; which < 3; which++)
        for (int i = 0; i < sequence; i++)
          memcpy(head.q + (size_t)which * (size_t)gpt->hidden + (size_t)i * (size_t)step,
                 fresh + (size_t)which * part + (size_t)i * (size_t)head.width,
                 (size_t)head.width * sizeof *fresh);
    }
  }
}

void zb_block_forward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *input,
                      struct zb_unit_kept kept, zb_real *output, double *loss) {
  (void)loss;
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_block_parts at = zb_block_parts(gpt);
  struct kept k = unpack(gpt, kept);
  size_t th = zb_gpt_message(gpt);
  int h = gpt->hidden;
  zb_real *normed = pass->scratch;

  norm(gpt, input, parameters + at.gain1, parameters + at.shift1, k.normal1, k.rstd1, normed);
  linear(gpt, normed, h, parameters + at.qkv, parameters + at.qkv_bias, 3 * h, 0, k.qkv);
  attend(gpt, &k);
  linear(gpt, k.context, h, parameters + at.out, parameters + at.out_bias, h, 0, output);
  zb_add_row(input, (int)th, output);

  norm(gpt, output, parameters + at.gain2, parameters + at.shift2, k.normal2, k.rstd2, normed);
  linear(gpt, normed, h, parameters + at.up, parameters + at.up_bias, 4 * h, 0, k.before);
  for (size_t j = 0; j < 4 * th; j++) k.after[j] = zb_gelu(k.before[j]);
  linear(gpt, k.after, 4 * h, parameters + at.down, parameters + at.down_bias, h, 1, output);
}

void zb_block_backward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *d_output,
                       struct zb_unit_kept kept, zb_real *d_input) {
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_block_parts at = zb_block_parts(gpt);
  struct kept k = unpack(gpt, kept);
  size_t th = zb_gpt_message(gpt);
  int h = gpt->hidden;

  memcpy(k.d_output, d_output, th * sizeof *d_output);
  zb_real *d_after = pass->scratch;
  linear_backward(gpt, d_output, h, parameters + at.down, 4 * h, d_after);
  for (size_t j = 0; j < 4 * th; j++) k.before[j] = d_after[j] * zb_gelu_slope(k.before[j]);
  linear_backward(gpt, k.before, 4 * h, parameters + at.up, h, k.d_norm2);
  norm_backward(gpt, k.d_norm2, parameters + at.gain2, k.normal2, k.rstd2, d_output, k.d_attention);

  zb_real *d_context = pass->scratch;
  linear_backward(gpt, k.d_attention, h, parameters + at.out, h, d_context);
  attend_backward(gpt, &k, d_context, pass->scratch + th);
  linear_backward(gpt, k.qkv, 3 * h, parameters + at.qkv, h, k.d_norm1);
  norm_backward(gpt, k.d_norm1, parameters + at.gain1, k.normal1, k.rstd1, k.d_attention, d_input);
}

void zb_block_weights(const struct zb_pass *pass, const zb_real *parameters, struct zb_unit_kept kept,
                      zb_real *gradient) {
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_block_parts at = zb_block_parts(gpt);
  struct kept k = unpack(gpt, kept);
  int h = gpt->hidden;
  zb_real *normed = pass->scratch;

  linear_weights(gpt, k.after, 4 * h, k.d_output, h, gradient + at.down, gradient + at.down_bias);
  norm_weights(gpt, k.d_norm2, k.normal2, parameters + at.gain2, parameters + at.shift2, gradient + at.gain2,
               gradient + at.shift2, normed);
  linear_weights(gpt, normed, h, k.before, 4 * h, gradient + at.up, gradient + at.up_bias);
  linear_weights(gpt, k.context, h, k.d_attention, h, gradient + at.out, gradient + at.out_bias);
  norm_weights(gpt, k.d_norm1, k.normal1, parameters + at.gain1, parameters + at.shift1, gradient + at.gain1,
               gradient + at.shift1, normed);
  linear_weights(gpt, normed, h, k.qkv, 3 * h, gradient + at.qkv, gradient + at.qkv_bias);
}
