// edges.h - which devices send to which, for transports that connect before the first message.
#ifndef ZB_EDGES_H
#define ZB_EDGES_H

#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"
#include "solver/program/program.h"

// One direction between two devices.
struct zb_edge {
  int32_t from, to;
};

// The edges that messages of ops take (not the optimizer's), each once, by `from`, then `to`; so they are the
// same in every process. Owned by the caller (free); NULL where there are none.
enum zb_status zb_edges_of(const struct zb_program *program, struct zb_edge **edge, size_t *edges,
                           struct zb_error *error);

#endif
