// entry.h - what compare, frontier and tune run: methods, each on the placements that it is asked for.
#ifndef ZB_ENTRY_H
#define ZB_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "solver/model/engine.h"
#include "solver/model/profile.h"
#include "solver/model/status.h"

struct zb_entry {
  const struct zb_engine *engine;
  enum zb_placement placement;
  int chunks;
};

struct zb_entries {
  struct zb_entry *entry; // [count] owned
  int count;
};

// What --methods, --placements and --chunks ask for.
struct zb_entry_request {
  const char *methods;    // "a,b,..", NULL: all that this build has but auto
  const char *placements; // "chain,loop,..", "own" for the profile's, "all" for chain, loop and v; NULL: own
  int64_t chunks;         // of a loop, 0: the profile's, or 2 where it has one
  bool search_everywhere; // without `placements`, searches run on every placement that others need
};

// Methods in their order, each on its placements in theirs. A method that needs a placement has that one,
// where it was asked for. BAD_INPUT for an unknown or repeated word, and where nothing is left to run.
// *entries is the caller's: zb_entries_free.
enum zb_status zb_entries_list(const struct zb_profile *profile, const struct zb_entry_request *request,
                               struct zb_entries *entries, struct zb_error *error);

void zb_entries_free(struct zb_entries *entries); // the fields, not the struct

// The entry's profile: a copy, or derived. *placed is the caller's.
enum zb_status zb_entry_place(const struct zb_entry *entry, const struct zb_profile *profile,
                              struct zb_profile **placed, struct zb_error *error);

#endif
