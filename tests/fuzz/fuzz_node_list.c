// fuzz_node_list.c - libFuzzer target: any bytes as a node-list file.
#include "tests/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_reader("node-list", data, size);
  return 0;
}
