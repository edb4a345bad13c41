// replay.c - starting, joining, verifying.
#include "runtime/replay.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gather.h"
#include "runtime/keep.h"
#include "runtime/straight.h"
#include "solver/model/deadline.h"

struct zb_rank *zb_crew_rank(const struct zb_crew *crew, int device) {
  int place = device - crew->first_device;
  return place >= 0 && place < crew->devices && crew->rank ? crew->rank[place] : NULL;
}

void zb_crew_end(struct zb_crew *crew, enum zb_status status) {
  for (int k = 0; crew->rank && k < crew->devices; k++) zb_rank_part(crew->rank[k]);
  if (crew->shared) crew->transport->leave(crew->shared, status);
  for (int k = 0; crew->rank && k < crew->devices; k++) zb_rank_close(crew->rank[k]);
  for (int d = 0; crew->received && d < crew->replay->program->devices; d++)
    zb_rank_log_free(&crew->received[d]);
  free(crew->received);
  free(crew->log);
  free(crew->rank);
  free(crew->error);
  *crew = (struct zb_crew){0};
}

struct worker {
  struct zb_rank *rank;
  struct zb_error *error;
  pthread_t thread;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  worker->error->status = zb_rank_run(worker->rank, worker->error);
  return NULL;
}

static enum zb_status run_all(struct zb_crew *crew, struct zb_error *error) {
  struct worker *worker = calloc((size_t)crew->devices, sizeof *worker);
  if (!worker) return zb_fail_memory(error);
  int started = 0;
  for (; started < crew->devices; started++) {
    worker[started] = (struct worker){.rank = crew->rank[started], .error = &crew->error[started]};
    if (pthread_create(&worker[started].thread, NULL, work, &worker[started]) != 0) break;
  }
  enum zb_status status = ZB_OK;
  if (started < crew->devices) {
    crew->replay->transport->abandon(crew->shared);
    status = zb_fail(error, ZB_FAILED, "no thread for device %d", crew->first_device + started);
  }
  for (int k = 0; k < started; k++) pthread_join(worker[k].thread, NULL);
  free(worker);
  return status;
}

// Whose reason is its own.
static const struct zb_error *first_reason(const struct zb_crew *crew) {
  const struct zb_error *any = NULL;
  for (int k = 0; k < crew->devices; k++) {
    const struct zb_error *error = &crew->error[k];
    if (error->status == ZB_OK) continue;
    if (!strstr(error->text, ZB_GAVE_UP)) return error;
    any = error;
  }
  return any;
}

enum zb_status zb_crew_start(const struct zb_transport *transport, struct zb_crew *crew,
                             struct zb_error *error) {
  *crew = (struct zb_crew){.transport = transport};
  return transport->start(&crew->shared, error);
}

enum zb_status zb_crew_agree(const struct zb_crew *crew, enum zb_status mine, int64_t timeout_ns,
                             struct zb_error *error) {
  return crew->transport->agree(crew->shared, mine, zb_clock_ns() + timeout_ns, error);
}

enum zb_status zb_crew_join(struct zb_crew *crew, const struct zb_replay *replay, uint64_t digest,
                            struct zb_error *error) {
  crew->replay = replay;
  return crew->transport->join(crew->shared, replay->program->devices, digest,
                               zb_clock_ns() + replay->timeout_ns, &crew->first_device, &crew->devices,
                               error);
}

static enum zb_status connect_edges(const struct zb_crew *crew, struct zb_error *error) {
  struct zb_edge *edge = NULL;
  size_t edges = 0;
  enum zb_status status = zb_edges_of(crew->replay->program, &edge, &edges, error);
  if (status == ZB_OK)
    status = crew->transport->connect(crew->shared, edge, edges, crew->replay->timeout_ns, error);
  free(edge);
  return status;
}

enum zb_status zb_crew_work(struct zb_crew *crew, struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  enum zb_status status = ZB_OK;
  crew->rank = calloc((size_t)crew->devices, sizeof(struct zb_rank *));
  crew->error = calloc((size_t)crew->devices, sizeof *crew->error);
  if (!crew->rank || !crew->error) status = zb_fail_memory(error);
  if (crew->transport->connect) {
    if (status == ZB_OK) status = connect_edges(crew, error);
    status = zb_crew_agree(crew, status, replay->timeout_ns, error);
  }
  for (int k = 0; status == ZB_OK && k < crew->devices; k++)
    status = zb_rank_open(replay, crew->shared, crew->first_device + k, &crew->rank[k], error);
  status = zb_crew_agree(crew, status, replay->timeout_ns, error);
  if (status == ZB_OK) status = run_all(crew, error);
  if (status != ZB_OK) return status;
  const struct zb_error *reason = first_reason(crew);
  if (reason && error) *error = *reason;
  if (reason) return reason->status;
  status = zb_crew_gather(crew, error);
  if (status != ZB_OK && error && error->text[0]) {
    struct zb_text text = {0};
    zb_progress_print(zb_rank_progress(crew->rank[0]), true, &text);
    zb_text_print(&text, ": %.300s", error->text);
    zb_fail(error, status, "%s", text.data ? text.data : error->text);
    zb_text_free(&text);
  }
  return status;
}

enum zb_status zb_crew_run(const struct zb_replay *replay, struct zb_crew *crew, struct zb_error *error) {
  enum zb_status status = zb_crew_start(replay->transport, crew, error);
  if (status == ZB_OK) status = zb_crew_join(crew, replay, 0, error);
  return status == ZB_OK ? zb_crew_work(crew, error) : status;
}

int64_t zb_replay_bytes(const struct zb_replay *replay, int device) {
  const struct zb_program *program = replay->program;
  struct zb_compute_setup setup = zb_rank_setup(replay, device, 0);
  int64_t slots = 0;
  for (int s = 0; s < program->profile->stages; s++)
    for (int kind = 0; program->profile->device_of[s] == device && kind < ZB_SLOT_KINDS; kind++)
      if (kind != ZB_SLOT_KEPT) slots += zb_program_slots(program, s, (enum zb_slot_kind)kind);
  return replay->compute->needs(&setup) + slots * (int64_t)zb_training_message_bytes(replay->training);
}

enum zb_status zb_replay_fits(const struct zb_replay *replay, struct zb_error *error) {
  const struct zb_compute *compute = replay->compute;
  const struct zb_transport *transport = replay->transport;
  if (compute->apart ? !transport->device_memory : !transport->host_memory)
    return zb_fail(error, ZB_BAD_INPUT, "--transport %s: does not reach the memory of --backend %s",
                   transport->name, compute->name);
  if (!replay->graph) return ZB_OK;
  if (!compute->repeats) return zb_fail(error, ZB_BAD_INPUT, "--graph: only --backend cuda has graphs");
  if (replay->program->optimizer != ZB_OPTIMIZER_BARRIER)
    return zb_fail(error, ZB_BAD_INPUT,
                   "--graph: post-validation may begin a batch again, a graph does not; expected a barrier");
  if (replay->program->devices > 1 && !transport->captures)
    return zb_fail(error, ZB_BAD_INPUT,
                   "--graph: --transport %s copies outside of graphs; expected nccl, or one device",
                   transport->name);
  return ZB_OK;
}

enum zb_status zb_crew_look(const struct zb_crew *crew, struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  const struct zb_compute *compute = replay->compute;
  const struct zb_transport *transport = crew->transport;
  int count = 0;
  struct zb_demand *need = calloc((size_t)replay->program->devices, sizeof *need);
  if (!need) return zb_fail_memory(error);
  for (int d = 0; d < replay->program->devices; d++)
    if (transport->is_near(crew->shared, d))
      need[count++] = (struct zb_demand){
          .device = d,
          .seat = transport->seat(crew->shared, d),
          .here = d >= crew->first_device && d < crew->first_device + crew->devices,
          .bytes = zb_replay_bytes(replay, d),
      };
  enum zb_status status = compute->look(replay->training, need, count, error);
  free(need);
  return status;
}

enum zb_status zb_schedule_sort(const struct zb_profile *profile, struct zb_schedule *schedule,
                                struct zb_error *error) {
  size_t stages = (size_t)profile->stages;
  int32_t(*next)[3] = calloc(stages, sizeof *next); // F, backward, W of a split one
  bool *fused = calloc(stages * (size_t)profile->microbatches, sizeof *fused);
  enum zb_status status = next && fused ? ZB_OK : zb_fail_memory(error);
  for (int pass = 0; status == ZB_OK && pass < 2; pass++) {
    // First the backward passes, which say whose W there is.
    for (size_t k = 0; k < schedule->first[profile->devices]; k++) {
      struct zb_op *op = &schedule->ops[k];
      bool *stage_fused = fused + (size_t)op->stage * (size_t)profile->microbatches;
      int32_t *at = next[op->stage];
      if (pass == 0 && op->kind == ZB_F) op->microbatch = at[0]++;
      if (pass == 0 && (op->kind == ZB_B || op->kind == ZB_BW)) {
        stage_fused[at[1]] = op->kind == ZB_BW;
        op->microbatch = at[1]++;
      }
      if (pass == 1 && op->kind == ZB_W) {
        while (stage_fused[at[2]]) at[2]++;
        op->microbatch = at[2]++;
      }
    }
  }
  free(next);
  free(fused);
  return status;
}

// Verifying.

static bool is_near(double got, double wanted, double unit, double tolerance) {
  return fabs(got - wanted) <= tolerance * (fabs(wanted) + unit);
}

static enum zb_status verify_losses(const struct zb_crew *crew, const double *wanted, double tolerance,
                                    struct zb_error *error) {
  const struct zb_training *training = crew->replay->training;
  for (int k = 0; k < crew->devices; k++) {
    const double *got = zb_rank_log(crew->rank[k])->loss;
    for (int64_t step = crew->replay->first_step; got && step < training->steps; step++)
      if (tolerance > 0 ? !is_near(got[step], wanted[step], 1, tolerance)
                        : memcmp(&got[step], &wanted[step], sizeof *got) != 0)
        return zb_fail(error, ZB_WRONG, "step %" PRId64 ": loss %.17g, without a pipeline %.17g", step,
                       got[step], wanted[step]);
  }
  return ZB_OK;
}

// The parameters of a stage against those of its units in the whole model.
static enum zb_status verify_stage(const struct zb_crew *crew, int stage, const struct zb_checkpoint *whole,
                                   double tolerance, struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  struct zb_rank *rank = zb_crew_rank(crew, replay->program->profile->device_of[stage]);
  if (!rank) return ZB_OK;
  const zb_real *wanted =
      whole->values + zb_checkpoint_place(replay->training->gpt, replay->first_unit[stage]);
  size_t count = replay->compute->parameters(zb_rank_state(rank), stage);
  zb_real *got = zb_reals(count);
  if (!got) return zb_fail_memory(error);
  enum zb_status status = replay->compute->fetch(zb_rank_state(rank), stage, got, error);
  for (size_t k = 0; status == ZB_OK && k < count; k++)
    if (tolerance > 0
            ? !is_near((double)got[k], (double)wanted[k], replay->training->gpt->adamw.rate, tolerance)
            : memcmp(&got[k], &wanted[k], sizeof *got) != 0)
      status = zb_fail(error, ZB_WRONG, "stage %d: parameter %zu is %.9g, without a pipeline %.9g", stage, k,
                       (double)got[k], (double)wanted[k]);
  free(got);
  return status;
}

static enum zb_status verify_peaks(const struct zb_crew *crew, struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  for (int k = 0; k < crew->devices; k++) {
    int device = crew->first_device + k;
    struct zb_compute_setup setup = zb_rank_setup(replay, device, 0);
    int64_t wanted = zb_compute_peak(&setup);
    int64_t got = zb_rank_log(crew->rank[k])->memory.kept_peak_bytes;
    if (got != wanted)
      return zb_fail(error, ZB_WRONG, "device %d: kept %" PRId64 " bytes at most, the program says %" PRId64,
                     device, got, wanted);
  }
  return ZB_OK;
}

enum zb_status zb_crew_verify(const struct zb_crew *crew, double tolerance, struct zb_text *out,
                              struct zb_error *error) {
  const struct zb_replay *replay = crew->replay;
  const struct zb_training *training = replay->training;
  struct zb_checkpoint *whole = NULL;
  double *loss = calloc((size_t)training->steps, sizeof *loss);
  int seat = crew->transport->seat(crew->shared, crew->first_device);
  enum zb_status status =
      loss ? zb_straight_run(training, replay->compute, seat, loss, &whole, error) : zb_fail_memory(error);
  if (status == ZB_OK) status = verify_losses(crew, loss, tolerance, error);
  for (int s = 0; status == ZB_OK && s < replay->program->profile->stages; s++)
    status = verify_stage(crew, s, whole, tolerance, error);
  if (status == ZB_OK) status = verify_peaks(crew, error);
  status = zb_crew_agree(crew, status, replay->timeout_ns, error);
  if (status == ZB_OK) {
    zb_text_print(out, "verified: %" PRId64 " losses, %zu parameters and the peaks of %d devices are ",
                  training->steps - replay->first_step, whole->count, replay->program->devices);
    if (tolerance > 0)
      zb_text_print(out, "within %.0e of a run without pipeline\n", tolerance);
    else
      zb_text_put(out, "those of a run without pipeline, to the bit\n");
  }
  zb_checkpoint_free(whole);
  free(loss);
  return status;
}
