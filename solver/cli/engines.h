// engines.h - the one table of methods: what --method may name, in the order in which help and compare show
// them.
#ifndef ZB_ENGINES_H
#define ZB_ENGINES_H

#include <stdbool.h>

#include "solver/model/engine.h"

// What `auto` does with a method.
enum zb_engine_part {
  ZB_PART_HEURISTIC, // takes milliseconds: auto runs every one that fits the placement
  ZB_PART_SEARCH,    // improves and proves for as long as it is let: auto runs these after the heuristics
  ZB_PART_ALONE,     // does what a search does in another way: run when asked for, and by compare
  ZB_PART_WHOLE,     // auto itself; compare leaves it out, because it repeats the others
};

int zb_engine_count(void);
const struct zb_engine *zb_engine_at(int index);
enum zb_engine_part zb_engine_part_at(int index);
enum zb_engine_part zb_engine_part_of(const struct zb_engine *engine); // of one in the table

// The method called by the `length` bytes at `name`. BAD_INPUT lists the methods of this build.
enum zb_status zb_engine_find(const char *name, size_t length, const struct zb_engine **engine,
                              struct zb_error *error);

// Whether this build can run the method at all, or lacks a library that it needs.
bool zb_engine_available(const struct zb_engine *engine);

// Whether a method that asks for `need` runs on the profile as it is.
bool zb_engine_accepts(enum zb_need need, const struct zb_profile *profile);

// The best of what fits the placement and the limit. Never OVER_LIMIT: where nothing else fits, one
// microbatch at a time does.
extern const struct zb_engine zb_engine_auto;

// Its first half alone: the heuristics, without the searches that use up the time. Arguments as
// zb_engine.solve.
enum zb_status zb_auto_heuristics(const struct zb_problem *problem, const struct zb_schedule *incumbent,
                                  struct zb_result *result, struct zb_error *error);

#endif
