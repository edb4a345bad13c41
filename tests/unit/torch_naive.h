// Does a torch schedule file run? A second reading of the format, without the solver: ranks take their cells
// in turn, one channel a rank, rendezvous.
#ifndef TORCH_NAIVE_H
#define TORCH_NAIVE_H

#include <stdbool.h>

// Whether every rank reaches the end of its row, every (stage, microbatch) with one F and one whole or split
// backward, the last stage's forwards in order, and every message sent and received once. Small files only.
bool torch_naive_runs(const char *text);

#endif
