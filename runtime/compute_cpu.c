// compute_cpu.c - a device of the CPU backend: its stages and one workspace. Everything is done when a call
// returns.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/compute.h"
#include "runtime/gemm.h"
#include "runtime/stage.h"
#include "solver/model/deadline.h"

struct cpu {
  const struct zb_compute_setup *setup;
  struct zb_workspace *workspace;
  struct zb_stage **stage; // [stages of the model] NULL: another device's
  double *partial;         // [units]
  int64_t ops_done;
};

static void close_state(void *state) {
  struct cpu *cpu = state;
  if (!cpu) return;
  for (int s = 0; cpu->stage && s < cpu->setup->profile->stages; s++)
    zb_stage_free(cpu->stage[s], &cpu->workspace->keep);
  zb_workspace_free(cpu->workspace);
  free(cpu->stage);
  free(cpu->partial);
  free(cpu);
}

static unsigned room_of(const struct zb_compute_setup *setup) {
  unsigned room = 0;
  if (setup->may_undo && setup->rollback == ZB_ROLLBACK_COPY) room |= ZB_STAGE_COPY;
  if (setup->may_undo && setup->weights_before_verdict) room |= ZB_STAGE_GRADIENTS;
  return room;
}

static int64_t needs(const struct zb_compute_setup *setup) {
  const struct zb_gpt *gpt = setup->training->gpt;
  unsigned room = room_of(setup);
  // Parameters, gradient, two moments; a copy of all but the gradient; a second gradient.
  int64_t copies = 4 + (room & ZB_STAGE_COPY ? 3 : 0) + (room & ZB_STAGE_GRADIENTS ? 1 : 0), numbers = 0;
  for (int s = 0; s < setup->profile->stages; s++)
    for (int u = setup->first_unit[s]; u < setup->first_unit[s + 1]; u++)
      if (setup->profile->device_of[s] == setup->device)
        numbers += copies * (int64_t)zb_unit_sizes(gpt, u).parameters;
  return numbers * (int64_t)sizeof(zb_real) + zb_workspace_bytes(gpt) + zb_compute_peak(setup);
}

static enum zb_status open_state(const struct zb_compute_setup *setup, void **state, struct zb_error *error) {
  const struct zb_profile *profile = setup->profile;
  const struct zb_training *training = setup->training;
  struct cpu *cpu = calloc(1, sizeof *cpu);
  if (!cpu) return zb_fail_memory(error);
  cpu->setup = setup;
  cpu->stage = calloc((size_t)profile->stages, sizeof *cpu->stage);
  cpu->partial = calloc((size_t)zb_gpt_units(training->gpt), sizeof *cpu->partial);
  enum zb_status status = cpu->stage && cpu->partial
                              ? zb_workspace_create(training->gpt, &cpu->workspace, error)
                              : zb_fail_memory(error);
  unsigned room = room_of(setup);
  for (int s = 0; status == ZB_OK && s < profile->stages; s++) {
    if (profile->device_of[s] != setup->device) continue;
    status = zb_stage_create(training->gpt, training->corpus, setup->first_unit[s], setup->first_unit[s + 1],
                             training->microbatches, training->seed, room, &cpu->stage[s], error);
  }
  if (status == ZB_OK)
    *state = cpu;
  else
    close_state(cpu);
  return status;
}

static enum zb_status allocate(void *state, size_t bytes, void **buffer, struct zb_error *error) {
  (void)state;
  *buffer = zb_reals(bytes / sizeof(zb_real) + 1);
  return *buffer ? ZB_OK : zb_fail_memory(error);
}

static void release(void *state, void *buffer) {
  (void)state;
  free(buffer);
}

// The device's stages in turn: for (int s = next(cpu, -1); s >= 0; s = next(cpu, s)).
static int next(const struct cpu *cpu, int s) {
  do s++;
  while (s < cpu->setup->profile->stages && !cpu->stage[s]);
  return s < cpu->setup->profile->stages ? s : -1;
}

static enum zb_status begin(void *state, int64_t step, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s))
    zb_stage_begin(cpu->stage[s], &cpu->workspace->keep, step);
  cpu->ops_done = 0;
  return ZB_OK;
}

static enum zb_status run_op(void *state, struct zb_op op, const void *in, void *out,
                             struct zb_interval *when, struct zb_error *error) {
  struct cpu *cpu = state;
  struct zb_stage *stage = cpu->stage[op.stage];
  enum zb_status status = ZB_OK;
  when->start_ns = zb_clock_ns();
  switch (op.kind) {
  case ZB_F:
    status = zb_stage_forward(stage, cpu->workspace, op.microbatch, in, out, error);
    break;
  case ZB_B:
    status = zb_stage_backward(stage, cpu->workspace, op.microbatch, in, out, error);
    break;
  case ZB_W:
    zb_stage_weights(stage, cpu->workspace);
    break;
  case ZB_BW:
    status = zb_stage_fused(stage, cpu->workspace, op.microbatch, in, out, error);
    break;
  }
  when->end_ns = zb_clock_ns();
  cpu->ops_done++;
  return status;
}

static enum zb_status record(void *state, void **event, struct zb_error *error) {
  (void)state, (void)error;
  *event = NULL;
  return ZB_OK;
}

static enum zb_status await(void *state, void *event, struct zb_error *error) {
  (void)state, (void)event, (void)error;
  return ZB_OK;
}

static enum zb_status finish(void *state, int64_t deadline_ns, bool *done, struct zb_error *error) {
  (void)state, (void)deadline_ns, (void)error;
  *done = true;
  return ZB_OK;
}

static int64_t ops_done(void *state) {
  struct cpu *cpu = state;
  return cpu->ops_done;
}

static enum zb_status norm(void *state, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s)) zb_stage_norm(cpu->stage[s], cpu->partial);
  return ZB_OK;
}

static void partials(void *state, double *partial) {
  struct cpu *cpu = state;
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s))
    for (int u = cpu->stage[s]->first; u < cpu->stage[s]->end; u++) partial[u] = cpu->partial[u];
}

static enum zb_status step(void *state, double scale, bool undoable, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s)) {
    if (undoable && cpu->stage[s]->saved) zb_stage_save(cpu->stage[s]);
    zb_stage_step(cpu->stage[s], scale);
  }
  return ZB_OK;
}

static enum zb_status undo(void *state, double scale, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s)) {
    if (cpu->stage[s]->saved)
      zb_stage_restore(cpu->stage[s]);
    else
      zb_stage_unstep(cpu->stage[s], scale);
  }
  return ZB_OK;
}

static enum zb_status poison(void *state, int stage, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  if (cpu->stage[stage] && cpu->stage[stage]->count) cpu->stage[stage]->gradient[0] = (zb_real)NAN;
  return ZB_OK;
}

static bool loss(void *state, double *values) {
  struct cpu *cpu = state;
  const struct zb_profile *profile = cpu->setup->profile;
  const struct zb_stage *last = cpu->stage[profile->stages - 1];
  if (!last) return false;
  memcpy(values, last->loss, (size_t)last->microbatches * sizeof *values);
  return true;
}

static size_t parameters(void *state, int stage) {
  struct cpu *cpu = state;
  return cpu->stage[stage]->count;
}

static enum zb_status fetch(void *state, int stage, zb_real *values, struct zb_error *error) {
  (void)error;
  struct cpu *cpu = state;
  memcpy(values, cpu->stage[stage]->parameters, cpu->stage[stage]->count * sizeof *values);
  return ZB_OK;
}

static enum zb_status store(void *state, int stage, zb_real *values, int64_t *steps_made,
                            struct zb_error *error) {
  (void)error;
  const struct zb_stage *from = ((struct cpu *)state)->stage[stage];
  memcpy(values, from->parameters, from->count * sizeof *values);
  memcpy(values + from->count, from->mean, from->count * sizeof *values);
  memcpy(values + 2 * from->count, from->square, from->count * sizeof *values);
  *steps_made = from->steps_made;
  return ZB_OK;
}

static enum zb_status restore(void *state, int stage, const zb_real *values, int64_t steps_made,
                              struct zb_error *error) {
  (void)error;
  struct zb_stage *to = ((struct cpu *)state)->stage[stage];
  memcpy(to->parameters, values, to->count * sizeof *values);
  memcpy(to->mean, values + to->count, to->count * sizeof *values);
  memcpy(to->square, values + 2 * to->count, to->count * sizeof *values);
  to->steps_made = steps_made;
  return ZB_OK;
}

static struct zb_memory_use memory(void *state) {
  struct cpu *cpu = state;
  struct zb_memory_use use = {.kept_peak_bytes = cpu->workspace->keep.peak_bytes,
                              .static_bytes = zb_workspace_bytes(cpu->setup->training->gpt)};
  for (int s = next(cpu, -1); s >= 0; s = next(cpu, s)) {
    int64_t bytes = (int64_t)(cpu->stage[s]->count * sizeof(zb_real));
    use.static_bytes += 4 * bytes;
    if (cpu->stage[s]->saved) use.undo_bytes += 3 * bytes;
    if (cpu->stage[s]->resting) use.undo_bytes += bytes;
  }
  return use;
}

const struct zb_compute zb_compute_cpu = {
    .name = "cpu",
    .help = "trains, one core a device",
    .trains = true,
    .at_once = zb_compute_cores,
    .look = zb_compute_look_at_host,
    .needs = needs,
    .open = open_state,
    .close = close_state,
    .allocate = allocate,
    .release = release,
    .begin = begin,
    .op = run_op,
    .record = record,
    .await = await,
    .finish = finish,
    .ops_done = ops_done,
    .norm = norm,
    .partials = partials,
    .step = step,
    .undo = undo,
    .poison = poison,
    .loss = loss,
    .parameters = parameters,
    .fetch = fetch,
    .store = store,
    .restore = restore,
    .memory = memory,
};
