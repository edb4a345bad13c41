// entry.c - from words to the list of runs.
//
// Two lists are read alike, methods and placements, and then crossed: a method that works on anything runs on
// every placement of the second, one that needs a placement on that one. No entry appears twice, because no
// word may.
#include "solver/cli/entry.h"

#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/cli/method.h"

struct place {
  enum zb_placement placement;
  int chunks;
};

enum { MOST_PLACES = ZB_PLACEMENT_COUNT };

struct places {
  struct place place[MOST_PLACES];
  int count;
};

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && strncmp(text, word, length) == 0;
}

static bool has_place(const struct places *places, enum zb_placement placement) {
  for (int k = 0; k < places->count; k++)
    if (places->place[k].placement == placement) return true;
  return false;
}

static void add_place(struct places *places, enum zb_placement placement, int chunks) {
  if (!has_place(places, placement)) places->place[places->count++] = (struct place){placement, chunks};
}

static struct place place_of(const struct zb_profile *profile, enum zb_placement placement, int64_t chunks) {
  struct place place = {placement, profile->chunks};
  if (placement == ZB_CHAIN) place.chunks = 1;
  if (placement == ZB_V) place.chunks = 2;
  if (placement == ZB_LOOP && chunks) place.chunks = (int)chunks;
  if (placement == ZB_LOOP && !chunks && place.chunks == 1) place.chunks = 2;
  return place;
}

// A list of devices cannot be derived: only a profile that has one can be asked for it.
static enum zb_status read_place(const struct zb_profile *profile, const char *word, size_t length,
                                 int64_t chunks, struct places *places, struct zb_error *error) {
  struct place place = {profile->placement, profile->chunks};
  bool known = is_word(word, length, "own");
  for (int k = 0; k < ZB_PLACEMENT_COUNT && !known; k++) {
    known = is_word(word, length, zb_placement_word((enum zb_placement)k));
    if (known) place = place_of(profile, (enum zb_placement)k, chunks);
  }
  if (!known || (place.placement == ZB_LIST && profile->placement != ZB_LIST))
    return zb_fail(error, ZB_BAD_INPUT, "--placements: \"%.*s\" is not one of own, all, chain, loop, v%s",
                   (int)(length < 64 ? length : 64), word, profile->placement == ZB_LIST ? ", list" : "");
  if (has_place(places, place.placement))
    return zb_fail(error, ZB_BAD_INPUT, "--placements: %s is listed twice",
                   zb_placement_word(place.placement));
  add_place(places, place.placement, place.chunks);
  return ZB_OK;
}

static enum zb_status read_places(const struct zb_profile *profile, const char *words, int64_t chunks,
                                  struct places *places, struct zb_error *error) {
  static const enum zb_placement all[] = {ZB_CHAIN, ZB_LOOP, ZB_V};
  places->count = 0;
  if (strcmp(words, "all") == 0) {
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
      const struct place place = place_of(profile, all[k], chunks);
      add_place(places, place.placement, place.chunks);
    }
    if (profile->placement == ZB_LIST) add_place(places, ZB_LIST, profile->chunks);
    return ZB_OK;
  }
  for (const char *word = words;; word++) {
    const size_t length = strcspn(word, ",");
    enum zb_status status = read_place(profile, word, length, chunks, places, error);
    if (status != ZB_OK) return status;
    word += length;
    if (!*word) return ZB_OK;
  }
}

// The methods to run, in the order of `names`, or of the table.
static enum zb_status list_methods(const char *names, const struct zb_engine **engines, int *count,
                                   struct zb_error *error) {
  *count = 0;
  if (!names) {
    for (int k = 0; k < zb_engine_count(); k++)
      if (zb_engine_part_at(k) != ZB_PART_WHOLE && zb_engine_available(zb_engine_at(k)))
        engines[(*count)++] = zb_engine_at(k);
    return ZB_OK;
  }
  for (const char *name = names;; name++) {
    size_t length = strcspn(name, ",");
    const struct zb_engine *engine;
    enum zb_status status = zb_engine_find(name, length, &engine, error);
    if (status != ZB_OK) return status;
    for (int k = 0; k < *count; k++)
      if (engines[k] == engine)
        return zb_fail(error, ZB_BAD_INPUT, "--methods: %s is listed twice", engine->name);
    engines[(*count)++] = engine;
    name += length;
    if (!*name) return ZB_OK;
  }
}

// Where a method runs that may run anywhere, if nothing was said: on the profile's own placement, a search
// also where the other methods run.
static struct places places_unasked(const struct zb_profile *profile, const struct zb_entry_request *request,
                                    const struct zb_engine *engine, const struct places *needed) {
  struct places places = {.count = 0};
  add_place(&places, profile->placement, profile->chunks);
  if (request->search_everywhere && zb_engine_part_of(engine) == ZB_PART_SEARCH)
    for (int k = 0; k < needed->count; k++)
      add_place(&places, needed->place[k].placement, needed->place[k].chunks);
  return places;
}

// Where each method that needs a placement runs; `asked` NULL: anywhere.
static enum zb_status cross(const struct zb_profile *profile, const struct zb_entry_request *request,
                            const struct zb_engine *const *engines, int methods, const struct places *asked,
                            struct zb_entries *entries, struct zb_error *error) {
  struct places needed = {.count = 0};
  struct place *at = calloc((size_t)methods, sizeof *at);
  if (!at) return zb_fail_memory(error);
  enum zb_status status = ZB_OK;
  for (int k = 0; k < methods && status == ZB_OK; k++) {
    if (engines[k]->need == ZB_NEED_ANY) continue;
    const int64_t chunks = engines[k]->need == ZB_NEED_LOOP ? request->chunks : 0;
    status = zb_method_where(engines[k], profile, chunks, &at[k].placement, &at[k].chunks, error);
    if (status == ZB_OK) add_place(&needed, at[k].placement, at[k].chunks);
  }
  for (int k = 0; k < methods && status == ZB_OK; k++) {
    const struct places any = asked ? *asked : places_unasked(profile, request, engines[k], &needed);
    if (engines[k]->need != ZB_NEED_ANY) {
      if (!asked || has_place(asked, at[k].placement))
        entries->entry[entries->count++] = (struct zb_entry){engines[k], at[k].placement, at[k].chunks};
      continue;
    }
    for (int i = 0; i < any.count; i++)
      entries->entry[entries->count++] =
          (struct zb_entry){engines[k], any.place[i].placement, any.place[i].chunks};
  }
  if (status == ZB_OK && entries->count == 0)
    status =
        zb_fail(error, ZB_BAD_INPUT, "--placements: none of these methods runs on %s", request->placements);
  free(at);
  return status;
}

enum zb_status zb_entries_list(const struct zb_profile *profile, const struct zb_entry_request *request,
                               struct zb_entries *entries, struct zb_error *error) {
  const struct zb_engine **engines = malloc((size_t)zb_engine_count() * sizeof(struct zb_engine *));
  struct zb_entries list = {malloc((size_t)(zb_engine_count() * MOST_PLACES) * sizeof *list.entry), 0};
  struct places asked = {.count = 0};
  int methods = 0;
  enum zb_status status = engines && list.entry ? ZB_OK : zb_fail_memory(error);
  if (status == ZB_OK) status = list_methods(request->methods, engines, &methods, error);
  if (status == ZB_OK && request->placements)
    status = read_places(profile, request->placements, request->chunks, &asked, error);
  if (status == ZB_OK)
    status = cross(profile, request, engines, methods, request->placements ? &asked : NULL, &list, error);
  free(engines);
  if (status == ZB_OK)
    *entries = list;
  else
    zb_entries_free(&list);
  return status;
}

void zb_entries_free(struct zb_entries *entries) {
  free(entries->entry);
  *entries = (struct zb_entries){0};
}

enum zb_status zb_entry_place(const struct zb_entry *entry, const struct zb_profile *profile,
                              struct zb_profile **placed, struct zb_error *error) {
  if (entry->placement == profile->placement && entry->chunks == profile->chunks)
    return zb_profile_copy(profile, placed, error);
  return zb_profile_derive(profile, entry->placement, entry->chunks, placed, error);
}
