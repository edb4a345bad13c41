/* zbcheck: the proof tree.
 *
 * A flat list in preorder. An inner node names a variable and a value: its first subtree is about the
 * schedules where the variable is at most the value, its second about all others, so that the two halves
 * together are everything the node spoke about. A 0 is a leaf: window propagation, with every restriction on
 * the way down, must refute it. If all leaves are refuted, so is every schedule.
 *
 * Propagation goes on from what it had found at the node above, and takes that back on the way up. Below a
 * node that it refutes there is nothing left to refute; the subtree is then only read. The tree may be deep,
 * so the way down is a stack and not recursion. */
#include "zbcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_ITEMS = 6, CLASS_TEXT = 24 };

/* An inner node on the way down. */
struct inner {
  struct zc_variable variable;
  char counted[CLASS_TEXT], starting[CLASS_TEXT]; /* as written */
  int64_t value;
  bool above;   /* the second subtree is being read */
  bool entered; /* the windows have the node's restriction */
};

struct walk {
  struct zc_run *run;
  const struct zc_document *document;
  const struct zc_profile *profile;
  int64_t target;
  struct zc_windows *windows;
  struct inner *path;
  size_t depth, room;
  size_t refuted_at; /* depth + 1 of the node that is refuted as a whole, 0 while none on the way is */
  int64_t item, leaves;
};

/* The last turns of the way down, "n(3,F,B,10)<=7": device, counted, starting, index, and which half. */
static const char *describe(const struct walk *walk, char *text, size_t size) {
  size_t from = walk->depth > 6 ? walk->depth - 6 : 0;
  char name[90];

  snprintf(text, size, "%s", walk->depth == 0 ? "the root" : from ? "the path .." : "the path");
  for (size_t i = from; i < walk->depth; i++) {
    const struct inner *inner = &walk->path[i];
    const struct zc_variable *v = &inner->variable;
    if (v->what == ZC_COUNT)
      snprintf(name, sizeof name, "n(%d,%s,%s,%d)", v->device, inner->counted, inner->starting, v->index);
    else if (v->what == ZC_FUSED)
      snprintf(name, sizeof name, "fused(%d,%s,%d)", v->device, inner->counted, v->index);
    else
      snprintf(name, sizeof name, "offset(%d)", v->device);
    snprintf(text + strlen(text), size - strlen(text), " %s%s%lld", name,
             inner->above ? ">" : "<=", (long long)inner->value);
  }
  return text;
}

/* A class of ops: F, B or W, behind the position of its stage where the device has several. */
static bool read_class(const struct walk *walk, const struct zc_node *node, int32_t device,
                       char text[CLASS_TEXT], enum zc_kind *kind, int32_t *number) {
  int32_t chunk = -1;
  size_t digits;

  if (node->type != ZC_STRING || node->length >= CLASS_TEXT || strlen(node->text) != node->length)
    return false;
  memcpy(text, node->text, node->length + 1);
  digits = strspn(text, "0123456789");
  if (digits > 2 || (digits == 2 && text[0] == '0')) return false;
  if (digits > 0) chunk = 0;
  for (size_t i = 0; i < digits; i++) chunk = chunk * 10 + text[i] - '0';
  for (int i = ZC_F; i <= ZC_W; i++) {
    if (strcmp(text + digits, zc_kind_names[i]) == 0) {
      *kind = (enum zc_kind)i;
      *number = zc_windows_class(walk->windows, device, chunk, *kind);
      return *number >= 0;
    }
  }
  return false;
}

static bool empty(const struct zc_node *node) { return node->type == ZC_STRING && node->length == 0; }

static bool read_variable(struct walk *walk, const struct zc_node *const item[NODE_ITEMS],
                          struct inner *inner) {
  struct zc_variable *v = &inner->variable;
  enum zc_kind counted = ZC_F, starting = ZC_F;

  if (item[0]->type != ZC_STRING) return false;
  if (zc_text_is(item[0], "n")) {
    v->what = ZC_COUNT;
    return read_class(walk, item[2], v->device, inner->counted, &counted, &v->counted) &&
           read_class(walk, item[3], v->device, inner->starting, &starting, &v->starting) &&
           v->counted != v->starting;
  }
  if (zc_text_is(item[0], "fused")) {
    v->what = ZC_FUSED;
    return read_class(walk, item[2], v->device, inner->counted, &counted, &v->counted) && counted == ZC_B &&
           empty(item[3]);
  }
  v->what = ZC_OFFSET;
  return zc_text_is(item[0], "offset") && empty(item[2]) && empty(item[3]);
}

static bool read_inner(struct walk *walk, const struct zc_node *node, struct inner *inner) {
  const struct zc_node *item[NODE_ITEMS];
  struct zc_variable *v = &inner->variable;
  int64_t device = 0, index = 0, ops = 1;
  char where[40];
  int i = 0;

  snprintf(where, sizeof where, "proof[%lld]", (long long)walk->item);
  if (node->count != NODE_ITEMS)
    return zc_bad(walk->run, walk->document, node, "%s: a list of %u, expected %d", where, node->count,
                  NODE_ITEMS);
  for (const struct zc_node *at = node->first; at; at = at->next) item[i++] = at;
  if (!zc_integer(walk->run, walk->document, item[1], where, 0, walk->profile->devices - 1, &device))
    return false;
  v->device = (int32_t)device;
  if (!read_variable(walk, item, inner))
    return zc_bad(walk->run, walk->document, node,
                  "%s: expected [\"n\", device, A, B, index, value], [\"fused\", device, \"%sB\", \"\", "
                  "index, value] or "
                  "[\"offset\", device, \"\", \"\", 0, value]",
                  where, walk->profile->chunks > 1 ? "0" : "");
  if (v->what == ZC_COUNT)
    ops = zc_windows_class_size(walk->windows, v->device, v->starting);
  else if (v->what == ZC_FUSED)
    ops = walk->profile->microbatches;
  if (!zc_integer(walk->run, walk->document, item[4], where, 0, ops - 1, &index) ||
      !zc_integer(walk->run, walk->document, item[5], where, -1, ZC_MOST, &inner->value))
    return false;
  v->index = (int32_t)index;
  if (v->what == ZC_OFFSET && !zc_windows_offset_open(walk->windows, v->device))
    return zc_bad(walk->run, walk->document, node,
                  "%s: an offset that is fixed, expected one that is an interval", where);
  return true;
}

/* What propagation says about the node just reached. */
static bool take(struct walk *walk, enum zc_outcome outcome) {
  if (outcome == ZC_NO_MEMORY) return zc_stop(walk->run, ZC_FAILED, "out of memory");
  if (outcome == ZC_TOO_LARGE)
    return zc_stop(walk->run, ZC_NOT_REDONE,
                   "a device with %d stages and %d microbatches has too many states", walk->profile->chunks,
                   walk->profile->microbatches);
  if (outcome == ZC_REFUTED) walk->refuted_at = walk->depth + 1;
  return true;
}

/* Goes down into the last inner node's current half. */
static bool enter(struct walk *walk) {
  struct inner *inner = &walk->path[walk->depth - 1];

  inner->entered = walk->refuted_at == 0;
  return !inner->entered ||
         take(walk, zc_windows_enter(walk->windows, &inner->variable, inner->value, inner->above));
}

/* After a subtree: on to its sibling, or up past all nodes whose second half this was. */
static bool leave(struct walk *walk) {
  while (walk->depth > 0) {
    struct inner *inner = &walk->path[walk->depth - 1];
    if (walk->refuted_at == walk->depth + 1) walk->refuted_at = 0;
    if (inner->entered) zc_windows_leave(walk->windows);
    if (!inner->above) {
      inner->above = true;
      return enter(walk);
    }
    walk->depth--;
  }
  return true;
}

static bool take_leaf(struct walk *walk) {
  char text[400];

  walk->leaves++;
  if (walk->refuted_at == 0 && walk->item < 0)
    return zc_stop(walk->run, ZC_WRONG,
                   "bound_ns says %lld, propagation does not refute %lld and there is no proof tree",
                   (long long)walk->target + 1, (long long)walk->target);
  if (walk->refuted_at == 0)
    return zc_stop(walk->run, ZC_WRONG, "proof[%lld]: leaf %lld is not refuted for a cost of %lld: %s",
                   (long long)walk->item, (long long)walk->leaves, (long long)walk->target,
                   describe(walk, text, sizeof text));
  return true;
}

static bool take_inner(struct walk *walk, const struct zc_node *node) {
  void *table = walk->path;
  struct inner inner = {.above = false};

  if (!read_inner(walk, node, &inner) ||
      !zc_grow(walk->run, &table, &walk->room, walk->depth + 1, sizeof *walk->path))
    return false;
  walk->path = table;
  walk->path[walk->depth++] = inner;
  return enter(walk);
}

static bool walk_tree(struct walk *walk, const struct zc_node *tree) {
  bool open = true; /* some subtree is still to come */

  for (const struct zc_node *node = tree->first; node; node = node->next, walk->item++) {
    if (!open)
      return zc_stop(walk->run, ZC_WRONG, "proof[%lld]: items after the end of the tree",
                     (long long)walk->item);
    if (node->type == ZC_ARRAY) {
      if (!take_inner(walk, node)) return false;
    } else if (node->type == ZC_NUMBER && zc_text_is(node, "0")) {
      if (!take_leaf(walk) || !leave(walk)) return false;
      open = walk->depth > 0;
    } else {
      return zc_bad(walk->run, walk->document, node, "proof[%lld]: expected 0 or a list",
                    (long long)walk->item);
    }
  }
  char text[400];
  return !open || zc_stop(walk->run, ZC_WRONG, "proof: ends after %lld items with a half missing: %s",
                          (long long)walk->item, describe(walk, text, sizeof text));
}

static bool search(struct walk *walk, enum zc_rules rules) {
  enum zc_outcome outcome =
      rules == ZC_FRONTS ? zc_fronts_search(walk->windows) : zc_fluid_search(walk->windows);

  if (outcome == ZC_TOO_LARGE)
    return zc_stop(walk->run, ZC_NOT_REDONE, "relaxation says %s, and they need more than 2 GiB",
                   rules == ZC_FRONTS ? "fronts" : "fluid-fronts");
  if (outcome == ZC_OPEN && rules == ZC_FLUID_FRONTS)
    return zc_stop(walk->run, ZC_WRONG,
                   "bound_ns says %lld, and with W poured a schedule of cost %lld or less was found",
                   (long long)walk->target + 1, (long long)walk->target);
  if (outcome == ZC_OPEN)
    return zc_stop(walk->run, ZC_WRONG, "bound_ns says %lld, and a schedule of cost %lld or less was found",
                   (long long)walk->target + 1, (long long)walk->target);
  return take(walk, outcome);
}

bool zc_check_proof(struct zc_run *run, const struct zc_document *document, const struct zc_profile *profile,
                    enum zc_objective objective, int64_t target, enum zc_rules rules,
                    const struct zc_node *tree) {
  struct walk walk = {.run = run, .document = document, .profile = profile, .target = target};
  bool good;

  if (profile->chunks > ZC_MOST_CHUNKS)
    return zc_stop(run, ZC_NOT_REDONE, "%d stages a device, at most %d are", profile->chunks, ZC_MOST_CHUNKS);
  walk.windows = zc_windows_new(run, profile, objective, target, rules == ZC_POURED);
  if (!walk.windows) return false;
  good = take(&walk, zc_windows_propagate(walk.windows));
  if (good && rules >= ZC_FRONTS && walk.refuted_at == 0) good = search(&walk, rules);
  if (good && tree) {
    good = walk_tree(&walk, tree);
  } else if (good) {
    walk.item = -1;
    good = take_leaf(&walk);
  }
  zc_note(run, "%lld leaves, target %lld ns", (long long)walk.leaves, (long long)target);
  zc_windows_free(walk.windows);
  free(walk.path);
  return good;
}
