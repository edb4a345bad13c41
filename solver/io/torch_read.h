// torch_read.h - readers of torch's schedule files: see zb_import_format.read.
#ifndef ZB_TORCH_READ_H
#define ZB_TORCH_READ_H

#include "solver/io/file_orders.h"
#include "solver/io/torch_csv.h"

enum zb_status zb_torch_read_compute(const char *text, size_t size, struct zb_file_orders *orders,
                                     struct zb_text *notes, struct zb_error *error);

// The messages must be transferred under orders->channels.
enum zb_status zb_torch_read_comms(const char *text, size_t size, struct zb_file_orders *orders,
                                   struct zb_text *notes, struct zb_error *error);

// The computing actions of a parsed file.
enum zb_status zb_torch_orders(const struct zb_torch_csv *csv, struct zb_file_orders *orders,
                               struct zb_text *notes, struct zb_error *error);

#endif
