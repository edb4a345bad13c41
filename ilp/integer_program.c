// integer_program.c - building rows, and keeping trivial ones out.
//
// Invariant: a stored row has at least two terms, each column in it once, not fixed and with a coefficient
// that is not 0; and the row could be violated within the column bounds when it was closed.
#include "ilp/integer_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/number.h"

// Room for one more of `count` elements of `size` bytes.
static bool grow(struct zb_ilp_program *program, void **array, size_t count, size_t *room, size_t size) {
  if (program->failed) return false;
  if (count < *room) return true;
  const size_t wanted = *room ? 2 * *room : 256;
  void *grown = realloc(*array, wanted * size);
  if (!grown) {
    program->failed = true;
    return false;
  }
  *array = grown;
  *room = wanted;
  return true;
}

static void set_name(char *to, const char *name) { snprintf(to, ZB_ILP_NAME, "%s", name); }

int zb_ilp_program_column(struct zb_ilp_program *program, int64_t lower, int64_t upper, bool integer,
                          const char *name) {
  const size_t before = program->column_room, count = (size_t)program->columns;
  void *columns = program->column;
  const bool grown = grow(program, &columns, count, &program->column_room, sizeof *program->column);
  program->column = columns;
  if (grown && program->column_room != before) {
    size_t *place = realloc(program->place, program->column_room * sizeof *place);
    if (place) {
      memset(place + before, 0, (program->column_room - before) * sizeof *place);
      program->place = place;
    } else {
      program->column_room = before;
      program->failed = true;
    }
  }
  if (program->failed) return 0;
  struct zb_ilp_column *column = &program->column[count];
  *column = (struct zb_ilp_column){.lower = lower, .upper = upper, .integer = integer};
  set_name(column->name, name);
  if (lower > upper) program->contradiction = true;
  return program->columns++;
}

static size_t open_row(const struct zb_ilp_program *program) {
  return program->rows > 0 ? program->row[program->rows].first : 0;
}

void zb_ilp_program_constant(struct zb_ilp_program *program, int64_t constant) {
  program->constant += constant;
}

void zb_ilp_program_term(struct zb_ilp_program *program, int column, int64_t coefficient) {
  if (program->failed || coefficient == 0) return;
  size_t *place = &program->place[column];
  if (*place > 0) {
    program->term[*place - 1].coefficient += coefficient;
    return;
  }
  void *terms = program->term;
  const bool grown = grow(program, &terms, program->terms, &program->term_room, sizeof *program->term);
  program->term = terms;
  if (!grown) return;
  program->term[program->terms++] = (struct zb_ilp_term){column, coefficient};
  *place = program->terms;
}

void zb_ilp_program_drop(struct zb_ilp_program *program) {
  program->constant = 0;
  if (program->failed) return;
  const size_t first = open_row(program);
  for (size_t i = first; i < program->terms; i++) program->place[program->term[i].column] = 0;
  program->terms = first;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// coefficient * column within [lower, upper] as bounds of the column.
static void tighten_column(struct zb_ilp_program *program, struct zb_ilp_term term, int64_t lower,
                           int64_t upper) {
  struct zb_ilp_column *column = &program->column[term.column];
  if (term.coefficient < 0) {
    const int64_t was_lower = lower;
    lower = upper == ZB_ILP_ANY ? ZB_ILP_NONE : -upper;
    upper = was_lower == ZB_ILP_NONE ? ZB_ILP_ANY : -was_lower;
    term.coefficient = -term.coefficient;
  }
  // Times are whole in some optimal solution, so their bounds may be rounded as well.
  if (upper != ZB_ILP_ANY) column->upper = zb_min(column->upper, floor_divide(upper, term.coefficient));
  if (lower != ZB_ILP_NONE) column->lower = zb_max(column->lower, -floor_divide(-lower, term.coefficient));
  if (column->lower > column->upper) program->contradiction = true;
}

void zb_ilp_program_close(struct zb_ilp_program *program, int64_t lower, int64_t upper, const char *name) {
  if (program->failed) return;
  if (lower != ZB_ILP_NONE) lower -= program->constant;
  if (upper != ZB_ILP_ANY) upper -= program->constant;
  const size_t first = open_row(program);
  size_t kept = first;
  int64_t least = 0, most = 0;
  for (size_t i = first; i < program->terms; i++) {
    const struct zb_ilp_term term = program->term[i];
    program->place[term.column] = 0;
    const struct zb_ilp_column *column = &program->column[term.column];
    if (term.coefficient == 0) continue;
    const int64_t a = term.coefficient * column->lower, b = term.coefficient * column->upper;
    if (a == b) {
      if (lower != ZB_ILP_NONE) lower -= a;
      if (upper != ZB_ILP_ANY) upper -= a;
      continue;
    }
    least += zb_min(a, b);
    most += zb_max(a, b);
    program->term[kept++] = term;
  }
  program->terms = kept;
  program->constant = 0;
  if (least >= lower && most <= upper) {
    program->terms = first;
  } else if (least > upper || most < lower) {
    program->terms = first;
    program->contradiction = true;
  } else if (kept == first + 1) {
    program->terms = first;
    tighten_column(program, program->term[first], lower, upper);
  } else {
    void *rows = program->row;
    const bool grown =
        grow(program, &rows, (size_t)program->rows + 1, &program->row_room, sizeof *program->row);
    program->row = rows;
    if (!grown) return;
    struct zb_ilp_row *row = &program->row[program->rows++];
    *row = (struct zb_ilp_row){.first = first, .lower = lower, .upper = upper};
    set_name(row->name, name);
    row[1].first = kept;
  }
}

enum zb_status zb_ilp_program_end(const struct zb_ilp_program *program, struct zb_error *error) {
  return program->failed ? zb_fail_memory(error) : ZB_OK;
}

void zb_ilp_program_free(struct zb_ilp_program *program) {
  free(program->column);
  free(program->row);
  free(program->term);
  free(program->place);
  *program = (struct zb_ilp_program){0};
}
