// gpt.h - the model that is trained: a GPT over bytes, described by a model file.
//
// The model is a row of units: the embedding, the blocks, the head. Whatever belongs to one unit (parameters,
// gradient, partial norm) is computed alone and in the same way wherever the unit is placed; a stage is a run
// of neighbouring units. That is why every schedule, placement and number of devices gives the same bits.
//
// A model file (configs/models):
//
//   {"zbsolve_model": 1, "name": "..", "blocks": 4, "hidden": 64, "heads": 4, "sequence": 64,
//    "vocabulary": 256, "samples": 1, "stages": [1, 2, 1],
//    "optimizer": {"rate": 0.003, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "decay": 0.1, "clip": 1.0}}
//
// `samples` sequences are one microbatch (default 1). `stages` says how many blocks each stage holds; left
// out, they are spread evenly and the first stages get what is over. The optimizer's fields default to the
// ones above; clip 0 is no clipping.
#ifndef ZB_GPT_H
#define ZB_GPT_H

#include <stddef.h>
#include <stdint.h>

#include "solver/io/text.h"
#include "solver/model/status.h"

struct zb_adamw {
  double rate, beta1, beta2, epsilon, decay;
  double clip; // largest global norm of the gradient; 0: any
};

struct zb_gpt {
  char name[64];
  int blocks, hidden, heads, sequence, vocabulary;
  int samples;           // sequences in a microbatch
  int stages;            // entries of blocks_of; 0: spread evenly
  int blocks_of[1024];   // [stages]
  struct zb_adamw adamw; // how it is trained
};

// Reads the file `path` ("-": standard input). BAD_INPUT with the place of what is wrong.
enum zb_status zb_gpt_read(const char *path, struct zb_gpt *gpt, struct zb_error *error);
// The same from text; the error's path is left alone.
enum zb_status zb_gpt_read_text(const char *text, size_t size, struct zb_gpt *gpt, struct zb_error *error);

// The model that a run without --model takes: the smallest, one block a stage.
void zb_gpt_smallest(int stages, struct zb_gpt *gpt);

// The row of units.
static inline int zb_gpt_units(const struct zb_gpt *gpt) { return gpt->blocks + 2; }
static inline int zb_gpt_tokens(const struct zb_gpt *gpt) {
  return gpt->samples * gpt->sequence;
} // a microbatch

// Units first[s] .. first[s + 1] - 1 are stage s; `first` has room for stages + 1. BAD_INPUT where the model
// file says how many stages there are and it is another number.
enum zb_status zb_gpt_cut(const struct zb_gpt *gpt, int stages, int *first, struct zb_error *error);

// Numbers (zb_real) in what one microbatch hands from stage to stage, either way.
static inline size_t zb_gpt_message(const struct zb_gpt *gpt) {
  return (size_t)zb_gpt_tokens(gpt) * (size_t)gpt->hidden;
}

#endif
