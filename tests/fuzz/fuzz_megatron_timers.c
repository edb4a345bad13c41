// fuzz_megatron_timers.c - libFuzzer target: any bytes as Megatron's timers.
#include "tests/measured_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  measured_input_try(data, size, zb_read_megatron_timers);
  return 0;
}
