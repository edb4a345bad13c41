// replay_measure.c - zbreplay measure: from a model file to a profile.
#include "runtime/measure.h"
#include "runtime/replay_commands.h"
#include "solver/io/file.h"
#include "solver/io/profile_json.h"

// In the order of --backend's words.
static const struct zb_compute *const computes[] = {&zb_compute_cpu, &zb_compute_sleep, &zb_compute_cuda};

static enum zb_status measure(const struct zb_replay_options *options, const struct zb_gpt *gpt,
                              const struct zb_corpus *corpus, struct zb_profile **profile,
                              struct zb_error *error) {
  enum zb_placement placement = (enum zb_placement)options->placement;
  int chunks = options->chunks ? (int)options->chunks : placement == ZB_CHAIN ? 1 : 2;
  int devices = options->devices ? (int)options->devices : gpt->stages ? gpt->stages / chunks : 2;
  if (devices == 0) devices = 1;
  struct zb_training training = {
      .gpt = gpt,
      .corpus = corpus,
      .seed = (uint64_t)options->seed,
      .microbatches = (int)options->microbatches,
      .steps = 1,
      .nan_step = -1,
      .dtype = (enum zb_dtype)options->dtype,
      .tf32 = options->tf32,
  };
  return zb_measure_profile(&training, computes[options->backend], &zb_transport_threads, placement, devices,
                            chunks, (int)options->repeats, profile, error);
}

enum zb_status zb_replay_measure(const struct zb_replay_options *options, struct zb_text *out, zb_say say,
                                 struct zb_error *error) {
  (void)say;
  struct zb_gpt gpt;
  struct zb_corpus corpus = {.seed = 0};
  struct zb_profile *profile = NULL;
  struct zb_text text = {0};
  if (!computes[options->backend]->trains)
    return zb_fail(error, ZB_BAD_INPUT, "--backend: only cpu and cuda have times of their own");
  enum zb_status status = options->output ? zb_file_can_write(options->output, error) : ZB_OK;
  if (status == ZB_OK) status = zb_gpt_read(options->operand, &gpt, error);
  if (status == ZB_OK) status = zb_replay_read_data(options, &gpt, &corpus, error);
  if (status == ZB_OK) status = measure(options, &gpt, &corpus, &profile, error);
  if (status == ZB_OK) {
    zb_profile_print(profile, 0, &text);
    zb_text_put(&text, "\n");
    if (options->output)
      status = zb_file_write(options->output, &text, error);
    else
      zb_text_add(out, text.data, text.size);
  }
  zb_text_free(&text);
  zb_profile_free(profile);
  zb_corpus_free(&corpus);
  return status;
}
