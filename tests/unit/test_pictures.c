// Traces and pictures of random schedules: what a viewer relies on, and that nothing of the schedule is lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/chrome_trace.h"
#include "solver/io/gantt_svg.h"
#include "solver/io/json.h"
#include "solver/io/measured_formats.h"
#include "solver/io/report_html.h"
#include "solver/model/check.h"
#include "tests/instances.h"
#include "tests/unit/unit.h"

enum { SEED = 21, INSTANCES = 160 };

struct scene {
  struct zb_answer answer;
  struct zb_timeline timeline;
};

static struct scene draw_scene(struct generate_random *random, int index) {
  struct scene s = {0};
  struct zb_error error = {0};
  s.answer.profile = instance_profile(random, (enum zb_placement)(index % ZB_PLACEMENT_COUNT), 5, 6);
  assert_non_null(s.answer.profile);
  s.answer.schedule = instance_order(
      s.answer.profile, (enum instance_backward)(index / ZB_PLACEMENT_COUNT % INSTANCE_BACKWARDS), random);
  assert_non_null(s.answer.schedule);
  const enum zb_status status = zb_check_schedule(s.answer.profile, s.answer.schedule, &s.timeline, &error);
  expect(status == ZB_OK || status == ZB_OVER_LIMIT, "seed %d, instance %d: %s", SEED, index, error.text);
  s.answer.method = strdup("random");
  s.answer.objective = (enum zb_objective)(index % ZB_OBJECTIVE_COUNT);
  s.answer.status = ZB_FEASIBLE;
  s.answer.bound_ns = s.timeline.work_ns;
  return s;
}

static void release(struct scene *s) {
  zb_timeline_free(&s->timeline);
  zb_answer_free(&s->answer);
}

static int64_t ns_of(const struct zb_json *event, const char *key) {
  const struct zb_json *member = zb_json_member(event, key);
  int64_t ns = -1;
  assert_non_null(member);
  assert_int_equal(zb_json_scaled(member, 1000, &ns), ZB_DECIMAL_OK);
  return ns;
}

static int whole_of(const struct zb_json *event, const char *key) {
  return (int)zb_json_number(zb_json_member(event, key));
}

struct seen {
  size_t ops, messages, starts, finishes;
  int64_t lane_end_ns[16][512]; // by pid and tid: spans come in order and do not overlap
  int64_t most_bytes[16];
};

static void see_event(const struct zb_json *event, struct seen *seen) {
  const char phase = *zb_json_string(zb_json_member(event, "ph"));
  const int pid = whole_of(event, "pid");
  assert_in_range(pid, 0, 15);
  if (phase == 'X') {
    const int tid = whole_of(event, "tid");
    assert_in_range(tid, 0, 511);
    const int64_t start_ns = ns_of(event, "ts");
    assert_true(start_ns >= seen->lane_end_ns[pid][tid]);
    seen->lane_end_ns[pid][tid] = start_ns + ns_of(event, "dur");
    if (tid == 0)
      seen->ops++;
    else
      seen->messages++;
  }
  if (phase == 's') seen->starts++;
  if (phase == 'f') seen->finishes++;
  if (phase == 'C') {
    const struct zb_json *bytes = zb_json_member(zb_json_member(event, "args"), "bytes");
    int64_t kept = -1;
    assert_int_equal(zb_json_scaled(bytes, 1, &kept), ZB_DECIMAL_OK);
    assert_true(kept >= 0);
    if (kept > seen->most_bytes[pid]) seen->most_bytes[pid] = kept;
  }
}

static void check_trace(const struct scene *s, const char *text, size_t size) {
  static struct seen seen;
  struct zb_json *root = NULL;
  struct zb_error error = {0};
  const struct zb_profile *profile = s->answer.profile;
  seen = (struct seen){0};
  expect(zb_json_parse(text, size, ZB_JSON_DECIMALS, &root, &error) == ZB_OK, "%d:%d: %s", error.line,
         error.column, error.text);
  for (const struct zb_json *event = zb_json_first(zb_json_member(root, "traceEvents")); event;
       event = zb_json_next(event))
    see_event(event, &seen);
  size_t crossings = 0, delays = 0;
  for (int k = 0; k + 1 < profile->stages; k++) {
    if (profile->device_of[k] == profile->device_of[k + 1]) continue;
    crossings += 2;
    delays += (size_t)(profile->comm_forward_ns[k] > 0) + (size_t)(profile->comm_backward_ns[k] > 0);
  }
  const size_t microbatches = (size_t)profile->microbatches;
  assert_int_equal(seen.ops, s->timeline.ops);
  assert_int_equal(seen.starts, crossings * microbatches);
  assert_int_equal(seen.finishes, crossings * microbatches);
  assert_int_equal(seen.messages, 2 * delays * microbatches);
  for (int d = 0; d < profile->devices && profile->has_memory; d++)
    assert_int_equal(seen.most_bytes[d], s->timeline.peak_bytes[d] - profile->static_bytes[d]);
  zb_json_free(root);
}

// What was measured is what was predicted: the trace as a profile has the times of every op that ran.
static void check_round_trip(const struct scene *s, const char *text, size_t size) {
  const struct zb_measured_hints hints = {0, 0};
  const struct zb_measured_options options = {.name = "trace", .source = "trace", .skip = -1, .comm_ns = -1};
  struct zb_measurements measurements = {0};
  struct zb_measured measured = {0};
  struct zb_error error = {0};
  const struct zb_profile *was = s->answer.profile;
  expect(zb_read_torch_trace(text, size, &hints, &measurements, &error) == ZB_OK, "%s", error.text);
  expect(zb_measurements_profile(&measurements, &options, &measured, &error) == ZB_OK, "%s", error.text);
  const struct zb_profile *is = measured.profile;
  assert_int_equal(is->devices, was->devices);
  assert_int_equal(is->microbatches, was->microbatches);
  assert_int_equal(is->stages, was->stages);
  bool split = true, fused = true;
  for (size_t i = 0; i < s->timeline.ops; i++) {
    split = split && s->answer.schedule->ops[i].kind != ZB_BW;
    fused = fused && s->answer.schedule->ops[i].kind != ZB_B;
  }
  for (int k = 0; k < was->stages; k++) {
    assert_int_equal(is->device_of[k], was->device_of[k]);
    assert_int_equal(is->f_ns[k], was->f_ns[k]);
    if (split) assert_int_equal(is->b_ns[k], was->b_ns[k]);
    if (split) assert_int_equal(is->w_ns[k], was->w_ns[k]);
    if (fused) assert_int_equal(is->bw_ns[k], was->bw_ns[k]);
    if (was->comm_forward_ns[k]) assert_int_equal(is->comm_forward_ns[k], was->comm_forward_ns[k]);
    if (was->comm_backward_ns[k]) assert_int_equal(is->comm_backward_ns[k], was->comm_backward_ns[k]);
  }
  zb_measured_free(&measured);
  zb_measurements_free(&measurements);
}

// Tags close in the order in which they opened, and no number is a NaN.
static void check_svg(const char *text) {
  char open[8][16];
  int depth = 0;
  assert_null(strstr(text, "nan"));
  assert_null(strstr(text, "inf"));
  for (const char *c = strchr(text, '<'); c; c = strchr(c + 1, '<')) {
    const char *end = strchr(c, '>');
    char name[16];
    assert_non_null(end);
    if (c[1] == '/') {
      assert_true(depth > 0);
      depth--;
      assert_int_equal(strncmp(c + 2, open[depth], strlen(open[depth])), 0);
    } else if (end[-1] != '/') {
      assert_int_equal(sscanf(c + 1, "%15[a-z]", name), 1);
      assert_true(depth < 8);
      strcpy(open[depth++], name);
    }
  }
  assert_int_equal(depth, 0);
}

// Every slot is filled, and the chart's numbers are the schedule's.
static void check_html(const struct scene *s, const char *text) {
  static const char open[] = "<script type=\"application/json\" id=\"data\">";
  struct zb_json *root = NULL;
  struct zb_error error = {0};
  assert_null(strstr(text, "{{"));
  const char *data = strstr(text, open), *end = data ? strstr(data, "</script>") : NULL;
  assert_non_null(end);
  data += sizeof open - 1;
  expect(zb_json_parse(data, (size_t)(end - data), ZB_JSON_INTEGERS, &root, &error) == ZB_OK, "%d:%d: %s",
         error.line, error.column, error.text);
  size_t ops = 0, place = 0;
  for (const struct zb_json *device = zb_json_first(zb_json_member(root, "devices")); device;
       device = zb_json_next(device)) {
    ops += zb_json_count(zb_json_member(device, "ops"));
    for (const struct zb_json *start = zb_json_first(zb_json_member(device, "start")); start;
         start = zb_json_next(start)) {
      int64_t ns = -1;
      assert_int_equal(zb_json_scaled(start, 1, &ns), ZB_DECIMAL_OK);
      assert_int_equal(ns, s->timeline.start_ns[place++]);
    }
  }
  assert_int_equal(ops, s->timeline.ops);
  assert_int_equal(place, s->timeline.ops);
  zb_json_free(root);
}

static void test_random_schedules(void **state) {
  (void)state;
  struct generate_random random = {SEED};
  for (int index = 0; index < INSTANCES; index++) {
    struct scene s = draw_scene(&random, index);
    const struct zb_export_input input = {.answer = &s.answer, .timeline = &s.timeline};
    struct zb_export_output trace = {0}, svg = {0}, html = {0};
    struct zb_error error = {0};
    assert_int_equal(zb_export_chrome_trace(&input, &trace, &error), ZB_OK);
    check_trace(&s, trace.text.data, trace.text.size);
    check_round_trip(&s, trace.text.data, trace.text.size);
    assert_int_equal(zb_export_svg(&input, &svg, &error), ZB_OK);
    check_svg(svg.text.data);
    assert_int_equal(zb_export_html(&input, &html, &error), ZB_OK);
    check_html(&s, html.text.data);
    zb_export_output_free(&html);
    zb_export_output_free(&trace);
    zb_export_output_free(&svg);
    release(&s);
  }
}

int main(void) {
  printf("# seed %d\n", SEED);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_schedules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
