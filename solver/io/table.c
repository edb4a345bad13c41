// table.c - two walks over the cells: widths, then lines.
#include "solver/io/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t characters(const char *string) {
  size_t count = 0;
  for (; *string; string++) count += ((unsigned char)*string & 0xC0) != 0x80;
  return count;
}

void zb_table_cell(struct zb_table *table, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  char buffer[128];
  int size = vsnprintf(buffer, sizeof buffer, format, arguments);
  if (size >= 0 && (size_t)size < sizeof buffer) {
    zb_text_add(&table->cells, buffer, (size_t)size + 1);
  } else if (size >= 0) { // grow first, then print in place
    zb_text_repeat(&table->cells, " ", (size_t)size + 1);
    if (!table->cells.failed)
      vsnprintf(table->cells.data + table->cells.size - (size_t)size - 1, (size_t)size + 1, format, again);
  } else {
    table->cells.failed = true;
  }
  va_end(again);
  va_end(arguments);
  table->cell_count++;
}

static void print_cell(const struct zb_table *table, size_t column, const char *cell, size_t width,
                       size_t indent, struct zb_text *text) {
  size_t blank = width - characters(cell);
  zb_text_repeat(text, " ", column == 0 ? indent : 2);
  if (table->columns[column].right) zb_text_repeat(text, " ", blank);
  zb_text_put(text, cell);
  if (!table->columns[column].right) zb_text_repeat(text, " ", blank);
  if (column + 1 < table->count || text->failed) return;
  while (text->size > 0 && text->data[text->size - 1] == ' ') text->size--;
  zb_text_put(text, "\n");
}

void zb_table_print(const struct zb_table *table, size_t indent, struct zb_text *text) {
  assert(table->count > 0 && table->count <= ZB_TABLE_COLUMNS);
  if (table->cells.failed) {
    text->failed = true;
    return;
  }
  size_t width[ZB_TABLE_COLUMNS];
  for (size_t column = 0; column < table->count; column++)
    width[column] = characters(table->columns[column].title);
  const char *cell = table->cells.data;
  for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
    size_t length = characters(cell), column = i % table->count;
    if (length > width[column]) width[column] = length;
  }
  for (size_t column = 0; column < table->count; column++)
    print_cell(table, column, table->columns[column].title, width[column], indent, text);
  cell = table->cells.data;
  size_t rows = (table->cell_count + table->count - 1) / table->count;
  for (size_t i = 0; i < rows * table->count; i++) {
    size_t column = i % table->count;
    bool filler = i >= table->cell_count;
    print_cell(table, column, filler ? "" : cell, width[column], indent, text);
    if (!filler) cell += strlen(cell) + 1;
  }
}

void zb_table_free(struct zb_table *table) {
  zb_text_free(&table->cells);
  table->cell_count = 0;
}
