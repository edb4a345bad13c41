// gather.h - what every device left behind, in one place.
#ifndef ZB_GATHER_H
#define ZB_GATHER_H

#include "runtime/replay.h"

// Fills crew->log: of the devices that are here their own, and in the process of device 0 also those of the
// others, sent over the transport that they were run on, in crew->received. FAILED where one does not come in
// time.
enum zb_status zb_crew_gather(struct zb_crew *crew, struct zb_error *error);

// Sends `bytes` at `data` from a device to device 0, or receives them there, and waits for it: outside any
// step, with nothing else under way. `part` numbers what is sent.
enum zb_status zb_gather_part(struct zb_rank *rank, int from, int part, void *data, size_t bytes,
                              struct zb_error *error);

#endif
