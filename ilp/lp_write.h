// lp_write.h - a program as CPLEX LP text, for any other solver.
#ifndef ZB_LP_WRITE_H
#define ZB_LP_WRITE_H

#include <stdio.h>

#include "ilp/integer_program.h"

// Writes the program with exact integers and readable names. `comment` (may be NULL, one line) goes on top.
// FAILED when the file does not take it. The caller closes the file, and checks that too.
enum zb_status zb_lp_write(const struct zb_ilp_program *program, const char *comment, FILE *file,
                           struct zb_error *error);

#endif
