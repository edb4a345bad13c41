// One measured call on a profile of a given size, for an instruction counter to watch.
//
//   growth greedy|zb-v|v-half|v-min|1f1b-v|v-blocks|timeline|period DEVICES MICROBATCHES [uneven]
//
// Prints the number of ops. bench/growth.sh runs it under callgrind, which counts only inside `measured`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heuristic/families.h"
#include "solver/model/timeline.h"
#include "tests/generate.h"

struct subject {
  struct zb_problem problem;
  struct zb_schedule *schedule;
  struct zb_timeline timeline;
  struct zb_error error;
};

typedef enum zb_status part(struct subject *subject);

static enum zb_status solve(struct subject *subject, const struct zb_engine *engine) {
  struct zb_result result = {0};
  enum zb_status status = engine->solve(&subject->problem, NULL, &result, &subject->error);
  zb_schedule_free(subject->schedule);
  subject->schedule = result.schedule;
  return status;
}

static enum zb_status greedy(struct subject *subject) { return solve(subject, &zb_engine_greedy); }
static enum zb_status zb_v(struct subject *subject) { return solve(subject, &zb_engine_zb_v); }
static enum zb_status v_half(struct subject *subject) { return solve(subject, &zb_engine_v_half); }

static enum zb_status v_min(struct subject *subject) { return solve(subject, &zb_engine_v_min); }
static enum zb_status one_f_one_b_v(struct subject *subject) { return solve(subject, &zb_engine_1f1b_v); }
static enum zb_status v_blocks(struct subject *subject) { return solve(subject, &zb_engine_v_blocks); }

static enum zb_status timeline(struct subject *subject) {
  return zb_timeline_compute(subject->problem.profile, subject->schedule, &subject->timeline,
                             &subject->error);
}

static enum zb_status period(struct subject *subject) {
  return zb_timeline_period(subject->problem.profile, subject->schedule, &subject->timeline, &subject->error);
}

static const struct {
  const char *name;
  part *run;
  bool on_v, schedules; // on a V; makes the schedule that the others are measured on
} parts[] = {{"greedy", greedy, false, true},       {"zb-v", zb_v, true, true},
             {"v-half", v_half, true, true},        {"v-min", v_min, true, true},
             {"1f1b-v", one_f_one_b_v, true, true}, {"v-blocks", v_blocks, true, true},
             {"timeline", timeline, false, false},  {"period", period, false, false}};
enum { PARTS = sizeof parts / sizeof *parts };

// Its name is growth.sh's to know.
#if defined(__GNUC__)
__attribute__((noinline))
#endif
enum zb_status
measured(part *run, struct subject *subject);

enum zb_status measured(part *run, struct subject *subject) { return run(subject); }

// Stages around 10 ms, alike or off by up to a fifth; room for twice the devices' number of microbatches.
static enum zb_status make_profile(int devices, int microbatches, bool on_v, bool uneven,
                                   struct zb_profile **profile, struct zb_error *error) {
  struct generate_random random = {1};
  enum zb_status status =
      zb_profile_create(devices, on_v ? 2 : 1, microbatches, on_v ? ZB_V : ZB_CHAIN, profile, error);
  if (status != ZB_OK) return status;
  struct zb_profile *p = *profile;
  for (int s = 0; s < p->stages; s++) {
    int64_t spread = uneven ? 200 : 0;
    p->f_ns[s] = 10000 * (1000 + generate_between(&random, -spread, spread));
    p->b_ns[s] = 10000 * (1000 + generate_between(&random, -spread, spread));
    p->w_ns[s] = 7000 * (1000 + generate_between(&random, -spread, spread));
    p->comm_forward_ns[s] = p->comm_backward_ns[s] = 500000;
    p->f_bytes[s] = 100;
    p->b_bytes[s] = -60;
    p->w_bytes[s] = -40;
  }
  for (int d = 0; d < devices; d++) p->limit_bytes[d] = 200 * (int64_t)devices;
  p->has_memory = true;
  return zb_profile_finish(p, error);
}

int main(int argc, char **argv) {
  size_t which = 0;
  while (argc >= 4 && which < PARTS && strcmp(argv[1], parts[which].name) != 0) which++;
  if (argc < 4 || which == PARTS || argc > 5 || (argc == 5 && strcmp(argv[4], "uneven") != 0)) {
    fputs("usage: growth greedy|zb-v|v-half|v-min|1f1b-v|v-blocks|timeline|period DEVICES MICROBATCHES "
          "[uneven]\n",
          stderr);
    return 2;
  }
  struct subject subject = {.problem = {.objective = ZB_SPAN, .threads = 1, .seed = 1}};
  struct zb_profile *profile = NULL;
  subject.problem.deadline = zb_deadline_in(zb_clock_ns(), 0);
  enum zb_status status =
      make_profile(atoi(argv[2]), atoi(argv[3]), parts[which].on_v, argc == 5, &profile, &subject.error);
  subject.problem.profile = profile;
  if (status == ZB_OK && !parts[which].schedules) status = greedy(&subject);
  // Once before, as a search does that times many orders of one profile.
  if (status == ZB_OK && !parts[which].schedules) status = timeline(&subject);
  if (status == ZB_OK) status = measured(parts[which].run, &subject);
  if (status == ZB_OK && subject.schedule) printf("%zu\n", subject.schedule->first[profile->devices]);
  if (status != ZB_OK) fprintf(stderr, "growth: %s\n", subject.error.text);
  zb_timeline_free(&subject.timeline);
  zb_schedule_free(subject.schedule);
  zb_profile_free(profile);
  return zb_status_exit_code(status);
}
