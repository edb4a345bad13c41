// straight.h - training without a pipeline: what every pipelined run must equal, to the bit.
#ifndef ZB_STRAIGHT_H
#define ZB_STRAIGHT_H

#include "runtime/checkpoint.h"
#include "runtime/compute.h"
#include "solver/model/status.h"

// One stage that holds the whole model, one microbatch after another, every step with full knowledge of its
// norm, on one device of a backend that trains, in this seat of its machine. loss[steps] is each step's mean
// loss a token. *trained is all that is known afterwards, owned by the caller (zb_checkpoint_free).
enum zb_status zb_straight_run(const struct zb_training *training, const struct zb_compute *compute, int seat,
                               double *loss, struct zb_checkpoint **trained, struct zb_error *error);

#endif
