// table.h - an aligned plain-text table for the terminal.
//
// Cells are appended row by row; widths count characters, not bytes. Start from {.columns = ...,
// .count = ...} with the rest zero.
#ifndef ZB_TABLE_H
#define ZB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/io/text.h"

struct zb_column {
  const char *title;
  bool right; // aligned right: numbers
};

enum { ZB_TABLE_COLUMNS = 32 }; // at most

struct zb_table {
  const struct zb_column *columns; // borrowed
  size_t count;                    // of columns
  struct zb_text cells;            // the cells' texts, each with its NUL
  size_t cell_count;
};

void zb_table_cell(struct zb_table *table, const char *format, ...) ZB_PRINTF(2, 3);
// Appends titles and rows, every line with `indent` spaces before and nothing after. A last row that is not
// full is filled with empty cells. A failed allocation of the table becomes the text's.
void zb_table_print(const struct zb_table *table, size_t indent, struct zb_text *text);
void zb_table_free(struct zb_table *table); // the cells, not the struct

#endif
