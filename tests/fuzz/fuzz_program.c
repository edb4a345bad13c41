// fuzz_program.c - libFuzzer target: any bytes as a program, read and checked.
//
// What is accepted and holds prints to a text that is accepted, holds and prints the same.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/program_json.h"
#include "solver/program/program_check.h"

enum { PASSES_MOST = 1 << 16 }; // a larger shape only costs time

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum zb_status read_and_check(const char *data, size_t size, struct zb_program **program) {
  struct zb_error error = {0};
  struct zb_run run = {0};
  enum zb_status status = zb_program_read_text(data, size, program, &error);
  if (status == ZB_OK) {
    const int64_t passes = (int64_t)(*program)->profile->stages * (*program)->profile->microbatches;
    if (passes > PASSES_MOST) return ZB_WRONG;
    status = zb_program_check(*program, &run, &error);
    zb_run_free(&run);
  }
  if (status == ZB_OK) return status;
  if ((status != ZB_BAD_INPUT && status != ZB_WRONG) || error.text[0] == '\0' || strchr(error.text, '\n'))
    abort();
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct zb_program *program = NULL, *again = NULL;
  struct zb_text text = {0}, text_again = {0};
  if (read_and_check((const char *)data, size, &program) == ZB_OK) {
    zb_program_print(program, &text);
    if (read_and_check(text.data, text.size, &again) != ZB_OK) abort();
    zb_program_print(again, &text_again);
    if (strcmp(text.data, text_again.data) != 0) abort();
  }
  zb_program_free(program);
  zb_program_free(again);
  zb_text_free(&text);
  zb_text_free(&text_again);
  return 0;
}
