// torch_write.h - torch's schedule files, out: see zb_export_format.write.
//
// Both writers bring the schedule into torch's normal form (torch_normal.h) and say in notes what that
// changed and cost. Frameworks that load such files build a loop, a V or one stage a rank: any other
// placement is BAD_INPUT.
#ifndef ZB_TORCH_WRITE_H
#define ZB_TORCH_WRITE_H

#include "solver/io/export.h"

enum zb_status zb_torch_write_compute(const struct zb_export_input *input, struct zb_export_output *output,
                                      struct zb_error *error);

// With messages as the program of the schedule has them (lower.h), so that it finishes whatever the channels,
// and with what the release asks for: REDUCE_GRAD from 2.10, waits from 2.15.
enum zb_status zb_torch_write_comms(const struct zb_export_input *input, struct zb_export_output *output,
                                    struct zb_error *error);

#endif
