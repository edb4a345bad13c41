// write_answer.h - an answer to its file, with its proof inside or beside it.
#ifndef ZB_WRITE_ANSWER_H
#define ZB_WRITE_ANSWER_H

#include "solver/model/answer.h"
#include "solver/model/status.h"

// Whether an answer could be written now: `path` (NULL: nowhere) and, if it is given, `proof_path`, which
// must lie beside it. BAD_INPUT and FAILED say which.
enum zb_status zb_write_answer_check(const char *path, const char *proof_path, struct zb_error *error);

// Writes the answer to `path` ("-": standard output). A proof tree goes to `proof_path`; where that is NULL
// into the schedule, or beside it as PATH.proof if it is long and the schedule is a regular file. Without a
// tree no proof file is touched. What did not come to an end (UNKNOWN, OVER_LIMIT) leaves old files as they
// were.
enum zb_status zb_write_answer(const char *path, const char *proof_path, const struct zb_answer *answer,
                               struct zb_error *error);

#endif
