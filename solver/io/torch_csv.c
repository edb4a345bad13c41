// torch_csv.c - cells and their grammar.
//
// A row is split as CSV readers do (quotes, blanks around cells, both line ends); then each cell must match
// to its last byte. torch's own reader anchors its pattern at the start only, so that 0F0x is 0F0 to it: here
// every byte counts.
#include "solver/io/torch_csv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *text;
  bool numbered, computes;
} words[ZB_TORCH_WORDS] = {
#define X(name, word, numbered, computes, since) {word, numbered, computes},
    ZB_TORCH_TABLE(X)
#undef X
};

const char *zb_torch_word_text(enum zb_torch_word word) { return words[word].text; }
bool zb_torch_word_numbered(enum zb_torch_word word) { return words[word].numbered; }
bool zb_torch_word_computes(enum zb_torch_word word) { return words[word].computes; }

void zb_torch_action_print(struct zb_torch_action action, char *text) {
  int length = snprintf(text, ZB_TORCH_TEXT, "%d%s", (int)action.stage, words[action.word].text);
  if (words[action.word].numbered)
    snprintf(text + length, (size_t)(ZB_TORCH_TEXT - length), "%d", (int)action.microbatch);
}

void zb_torch_csv_free(struct zb_torch_csv *csv) {
  free(csv->first);
  free(csv->actions);
  *csv = (struct zb_torch_csv){0};
}

// Where reading stands.
struct reader {
  const char *at, *end;
  int row;       // from 1
  uint32_t cell; // from 1
  bool communicates;
  struct zb_torch_csv csv;
  size_t count, room; // of actions
  size_t rows_room;   // of csv.first
  struct zb_error *error;
};

// `what` follows the cell's text, made fit for one line.
static enum zb_status fail_cell(struct reader *r, const char *text, size_t length, const char *what) {
  enum { SHOWN = 40 };
  char shown[SHOWN + 4];
  size_t keep = length < SHOWN ? length : SHOWN;
  for (size_t i = 0; i < keep; i++) shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  strcpy(shown + keep, keep < length ? ".." : "");
  enum zb_status status = zb_fail(r->error, ZB_BAD_INPUT, "\"%s\"%s", shown, what);
  if (!r->error) return status;
  r->error->line = r->row;
  r->error->column = (int)r->cell;
  return status;
}

static enum zb_status fail_row(struct reader *r, const char *what) {
  enum zb_status status = zb_fail(r->error, ZB_BAD_INPUT, "%s", what);
  if (!r->error) return status;
  r->error->line = r->row;
  r->error->column = (int)r->cell;
  return status;
}

// Twice the room, or NULL and the items as they were.
static void *grow(void *items, size_t *room, size_t size) {
  size_t more = *room ? 2 * *room : 64;
  void *grown = realloc(items, more * size);
  if (grown) *room = more;
  return grown;
}

// A whole number without leading zeros; 0 where there is none.
static size_t read_number(const char *text, size_t length, int32_t *value) {
  size_t used = 0;
  int64_t number = 0;
  while (used < length && isdigit((unsigned char)text[used])) {
    number = number * 10 + (text[used++] - '0');
    if (number >= INT32_MAX || (used == 2 && text[0] == '0')) return 0;
  }
  *value = (int32_t)number;
  return used;
}

// Stage, word and microbatch of text[0 .. length - 1]; `cell` is the whole cell, for messages.
static enum zb_status read_simple(struct reader *r, const char *text, size_t length, const char *cell,
                                  size_t cell_length) {
  struct zb_torch_action action = {ZB_TORCH_WORDS, 0, -1, r->cell};
  size_t used = read_number(text, length, &action.stage), letters = 0;
  if (used == 0)
    return fail_cell(r, cell, cell_length, ": expected a stage, a word and a microbatch, like 2F0");
  const char *word = text + used;
  while (used + letters < length && (isupper((unsigned char)word[letters]) || word[letters] == '_'))
    letters++;
  for (int k = 0; k < ZB_TORCH_WORDS; k++)
    if (strlen(words[k].text) == letters && memcmp(words[k].text, word, letters) == 0)
      action.word = (enum zb_torch_word)k;
  if (letters == 2 && memcmp(word, "BW", 2) == 0)
    return fail_cell(r, cell, cell_length,
                     ": BW is the dialect before torch 2.6; since then I is the backward for the input, W "
                     "the one for the weights and B the whole");
  if (action.word == ZB_TORCH_WORDS)
    return fail_cell(r, cell, cell_length,
                     r->communicates
                         ? ": unknown action"
                         : ": unknown action, expected F, I, W or B between stage and microbatch");
  if (!r->communicates && !words[action.word].computes)
    return fail_cell(r, cell, cell_length,
                     ": a compute-only file has F, I, W and B (--from torch-comms-csv)");
  used += letters;
  if (words[action.word].numbered) {
    size_t digits = read_number(text + used, length - used, &action.microbatch);
    if (digits == 0) return fail_cell(r, cell, cell_length, ": expected a microbatch at the end");
    used += digits;
  }
  if (used != length) return fail_cell(r, cell, cell_length, ": more text than one action");
  if (r->count == r->room) {
    struct zb_torch_action *grown = grow(r->csv.actions, &r->room, sizeof *grown);
    if (!grown) return zb_fail_memory(r->error);
    r->csv.actions = grown;
  }
  r->csv.actions[r->count++] = action;
  return ZB_OK;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static void trim(const char **text, size_t *length) {
  while (*length > 0 && is_blank(**text)) (*text)++, (*length)--;
  while (*length > 0 && is_blank((*text)[*length - 1])) (*length)--;
}

// "(0F7;7B3)OVERLAP_F_B": two computing actions that torch runs one after the other inside one cell.
static enum zb_status read_overlap(struct reader *r, const char *cell, size_t length) {
  static const char tail[] = "OVERLAP_F_B";
  static const char form[] = ": expected a pair like (0F7;7B3)OVERLAP_F_B";
  const char *close = memchr(cell, ')', length);
  const char *middle = memchr(cell, ';', length);
  if (!close || !middle || middle > close) return fail_cell(r, cell, length, form);
  const char *rest = close + 1;
  size_t rest_length = (size_t)(cell + length - rest);
  if (rest_length != strlen(tail) || memcmp(rest, tail, rest_length) != 0)
    return fail_cell(r, cell, length, form);
  const char *parts[2] = {cell + 1, middle + 1};
  size_t lengths[2] = {(size_t)(middle - cell - 1), (size_t)(close - middle - 1)};
  for (int k = 0; k < 2; k++) {
    trim(&parts[k], &lengths[k]);
    enum zb_status status = read_simple(r, parts[k], lengths[k], cell, length);
    if (status != ZB_OK) return status;
    enum zb_torch_word word = r->csv.actions[r->count - 1].word;
    if (k == 0 ? word != ZB_TORCH_F : word != ZB_TORCH_I && word != ZB_TORCH_B)
      return fail_cell(r, cell, length, form);
  }
  r->csv.overlapped++;
  return ZB_OK;
}

static enum zb_status read_cell(struct reader *r, const char *text, size_t length) {
  trim(&text, &length);
  if (length == 0 && r->communicates)
    return fail_row(r, "an empty cell: only compute-only files have idle slots (--from torch-csv)");
  if (length == 0) return ZB_OK;
  return *text == '(' ? read_overlap(r, text, length) : read_simple(r, text, length, text, length);
}

// Splits off one cell. *text is what is in it, without its quotes.
static enum zb_status split_cell(struct reader *r, const char **text, size_t *length) {
  const char *start = r->at;
  while (r->at < r->end && is_blank(*r->at)) r->at++;
  if (r->at < r->end && *r->at == '"') {
    const char *open = ++r->at;
    while (r->at < r->end && *r->at != '"' && *r->at != '\n' && *r->at != '\r') r->at++;
    *text = open;
    *length = (size_t)(r->at - open);
    if (r->at == r->end || *r->at != '"') return fail_cell(r, open, *length, ": a quote that is not closed");
    r->at++;
    while (r->at < r->end && is_blank(*r->at)) r->at++;
    if (r->at < r->end && *r->at != ',' && *r->at != '\n' && *r->at != '\r')
      return fail_cell(r, open, *length, ": text after the closing quote");
    return ZB_OK;
  }
  while (r->at < r->end && *r->at != ',' && *r->at != '\n' && *r->at != '\r') r->at++;
  *text = start;
  *length = (size_t)(r->at - start);
  return ZB_OK;
}

static enum zb_status end_row(struct reader *r, size_t row_start) {
  if (r->at < r->end && *r->at == '\r') {
    if (r->at + 1 == r->end || r->at[1] != '\n')
      return fail_row(r, "a carriage return without a line feed, expected LF or CRLF after a row");
    r->at++;
  }
  if (r->at < r->end) r->at++;
  if (r->count == row_start) {
    r->cell = 1;
    return fail_row(r, "a row without actions: torch takes it for a rank that does nothing");
  }
  if ((size_t)r->row == r->rows_room) {
    size_t *grown = grow(r->csv.first, &r->rows_room, sizeof *grown);
    if (!grown) return zb_fail_memory(r->error);
    r->csv.first = grown;
  }
  r->csv.first[r->row] = r->count;
  return ZB_OK;
}

static enum zb_status read_row(struct reader *r) {
  const size_t row_start = r->count;
  r->cell = 0;
  do {
    const char *text = NULL;
    size_t length = 0;
    if (r->cell > 0) r->at++;
    r->cell++;
    enum zb_status status = split_cell(r, &text, &length);
    bool blank = length == 0 && r->cell == 1 && (r->at == r->end || *r->at != ',');
    if (status == ZB_OK && !blank) status = read_cell(r, text, length);
    if (status != ZB_OK) return status;
  } while (r->at < r->end && *r->at == ',');
  return end_row(r, row_start);
}

enum zb_status zb_torch_csv_parse(const char *text, size_t size, bool communicates, struct zb_torch_csv *csv,
                                  struct zb_error *error) {
  struct reader r = {
      .at = text, .end = text + size, .row = 1, .cell = 1, .communicates = communicates, .error = error};
  enum zb_status status = ZB_OK;
  if (size == 0) return zb_fail(error, ZB_BAD_INPUT, "the file is empty, expected one row a rank");
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
    return fail_row(&r, "a byte order mark, which torch does not skip: expected plain UTF-8");
  r.csv.first = grow(NULL, &r.rows_room, sizeof *r.csv.first);
  if (!r.csv.first) return zb_fail_memory(error);
  r.csv.first[0] = 0;
  for (; status == ZB_OK && r.at < r.end; r.row++) {
    status = read_row(&r);
    if (status == ZB_OK) r.csv.ranks = r.row;
  }
  if (status != ZB_OK) {
    zb_torch_csv_free(&r.csv);
    return status;
  }
  *csv = r.csv;
  return ZB_OK;
}
