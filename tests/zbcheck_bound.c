/* zbcheck: from a bound to its proof.
 *
 * A bound holds if no schedule costs bound - 1 or less. Three ways to see that, cheapest first: the closed
 * form below; window propagation (zbcheck_window.c) that refutes bound - 1 as it stands; a proof tree in the
 * file, whose leaves propagation refutes one by one (zbcheck_proof.c). A tree is walked whenever there is
 * one, so that it is checked too. A file whose bound needs less than the rules of propagation says so, and is
 * held to it: `relaxation` changes what the leaves may use. With `fronts` it needs more, a search in place of
 * a tree (zbcheck_front.c); with `fluid-fronts` another, that relaxes something (zbcheck_fluid.c). */
#include "zbcheck.h"

#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Least time of one backward, without and with its weight part. */
static int64_t short_backward(const struct zc_profile *p, int32_t s) { return least(p->b[s], p->bw[s]); }

static int64_t full_backward(const struct zc_profile *p, int32_t s) {
  return least(p->b[s] + p->w[s], p->bw[s]);
}

/* All forwards and backwards of a device, the backwards whole or without their weight parts. */
static int64_t device_work(const struct zc_profile *p, int32_t device, bool whole) {
  int64_t once = 0;

  for (int32_t c = 0; c < p->chunks; c++) {
    int32_t s = p->stages_of[device * p->chunks + c];
    once += p->f[s] + (whole ? full_backward(p, s) : short_backward(p, s));
  }
  return once * p->microbatches;
}

/* What device d, with lowest stage a, cannot do without, from its first op to its last:
 *   - its own work;
 *   - for any device e with lowest stage z > a: what begins first on e came down the pipe from a; e then
 * works through all its forwards and backwards (at least without W); the last of these is a backward of z
 * (one of a higher stage would be followed by it), and has to come back up to a, where a whole backward
 * remains;
 *   - for any stage z > a: one microbatch down to z and back, for a device's first op may come no earlier.
 * Nothing here depends on order or on when d begins, so it bounds span and period; the makespan begins with
 * the way from stage 0 to a besides. */
static int64_t device_bound(const struct zc_profile *p, int32_t device) {
  int32_t a = p->stages_of[device * p->chunks];
  int64_t fill = 0, drain = 0, bound = device_work(p, device, true);

  bound = most(bound, p->f[a] + full_backward(p, a));
  for (int32_t z = a + 1; z < p->stages; z++) {
    int32_t other = p->device_of[z];
    fill += p->f[z - 1] + p->forward[z - 1];
    drain += p->backward[z - 1] + (z - 1 > a ? short_backward(p, z - 1) : 0);
    int64_t around = fill + drain + full_backward(p, a);
    bound = most(bound, around + p->f[z] + short_backward(p, z));
    if (p->stages_of[other * p->chunks] == z) bound = most(bound, around + device_work(p, other, false));
  }
  return bound;
}

int64_t zc_closed_form(const struct zc_profile *profile, enum zc_objective objective) {
  int64_t bound = 0;

  for (int32_t d = 0; d < profile->devices; d++) {
    int64_t before = 0;
    for (int32_t s = 0; objective == ZC_MAKESPAN && s < profile->stages_of[d * profile->chunks]; s++)
      before += profile->f[s] + profile->forward[s];
    bound = most(bound, before + device_bound(profile, d));
  }
  return bound;
}

/* The path of a file beside the schedule. */
static const char *beside(struct zc_run *run, const struct zc_document *document,
                          const struct zc_node *file) {
  const char *slash = strrchr(document->path, '/');
  size_t folder = slash ? (size_t)(slash - document->path) + 1 : 0;

  if (file->length == 0 || strlen(file->text) != file->length || strchr(file->text, '/')) {
    zc_bad(run, document, file, "proof.file: \"%.60s\", expected the name of a file beside the schedule",
           file->text);
    return NULL;
  }
  char *path = zc_alloc(run, folder + file->length + 1, 1);
  if (path) {
    memcpy(path, document->path, folder);
    memcpy(path + folder, file->text, file->length);
  }
  return path;
}

/* The proof tree: from the command line's file, from the file that the schedule names, from the schedule, or
 * none. *tree is left alone where there is none. */
static bool find_tree(struct zc_run *run, const struct zc_document *document,
                      const struct zc_schedule *schedule, const char *proof_path, struct zc_document *other,
                      const struct zc_node **tree) {
  const struct zc_node *proof = schedule->proof, *file = NULL, *digest = NULL;
  const struct zc_field fields[] = {{"file", ZC_STRING, true, &file}, {"sha256", ZC_STRING, true, &digest}};
  const char *path = proof_path, *bytes;
  bool missing = false;
  char hex[65];
  size_t length;

  if (proof && proof->type == ZC_ARRAY && !path) {
    *tree = proof;
    *other = *document;
    return true;
  }
  if (proof && proof->type == ZC_OBJECT) {
    if (!zc_fields(run, document, proof, "proof", fields, 2)) return false;
    if (!path && !(path = beside(run, document, file))) return false;
  }
  if (!path) return true;
  if (!zc_read_file(run, path, &bytes, &length, &missing)) {
    if (missing) run->finding.verdict = ZC_NOT_REDONE;
    return false;
  }
  if (digest) {
    zc_sha256(bytes, length, hex);
    if (!zc_text_is(digest, hex))
      return zc_stop(run, ZC_WRONG, "proof.sha256 says %.64s, %s has %s", digest->text, path, hex);
  }
  if (!zc_parse(run, path, bytes, length, other)) return false;
  if (other->root->type != ZC_ARRAY)
    return zc_bad(run, other, other->root, "not a list, expected a proof tree");
  *tree = other->root;
  return true;
}

/* Whether the search of `fluid-fronts` is for such a placement: its W are one pool on each device, and with
 * several stages a device may start later than what feeds it lets it. */
static bool check_placement(struct zc_run *run, const struct zc_profile *p, enum zc_objective objective,
                            const char *word) {
  for (int32_t d = 0; d < p->devices; d++) {
    const int32_t *stages = p->stages_of + d * p->chunks;
    int32_t feeder = stages[0] - 1;
    if (objective == ZC_SPAN && feeder >= 0 && p->stages_of[p->device_of[feeder] * p->chunks] != feeder)
      return zc_stop(run, ZC_WRONG,
                     "relaxation says %s, but the span depends on when device %d starts, which is open", word,
                     d);
    for (int32_t c = 1; c < p->chunks; c++)
      if (p->w[stages[c]] != p->w[stages[0]] || p->keep_w[stages[c]] != p->keep_w[stages[0]])
        return zc_stop(run, ZC_WRONG, "relaxation says %s, but W of stages %d and %d, on one device, differ",
                       word, stages[0], stages[c]);
  }
  return true;
}

/* Whether a search in layers is for such a profile: see zbcheck_front.c and zbcheck_fluid.c. */
static bool check_fronts(struct zc_run *run, const struct zc_profile *p, const struct zc_schedule *schedule,
                         enum zc_rules rules, const char *word, bool has_tree) {
  for (int32_t s = 0; rules == ZC_FRONTS && s < p->stages; s++)
    if (p->device_of[s] != s) return zc_stop(run, ZC_WRONG, "relaxation says %s, which is for a chain", word);
  if (schedule->objective == ZC_PERIOD)
    return zc_stop(run, ZC_WRONG, "relaxation says %s, which is for span and makespan", word);
  if (has_tree) return zc_stop(run, ZC_WRONG, "relaxation says %s, which has no proof tree", word);
  for (int32_t s = 0; s < p->stages; s++) {
    if (p->bw[s] < p->b[s] + p->w[s])
      return zc_stop(run, ZC_WRONG, "relaxation says %s, but BW of stage %d is faster than B and W", word, s);
    if (p->keep_b[s] > 0 && p->limit[p->device_of[s]] != ZC_NO_LIMIT)
      return zc_stop(run, ZC_WRONG, "relaxation says %s, but B of stage %d adds to memory that is limited",
                     word, s);
  }
  return check_placement(run, p, schedule->objective, word);
}

/* What the file's word relaxes, or adds. */
static bool read_relaxation(struct zc_run *run, const struct zc_profile *profile,
                            const struct zc_schedule *schedule, bool has_tree, enum zc_rules *rules) {
  static const struct {
    const char *word;
    enum zc_rules rules;
  } searches[] = {{"fronts", ZC_FRONTS}, {"fluid-fronts", ZC_FLUID_FRONTS}};
  const struct zc_node *word = schedule->relaxation;
  bool in_order = true;

  *rules = ZC_SWEPT;
  if (!word) return true;
  for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++) {
    if (!zc_text_is(word, searches[i].word)) continue;
    *rules = searches[i].rules;
    return check_fronts(run, profile, schedule, *rules, searches[i].word, has_tree);
  }
  for (int32_t s = 0; s < profile->stages; s++) in_order = in_order && profile->device_of[s] == s;
  *rules = ZC_POURED;
  if (!zc_text_is(word, "fluid-w"))
    return zc_stop(run, ZC_WRONG, "relaxation says %.60s, known are fluid-w, fronts and fluid-fronts",
                   word->text);
  return !in_order || zc_stop(run, ZC_WRONG, "relaxation says fluid-w, on a chain every W is counted");
}

bool zc_check_bound(struct zc_run *run, const struct zc_document *document, const struct zc_profile *profile,
                    const struct zc_schedule *schedule, const char *proof_path) {
  int64_t closed = zc_closed_form(profile, schedule->objective);
  struct zc_document tree_document = {0};
  const struct zc_node *tree = NULL;
  enum zc_rules rules;

  if (!read_relaxation(run, profile, schedule, schedule->proof || proof_path, &rules)) return false;
  if (!find_tree(run, document, schedule, proof_path, &tree_document, &tree)) return false;
  zc_note(run, "the closed form gives %lld ns", (long long)closed);
  if (!tree && closed >= schedule->bound) return true;
  return zc_check_proof(run, &tree_document, profile, schedule->objective, schedule->bound - 1, rules, tree);
}
