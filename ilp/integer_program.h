// integer_program.h - an integer program in memory, whoever solves it: columns, rows, bounds, integrality,
// names.
//
// All data are whole numbers, so that a written program is exactly the one that was built; the objective is
// to minimise one column. Rows are built term by term; what turns out to be trivial never becomes a row.
#ifndef ZB_INTEGER_PROGRAM_H
#define ZB_INTEGER_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"

#define ZB_ILP_NAME 48
#define ZB_ILP_NONE INT64_MIN // no lower bound on a row; ZB_ILP_ANY: no upper bound
#define ZB_ILP_ANY INT64_MAX

struct zb_ilp_column {
  int64_t lower, upper; // always finite
  bool integer;
  char name[ZB_ILP_NAME];
};

struct zb_ilp_term {
  int column;
  int64_t coefficient; // not 0
};

struct zb_ilp_row {
  size_t first; // its terms are term[first] .. term[the next row's first - 1]
  int64_t lower, upper;
  char name[ZB_ILP_NAME];
};

struct zb_ilp_program {
  int columns, rows;
  struct zb_ilp_column *column;
  struct zb_ilp_row *row; // [rows + 1]; the last only closes the one before it
  struct zb_ilp_term *term;
  int cost;           // the column to minimise
  bool contradiction; // a row without terms, or a column's bounds, cannot hold
  // Private: what is being built.
  bool failed; // out of memory; everything after it is ignored
  size_t column_room, row_room, term_room, terms;
  size_t *place; // [column_room] 1 + where the column's term is in the open row, 0: nowhere
  int64_t constant;
};

// Zero-initialise the program first. Returns the new column's index, 0 when memory is out (see
// zb_ilp_program_end).
int zb_ilp_program_column(struct zb_ilp_program *program, int64_t lower, int64_t upper, bool integer,
                          const char *name);

// A row is opened by its first term or constant and closed with its bounds. Terms of one column are merged,
// constants and fixed columns are moved into the bounds, a single term becomes a bound of its column, and a
// row that the column bounds imply is dropped.
void zb_ilp_program_term(struct zb_ilp_program *program, int column, int64_t coefficient);
void zb_ilp_program_constant(struct zb_ilp_program *program, int64_t constant);
void zb_ilp_program_close(struct zb_ilp_program *program, int64_t lower, int64_t upper, const char *name);
void zb_ilp_program_drop(struct zb_ilp_program *program); // forget the open row

// Ends the building: FAILED if memory ran out on the way.
enum zb_status zb_ilp_program_end(const struct zb_ilp_program *program, struct zb_error *error);
void zb_ilp_program_free(struct zb_ilp_program *program);

#endif
