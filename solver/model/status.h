// status.h - the one table of outcomes: enum, word, exit code; and the error a failing call fills.
//
// The word is what the JSON field `status` and the last line of `solve` say, the code is what the
// process exits with (contract.md section 5). Parser, printers and tests read this table only.
#ifndef ZB_STATUS_H
#define ZB_STATUS_H

#define ZB_STATUS_TABLE(X)                                                                                   \
  X(ZB_OK, "ok", 0)                  /* the call did what it says */                                         \
  X(ZB_OPTIMAL, "optimal", 0)        /* cost == bound, both checked */                                       \
  X(ZB_FEASIBLE, "feasible", 0)      /* a checked schedule, its bound below it */                            \
  X(ZB_FAILED, "failed", 1)          /* I/O, memory, internal */                                             \
  X(ZB_BAD_INPUT, "bad-input", 2)    /* usage, or what was read */                                           \
  X(ZB_SELF_CHECK, "self-check", 3)  /* our own result failed our own check: a bug */                        \
  X(ZB_WRONG, "wrong", 4)            /* a schedule that was handed in does not hold */                       \
  X(ZB_NOT_PROVEN, "not-proven", 10) /* feasible, but a proof was asked for */                               \
  X(ZB_INFEASIBLE, "infeasible", 20) /* no schedule exists, proven */                                        \
  X(ZB_UNKNOWN, "unknown", 30)       /* the limit came before any schedule */                                \
  X(ZB_OVER_LIMIT, "over-limit", 30) /* this method needs more memory than the limit */

enum zb_status {
#define X(name, word, code) name,
  ZB_STATUS_TABLE(X)
#undef X
      ZB_STATUS_COUNT
};

// What went wrong. A function that returns a status other than ZB_OK has filled the error it was
// given (which may be NULL: then only the status is told). Nothing in it is owned.
struct zb_error {
  enum zb_status status;
  int line, column; // 1-based place in the input text; 0: the error is about a value, not a place
  char path[256];   // the file it is about, "" if none; filled by whoever knows it
  char text[512];   // one line: what is wrong, what was expected
};

const char *zb_status_word(enum zb_status status);
int zb_status_exit_code(enum zb_status status);

// Fills `error` (if not NULL) with status and the formatted line, leaving the path as it is and
// clearing the place. Returns `status`, so that a function can end in `return zb_fail(...)`.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
enum zb_status
zb_fail(struct zb_error *error, enum zb_status status, const char *format, ...);

// The failure of every allocation reads the same.
enum zb_status zb_fail_memory(struct zb_error *error);

#endif
