// edges.c - one pass over the sends of a program.
#include "runtime/edges.h"

#include <stdbool.h>
#include <stdlib.h>

enum zb_status zb_edges_of(const struct zb_program *program, struct zb_edge **edge, size_t *edges,
                           struct zb_error *error) {
  size_t devices = (size_t)program->devices, count = 0;
  bool *used = calloc(devices * devices, sizeof *used);
  if (!used) return zb_fail_memory(error);
  for (size_t d = 0; d < devices; d++) {
    for (size_t k = program->first[d]; k < program->first[d + 1]; k++) {
      const struct zb_instruction *i = &program->instructions[k];
      if (i->kind != ZB_DO_SEND_F && i->kind != ZB_DO_SEND_B) continue;
      bool *place = &used[d * devices + (size_t)i->peer];
      count += !*place;
      *place = true;
    }
  }
  struct zb_edge *made = count ? calloc(count, sizeof *made) : NULL;
  if (count && !made) {
    free(used);
    return zb_fail_memory(error);
  }
  *edges = 0;
  for (size_t k = 0; k < devices * devices; k++)
    if (used[k]) made[(*edges)++] = (struct zb_edge){(int32_t)(k / devices), (int32_t)(k % devices)};
  *edge = made;
  free(used);
  return ZB_OK;
}
