// What every fuzz target of an import reader does.
#ifndef FUZZ_READER_H
#define FUZZ_READER_H

#include <stddef.h>
#include <stdint.h>

// Reads the bytes as a file of the import format, against a profile of two devices and two microbatches. A
// refusal must be one line, BAD_INPUT or WRONG; what is accepted must be a schedule, and where the format is
// also written, write and read back as itself. Aborts where that does not hold.
void fuzz_reader(const char *format, const uint8_t *data, size_t size);

#endif
