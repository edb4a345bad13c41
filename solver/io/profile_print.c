// profile_print.c - a profile as JSON in ns and B: one number where all entries are the same.
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "solver/io/profile_json.h"

static void print_integer(int64_t value, struct zb_text *text) {
  if (value == ZB_NO_LIMIT)
    zb_text_put(text, "null");
  else
    zb_text_print(text, "%" PRId64, value);
}

static bool all_equal(const int64_t *values, int count) {
  for (int i = 1; i < count; i++)
    if (values[i] != values[0]) return false;
  return true;
}

static void print_values(const int64_t *values, int count, struct zb_text *text) {
  if (all_equal(values, count)) {
    print_integer(values[0], text);
    return;
  }
  for (int i = 0; i < count; i++) {
    zb_text_put(text, i == 0 ? "[" : ", ");
    print_integer(values[i], text);
  }
  zb_text_put(text, "]");
}

// The comm of every boundary that crosses devices is `*value`; a boundary inside one costs nothing whatever
// is written, so it need not agree.
static bool same_comm(const struct zb_profile *profile, const int64_t *comm, int64_t *value) {
  bool found = false;
  *value = 0;
  for (int k = 0; k + 1 < profile->stages; k++) {
    if (profile->device_of[k] == profile->device_of[k + 1]) continue;
    if (found && comm[k] != *value) return false;
    *value = comm[k];
    found = true;
  }
  return true;
}

static void print_one_comm(const struct zb_profile *profile, const int64_t *comm, struct zb_text *text) {
  int64_t value;
  if (same_comm(profile, comm, &value))
    print_integer(value, text);
  else
    print_values(comm, profile->stages - 1, text);
}

static void print_comm(const struct zb_profile *profile, struct zb_text *text) {
  const int64_t *forward = profile->comm_forward_ns, *backward = profile->comm_backward_ns;
  if (memcmp(forward, backward, (size_t)profile->stages * sizeof *forward) == 0) {
    print_one_comm(profile, forward, text);
    return;
  }
  zb_text_put(text, "{\"forward\": ");
  print_one_comm(profile, forward, text);
  zb_text_put(text, ", \"backward\": ");
  print_one_comm(profile, backward, text);
  zb_text_put(text, "}");
}

static void print_field(const char *before, const int64_t *values, int count, struct zb_text *text) {
  zb_text_put(text, before);
  print_values(values, count, text);
}

static void print_placement(const struct zb_profile *profile, struct zb_text *text) {
  if (profile->placement != ZB_LIST) {
    zb_text_print(text, "\"%s\"", zb_placement_word(profile->placement));
    return;
  }
  for (int s = 0; s < profile->stages; s++)
    zb_text_print(text, "%s%d", s == 0 ? "[" : ", ", profile->device_of[s]);
  zb_text_put(text, "]");
}

// Ends the line before and starts one with a key.
static void start_line(const char *key, int indent, struct zb_text *text) {
  zb_text_put(text, ",\n");
  zb_text_repeat(text, " ", (size_t)indent + 2);
  zb_text_print(text, "\"%s\": ", key);
}

static void print_string(const char *key, const char *string, int indent, struct zb_text *text) {
  if (!string) return;
  start_line(key, indent, text);
  zb_json_print_string(string, text);
}

void zb_profile_print(const struct zb_profile *profile, int indent, struct zb_text *text) {
  zb_text_print(text, "{\n%*s\"zbsolve_profile\": 1", indent + 2, "");
  print_string("name", profile->name, indent, text);
  print_string("source", profile->source, indent, text);
  print_string("note", profile->note, indent, text);
  start_line("devices", indent, text);
  zb_text_print(text, "%d", profile->devices);
  start_line("microbatches", indent, text);
  zb_text_print(text, "%d", profile->microbatches);
  if (profile->samples != 1) {
    start_line("samples", indent, text);
    print_integer(profile->samples, text);
  }
  start_line("chunks", indent, text);
  zb_text_print(text, "%d", profile->chunks);
  start_line("placement", indent, text);
  print_placement(profile, text);
  start_line("time", indent, text);
  print_field("  {\"unit\": \"ns\", \"f\": ", profile->f_ns, profile->stages, text);
  print_field(", \"b\": ", profile->b_ns, profile->stages, text);
  print_field(", \"w\": ", profile->w_ns, profile->stages, text);
  if (profile->has_bw) print_field(", \"bw\": ", profile->bw_ns, profile->stages, text);
  zb_text_put(text, ", \"comm\": ");
  print_comm(profile, text);
  zb_text_put(text, "}");
  if (profile->has_memory) {
    start_line("memory", indent, text);
    print_field("{\"unit\": \"B\", \"f\": ", profile->f_bytes, profile->stages, text);
    print_field(", \"b\": ", profile->b_bytes, profile->stages, text);
    print_field(", \"w\": ", profile->w_bytes, profile->stages, text);
    print_field(", \"limit\": ", profile->limit_bytes, profile->devices, text);
    print_field(", \"static\": ", profile->static_bytes, profile->devices, text);
    zb_text_put(text, "}");
  }
  zb_text_print(text, "\n%*s}", indent, "");
}
