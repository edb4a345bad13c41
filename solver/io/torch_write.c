// torch_write.c - rows of cells, and what must be set beside them.
#include "solver/io/torch_write.h"

#include <stdbool.h>
#include <stdlib.h>

#include "solver/io/torch_csv.h"
#include "solver/io/torch_normal.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"

static const enum zb_torch_word word_of[4] = {
    [ZB_F] = ZB_TORCH_F, [ZB_B] = ZB_TORCH_I, [ZB_W] = ZB_TORCH_W, [ZB_BW] = ZB_TORCH_B};

// The names under which frameworks build the stages, NULL where none of them would.
static const char *const schedule_names[ZB_PLACEMENT_COUNT] = {
    [ZB_CHAIN] = "1F1B", [ZB_LOOP] = "Interleaved1F1B", [ZB_V] = "ZBVZeroBubble"};

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
  *name = schedule_names[zb_placement_find(profile->device_of, profile->devices, profile->stages)];
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

static const enum zb_torch_word word_of_instruction[] = {
    [ZB_DO_F] = ZB_TORCH_F,
    [ZB_DO_B] = ZB_TORCH_I,
    [ZB_DO_W] = ZB_TORCH_W,
    [ZB_DO_BW] = ZB_TORCH_B,
    [ZB_DO_SEND_F] = ZB_TORCH_SEND_F,
    [ZB_DO_RECV_F] = ZB_TORCH_RECV_F,
    [ZB_DO_SEND_B] = ZB_TORCH_SEND_B,
    [ZB_DO_RECV_B] = ZB_TORCH_RECV_B,
    [ZB_DO_WAIT_SEND_F] = ZB_TORCH_WAIT_SEND_F,
    [ZB_DO_WAIT_SEND_B] = ZB_TORCH_WAIT_SEND_B,
};

enum { REDUCE_SINCE = 10, WAITS_SINCE = 15 };

struct rows {
  const struct zb_program *program;
  int torch_minor;
  int32_t *left;     // [stages] backwards still to come
  int32_t *finished; // [stages] stages whose last backward has run, in that order
  int count;
  struct zb_text *text;
};

static void put_stage(struct rows *rows, enum zb_torch_word word, int stage, bool first) {
  put_cell((struct zb_torch_action){word, stage, -1, 0}, first, rows->text);
}

// Reduced as early as nothing else waits for it: behind the messages of the stage's last backward.
static void put_finished(struct rows *rows) {
  for (int k = 0; k < rows->count; k++) {
    if (rows->torch_minor >= REDUCE_SINCE) put_stage(rows, ZB_TORCH_REDUCE_GRAD, rows->finished[k], false);
    if (rows->torch_minor >= WAITS_SINCE)
      put_stage(rows, ZB_TORCH_WAIT_REDUCE_GRAD, rows->finished[k], false);
    put_stage(rows, ZB_TORCH_RESHARD, rows->finished[k], false);
  }
  rows->count = 0;
}

// All stages of a rank are gathered from its first op on, each until its last.
static void put_row(struct rows *rows, int device) {
  const struct zb_program *program = rows->program;
  bool first = true;
  for (size_t at = program->first[device]; at < program->first[device + 1]; at++) {
    const struct zb_instruction *i = &program->instructions[at];
    if (i->kind != ZB_DO_F || i->microbatch != 0) continue;
    put_stage(rows, ZB_TORCH_UNSHARD, i->stage, first);
    first = false;
  }
  for (size_t at = program->first[device]; at < program->first[device + 1]; at++) {
    const struct zb_instruction *i = &program->instructions[at];
    const enum zb_torch_word word = word_of_instruction[i->kind];
    const bool waits = word == ZB_TORCH_WAIT_SEND_F || word == ZB_TORCH_WAIT_SEND_B;
    if (waits && rows->torch_minor < WAITS_SINCE) continue;
    if (!zb_instruction_is_send(i->kind)) put_finished(rows);
    put_cell((struct zb_torch_action){word, i->stage, i->microbatch, 0}, false, rows->text);
    if ((i->kind == ZB_DO_W || i->kind == ZB_DO_BW) && --rows->left[i->stage] == 0)
      rows->finished[rows->count++] = i->stage;
  }
  put_finished(rows);
  zb_text_put(rows->text, "\n");
}

static enum zb_status put_rows(const struct zb_program *program, int torch_minor, struct zb_text *text,
                               struct zb_error *error) {
  const struct zb_profile *profile = program->profile;
  const size_t stages = (size_t)profile->stages;
  int32_t *counts = malloc(2 * stages * sizeof *counts);
  if (!counts) return zb_fail_memory(error);
  for (size_t s = 0; s < stages; s++) counts[s] = profile->microbatches;
  struct rows rows = {program, torch_minor, counts, counts + stages, 0, text};
  for (int d = 0; d < program->devices; d++) put_row(&rows, d);
  free(counts);
  return zb_text_status(text, error);
}

// The program of a schedule, held against what it must be: that it does not hold would be our bug.
static enum zb_status make_program(const struct zb_profile *profile, const struct zb_schedule *schedule,
                                   struct zb_program **program, struct zb_error *error) {
  struct zb_run run = {0};
  struct zb_error found = {0};
  enum zb_status status = zb_program_lower(profile, schedule, "export", ZB_OPTIMIZER_NONE, program, error);
  if (status != ZB_OK) return status;
  status = zb_program_check(*program, &run, &found);
  zb_run_free(&run);
  if (status == ZB_OK) return ZB_OK;
  zb_program_free(*program);
  *program = NULL;
  return zb_fail(error, status == ZB_WRONG ? ZB_SELF_CHECK : status, "%s", found.text);
}

enum zb_status zb_torch_write_comms(const struct zb_export_input *input, struct zb_export_output *output,
                                    struct zb_error *error) {
  const struct zb_profile *profile = input->answer->profile;
  const char *name = NULL;
  struct zb_schedule *normal = NULL;
  struct zb_program *program = NULL;
  enum zb_status status = normalise(input, &name, &normal, output, error);
  if (status == ZB_OK) status = make_program(profile, normal, &program, error);
  if (status == ZB_OK) status = put_rows(program, input->torch_minor, &output->text, error);
  if (status == ZB_OK) {
    static const char torch[] = "torch";
    const char *releases = input->torch_minor >= WAITS_SINCE    ? "2.15"
                           : input->torch_minor >= REDUCE_SINCE ? "2.10 to 2.14"
                                                                : "2.6 to 2.9";
    zb_export_set(output, torch, "version", "%s", releases);
    zb_export_set(output, torch, "_load_csv format", "compute_comms");
    zb_export_set(output, torch, "n_microbatches", "%d", profile->microbatches);
    zb_text_put(&output->notes, "torchtitan and Automodel load compute-only files: --to torch-csv\n");
  }
  zb_program_free(program);
  zb_schedule_free(normal);
  return status;
}
