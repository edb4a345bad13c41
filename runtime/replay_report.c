// replay_report.c - sums over steps and devices, and how they are shown.
#include "runtime/replay_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/json.h"

void zb_replay_report_free(struct zb_replay_report *report) {
  free(report->idle_ns);
  free(report->kept);
  free(report->loss);
  *report = (struct zb_replay_report){0};
}

static int64_t latest_end(const struct zb_crew *crew, int64_t step) {
  int64_t latest_ns = INT64_MIN;
  for (int k = 0; k < crew->replay->program->devices; k++) {
    int64_t end_ns = crew->log[k]->step[step].end_ns;
    if (end_ns > latest_ns) latest_ns = end_ns;
  }
  return latest_ns;
}

static int64_t earliest_start(const struct zb_crew *crew, int64_t step) {
  int64_t earliest_ns = INT64_MAX;
  for (int k = 0; k < crew->replay->program->devices; k++) {
    int64_t start_ns = crew->log[k]->step[step].first_start_ns;
    if (start_ns < earliest_ns) earliest_ns = start_ns;
  }
  return earliest_ns;
}

static void add_worst(const struct zb_crew *crew, int k, struct zb_replay_report *report) {
  const struct zb_program *program = crew->replay->program;
  const struct zb_rank_log *log = crew->log[k];
  size_t first = program->first[k], end = program->first[k + 1];
  for (size_t at = first; at < end; at++) {
    const struct zb_instruction *i = &program->instructions[at];
    if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
    struct zb_op op = {i->stage, i->microbatch, (enum zb_kind)i->kind};
    struct zb_compared took = {zb_op_time(program->profile, op),
                               log->busy_ns[at - first] / report->steps_measured};
    if (took.predicted == 0) continue;
    bool worse = report->worst.kind == ZB_INSTRUCTION_KINDS ||
                 (double)took.measured / (double)took.predicted >
                     (double)report->worst_ns.measured / (double)report->worst_ns.predicted;
    if (!worse) continue;
    report->worst = *i;
    report->worst_ns = took;
  }
}

// The ops' time of a device in an iteration.
static struct zb_compared busy_of(const struct zb_crew *crew, int k, int64_t steps) {
  const struct zb_program *program = crew->replay->program;
  const struct zb_rank_log *log = crew->log[k];
  size_t first = program->first[k], end = program->first[k + 1];
  struct zb_compared busy = {0};
  for (size_t at = first; at < end; at++) {
    const struct zb_instruction *i = &program->instructions[at];
    if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
    struct zb_op op = {i->stage, i->microbatch, (enum zb_kind)i->kind};
    busy.predicted += zb_op_time(program->profile, op);
    busy.measured += log->busy_ns[at - first];
  }
  busy.measured /= steps;
  return busy;
}

static int64_t host_ns_of(const struct zb_rank_log *log, int64_t first_step, int64_t steps) {
  int64_t sum_ns = 0;
  for (int64_t step = first_step; step < steps; step++) sum_ns += log->step[step].host_ns;
  return sum_ns / (steps - first_step);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

enum zb_status zb_replay_report(const struct zb_crew *crew, struct zb_replay_report *report,
                                struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  const struct zb_program *program = replay->program;
  size_t devices = (size_t)program->devices;
  int64_t steps = replay->training->steps;
  struct zb_replay_report r = {
      .first_step = replay->first_step, .steps = steps, .steps_measured = steps - replay->warm_up};
  r.worst.kind = ZB_INSTRUCTION_KINDS;
  r.idle_ns = calloc(devices, sizeof *r.idle_ns);
  r.kept = calloc(devices, sizeof *r.kept);
  if (replay->compute->trains) r.loss = calloc((size_t)steps, sizeof *r.loss);
  if (!r.idle_ns || !r.kept || (replay->compute->trains && !r.loss)) {
    zb_replay_report_free(&r);
    return zb_fail_memory(error);
  }
  int64_t begin_ns = replay->warm_up > replay->first_step ? latest_end(crew, replay->warm_up - 1)
                                                          : earliest_start(crew, replay->first_step);
  r.iteration_ns = (struct zb_compared){
      .predicted = program->optimizer == ZB_OPTIMIZER_BARRIER ? program->makespan_ns : program->period_ns,
      .measured = (latest_end(crew, steps - 1) - begin_ns) / r.steps_measured,
  };
  for (int k = 0; k < crew->replay->program->devices; k++) {
    const struct zb_rank_log *log = crew->log[k];
    struct zb_compared busy = busy_of(crew, k, r.steps_measured);
    struct zb_compute_setup setup = zb_rank_setup(replay, k, 0);
    r.work_ns.predicted = larger(r.work_ns.predicted, busy.predicted);
    r.work_ns.measured = larger(r.work_ns.measured, busy.measured);
    r.host_ns = larger(r.host_ns, host_ns_of(log, replay->warm_up, steps));
    r.idle_ns[k] = (struct zb_compared){r.iteration_ns.predicted - busy.predicted,
                                        r.iteration_ns.measured - busy.measured};
    r.kept[k] = (struct zb_compared){
        replay->compute->pretends ? program->peak_bytes[k] - program->profile->static_bytes[k]
                                  : zb_compute_peak(&setup),
        log->memory.kept_peak_bytes,
    };
    add_worst(crew, k, &r);
    r.instructions += log->instructions;
    r.repeats += log->repeats;
    for (int note = 0; note < ZB_NOTE_COUNT; note++) r.notes[note] += log->notes[note];
    r.static_bytes += log->memory.static_bytes;
    r.undo_bytes += log->memory.undo_bytes;
    r.buffer_bytes += log->buffer_bytes;
    if (r.loss && log->loss) memcpy(r.loss, log->loss, (size_t)steps * sizeof *r.loss);
  }
  *report = r;
  return ZB_OK;
}

static void print_times(struct zb_compared ns, const char *what, struct zb_text *out) {
  zb_text_print(out, "  %-16s %12.3f ms %12.3f ms", what, (double)ns.predicted / 1e6,
                (double)ns.measured / 1e6);
  if (ns.predicted > 0) zb_text_print(out, " %8.3f", (double)ns.measured / (double)ns.predicted);
  zb_text_put(out, "\n");
}

static double bubble(int64_t iteration_ns, int64_t work_ns) {
  return iteration_ns ? 100 * (double)(iteration_ns - work_ns) / (double)iteration_ns : 0;
}

static void print_losses(const struct zb_replay_report *report, bool verbose, struct zb_text *out) {
  if (!report->loss) return;
  if (verbose)
    for (int64_t step = report->first_step; step < report->steps; step++)
      zb_text_print(out, "  step %" PRId64 ": loss %.6f\n", step, report->loss[step]);
  else
    zb_text_print(out, "  loss %.6f in step %" PRId64 ", %.6f in step %" PRId64 "\n",
                  report->loss[report->first_step], report->first_step, report->loss[report->steps - 1],
                  report->steps - 1);
}

void zb_replay_report_print(const struct zb_crew *crew, const struct zb_replay_report *report, bool verbose,
                            struct zb_text *out) {
  const struct zb_replay *replay = crew->replay;
  const struct zb_program *program = replay->program;
  zb_text_print(out, "%s: %d devices, %d microbatches, model %s, %s, %s, %s\n", program->method,
                program->devices, program->profile->microbatches, replay->training->gpt->name,
                replay->compute->name, replay->transport->name, zb_optimizer_word(program->optimizer));
  print_losses(report, verbose, out);
  zb_text_print(out, "  %-16s %15s %15s %8s\n", "", "predicted", "measured", "ratio");
  print_times(report->iteration_ns, "iteration", out);
  zb_text_print(out, "  %-16s %14.2f%% %14.2f%%\n", "bubble",
                bubble(report->iteration_ns.predicted, report->work_ns.predicted),
                bubble(report->iteration_ns.measured, report->work_ns.measured));
  for (int k = 0; k < crew->replay->program->devices; k++) {
    char what[32];
    snprintf(what, sizeof what, "idle, device %d", k);
    print_times(report->idle_ns[k], what, out);
  }
  if (report->worst.kind != ZB_INSTRUCTION_KINDS) {
    char op[ZB_INSTRUCTION_TEXT], what[ZB_INSTRUCTION_TEXT + 16];
    zb_instruction_print(report->worst, op);
    snprintf(what, sizeof what, "worst op, %s", op);
    print_times(report->worst_ns, what, out);
  }
  for (int k = 0; k < crew->replay->program->devices && verbose; k++)
    zb_text_print(out, "  kept, device %d: at most %" PRId64 " B, predicted %" PRId64 " B\n", k,
                  report->kept[k].measured, report->kept[k].predicted);
  if (verbose)
    zb_text_print(out,
                  "  %" PRId64 " instructions; static %" PRId64 " B, message buffers %" PRId64
                  " B, to take steps back %" PRId64 " B\n",
                  report->instructions, report->static_bytes, report->buffer_bytes, report->undo_bytes);
  const char *separator = "  optimizer: ";
  for (int note = ZB_NOTE_NONE + 1; note < ZB_NOTE_COUNT; note++) {
    if (!report->notes[note]) continue;
    zb_text_print(out, "%s%" PRId64 " %s", separator, report->notes[note], zb_note_word((enum zb_note)note));
    separator = ", ";
  }
  if (*separator == ',') zb_text_put(out, "\n");
}

static void print_pair(const char *name, struct zb_compared pair, struct zb_text *out) {
  zb_text_print(out, "\"%s\": {\"predicted\": %" PRId64 ", \"measured\": %" PRId64 "}", name, pair.predicted,
                pair.measured);
}

static void print_pairs(const char *name, const struct zb_compared *pairs, int count, struct zb_text *out) {
  zb_text_print(out, "\"%s\": {", name);
  for (int side = 0; side < 2; side++) {
    zb_text_print(out, "%s\"%s\": [", side ? "], " : "", side ? "measured" : "predicted");
    for (int k = 0; k < count; k++)
      zb_text_print(out, "%s%" PRId64, k ? ", " : "", side ? pairs[k].measured : pairs[k].predicted);
  }
  zb_text_put(out, "]}");
}

void zb_replay_report_print_json(const struct zb_crew *crew, const struct zb_replay_report *report,
                                 struct zb_text *out) {
  const struct zb_replay *replay = crew->replay;
  zb_text_put(out, "\"method\": ");
  zb_json_print_string(replay->program->method, out);
  zb_text_put(out, ", \"model\": ");
  zb_json_print_string(replay->training->gpt->name, out);
  zb_text_print(out,
                ", \"backend\": \"%s\", \"transport\": \"%s\", \"optimizer\": \"%s\", \"devices\": %d, "
                "\"microbatches\": %d, \"first_step\": %" PRId64 ", \"steps\": %" PRId64
                ", \"steps_measured\": %" PRId64 ", ",
                replay->compute->name, replay->transport->name, zb_optimizer_word(replay->program->optimizer),
                replay->program->devices, replay->program->profile->microbatches, report->first_step,
                report->steps, report->steps_measured);
  print_pair("iteration_ns", report->iteration_ns, out);
  zb_text_put(out, ", ");
  print_pair("work_ns", report->work_ns, out);
  zb_text_print(out, ", \"host_ns\": %" PRId64 ", ", report->host_ns);
  print_pairs("idle_ns", report->idle_ns, replay->program->devices, out);
  zb_text_put(out, ", ");
  print_pairs("kept_bytes", report->kept, replay->program->devices, out);
  zb_text_print(out,
                ", \"static_bytes\": %" PRId64 ", \"buffer_bytes\": %" PRId64 ", \"undo_bytes\": %" PRId64
                ", \"instructions\": %" PRId64,
                report->static_bytes, report->buffer_bytes, report->undo_bytes, report->instructions);
  zb_text_put(out, ", \"notes\": {");
  for (int note = ZB_NOTE_NONE + 1; note < ZB_NOTE_COUNT; note++)
    zb_text_print(out, "%s\"%s\": %" PRId64, note > 1 ? ", " : "", zb_note_word((enum zb_note)note),
                  report->notes[note]);
  zb_text_put(out, "}");
  if (report->loss) {
    zb_text_put(out, ", \"loss\": [");
    for (int64_t step = report->first_step; step < report->steps; step++)
      zb_text_print(out, "%s%.9g", step > report->first_step ? ", " : "", report->loss[step]);
    zb_text_put(out, "]");
  }
}
