// corpus.h - the text that is learned, and the batches drawn from it.
#ifndef ZB_CORPUS_H
#define ZB_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/gpt.h"
#include "solver/io/text.h"
#include "solver/model/status.h"

struct zb_corpus {
  struct zb_text text;
  uint64_t seed;
};

// Reads `path` ("-": standard input) as bytes. BAD_INPUT unless it has more bytes than one sequence of the
// model.
enum zb_status zb_corpus_read(const char *path, const struct zb_gpt *gpt, uint64_t seed,
                              struct zb_corpus *corpus, struct zb_error *error);
void zb_corpus_free(struct zb_corpus *corpus);

// Tokens and targets [zb_gpt_tokens] of one microbatch of step `step` (from 0): sequences that start at
// random places, a function of seed, step, microbatch and sample alone. The target of a byte is the byte
// after it.
void zb_corpus_batch(const struct zb_corpus *corpus, const struct zb_gpt *gpt, int64_t step, int microbatch,
                     unsigned char *tokens, unsigned char *targets);

#endif
