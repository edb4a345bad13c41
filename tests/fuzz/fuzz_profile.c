// fuzz_profile.c - libFuzzer target: any bytes as a profile.
//
// Beyond not crashing: what is accepted prints to a text that reads back and prints the same, and what
// is refused is refused as bad input, never as an internal failure.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/profile_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A sum of two accepted times may need 16 digits, which a profile that people write may not have.
static int is_digit_error(const struct zb_error *error) {
  return error->line > 0 && strstr(error->text, "significant digits") != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct zb_profile *profile = NULL, *again = NULL;
  struct zb_error error = {0};
  struct zb_text text = {0}, text_again = {0};
  enum zb_status status = zb_profile_read_text((const char *)data, size, &profile, &error);
  if (status != ZB_OK) {
    if (status != ZB_BAD_INPUT || error.text[0] == '\0' || strchr(error.text, '\n')) abort();
    return 0;
  }
  zb_profile_print(profile, 0, &text);
  status = zb_profile_read_text(text.data, text.size, &again, &error);
  if (status == ZB_OK) {
    zb_profile_print(again, 0, &text_again);
    if (strcmp(text.data, text_again.data) != 0) abort();
  } else if (!is_digit_error(&error)) {
    abort();
  }
  zb_profile_free(profile);
  zb_profile_free(again);
  zb_text_free(&text);
  zb_text_free(&text_again);
  return 0;
}
