// paths.h - how the nodes of a search came about: the choices that led to each, shared and counted.
#ifndef ZB_PATHS_H
#define ZB_PATHS_H

#include <stddef.h>
#include <stdint.h>

struct zb_path_step {
  uint32_t before, users, choice;
};

// Step 0 is the empty path. All zero: no steps yet. zb_paths_free takes that, too.
struct zb_paths {
  struct zb_path_step *step;
  size_t count, room;
  uint32_t spare; // given back, chained by `before`; 0: none
};

#define ZB_NO_PATH UINT32_MAX

// A path longer by one choice, for one user; ZB_NO_PATH where memory ran out.
uint32_t zb_paths_add(struct zb_paths *paths, uint32_t before, uint32_t choice);
// One user less.
void zb_paths_drop(struct zb_paths *paths, uint32_t path);
// The choices of a path, first to last: how many, and with room for them [length] each.
size_t zb_paths_length(const struct zb_paths *paths, uint32_t path);
void zb_paths_read(const struct zb_paths *paths, uint32_t path, size_t length, uint32_t *choice);
void zb_paths_free(struct zb_paths *paths);

#endif
