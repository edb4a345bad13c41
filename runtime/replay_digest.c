// replay_digest.c - all that decides the bits of a run, in words and numbers.
#include <inttypes.h>

#include "runtime/checkpoint.h"
#include "runtime/gemm.h"
#include "runtime/replay_commands.h"
#include "solver/io/program_json.h"

uint64_t zb_replay_digest(const struct zb_replay *replay) {
  const struct zb_training *training = replay->training;
  struct zb_text text = {0};
  zb_program_print(replay->program, &text);
  for (int s = 0; s <= replay->program->profile->stages; s++)
    zb_text_print(&text, " %d", replay->first_unit[s]);
  zb_text_print(&text, " %" PRId64 " %" PRId64 " %" PRId64 " %d %d %d %" PRId64 " %s %s", training->steps,
                replay->first_step, training->nan_step, training->nan_unit, (int)replay->rollback,
                (int)replay->traces, replay->warm_up, replay->compute->name, zb_gemm_name);
  zb_text_print(&text, " %d %" PRId64, replay->checkpoint != NULL, replay->checkpoint_every);
  zb_text_print(&text, " %d", (int)replay->graph);
  uint64_t digest = zb_digest_add(zb_training_digest(training), text.data ? text.data : "", text.size);
  zb_text_free(&text);
  return digest;
}
