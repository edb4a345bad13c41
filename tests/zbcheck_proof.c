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

enum { NODE_ITEMS = 6 };

/* An inner node on the way down. */
struct inner {
  struct zc_variable variable;
  int64_t value;
  bool above;   /* the second subtree is being read */
  bool entered; /* the windows have the node's restriction */
};

struct walk {
  struct zc_run *run;
  const struct zc_document *document;
  const struct zc_profile *profile;
  enum zc_objective objective;
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
  char name[60];

  snprintf(text, size, "%s", walk->depth == 0 ? "the root" : from ? "the path .." : "the path");
  for (size_t i = from; i < walk->depth; i++) {
    const struct inner *inner = &walk->path[i];
    const struct zc_variable *v = &inner->variable;
    int32_t device = walk->profile->device_of[v->stage];
    if (v->what == ZC_COUNT)
      snprintf(name, sizeof name, "n(%d,%s,%s,%d)", device, zc_kind_names[v->counted],
               zc_kind_names[v->starting], v->index);
    else if (v->what == ZC_FUSED)
      snprintf(name, sizeof name, "fused(%d,B,%d)", device, v->index);
    else
      snprintf(name, sizeof name, "offset(%d)", device);
    snprintf(text + strlen(text), size - strlen(text), " %s%s%lld", name,
             inner->above ? ">" : "<=", (long long)inner->value);
  }
  return text;
}

/* A class of ops, F, B or W. With one stage a device there is no position before it. */
static bool read_class(const struct zc_node *node, enum zc_kind *kind) {
  for (int i = ZC_F; i <= ZC_W; i++) {
    if (node->type == ZC_STRING && zc_text_is(node, zc_kind_names[i])) {
      *kind = (enum zc_kind)i;
      return true;
    }
  }
  return false;
}

static bool empty(const struct zc_node *node) { return node->type == ZC_STRING && node->length == 0; }

static bool read_inner(struct walk *walk, const struct zc_node *node, struct inner *inner) {
  const struct zc_node *item[NODE_ITEMS];
  struct zc_variable *v = &inner->variable;
  int64_t device = 0, index = 0;
  char where[40];
  int i = 0;

  snprintf(where, sizeof where, "proof[%lld]", (long long)walk->item);
  if (node->count != NODE_ITEMS)
    return zc_bad(walk->run, walk->document, node, "%s: a list of %u, expected %d", where, node->count,
                  NODE_ITEMS);
  for (const struct zc_node *at = node->first; at; at = at->next) item[i++] = at;
  if (!zc_integer(walk->run, walk->document, item[1], where, 0, walk->profile->devices - 1, &device) ||
      !zc_integer(walk->run, walk->document, item[4], where, 0, walk->profile->microbatches - 1, &index) ||
      !zc_integer(walk->run, walk->document, item[5], where, -1, ZC_MOST, &inner->value))
    return false;
  v->stage = walk->profile->stages_of[device];
  v->index = (int32_t)index;
  if (item[0]->type == ZC_STRING && zc_text_is(item[0], "n") && read_class(item[2], &v->counted) &&
      read_class(item[3], &v->starting) && v->counted != v->starting) {
    v->what = ZC_COUNT;
  } else if (item[0]->type == ZC_STRING && zc_text_is(item[0], "fused") && read_class(item[2], &v->counted) &&
             v->counted == ZC_B && empty(item[3])) {
    v->what = ZC_FUSED;
  } else if (item[0]->type == ZC_STRING && zc_text_is(item[0], "offset") && empty(item[2]) &&
             empty(item[3]) && index == 0) {
    v->what = ZC_OFFSET;
    if (v->stage == 0 || walk->objective != ZC_PERIOD)
      return zc_bad(walk->run, walk->document, node,
                    "%s: an offset that is fixed, expected one of a period's", where);
  } else {
    return zc_bad(
        walk->run, walk->document, node,
        "%s: expected [\"n\", device, A, B, index, value], [\"fused\", device, \"B\", \"\", index, value] or "
        "[\"offset\", device, \"\", \"\", 0, value]",
        where);
  }
  return true;
}

/* What propagation says about the node just reached. */
static bool take(struct walk *walk, enum zc_outcome outcome) {
  if (outcome == ZC_NO_MEMORY) return zc_stop(walk->run, ZC_FAILED, "out of memory");
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

bool zc_check_proof(struct zc_run *run, const struct zc_document *document, const struct zc_profile *profile,
                    enum zc_objective objective, int64_t target, const struct zc_node *tree) {
  struct walk walk = {
      .run = run, .document = document, .profile = profile, .objective = objective, .target = target};
  bool good;

  walk.windows = zc_windows_new(run, profile, objective, target);
  if (!walk.windows) return false;
  good = take(&walk, zc_windows_propagate(walk.windows));
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
