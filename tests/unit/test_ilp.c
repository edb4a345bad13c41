// The integer program against every order there is, against itself without windows, and against misuse.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ilp/glpk_solve.h"
#include "ilp/ilp_engine.h"
#include "ilp/integer_program.h"
#include "ilp/lp_write.h"
#include "ilp/reduce.h"
#include "ilp/refine.h"
#include "solver/model/check.h"
#include "tests/brute.h"
#include "tests/generate.h"
#include "tests/instances.h"

// f/b/w 5/6/4, comm 1, memory 2/-1/-1.
static struct zb_profile *toy(int devices, int microbatches, int64_t limit) {
  struct generated_profile g = {.devices = devices, .microbatches = microbatches, .has_limit = true};
  for (int d = 0; d < devices; d++) {
    g.f[d] = 5, g.b[d] = 6, g.w[d] = 4, g.bw[d] = 10;
    g.comm_forward[d] = g.comm_backward[d] = 1;
    g.memory_f[d] = 2, g.memory_b[d] = g.memory_w[d] = -1;
    g.limit[d] = limit;
  }
  return instance_from_generated(&g);
}

static struct zb_problem problem_of(const struct zb_profile *profile, enum zb_objective objective,
                                    double seconds) {
  return (struct zb_problem){.profile = profile,
                             .objective = objective,
                             .threads = 1,
                             .deadline = zb_deadline_in(zb_clock_ns(), seconds)};
}

// Solves, and checks the schedule and its cost.
static struct zb_result solved(const struct zb_problem *problem, const struct zb_ilp_options *options,
                               struct zb_ilp_report *report) {
  struct zb_result result = {0};
  struct zb_error error = {0};
  if (zb_ilp_solve(problem, options, NULL, &result, report, &error) != ZB_OK) fail_msg("%s", error.text);
  if (result.schedule) {
    struct zb_timeline timeline = {0};
    if (zb_check_schedule(problem->profile, result.schedule, &timeline, &error) != ZB_OK)
      fail_msg("%s", error.text);
    assert_int_equal(zb_timeline_cost(&timeline, problem->objective), result.cost_ns);
    assert_true(result.bound_ns <= result.cost_ns);
    zb_timeline_free(&timeline);
  }
  return result;
}

static void skip_without_glpk(void) {
  if (!zb_mip_available()) skip();
}

// ---- tests ----

static const struct zb_ilp_options modes[] = {{false, false}, {false, true}, {true, false}};

static void equals_brute_force(void **state) {
  (void)state;
  skip_without_glpk();
  const char *seed_text = getenv("ZB_SEED"), *count_text = getenv("ZB_COUNT");
  const uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 7;
  const uint64_t count = count_text ? strtoull(count_text, NULL, 10) : 60;
  int compared = 0;
  for (uint64_t index = 0; index < count; index++) {
    struct generated_profile generated;
    generate_profile(&generated, GENERATE_TINY, seed, index);
    struct zb_profile *profile = instance_from_generated(&generated);
    const enum zb_objective objective = (enum zb_objective)(index % ZB_OBJECTIVE_COUNT);
    struct brute brute;
    const bool small = brute_solve(profile, objective, count_text ? 1000000 : 20000, &brute);
    const int64_t least = small && brute.feasible ? brute.cost_ns : INT64_MAX;
    for (size_t mode = 0; small && mode < sizeof modes / sizeof *modes; mode++) {
      const struct zb_problem problem = problem_of(profile, objective, 10);
      struct zb_ilp_report report;
      struct zb_result result = solved(&problem, &modes[mode], &report);
      if (result.status == ZB_INFEASIBLE ? least != INT64_MAX
                                         : result.cost_ns != least || result.bound_ns > least)
        fail_msg("seed %llu index %llu %s mode %zu: cost %lld bound %lld, but the least is %lld (%s %s)",
                 (unsigned long long)seed, (unsigned long long)index, zb_objective_word(objective), mode,
                 (long long)result.cost_ns, (long long)result.bound_ns, (long long)least, report.line,
                 report.trouble);
      zb_result_free(&result);
      compared++;
    }
    if (small) brute_free(&brute);
    zb_profile_free(profile);
  }
  print_message("seed %llu: %d of %llu compared\n", (unsigned long long)seed, compared,
                (unsigned long long)count * 3);
  assert_true(compared > (int)count);
}

static void known_optima(void **state) {
  (void)state;
  skip_without_glpk();
  static const struct {
    int devices, microbatches;
    int64_t limit, optimum;
  } known[] = {{3, 6, 6, 112}, {4, 8, 8, 153}, {4, 12, 8, 213}, {4, 12, 10, 199}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct zb_profile *profile = toy(known[i].devices, known[i].microbatches, known[i].limit);
    const struct zb_problem problem = problem_of(profile, ZB_SPAN, 20);
    struct zb_ilp_report report;
    struct zb_result result = solved(&problem, NULL, &report);
    assert_int_equal(result.cost_ns, known[i].optimum);
    assert_int_equal(result.bound_ns, known[i].optimum);
    assert_int_equal(result.status, ZB_OPTIMAL);
    assert_true(report.open > 0 && report.open < report.orders && report.nodes > 0);
    zb_result_free(&result);
    zb_profile_free(profile);
  }
}

static void infeasible_says_why(void **state) {
  (void)state;
  skip_without_glpk();
  struct zb_profile *profile = toy(2, 3, 1);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN, 5);
  struct zb_result result = solved(&problem, NULL, NULL);
  assert_int_equal(result.status, ZB_INFEASIBLE);
  assert_int_equal(result.reason.least_peak_bytes, 2);
  zb_result_free(&result);
  zb_profile_free(profile);
}

static void late_still_has_a_schedule(void **state) {
  (void)state;
  skip_without_glpk();
  struct zb_profile *profile = toy(8, 24, 16);
  struct zb_problem problem = problem_of(profile, ZB_SPAN, 5);
  problem.deadline.end_ns = problem.deadline.start_ns;
  struct zb_result result = solved(&problem, NULL, NULL);
  assert_non_null(result.schedule);
  zb_result_free(&result);
  zb_profile_free(profile);
}

static void refinement_is_never_worse(void **state) {
  (void)state;
  skip_without_glpk();
  struct zb_profile *profile = toy(3, 6, 6);
  for (int objective = 0; objective < ZB_OBJECTIVE_COUNT; objective++) {
    struct zb_schedule *start = NULL;
    struct zb_error error = {0};
    assert_int_equal(zb_schedule_sequential(profile, &start, &error), ZB_OK);
    int64_t cost_ns[2];
    for (int again = 0; again < 2; again++) {
      const struct zb_problem problem = problem_of(profile, (enum zb_objective)objective, 10);
      struct zb_result result = {0};
      struct zb_refine_report report;
      if (zb_ilp_refine(&problem, start, &result, &report, &error) != ZB_OK) fail_msg("%s", error.text);
      struct zb_timeline timeline = {0};
      assert_int_equal(zb_check_schedule(profile, result.schedule, &timeline, &error), ZB_OK);
      assert_int_equal(zb_timeline_cost(&timeline, problem.objective), result.cost_ns);
      assert_true(result.cost_ns < report.start_ns && result.cost_ns == report.end_ns);
      assert_int_equal(result.cost_ns, 112); // the optimum, for each of the three
      assert_int_equal(result.bound_ns, 112);
      cost_ns[again] = result.cost_ns + report.pieces * 1000 + report.nodes * 1000000;
      zb_timeline_free(&timeline);
      zb_result_free(&result);
    }
    assert_int_equal(cost_ns[0], cost_ns[1]);
    zb_schedule_free(start);
  }
  zb_profile_free(profile);
}

// cost after c after b after a after two of its kind; b and c only pass times on.
static void passing_times_are_left_out(void **state) {
  (void)state;
  struct zb_ilp_program program = {0};
  program.cost = zb_ilp_program_column(&program, 0, 100, false, "cost");
  const int a = zb_ilp_program_column(&program, 5, 50, false, "a"),
            b = zb_ilp_program_column(&program, 0, 60, false, "b");
  const int c = zb_ilp_program_column(&program, 0, 70, false, "c"),
            x = zb_ilp_program_column(&program, 0, 1, true, "x");
  const struct { int from, to, lag; } arcs[] = {{a, b, 3}, {b, c, 4}, {a, c, 5}, {c, program.cost, 6}};
  for (size_t i = 0; i < sizeof arcs / sizeof *arcs; i++) {
    zb_ilp_program_term(&program, arcs[i].to, 1);
    zb_ilp_program_term(&program, arcs[i].from, -1);
    zb_ilp_program_close(&program, arcs[i].lag, ZB_ILP_ANY, "arc");
  }
  zb_ilp_program_term(&program, a, 1);
  zb_ilp_program_term(&program, x, 10);
  zb_ilp_program_close(&program, 17, ZB_ILP_ANY, "either");
  assert_int_equal(program.rows, 5);
  struct zb_reduction reduction;
  assert_int_equal(zb_ilp_program_reduce(&program, &reduction, NULL), ZB_OK);
  assert_int_equal(reduction.removed, 2);
  assert_int_equal(program.rows, 2); // cost - a >= 13, and the one with x
  assert_int_equal(program.column[program.cost].lower, 18);
  double value[5] = {[0] = 20, [1] = 7, [4] = 1};
  zb_reduction_restore(&reduction, value);
  assert_true(value[b] == 10.0 && value[c] == 14.0);
  zb_reduction_free(&reduction);
  zb_ilp_program_free(&program);
}

// minimise cost; cost >= 3 a, cost >= 10 - 2 a, a whole: 6 at a = 2.
static void small_program(struct zb_ilp_program *program) {
  *program = (struct zb_ilp_program){0};
  program->cost = zb_ilp_program_column(program, 0, 100, false, "cost");
  const int a = zb_ilp_program_column(program, 0, 10, true, "a");
  zb_ilp_program_term(program, program->cost, 1);
  zb_ilp_program_term(program, a, -3);
  zb_ilp_program_close(program, 0, ZB_ILP_ANY, "up");
  zb_ilp_program_term(program, program->cost, 1);
  zb_ilp_program_term(program, a, 1);
  zb_ilp_program_term(program, a, 1);
  zb_ilp_program_constant(program, 5);
  zb_ilp_program_close(program, 15, ZB_ILP_ANY, "down");
}

static void rows_are_simplified(void **state) {
  (void)state;
  struct zb_ilp_program program;
  small_program(&program);
  assert_int_equal(program.rows, 2);
  assert_int_equal(program.row[1].lower, 10);
  assert_int_equal(program.term[program.row[1].first + 1].coefficient, 2);
  zb_ilp_program_term(&program, 1, 2);
  zb_ilp_program_close(&program, 3, 9, "bound");
  assert_int_equal(program.rows, 2);
  assert_int_equal(program.column[1].lower, 2);
  assert_int_equal(program.column[1].upper, 4);
  zb_ilp_program_term(&program, 1, 1);
  zb_ilp_program_close(&program, 0, 10, "implied");
  assert_false(program.contradiction);
  zb_ilp_program_term(&program, 1, 1);
  zb_ilp_program_close(&program, 5, 10, "never");
  assert_true(program.contradiction);
  assert_int_equal(zb_ilp_program_end(&program, NULL), ZB_OK);
  zb_ilp_program_free(&program);
}

static enum zb_mip_answer keep_cost(void *context, double *value) {
  *(double *)context = value[0];
  return ZB_MIP_GO;
}

static void solves_and_survives_misuse(void **state) {
  (void)state;
  skip_without_glpk();
  struct zb_ilp_program program;
  small_program(&program);
  double cost = 0;
  struct zb_mip_options options = {.hooks = {.context = &cost, .found = keep_cost}};
  struct zb_mip_result result;
  zb_mip_solve(&program, &options, &result);
  assert_int_equal(result.end, ZB_MIP_DONE);
  assert_true(cost > 5.999 && cost < 6.001);
  // A term that names a column that does not exist makes GLPK abort.
  program.term[0].column = 7;
  struct zb_ilp_program broken = program;
  struct zb_ilp_column columns[8] = {program.column[0], program.column[1]};
  broken.column = columns;
  zb_mip_solve(&broken, &options, &result);
  assert_int_equal(result.end, ZB_MIP_TROUBLE);
  assert_true(strlen(result.trouble) > 10);
  // And it works again afterwards.
  program.term[0].column = 0;
  cost = 0;
  zb_mip_solve(&program, &options, &result);
  assert_int_equal(result.end, ZB_MIP_DONE);
  assert_true(cost > 5.999 && cost < 6.001);
  zb_ilp_program_free(&program);
}

static void writes_lp_text(void **state) {
  (void)state;
  struct zb_ilp_program program;
  small_program(&program);
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(zb_lp_write(&program, "a comment", file, NULL), ZB_OK);
  char text[1024] = "";
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, "\\ a comment\nMinimize\n obj: cost\nSubject To\n r0_up: + cost - 3 a >= 0\n"
                            " r1_down: + cost + 2 a >= 10\nBounds\n 0 <= cost <= 100\n 0 <= a <= 10\n"
                            "Generals\n a\nEnd\n");
  zb_ilp_program_free(&program);
}

// The written program of a schedule's cost has a solution in it for every reader; below the bound it has
// none.
static void writes_programs(void **state) {
  (void)state;
  struct zb_profile *profile = toy(3, 6, 6);
  const struct zb_problem problem = problem_of(profile, ZB_SPAN, 5);
  const struct zb_ilp_options plain = {.no_windows = true};
  static char text[2][1 << 18];
  for (int off = 0; off < 2; off++) {
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(zb_ilp_write_lp(&problem, off ? &plain : NULL, 112, file, NULL), ZB_OK);
    rewind(file);
    text[off][fread(text[off], 1, sizeof text[off] - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text[off], off ? "windows off" : "windows on"));
    assert_non_null(strstr(text[off], "<= cost <= 112\n"));
    assert_null(strstr(text[off], "never:"));
    assert_string_equal(text[off] + strlen(text[off]) - 4, "End\n");
  }
  assert_true(strlen(text[0]) < strlen(text[1]));
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(zb_ilp_write_lp(&problem, NULL, 111, file, NULL), ZB_OK);
  rewind(file);
  text[0][fread(text[0], 1, sizeof text[0] - 1, file)] = '\0';
  fclose(file);
  assert_non_null(strstr(text[0], "never:"));
  zb_profile_free(profile);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_simplified),
      cmocka_unit_test(writes_lp_text),
      cmocka_unit_test(writes_programs),
      cmocka_unit_test(solves_and_survives_misuse),
      cmocka_unit_test(known_optima),
      cmocka_unit_test(infeasible_says_why),
      cmocka_unit_test(late_still_has_a_schedule),
      cmocka_unit_test(passing_times_are_left_out),
      cmocka_unit_test(refinement_is_never_worse),
      cmocka_unit_test(equals_brute_force),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
