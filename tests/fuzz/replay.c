// Runs a fuzz target over files, so that every build and compiler reads the kept corpus.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *read_all(FILE *file, size_t *size) {
  size_t room = 4096;
  uint8_t *data = malloc(room);
  *size = 0;
  for (size_t got; data != NULL && (got = fread(data + *size, 1, room - *size, file)) > 0;) {
    *size += got;
    if (*size < room) continue;
    room *= 2;
    uint8_t *more = realloc(data, room);
    if (more == NULL) free(data);
    data = more;
  }
  return data;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    size_t size = 0;
    uint8_t *data = file == NULL ? NULL : read_all(file, &size);
    if (data == NULL || ferror(file)) {
      fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
    fclose(file);
    // A copy of just this size, so that a sanitizer sees one byte too many.
    uint8_t *exact = realloc(data, size > 0 ? size : 1);
    LLVMFuzzerTestOneInput(exact != NULL ? exact : data, size);
    free(exact != NULL ? exact : data);
    printf("%s\n", argv[i]);
  }
  return 0;
}
