// test_frontiers.c - every limit on every placement: a schedule or a proof that there is none, and curves
// that never rise.
//
// Limits go from one chunk, which is less than a microbatch keeps on a device, to 4p chunks. Each answer has
// been checked by zb_method_run before a frontier takes it.
#include <stdlib.h>
#include <string.h>

#include "solver/cli/engines.h"
#include "solver/cli/frontier.h"
#include "solver/cli/quantity.h"
#include "tests/unit/unit.h"

enum { CHUNK_BYTES = 100, CHUNKS = 2 };

// Chunks on a V, each keeping CHUNK_BYTES a microbatch.
static struct zb_profile *chunks_profile(int p, int m) {
  struct zb_profile *profile = NULL;
  struct zb_error error;
  assert_int_equal(zb_profile_create(p, CHUNKS, m, ZB_V, &profile, &error), ZB_OK);
  for (int s = 0; s < profile->stages; s++) {
    profile->f_ns[s] = 3;
    profile->b_ns[s] = 4;
    profile->w_ns[s] = 2;
    profile->comm_forward_ns[s] = profile->comm_backward_ns[s] = s + 1 < profile->stages;
    profile->f_bytes[s] = CHUNK_BYTES;
    profile->b_bytes[s] = -60;
    profile->w_bytes[s] = -40;
  }
  profile->has_memory = true;
  assert_int_equal(zb_profile_finish(profile, &error), ZB_OK);
  return profile;
}

static bool fits(const struct zb_frontier_point *point) {
  return point->status == ZB_OPTIMAL || point->status == ZB_FEASIBLE;
}

// A fixed order may need more than a limit that another fits.
static void check_curve(const struct zb_frontier *curve, int p, int m, int64_t step) {
  for (int k = 0; k < curve->count; k++) {
    const struct zb_frontier_point *point = &curve->points[k], *before = point - 1;
    const bool any = point->limit_bytes >= CHUNKS * CHUNK_BYTES;
    const bool may_exceed = strcmp(curve->method, "v-half") == 0 || strcmp(curve->method, "zb-h1") == 0;
    const bool right =
        any ? fits(point) || (may_exceed && point->status == ZB_OVER_LIMIT) : point->status == ZB_INFEASIBLE;
    expect(right, "p=%d m=%d, %d steps of %lld: %s", p, m, k, (long long)step, zb_status_word(point->status));
    if (!fits(point)) continue;
    expect(point->bound_ns <= point->cost_ns && point->most_bytes <= point->limit_bytes, "p=%d m=%d step %d",
           p, m, k);
    if (k > 0 && fits(before))
      expect(point->cost_ns <= before->cost_ns && point->bound_ns <= before->bound_ns,
             "p=%d m=%d: rises at step %d", p, m, k);
  }
}

static void check_best(const struct zb_frontiers *all) {
  int64_t last_ns = INT64_MAX;
  for (int k = 0; k < all->curve[0].count; k++) {
    int64_t least_ns = INT64_MAX;
    for (int a = 0; a < all->count; a++)
      if (fits(&all->curve[a].points[k]) && all->curve[a].points[k].cost_ns < least_ns)
        least_ns = all->curve[a].points[k].cost_ns;
    const int64_t best_ns = all->best[k] < 0 ? INT64_MAX : all->curve[all->best[k]].points[k].cost_ns;
    expect_equal(best_ns, least_ns, "the best");
    assert_true(best_ns <= last_ns);
    last_ns = best_ns;
  }
}

static void sweep(int p, int m, const char *methods, bool hurried, int64_t step) {
  struct zb_profile *profile = chunks_profile(p, m);
  const struct zb_entry_request request = {methods, "all", 0, false};
  struct zb_entries entries = {0};
  struct zb_frontiers all = {0};
  struct zb_error error;
  struct zb_problem problem = {.objective = ZB_SPAN, .threads = 1, .seed = 1};
  const struct zb_frontier_range range = {ZB_MILLION, 4 * (int64_t)p * ZB_MILLION, step * ZB_MILLION};
  problem.deadline.end_ns = hurried ? 0 : INT64_MAX;
  assert_int_equal(zb_entries_list(profile, &request, &entries, &error), ZB_OK);
  expect(zb_frontiers_run(&entries, profile, &problem, CHUNK_BYTES, range, NULL, &all, &error) == ZB_OK,
         "p=%d m=%d: %s", p, m, error.text);
  for (int a = 0; a < all.count; a++) check_curve(&all.curve[a], p, m, step);
  check_best(&all);
  zb_frontiers_free(&all);
  zb_entries_free(&entries);
  zb_profile_free(profile);
}

// Every limit is solved by the fast ones, some by the search over blocks. `auto`, whose time is up before it
// begins, has at each placement what it finds at once.
static void test_every_limit(void **state) {
  (void)state;
  const bool whole = getenv("ZB_LONG") != NULL;
  for (int p = 2; p <= 16; p++) {
    const int sizes[] = {1, p / 2, p, 2 * p, 160};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      if (!whole && sizes[k] == 160 && p > 4) continue;
      sweep(p, sizes[k], "greedy,zb-h1,zb-v,v-half", false, whole || p < 6 ? 1 : 5);
      sweep(p, sizes[k], "auto", true, 1);
      if (whole) sweep(p, sizes[k], "v-blocks", false, 3);
    }
  }
  sweep(3, 6, "v-blocks", false, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
