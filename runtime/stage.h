// stage.h - a run of units as a schedule sees it: F, B, W of a microbatch, and the optimizer's work on its
// parameters.
//
// W of a stage runs its microbatches in order, whichever of them the schedule names: the k-th W is microbatch
// k's, whose B is done by then because a stage's Bs run in order. So every gradient is the same sum in the
// same order.
#ifndef ZB_STAGE_H
#define ZB_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/adamw.h"
#include "runtime/corpus.h"
#include "runtime/gpt_unit.h"
#include "runtime/keep.h"
#include "solver/model/status.h"

// What a device has once, for all its stages: scratch, and the store of kept buffers.
struct zb_workspace {
  zb_real *scratch, *late; // the largest of any unit
  zb_real *held;           // [zb_gpt_message] the head's late, until the rest of its stage's B is done
  zb_real *between[2];     // [zb_gpt_message] from unit to unit inside a stage
  unsigned char *tokens, *targets;
  struct zb_keep keep;
};

enum zb_status zb_workspace_create(const struct zb_gpt *gpt, struct zb_workspace **workspace,
                                   struct zb_error *error);
void zb_workspace_free(struct zb_workspace *workspace);
int64_t zb_workspace_bytes(const struct zb_gpt *gpt); // what create allocates

// Room that a stage has only where it is asked for.
enum {
  ZB_STAGE_COPY = 1,      // for zb_stage_save
  ZB_STAGE_GRADIENTS = 2, // the gradient of the last step stays while the next one grows
};

struct zb_stage {
  const struct zb_gpt *gpt; // borrowed, as is corpus
  const struct zb_corpus *corpus;
  int first, end;                                 // its units
  int microbatches;                               // of the whole batch
  size_t count;                                   // parameters of all its units
  size_t *offset;                                 // [end - first + 1] where each unit's begin
  zb_real *parameters, *gradient, *mean, *square; // [count]
  zb_real *saved;                                 // [3 * count] before the last step, or NULL: not asked for
  struct zb_unit_kept *kept;                      // [microbatches][end - first]
  zb_real *resting;                               // [count] the other gradient, or NULL: only one
  zb_real *stepping;                              // whichever gradient zb_stage_norm saw last
  double *loss;                                   // [microbatches] sums over tokens; 0 without the head
  int64_t step;                                   // which batch; the first is 0
  int64_t steps_made;                             // by the optimizer: a skipped step is not one
  int next_w;                                     // microbatches whose W is done in this step
};

// The stage of units first .. end - 1 with its start values. `room`: ZB_STAGE_*.
enum zb_status zb_stage_create(const struct zb_gpt *gpt, const struct zb_corpus *corpus, int first, int end,
                               int microbatches, uint64_t seed, unsigned room, struct zb_stage **stage,
                               struct zb_error *error);
void zb_stage_free(struct zb_stage *stage, struct zb_keep *keep); // what is still kept goes back to `keep`

// Bytes that one microbatch adds to what is kept: at F, at B (any sign), at W; they sum to 0.
void zb_stage_memory(const struct zb_gpt *gpt, enum zb_dtype dtype, int first, int end, int64_t *f_bytes,
                     int64_t *b_bytes, int64_t *w_bytes);

// Begins batch `step`: nothing kept, and the first W starts its gradient from zero. Until then, and for
// longer with ZB_STAGE_GRADIENTS, the last step can still be made, undone and redone.
void zb_stage_begin(struct zb_stage *stage, struct zb_keep *keep, int64_t step);

// F, B, W and the fused BW of a microbatch. input and d_output are NULL where the stage has no neighbour
// there, output and d_input likewise. FAILED only when memory for what is kept ends.
enum zb_status zb_stage_forward(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                                const zb_real *input, zb_real *output, struct zb_error *error);
enum zb_status zb_stage_backward(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                                 const zb_real *d_output, zb_real *d_input, struct zb_error *error);
void zb_stage_weights(struct zb_stage *stage, struct zb_workspace *workspace);
enum zb_status zb_stage_fused(struct zb_stage *stage, struct zb_workspace *workspace, int microbatch,
                              const zb_real *d_output, zb_real *d_input, struct zb_error *error);

// partial[unit] = sum of squares of the unit's gradient, for the stage's units. `partial` is the whole
// model's. This gradient is the one that steps from now on.
void zb_stage_norm(struct zb_stage *stage, double *partial);

// One optimizer step with the gradient times `scale`; its undoing from what zb_stage_save kept before it
// (exact), or from the gradient (Algorithm 1 of arXiv 2401.10241, up to rounding; `scale` as in the step).
void zb_stage_step(struct zb_stage *stage, double scale);
void zb_stage_save(struct zb_stage *stage);
void zb_stage_restore(struct zb_stage *stage);
void zb_stage_unstep(struct zb_stage *stage, double scale);

#endif
