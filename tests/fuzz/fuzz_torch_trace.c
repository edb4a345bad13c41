// fuzz_torch_trace.c - libFuzzer target: any bytes as a trace, unpacked first where they say that they are
// packed.
#include "solver/io/gzip.h"
#include "tests/measured_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { UNPACKED_MOST = 1 << 20 };
  struct zb_text text = {0};
  if (!zb_gzip_is((const char *)data, size))
    measured_input_try(data, size, zb_read_torch_trace);
  else if (zb_gzip_expand((const char *)data, size, UNPACKED_MOST, &text, NULL) == ZB_OK && text.size > 0)
    measured_input_try((const uint8_t *)text.data, text.size, zb_read_torch_trace);
  zb_text_free(&text);
  return 0;
}
