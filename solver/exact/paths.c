// paths.c - steps with a count of what uses them; what nothing uses is taken again.
#include "solver/exact/paths.h"

#include <stdlib.h>

uint32_t zb_paths_add(struct zb_paths *paths, uint32_t before, uint32_t choice) {
  uint32_t at = paths->spare;
  if (at) {
    paths->spare = paths->step[at].before;
  } else {
    if (paths->count == paths->room) {
      if (paths->count >= ZB_NO_PATH / 2) return ZB_NO_PATH;
      const size_t room = paths->room ? 2 * paths->room : 1024;
      struct zb_path_step *grown = realloc(paths->step, room * sizeof *grown);
      if (!grown) return ZB_NO_PATH;
      paths->step = grown;
      paths->room = room;
      if (paths->count == 0) paths->step[paths->count++] = (struct zb_path_step){0};
    }
    at = (uint32_t)paths->count++;
  }
  paths->step[at] = (struct zb_path_step){before, 1, choice};
  if (before) paths->step[before].users++;
  return at;
}

void zb_paths_drop(struct zb_paths *paths, uint32_t path) {
  while (path && --paths->step[path].users == 0) {
    const uint32_t before = paths->step[path].before;
    paths->step[path].before = paths->spare;
    paths->spare = path;
    path = before;
  }
}

size_t zb_paths_length(const struct zb_paths *paths, uint32_t path) {
  size_t length = 0;
  for (; path; path = paths->step[path].before) length++;
  return length;
}

void zb_paths_read(const struct zb_paths *paths, uint32_t path, size_t length, uint32_t *choice) {
  for (; path; path = paths->step[path].before) choice[--length] = paths->step[path].choice;
}

void zb_paths_free(struct zb_paths *paths) {
  free(paths->step);
  *paths = (struct zb_paths){0};
}
