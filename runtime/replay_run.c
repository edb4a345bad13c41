// replay_run.c - zbreplay run: from files to a crew, and what it says afterwards.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/checkpoint.h"
#include "runtime/launch.h"
#include "runtime/replay.h"
#include "runtime/replay_commands.h"
#include "runtime/replay_report.h"
#include "runtime/witness.h"
#include "solver/io/file.h"
#include "solver/io/program_json.h"
#include "solver/io/schedule_json.h"
#include "solver/model/answer.h"
#include "solver/program/lower.h"
#include "solver/program/program_check.h"

enum { PROGRAM_BYTES_MOST = 1 << 30 };

// What --rollback inverse ends within, of a run without pipeline (zb_crew_verify).
static const double inverse_tolerance = 1e-3;

static const struct zb_compute *const computes[] = {&zb_compute_cpu, &zb_compute_sleep, &zb_compute_cuda};
static const struct zb_transport *const transports[] = {&zb_transport_threads, &zb_transport_mpi,
                                                        &zb_transport_nccl};

static const struct zb_transport *transport_of(const struct zb_replay_options *options) {
  const struct zb_transport *transport = transports[options->transport];
  return transport == &zb_transport_nccl && zb_was_launched() ? &zb_transport_nccl_apart : transport;
}

static int64_t seconds(double s) { return (int64_t)(s * 1e9); }

// Everything that a run owns.
struct run {
  struct zb_program *program;
  struct zb_gpt gpt;
  struct zb_corpus corpus;
  struct zb_training training;
  int *first_unit;
  struct zb_replay replay;
  struct zb_crew crew;
  struct zb_replay_report report;
  struct zb_checkpoint *resumed;
};

static enum zb_status read_data_at(const char *path, const struct zb_replay_options *options,
                                   const struct zb_gpt *gpt, struct zb_corpus *corpus,
                                   struct zb_error *error) {
  return zb_corpus_read(path, gpt, (uint64_t)options->seed, corpus, error);
}

enum zb_status zb_replay_read_data(const struct zb_replay_options *options, const struct zb_gpt *gpt,
                                   struct zb_corpus *corpus, struct zb_error *error) {
  // From build/, from build/san-*/, from a folder in there, from where it is installed.
  static const char *const beside[] = {"/../configs/models/text.txt", "/../../configs/models/text.txt",
                                       "/../../../configs/models/text.txt",
                                       "/../share/zbsolve/configs/models/text.txt"};
  if (options->data) return read_data_at(options->data, options, gpt, corpus, error);
  char program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 64);
  char *slash = NULL;
  if (length > 0) {
    program[length] = '\0';
    slash = strrchr(program, '/');
  }
  for (size_t k = 0; slash && k < sizeof beside / sizeof *beside; k++) {
    strcpy(slash, beside[k]);
    if (access(program, R_OK) == 0) return read_data_at(program, options, gpt, corpus, error);
  }
  return zb_fail(error, ZB_BAD_INPUT, "the text that comes with zbreplay is not beside it: give --data FILE");
}

// A file that is wrong in itself.
static enum zb_status fail_in_file(enum zb_status status, const char *path, struct zb_error *error) {
  if (status != ZB_OK && !error->path[0]) zb_error_set_path(error, path);
  return status;
}

static enum zb_status use_program(const struct zb_replay_options *options, const struct zb_text *text,
                                  struct zb_program **program, struct zb_error *error) {
  struct zb_run simulated = {0};
  enum zb_status status = zb_program_read_text(text->data, text->size, program, error);
  if (status == ZB_OK) status = zb_program_check(*program, &simulated, error);
  zb_run_free(&simulated);
  if (status != ZB_OK) return status;
  if ((*program)->optimizer == ZB_OPTIMIZER_NONE)
    return zb_fail(
        error, ZB_BAD_INPUT,
        "a program without an optimizer, expected zbsolve compile --optimizer barrier|post-validation");
  if (options->optimizer >= 0 && options->optimizer + 1 != (int)(*program)->optimizer)
    return zb_fail(error, ZB_BAD_INPUT, "a program compiled for --optimizer %s",
                   zb_optimizer_word((*program)->optimizer));
  return ZB_OK;
}

static enum zb_status use_schedule(const struct zb_replay_options *options, const struct zb_text *text,
                                   struct zb_program **program, struct zb_error *error) {
  struct zb_answer answer = {0};
  enum zb_status status = zb_answer_read_text(text->data ? text->data : "", text->size, &answer, error);
  if (status != ZB_OK) return status;
  if (!answer.schedule)
    status = zb_fail(error, ZB_BAD_INPUT, "an %s answer has no schedule", zb_status_word(answer.status));
  if (status == ZB_OK) status = zb_answer_verify(&answer, error);
  if (status == ZB_OK) status = zb_schedule_sort(answer.profile, answer.schedule, error);
  enum zb_optimizer optimizer =
      options->optimizer >= 0 ? (enum zb_optimizer)(options->optimizer + 1) : ZB_OPTIMIZER_BARRIER;
  if (status == ZB_OK)
    status = zb_program_lower(answer.profile, answer.schedule, answer.method, optimizer, program, error);
  zb_answer_free(&answer);
  return status;
}

static enum zb_status read_program(const struct zb_replay_options *options, struct zb_program **program,
                                   struct zb_error *error) {
  struct zb_text text = {0};
  enum zb_status status = zb_file_read(options->operand, PROGRAM_BYTES_MOST, &text, error);
  if (status == ZB_OK)
    status = text.size && zb_program_begins(text.data, text.size)
                 ? use_program(options, &text, program, error)
                 : use_schedule(options, &text, program, error);
  zb_text_free(&text);
  return fail_in_file(status, options->operand, error);
}

static enum zb_status read_injection(const struct zb_replay_options *options, struct run *run,
                                     struct zb_error *error) {
  run->training.nan_step = -1;
  run->replay.nan_stage = -1;
  if (!options->inject) return ZB_OK;
  long long step, stage;
  char rest;
  int stages = run->program->profile->stages;
  if (sscanf(options->inject, "nan:%lld:%lld%c", &step, &stage, &rest) != 2 || step < 0 || stage < 0)
    return zb_fail(error, ZB_BAD_INPUT, "--inject: \"%s\", expected nan:STEP:STAGE", options->inject);
  if (step >= options->steps || stage >= stages)
    return zb_fail(error, ZB_BAD_INPUT, "--inject: %s, but there are %lld steps and %d stages, both from 0",
                   options->inject, (long long)options->steps, stages);
  if (run->first_unit[stage] == run->first_unit[stage + 1])
    return zb_fail(error, ZB_BAD_INPUT, "--inject: stage %lld holds nothing of this model", stage);
  run->training.nan_step = step;
  run->training.nan_unit = run->first_unit[stage];
  run->replay.nan_stage = (int32_t)stage;
  return ZB_OK;
}

static enum zb_status resume(const struct zb_replay_options *options, struct run *run,
                             struct zb_error *error) {
  struct zb_replay *replay = &run->replay;
  if (!replay->compute->trains)
    return zb_fail(error, ZB_BAD_INPUT, "--checkpoint: --backend %s trains nothing", replay->compute->name);
  enum zb_status status = zb_checkpoint_read(options->checkpoint, &run->training, &run->resumed, error);
  replay->checkpoint = options->checkpoint;
  replay->checkpoint_every = options->checkpoint_every;
  if (status != ZB_OK || !run->resumed) return status;
  replay->resumed = run->resumed;
  replay->first_step = run->resumed->step;
  if (replay->first_step >= options->steps)
    return zb_fail(error, ZB_BAD_INPUT, "--steps: %lld, but %s/checkpoint has %lld steps already",
                   (long long)options->steps, options->checkpoint, (long long)replay->first_step);
  int64_t left = options->steps - replay->first_step;
  replay->warm_up = replay->first_step + (options->warm_up < left ? options->warm_up : left - 1);
  return ZB_OK;
}

static enum zb_status prepare(const struct zb_replay_options *options, struct run *run,
                              struct zb_error *error) {
  const struct zb_compute *compute = computes[options->backend];
  if (options->verify && !compute->trains)
    return zb_fail(error, ZB_BAD_INPUT, "--verify: --backend %s trains nothing", compute->name);
  if (options->warm_up >= options->steps && options->steps > 1 && options->warm_up > 1)
    return zb_fail(error, ZB_BAD_INPUT, "--warm-up: %lld of %lld steps, expected fewer",
                   (long long)options->warm_up, (long long)options->steps);
  enum zb_status status = options->trace ? zb_file_can_write(options->trace, error) : ZB_OK;
  if (status == ZB_OK) status = read_program(options, &run->program, error);
  if (status != ZB_OK) return status;
  const struct zb_profile *profile = run->program->profile;
  if (options->model)
    status = zb_gpt_read(options->model, &run->gpt, error);
  else
    zb_gpt_smallest(profile->stages, &run->gpt);
  if (status != ZB_OK) return status;
  if (options->clip >= 0) run->gpt.adamw.clip = options->clip;
  run->first_unit = calloc((size_t)profile->stages + 1, sizeof *run->first_unit);
  if (!run->first_unit) return zb_fail_memory(error);
  status = zb_gpt_cut(&run->gpt, profile->stages, run->first_unit, error);
  if (status != ZB_OK) return fail_in_file(status, options->model, error);
  status = zb_replay_read_data(options, &run->gpt, &run->corpus, error);
  run->training = (struct zb_training){
      .gpt = &run->gpt,
      .corpus = &run->corpus,
      .seed = (uint64_t)options->seed,
      .microbatches = profile->microbatches,
      .steps = options->steps,
      .dtype = (enum zb_dtype)options->dtype,
      .tf32 = options->tf32,
  };
  struct zb_progress *watched = run->replay.watched;
  run->replay = (struct zb_replay){
      .watched = watched,
      .program = run->program,
      .training = &run->training,
      .first_unit = run->first_unit,
      .compute = compute,
      .transport = transport_of(options),
      .rollback = (enum zb_rollback)options->rollback,
      .timeout_ns = seconds(options->timeout_s),
      .warm_up = options->warm_up < options->steps ? options->warm_up : options->steps - 1,
      .traces = options->trace != NULL,
      .graph = options->graph,
  };
  if (status == ZB_OK) status = zb_replay_fits(&run->replay, error);
  if (status == ZB_OK) status = read_injection(options, run, error);
  if (status == ZB_OK && options->checkpoint) status = resume(options, run, error);
  return status;
}

static enum zb_status write_trace(const char *path, const struct zb_crew *crew, struct zb_error *error) {
  struct zb_text text = {0};
  zb_replay_trace_print(crew, &text);
  enum zb_status status = zb_file_write(path, &text, error);
  zb_text_free(&text);
  return status;
}

// What each device was at, when one did not finish; what is said already is left out.
static void say_reasons(const struct zb_crew *crew, const struct zb_error *said, zb_say say) {
  struct zb_text text = {0};
  for (int k = 0; crew->error && k < crew->devices; k++)
    if (crew->error[k].status != ZB_OK && strcmp(crew->error[k].text, said->text) != 0)
      zb_text_print(&text, "zbreplay: %s\n", crew->error[k].text);
  if (text.data) say(text.data);
  zb_text_free(&text);
}

// Once: the words are gone afterwards.
static void say_error(struct zb_error *error, zb_say say) {
  struct zb_text text = {0};
  if (!error->text[0]) return;
  zb_text_print(&text, "%s: %s\n", error->path[0] ? error->path : "zbreplay", error->text);
  if (text.data) say(text.data);
  zb_text_free(&text);
  error->text[0] = '\0';
}

// Who is where; every process takes part.
static enum zb_status meet(struct run *run, zb_say say, struct zb_error *error) {
  struct zb_crew *crew = &run->crew;
  struct zb_text text = {0};
  enum zb_status status = zb_crew_join(crew, &run->replay, zb_replay_digest(&run->replay), error);
  if (status != ZB_OK) return status;
  status = zb_crew_look(crew, error);
  if (status == ZB_OK && run->replay.checkpoint && zb_crew_speaks(crew))
    status = zb_checkpoint_prepare(run->replay.checkpoint, error);
  status = zb_crew_agree(crew, status, run->replay.timeout_ns, error);
  if (status != ZB_OK) return status;
  crew->transport->table(crew->shared, &text);
  if (text.data && zb_crew_speaks(crew)) say(text.data);
  zb_text_free(&text);
  return ZB_OK;
}

static enum zb_status report(const struct zb_replay_options *options, struct run *run,
                             const struct zb_text *verified, struct zb_text *out, struct zb_error *error) {
  enum zb_status status = zb_replay_report(&run->crew, &run->report, error);
  if (status == ZB_OK && options->trace) status = write_trace(options->trace, &run->crew, error);
  if (status != ZB_OK) return status;
  if (options->json) {
    zb_text_put(out, "{");
    zb_replay_report_print_json(&run->crew, &run->report, out);
    zb_text_print(out, ", \"verified\": %s}\n", options->verify ? "true" : "false");
    return ZB_OK;
  }
  if (!options->quiet) zb_replay_report_print(&run->crew, &run->report, options->verbose, out);
  if (verified->size) zb_text_add(out, verified->data, verified->size);
  return ZB_OK;
}

static enum zb_status run_and_report(const struct zb_replay_options *options, struct run *run,
                                     struct zb_text *out, zb_say say, struct zb_error *error) {
  struct zb_crew *crew = &run->crew;
  struct zb_text verified = {0};
  double tolerance =
      run->program->optimizer == ZB_OPTIMIZER_POST_VALIDATION && run->replay.rollback == ZB_ROLLBACK_INVERSE
          ? inverse_tolerance
          : 0;
  enum zb_status status = meet(run, say, error);
  if (status == ZB_OK) {
    status = zb_crew_work(crew, error);
    if (status != ZB_OK) say_reasons(crew, error, say);
  }
  if (status == ZB_OK && options->verify) status = zb_crew_verify(crew, tolerance, &verified, error);
  if (status == ZB_OK && zb_crew_speaks(crew)) status = report(options, run, &verified, out, error);
  zb_text_free(&verified);
  return status;
}

// Everything is said and written before any process leaves: a launcher may end the others when the first
// does.
static enum zb_status end_apart(struct zb_crew *crew, enum zb_status status,
                                const struct zb_replay_options *options, struct zb_text *out, zb_say say,
                                struct zb_error *error) {
  if (status == ZB_OK && out->size) status = zb_file_write("-", out, error);
  zb_text_clear(out);
  say_error(error, say);
  status = zb_crew_agree(crew, status, seconds(options->timeout_s), error);
  say_error(error, say);
  return status;
}

enum zb_status zb_replay_run(const struct zb_replay_options *options, struct zb_text *out, zb_say say,
                             struct zb_error *error) {
  struct run run = {0};
  const struct zb_transport *transport = transport_of(options);
  struct zb_witness *witness = NULL;
  enum zb_status status = transport->apart ? zb_witness_start(&witness, &run.replay.watched, error) : ZB_OK;
  if (status == ZB_OK) status = zb_crew_start(transport, &run.crew, error);
  if (status == ZB_OK) {
    status = prepare(options, &run, error);
    status = zb_crew_agree(&run.crew, status, seconds(options->timeout_s), error);
  }
  if (status == ZB_OK) status = run_and_report(options, &run, out, say, error);
  if (transport->apart && run.crew.shared) status = end_apart(&run.crew, status, options, out, say, error);
  zb_witness_dismiss(witness);
  zb_replay_report_free(&run.report);
  zb_crew_end(&run.crew, status);
  zb_program_free(run.program);
  zb_corpus_free(&run.corpus);
  zb_checkpoint_free(run.resumed);
  free(run.first_unit);
  return status;
}
