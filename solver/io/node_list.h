// node_list.h - the orders that the zero-bubble fork of Megatron-LM can be given, as JSON.
//
// A list a rank of {"type", "stage", "microbatch", "chunk", "layer_group_idx"}: type F, B, W or BW; stage is
// the *rank*, chunk the stage's place among the rank's own, layer_group_idx the stage of the model. The fork
// wants F, B and W of a chunk in the same order of microbatches, and a microbatch either split on all stages
// or on none.
#ifndef ZB_NODE_LIST_H
#define ZB_NODE_LIST_H

#include "solver/io/export.h"
#include "solver/io/file_orders.h"

// See zb_export_format.write and zb_import_format.read.
enum zb_status zb_node_list_write(const struct zb_export_input *input, struct zb_export_output *output,
                                  struct zb_error *error);
enum zb_status zb_node_list_read(const char *text, size_t size, struct zb_file_orders *orders,
                                 struct zb_text *notes, struct zb_error *error);

#endif
