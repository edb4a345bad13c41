// measure.h - a profile from a model: F, B, W and BW of every stage and a transfer timed, bytes counted.
#ifndef ZB_MEASURE_H
#define ZB_MEASURE_H

#include "runtime/compute.h"
#include "runtime/transport.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"

// The profile that a schedule for this model, placement and backend needs. Times are medians of `repeats`;
// where there is a core (a GPU) for each device they are taken on all devices at once, as in a pipeline, else
// one device after another. A transfer is half a round trip of one message between two devices, the same for
// every boundary. Memory is exact: what each pass keeps, and as static what the device holds all the time.
// *profile is the caller's.
enum zb_status zb_measure_profile(const struct zb_training *training, const struct zb_compute *compute,
                                  const struct zb_transport *transport, enum zb_placement placement,
                                  int devices, int chunks, int repeats, struct zb_profile **profile,
                                  struct zb_error *error);

#endif
