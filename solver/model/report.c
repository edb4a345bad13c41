// report.c - words and freeing of what compare and frontier return.
#include "solver/model/report.h"

#include <stdlib.h>

const char *zb_cause_word(enum zb_cause_kind kind) {
  static const char *const words[ZB_CAUSE_COUNT] = {
#define X(name, word) word,
      ZB_CAUSE_TABLE(X)
#undef X
  };
  return words[kind];
}

void zb_compare_free(struct zb_compare *compare) {
  for (int k = 0; compare->rows && k < compare->count; k++) {
    free(compare->rows[k].peak_bytes);
    free(compare->rows[k].sends);
  }
  free(compare->name);
  free(compare->rows);
  free(compare->verdict);
  *compare = (struct zb_compare){.best = -1};
}

void zb_tune_free(struct zb_tune *tune) {
  for (int k = 0; tune->rows && k < tune->count; k++) free(tune->rows[k].why);
  free(tune->rows);
  free(tune->warnings);
  free(tune->verdict);
  *tune = (struct zb_tune){.best = -1};
}

void zb_frontier_free(struct zb_frontier *frontier) {
  free(frontier->name);
  free(frontier->points);
  *frontier = (struct zb_frontier){.count = 0};
}

void zb_frontiers_free(struct zb_frontiers *frontiers) {
  for (int k = 0; frontiers->curve && k < frontiers->count; k++) zb_frontier_free(&frontiers->curve[k]);
  free(frontiers->curve);
  free(frontiers->best);
  *frontiers = (struct zb_frontiers){.count = 0};
}
