// gpt_block.h - a block: x + attention(LayerNorm(x)), then y + MLP(LayerNorm(y)), and its exact B/W split.
//
// With T tokens, h hidden, H heads and S the sequence, in numbers:
//
//   brief  rstd of both norms [2T], attention probabilities [T x H x S]
//   long   normal 1 [T x h], q k v [T x 3h], context [T x h], normal 2 [T x h], GELU's input and output
//          [T x 4h] each
//   late   gradients for: the output [T x h], the attention's output, norm 2's output, norm 1's output
//
// B turns q k v and the GELU's input into their gradients in place. The outputs of the norms are recomputed
// from `normal` where they are needed: cheap, and the same bits.
#ifndef ZB_GPT_BLOCK_H
#define ZB_GPT_BLOCK_H

#include "runtime/gpt_unit.h"
#include "runtime/random.h"

// Where each parameter starts.
struct zb_block_parts {
  size_t gain1, shift1, qkv, qkv_bias, out, out_bias, gain2, shift2, up, up_bias, down, down_bias, count;
};
struct zb_block_parts zb_block_parts(const struct zb_gpt *gpt);

// As zb_unit_* (gpt_unit.h), for a block.
struct zb_unit_sizes zb_block_sizes(const struct zb_gpt *gpt);
void zb_block_start(const struct zb_gpt *gpt, struct zb_start *start, zb_real *parameters);
void zb_block_forward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *input,
                      struct zb_unit_kept kept, zb_real *output, double *loss);
void zb_block_backward(const struct zb_pass *pass, const zb_real *parameters, const zb_real *d_output,
                       struct zb_unit_kept kept, zb_real *d_input);
void zb_block_weights(const struct zb_pass *pass, const zb_real *parameters, struct zb_unit_kept kept,
                      zb_real *gradient);

#endif
