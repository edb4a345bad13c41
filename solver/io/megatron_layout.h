// megatron_layout.h - Megatron-LM's layout string: which layers a stage holds.
#ifndef ZB_MEGATRON_LAYOUT_H
#define ZB_MEGATRON_LAYOUT_H

#include "solver/io/export.h"

// See zb_export_format.write: "Et|tt|tt|tL", E the embedding, t a layer, L the loss, | between stages, which
// Megatron-LM places on a loop. Needs input->layers, at least one a stage on average; they are shared out by
// the stages' forward times. It carries no order: Megatron-LM runs its own.
enum zb_status zb_megatron_layout_write(const struct zb_export_input *input, struct zb_export_output *output,
                                        struct zb_error *error);

#endif
