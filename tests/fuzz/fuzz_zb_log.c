// fuzz_zb_log.c - libFuzzer target: any bytes as a log of the zero-bubble fork.
#include "tests/measured_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  measured_input_try(data, size, zb_read_zb_log);
  return 0;
}
