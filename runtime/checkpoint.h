// checkpoint.h - a trained state in one file, in model order, so that any program of the same training goes
// on from it.
//
// DIR/checkpoint is one line of text, then the numbers as they lie in memory:
//
//   zbsolve_checkpoint 1 step 20 made 19 numbers 64800 training 0123456789abcdef sum 0123456789abcdef
//
// `numbers` zb_real: parameters, first and second moments of all units in model order; `step` steps are done,
// of which the optimizer made `made`; `training` is zb_training_digest, `sum` FNV-1a of the numbers. The file
// is replaced as a whole (zb_file_write), so that whoever dies while writing leaves the one before.
#ifndef ZB_CHECKPOINT_H
#define ZB_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/scalar.h"
#include "runtime/training.h"
#include "solver/model/status.h"

struct zb_checkpoint {
  int64_t step, made;
  size_t count;    // parameters of the whole model
  zb_real *values; // [3 * count]
};

// A number for all that decides what is trained: model, optimizer, data, seed, microbatches.
uint64_t zb_training_digest(const struct zb_training *training);

// FNV-1a, continued from `digest`; of nothing it is ZB_DIGEST_START.
#define ZB_DIGEST_START UINT64_C(0xcbf29ce484222325)
uint64_t zb_digest_add(uint64_t digest, const void *bytes, size_t size);

// How many parameters the units before `unit` have.
size_t zb_checkpoint_place(const struct zb_gpt *gpt, int unit);

// Room for the training's numbers, all zero. Owned by the caller: zb_checkpoint_free.
enum zb_status zb_checkpoint_create(const struct zb_training *training, struct zb_checkpoint **checkpoint,
                                    struct zb_error *error);
void zb_checkpoint_free(struct zb_checkpoint *checkpoint); // NULL is nothing

// Reads what `directory` has; *checkpoint NULL where it has none. BAD_INPUT where the file is damaged, or of
// another training.
enum zb_status zb_checkpoint_read(const char *directory, const struct zb_training *training,
                                  struct zb_checkpoint **checkpoint, struct zb_error *error);
enum zb_status zb_checkpoint_write(const char *directory, const struct zb_training *training,
                                   const struct zb_checkpoint *checkpoint, struct zb_error *error);

// Makes the directory where there is none, and sees whether a checkpoint can be written.
enum zb_status zb_checkpoint_prepare(const char *directory, struct zb_error *error);

#endif
