// torch_write.c - rows of cells, and what must be set beside them.
#include "solver/io/torch_write.h"

#include <stdbool.h>

#include "solver/io/torch_csv.h"
#include "solver/io/torch_normal.h"

static const enum zb_torch_word word_of[4] = {
    [ZB_F] = ZB_TORCH_F, [ZB_B] = ZB_TORCH_I, [ZB_W] = ZB_TORCH_W, [ZB_BW] = ZB_TORCH_B};

// The name under which frameworks build the stages, NULL where none of them would.
static const char *schedule_name(const struct zb_profile *p) {
  bool loop = true, v = p->chunks == 2;
  for (int s = 0; s < p->stages; s++) {
    loop = loop && p->device_of[s] == s % p->devices;
    v = v && p->device_of[s] == (s < p->devices ? s : 2 * p->devices - 1 - s);
  }
  if (loop && p->chunks == 1) return "1F1B";
  return loop ? "Interleaved1F1B" : v ? "ZBVZeroBubble" : NULL;
}

static void note_changes(const struct zb_export_input *input, const struct zb_torch_changes *changes,
                         const struct zb_timeline *timeline, struct zb_text *notes) {
  const enum zb_objective objective = input->answer->objective;
  if (changes->renumbered)
    zb_text_print(notes, "%lld microbatches renumbered: the last stage runs them in order\n",
                  (long long)changes->renumbered);
  if (changes->whole)
    zb_text_print(notes, "%lld backwards of stage 0 written whole: it has no input gradient\n",
                  (long long)changes->whole);
  if (changes->merged)
    zb_text_print(notes, "%lld pairs of I and W written as one B\n", (long long)changes->merged);
  const int64_t was_ns = zb_timeline_cost(input->timeline, objective),
                is_ns = zb_timeline_cost(timeline, objective);
  if (was_ns != is_ns)
    zb_text_print(notes, "%s of what is written %lld ns, of the schedule %lld ns\n",
                  zb_objective_word(objective), (long long)is_ns, (long long)was_ns);
}

static bool splits(const struct zb_schedule *schedule) {
  for (size_t i = 0; i < schedule->first[schedule->devices]; i++)
    if (schedule->ops[i].kind == ZB_B) return true;
  return false;
}

static void set_compute(const struct zb_profile *p, const char *name, int torch_minor,
                        struct zb_export_output *output) {
  static const char torchtitan[] = "torchtitan", automodel[] = "Automodel";
  zb_export_set(output, torchtitan, "parallelism.pipeline_parallel_schedule_csv", "this file");
  zb_export_set(output, torchtitan, "parallelism.pipeline_parallel_schedule", "%s", name);
  zb_export_set(output, torchtitan, "parallelism.pipeline_parallel_degree", "%d", p->devices);
  zb_export_set(output, torchtitan, "microbatches of training.local_batch_size", "%d", p->microbatches);
  zb_export_set(output, automodel, "pp_schedule_csv", "this file");
  zb_export_set(output, automodel, "pp_schedule", "%s", name);
  zb_export_set(output, automodel, "pp_batch_size / pp_microbatch_size", "%d", p->microbatches);
  const bool v = name[0] == 'Z';
  zb_export_set(output, "torch", "version", "2.%d or later", v && torch_minor > 6 ? 7 : 6);
  if (v && torch_minor == 6)
    zb_text_put(&output->notes,
                "torch 2.6 infers no placement: pass stage_index_to_group_rank to its runtime\n");
}

// The normal form of the input, refused where no framework could run it. *normal is the caller's.
static enum zb_status normalise(const struct zb_export_input *input, const char **name,
                                struct zb_schedule **normal, struct zb_export_output *output,
                                struct zb_error *error) {
  const struct zb_profile *profile = input->answer->profile;
  struct zb_torch_changes changes;
  struct zb_timeline timeline = {0};
  *name = schedule_name(profile);
  if (!*name)
    return zb_fail(error, ZB_BAD_INPUT,
                   "placement %s: frameworks that load such files build chain, loop or v only",
                   zb_placement_word(profile->placement));
  enum zb_status status = zb_torch_normalise(profile, input->answer->schedule, input->answer->objective,
                                             &changes, normal, &timeline, error);
  if (status == ZB_OK) {
    note_changes(input, &changes, &timeline, &output->notes);
    if (splits(*normal)) zb_text_put(&output->notes, "no torch.compile: backwards are split\n");
  }
  zb_timeline_free(&timeline);
  return status;
}

static void put_cell(struct zb_torch_action action, bool first, struct zb_text *text) {
  char cell[ZB_TORCH_TEXT];
  zb_torch_action_print(action, cell);
  if (!first) zb_text_put(text, ",");
  zb_text_put(text, cell);
}

enum zb_status zb_torch_write_compute(const struct zb_export_input *input, struct zb_export_output *output,
                                      struct zb_error *error) {
  const char *name = NULL;
  struct zb_schedule *normal = NULL;
  enum zb_status status = normalise(input, &name, &normal, output, error);
  if (status != ZB_OK) return status;
  for (int d = 0; d < normal->devices; d++) {
    for (size_t i = normal->first[d]; i < normal->first[d + 1]; i++) {
      const struct zb_op op = normal->ops[i];
      put_cell((struct zb_torch_action){word_of[op.kind], op.stage, op.microbatch, 0}, i == normal->first[d],
               &output->text);
    }
    zb_text_put(&output->text, "\n");
  }
  set_compute(input->answer->profile, name, input->torch_minor, output);
  zb_schedule_free(normal);
  return zb_text_status(&output->text, error);
}
