// reduce.h - a program without the times that only pass others on.
//
// Where an order is known, a time stands in rows "this one at least so much after that one" and in no other.
// Such a column can be left out: each that it follows is put in front of each that follows it. What a piece
// of a schedule keeps shrinks that way to the paths between what is open.
#ifndef ZB_REDUCE_H
#define ZB_REDUCE_H

#include "ilp/integer_program.h"

// Columns that were left out, with what is needed to give them values again. Owned: zb_reduction_free.
struct zb_reduction {
  int removed;   // how many
  int *column;   // [removed] in the order in which they went
  size_t *first; // [removed + 1] its predecessors are source[first[i]] .. source[first[i + 1] - 1]
  struct zb_ilp_term *source; // a column, and the least lag behind it as the coefficient
  int64_t *lower;             // [removed]
};

// Rewrites the program: the same columns, of which some are in no row any more, and the same least cost for
// every choice of the integer columns. FAILED when memory runs out; the program is then as it was.
enum zb_status zb_ilp_program_reduce(struct zb_ilp_program *program, struct zb_reduction *reduction,
                                     struct zb_error *error);
void zb_reduction_free(struct zb_reduction *reduction);

// Sets the values of removed columns, as early as those of the others allow.
void zb_reduction_restore(const struct zb_reduction *reduction, double *value);

#endif
