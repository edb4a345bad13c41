// chrome_trace.h - a schedule as a Chrome trace, for Perfetto and chrome://tracing.
//
// pid is the rank, tid 0 its compute, tid 1 and up its messages. Spans carry the names that torch's profiler
// gives to pipeline steps (`PP:0F3`, `PP:1RECV_F3`; I is our B and B our BW), so that a predicted and a
// measured trace can be laid side by side, and `args.op` our own name. Times are microseconds, exact to the
// nanosecond. A counter holds the activations kept, static memory excluded.
#ifndef ZB_CHROME_TRACE_H
#define ZB_CHROME_TRACE_H

#include "solver/io/export.h"

// A writer of the table of formats.
enum zb_status zb_export_chrome_trace(const struct zb_export_input *input, struct zb_export_output *output,
                                      struct zb_error *error);

#endif
