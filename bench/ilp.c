// What the integer program is measured by: proofs on the small profile, agreement with the window engine, and
// what refinement gains on the uneven profiles.
//
//   ilp [--json FILE] [--seconds S] [--tiny N] [--profiles N]      run at the top of the tree
//
// S: time of one refinement (20). N: tiny profiles to compare with windows (200; half as many without), and
// uneven profiles to refine (30). Tables on stdout, the same numbers as JSON in FILE; bench/README.md defines
// every column. Exit 1 where a target is missed, 0 with a word where the build has no GLPK.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "ilp/glpk_solve.h"
#include "ilp/ilp_engine.h"
#include "ilp/refine.h"
#include "solver/exact/window_engine.h"
#include "solver/io/file.h"
#include "solver/io/json.h"
#include "solver/io/profile_json.h"
#include "solver/io/table.h"
#include "solver/model/check.h"
#include "solver/model/number.h"
#include "tests/generate.h"
#include "tests/instances.h"

struct bench {
  double seconds;
  int tiny, profiles;
  const char *json_path;
  struct zb_text tables, json;
  struct zb_error error;
  int missed; // targets that were not met
};

static struct zb_problem problem_of(const struct zb_profile *profile, enum zb_objective objective,
                                    double seconds) {
  return (struct zb_problem){.profile = profile,
                             .objective = objective,
                             .threads = 1,
                             .seed = 1,
                             .deadline = zb_deadline_in(zb_clock_ns(), seconds)};
}

// No result counts before its schedule has been checked.
static enum zb_status check(const struct zb_problem *problem, const struct zb_result *result,
                            struct zb_error *error) {
  if (!result->schedule) return ZB_OK;
  struct zb_timeline timeline = {0};
  enum zb_status status = zb_check_schedule(problem->profile, result->schedule, &timeline, error);
  if (status == ZB_OK && zb_timeline_cost(&timeline, problem->objective) != result->cost_ns)
    status = zb_fail(error, ZB_SELF_CHECK, "a result's cost is not its schedule's");
  if (status == ZB_OK && result->bound_ns > result->cost_ns)
    status = zb_fail(error, ZB_SELF_CHECK, "a bound is above its schedule");
  zb_timeline_free(&timeline);
  return status;
}

static void print_table(struct bench *bench, struct zb_table *table, const char *title) {
  zb_text_print(&bench->tables, "%s\n", title);
  zb_table_print(table, 2, &bench->tables);
  zb_text_put(&bench->tables, "\n");
  zb_table_free(table);
}

static void begin_list(struct bench *bench, const char *name) {
  zb_text_print(&bench->json, "%s\n  \"%s\": [", bench->json.size > 1 ? "," : "", name);
}

static void begin_row(struct bench *bench) {
  zb_text_print(&bench->json, "%s\n    {", bench->json.data[bench->json.size - 1] == '[' ? "" : ",");
}

static void end_list(struct bench *bench) { zb_text_put(&bench->json, "\n  ]"); }

// f/b/w 5/6/4, comm 1, memory 2/-1/-1.
static struct zb_profile *small_profile(int devices, int microbatches, int64_t limit) {
  struct generated_profile g = {.devices = devices, .microbatches = microbatches, .has_limit = true};
  for (int d = 0; d < devices; d++) {
    g.f[d] = 5;
    g.b[d] = 6;
    g.w[d] = 4;
    g.bw[d] = 10;
    g.comm_forward[d] = g.comm_backward[d] = 1;
    g.memory_f[d] = 2;
    g.memory_b[d] = g.memory_w[d] = -1;
    g.limit[d] = limit;
  }
  return instance_from_generated(&g);
}

static const struct {
  const char *word;
  struct zb_ilp_options options;
} modes[] = {
    {"ilp", {false, false}},        // as the method runs
    {"guide off", {false, true}},   // windows shape the program, GLPK's tree is left alone
    {"windows off", {true, false}}, // neither
};
enum { MODES = sizeof modes / sizeof *modes };

static enum zb_status proof_row(struct bench *bench, struct zb_table *table, int devices, int microbatches,
                                int64_t limit, int64_t optimum, int mode, double target_s) {
  struct zb_profile *profile = small_profile(devices, microbatches, limit);
  if (!profile) return zb_fail_memory(&bench->error);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN, 60);
  struct zb_result result = {0};
  struct zb_ilp_report report;
  enum zb_status status = zb_ilp_solve(&problem, &modes[mode].options, NULL, &result, &report, &bench->error);
  if (status == ZB_OK) status = check(&problem, &result, &bench->error);
  if (status == ZB_OK) {
    // Alone, GLPK has to end its own tree; otherwise it is stopped at the windows' bound.
    const bool ended = mode == 0 || report.claimed;
    const bool met = result.status == ZB_OPTIMAL && result.cost_ns == optimum && ended &&
                     (!(target_s > 0) || report.seconds <= target_s);
    if (target_s > 0) bench->missed += !met;
    zb_table_cell(table, "%d", devices);
    zb_table_cell(table, "%d", microbatches);
    zb_table_cell(table, "%lld", (long long)limit);
    zb_table_cell(table, "%s", modes[mode].word);
    zb_table_cell(table, "%lld", (long long)result.cost_ns);
    zb_table_cell(table, "%lld", (long long)result.bound_ns);
    zb_table_cell(table, "%s", report.claimed ? "yes" : "no");
    zb_table_cell(table, "%lld of %lld", (long long)report.open, (long long)report.orders);
    zb_table_cell(table, "%lld", (long long)report.nodes);
    zb_table_cell(table, "%.2f", report.seconds);
    if (target_s > 0) {
      zb_table_cell(table, "%.0f", target_s);
    } else {
      zb_table_cell(table, "-");
    }
    begin_row(bench);
    zb_text_print(&bench->json,
                  "\"devices\": %d, \"microbatches\": %d, \"limit\": %lld, \"mode\": \"%s\", \"cost\": %lld, "
                  "\"bound\": %lld, \"optimum\": %lld, \"claimed\": %s, \"open\": %lld, \"orders\": %lld, "
                  "\"nodes\": %lld, \"seconds\": %.3f}",
                  devices, microbatches, (long long)limit, modes[mode].word, (long long)result.cost_ns,
                  (long long)result.bound_ns, (long long)optimum, report.claimed ? "true" : "false",
                  (long long)report.open, (long long)report.orders, (long long)report.nodes, report.seconds);
  }
  zb_result_free(&result);
  zb_profile_free(profile);
  return status;
}

static enum zb_status proof_table(struct bench *bench) {
  static const struct zb_column columns[] = {
      {"p", true},     {"m", true},     {"limit", true},         {"mode", false},
      {"cost", true},  {"bound", true}, {"tree used up", false}, {"orders open", true},
      {"nodes", true}, {"s", true},     {"target s", true}};
  static const struct {
    int devices, microbatches;
    int64_t limit, optimum;
    double target_s[MODES]; // 0: none
  } rows[] = {
      {3, 6, 6, 112, {0, 0, 60}},
      {4, 8, 8, 153, {2, 2, -1}},
      {4, 12, 8, 213, {10, 10, -1}},
      {4, 12, 10, 199, {10, 10, -1}},
  };
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  enum zb_status status = ZB_OK;
  begin_list(bench, "ilp_proofs");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int mode = 0; mode < MODES && status == ZB_OK; mode++) {
      if (rows[i].target_s[mode] < 0) continue;
      status = proof_row(bench, &table, rows[i].devices, rows[i].microbatches, rows[i].limit, rows[i].optimum,
                         mode, rows[i].target_s[mode]);
    }
  }
  end_list(bench);
  print_table(bench, &table, "ilp: the small profile, span");
  return status;
}

// How often `ilp` meets `window` on tiny profiles that both close.
static enum zb_status tiny_table(struct bench *bench) {
  static const struct zb_column columns[] = {{"mode", false}, {"profiles", true},     {"both close", true},
                                             {"equal", true}, {"only claimed", true}, {"s", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  enum zb_status status = ZB_OK;
  begin_list(bench, "ilp_tiny");
  for (int mode = 0; mode < MODES && status == ZB_OK; mode++) {
    int closed = 0, equal = 0, claimed = 0, tried = 0;
    const int wanted = mode == MODES - 1 ? (bench->tiny + 1) / 2 : bench->tiny;
    const int64_t start = zb_clock_ns();
    for (uint64_t index = 0; closed < wanted && index < 2 * (uint64_t)wanted + 100 && status == ZB_OK;
         index++) {
      struct generated_profile generated;
      generate_profile(&generated, GENERATE_TINY, 4, index);
      struct zb_profile *profile = instance_from_generated(&generated);
      if (!profile) return zb_fail_memory(&bench->error);
      const enum zb_objective objective = (enum zb_objective)(index % ZB_OBJECTIVE_COUNT);
      const struct zb_problem problem = problem_of(profile, objective, 10);
      struct zb_result a = {0}, b = {0};
      struct zb_ilp_report report = {0};
      status = zb_ilp_solve(&problem, &modes[mode].options, NULL, &a, &report, &bench->error);
      if (status == ZB_OK) status = zb_engine_window.solve(&problem, NULL, &b, &bench->error);
      if (status == ZB_OK) status = check(&problem, &a, &bench->error);
      if (status == ZB_OK) status = check(&problem, &b, &bench->error);
      const bool b_closed = b.schedule && b.cost_ns == b.bound_ns;
      tried++;
      if (status == ZB_OK && b_closed && (a.cost_ns == a.bound_ns || report.claimed)) {
        closed++;
        equal += a.cost_ns == b.cost_ns;
        claimed += a.cost_ns != a.bound_ns;
      }
      zb_result_free(&a);
      zb_result_free(&b);
      zb_profile_free(profile);
    }
    bench->missed += equal < closed || closed < wanted;
    const double seconds = (double)(zb_clock_ns() - start) * 1e-9;
    zb_table_cell(&table, "%s", modes[mode].word);
    zb_table_cell(&table, "%d", tried);
    zb_table_cell(&table, "%d", closed);
    zb_table_cell(&table, "%d", equal);
    zb_table_cell(&table, "%d", claimed);
    zb_table_cell(&table, "%.1f", seconds);
    begin_row(bench);
    zb_text_print(&bench->json,
                  "\"mode\": \"%s\", \"profiles\": %d, \"closed\": %d, \"equal\": %d, \"claimed\": %d, "
                  "\"seconds\": %.2f}",
                  modes[mode].word, tried, closed, equal, claimed, seconds);
  }
  end_list(bench);
  print_table(bench, &table, "ilp against window on tiny profiles, all three objectives");
  return status;
}

// Sums over the refined profiles.
struct gains {
  double before, after;
  int count, closed;
};

static enum zb_status refine_row(struct bench *bench, struct zb_table *table, const struct zb_json *row,
                                 struct gains *gains) {
  struct zb_profile *profile = NULL;
  struct zb_result start = {0}, result = {0};
  struct zb_refine_report report = {0};
  int64_t bound_ns = 0;
  char path[256];
  snprintf(path, sizeof path, "configs/uneven/%s.json", zb_json_key(row));
  zb_json_scaled(zb_json_member(row, "span_us_bound"), 1000, &bound_ns);
  enum zb_status status = zb_profile_read(path, &profile, &bench->error);
  if (status != ZB_OK) return status;
  struct zb_problem problem = problem_of(profile, ZB_SPAN, 0);
  status = zb_engine_greedy.solve(&problem, NULL, &start, &bench->error);
  problem.deadline = zb_deadline_in(zb_clock_ns(), bench->seconds);
  if (status == ZB_OK) status = zb_ilp_refine(&problem, start.schedule, &result, &report, &bench->error);
  if (status == ZB_OK) status = check(&problem, &result, &bench->error);
  if (status == ZB_OK) {
    bound_ns = zb_max(bound_ns, result.bound_ns);
    const double before = zb_ratio(start.cost_ns, bound_ns), after = zb_ratio(result.cost_ns, bound_ns);
    const double seconds = zb_deadline_elapsed_s(&problem.deadline);
    bench->missed += result.cost_ns > start.cost_ns;
    gains->before += before;
    gains->after += after;
    gains->count++;
    gains->closed += result.cost_ns == bound_ns;
    zb_table_cell(table, "%s", zb_json_key(row));
    zb_table_cell(table, "%d", profile->devices);
    zb_table_cell(table, "%d", profile->microbatches);
    zb_table_cell(table, "%.4f", before);
    zb_table_cell(table, "%.4f", after);
    zb_table_cell(table, "%lld", (long long)report.pieces);
    zb_table_cell(table, "%lld", (long long)report.programs);
    zb_table_cell(table, "%lld", (long long)report.nodes);
    zb_table_cell(table, "%.1f", seconds);
    begin_row(bench);
    zb_text_print(
        &bench->json,
        "\"profile\": \"%s\", \"greedy_ns\": %lld, \"cost_ns\": %lld, \"bound_ns\": %lld, \"pieces\": %lld, "
        "\"programs\": %lld, \"nodes\": %lld, \"seconds\": %.2f}",
        zb_json_key(row), (long long)start.cost_ns, (long long)result.cost_ns, (long long)bound_ns,
        (long long)report.pieces, (long long)report.programs, (long long)report.nodes, seconds);
  }
  zb_result_free(&start);
  zb_result_free(&result);
  zb_profile_free(profile);
  return status;
}

static enum zb_status refine_table(struct bench *bench) {
  static const struct zb_column columns[] = {{"profile", false},     {"p", true},     {"m", true},
                                             {"greedy's gap", true}, {"gap", true},   {"pieces", true},
                                             {"programs", true},     {"nodes", true}, {"s", true}};
  struct zb_table table = {.columns = columns, .count = sizeof columns / sizeof *columns};
  struct zb_text text = {0};
  struct zb_json *known = NULL;
  struct gains gains = {0};
  enum zb_status status = zb_file_read("bench/uneven-known.json", 1 << 20, &text, &bench->error);
  if (status == ZB_OK) status = zb_json_parse(text.data, text.size, ZB_JSON_DECIMALS, &known, &bench->error);
  zb_text_free(&text);
  if (status != ZB_OK) return status;
  begin_list(bench, "ilp_refine");
  const struct zb_json *row = zb_json_first(zb_json_member(known, "profiles"));
  for (; row && gains.count < bench->profiles && status == ZB_OK; row = zb_json_next(row))
    status = refine_row(bench, &table, row, &gains);
  end_list(bench);
  const double recovered = gains.before > 0 ? 1 - gains.after / gains.before : 1;
  bench->missed += !(recovered >= 0.5);
  print_table(bench, &table, "refinement alone, from greedy");
  zb_text_print(
      &bench->tables,
      "  mean gap to the bound %.3f%% before, %.3f%% after: %.0f%% recovered; %d of %d at the bound\n\n",
      100 * gains.before / gains.count, 100 * gains.after / gains.count, 100 * recovered, gains.closed,
      gains.count);
  zb_text_print(&bench->json, ",\n  \"ilp_refine_recovered\": %.4f", recovered);
  zb_json_free(known);
  return status;
}

static bool read_options(int argc, char **argv, struct bench *bench) {
  for (int i = 1; i + 1 < argc; i += 2) {
    char *end = "";
    if (strcmp(argv[i], "--json") == 0) {
      bench->json_path = argv[i + 1];
    } else if (strcmp(argv[i], "--seconds") == 0) {
      bench->seconds = strtod(argv[i + 1], &end);
    } else if (strcmp(argv[i], "--tiny") == 0) {
      bench->tiny = (int)strtol(argv[i + 1], &end, 10);
    } else if (strcmp(argv[i], "--profiles") == 0) {
      bench->profiles = (int)strtol(argv[i + 1], &end, 10);
    } else {
      return false;
    }
    if (*end != '\0') return false;
  }
  return argc % 2 == 1 && bench->seconds > 0 && bench->tiny > 0 && bench->profiles > 0;
}

// What is measured comes out as it is finished.
static void flush_tables(struct bench *bench) {
  if (bench->tables.data) fputs(bench->tables.data, stdout);
  fflush(stdout);
  zb_text_clear(&bench->tables);
}

static enum zb_status write_json(struct bench *bench) {
  if (!bench->json_path) return ZB_OK;
  FILE *file = fopen(bench->json_path, "w");
  bool written = file && fputs(bench->json.data, file) >= 0;
  written = file && fclose(file) == 0 && written;
  return written ? ZB_OK : zb_fail(&bench->error, ZB_FAILED, "%s: %s", bench->json_path, strerror(errno));
}

int main(int argc, char **argv) {
  struct bench bench = {.seconds = 20, .tiny = 200, .profiles = 30};
  if (!read_options(argc, argv, &bench)) {
    fprintf(stderr, "usage: ilp [--json FILE] [--seconds S] [--tiny N] [--profiles N]\n");
    return 2;
  }
  if (!zb_mip_available()) {
    printf("ilp: not measured: %s\n", zb_mip_version());
    return 0;
  }
  zb_text_put(&bench.json, "{");
  enum zb_status (*const parts[])(struct bench *) = {proof_table, tiny_table, refine_table};
  enum zb_status status = ZB_OK;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && status == ZB_OK; i++) {
    status = parts[i](&bench);
    flush_tables(&bench);
  }
  zb_text_put(&bench.json, "\n}\n");
  if (status == ZB_OK) status = zb_text_status(&bench.json, &bench.error);
  if (status == ZB_OK) status = write_json(&bench);
  zb_text_free(&bench.tables);
  zb_text_free(&bench.json);
  if (status != ZB_OK) {
    fprintf(stderr, "ilp: %s\n", bench.error.text);
    return 1;
  }
  if (bench.missed > 0) fprintf(stderr, "ilp: %d targets missed\n", bench.missed);
  return bench.missed > 0;
}
