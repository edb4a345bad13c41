// What the core measures: published results, the greedy heuristic's distance from the best known, and speed.
//
//   core [--json FILE]      run at the top of the tree; tables on stdout, the same numbers as JSON in FILE
//
// bench/README.md defines every table and column. Exit 1 where a published number is missed.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/io/program_json.h"
#include "solver/io/table.h"
#include "solver/model/answer.h"
#include "solver/model/check.h"
#include "solver/model/number.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"
#include "tests/heap.h"

struct bench {
  struct zb_text tables, json;
  struct zb_error error;
  int missed; // published numbers that were not met
};

static enum zb_status read_json(const char *path, struct zb_json **root, struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(path, 1 << 20, &text, error);
  if (status == ZB_OK) status = zb_json_parse(text.data, text.size, ZB_JSON_DECIMALS, root, error);
  zb_text_free(&text);
  return status;
}

static enum zb_status read_config(const char *folder, const char *name, struct zb_profile **profile,
                                  struct zb_error *error) {
  char path[256];
  snprintf(path, sizeof path, "configs/%s%s.json", folder, name);
  return zb_profile_read(path, profile, error);
}

// One method on one profile, checked.
struct outcome {
  enum zb_status status;
  int64_t cost_ns, bound_ns;
  double bubble_rate;
};

static enum zb_status solve(const struct zb_engine *engine, const struct zb_profile *profile,
                            struct outcome *outcome, struct zb_error *error) {
  struct zb_problem problem = {.profile = profile,
                               .objective = ZB_SPAN,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  struct zb_result result = {0};
  struct zb_answer answer = {0};
  enum zb_status status = engine->solve(&problem, NULL, &result, error);
  if (status == ZB_OK) status = zb_answer_from_result(&problem, engine->name, &result, &answer, error);
  if (status == ZB_OK)
    *outcome = (struct outcome){answer.status, answer.cost_ns, answer.bound_ns, answer.bubble_rate};
  zb_answer_free(&answer);
  return status;
}

// A list of JSON objects is written row by row.
static void begin_list(struct bench *bench, const char *name) {
  zb_text_print(&bench->json, "%s\n  \"%s\": [", bench->json.size > 1 ? "," : "", name);
}

static void begin_row(struct bench *bench, const char *profile, const char *method) {
  bool first = bench->json.data[bench->json.size - 1] == '[';
  zb_text_print(&bench->json, "%s\n    {\"profile\": \"%s\", \"method\": \"%s\"", first ? "" : ",", profile,
                method);
}

static void end_list(struct bench *bench) { zb_text_put(&bench->json, "\n  ]"); }

static void print_table(struct bench *bench, struct zb_table *table, const char *title) {
  zb_text_print(&bench->tables, "%s\n", title);
  zb_table_print(table, 2, &bench->tables);
  zb_text_put(&bench->tables, "\n");
  zb_table_free(table);
}

static const struct {
  const struct zb_engine *engine;
  const char *cost_of; // whose published cost it must have, NULL: none was published
  bool on_v_profiles;
} families[] = {
    {&zb_engine_gpipe, NULL, false},
    {&zb_engine_1f1b, "1f1b", true},
    {&zb_engine_1f1b_interleaved, NULL, false},
    {&zb_engine_zb_h1, "zb-h1", true},
    {&zb_engine_zb_h2, "zb-h2", true},
    {&zb_engine_zb_1p, "zb-h1", false},
    {&zb_engine_zb_2p, "zb-2p", false},
};

static const double no_rate = -1;

static double rate_of(const struct zb_json *row, const struct zb_engine *engine) {
  const struct zb_json *rates = zb_json_member(row, "bubble_rate"), *rate = NULL;
  if (engine == &zb_engine_1f1b_interleaved)
    rate = zb_json_member(row, "interleaved_every_dependency");
  else if (rates)
    rate = zb_json_member(rates, engine->name);
  return rate ? zb_json_number(rate) : no_rate;
}

static bool same_to_four_digits(double a, double b) {
  char texts[2][32];
  snprintf(texts[0], sizeof texts[0], "%.4f", a);
  snprintf(texts[1], sizeof texts[1], "%.4f", b);
  return strcmp(texts[0], texts[1]) == 0;
}

static void published_row(struct bench *bench, struct zb_table *table, const struct zb_json *row,
                          size_t which, const struct outcome *outcome) {
  const struct zb_engine *engine = families[which].engine;
  const struct zb_json *costs = zb_json_member(row, "cost_us");
  const struct zb_json *cost =
      costs && families[which].cost_of ? zb_json_member(costs, families[which].cost_of) : NULL;
  int64_t cost_ns = -1;
  double rate = rate_of(row, engine);
  if (cost) zb_json_scaled(cost, 1000, &cost_ns);
  bool compared = cost || rate > no_rate;
  bool equal = (!cost || cost_ns == outcome->cost_ns) &&
               (!(rate > no_rate) || same_to_four_digits(rate, outcome->bubble_rate));
  bench->missed += compared && !equal;

  zb_table_cell(table, "%s", zb_json_key(row));
  zb_table_cell(table, "%s", engine->name);
  zb_table_cell(table, "%lld", (long long)(outcome->cost_ns / 1000));
  if (cost)
    zb_table_cell(table, "%lld", (long long)(cost_ns / 1000));
  else
    zb_table_cell(table, "-");
  zb_table_cell(table, "%.4f", outcome->bubble_rate);
  if (rate > no_rate)
    zb_table_cell(table, "%.4f", rate);
  else
    zb_table_cell(table, "-");
  zb_table_cell(table, "%s", !compared ? "-" : equal ? "yes" : "NO");

  begin_row(bench, zb_json_key(row), engine->name);
  zb_text_print(&bench->json, ", \"cost_ns\": %lld, \"bubble_rate\": %.6f", (long long)outcome->cost_ns,
                outcome->bubble_rate);
  if (cost) zb_text_print(&bench->json, ", \"published_cost_ns\": %lld", (long long)cost_ns);
  if (rate > no_rate) zb_text_print(&bench->json, ", \"published_bubble_rate\": %.4f", rate);
  zb_text_print(&bench->json, ", \"equal\": %s}", !compared ? "null" : equal ? "true" : "false");
}

// The profile a method runs on: a chain, or for interleaved a loop of the published number of chunks.
static enum zb_status profile_for(const struct zb_engine *engine, const struct zb_profile *profile,
                                  const struct zb_json *row, struct zb_profile **derived,
                                  struct zb_error *error) {
  int64_t chunks = 1;
  const struct zb_json *published = zb_json_member(row, "interleaved_chunks");
  if (engine->need == ZB_NEED_LOOP && published) zb_json_scaled(published, 1, &chunks);
  return zb_profile_derive(profile, chunks == 1 ? ZB_CHAIN : ZB_LOOP, (int)chunks, derived, error);
}

static enum zb_status published_table(struct bench *bench, const struct zb_json *known, const char *name,
                                      const char *title) {
  static const struct zb_column columns[] = {{"profile", false},  {"method", false},     {"cost us", true},
                                             {"published", true}, {"bubble rate", true}, {"published", true},
                                             {"equal", false}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  const struct zb_json *rows = zb_json_member(known, name);
  enum zb_status status = ZB_OK;
  begin_list(bench, name);
  for (const struct zb_json *row = zb_json_first(rows); row && status == ZB_OK; row = zb_json_next(row)) {
    struct zb_profile *profile = NULL;
    status = read_config("", zb_json_key(row), &profile, &bench->error);
    for (size_t i = 0; i < sizeof families / sizeof *families && status == ZB_OK; i++) {
      struct zb_profile *derived = NULL;
      struct outcome outcome;
      if (profile->placement == ZB_V && !families[i].on_v_profiles) continue;
      status = profile_for(families[i].engine, profile, row, &derived, &bench->error);
      for (int d = 0; status == ZB_OK && profile->placement == ZB_V && d < derived->devices; d++)
        derived->limit_bytes[d] = ZB_NO_LIMIT; // it is zb-v's; the others were published with what they need
      if (status == ZB_OK) status = solve(families[i].engine, derived, &outcome, &bench->error);
      if (status == ZB_OK) published_row(bench, &table, row, i, &outcome);
      zb_profile_free(derived);
    }
    zb_profile_free(profile);
  }
  end_list(bench);
  print_table(bench, &table, title);
  return status;
}

// The families that are made for Table 8's V, under its limit, against the published zb-v.
static enum zb_status v_table(struct bench *bench, const struct zb_json *known) {
  static const struct zb_engine *const engines[] = {&zb_engine_zb_v, &zb_engine_v_blocks};
  static const struct zb_column columns[] = {
      {"profile", false},        {"method", false},     {"cost us", true}, {"published zb-v", true},
      {"above published", true}, {"bubble rate", true}, {"ms", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  const struct zb_json *rows = zb_json_member(known, "table8");
  enum zb_status status = ZB_OK;
  begin_list(bench, "table8_v");
  for (const struct zb_json *row = zb_json_first(rows); row && status == ZB_OK; row = zb_json_next(row)) {
    struct zb_profile *profile = NULL;
    int64_t published_ns = 0, best_ns = INT64_MAX;
    zb_json_scaled(zb_json_member(row, "zb_v_cost_us"), 1000, &published_ns);
    status = read_config("", zb_json_key(row), &profile, &bench->error);
    for (size_t i = 0; i < sizeof engines / sizeof *engines && status == ZB_OK; i++) {
      struct outcome outcome;
      const int64_t start = zb_clock_ns();
      status = solve(engines[i], profile, &outcome, &bench->error);
      if (status != ZB_OK) break;
      const double ms = (double)(zb_clock_ns() - start) * 1e-6;
      const double above = zb_ratio(outcome.cost_ns, published_ns);
      best_ns = zb_min(best_ns, outcome.cost_ns);
      zb_table_cell(&table, "%s", zb_json_key(row));
      zb_table_cell(&table, "%s", engines[i]->name);
      zb_table_cell(&table, "%lld", (long long)(outcome.cost_ns / 1000));
      zb_table_cell(&table, "%lld", (long long)(published_ns / 1000));
      zb_table_cell(&table, "%.3f%%", 100 * above);
      zb_table_cell(&table, "%.4f", outcome.bubble_rate);
      zb_table_cell(&table, "%.1f", ms);
      begin_row(bench, zb_json_key(row), engines[i]->name);
      zb_text_print(
          &bench->json,
          ", \"cost_ns\": %lld, \"published_cost_ns\": %lld, \"above_published\": %.6f, \"ms\": %.3f}",
          (long long)outcome.cost_ns, (long long)published_ns, above, ms);
    }
    bench->missed += status == ZB_OK && best_ns > published_ns;
    zb_profile_free(profile);
  }
  end_list(bench);
  print_table(bench, &table, "Table 8, on the V");
  return status;
}

static enum zb_status uneven_table(struct bench *bench, const struct zb_json *known) {
  static const struct zb_column columns[] = {
      {"profile", false},  {"devices", true},       {"microbatches", true}, {"limit / p", true},
      {"greedy us", true}, {"best known us", true}, {"gap to best", true},  {"gap to bound", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  const struct zb_json *rows = zb_json_member(known, "profiles");
  enum zb_status status = ZB_OK;
  double sum = 0, sum_to_bound = 0, worst = 0;
  int count = 0, feasible = 0;
  begin_list(bench, "uneven");
  for (const struct zb_json *row = zb_json_first(rows); row && status == ZB_OK; row = zb_json_next(row)) {
    struct zb_profile *profile = NULL;
    struct outcome outcome;
    int64_t best_ns = 0, bound_ns = 0;
    zb_json_scaled(zb_json_member(row, "span_us_best"), 1000, &best_ns);
    zb_json_scaled(zb_json_member(row, "span_us_bound"), 1000, &bound_ns);
    status = read_config("uneven/", zb_json_key(row), &profile, &bench->error);
    if (status == ZB_OK) status = solve(&zb_engine_greedy, profile, &outcome, &bench->error);
    if (status == ZB_OK) {
      double gap = zb_ratio(outcome.cost_ns, best_ns), to_bound = zb_ratio(outcome.cost_ns, bound_ns);
      double limit = (double)profile->limit_bytes[0] /
                     ((double)zb_profile_activation(profile) * (double)profile->devices);
      count++;
      feasible += outcome.status == ZB_FEASIBLE || outcome.status == ZB_OPTIMAL;
      sum += fmax(gap, 0);
      sum_to_bound += to_bound;
      worst = fmax(worst, gap);
      zb_table_cell(&table, "%s", zb_json_key(row));
      zb_table_cell(&table, "%d", profile->devices);
      zb_table_cell(&table, "%d", profile->microbatches);
      zb_table_cell(&table, "%.2fx", limit);
      zb_table_cell(&table, "%lld", (long long)(outcome.cost_ns / 1000));
      zb_table_cell(&table, "%lld", (long long)(best_ns / 1000));
      zb_table_cell(&table, "%.4f", gap);
      zb_table_cell(&table, "%.4f", to_bound);
      begin_row(bench, zb_json_key(row), "greedy");
      zb_text_print(&bench->json,
                    ", \"status\": \"%s\", \"cost_ns\": %lld, \"best_ns\": %lld, \"known_bound_ns\": %lld, "
                    "\"gap_to_best\": %.6f, \"gap_to_bound\": %.6f}",
                    zb_status_word(outcome.status), (long long)outcome.cost_ns, (long long)best_ns,
                    (long long)bound_ns, gap, to_bound);
    }
    zb_profile_free(profile);
  }
  end_list(bench);
  bench->missed += feasible < count;
  const double mean = sum / fmax(count, 1), mean_to_bound = sum_to_bound / fmax(count, 1);
  zb_text_print(&bench->json,
                ",\n  \"uneven_mean_gap_to_best\": %.6f,\n  \"uneven_worst_gap_to_best\": %.6f,"
                "\n  \"uneven_mean_gap_to_bound\": %.6f",
                mean, worst, mean_to_bound);
  print_table(bench, &table, "greedy on uneven profiles");
  zb_text_print(
      &bench->tables,
      "  %d of %d feasible; gap to the best known: mean %.2f%%, worst %.2f%%; to the bound: mean %.2f%%\n\n",
      feasible, count, 100 * mean, 100 * worst, 100 * mean_to_bound);
  return status;
}

enum { REPEATS = 20, SWEEPS = 200 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void speed_row(struct bench *bench, struct zb_table *table, const char *what, const char *unit,
                      double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  zb_table_cell(table, "%s", what);
  zb_table_cell(table, "%s", unit);
  zb_table_cell(table, "%.2f", values[0]);
  zb_table_cell(table, "%.2f", values[count / 2]);
  bool first = bench->json.data[bench->json.size - 1] == '{';
  zb_text_print(&bench->json, "%s\n    \"%s\": {\"unit\": \"%s\", \"best\": %.3f, \"median\": %.3f}",
                first ? "" : ",", what, unit, values[0], values[count / 2]);
}

// The whole search, from a profile in memory to a timed schedule.
static enum zb_status measure_search(struct bench *bench, struct zb_table *table,
                                     const struct zb_profile *profile, const struct zb_engine *engine,
                                     const char *what, struct zb_result *kept) {
  double ms[REPEATS];
  struct zb_problem problem = {.profile = profile,
                               .objective = ZB_SPAN,
                               .threads = 1,
                               .seed = 1,
                               .deadline = zb_deadline_in(zb_clock_ns(), 0)};
  for (int i = 0; i < REPEATS; i++) {
    zb_result_free(kept);
    int64_t start = zb_clock_ns();
    enum zb_status status = engine->solve(&problem, NULL, kept, &bench->error);
    ms[i] = (double)(zb_clock_ns() - start) * 1e-6;
    if (status != ZB_OK) return status;
  }
  speed_row(bench, table, what, "ms", ms, REPEATS);
  return ZB_OK;
}

static enum zb_status measure_sweeps(struct bench *bench, struct zb_table *table,
                                     const struct zb_profile *profile, const struct zb_schedule *schedule) {
  double ns[SWEEPS];
  struct zb_timeline timeline = {0};
  size_t ops = schedule->first[profile->devices];
  enum zb_status status = ZB_OK;
  for (int i = 0; i < SWEEPS && status == ZB_OK; i++) {
    int64_t start = zb_clock_ns();
    status = zb_timeline_compute(profile, schedule, &timeline, &bench->error);
    ns[i] = (double)(zb_clock_ns() - start) / (double)ops;
  }
  if (status == ZB_OK) speed_row(bench, table, "timeline", "ns an op", ns, SWEEPS);
  for (int i = 0; i < REPEATS && status == ZB_OK; i++) {
    int64_t start = zb_clock_ns();
    status = zb_timeline_period(profile, schedule, &timeline, &bench->error);
    ns[i] = (double)(zb_clock_ns() - start) / (double)ops;
  }
  if (status == ZB_OK) speed_row(bench, table, "period", "ns an op", ns, REPEATS);
  for (int i = 0; i < REPEATS && status == ZB_OK; i++) {
    int64_t start = zb_clock_ns();
    status = zb_check_schedule(profile, schedule, &timeline, &bench->error);
    ns[i] = (double)(zb_clock_ns() - start) / (double)ops;
  }
  if (status == ZB_OK) speed_row(bench, table, "check", "ns an op", ns, REPEATS);
  zb_timeline_free(&timeline);
  return status;
}

// From a schedule in memory to a checked program's text, and from that text to a checked program.
static enum zb_status measure_compile(struct bench *bench, struct zb_table *table,
                                      const struct zb_profile *profile, const struct zb_schedule *schedule) {
  double compile_ms[REPEATS], read_ms[REPEATS];
  enum zb_status status = ZB_OK;
  for (int i = 0; i < REPEATS && status == ZB_OK; i++) {
    struct zb_program *program = NULL, *again = NULL;
    struct zb_run run = {0};
    struct zb_text text = {0};
    int64_t start = zb_clock_ns();
    status = zb_program_lower(profile, schedule, "zb-2p", ZB_OPTIMIZER_BARRIER, &program, &bench->error);
    if (status == ZB_OK) status = zb_program_check(program, &run, &bench->error);
    if (status == ZB_OK) zb_program_print(program, &text);
    const int64_t middle = zb_clock_ns();
    if (status == ZB_OK) status = zb_program_read_text(text.data, text.size, &again, &bench->error);
    if (status == ZB_OK) status = zb_program_check(again, &run, &bench->error);
    compile_ms[i] = (double)(middle - start) * 1e-6;
    read_ms[i] = (double)(zb_clock_ns() - middle) * 1e-6;
    zb_program_free(program);
    zb_program_free(again);
    zb_run_free(&run);
    zb_text_free(&text);
  }
  if (status == ZB_OK) speed_row(bench, table, "compile", "ms", compile_ms, REPEATS);
  if (status == ZB_OK) speed_row(bench, table, "read program", "ms", read_ms, REPEATS);
  return status;
}

// Peak heap from a profile in memory to a checked answer.
static enum zb_status measure_memory(struct bench *bench, struct zb_table *table,
                                     const struct zb_profile *profile, const struct zb_engine *engine,
                                     size_t ops) {
  struct outcome outcome;
  if (!HEAP_WRAPPED) return ZB_OK;
  int64_t before = heap.most = heap.bytes;
  enum zb_status status = solve(engine, profile, &outcome, &bench->error);
  if (status != ZB_OK) return status;
  double bytes = (double)(heap.most - before) / (double)ops;
  speed_row(bench, table, "memory", "bytes an op", &bytes, 1);
  return status;
}

static enum zb_status speed_table(struct bench *bench) {
  static const struct zb_column columns[] = {
      {"what", false}, {"unit", false}, {"best", true}, {"median", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  static const char *const name = "table5-28.3b-p32-m256";
  struct zb_profile *profile = NULL;
  struct zb_result result = {0};
  size_t ops = 0;
  zb_text_print(&bench->json, ",\n  \"speed\": {");
  enum zb_status status = read_config("", name, &profile, &bench->error);
  if (status == ZB_OK)
    status = measure_search(bench, &table, profile, &zb_engine_zb_1p, "greedy, 1x", &result);
  if (status == ZB_OK)
    status = measure_search(bench, &table, profile, &zb_engine_zb_2p, "greedy, 2x", &result);
  if (status == ZB_OK) {
    ops = result.schedule->first[profile->devices];
    status = measure_sweeps(bench, &table, profile, result.schedule);
    if (status == ZB_OK) status = measure_compile(bench, &table, profile, result.schedule);
  }
  zb_result_free(&result);
  if (status == ZB_OK) status = measure_memory(bench, &table, profile, &zb_engine_zb_2p, ops);
  zb_profile_free(profile);
  zb_text_print(&bench->json, ",\n    \"profile\": \"%s\", \"ops\": %zu\n  }", name, ops);
  char title[128];
  snprintf(title, sizeof title, "speed on %s, %zu ops", name, ops);
  print_table(bench, &table, title);
  return status;
}

static enum zb_status run(struct bench *bench) {
  struct zb_json *published = NULL, *uneven = NULL;
  enum zb_status status = read_json("bench/published-known.json", &published, &bench->error);
  if (status == ZB_OK) status = read_json("bench/uneven-known.json", &uneven, &bench->error);
  zb_text_put(&bench->json, "{");
  if (status == ZB_OK) status = published_table(bench, published, "table5", "Table 5");
  if (status == ZB_OK)
    status = published_table(bench, published, "table8", "Table 8, two chunks merged into a stage");
  if (status == ZB_OK) status = v_table(bench, published);
  if (status == ZB_OK) status = uneven_table(bench, uneven);
  if (status == ZB_OK) status = speed_table(bench);
  zb_text_print(&bench->json, ",\n  \"missed\": %d\n}\n", bench->missed);
  zb_json_free(published);
  zb_json_free(uneven);
  return status;
}

int main(int argc, char **argv) {
  const char *json_path = argc == 3 && strcmp(argv[1], "--json") == 0 ? argv[2] : NULL;
  if (argc != 1 && !json_path) {
    fputs("usage: core [--json FILE]\n", stderr);
    return 2;
  }
  struct bench bench = {0};
  enum zb_status status = run(&bench);
  if (status == ZB_OK) status = zb_text_status(&bench.tables, &bench.error);
  if (status == ZB_OK) status = zb_file_write("-", &bench.tables, &bench.error);
  if (status == ZB_OK && json_path) status = zb_file_write(json_path, &bench.json, &bench.error);
  if (status != ZB_OK)
    fprintf(stderr, "core: %s%s%s\n", bench.error.path, bench.error.path[0] ? ": " : "", bench.error.text);
  zb_text_free(&bench.tables);
  zb_text_free(&bench.json);
  if (status != ZB_OK) return zb_status_exit_code(status);
  if (bench.missed > 0) fprintf(stderr, "core: %d published numbers were missed\n", bench.missed);
  return bench.missed > 0;
}
