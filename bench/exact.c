// What the exact engine reaches on one set of instances, through the command line: every instance is solved
// by `zbsolve solve --json -v`, and what was written is checked by `zbcheck`.
//
//   exact SET [--limit S] [--count N] [--seed N] [--threads N] [--json FILE]
//
// Run at the top of the tree; BUILD names the build directory. bench/README.md defines sets, columns and
// goals. A row is printed as soon as it is known. Exit 1 where a check failed or a goal is missed.
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/model/number.h"
#include "tests/cli_run.h"
#include "tests/generate.h"

enum { NAME = CLI_RUN_WORD, PATH = CLI_RUN_PATH };

// Sets: what each measures, and its time limit in s unless --limit says another.
#define SETS(X)                                                                                              \
  X(TABLE5, "table5", "Table 5 of arXiv 2401.10241 at 1x and 2x", 30)                                        \
  X(CURVE, "curve", "Table 5's profiles from 1x to 3x in steps of 1/8", 20)                                  \
  X(BELOW, "below", "Table 5's profiles from 0.4x to 0.9x in steps of 0.1", 30)                              \
  X(UNEVEN, "uneven", "seeded uneven profiles with tight memory", 20)                                        \
  X(PUBLIC, "public", "profiles of public code and papers, at the printed limit and half of it", 30)         \
  X(SCALE, "scale", "32 and 64 devices, up to 1024 microbatches, at 1x and 2x", 120)                         \
  X(TABLE8, "table8", "Table 8 of arXiv 2401.10241: two chunks a device on a V, as printed", 120)            \
  X(V, "v", "f/b/w 3/4/2 a chunk on a V, limits in chunk activations", 60)                                   \
  X(V_REAL, "v-28.3b", "28.3B's chunk times on a V of 8 devices, limits in chunk activations", 60)

enum set {
#define X(NAME, name, about, limit_s) NAME,
  SETS(X)
#undef X
      SET_COUNT
};

static const struct {
  const char *name, *about;
  double limit_s;
} sets[] = {
#define X(NAME, name, about, limit_s) {name, about, limit_s},
    SETS(X)
#undef X
};

// What is summed over a set.
#define METRICS(X)                                                                                           \
  X(CLOSED, "closed_share", "closed (optimal or proven infeasible)")                                         \
  X(MEAN_GAP, "mean_gap", "mean gap")                                                                        \
  X(WORST_GAP, "worst_gap", "worst gap")                                                                     \
  X(SECONDS, "seconds", "seconds, all together")                                                             \
  X(SLOWEST, "slowest_s", "seconds, slowest")                                                                \
  X(SLOWEST_8, "slowest_8_devices_s", "seconds, slowest up to 8 devices")                                    \
  X(PEAK, "peak_mib", "peak memory, MiB")                                                                    \
  X(UNEQUAL, "unequal", "rows that differ from the known optimum")                                           \
  X(RISES, "rises", "rows above one with a smaller limit")                                                   \
  X(LATE, "late", "rows over the time limit by more than 0.25 s")                                            \
  X(BAD, "bad", "rows that failed their check")

enum metric {
#define X(NAME, key, words) NAME,
  METRICS(X)
#undef X
      METRIC_COUNT
};

static const struct {
  const char *key, *words;
} metrics[] = {
#define X(NAME, key, words) {key, words},
    METRICS(X)
#undef X
};

static const struct goal {
  enum set set;
  enum metric metric;
  bool at_least; // otherwise at most
  double value;
} goals[] = {
    {TABLE5, CLOSED, true, 1},        {TABLE5, UNEQUAL, false, 0},       {TABLE5, SLOWEST_8, false, 0.1},
    {TABLE5, SECONDS, false, 45},     {TABLE5, SLOWEST, false, 15},      {TABLE5, PEAK, false, 1024},
    {CURVE, CLOSED, true, 1},         {CURVE, RISES, false, 0},          {BELOW, CLOSED, true, 0.9},
    {BELOW, WORST_GAP, false, 0.005}, {UNEVEN, CLOSED, true, 0.92},      {UNEVEN, MEAN_GAP, false, 0.001},
    {V, WORST_GAP, false, 0.01},      {TABLE8, WORST_GAP, false, 0.001}, {UNEVEN, WORST_GAP, false, 0.015},
    {PUBLIC, CLOSED, true, 1},        {PUBLIC, SLOWEST_8, false, 0.2},
};

struct options {
  enum set set;
  double limit_s;
  long count, seed, threads;
  const char *json_path;
};

struct instance {
  char name[NAME], path[PATH];
  int devices, microbatches;
  char shown[NAME]; // the limit as the table shows it
  char limit[NAME]; // --memory-limit, "": the profile's own
  bool other_microbatches;
  int64_t known_ns; // the known optimum, 0: none
  int curve;        // rows of one curve follow each other, limits rising; 0: none
};

struct bench {
  struct options options;
  const char *build;
  char folder[PATH]; // for what a run leaves
  struct instance *instance;
  size_t count, room;
  struct zb_text json;
  double metric[METRIC_COUNT];
  int missed;
  struct zb_error error;
};

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static bool
print_to(char *text, size_t size, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int length = vsnprintf(text, size, format, values);
  va_end(values);
  return length >= 0 && (size_t)length < size;
}

// The list of instances.

static enum zb_status add(struct bench *bench, const struct instance *instance) {
  if (bench->count == bench->room) {
    size_t room = bench->room ? 2 * bench->room : 64;
    struct instance *grown = realloc(bench->instance, room * sizeof *grown);
    if (!grown) return zb_fail_memory(&bench->error);
    bench->instance = grown;
    bench->room = room;
  }
  bench->instance[bench->count++] = *instance;
  return ZB_OK;
}

// Name, sizes and path of a profile file; the profile is the caller's.
static enum zb_status open_profile(struct bench *bench, const char *folder, const char *name,
                                   struct instance *instance, struct zb_profile **profile) {
  *instance = (struct instance){.known_ns = 0};
  if (!print_to(instance->name, NAME, "%s", name) ||
      !print_to(instance->path, PATH, "%s/%s.json", folder, name))
    return zb_fail(&bench->error, ZB_FAILED, "%s: the name is too long", name);
  enum zb_status status = zb_profile_read(instance->path, profile, &bench->error);
  if (status != ZB_OK) return status;
  instance->devices = (*profile)->devices;
  instance->microbatches = (*profile)->microbatches;
  return ZB_OK;
}

static enum zb_status add_multiple(struct bench *bench, struct instance *instance, int eighties) {
  // In 80ths, so that steps of 1/8 and of 1/10 are whole.
  print_to(instance->limit, NAME, "%.4gx", eighties / 80.0);
  print_to(instance->shown, NAME, "%s", instance->limit);
  return add(bench, instance);
}

static int64_t optimum_ns(const struct zb_json *known, const char *key) {
  const struct zb_json *member = zb_json_member(known, key);
  int64_t ns = 0;
  if (member) zb_json_scaled(member, 1000, &ns);
  return ns;
}

// Table 5's profiles, each under limits from..to in steps of `step` (80ths of 1x).
static enum zb_status list_table5(struct bench *bench, int from, int to, int step) {
  struct zb_text text = {0};
  struct zb_json *root = NULL;
  const char *path = "bench/published-known.json";
  enum zb_status status = zb_file_read(path, 1 << 20, &text, &bench->error);
  if (status == ZB_OK) status = zb_json_parse(text.data, text.size, ZB_JSON_DECIMALS, &root, &bench->error);
  const struct zb_json *rows = status == ZB_OK ? zb_json_member(root, "table5") : NULL;
  int curve = 0;
  for (const struct zb_json *known = rows ? zb_json_first(rows) : NULL; known && status == ZB_OK;
       known = zb_json_next(known)) {
    struct instance instance;
    struct zb_profile *profile = NULL;
    status = open_profile(bench, "configs", zb_json_key(known), &instance, &profile);
    zb_profile_free(profile);
    instance.curve = ++curve;
    for (int x = from; x <= to && status == ZB_OK; x += step) {
      instance.known_ns = x == 80    ? optimum_ns(known, "optimum_1x_us")
                          : x == 160 ? optimum_ns(known, "optimum_2x_us")
                                     : 0;
      status = add_multiple(bench, &instance, x);
    }
  }
  zb_json_free(root);
  zb_text_free(&text);
  return status;
}

static enum zb_status list_uneven(struct bench *bench) {
  enum { INSTANCES = 200 };
  enum zb_status status = ZB_OK;
  for (int k = 0; k < INSTANCES && status == ZB_OK; k++) {
    struct generated_profile generated;
    struct instance instance;
    struct zb_profile *profile = NULL;
    char json[GENERATE_JSON_BYTES], name[NAME], path[PATH];
    generate_profile(&generated, GENERATE_UNEVEN, (uint64_t)bench->options.seed, (uint64_t)k);
    size_t size = generate_json(&generated, json, sizeof json);
    print_to(name, NAME, "uneven-%ld-%d", bench->options.seed, k);
    print_to(path, PATH, "%.400s/%s.json", bench->folder, name);
    struct zb_text text = {0};
    zb_text_add(&text, json, size);
    status = zb_file_write(path, &text, &bench->error);
    zb_text_free(&text);
    if (status == ZB_OK) status = open_profile(bench, bench->folder, name, &instance, &profile);
    if (status == ZB_OK) {
      print_to(instance.shown, NAME, "%.3gx",
               (double)profile->limit_bytes[0] / (double)(zb_profile_activation(profile) * profile->devices));
      status = add(bench, &instance);
    }
    zb_profile_free(profile);
  }
  return status;
}

// A profile as it is; where it prints one limit for all devices, then at half of it. Only chains.
static enum zb_status list_public_profile(struct bench *bench, const char *name) {
  struct instance instance;
  struct zb_profile *profile = NULL;
  enum zb_status status = open_profile(bench, "configs", name, &instance, &profile);
  bool limited = false, same = true;
  if (status != ZB_OK || profile->placement != ZB_CHAIN) goto done;
  for (int d = 0; d < profile->devices; d++) {
    limited |= profile->limit_bytes[d] != ZB_NO_LIMIT;
    same &= profile->limit_bytes[d] == profile->limit_bytes[0];
  }
  print_to(instance.shown, NAME, "%s", limited ? "printed" : "none");
  status = add(bench, &instance);
  if (status == ZB_OK && limited && !same)
    status = zb_fail(&bench->error, ZB_FAILED, "%s: its devices have different limits", name);
  if (status == ZB_OK && limited) {
    print_to(instance.shown, NAME, "half");
    print_to(instance.limit, NAME, "%lldB", (long long)(profile->limit_bytes[0] / 2));
    status = add(bench, &instance);
  }
done:
  zb_profile_free(profile);
  return status;
}

// Every profile of Table 8 under the limit it has.
static enum zb_status list_table8(struct bench *bench) {
  static const char *const names[] = {"6.2b-p16-m48",  "6.2b-p16-m64",   "6.2b-p16-m128",
                                      "14.6b-p24-m72", "14.6b-p24-m96",  "14.6b-p24-m192",
                                      "28.3b-p32-m96", "28.3b-p32-m128", "28.3b-p32-m256"};
  enum zb_status status = ZB_OK;
  for (size_t k = 0; k < sizeof names / sizeof *names && status == ZB_OK; k++) {
    struct instance instance;
    struct zb_profile *profile = NULL;
    char name[NAME];
    print_to(name, NAME, "table8-%s", names[k]);
    status = open_profile(bench, "configs", name, &instance, &profile);
    print_to(instance.shown, NAME, "printed");
    if (status == ZB_OK) status = add(bench, &instance);
    zb_profile_free(profile);
  }
  return status;
}

static int is_public(const struct dirent *entry) {
  const char *end = strstr(entry->d_name, ".json");
  return end && end[5] == '\0' && strncmp(entry->d_name, "table", 5) != 0;
}

static enum zb_status list_public(struct bench *bench) {
  struct dirent **entry = NULL;
  int count = scandir("configs", &entry, is_public, alphasort);
  if (count < 0) return zb_fail(&bench->error, ZB_FAILED, "configs: %s", strerror(errno));
  enum zb_status status = ZB_OK;
  for (int k = 0; k < count; k++) {
    char name[NAME];
    print_to(name, NAME, "%.*s", (int)(strlen(entry[k]->d_name) - 5), entry[k]->d_name);
    if (status == ZB_OK) status = list_public_profile(bench, name);
    free(entry[k]);
  }
  free(entry);
  return status;
}

// A profile into a file of the bench's folder.
static enum zb_status write_profile(struct bench *bench, struct zb_profile *profile, const char *name) {
  struct zb_text text = {0};
  char path[PATH];
  print_to(path, PATH, "%.400s/%s.json", bench->folder, name);
  enum zb_status status = zb_profile_finish(profile, &bench->error);
  if (status == ZB_OK) {
    zb_profile_print(profile, 0, &text);
    zb_text_put(&text, "\n");
    status = zb_file_write(path, &text, &bench->error);
  }
  zb_text_free(&text);
  return status;
}

// V profiles with stages alike, comm included, under limits in chunk activations; 0 ends a list.
struct v_row {
  const char *name;
  int devices, microbatches;
  int64_t f_ns, b_ns, w_ns, comm_ns;
  int limits[7];
};

static enum zb_status list_v(struct bench *bench, const struct v_row *rows, size_t count) {
  enum { CHUNK = 1000000 };
  enum zb_status status = ZB_OK;
  for (size_t k = 0; k < count && status == ZB_OK; k++) {
    const struct v_row *row = &rows[k];
    struct zb_profile *v = NULL;
    char name[NAME];
    print_to(name, NAME, "%s-p%d-m%d", row->name, row->devices, row->microbatches);
    status = zb_profile_create(row->devices, 2, row->microbatches, ZB_V, &v, &bench->error);
    if (status != ZB_OK) break;
    for (int s = 0; s < v->stages; s++) {
      v->f_ns[s] = row->f_ns;
      v->b_ns[s] = row->b_ns;
      v->w_ns[s] = row->w_ns;
      if (s + 1 < v->stages) v->comm_forward_ns[s] = v->comm_backward_ns[s] = row->comm_ns;
      v->f_bytes[s] = CHUNK;
      v->w_bytes[s] = -CHUNK;
    }
    v->has_memory = true;
    status = write_profile(bench, v, name);
    zb_profile_free(v);
    for (const int *limit = row->limits; *limit > 0 && status == ZB_OK; limit++) {
      struct instance instance;
      struct zb_profile *profile = NULL;
      status = open_profile(bench, bench->folder, name, &instance, &profile);
      zb_profile_free(profile);
      print_to(instance.shown, NAME, "%d", *limit);
      print_to(instance.limit, NAME, "%dB", *limit * CHUNK);
      if (status == ZB_OK) status = add(bench, &instance);
    }
  }
  return status;
}

static enum zb_status list_v_units(struct bench *bench) {
  static const struct v_row rows[] = {{"v-342", 4, 8, 3000, 4000, 2000, 0, {4, 5, 6, 7, 8, 0}},
                                      {"v-342", 8, 16, 3000, 4000, 2000, 0, {8, 9, 10, 12, 14, 16, 0}}};
  return list_v(bench, rows, sizeof rows / sizeof *rows);
}

static enum zb_status list_v_real(struct bench *bench) {
  static const struct v_row row = {"v-28.3b", 8,       24,     9458000,
                                   9748000,   7288000, 879000, {8, 9, 10, 12, 14, 16, 0}};
  return list_v(bench, &row, 1);
}

// The largest published profile's stages on more devices.
static enum zb_status widen(struct bench *bench, const struct zb_profile *from, int devices,
                            const char *name) {
  struct zb_profile *wide = NULL;
  enum zb_status status = zb_profile_create(devices, 1, from->microbatches, ZB_CHAIN, &wide, &bench->error);
  if (status != ZB_OK) return status;
  for (int s = 0; s < devices; s++) {
    wide->f_ns[s] = from->f_ns[0];
    wide->b_ns[s] = from->b_ns[0];
    wide->w_ns[s] = from->w_ns[0];
    wide->comm_forward_ns[s] = from->comm_forward_ns[0];
    wide->comm_backward_ns[s] = from->comm_backward_ns[0];
    wide->f_bytes[s] = from->f_bytes[0];
    wide->b_bytes[s] = from->b_bytes[0];
    wide->w_bytes[s] = from->w_bytes[0];
  }
  wide->has_memory = true;
  status = write_profile(bench, wide, name);
  zb_profile_free(wide);
  return status;
}

static enum zb_status list_scale(struct bench *bench) {
  static const int shapes[][2] = {{32, 256}, {32, 512}, {32, 1024}, {64, 256}, {64, 512}};
  static const char *const narrow = "table5-28.3b-p32-m256", *const wide = "28.3b-stages-p64";
  struct instance base, instance;
  struct zb_profile *profile = NULL, *other = NULL;
  enum zb_status status = open_profile(bench, "configs", narrow, &base, &profile);
  if (status == ZB_OK) status = widen(bench, profile, 64, wide);
  zb_profile_free(profile);
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes && status == ZB_OK; k++) {
    bool same = shapes[k][0] == base.devices;
    status = open_profile(bench, same ? "configs" : bench->folder, same ? narrow : wide, &instance, &other);
    zb_profile_free(other);
    other = NULL;
    if (status != ZB_OK) break;
    print_to(instance.name, NAME, "28.3b-stages-p%d-m%d", shapes[k][0], shapes[k][1]);
    instance.microbatches = shapes[k][1];
    instance.other_microbatches = true;
    status = add_multiple(bench, &instance, 80);
    if (status == ZB_OK) status = add_multiple(bench, &instance, 160);
  }
  return status;
}

static enum zb_status list_instances(struct bench *bench) {
  switch (bench->options.set) {
  case TABLE5:
    return list_table5(bench, 80, 160, 80);
  case CURVE:
    return list_table5(bench, 80, 240, 10);
  case BELOW:
    return list_table5(bench, 32, 72, 8);
  case UNEVEN:
    return list_uneven(bench);
  case PUBLIC:
    return list_public(bench);
  case SCALE:
    return list_scale(bench);
  case TABLE8:
    return list_table8(bench);
  case V:
    return list_v_units(bench);
  case V_REAL:
    return list_v_real(bench);
  default:
    return ZB_OK;
  }
}

// `count` of the set, one from each of as many equal stretches; its place in the stretch moves by the golden
// ratio, so that no step of the set's own is in tune with it.
static void thin(struct bench *bench) {
  const size_t keep = (size_t)bench->options.count;
  if (keep == 0 || keep >= bench->count) return;
  for (size_t k = 0; k < keep; k++) {
    const double place = (double)k + fmod((double)k * 0.6180339887, 1);
    bench->instance[k] = bench->instance[(size_t)(place * (double)bench->count / (double)keep)];
  }
  bench->count = keep;
}

// Rows.

// Which side became better last, of those left open.
static const char *last_side(const struct cli_run *row) {
  return cli_run_closed(row) ? "-" : row->last_moved;
}

static void measure(struct bench *bench, const struct instance *instance, const struct cli_run *row,
                    const struct instance *before, int64_t cost_before_ns) {
  double *metric = bench->metric, s = row->solve.seconds, mib = (double)row->solve.peak_bytes / 1048576;
  metric[CLOSED] += cli_run_closed(row) && row->good;
  metric[MEAN_GAP] += row->gap;
  metric[WORST_GAP] = fmax(metric[WORST_GAP], row->gap);
  metric[SECONDS] += s;
  metric[SLOWEST] = fmax(metric[SLOWEST], s);
  if (instance->devices <= 8) metric[SLOWEST_8] = fmax(metric[SLOWEST_8], s);
  metric[PEAK] = fmax(metric[PEAK], mib);
  metric[UNEQUAL] += instance->known_ns > 0 && instance->known_ns != row->cost_ns;
  // Without a schedule a point is as bad as can be; a known better one before it is a rise.
  metric[RISES] += before && before->curve == instance->curve && instance->curve && cost_before_ns > 0 &&
                   (row->cost_ns == 0 || row->cost_ns > cost_before_ns);
  metric[LATE] += bench->options.limit_s > 0 && s > bench->options.limit_s + 0.25;
  metric[BAD] += !row->good;
}

static void print_row(struct bench *bench, const struct instance *instance, const struct cli_run *row,
                      bool first) {
  char known[NAME] = "-";
  if (instance->known_ns) print_to(known, NAME, "%lld", (long long)instance->known_ns);
  printf("  %-36s %3d %5d %8s  %-10s %13lld %13s %8.4f%% %8.3f %7.1f  %-8s %7.1f %7.1f  %4d %8.3f%s\n",
         instance->name, instance->devices, instance->microbatches, instance->shown, row->status,
         (long long)row->cost_ns, known, 100 * row->gap, row->solve.seconds,
         (double)row->solve.peak_bytes / 1048576, last_side(row), row->schedule_moved_s, row->bound_moved_s,
         row->check.exit_code, row->check.seconds, row->good ? "" : "  BAD");
  fflush(stdout);
  zb_text_print(&bench->json, "%s\n    {\"profile\": \"%s\", \"devices\": %d, \"microbatches\": %d, ",
                first ? "" : ",", instance->name, instance->devices, instance->microbatches);
  zb_text_print(&bench->json,
                "\"limit\": \"%s\", \"status\": \"%s\", \"cost_ns\": %lld, \"bound_ns\": %lld, ",
                instance->shown, row->status, (long long)row->cost_ns, (long long)row->bound_ns);
  if (instance->known_ns) zb_text_print(&bench->json, "\"known_ns\": %lld, ", (long long)instance->known_ns);
  zb_text_print(&bench->json,
                "\"gap\": %.6f, \"seconds\": %.6f, \"peak_bytes\": %lld, \"last_moved\": \"%s\", ", row->gap,
                row->solve.seconds, (long long)row->solve.peak_bytes, last_side(row));
  zb_text_print(&bench->json,
                "\"schedule_moved_s\": %.1f, \"bound_moved_s\": %.1f, \"exit_code\": %d, "
                "\"check_exit_code\": %d, \"check_seconds\": %.6f, \"good\": %s}",
                row->schedule_moved_s, row->bound_moved_s, row->solve.exit_code, row->check.exit_code,
                row->check.seconds, row->good ? "true" : "false");
}

// A run that failed leaves its files for whoever looks into it.
static void keep_evidence(struct bench *bench, size_t number) {
  static const char *const names[] = {"schedule.json", "out", "err"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char from[PATH], to[PATH];
    print_to(from, PATH, "%.400s/%s", bench->folder, names[k]);
    print_to(to, PATH, "%.400s/bad-%s-%zu-%s", bench->folder, sets[bench->options.set].name, number,
             names[k]);
    rename(from, to);
  }
}

static enum zb_status run_rows(struct bench *bench) {
  enum zb_status status = ZB_OK;
  int64_t least_ns = 0; // of this curve's rows so far
  printf("%s, %zu instances, %g s each\n", sets[bench->options.set].about, bench->count,
         bench->options.limit_s);
  printf("  %-36s %3s %5s %8s  %-10s %13s %13s %9s %8s %7s  %-8s %7s %7s  %4s %8s\n", "profile", "p", "m",
         "limit", "status", "cost ns", "known ns", "gap", "s", "MiB", "moved", "cost s", "bound s", "zbck",
         "zbck s");
  for (size_t k = 0; k < bench->count && status == ZB_OK; k++) {
    const struct instance *instance = &bench->instance[k], *before = k > 0 ? instance - 1 : NULL;
    struct cli_run row = {.build = bench->build,
                          .folder = bench->folder,
                          .profile = instance->path,
                          .memory_limit = instance->limit[0] ? instance->limit : NULL,
                          .microbatches = instance->other_microbatches ? instance->microbatches : 0,
                          .limit_s = bench->options.limit_s,
                          .threads = bench->options.threads};
    if (before && before->curve != instance->curve) least_ns = 0;
    status = cli_run(&row, &bench->error);
    if (status != ZB_OK) break;
    measure(bench, instance, &row, before, least_ns);
    print_row(bench, instance, &row, k == 0);
    if (!row.good) keep_evidence(bench, k);
    if (row.cost_ns > 0 && (least_ns == 0 || row.cost_ns < least_ns)) least_ns = row.cost_ns;
  }
  if (bench->count > 0) {
    bench->metric[CLOSED] /= (double)bench->count;
    bench->metric[MEAN_GAP] /= (double)bench->count;
  }
  return status;
}

static void print_goals(struct bench *bench) {
  for (int k = 0; k < METRIC_COUNT; k++) {
    printf("  %-46s %12.6g", metrics[k].words, bench->metric[k]);
    zb_text_print(&bench->json, "%s\"%s\": {\"value\": %.9g", k ? ",\n    " : "", metrics[k].key,
                  bench->metric[k]);
    bool missed = k == BAD && bench->metric[k] > 0;
    for (size_t g = 0; g < sizeof goals / sizeof *goals; g++) {
      const struct goal *goal = &goals[g];
      if (goal->set != bench->options.set || (int)goal->metric != k) continue;
      bool met = goal->at_least ? bench->metric[k] >= goal->value : bench->metric[k] <= goal->value;
      missed |= !met;
      printf("   goal %s %g: %s", goal->at_least ? "at least" : "at most", goal->value,
             met ? "met" : "MISSED");
      zb_text_print(&bench->json, ", \"goal\": %g, \"met\": %s", goal->value, met ? "true" : "false");
    }
    bench->missed += missed;
    printf("\n");
    zb_text_put(&bench->json, "}");
  }
  printf("\n");
}

static enum zb_status run(struct bench *bench) {
  const struct options *options = &bench->options;
  bench->build = getenv("BUILD") ? getenv("BUILD") : "build";
  print_to(bench->folder, PATH, "%.300s/bench/exact-files", bench->build);
  if (mkdir(bench->folder, 0777) != 0 && errno != EEXIST)
    return zb_fail(&bench->error, ZB_FAILED, "%s: %s", bench->folder, strerror(errno));
  enum zb_status status = list_instances(bench);
  if (status != ZB_OK) return status;
  thin(bench);
  zb_text_print(&bench->json,
                "{\"set\": \"%s\", \"limit_s\": %g, \"seed\": %ld, \"threads\": %ld,\n  \"rows\": [",
                sets[options->set].name, options->limit_s, options->seed, options->threads);
  status = run_rows(bench);
  zb_text_put(&bench->json, "\n  ],\n  \"metrics\": {");
  print_goals(bench);
  zb_text_put(&bench->json, "}\n}\n");
  if (status == ZB_OK && options->json_path)
    status = zb_file_write(options->json_path, &bench->json, &bench->error);
  return status;
}

// Command line.

static bool read_number(const char *text, double least, double *value) {
  char *end;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value >= least && *value <= 1e9;
}

// False where an argument is not one of ours; *at names it.
static bool read_options(int argc, char **argv, struct options *options, const char **at) {
  *options = (struct options){.set = SET_COUNT, .limit_s = -1, .seed = 1, .threads = 0};
  *at = argc > 1 ? argv[1] : "no set";
  for (int k = 0; k < SET_COUNT && argc > 1; k++)
    if (strcmp(argv[1], sets[k].name) == 0) options->set = (enum set)k;
  if (options->set == SET_COUNT) return false;
  for (int k = 2; k < argc; k += 2) {
    double value;
    *at = argv[k];
    if (k + 1 == argc) return false;
    if (strcmp(argv[k], "--json") == 0) {
      options->json_path = argv[k + 1];
      continue;
    }
    if (!read_number(argv[k + 1], 0, &value)) return false;
    if (strcmp(argv[k], "--limit") == 0)
      options->limit_s = value;
    else if (strcmp(argv[k], "--count") == 0)
      options->count = (long)value;
    else if (strcmp(argv[k], "--seed") == 0)
      options->seed = (long)value;
    else if (strcmp(argv[k], "--threads") == 0)
      options->threads = (long)value;
    else
      return false;
  }
  if (options->limit_s < 0) options->limit_s = sets[options->set].limit_s;
  return true;
}

int main(int argc, char **argv) {
  struct bench bench = {0};
  const char *at = "";
  if (!read_options(argc, argv, &bench.options, &at)) {
    fprintf(stderr,
            "exact: %s: usage: exact SET [--limit S] [--count N] [--seed N] [--threads N] [--json FILE]\n",
            at);
    for (int k = 0; k < SET_COUNT; k++)
      fprintf(stderr, "  %-7s %s, %g s each\n", sets[k].name, sets[k].about, sets[k].limit_s);
    return 2;
  }
  enum zb_status status = run(&bench);
  if (status != ZB_OK)
    fprintf(stderr, "exact: %s%s%s\n", bench.error.path, bench.error.path[0] ? ": " : "", bench.error.text);
  int missed = bench.missed;
  free(bench.instance);
  zb_text_free(&bench.json);
  return status != ZB_OK ? zb_status_exit_code(status) : missed > 0;
}
