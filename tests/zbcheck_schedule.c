/* zbcheck: the schedule as the file says it.
 *
 * Reading gives a list of ops a device, with what each has to wait for, and refuses whatever is not exactly
 * the set of ops that the profile asks for: every (stage, microbatch) has one F and either one B and one W or
 * one BW, on the device that holds the stage. Nothing is recomputed here but the links between ops. */
#include "zbcheck.h"

#include <stdio.h>
#include <string.h>

const char *const zc_kind_names[] = {"F", "B", "W", "BW"};
const char *const zc_objective_names[] = {"span", "makespan", "period", NULL};
const char *const zc_status_names[] = {"optimal", "feasible", "infeasible", "unknown", NULL};

struct reader {
  struct zc_run *run;
  const struct zc_document *document;
  const struct zc_profile *profile;
  struct zc_schedule *schedule;
  int32_t room; /* ops allocated */
  int32_t *at;  /* [(stage * microbatches + microbatch) * 3 + F, B or W]: op number + 1; BW stands in both B
                   and W */
};

const char *zc_op_name(const struct zc_op *op, char name[32]) {
  snprintf(name, 32, "%d%s%d", op->stage, zc_kind_names[op->kind], op->microbatch);
  return name;
}

/* Which of a list of words, ended by NULL, a string is. */
static bool read_word(struct reader *r, const struct zc_node *node, const char *where,
                      const char *const *words, int *which) {
  char known[80] = "";

  for (int i = 0; words[i]; i++) {
    if (zc_text_is(node, words[i])) {
      *which = i;
      return true;
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", words[i]);
  }
  return zc_bad(r->run, r->document, node, "%s: \"%.20s\", expected one of %s", where, node->text, known);
}

/* Digits without leading zeros, at most 2^31 - 1. */
static bool read_index(const char **at, int32_t *value) {
  const char *start = *at;
  int64_t read = 0;

  while (**at >= '0' && **at <= '9' && read <= INT32_MAX) read = read * 10 + *(*at)++ - '0';
  *value = (int32_t)read;
  return *at > start && read <= INT32_MAX && (*start != '0' || *at == start + 1);
}

static bool read_op(struct reader *r, const struct zc_node *node, int32_t device, uint32_t position,
                    struct zc_op *op) {
  const struct zc_profile *p = r->profile;
  const char *at = node->text ? node->text : "";
  int kind = 0;

  if (node->type != ZC_STRING)
    return zc_bad(r->run, r->document, node, "devices[%d].ops[%u]: not a string, expected an op like 0F0",
                  device, position);
  bool good = read_index(&at, &op->stage);
  while (good && kind < 4 &&
         !(strncmp(at, zc_kind_names[kind], strspn(at, "FBW")) == 0 &&
           strlen(zc_kind_names[kind]) == strspn(at, "FBW")))
    kind++;
  good = good && kind < 4;
  if (good) at += strlen(zc_kind_names[kind]);
  if (!good || !read_index(&at, &op->microbatch) || at != node->text + node->length)
    return zc_bad(r->run, r->document, node,
                  "devices[%d].ops[%u]: \"%.30s\", expected <stage><F, B, W or BW><microbatch>", device,
                  position, node->text);
  if (op->stage >= p->stages)
    return zc_stop(r->run, ZC_WRONG, "device %d, position %u, %s: there is no stage %d, the profile has %d",
                   device, position, node->text, op->stage, p->stages);
  if (op->microbatch >= p->microbatches)
    return zc_stop(r->run, ZC_WRONG,
                   "device %d, position %u, %s: there is no microbatch %d, the profile has %d", device,
                   position, node->text, op->microbatch, p->microbatches);
  op->kind = (enum zc_kind)kind;
  op->device = device;
  op->time = (const int64_t *[]){p->f, p->b, p->w, p->bw}[kind][op->stage];
  return true;
}

static int32_t *slot(const struct reader *r, int32_t stage, int32_t microbatch, enum zc_kind kind) {
  return &r->at[((int64_t)stage * r->profile->microbatches + microbatch) * 3 + kind];
}

/* Notes where an op stands, and that it stands nowhere else and on its own device. */
static bool claim(struct reader *r, int32_t number) {
  const struct zc_op *op = &r->schedule->ops[number];
  int32_t position = number - r->schedule->first[op->device], home = r->profile->device_of[op->stage];
  enum zc_kind taken[2] = {op->kind == ZC_BW ? ZC_B : op->kind, op->kind == ZC_BW ? ZC_W : op->kind};
  char name[32], other[32];

  zc_op_name(op, name);
  if (home != op->device)
    return zc_stop(r->run, ZC_WRONG, "device %d, position %d, %s: stage %d is on device %d", op->device,
                   position, name, op->stage, home);
  for (int i = 0; i < 2; i++) {
    int32_t *where = slot(r, op->stage, op->microbatch, taken[i]);
    if (*where && *where != number + 1)
      return zc_stop(r->run, ZC_WRONG, "device %d, position %d, %s: done already by %s at position %d",
                     op->device, position, name, zc_op_name(&r->schedule->ops[*where - 1], other),
                     *where - 1 - r->schedule->first[op->device]);
    *where = number + 1;
  }
  return true;
}

static bool read_ops(struct reader *r, const struct zc_node *ops, const struct zc_node *starts,
                     int32_t device) {
  struct zc_schedule *s = r->schedule;
  const struct zc_node *start = starts->first;
  uint32_t position = 0;
  char where[60];

  if (ops->count != starts->count)
    return zc_bad(r->run, r->document, starts, "devices[%d].start_ns: a list of %u, expected %u, one an op",
                  device, starts->count, ops->count);
  for (const struct zc_node *node = ops->first; node; node = node->next, start = start->next, position++) {
    if (s->op_count == r->room)
      return zc_stop(r->run, ZC_WRONG, "device %d, position %u: more ops than the profile has", device,
                     position);
    struct zc_op *op = &s->ops[s->op_count];
    snprintf(where, sizeof where, "devices[%d].start_ns[%u]", device, position);
    if (!read_op(r, node, device, position, op) ||
        !zc_integer(r->run, r->document, start, where, 0, ZC_MOST, &op->said_start) || !claim(r, s->op_count))
      return false;
    s->op_count++;
  }
  return true;
}

static bool check_stages(struct reader *r, const struct zc_node *list, int32_t device) {
  const struct zc_profile *p = r->profile;
  int32_t c = 0;
  char where[60];

  if (list->count != (uint32_t)p->chunks)
    return zc_stop(r->run, ZC_WRONG, "device %d: `stages` lists %u, the profile places %d there", device,
                   list->count, p->chunks);
  for (const struct zc_node *item = list->first; item; item = item->next, c++) {
    int64_t stage = 0;
    snprintf(where, sizeof where, "devices[%d].stages[%d]", device, c);
    if (!zc_integer(r->run, r->document, item, where, 0, p->stages - 1, &stage)) return false;
    if (stage != p->stages_of[device * p->chunks + c])
      return zc_stop(r->run, ZC_WRONG, "device %d: stages[%d] says %d, the profile places stage %d there",
                     device, c, (int)stage, p->stages_of[device * p->chunks + c]);
  }
  return true;
}

static bool read_device(struct reader *r, const struct zc_node *node, int32_t device) {
  const struct zc_node *number, *stages, *ops, *starts, *peak, *busy, *idle;
  const struct zc_field fields[] = {
      {"device", ZC_NUMBER, true, &number},   {"stages", ZC_ARRAY, true, &stages},
      {"ops", ZC_ARRAY, true, &ops},          {"start_ns", ZC_ARRAY, true, &starts},
      {"peak_bytes", ZC_NUMBER, true, &peak}, {"busy_ns", ZC_NUMBER, true, &busy},
      {"idle_ns", ZC_NUMBER, true, &idle},
  };
  struct zc_schedule *s = r->schedule;
  int64_t said = 0;
  char where[40];

  snprintf(where, sizeof where, "devices[%d]", device);
  if (node->type != ZC_OBJECT)
    return zc_bad(r->run, r->document, node, "%s: not an object, expected one", where);
  if (!zc_fields(r->run, r->document, node, where, fields, sizeof fields / sizeof fields[0]) ||
      !zc_integer(r->run, r->document, number, "device", 0, INT32_MAX, &said))
    return false;
  if (said != device)
    return zc_stop(r->run, ZC_WRONG, "device %d: `device` says %lld", device, (long long)said);
  s->first[device] = s->op_count;
  return zc_integer(r->run, r->document, peak, "peak_bytes", 0, ZC_MOST, &s->peak[device]) &&
         zc_integer(r->run, r->document, busy, "busy_ns", 0, ZC_MOST, &s->busy[device]) &&
         zc_integer(r->run, r->document, idle, "idle_ns", 0, ZC_MOST, &s->idle[device]) &&
         check_stages(r, stages, device) && read_ops(r, ops, starts, device);
}

static bool check_complete(struct reader *r) {
  const struct zc_profile *p = r->profile;

  for (int32_t stage = 0; stage < p->stages; stage++)
    for (int32_t k = 0; k < p->microbatches; k++)
      for (int kind = ZC_F; kind <= ZC_W; kind++)
        if (*slot(r, stage, k, (enum zc_kind)kind) == 0)
          return zc_stop(r->run, ZC_WRONG, "device %d: %d%s%d is missing", p->device_of[stage], stage,
                         zc_kind_names[kind], k);
  return true;
}

/* What an op waits for, beside the op before it on its device. */
static void link_op(struct reader *r, struct zc_op *op) {
  const struct zc_profile *p = r->profile;

  op->before[0] = op->before[1] = -1;
  if (op->kind == ZC_F) {
    if (op->stage > 0) {
      op->before[0] = *slot(r, op->stage - 1, op->microbatch, ZC_F) - 1;
      op->delay[0] = p->forward[op->stage - 1];
    }
  } else if (op->kind == ZC_W) {
    op->before[0] = *slot(r, op->stage, op->microbatch, ZC_B) - 1;
  } else {
    op->before[0] = *slot(r, op->stage, op->microbatch, ZC_F) - 1;
    if (op->stage < p->stages - 1) {
      op->before[1] = *slot(r, op->stage + 1, op->microbatch, ZC_B) - 1;
      op->delay[1] = p->backward[op->stage];
    }
  }
}

/* Counts the ops that the file lists before anything is sized by what the profile asks for. */
static bool allocate(struct reader *r, const struct zc_node *list) {
  const struct zc_profile *p = r->profile;
  struct zc_schedule *s = r->schedule;
  size_t devices = (size_t)p->devices;
  int64_t listed = 0, pairs = (int64_t)p->stages * p->microbatches;

  for (const struct zc_node *device = list->first; device; device = device->next)
    for (const struct zc_node *member = device->first; member; member = member->next)
      if (member->key && strcmp(member->key, "ops") == 0) listed += member->count;
  if (listed < pairs)
    return zc_stop(r->run, ZC_WRONG, "devices: %lld ops in all, the profile needs at least %lld",
                   (long long)listed, (long long)pairs * 2);
  r->room = (int32_t)(pairs * 3);
  return (s->ops = zc_alloc(r->run, (size_t)r->room, sizeof *s->ops)) &&
         (r->at = zc_alloc(r->run, (size_t)r->room, sizeof *r->at)) &&
         (s->first = zc_alloc(r->run, devices + 1, sizeof *s->first)) &&
         (s->peak = zc_alloc(r->run, devices, sizeof *s->peak)) &&
         (s->busy = zc_alloc(r->run, devices, sizeof *s->busy)) &&
         (s->idle = zc_alloc(r->run, devices, sizeof *s->idle));
}

static bool read_devices(struct reader *r, const struct zc_node *list) {
  struct zc_schedule *s = r->schedule;
  int32_t device = 0;

  if (list->count != (uint32_t)r->profile->devices)
    return zc_stop(r->run, ZC_WRONG, "devices: a list of %u, the profile has %d", list->count,
                   r->profile->devices);
  if (!allocate(r, list)) return false;
  for (const struct zc_node *node = list->first; node; node = node->next, device++)
    if (!read_device(r, node, device)) return false;
  s->first[device] = s->op_count;
  if (!check_complete(r)) return false;
  for (int32_t i = 0; i < s->op_count; i++) link_op(r, &s->ops[i]);
  return true;
}

/* A field that a schedule with devices must have, and one without cannot. */
struct figure {
  const char *key;
  const struct zc_node *node;
  int64_t *value; /* NULL: a ratio, compared later in its own text */
};

static bool read_figures(struct reader *r, const struct zc_node *root, const struct figure *figures,
                         size_t count, bool expected) {
  for (size_t i = 0; i < count; i++) {
    const struct zc_node *node = figures[i].node;
    bool there = node && node->type != ZC_NULL;
    if (there && !expected)
      return zc_bad(r->run, r->document, node, "%s: there is no schedule that it could belong to",
                    figures[i].key);
    if (!there && expected)
      return zc_bad(r->run, r->document, node ? node : root, "%s: missing, expected a number",
                    figures[i].key);
    if (there && figures[i].value &&
        !zc_integer(r->run, r->document, node, figures[i].key, 0, ZC_MOST, figures[i].value))
      return false;
  }
  return true;
}

bool zc_read_schedule(struct zc_run *run, const struct zc_document *document, struct zc_profile *profile,
                      struct zc_schedule *schedule) {
  const struct zc_node *root = document->root, *version, *inner, *method, *objective, *status, *devices,
                       *bound;
  struct figure figures[] = {
      {"cost_ns", NULL, &schedule->cost},
      {"span_ns", NULL, &schedule->span},
      {"makespan_ns", NULL, &schedule->makespan},
      {"period_ns", NULL, &schedule->period},
      {"gap", NULL, NULL},
      {"bubble_rate", NULL, NULL},
  };
  const unsigned number = ZC_NUMBER | ZC_NULL;
  const struct zc_field fields[] = {
      {"zbsolve_schedule", ZC_NUMBER, true, &version},
      {"profile", ZC_OBJECT, true, &inner},
      {"method", ZC_STRING, true, &method},
      {"objective", ZC_STRING, true, &objective},
      {"status", ZC_STRING, true, &status},
      {"cost_ns", number, false, &figures[0].node},
      {"bound_ns", number, false, &bound},
      {"gap", number, false, &figures[4].node},
      {"bubble_rate", number, false, &figures[5].node},
      {"span_ns", number, false, &figures[1].node},
      {"period_ns", number, false, &figures[3].node},
      {"makespan_ns", number, false, &figures[2].node},
      {"devices", ZC_ARRAY, false, &devices},
      {"proof", ZC_ARRAY | ZC_OBJECT, false, &schedule->proof},
      {"relaxation", ZC_STRING, false, &schedule->relaxation},
      {"reason", ZC_OBJECT, false, &schedule->reason},
  };
  struct reader r = {.run = run, .document = document, .profile = profile, .schedule = schedule};
  int64_t one = 0;
  int word = 0;

  if (root->type != ZC_OBJECT) return zc_bad(run, document, root, "not an object, expected a schedule");
  if (!zc_fields(run, document, root, "", fields, sizeof fields / sizeof fields[0]) ||
      !zc_integer(run, document, version, "zbsolve_schedule", 1, 1, &one) ||
      !zc_read_profile(run, document, inner, profile) ||
      !read_word(&r, objective, "objective", zc_objective_names, &word))
    return false;
  schedule->objective = (enum zc_objective)word;
  if (!read_word(&r, status, "status", zc_status_names, &word)) return false;
  schedule->status = (enum zc_status)word;

  bool expected = schedule->status == ZC_OPTIMAL || schedule->status == ZC_FEASIBLE;
  schedule->has_bound = bound && bound->type != ZC_NULL;
  schedule->gap = figures[4].node;
  schedule->bubble_rate = figures[5].node;
  if (!read_figures(&r, root, figures, sizeof figures / sizeof figures[0], expected) ||
      (schedule->has_bound && !zc_integer(run, document, bound, "bound_ns", 0, ZC_MOST, &schedule->bound)))
    return false;
  if (expected && !schedule->has_bound)
    return zc_bad(run, document, bound ? bound : root, "bound_ns: missing, expected a number");
  if (schedule->reason && schedule->status != ZC_INFEASIBLE)
    return zc_bad(run, document, schedule->reason, "reason: given for status %s, only infeasible has one",
                  zc_status_names[schedule->status]);
  if (expected && !devices) return zc_bad(run, document, root, "devices: missing, expected a list");
  if (!expected && devices && devices->count > 0)
    return zc_bad(run, document, devices, "devices: %u of them in a file of status %s, which has none",
                  devices->count, zc_status_names[schedule->status]);
  return !expected || read_devices(&r, devices);
}
