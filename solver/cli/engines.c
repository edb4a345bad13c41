// engines.c - the table. A new method is one line here.
#include "solver/cli/engines.h"

#include <stdio.h>
#include <string.h>

#include "heuristic/families.h"
#include "ilp/glpk_solve.h"
#include "ilp/ilp_engine.h"
#include "solver/cli/options.h"
#include "solver/exact/window_engine.h"

static const struct {
  const struct zb_engine *engine;
  enum zb_engine_part part;
} table[] = {
    {&zb_engine_auto, ZB_PART_WHOLE},       {&zb_engine_gpipe, ZB_PART_HEURISTIC},
    {&zb_engine_1f1b, ZB_PART_HEURISTIC},   {&zb_engine_1f1b_interleaved, ZB_PART_HEURISTIC},
    {&zb_engine_zb_h1, ZB_PART_HEURISTIC},  {&zb_engine_zb_h2, ZB_PART_HEURISTIC},
    {&zb_engine_greedy, ZB_PART_HEURISTIC}, {&zb_engine_zb_1p, ZB_PART_HEURISTIC},
    {&zb_engine_zb_2p, ZB_PART_HEURISTIC},  {&zb_engine_1f1b_v, ZB_PART_HEURISTIC},
    {&zb_engine_zb_v, ZB_PART_HEURISTIC},   {&zb_engine_v_half, ZB_PART_HEURISTIC},
    {&zb_engine_v_min, ZB_PART_HEURISTIC},  {&zb_engine_v_blocks, ZB_PART_HEURISTIC},
    {&zb_engine_ilp, ZB_PART_ALONE},        {&zb_engine_window, ZB_PART_SEARCH},
};
enum { ENGINES = sizeof table / sizeof *table };

int zb_engine_count(void) { return ENGINES; }
const struct zb_engine *zb_engine_at(int index) { return table[index].engine; }
enum zb_engine_part zb_engine_part_at(int index) { return table[index].part; }

enum zb_engine_part zb_engine_part_of(const struct zb_engine *engine) {
  int index = 0;
  while (index < ENGINES - 1 && table[index].engine != engine) index++;
  return table[index].part;
}

enum zb_status zb_engine_find(const char *name, size_t length, const struct zb_engine **engine,
                              struct zb_error *error) {
  const char *names[ENGINES];
  char list[256] = "", asked[64];
  size_t used = 0;
  for (int k = 0; k < ENGINES; k++) {
    names[k] = table[k].engine->name;
    if (strlen(names[k]) == length && strncmp(names[k], name, length) == 0) {
      *engine = table[k].engine;
      return ZB_OK;
    }
    if (used < sizeof list)
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", names[k]);
  }
  snprintf(asked, sizeof asked, "%.*s", (int)length, name);
  const char *nearest = zb_nearest_word(asked, names, ENGINES);
  return zb_fail(error, ZB_BAD_INPUT, "no method \"%s\" in this build%s%s%s: %s", asked,
                 nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "", list);
}

bool zb_engine_available(const struct zb_engine *engine) {
  return engine != &zb_engine_ilp || zb_mip_available();
}

bool zb_engine_accepts(enum zb_need need, const struct zb_profile *profile) {
  switch (need) {
  case ZB_NEED_ANY:
    return true;
  case ZB_NEED_CHAIN:
    return profile->placement == ZB_CHAIN;
  case ZB_NEED_LOOP:
    return profile->placement == ZB_LOOP;
  case ZB_NEED_V:
    return profile->placement == ZB_V;
  }
  return false;
}
