// lp_write.c - CPLEX LP text.
//
// Row names get their index in front, so that they are unique whatever rows are called. Lines stay short:
// some readers refuse more than 255 characters.
#include "ilp/lp_write.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void write_terms(const struct zb_ilp_program *program, size_t first, size_t end, FILE *file) {
  for (size_t i = first; i < end; i++) {
    const struct zb_ilp_term term = program->term[i];
    const char *sign = term.coefficient < 0 ? "-" : "+";
    const int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (i > first && (i - first) % 6 == 0) fputs("\n   ", file);
    fprintf(file, " %s", sign);
    if (size != 1) fprintf(file, " %" PRId64, size);
    fprintf(file, " %s", program->column[term.column].name);
  }
}

static void write_row(const struct zb_ilp_program *program, int index, FILE *file) {
  const struct zb_ilp_row *row = &program->row[index];
  const bool lower = row->lower != ZB_ILP_NONE, upper = row->upper != ZB_ILP_ANY;
  if (lower && upper && row->lower == row->upper) {
    fprintf(file, " r%d_%s:", index, row->name);
    write_terms(program, row->first, row[1].first, file);
    fprintf(file, " = %" PRId64 "\n", row->lower);
    return;
  }
  if (lower) {
    fprintf(file, " r%d_%s:", index, row->name);
    write_terms(program, row->first, row[1].first, file);
    fprintf(file, " >= %" PRId64 "\n", row->lower);
  }
  if (upper) {
    fprintf(file, " r%d_%s%s:", index, row->name, lower ? "_up" : "");
    write_terms(program, row->first, row[1].first, file);
    fprintf(file, " <= %" PRId64 "\n", row->upper);
  }
}

enum zb_status zb_lp_write(const struct zb_ilp_program *program, const char *comment, FILE *file,
                           struct zb_error *error) {
  if (comment) fprintf(file, "\\ %s\n", comment);
  fprintf(file, "Minimize\n obj: %s\nSubject To\n", program->column[program->cost].name);
  for (int i = 0; i < program->rows; i++) write_row(program, i, file);
  if (program->contradiction) { // found while building: said in a form that every reader takes
    const char *name = program->column[program->cost].name;
    fprintf(file, " never: %s >= %" PRId64 "\n", name, program->column[program->cost].upper + 1);
  }
  fputs("Bounds\n", file);
  for (int i = 0; i < program->columns; i++) {
    const struct zb_ilp_column *column = &program->column[i];
    if (column->lower > column->upper) continue;
    fprintf(file, " %" PRId64 " <= %s <= %" PRId64 "\n", column->lower, column->name, column->upper);
  }
  bool any = false;
  for (int i = 0; i < program->columns; i++) {
    if (!program->column[i].integer) continue;
    fprintf(file, "%s %s\n", any ? "" : "Generals\n", program->column[i].name);
    any = true;
  }
  fputs("End\n", file);
  if (fflush(file) != 0 || ferror(file))
    return zb_fail(error, ZB_FAILED, "cannot write the program: %s", strerror(errno));
  return ZB_OK;
}
