#include "tests/measured_input.h"

#include <stdlib.h>
#include <string.h>

#include "solver/io/profile_json.h"

static void check_error(enum zb_status status, const struct zb_error *error) {
  if (status != ZB_BAD_INPUT || error->text[0] == '\0' || strchr(error->text, '\n')) abort();
}

// A list of stages is printed and parsed in one piece: large ones only slow the fuzzer down.
static void check_profile(const struct zb_profile *profile) {
  struct zb_profile *again = NULL;
  struct zb_error error = {0};
  struct zb_text text = {0};
  zb_profile_print(profile, 0, &text);
  const enum zb_status status = zb_profile_read_text(text.data, text.size, &again, &error);
  if (status != ZB_OK && !(error.line > 0 && strstr(error.text, "significant digits"))) abort();
  zb_profile_free(again);
  zb_text_free(&text);
}

void measured_input_try(const uint8_t *data, size_t size,
                        enum zb_status (*read)(const char *text, size_t size,
                                               const struct zb_measured_hints *hints,
                                               struct zb_measurements *measurements,
                                               struct zb_error *error)) {
  const struct zb_measured_hints hints = {.microbatches = 3, .devices = 0};
  const struct zb_measured_options options = {
      .name = "fuzz", .source = "fuzz", .skip = -1, .warms_up = true, .microbatches = 3, .comm_ns = -1};
  struct zb_measurements measurements = {0};
  struct zb_measured measured = {0};
  struct zb_error error = {0};
  // The readers get their text from a zb_text: with a NUL behind it.
  char *text = malloc(size + 1);
  if (!text) return;
  if (size) memcpy(text, data, size);
  text[size] = '\0';
  enum zb_status status = read(text, size, &hints, &measurements, &error);
  if (status == ZB_OK) status = zb_measurements_profile(&measurements, &options, &measured, &error);
  if (status == ZB_OK)
    check_profile(measured.profile);
  else
    check_error(status, &error);
  zb_measured_free(&measured);
  zb_measurements_free(&measurements);
  free(text);
}
