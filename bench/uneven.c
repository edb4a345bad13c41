// Writes random profiles: uneven stages, tight memory. The same seed gives the same bytes on every machine.
//
//   uneven --seed N [--count K] [--tiny] [-d DIRECTORY]
//
// Profile k of seed N goes to DIRECTORY/uneven-N-k.json (tiny-N-k.json), or to stdout where no directory is
// given and K is 1. `--tiny` makes profiles small enough to try every order. See tests/generate.h.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/generate.h"

struct options {
  uint64_t seed, count;
  enum generate_kind kind;
  const char *directory;
  bool has_seed;
};

static bool read_number(const char *text, uint64_t *number) {
  if (text == NULL || *text == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
  errno = 0;
  *number = strtoull(text, NULL, 10);
  return errno == 0;
}

// False where an argument is not one of ours; *at names it.
static bool read_options(int argc, char **argv, struct options *options, const char **at) {
  *options = (struct options){.count = 1, .kind = GENERATE_UNEVEN};
  for (int i = 1; i < argc; i++) {
    *at = argv[i];
    if (strcmp(argv[i], "--tiny") == 0) {
      options->kind = GENERATE_TINY;
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      if (!read_number(argv[++i], &options->seed)) return false;
      options->has_seed = true;
    } else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) {
      if (!read_number(argv[++i], &options->count) || options->count == 0) return false;
    } else if (strcmp(argv[i], "-d") == 0 && i + 1 < argc) {
      options->directory = argv[++i];
    } else {
      return false;
    }
  }
  *at = "--seed";
  if (!options->has_seed) return false;
  *at = "--count";
  return options->directory != NULL || options->count == 1;
}

static bool write_profile(const struct options *options, uint64_t index) {
  struct generated_profile profile;
  char text[GENERATE_JSON_BYTES], path[4096];
  generate_profile(&profile, options->kind, options->seed, index);
  generate_json(&profile, text, sizeof text);
  if (options->directory == NULL) return fputs(text, stdout) >= 0 && fflush(stdout) == 0;

  int length = snprintf(path, sizeof path, "%s/%s-%" PRIu64 "-%" PRIu64 ".json", options->directory,
                        options->kind == GENERATE_TINY ? "tiny" : "uneven", options->seed, index);
  if (length < 0 || (size_t)length >= sizeof path) {
    errno = ENAMETOOLONG;
    return false;
  }
  FILE *file = fopen(path, "w");
  if (file == NULL) return false;
  bool written = fputs(text, file) >= 0;
  return (fclose(file) == 0) && written;
}

int main(int argc, char **argv) {
  struct options options;
  const char *at = "";
  if (!read_options(argc, argv, &options, &at)) {
    fprintf(stderr, "uneven: %s: usage: uneven --seed N [--count K -d DIRECTORY] [--tiny]\n", at);
    return 2;
  }
  for (uint64_t index = 0; index < options.count; index++) {
    if (!write_profile(&options, index)) {
      fprintf(stderr, "uneven: %s: %s\n", options.directory != NULL ? options.directory : "stdout",
              strerror(errno));
      return 1;
    }
  }
  return 0;
}
