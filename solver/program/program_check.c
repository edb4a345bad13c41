// program_check.c - the ops as a schedule, the program's times against that schedule's, and its claims.
#include "solver/program/program_check.h"

#include <stdlib.h>

#include "solver/model/check.h"
#include "solver/model/timeline.h"

enum zb_status zb_program_schedule(const struct zb_program *program, struct zb_schedule **schedule,
                                   struct zb_error *error) {
  const size_t devices = (size_t)program->devices, total = program->first[devices];
  struct zb_schedule *s = calloc(1, sizeof *s);
  if (!s || !(s->first = calloc(devices + 1, sizeof *s->first)) ||
      !(s->ops = malloc((total + 1) * sizeof *s->ops))) {
    zb_schedule_free(s);
    return zb_fail_memory(error);
  }
  s->devices = program->devices;
  size_t count = 0;
  for (size_t d = 0; d < devices; d++) {
    for (size_t at = program->first[d]; at < program->first[d + 1]; at++) {
      const struct zb_instruction *i = &program->instructions[at];
      if (zb_instruction_acts(i->kind) == ZB_ACTS_OP)
        s->ops[count++] = (struct zb_op){i->stage, i->microbatch, (enum zb_kind)i->kind};
    }
    s->first[d + 1] = count;
  }
  *schedule = s;
  return ZB_OK;
}

// Messages may cost nothing against the order of the ops alone.
static enum zb_status check_times(const struct zb_program *program, const struct zb_run *run,
                                  const struct zb_timeline *timeline, struct zb_error *error) {
  size_t op = 0;
  for (size_t at = 0; at < program->first[program->devices]; at++) {
    if (zb_instruction_acts(program->instructions[at].kind) != ZB_ACTS_OP) continue;
    if (run->start_ns[at] != timeline->start_ns[op])
      return zb_instruction_fail(error, program, at, "starts at %lld ns, its inputs would allow %lld ns",
                                 (long long)run->start_ns[at], (long long)timeline->start_ns[op]);
    op++;
  }
  return ZB_OK;
}

static enum zb_status check_claims(const struct zb_program *program, const struct zb_timeline *timeline,
                                   struct zb_error *error) {
  const struct {
    const char *key;
    int64_t claimed, computed;
  } claims[] = {{"span_ns", program->span_ns, timeline->span_ns},
                {"period_ns", program->period_ns, timeline->period_ns},
                {"makespan_ns", program->makespan_ns, timeline->makespan_ns}};
  for (size_t k = 0; k < sizeof claims / sizeof *claims; k++)
    if (claims[k].claimed != claims[k].computed)
      return zb_fail(error, ZB_WRONG, "%s: says %lld, its ops take %lld", claims[k].key,
                     (long long)claims[k].claimed, (long long)claims[k].computed);
  for (int d = 0; d < program->devices; d++)
    if (program->peak_bytes[d] != timeline->peak_bytes[d])
      return zb_fail(error, ZB_WRONG, "device %d: peak_bytes: says %lld, its ops keep %lld", d,
                     (long long)program->peak_bytes[d], (long long)timeline->peak_bytes[d]);
  return ZB_OK;
}

enum zb_status zb_program_check(const struct zb_program *program, struct zb_run *run,
                                struct zb_error *error) {
  struct zb_schedule *schedule = NULL;
  struct zb_timeline timeline = {0};
  enum zb_status status = zb_program_simulate(program, program->channels, false, run, error);
  if (status == ZB_OK) status = zb_program_check_slots(program, error);
  if (status == ZB_OK) status = zb_program_check_optimizer(program, error);
  if (status == ZB_OK) status = zb_program_schedule(program, &schedule, error);
  if (status == ZB_OK) {
    status = zb_check_schedule(program->profile, schedule, &timeline, error);
    if (status == ZB_OVER_LIMIT)
      status = zb_fail(error, ZB_WRONG, "%s", error ? error->text : "over its limit");
  }
  if (status == ZB_OK) status = check_times(program, run, &timeline, error);
  if (status == ZB_OK) status = check_claims(program, &timeline, error);
  zb_schedule_free(schedule);
  zb_timeline_free(&timeline);
  return status;
}
