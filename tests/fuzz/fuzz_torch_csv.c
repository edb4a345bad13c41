// fuzz_torch_csv.c - libFuzzer target: any bytes as a torch-csv file.
#include "tests/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_reader("torch-csv", data, size);
  return 0;
}
