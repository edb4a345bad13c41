// Any bytes as something that was measured: what every fuzz target of a reader checks.
#ifndef MEASURED_INPUT_H
#define MEASURED_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "solver/io/measured_formats.h"

// Aborts unless `read` and what follows end in a profile that prints and reads back, or in one line of
// BAD_INPUT.
void measured_input_try(const uint8_t *data, size_t size,
                        enum zb_status (*read)(const char *text, size_t size,
                                               const struct zb_measured_hints *hints,
                                               struct zb_measurements *measurements, struct zb_error *error));

#endif
