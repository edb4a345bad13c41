/* zbcheck: the embedded profile, in any unit, as integers.
 *
 * Every time becomes ns and every memory amount bytes, exactly or not at all. What is checked here is what
 * keeps the later arithmetic whole: each number and the horizon (all ops and all messages, one after the
 * other) are at most 2^53, so no start time, cost or peak that is recomputed from them can overflow 64 bits.
 */
#include "zbcheck.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STAGES = 1 << 20, MOST_OPS = 1 << 28 }; /* far above any pipeline; keeps op numbers in 32 bits */

struct unit {
  const char *name;
  int64_t size;
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"unit", 1000},
};
static const struct unit memory_units[] = {
    {"B", 1},         {"KB", 1000},     {"MB", 1000000},  {"GB", 1000000000},
    {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"unit", 1000000},
};

/* What a list of numbers has to be. */
struct amount {
  const char *base; /* what has to come out whole, for zc_exact */
  int64_t unit;
  int64_t low, high; /* in ns or bytes */
  const char *range; /* and in words */
  const char *each;  /* what one value is for: "stages" */
  bool null_is_none; /* null stands for ZC_NO_LIMIT */
};

struct reader {
  struct zc_run *run;
  const struct zc_document *document;
};

static bool read_unit(struct reader *r, const struct zc_node *node, const char *where,
                      const struct unit *units, size_t count, int64_t *size) {
  char known[120] = "";

  for (size_t i = 0; i < count; i++) {
    if (zc_text_is(node, units[i].name)) {
      *size = units[i].size;
      return true;
    }
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", units[i].name);
  }
  return zc_bad(r->run, r->document, node, "%s: unknown unit \"%.20s\", expected one of %s", where,
                node->text, known);
}

static bool read_amount(struct reader *r, const struct zc_node *node, const char *where,
                        const struct amount *amount, int64_t *value) {
  if (node->type == ZC_NULL && amount->null_is_none) {
    *value = ZC_NO_LIMIT;
    return true;
  }
  if (node->type != ZC_NUMBER)
    return zc_bad(r->run, r->document, node, "%s: not a number, expected %s", where, amount->range);
  const char *why = zc_exact(node, amount->unit, amount->base, value);
  if (why) return zc_bad(r->run, r->document, node, "%s: %.*s %s", where, zc_shown(node), node->text, why);
  if (*value < amount->low || *value > amount->high)
    return zc_bad(r->run, r->document, node, "%s: %.*s, expected %s", where, zc_shown(node), node->text,
                  amount->range);
  return true;
}

/* One number for all, or a list of exactly `count`. */
static bool read_amounts(struct reader *r, const struct zc_node *node, const char *where, int32_t count,
                         const struct amount *amount, int64_t *values) {
  char item[60];
  int32_t i = 0;

  if (node->type != ZC_ARRAY) {
    int64_t all = 0;
    if (!read_amount(r, node, where, amount, &all)) return false;
    for (i = 0; i < count; i++) values[i] = all;
    return true;
  }
  if (node->count != (uint32_t)count)
    return zc_bad(r->run, r->document, node, "%s: a list of %u, expected %d, one for each of the %s", where,
                  node->count, count, amount->each);
  for (const struct zc_node *value = node->first; value; value = value->next, i++) {
    snprintf(item, sizeof item, "%s[%d]", where, i);
    if (!read_amount(r, value, item, amount, &values[i])) return false;
  }
  return true;
}

static bool allocate(struct zc_run *run, struct zc_profile *p) {
  size_t stages = (size_t)p->stages, devices = (size_t)p->devices;
  int64_t **by_stage[] = {&p->f,        &p->b,      &p->w,      &p->bw,    &p->forward,
                          &p->backward, &p->keep_f, &p->keep_b, &p->keep_w};

  for (size_t i = 0; i < sizeof by_stage / sizeof by_stage[0]; i++)
    if (!(*by_stage[i] = zc_alloc(run, stages, sizeof(int64_t)))) return false;
  return (p->limit = zc_alloc(run, devices, sizeof(int64_t))) &&
         (p->standing = zc_alloc(run, devices, sizeof(int64_t))) &&
         (p->device_of = zc_alloc(run, stages, sizeof(int32_t))) &&
         (p->stages_of = zc_alloc(run, stages, sizeof(int32_t)));
}

static bool read_placement_list(struct reader *r, const struct zc_node *node, struct zc_profile *p) {
  char where[40];
  int32_t stage = 0;

  if (node->count != (uint32_t)p->stages)
    return zc_bad(r->run, r->document, node, "placement: a list of %u, expected %d, one device a stage",
                  node->count, p->stages);
  for (const struct zc_node *item = node->first; item; item = item->next, stage++) {
    int64_t device = 0;
    snprintf(where, sizeof where, "placement[%d]", stage);
    if (!zc_integer(r->run, r->document, item, where, 0, p->devices - 1, &device)) return false;
    p->device_of[stage] = (int32_t)device;
  }
  return true;
}

static bool read_placement(struct reader *r, const struct zc_node *root, const struct zc_node *node,
                           struct zc_profile *p) {
  int32_t devices = p->devices;

  if (node && node->type == ZC_ARRAY) {
    if (!read_placement_list(r, node, p)) return false;
  } else if (!node || zc_text_is(node, "chain")) {
    if (p->chunks != 1)
      return zc_bad(r->run, r->document, node ? node : root, "placement: chain with %d chunks, expected 1",
                    p->chunks);
    for (int32_t s = 0; s < p->stages; s++) p->device_of[s] = s;
  } else if (zc_text_is(node, "loop")) {
    for (int32_t s = 0; s < p->stages; s++) p->device_of[s] = s % devices;
  } else if (zc_text_is(node, "v")) {
    if (p->chunks != 2)
      return zc_bad(r->run, r->document, node, "placement: v with %d chunks, expected 2", p->chunks);
    for (int32_t s = 0; s < p->stages; s++) p->device_of[s] = s < devices ? s : 2 * devices - 1 - s;
  } else {
    return zc_bad(r->run, r->document, node,
                  "placement: \"%.20s\", expected chain, loop, v or a list of devices", node->text);
  }

  int32_t *held = zc_alloc(r->run, (size_t)devices, sizeof *held);
  if (!held) return false;
  for (int32_t s = 0; s < p->stages; s++) {
    int32_t device = p->device_of[s];
    if (held[device] < p->chunks) p->stages_of[device * p->chunks + held[device]] = s;
    held[device]++;
  }
  for (int32_t d = 0; d < devices; d++)
    if (held[d] != p->chunks)
      return zc_bad(r->run, r->document, node ? node : root,
                    "placement: device %d holds %d stages, expected %d", d, held[d], p->chunks);
  return true;
}

static bool read_comm(struct reader *r, const struct zc_node *node, const struct amount *time,
                      struct zc_profile *p) {
  const struct zc_node *forward, *backward;
  const unsigned types = ZC_NUMBER | ZC_ARRAY;
  int32_t boundaries = p->stages - 1;
  struct amount amount = *time;

  amount.each = "boundaries between stages";
  if (node->type == ZC_OBJECT) {
    const struct zc_field fields[] = {{"forward", types, true, &forward},
                                      {"backward", types, true, &backward}};
    if (!zc_fields(r->run, r->document, node, "time.comm", fields, 2) ||
        !read_amounts(r, forward, "time.comm.forward", boundaries, &amount, p->forward) ||
        !read_amounts(r, backward, "time.comm.backward", boundaries, &amount, p->backward))
      return false;
  } else if (!read_amounts(r, node, "time.comm", boundaries, &amount, p->forward) ||
             !read_amounts(r, node, "time.comm", boundaries, &amount, p->backward)) {
    return false;
  }
  for (int32_t s = 0; s < boundaries; s++)
    if (p->device_of[s] == p->device_of[s + 1]) p->forward[s] = p->backward[s] = 0;
  return true;
}

/* Adds up everything that could stand on a critical path, so that no later sum can overflow. */
static bool check_horizon(struct reader *r, const struct zc_node *node, const struct zc_profile *p) {
  int64_t once = 0;

  for (int32_t s = 0; s < p->stages; s++) {
    int64_t split = p->b[s] + p->w[s], backward = split > p->bw[s] ? split : p->bw[s];
    once += p->f[s] + backward + p->forward[s] + p->backward[s];
    if (once > ZC_MOST / p->microbatches)
      return zc_bad(r->run, r->document, node, "time: all ops and messages in a row take more than 2^53 ns");
  }
  return true;
}

static bool read_time(struct reader *r, const struct zc_node *node, struct zc_profile *p) {
  const struct zc_node *unit, *f, *b, *w, *bw, *comm;
  const unsigned types = ZC_NUMBER | ZC_ARRAY;
  const struct zc_field fields[] = {
      {"unit", ZC_STRING, true, &unit}, {"f", types, true, &f},    {"b", types, true, &b},
      {"w", types, true, &w},           {"bw", types, false, &bw}, {"comm", types | ZC_OBJECT, true, &comm},
  };
  struct amount amount = {"is not a whole number of ns", 1,        0,    ZC_MOST,
                          "a time of 0 or more",         "stages", false};

  if (!zc_fields(r->run, r->document, node, "time", fields, sizeof fields / sizeof fields[0]) ||
      !read_unit(r, unit, "time.unit", time_units, sizeof time_units / sizeof time_units[0], &amount.unit) ||
      !read_amounts(r, f, "time.f", p->stages, &amount, p->f) ||
      !read_amounts(r, b, "time.b", p->stages, &amount, p->b) ||
      !read_amounts(r, w, "time.w", p->stages, &amount, p->w) || !read_comm(r, comm, &amount, p))
    return false;
  for (int32_t s = 0; s < p->stages; s++) p->bw[s] = p->b[s] + p->w[s];
  if (bw && !read_amounts(r, bw, "time.bw", p->stages, &amount, p->bw)) return false;
  return check_horizon(r, node, p);
}

/* Memory must come back to where it was, and no order may drive a sum above 2^53. */
static bool check_memory(struct reader *r, const struct zc_node *node, const struct zc_profile *p) {
  for (int32_t s = 0; s < p->stages; s++) {
    int64_t sum = p->keep_f[s] + p->keep_b[s] + p->keep_w[s];
    if (sum != 0)
      return zc_bad(r->run, r->document, node, "memory: f + b + w of stage %d is %lld B, expected 0", s,
                    (long long)sum);
  }
  for (int32_t d = 0; d < p->devices; d++) {
    int64_t once = 0;
    for (int32_t c = 0; c < p->chunks; c++) {
      int32_t s = p->stages_of[d * p->chunks + c];
      once += p->keep_f[s] + (p->keep_b[s] > 0 ? p->keep_b[s] : 0);
      if (once > (ZC_MOST - p->standing[d]) / p->microbatches)
        return zc_bad(r->run, r->document, node,
                      "memory: all microbatches at once need more than 2^53 B on device %d", d);
    }
  }
  return true;
}

static bool read_memory(struct reader *r, const struct zc_node *node, struct zc_profile *p) {
  const struct zc_node *unit, *f, *b, *w, *limit, *standing;
  const unsigned types = ZC_NUMBER | ZC_ARRAY;
  const struct zc_field fields[] = {
      {"unit", ZC_STRING, false, &unit},
      {"f", types, true, &f},
      {"b", types, true, &b},
      {"w", types, true, &w},
      {"limit", types | ZC_NULL, false, &limit},
      {"static", types, false, &standing},
  };
  struct amount more = {"is not a whole number of bytes", 1000000, 0, ZC_MOST, "0 or more", "stages", false};
  struct amount less = more, any = more, device;

  for (int32_t d = 0; d < p->devices; d++) p->limit[d] = ZC_NO_LIMIT;
  if (!node) return true;
  if (!zc_fields(r->run, r->document, node, "memory", fields, sizeof fields / sizeof fields[0]) ||
      (unit && !read_unit(r, unit, "memory.unit", memory_units, sizeof memory_units / sizeof memory_units[0],
                          &more.unit)))
    return false;
  less.unit = any.unit = more.unit;
  less.low = any.low = -ZC_MOST;
  less.high = 0;
  less.range = "0 or less";
  any.range = "a number";
  device = more;
  device.each = "devices";
  if (!read_amounts(r, f, "memory.f", p->stages, &more, p->keep_f) ||
      !read_amounts(r, b, "memory.b", p->stages, &any, p->keep_b) ||
      !read_amounts(r, w, "memory.w", p->stages, &less, p->keep_w) ||
      (standing && !read_amounts(r, standing, "memory.static", p->devices, &device, p->standing)))
    return false;
  device.null_is_none = true;
  if (limit && !read_amounts(r, limit, "memory.limit", p->devices, &device, p->limit)) return false;
  return check_memory(r, node, p);
}

static bool read_sizes(struct reader *r, const struct zc_node *root, const struct zc_node *devices,
                       const struct zc_node *microbatches, const struct zc_node *chunks,
                       struct zc_profile *p) {
  int64_t d = 0, m = 0, v = 1;

  if (!zc_integer(r->run, r->document, devices, "devices", 1, MOST_STAGES, &d) ||
      !zc_integer(r->run, r->document, microbatches, "microbatches", 1, MOST_OPS, &m) ||
      (chunks && !zc_integer(r->run, r->document, chunks, "chunks", 1, MOST_STAGES, &v)))
    return false;
  if (v > MOST_STAGES / d)
    return zc_bad(r->run, r->document, root, "devices * chunks: more than %d stages, expected less",
                  MOST_STAGES);
  if (m > MOST_OPS / (d * v * 3))
    return zc_bad(r->run, r->document, root,
                  "devices * chunks * microbatches: more than %d ops, expected less", MOST_OPS);
  p->devices = (int32_t)d;
  p->microbatches = (int32_t)m;
  p->chunks = (int32_t)v;
  p->stages = (int32_t)(d * v);
  return true;
}

bool zc_read_profile(struct zc_run *run, const struct zc_document *document, const struct zc_node *node,
                     struct zc_profile *profile) {
  const struct zc_node *version, *name, *devices, *microbatches, *chunks, *placement, *time, *memory, *source,
      *note, *samples;
  const struct zc_field fields[] = {
      {"zbsolve_profile", ZC_NUMBER, true, &version},
      {"name", ZC_STRING, false, &name},
      {"devices", ZC_NUMBER, true, &devices},
      {"microbatches", ZC_NUMBER, true, &microbatches},
      {"chunks", ZC_NUMBER, false, &chunks},
      {"placement", ZC_STRING | ZC_ARRAY, false, &placement},
      {"time", ZC_OBJECT, true, &time},
      {"memory", ZC_OBJECT, false, &memory},
      {"source", ZC_STRING, false, &source},
      {"note", ZC_STRING, false, &note},
      {"samples", ZC_NUMBER, false, &samples},
  };
  struct reader r = {run, document};
  int64_t number = 0;

  return zc_fields(run, document, node, "profile", fields, sizeof fields / sizeof fields[0]) &&
         zc_integer(run, document, version, "profile.zbsolve_profile", 1, 1, &number) &&
         (!samples || zc_integer(run, document, samples, "samples", 1, ZC_MOST, &number)) &&
         read_sizes(&r, node, devices, microbatches, chunks, profile) && allocate(run, profile) &&
         read_placement(&r, node, placement, profile) && read_time(&r, time, profile) &&
         read_memory(&r, memory, profile);
}

int64_t zc_least_peak(const struct zc_profile *profile, int32_t device) {
  int64_t peak = profile->standing[device];

  for (int32_t c = 0; c < profile->chunks; c++)
    peak += profile->keep_f[profile->stages_of[device * profile->chunks + c]];
  return peak;
}
