// witness.h - a process beside this one that says what it was at when it ends without a word.
//
// A launcher that sees one process die may end all others at once, by a signal that none can catch. The
// witness is out of its reach: it belongs to another session, waits for the end of the process on a pipe,
// reads what the process noted last in memory that both share, writes one line to standard error, and ends.
#ifndef ZB_WITNESS_H
#define ZB_WITNESS_H

#include "runtime/progress.h"
#include "solver/model/status.h"

struct zb_witness;

// Starts it; before this process has threads or connections. *progress is the memory that it reads.
enum zb_status zb_witness_start(struct zb_witness **witness, struct zb_progress **progress,
                                struct zb_error *error);

// This process speaks for itself from now on: the witness ends, silently. `progress` stays until the process
// ends. NULL is nothing.
void zb_witness_dismiss(struct zb_witness *witness);

#endif
