// text_place.c - counts lines and UTF-8 characters up to a place.
#include "solver/io/text_place.h"

void zb_text_locate(const char *text, size_t at, struct zb_error *error) {
  if (!error) return;
  int line = 1, column = 1;
  for (size_t i = 0; i < at; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c == '\n') {
      line++;
      column = 1;
    } else if ((c & 0xC0) != 0x80) {
      column++;
    }
  }
  error->line = line;
  error->column = column;
}
