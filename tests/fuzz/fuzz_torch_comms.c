// fuzz_torch_comms.c - libFuzzer target: any bytes as a torch-comms-csv file.
#include "tests/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_reader("torch-comms-csv", data, size);
  return 0;
}
