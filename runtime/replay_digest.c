// replay_digest.c - FNV-1a over all that decides the bits of a run, in words and numbers.
#include <inttypes.h>

#include "runtime/gemm.h"
#include "runtime/replay_commands.h"
#include "solver/io/program_json.h"

static uint64_t add(uint64_t digest, const char *bytes, size_t size) {
  for (size_t k = 0; k < size; k++) digest = (digest ^ (unsigned char)bytes[k]) * UINT64_C(0x100000001b3);
  return digest;
}

static void print_model(const struct zb_replay *replay, struct zb_text *out) {
  const struct zb_gpt *gpt = replay->training->gpt;
  const struct zb_adamw *adamw = &gpt->adamw;
  zb_text_print(out, "%d %d %d %d %d %d %a %a %a %a %a %a", gpt->blocks, gpt->hidden, gpt->heads,
                gpt->sequence, gpt->vocabulary, gpt->samples, adamw->rate, adamw->beta1, adamw->beta2,
                adamw->epsilon, adamw->decay, adamw->clip);
  for (int s = 0; s <= replay->program->profile->stages; s++)
    zb_text_print(out, " %d", replay->first_unit[s]);
}

uint64_t zb_replay_digest(const struct zb_replay *replay) {
  const struct zb_training *training = replay->training;
  const struct zb_corpus *corpus = training->corpus;
  struct zb_text text = {0};
  zb_program_print(replay->program, &text);
  print_model(replay, &text);
  zb_text_print(&text, " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %d %d %d %" PRId64 " %s %s %zu",
                training->seed, corpus->seed, training->steps, training->nan_step, training->nan_unit,
                (int)replay->rollback, (int)replay->traces, replay->warm_up, replay->compute->name,
                zb_gemm_name, sizeof(zb_real));
  uint64_t digest = add(UINT64_C(0xcbf29ce484222325), corpus->text.data, corpus->text.size);
  if (text.data) digest = add(digest, text.data, text.size);
  zb_text_free(&text);
  return digest;
}
