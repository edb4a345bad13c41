// torch_csv.h - the schedule files of torch.distributed.pipelining: one row a rank, one action a cell.
//
//   cell   := simple | "(" simple { ";" simple } ")OVERLAP_F_B"
//   simple := STAGE WORD [ MICROBATCH ]            2F0  13I7  0B4  1UNSHARD  3SEND_F1
//
// Two dialects share the grammar: compute-only files have the first four words and idle slots (empty cells),
// compute-and-communication files all words and no empty cells.
#ifndef ZB_TORCH_CSV_H
#define ZB_TORCH_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "solver/model/status.h"

// Name, word, whether a microbatch follows, whether it computes, first minor version of torch 2 that has it.
#define ZB_TORCH_TABLE(X)                                                                                    \
  X(ZB_TORCH_F, "F", true, true, 6)            /* forward */                                                 \
  X(ZB_TORCH_I, "I", true, true, 6)            /* backward for the input: our B */                           \
  X(ZB_TORCH_W, "W", true, true, 6)            /* backward for the weights */                                \
  X(ZB_TORCH_B, "B", true, true, 6)            /* whole backward: our BW */                                  \
  X(ZB_TORCH_SEND_F, "SEND_F", true, false, 6) /* to stage + 1 */                                            \
  X(ZB_TORCH_RECV_F, "RECV_F", true, false, 6) /* from stage - 1 */                                          \
  X(ZB_TORCH_SEND_B, "SEND_B", true, false, 6) /* to stage - 1 */                                            \
  X(ZB_TORCH_RECV_B, "RECV_B", true, false, 6) /* from stage + 1 */                                          \
  X(ZB_TORCH_WAIT_SEND_F, "WAIT_SEND_F", true, false, 15)                                                    \
  X(ZB_TORCH_WAIT_SEND_B, "WAIT_SEND_B", true, false, 15)                                                    \
  X(ZB_TORCH_UNSHARD, "UNSHARD", false, false, 6)                                                            \
  X(ZB_TORCH_RESHARD, "RESHARD", false, false, 6)                                                            \
  X(ZB_TORCH_REDUCE_GRAD, "REDUCE_GRAD", false, false, 10)                                                   \
  X(ZB_TORCH_WAIT_REDUCE_GRAD, "WAIT_REDUCE_GRAD", false, false, 15)

enum zb_torch_word {
#define X(name, word, numbered, computes, since) name,
  ZB_TORCH_TABLE(X)
#undef X
      ZB_TORCH_WORDS
};

const char *zb_torch_word_text(enum zb_torch_word word);
bool zb_torch_word_numbered(enum zb_torch_word word);
bool zb_torch_word_computes(enum zb_torch_word word);

struct zb_torch_action {
  enum zb_torch_word word;
  int32_t stage, microbatch; // microbatch -1: the word has none
  uint32_t cell;             // in its row, from 1, empty ones counted
};

#define ZB_TORCH_TEXT 64
void zb_torch_action_print(struct zb_torch_action action, char *text); // room for ZB_TORCH_TEXT bytes

// A file's actions by rank. Everything is owned.
struct zb_torch_csv {
  int ranks;
  size_t *first; // [ranks + 1] rank r's actions are actions[first[r]] .. actions[first[r + 1] - 1]
  struct zb_torch_action *actions;
  int64_t overlapped; // pairs in OVERLAP_F_B cells, here one action after the other
};

// Reads the text. BAD_INPUT with row and cell (line and column of the error) for anything that is not the
// grammar, even where torch would read on in silence, and for a word that the dialect does not have.
enum zb_status zb_torch_csv_parse(const char *text, size_t size, bool communicates, struct zb_torch_csv *csv,
                                  struct zb_error *error);
void zb_torch_csv_free(struct zb_torch_csv *csv); // the fields, not the struct

#endif
