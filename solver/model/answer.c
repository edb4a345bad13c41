// answer.c - from an engine's result to an answer that can be written, and from a file's claims to a verdict.
//
// Both ways end in zb_check_schedule: nothing an engine says about its schedule is believed, and nothing a
// file says either.
#include "solver/model/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/model/bound.h"
#include "solver/model/check.h"
#include "solver/model/number.h"

int64_t zb_answer_idle_ns(const struct zb_timeline *t, int device) {
  return t->last_end_ns[device] - t->first_start_ns[device] - t->busy_ns[device];
}

double zb_answer_gap(const struct zb_answer *answer) { return zb_ratio(answer->cost_ns, answer->bound_ns); }

double zb_answer_bubble_rate(const struct zb_answer *answer) {
  return zb_ratio(answer->cost_ns, answer->timeline.work_ns);
}

void zb_answer_free(struct zb_answer *answer) {
  zb_profile_free(answer->profile);
  free(answer->method);
  zb_schedule_free(answer->schedule);
  zb_timeline_free(&answer->timeline);
  free(answer->idle_ns);
  free(answer->proof);
  free(answer->relaxation);
  *answer = (struct zb_answer){0};
}

static enum zb_status compare_number(const char *what, int device, int64_t claimed, int64_t true_value,
                                     struct zb_error *error) {
  if (claimed == true_value) return ZB_OK;
  char where[32] = "";
  if (device >= 0) snprintf(where, sizeof where, "device %d: ", device);
  return zb_fail(error, ZB_WRONG, "%s%s is %lld, but recomputed it is %lld", where, what, (long long)claimed,
                 (long long)true_value);
}

static enum zb_status verify_infeasible(const struct zb_answer *answer, struct zb_error *error) {
  const struct zb_profile *p = answer->profile;
  const struct zb_reason *reason = &answer->reason;
  if (reason->device < 0 || reason->device >= p->devices)
    return zb_fail(error, ZB_WRONG, "reason: there is no device %d", reason->device);
  int64_t limit = p->limit_bytes[reason->device], least = zb_profile_least_peak(p, reason->device);
  enum zb_status status =
      compare_number("reason.limit_bytes", reason->device, reason->limit_bytes, limit, error);
  if (status == ZB_OK)
    status =
        compare_number("reason.least_peak_bytes", reason->device, reason->least_peak_bytes, least, error);
  if (status == ZB_OK && least <= limit)
    status =
        zb_fail(error, ZB_WRONG, "infeasible, but device %d's least peak %lld B is within its limit %lld B",
                reason->device, (long long)least, (long long)limit);
  return status;
}

// A schedule of our own that does not hold, or that costs less than a bound that claims to be one, is a bug.
static enum zb_status check_result(struct zb_answer *answer, enum zb_status claimed, struct zb_error *error) {
  struct zb_error found = {0};
  enum zb_status status = zb_check_schedule(answer->profile, answer->schedule, &answer->timeline, &found);
  if (status == ZB_FAILED) return zb_fail(error, ZB_FAILED, "%s", found.text);
  if (status == ZB_WRONG || (status == ZB_OVER_LIMIT && claimed != ZB_OVER_LIMIT))
    return zb_fail(error, ZB_SELF_CHECK, "%s produced a schedule that does not hold: %s", answer->method,
                   found.text);
  answer->status = status;
  answer->cost_ns = zb_timeline_cost(&answer->timeline, answer->objective);
  if (status == ZB_OVER_LIMIT) return ZB_OK;
  if (answer->cost_ns < answer->bound_ns)
    return zb_fail(error, ZB_SELF_CHECK, "%s found a %s of %lld ns below the bound of %lld ns",
                   answer->method, zb_objective_word(answer->objective), (long long)answer->cost_ns,
                   (long long)answer->bound_ns);
  answer->status = answer->cost_ns == answer->bound_ns ? ZB_OPTIMAL : ZB_FEASIBLE;
  return ZB_OK;
}

// Likewise a result without a schedule that should have one, or a proof of infeasibility that proves nothing.
static enum zb_status check_absence(const struct zb_answer *answer, struct zb_error *error) {
  struct zb_error found = {0};
  if (answer->status == ZB_INFEASIBLE && verify_infeasible(answer, &found) != ZB_OK)
    return zb_fail(error, ZB_SELF_CHECK, "%s gave a reason that does not hold: %s", answer->method,
                   found.text);
  if (answer->status != ZB_INFEASIBLE && answer->status != ZB_UNKNOWN)
    return zb_fail(error, ZB_SELF_CHECK, "%s says %s without a schedule", answer->method,
                   zb_status_word(answer->status));
  return ZB_OK;
}

enum zb_status zb_answer_from_result(const struct zb_problem *problem, const char *method,
                                     struct zb_result *result, struct zb_answer *answer,
                                     struct zb_error *error) {
  struct zb_answer a = {.objective = problem->objective, .status = result->status, .reason = result->reason};
  int64_t closed_form = zb_bound_closed_form(problem->profile, problem->objective);
  a.schedule = result->schedule;
  a.proof = result->proof;
  result->schedule = NULL;
  result->proof = NULL;
  a.bound_ns = zb_max(result->bound_ns, closed_form);
  enum zb_status claimed = result->status;
  const char *relaxation = a.bound_ns > closed_form ? result->relaxation : NULL;
  zb_result_free(result);
  a.method = strdup(method);
  a.relaxation = relaxation ? strdup(relaxation) : NULL;
  enum zb_status status = a.method && (a.relaxation || !relaxation)
                              ? zb_profile_copy(problem->profile, &a.profile, error)
                              : zb_fail_memory(error);
  if (status == ZB_OK) status = a.schedule ? check_result(&a, claimed, error) : check_absence(&a, error);
  if (status != ZB_OK) {
    zb_answer_free(&a);
    return status;
  }
  if (!a.schedule) a.cost_ns = 0;
  if (a.bound_ns == closed_form) { // needs no tree: every checker can recompute it
    free(a.proof);
    a.proof = NULL;
  }
  a.gap = a.schedule ? zb_answer_gap(&a) : 0.0;
  a.bubble_rate = zb_answer_bubble_rate(&a);
  *answer = a;
  return ZB_OK;
}

// Printed with six decimals, so a claim may be off by half of the last one (and what binary fractions add).
static enum zb_status compare_ratio(const char *what, double claimed, double true_value,
                                    struct zb_error *error) {
  double off = claimed - true_value;
  if (off <= 0.500001e-6 && off >= -0.500001e-6) return ZB_OK;
  return zb_fail(error, ZB_WRONG, "%s is %.6f, but recomputed it is %.6f", what, claimed, true_value);
}

static enum zb_status verify_devices(const struct zb_answer *answer, const struct zb_timeline *truth,
                                     struct zb_error *error) {
  const struct zb_schedule *schedule = answer->schedule;
  enum zb_status status = ZB_OK;
  for (int d = 0; d < answer->profile->devices && status == ZB_OK; d++) {
    for (size_t i = schedule->first[d]; i < schedule->first[d + 1]; i++) {
      if (answer->timeline.start_ns[i] == truth->start_ns[i]) continue;
      char op[ZB_OP_TEXT];
      zb_op_print(schedule->ops[i], op);
      return zb_fail(
          error, ZB_WRONG, "device %d, position %zu, %s: start_ns is %lld, but recomputed it is %lld", d,
          i - schedule->first[d], op, (long long)answer->timeline.start_ns[i], (long long)truth->start_ns[i]);
    }
    status = compare_number("peak_bytes", d, answer->timeline.peak_bytes[d], truth->peak_bytes[d], error);
    if (status == ZB_OK)
      status = compare_number("busy_ns", d, answer->timeline.busy_ns[d], truth->busy_ns[d], error);
    if (status == ZB_OK && answer->idle_ns)
      status = compare_number("idle_ns", d, answer->idle_ns[d], zb_answer_idle_ns(truth, d), error);
  }
  return status;
}

static enum zb_status verify_header(const struct zb_answer *answer, const struct zb_timeline *truth,
                                    struct zb_error *error) {
  const struct {
    const char *what;
    int64_t claimed, true_value;
  } numbers[] = {
      {"span_ns", answer->timeline.span_ns, truth->span_ns},
      {"period_ns", answer->timeline.period_ns, truth->period_ns},
      {"makespan_ns", answer->timeline.makespan_ns, truth->makespan_ns},
      {"cost_ns", answer->cost_ns, zb_timeline_cost(truth, answer->objective)},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    enum zb_status status =
        compare_number(numbers[i].what, -1, numbers[i].claimed, numbers[i].true_value, error);
    if (status != ZB_OK) return status;
  }
  enum zb_status status = compare_ratio("gap", answer->gap, zb_answer_gap(answer), error);
  if (status == ZB_OK)
    status =
        compare_ratio("bubble_rate", answer->bubble_rate, zb_ratio(answer->cost_ns, truth->work_ns), error);
  if (status != ZB_OK) return status;
  if (answer->bound_ns > answer->cost_ns)
    return zb_fail(error, ZB_WRONG, "bound_ns %lld is above cost_ns %lld", (long long)answer->bound_ns,
                   (long long)answer->cost_ns);
  bool closed = answer->bound_ns == answer->cost_ns;
  if (closed != (answer->status == ZB_OPTIMAL))
    return zb_fail(error, ZB_WRONG, "status is %s, but cost_ns and bound_ns %s",
                   zb_status_word(answer->status), closed ? "are equal" : "differ");
  return ZB_OK;
}

enum zb_status zb_answer_verify(const struct zb_answer *answer, struct zb_error *error) {
  bool expected = answer->status == ZB_OPTIMAL || answer->status == ZB_FEASIBLE;
  if (expected != (answer->schedule != NULL))
    return zb_fail(error, ZB_WRONG, "status is %s, but there is %s schedule", zb_status_word(answer->status),
                   expected ? "no" : "a");
  if (answer->status == ZB_INFEASIBLE) return verify_infeasible(answer, error);
  if (!answer->schedule) return ZB_OK;
  struct zb_timeline truth = {0};
  enum zb_status status = zb_check_schedule(answer->profile, answer->schedule, &truth, error);
  if (status == ZB_OVER_LIMIT && error) error->status = ZB_WRONG;
  if (status == ZB_OVER_LIMIT) status = ZB_WRONG;
  if (status == ZB_OK) status = verify_devices(answer, &truth, error);
  if (status == ZB_OK) status = verify_header(answer, &truth, error);
  zb_timeline_free(&truth);
  return status;
}
