// corpus.c - reading the text, drawing from it.
#include "runtime/corpus.h"

#include <string.h>

#include "runtime/random.h"
#include "solver/io/file.h"

enum { CORPUS_BYTES_MOST = 1 << 30 };

enum zb_status zb_corpus_read(const char *path, const struct zb_gpt *gpt, uint64_t seed,
                              struct zb_corpus *corpus, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, CORPUS_BYTES_MOST, &text, error);
  if (status == ZB_OK && text.size <= (size_t)gpt->sequence) {
    status = zb_fail(error, ZB_BAD_INPUT, "%zu bytes of data, expected more than one sequence of %d",
                     text.size, gpt->sequence);
    if (error) zb_error_set_path(error, path);
  }
  if (status == ZB_OK)
    *corpus = (struct zb_corpus){text, seed};
  else
    zb_text_free(&text);
  return status;
}

void zb_corpus_free(struct zb_corpus *corpus) { zb_text_free(&corpus->text); }

void zb_corpus_batch(const struct zb_corpus *corpus, const struct zb_gpt *gpt, int64_t step, int microbatch,
                     unsigned char *tokens, unsigned char *targets) {
  size_t sequence = (size_t)gpt->sequence;
  uint64_t batch = zb_random_mix(zb_random_mix(corpus->seed, (uint64_t)step), (uint64_t)microbatch);
  for (size_t sample = 0; sample < (size_t)gpt->samples; sample++) {
    size_t start = (size_t)(zb_random_mix(batch, sample) % (corpus->text.size - sequence));
    memcpy(tokens + sample * sequence, corpus->text.data + start, sequence);
    memcpy(targets + sample * sequence, corpus->text.data + start + 1, sequence);
  }
}
