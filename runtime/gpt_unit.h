// gpt_unit.h - one unit of the model (embedding, block or head): its parameters, and F, B and W of one
// microbatch.
//
// What a microbatch keeps on a unit lies in three buffers, by how long it is needed:
//
//   brief  written by F, read by B:           gone after B
//   long   written by F, read (and in places overwritten) by B, read by W
//   late   written by B, read by W
//
// so that F keeps brief + long, B changes that by late - brief, and W gives the rest back. F, B and W of a
// unit touch nothing else but the parameters (read), the gradient (W adds to it) and scratch.
#ifndef ZB_GPT_UNIT_H
#define ZB_GPT_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/dtype.h"
#include "kernels/scalar.h"
#include "runtime/gpt.h"

// Numbers (zb_real) a unit needs.
struct zb_unit_sizes {
  size_t parameters, brief, long_, late;
  size_t scratch; // during F, B or W
  size_t exact;   // how many of brief, the first ones, are fp32 whatever the dtype
};

// The microbatch that a pass works on. `tokens` and `targets` [zb_gpt_tokens] are the bytes read and the
// bytes to predict; only the embedding and the head look at them. `weight` is what each token's loss counts
// in the batch: 1 / (microbatches * tokens).
struct zb_pass {
  const struct zb_gpt *gpt;
  const unsigned char *tokens, *targets;
  zb_real weight;
  zb_real *scratch;
};

struct zb_unit_kept {
  zb_real *brief, *long_, *late; // NULL where the unit's size is 0
};

struct zb_unit_sizes zb_unit_sizes(const struct zb_gpt *gpt, int unit);

// The same of what is kept, in bytes.
struct zb_unit_bytes {
  size_t brief, long_, late;
};
struct zb_unit_bytes zb_unit_bytes(const struct zb_gpt *gpt, int unit, enum zb_dtype dtype);

// Where the head's parameters start: final LayerNorm, then a matrix [hidden][vocabulary] of its own.
struct zb_head_parts {
  size_t gain, shift, matrix, count;
};
struct zb_head_parts zb_head_parts(const struct zb_gpt *gpt);

// Writes the start values, a function of seed, unit and position alone: matrices uniform with standard
// deviation 0.02 (those that add to the residual divided by sqrt(2 blocks)), gains 1, biases 0.
void zb_unit_start(const struct zb_gpt *gpt, int unit, uint64_t seed, zb_real *parameters);

// F. input [tokens x hidden] (unread by the embedding) to output, likewise (left alone by the head). The head
// adds the sum of its tokens' losses, unweighted, in token order, to *loss.
void zb_unit_forward(const struct zb_pass *pass, int unit, const zb_real *parameters, const zb_real *input,
                     struct zb_unit_kept kept, zb_real *output, double *loss);

// B. Gradient for the output (unread by the head) to gradient for the input (left alone by the embedding).
// `late` must not overlap the others; `brief` is done with afterwards.
void zb_unit_backward(const struct zb_pass *pass, int unit, const zb_real *parameters,
                      const zb_real *d_output, struct zb_unit_kept kept, zb_real *d_input);

// W. Adds the microbatch's share to the gradient of every parameter of the unit.
void zb_unit_weights(const struct zb_pass *pass, int unit, const zb_real *parameters,
                     struct zb_unit_kept kept, zb_real *gradient);

#endif
