// fuzz_timings_csv.c - libFuzzer target: any bytes as a table of times.
#include "tests/measured_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  measured_input_try(data, size, zb_read_timings_csv);
  return 0;
}
