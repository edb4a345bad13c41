// megatron_layout.c - layers shared out by largest remainders, so that equal stages differ by at most one.
#include "solver/io/megatron_layout.h"

#include <stdlib.h>

// layers[s] of `all` by weight f_ns, or equally where all are 0.
static enum zb_status share_out(const struct zb_profile *p, int64_t all, int64_t *layers,
                                struct zb_error *error) {
  double *rest = malloc((size_t)p->stages * sizeof *rest), total = 0;
  if (!rest) return zb_fail_memory(error);
  for (int s = 0; s < p->stages; s++) total += (double)p->f_ns[s];
  int64_t left = all;
  for (int s = 0; s < p->stages; s++) {
    double share = total > 0 ? (double)all * (double)p->f_ns[s] / total : (double)all / p->stages;
    layers[s] = (int64_t)share;
    rest[s] = share - (double)layers[s];
    left -= layers[s];
  }
  for (; left > 0; left--) {
    int most = 0;
    for (int s = 1; s < p->stages; s++)
      if (rest[s] > rest[most]) most = s;
    layers[most]++;
    rest[most] -= 1;
  }
  free(rest);
  return ZB_OK;
}

enum zb_status zb_megatron_layout_write(const struct zb_export_input *input, struct zb_export_output *output,
                                        struct zb_error *error) {
  const struct zb_profile *p = input->answer->profile;
  const enum zb_placement placement = zb_placement_find(p->device_of, p->devices, p->stages);
  if (placement != ZB_CHAIN && placement != ZB_LOOP)
    return zb_fail(error, ZB_BAD_INPUT, "placement %s: Megatron-LM places stages as a chain or a loop only",
                   zb_placement_word(p->placement));
  if (input->layers < p->stages)
    return zb_fail(error, ZB_BAD_INPUT,
                   "a layout needs --layers N, at least one a stage (%d): a profile does not say how many",
                   p->stages);
  int64_t *layers = calloc((size_t)p->stages, sizeof *layers);
  enum zb_status status = layers ? share_out(p, input->layers, layers, error) : zb_fail_memory(error);
  if (status == ZB_OK) {
    zb_text_put(&output->text, "E");
    for (int s = 0; s < p->stages; s++) {
      if (s) zb_text_put(&output->text, "|");
      zb_text_repeat(&output->text, "t", (size_t)layers[s]);
    }
    zb_text_put(&output->text, "L\n");
    zb_export_set(output, "Megatron-LM", "--pipeline-model-parallel-layout", "this text");
    zb_export_set(output, "Megatron-LM", "--pipeline-model-parallel-size", "%d", p->devices);
    zb_text_put(&output->notes, "layers are shared out by the stages' forward times\n");
    zb_text_put(&output->notes, "Megatron-LM runs its own order on this layout, not the schedule's\n");
    status = zb_text_status(&output->text, error);
  }
  free(layers);
  return status;
}
