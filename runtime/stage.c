// stage.c - units in a row, and what they keep.
#include "runtime/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static struct zb_unit_sizes largest_sizes(const struct zb_gpt *gpt) {
  struct zb_unit_sizes most = {0};
  const int kinds[] = {0, 1, zb_gpt_units(gpt) - 1};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct zb_unit_sizes sizes = zb_unit_sizes(gpt, kinds[k]);
    most.scratch = larger(most.scratch, sizes.scratch);
    most.late = larger(most.late, sizes.late);
  }
  return most;
}

int64_t zb_workspace_bytes(const struct zb_gpt *gpt) {
  struct zb_unit_sizes most = largest_sizes(gpt);
  return (int64_t)((most.scratch + most.late + 3 * zb_gpt_message(gpt)) * sizeof(zb_real)) +
         2 * zb_gpt_tokens(gpt);
}

enum zb_status zb_workspace_create(const struct zb_gpt *gpt, struct zb_workspace **workspace,
                                   struct zb_error *error) {
  struct zb_unit_sizes most = largest_sizes(gpt);
  struct zb_workspace *made = calloc(1, sizeof *made);
  if (made) {
    made->scratch = zb_reals(most.scratch);
    made->late = zb_reals(most.late);
    made->held = zb_reals(zb_gpt_message(gpt));
    made->between[0] = zb_reals(zb_gpt_message(gpt));
    made->between[1] = zb_reals(zb_gpt_message(gpt));
    made->tokens = malloc((size_t)zb_gpt_tokens(gpt));
    made->targets = malloc((size_t)zb_gpt_tokens(gpt));
  }
  if (!made || !made->scratch || !made->late || !made->held || !made->between[0] || !made->between[1] ||
      !made->tokens || !made->targets) {
    zb_workspace_free(made);
    return zb_fail_memory(error);
  }
  *workspace = made;
  return ZB_OK;
}

void zb_workspace_free(struct zb_workspace *workspace) {
  if (!workspace) return;
  zb_keep_free(&workspace->keep);
  free(workspace->scratch);
  free(workspace->late);
  free(workspace->held);
  free(workspace->between[0]);
  free(workspace->between[1]);
  free(workspace->tokens);
  free(workspace->targets);
  free(workspace);
}

static int units_of(const struct zb_stage *stage) { return stage->end - stage->first; }

static struct zb_unit_kept *kept_of(struct zb_stage *stage, int microbatch, int unit) {
  return &stage->kept[(size_t)microbatch * (size_t)units_of(stage) + (size_t)(unit - stage->first)];
}

enum zb_status zb_stage_create(const struct zb_gpt *gpt, const struct zb_corpus *corpus, int first, int end,
                               int microbatches, uint64_t seed, unsigned room, struct zb_stage **stage,
                               struct zb_error *error) {
  size_t units = (size_t)(end - first), count = 0;
  struct zb_stage *made = calloc(1, sizeof *made);
  if (!made) goto no_memory;
  *made = (struct zb_stage){
      .gpt = gpt, .corpus = corpus, .first = first, .end = end, .microbatches = microbatches};
  made->offset = calloc(units + 1, sizeof *made->offset);
  if (!made->offset) goto no_memory;
  for (size_t u = 0; u < units; u++) {
    made->offset[u] = count;
    count += zb_unit_sizes(gpt, first + (int)u).parameters;
  }
  made->offset[units] = made->count = count;
  made->parameters = zb_reals(count);
  made->gradient = made->stepping = zb_reals(count);
  made->mean = zb_reals(count);
  made->square = zb_reals(count);
  if (room & ZB_STAGE_COPY) made->saved = zb_reals(3 * count);
  if (room & ZB_STAGE_GRADIENTS) made->resting = zb_reals(count);
  made->kept = calloc((size_t)microbatches * units + 1, sizeof *made->kept);
  made->loss = calloc((size_t)microbatches, sizeof *made->loss);
  if (!made->parameters || !made->gradient || !made->mean || !made->square ||
      (room & ZB_STAGE_COPY && !made->saved) || (room & ZB_STAGE_GRADIENTS && !made->resting) ||
      !made->kept || !made->loss)
    goto no_memory;
  for (int u = first; u < end; u++) zb_unit_start(gpt, u, seed, made->parameters + made->offset[u - first]);
  *stage = made;
  return ZB_OK;
no_memory:
  zb_stage_free(made, NULL);
  return zb_fail_memory(error);
}

static void give_all(struct zb_stage *stage, struct zb_keep *keep) {
  for (int m = 0; m < stage->microbatches; m++) {
    for (int u = stage->first; u < stage->end; u++) {
      struct zb_unit_kept *kept = kept_of(stage, m, u);
      struct zb_unit_sizes sizes = zb_unit_sizes(stage->gpt, u);
      zb_keep_give(keep, kept->brief, sizes.brief);
      zb_keep_give(keep, kept->long_, sizes.long_);
      zb_keep_give(keep, kept->late, sizes.late);
      *kept = (struct zb_unit_kept){0};
    }
  }
}

void zb_stage_free(struct zb_stage *stage, struct zb_keep *keep) {
  if (!stage) return;
  if (keep && stage->kept) give_all(stage, keep);
  free(stage->offset);
  free(stage->parameters);
  free(stage->gradient);
  free(stage->mean);
  free(stage->square);
  free(stage->saved);
  free(stage->resting);
  free(stage->kept);
  free(stage->loss);
  free(stage);
}

void zb_stage_memory(const struct zb_gpt *gpt, enum zb_dtype dtype, int first, int end, int64_t *f_bytes,
                     int64_t *b_bytes, int64_t *w_bytes) {
  int64_t brief = 0, long_ = 0, late = 0;
  for (int u = first; u < end; u++) {
    struct zb_unit_bytes bytes = zb_unit_bytes(gpt, u, dtype);
    brief += (int64_t)bytes.brief;
    long_ += (int64_t)bytes.long_;
    late += (int64_t)bytes.late;
  }
  *f_bytes = brief + long_;
  *b_bytes = late - brief;
  *w_bytes = -late - long_;
}

void zb_stage_begin(struct zb_stage *stage, struct zb_keep *keep, int64_t step) {
  give_all(stage, keep);
  if (stage->resting) {
    zb_real *last = stage->gradient;
    stage->gradient = stage->resting;
    stage->resting = last;
  }
  for (int m = 0; m < stage->microbatches; m++) stage->loss[m] = 0;
  stage->step = step;
  stage->next_w = 0;
}

static struct zb_pass pass_of(const struct zb_stage *stage, struct zb_workspace *workspace, int microbatch) {
  const struct zb_gpt *gpt = stage->gpt;
  // Only the ends of the model look at the data.
  if (stage->first == 0 || stage->end == zb_gpt_units(gpt))
    zb_corpus_batch(stage->corpus, gpt, stage->step, microbatch, workspace->tokens, workspace->targets);
  return (struct zb_pass){
      .gpt = gpt,
      .tokens = workspace->tokens,
      .targets = workspace->targets,
      .weight = (zb_real)(1.0 / ((double)stage->microbatches * zb_gpt_tokens(gpt))),
      .scratch = workspace->scratch,
  };
}

static const zb_real *unit_parameters(const struct zb_stage *stage, int unit) {
  return stage->parameters + stage->offset[unit - stage->first];
}

enum zb_status zb_stage_forward(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                                const zb_real *input, zb_real *output, struct zb_error *error) {
  struct zb_pass pass = pass_of(stage, workspace, microbatch);
  for (int u = stage->first; u < stage->end; u++) {
    struct zb_unit_sizes sizes = zb_unit_sizes(stage->gpt, u);
    struct zb_unit_kept *kept = kept_of(stage, microbatch, u);
    kept->brief = zb_keep_take(&workspace->keep, sizes.brief);
    kept->long_ = zb_keep_take(&workspace->keep, sizes.long_);
    if ((sizes.brief && !kept->brief) || (sizes.long_ && !kept->long_)) return zb_fail_memory(error);
    bool last = u == stage->end - 1;
    zb_real *next = last ? output : workspace->between[(u - stage->first) & 1];
    zb_unit_forward(&pass, u, unit_parameters(stage, u), input, *kept, next, &stage->loss[microbatch]);
    input = next;
  }
  // A stage of no units hands on what it gets.
  if (stage->first == stage->end) memcpy(output, input, zb_gpt_message(stage->gpt) * sizeof *output);
  return ZB_OK;
}

// B of one unit, what W will need besides to `late`; what it kept for a short time goes back.
static void unit_backward(struct zb_stage *stage, struct zb_workspace *workspace, const struct zb_pass *pass,
                          int microbatch, int unit, const zb_real *d_output, zb_real *late,
                          zb_real *d_input) {
  struct zb_unit_kept *kept = kept_of(stage, microbatch, unit), used = *kept;
  used.late = late;
  zb_unit_backward(pass, unit, unit_parameters(stage, unit), d_output, used, d_input);
  zb_keep_give(&workspace->keep, kept->brief, zb_unit_sizes(stage->gpt, unit).brief);
  kept->brief = NULL;
}

// W of one unit, with `late` from where it is, after which nothing of the microbatch is left there.
static void unit_weights(struct zb_stage *stage, struct zb_workspace *workspace, const struct zb_pass *pass,
                         int microbatch, int unit, zb_real *late) {
  if (microbatch == 0) {
    size_t at = stage->offset[unit - stage->first], end = stage->offset[unit - stage->first + 1];
    memset(stage->gradient + at, 0, (end - at) * sizeof *stage->gradient);
  }
  struct zb_unit_sizes sizes = zb_unit_sizes(stage->gpt, unit);
  struct zb_unit_kept *kept = kept_of(stage, microbatch, unit), used = *kept;
  used.late = late;
  zb_unit_weights(pass, unit, unit_parameters(stage, unit), used,
                  stage->gradient + stage->offset[unit - stage->first]);
  zb_keep_give(&workspace->keep, kept->long_, sizes.long_);
  zb_keep_give(&workspace->keep, kept->late, sizes.late);
  *kept = (struct zb_unit_kept){0};
}

// Where B of a unit leaves the gradient for its input.
static zb_real *gradient_target(const struct zb_stage *stage, struct zb_workspace *workspace, int unit,
                                zb_real *d_input) {
  return unit == stage->first ? d_input : workspace->between[(unit - stage->first) & 1];
}

static void pass_through(const struct zb_stage *stage, const zb_real *d_output, zb_real *d_input) {
  if (stage->first == stage->end) memcpy(d_input, d_output, zb_gpt_message(stage->gpt) * sizeof *d_input);
}

// Keeps what B of a unit left in the workspace. Only now, when what B needed is given back.
static enum zb_status keep_late(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                                int unit, const zb_real *late, struct zb_error *error) {
  size_t count = zb_unit_sizes(stage->gpt, unit).late;
  struct zb_unit_kept *kept = kept_of(stage, microbatch, unit);
  kept->late = zb_keep_take(&workspace->keep, count);
  if (count && !kept->late) return zb_fail_memory(error);
  memcpy(kept->late, late, count * sizeof *late);
  return ZB_OK;
}

// What is kept changes unit by unit and must not be more on the way than at both ends, or more is used than
// the profile counts. The head comes first and grows, where blocks may shrink: so it keeps last.
enum zb_status zb_stage_backward(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                                 const zb_real *d_output, zb_real *d_input, struct zb_error *error) {
  struct zb_pass pass = pass_of(stage, workspace, microbatch);
  const int head = zb_gpt_units(stage->gpt) - 1;
  enum zb_status status = ZB_OK;
  for (int u = stage->end - 1; status == ZB_OK && u >= stage->first; u--) {
    zb_real *next = gradient_target(stage, workspace, u, d_input);
    zb_real *late = u == head ? workspace->held : workspace->late;
    unit_backward(stage, workspace, &pass, microbatch, u, d_output, late, next);
    if (u != head) status = keep_late(stage, workspace, microbatch, u, late, error);
    d_output = next;
  }
  if (status == ZB_OK && stage->end - 1 == head && stage->first <= head)
    status = keep_late(stage, workspace, microbatch, head, workspace->held, error);
  if (status == ZB_OK) pass_through(stage, d_output, d_input);
  return status;
}

void zb_stage_weights(struct zb_stage *stage, struct zb_workspace *workspace) {
  int microbatch = stage->next_w++;
  assert(microbatch < stage->microbatches);
  struct zb_pass pass = pass_of(stage, workspace, microbatch);
  for (int u = stage->first; u < stage->end; u++)
    unit_weights(stage, workspace, &pass, microbatch, u, kept_of(stage, microbatch, u)->late);
}

enum zb_status zb_stage_fused(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                              const zb_real *d_output, zb_real *d_input, struct zb_error *error) {
  if (stage->next_w != microbatch) {
    // Older microbatches wait for their W: the oldest goes first, and this one's B is an ordinary B.
    zb_stage_weights(stage, workspace);
    return zb_stage_backward(stage, workspace, microbatch, d_output, d_input, error);
  }
  struct zb_pass pass = pass_of(stage, workspace, microbatch);
  for (int u = stage->end - 1; u >= stage->first; u--) {
    zb_real *next = gradient_target(stage, workspace, u, d_input);
    unit_backward(stage, workspace, &pass, microbatch, u, d_output, workspace->late, next);
    unit_weights(stage, workspace, &pass, microbatch, u, workspace->late);
    d_output = next;
  }
  pass_through(stage, d_output, d_input);
  stage->next_w++;
  return ZB_OK;
}

void zb_stage_norm(struct zb_stage *stage, double *partial) {
  stage->stepping = stage->gradient;
  for (int u = stage->first; u < stage->end; u++) {
    size_t at = stage->offset[u - stage->first];
    partial[u] = zb_square_sum(stage->gradient + at, (int64_t)(stage->offset[u - stage->first + 1] - at));
  }
}

void zb_stage_step(struct zb_stage *stage, double scale) {
  struct zb_adamw_step step = zb_adamw_step(&stage->gpt->adamw, ++stage->steps_made, scale);
  for (size_t k = 0; k < stage->count; k++)
    zb_adamw_forward(&step, stage->stepping[k], &stage->parameters[k], &stage->mean[k], &stage->square[k]);
}

void zb_stage_unstep(struct zb_stage *stage, double scale) {
  struct zb_adamw_step step = zb_adamw_step(&stage->gpt->adamw, stage->steps_made--, scale);
  for (size_t k = 0; k < stage->count; k++)
    zb_adamw_inverse(&step, stage->stepping[k], &stage->parameters[k], &stage->mean[k], &stage->square[k]);
}

void zb_stage_save(struct zb_stage *stage) {
  size_t bytes = stage->count * sizeof *stage->saved;
  memcpy(stage->saved, stage->parameters, bytes);
  memcpy(stage->saved + stage->count, stage->mean, bytes);
  memcpy(stage->saved + 2 * stage->count, stage->square, bytes);
}

void zb_stage_restore(struct zb_stage *stage) {
  size_t bytes = stage->count * sizeof *stage->saved;
  memcpy(stage->parameters, stage->saved, bytes);
  memcpy(stage->mean, stage->saved + stage->count, bytes);
  memcpy(stage->square, stage->saved + 2 * stage->count, bytes);
  stage->steps_made--;
}
