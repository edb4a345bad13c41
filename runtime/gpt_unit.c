// gpt_unit.c - the embedding, the head, and the table of the three kinds of unit.
#include "runtime/gpt_unit.h"

#include <math.h>
#include <string.h>

#include "runtime/gemm.h"
#include "runtime/gpt_block.h"
#include "runtime/random.h"

// The embedding: parameters [vocabulary + sequence][hidden], a row a byte and a row a position.

static struct zb_unit_sizes embedding_sizes(const struct zb_gpt *gpt) {
  return (struct zb_unit_sizes){
      .parameters = (size_t)(gpt->vocabulary + gpt->sequence) * (size_t)gpt->hidden,
      .late = zb_gpt_message(gpt),
  };
}

static void embedding_start(const struct zb_gpt *gpt, struct zb_start *start, zb_real *parameters) {
  zb_start_matrix(start, (size_t)(gpt->vocabulary + gpt->sequence) * (size_t)gpt->hidden, 0.02, parameters);
}

static void embedding_forward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *input,
                              struct zb_unit_kept kept, zb_real *output, double *loss) {
  (void)input, (void)kept, (void)loss;
  const struct zb_gpt *gpt = pass->gpt;
  size_t hidden = (size_t)gpt->hidden;
  const zb_real *positions = parameters + (size_t)gpt->vocabulary * hidden;
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) {
    zb_real *row = output + (size_t)t * hidden;
    memcpy(row, parameters + pass->tokens[t] * hidden, hidden * sizeof *row);
    zb_add_row(positions + (size_t)(t % gpt->sequence) * hidden, gpt->hidden, row);
  }
}

static void embedding_backward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *d_output,
                               struct zb_unit_kept kept, zb_real *d_input) {
  (void)parameters, (void)d_input;
  memcpy(kept.late, d_output, zb_gpt_message(pass->gpt) * sizeof *kept.late);
}

static void embedding_weights(const struct zb_pass *pass, const zb_real *parameters, struct zb_unit_kept kept,
                              zb_real *gradient) {
  (void)parameters;
  const struct zb_gpt *gpt = pass->gpt;
  size_t hidden = (size_t)gpt->hidden;
  zb_real *positions = gradient + (size_t)gpt->vocabulary * hidden;
  for (int t = 0; t < zb_gpt_tokens(gpt); t++) {
    const zb_real *row = kept.late + (size_t)t * hidden;
    zb_add_row(row, gpt->hidden, gradient + pass->tokens[t] * hidden);
    zb_add_row(row, gpt->hidden, positions + (size_t)(t % gpt->sequence) * hidden);
  }
}

// The head: final LayerNorm, a matrix, cross-entropy.

struct zb_head_parts zb_head_parts(const struct zb_gpt *gpt) {
  size_t hidden = (size_t)gpt->hidden;
  return (struct zb_head_parts){0, hidden, 2 * hidden, 2 * hidden + hidden * (size_t)gpt->vocabulary};
}

// long: normal [tokens x hidden], logits [tokens x vocabulary], which F turns into their gradient at once.
static struct zb_unit_sizes head_sizes(const struct zb_gpt *gpt) {
  size_t tokens = (size_t)zb_gpt_tokens(gpt), message = zb_gpt_message(gpt);
  return (struct zb_unit_sizes){
      .parameters = zb_head_parts(gpt).count,
      .brief = tokens,
      .exact = tokens,
      .long_ = message + tokens * (size_t)gpt->vocabulary,
      .late = message,
      .scratch = message,
  };
}

static void head_start(const struct zb_gpt *gpt, struct zb_start *start, zb_real *parameters) {
  struct zb_head_parts parts = zb_head_parts(gpt);
  zb_start_constant((size_t)gpt->hidden, 1, parameters + parts.gain);
  zb_start_constant((size_t)gpt->hidden, 0, parameters + parts.shift);
  zb_start_matrix(start, parts.count - parts.matrix, 0.02, parameters + parts.matrix);
}

static void head_forward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *input,
                         struct zb_unit_kept kept, zb_real *output, double *loss) {
  (void)output;
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_head_parts parts = zb_head_parts(gpt);
  int tokens = zb_gpt_tokens(gpt);
  zb_real *normal = kept.long_, *logits = kept.long_ + zb_gpt_message(gpt), *out = pass->scratch;
  for (int t = 0; t < tokens; t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_layernorm_row(input + at, gpt->hidden, normal + at, kept.brief + t);
    zb_affine_row(normal + at, parameters + parts.gain, parameters + parts.shift, gpt->hidden, out + at);
  }
  zb_gemm(tokens, gpt->vocabulary, gpt->hidden, zb_matrix(out, gpt->hidden),
          zb_matrix(parameters + parts.matrix, gpt->vocabulary), 0, logits, gpt->vocabulary);
  for (int t = 0; t < tokens; t++)
    *loss += (double)zb_cross_entropy_row(logits + (size_t)t * (size_t)gpt->vocabulary, gpt->vocabulary,
                                          pass->targets[t], pass->weight);
}

static void head_backward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *d_output,
                          struct zb_unit_kept kept, zb_real *d_input) {
  (void)d_output;
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_head_parts parts = zb_head_parts(gpt);
  int tokens = zb_gpt_tokens(gpt);
  const zb_real *normal = kept.long_, *d_logits = kept.long_ + zb_gpt_message(gpt);
  zb_gemm(tokens, gpt->hidden, gpt->vocabulary, zb_matrix(d_logits, gpt->vocabulary),
          zb_turned(parameters + parts.matrix, gpt->vocabulary), 0, kept.late, gpt->hidden);
  memset(d_input, 0, zb_gpt_message(gpt) * sizeof *d_input);
  for (int t = 0; t < tokens; t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_layernorm_back_row(kept.late + at, parameters + parts.gain, normal + at, kept.brief[t], gpt->hidden,
                          d_input + at);
  }
}

static void head_weights(const struct zb_pass *pass, const zb_real *parameters, struct zb_unit_kept kept,
                         zb_real *gradient) {
  const struct zb_gpt *gpt = pass->gpt;
  struct zb_head_parts parts = zb_head_parts(gpt);
  int tokens = zb_gpt_tokens(gpt);
  const zb_real *normal = kept.long_, *d_logits = kept.long_ + zb_gpt_message(gpt);
  zb_real *out = pass->scratch;
  for (int t = 0; t < tokens; t++) {
    size_t at = (size_t)t * (size_t)gpt->hidden;
    zb_affine_row(normal + at, parameters + parts.gain, parameters + parts.shift, gpt->hidden, out + at);
    zb_affine_gradient_row(kept.late + at, normal + at, gpt->hidden, gradient + parts.gain,
                           gradient + parts.shift);
  }
  zb_gemm(gpt->hidden, gpt->vocabulary, tokens, zb_turned(out, gpt->hidden),
          zb_matrix(d_logits, gpt->vocabulary), 1, gradient + parts.matrix, gpt->vocabulary);
}

static const struct {
  struct zb_unit_sizes (*sizes)(const struct zb_gpt *gpt);
  void (*start)(const struct zb_gpt *gpt, struct zb_start *start, zb_real *parameters);
  void (*forward)(const struct zb_pass *pass, const zb_real *parameters, const zb_real *input,
                  struct zb_unit_kept kept, zb_real *output, double *loss);
  void (*backward)(const struct zb_pass *pass, const zb_real *parameters, const zb_real *d_output,
                   struct zb_unit_kept kept, zb_real *d_input);
  void (*weights)(const struct zb_pass *pass, const zb_real *parameters, struct zb_unit_kept kept,
                  zb_real *gradient);
} kinds[] = {
    {embedding_sizes, embedding_start, embedding_forward, embedding_backward, embedding_weights},
    {zb_block_sizes, zb_block_start, zb_block_forward, zb_block_backward, zb_block_weights},
    {head_sizes, head_start, head_forward, head_backward, head_weights},
};

static int kind_of(const struct zb_gpt *gpt, int unit) { return unit == 0 ? 0 : unit <= gpt->blocks ? 1 : 2; }

struct zb_unit_sizes zb_unit_sizes(const struct zb_gpt *gpt, int unit) {
  return kinds[kind_of(gpt, unit)].sizes(gpt);
}

struct zb_unit_bytes zb_unit_bytes(const struct zb_gpt *gpt, int unit, enum zb_dtype dtype) {
  struct zb_unit_sizes sizes = zb_unit_sizes(gpt, unit);
  size_t each = dtype == ZB_FP32 ? sizeof(zb_real) : zb_dtype_bytes(dtype);
  return (struct zb_unit_bytes){
      .brief = sizes.exact * sizeof(zb_real) + (sizes.brief - sizes.exact) * each,
      .long_ = sizes.long_ * each,
      .late = sizes.late * each,
  };
}

void zb_unit_start(const struct zb_gpt *gpt, int unit, uint64_t seed, zb_real *parameters) {
  struct zb_start start = {zb_random_mix(seed, (uint64_t)unit), 0};
  kinds[kind_of(gpt, unit)].start(gpt, &start, parameters);
}

void zb_unit_forward(const struct zb_pass *pass, int unit, const zb_real *parameters, const zb_real *input,
                     struct zb_unit_kept kept, zb_real *output, double *loss) {
  kinds[kind_of(pass->gpt, unit)].forward(pass, parameters, input, kept, output, loss);
}

void zb_unit_backward(const struct zb_pass *pass, int unit, const zb_real *parameters,
                      const zb_real *d_output, struct zb_unit_kept kept, zb_real *d_input) {
  kinds[kind_of(pass->gpt, unit)].backward(pass, parameters, d_output, kept, d_input);
}

void zb_unit_weights(const struct zb_pass *pass, int unit, const zb_real *parameters,
                     struct zb_unit_kept kept, zb_real *gradient) {
  kinds[kind_of(pass->gpt, unit)].weights(pass, parameters, kept, gradient);
}
