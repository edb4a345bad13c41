// fuzz_schedule.c - libFuzzer target: any bytes as a schedule file, read and verified.
//
// What is accepted and holds prints to a text that is accepted, holds and prints the same.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/schedule_json.h"

enum { PASSES_MOST = 1 << 16 }; // a larger shape only costs time

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum zb_status read_and_verify(const char *data, size_t size, struct zb_answer *answer) {
  struct zb_error error = {0};
  enum zb_status status = zb_answer_read_text(data, size, answer, &error);
  if (status == ZB_OK) {
    int64_t passes = (int64_t)answer->profile->stages * answer->profile->microbatches;
    if (passes > PASSES_MOST) return ZB_WRONG;
    status = zb_answer_verify(answer, &error);
  }
  if (status == ZB_OK) return status;
  if ((status != ZB_BAD_INPUT && status != ZB_WRONG) || error.text[0] == '\0' || strchr(error.text, '\n'))
    abort();
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct zb_answer answer = {0}, again = {0};
  struct zb_text text = {0}, text_again = {0};
  if (read_and_verify((const char *)data, size, &answer) == ZB_OK) {
    zb_answer_print(&answer, &text);
    if (read_and_verify(text.data, text.size, &again) != ZB_OK) abort();
    zb_answer_print(&again, &text_again);
    if (strcmp(text.data, text_again.data) != 0) abort();
  }
  zb_answer_free(&answer);
  zb_answer_free(&again);
  zb_text_free(&text);
  zb_text_free(&text_again);
  return 0;
}
