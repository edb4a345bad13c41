// measure.c - timing ops and transfers.
//
// An op is timed as the backend reports it, in the order F, B, W, then F, BW: so each finds in the caches
// about what it would find in a pipeline, and the backend itself is what a run uses. Transfers go between
// buffers of the backend, behind its events where it has them.
#include "runtime/measure.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/stage.h"
#include "solver/model/deadline.h"

enum { WARM_UP = 2, TRANSFERS = 200 };

static const int64_t patience_ns = INT64_C(60000000000), moment_ns = INT64_C(1000000000);

enum { BUFFERS = 4 };

// Where all devices begin at once; whoever is missing can be counted off.
struct start {
  pthread_mutex_t lock;
  pthread_cond_t all_here;
  int missing;
};

struct meter {
  void *state, *buffer[BUFFERS];
  const struct zb_compute_setup *setup;
  const struct zb_compute *compute;
  int repeats;
  int64_t *f_ns, *b_ns, *w_ns, *bw_ns; // [stages], the device's own are filled
  int64_t static_bytes;
  struct zb_interval when[5]; // of time_once; filled by a finish, after a failure by close_meter's
  struct start *together;     // NULL: alone
  pthread_t thread;
  enum zb_status status;
  struct zb_error error;
};

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static int64_t median(int64_t *ns, int count) {
  qsort(ns, (size_t)count, sizeof *ns, compare_ns);
  return ns[count / 2];
}

// F, B, W and F, BW of one stage, once.
static enum zb_status time_once(struct meter *meter, int stage, int64_t round) {
  static const struct {
    enum zb_kind kind;
    int microbatch;
  } ops[] = {{ZB_F, 0}, {ZB_B, 0}, {ZB_W, 0}, {ZB_F, 1}, {ZB_BW, 1}};
  const struct zb_compute *compute = meter->compute;
  void *state = meter->state, **buffer = meter->buffer;
  bool first = stage == 0, last = stage == meter->setup->profile->stages - 1;
  enum zb_status status = compute->begin(state, round, &meter->error);
  for (int k = 0; status == ZB_OK && k < 5; k++) {
    struct zb_op op = {stage, ops[k].microbatch, ops[k].kind};
    bool forward = op.kind == ZB_F;
    void *in = forward ? (first ? NULL : buffer[0]) : last ? NULL : buffer[2];
    void *out = forward ? (last ? NULL : buffer[1]) : first ? NULL : buffer[3];
    if (op.kind == ZB_W) in = out = NULL;
    status = compute->op(state, op, in, out, &meter->when[k], &meter->error);
  }
  if (status == ZB_OK) status = zb_compute_finish(compute, state, zb_clock_ns() + patience_ns, &meter->error);
  return status;
}

static enum zb_status time_stage(struct meter *meter, int stage) {
  int repeats = meter->repeats;
  int64_t *took = malloc((size_t)repeats * 4 * sizeof *took);
  if (!took) return zb_fail_memory(&meter->error);
  enum zb_status status = ZB_OK;
  for (int k = -WARM_UP; status == ZB_OK && k < repeats; k++) {
    status = time_once(meter, stage, k + WARM_UP);
    static const int counted[4] = {0, 1, 2, 4};
    for (int kind = 0; status == ZB_OK && k >= 0 && kind < 4; kind++)
      took[kind * repeats + k] = meter->when[counted[kind]].end_ns - meter->when[counted[kind]].start_ns;
  }
  if (status == ZB_OK) {
    meter->f_ns[stage] = median(took, repeats);
    meter->b_ns[stage] = median(took + repeats, repeats);
    meter->w_ns[stage] = median(took + 2 * repeats, repeats);
    meter->bw_ns[stage] = median(took + 3 * repeats, repeats);
  }
  free(took);
  return status;
}

static void count_off(struct start *start, bool waits) {
  pthread_mutex_lock(&start->lock);
  start->missing--;
  pthread_cond_broadcast(&start->all_here);
  while (waits && start->missing > 0) pthread_cond_wait(&start->all_here, &start->lock);
  pthread_mutex_unlock(&start->lock);
}

static enum zb_status time_device(struct meter *meter) {
  const struct zb_compute *compute = meter->compute;
  const struct zb_compute_setup *setup = meter->setup;
  size_t bytes = zb_training_message_bytes(setup->training);
  enum zb_status status = compute->open(setup, &meter->state, &meter->error);
  for (int k = 0; status == ZB_OK && k < BUFFERS; k++)
    status = compute->allocate(meter->state, bytes, &meter->buffer[k], &meter->error);
  // Whoever failed must not keep the others waiting.
  if (meter->together) count_off(meter->together, true);
  for (int s = 0; status == ZB_OK && s < setup->profile->stages; s++)
    if (setup->profile->device_of[s] == setup->device) status = time_stage(meter, s);
  if (status == ZB_OK) meter->static_bytes = compute->memory(meter->state).static_bytes;
  return status;
}

static void close_meter(struct meter *meter) {
  bool done;
  if (!meter->state) return;
  meter->compute->finish(meter->state, zb_clock_ns() + moment_ns, &done, NULL);
  for (int k = 0; k < BUFFERS; k++)
    if (meter->buffer[k]) meter->compute->release(meter->state, meter->buffer[k]);
  meter->compute->close(meter->state);
}

static void *run_meter(void *argument) {
  struct meter *meter = argument;
  meter->status = time_device(meter);
  return NULL;
}

static enum zb_status run_meters(struct meter *meter, int devices, struct zb_error *error) {
  bool at_once = devices > 1 && meter[0].compute->at_once() >= devices;
  enum zb_status status = ZB_OK;
  if (at_once) {
    struct start together = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, devices};
    int started = 0;
    for (; started < devices; started++) {
      meter[started].together = &together;
      if (pthread_create(&meter[started].thread, NULL, run_meter, &meter[started]) != 0) break;
    }
    for (int d = started; d < devices; d++) count_off(&together, false);
    for (int d = 0; d < started; d++) pthread_join(meter[d].thread, NULL);
    if (started < devices) status = zb_fail(error, ZB_FAILED, "no thread for device %d", started);
  } else {
    for (int d = 0; d < devices; d++) run_meter(&meter[d]);
  }
  for (int d = 0; status == ZB_OK && d < devices; d++) {
    status = meter[d].status;
    if (status != ZB_OK && error) *error = meter[d].error;
  }
  return status;
}

// Transfers.

struct peer {
  const struct zb_transport *transport;
  const struct meter *meter; // whose device and buffer it is
  void *shared;
  int device;
  size_t bytes;
  int64_t *took_ns; // [TRANSFERS] round trips, of device 0
  enum zb_status status;
  struct zb_error error;
};

static enum zb_status pass_message(struct peer *peer, void *endpoint, bool sends) {
  const struct zb_compute *compute = peer->meter->compute;
  void *state = peer->meter->state, *data = peer->meter->buffer[0], *event = NULL;
  struct zb_ticket ticket = {.posted = false};
  struct zb_label label = {0};
  enum zb_status status = compute->record(state, &event, &peer->error);
  if (status != ZB_OK) return status;
  status = sends ? peer->transport->send(endpoint, 1 - peer->device, label, data, peer->bytes, event, &ticket,
                                         &peer->error)
                 : peer->transport->receive(endpoint, 1 - peer->device, label, data, peer->bytes, event,
                                            &ticket, &peer->error);
  if (status == ZB_OK)
    status = peer->transport->wait(endpoint, &ticket, zb_clock_ns() + patience_ns, &event, &peer->error);
  if (status == ZB_OK && event) status = compute->await(state, event, &peer->error);
  return status;
}

static void *run_peer(void *argument) {
  struct peer *peer = argument;
  const struct zb_compute *compute = peer->meter->compute;
  struct zb_mover mover = {compute->copy, compute->follow, peer->meter->state};
  void *endpoint = NULL;
  peer->status =
      peer->transport->open(peer->shared, peer->device, mover.copy ? &mover : NULL, &endpoint, &peer->error);
  for (int k = 0; peer->status == ZB_OK && k < TRANSFERS; k++) {
    int64_t start_ns = zb_clock_ns();
    for (int turn = 0; peer->status == ZB_OK && turn < 2; turn++)
      peer->status = pass_message(peer, endpoint, (turn == 0) == (peer->device == 0));
    if (peer->status == ZB_OK)
      peer->status =
          zb_compute_finish(compute, peer->meter->state, zb_clock_ns() + patience_ns, &peer->error);
    if (peer->device == 0) peer->took_ns[k] = zb_clock_ns() - start_ns;
  }
  if (peer->status != ZB_OK) peer->transport->abandon(peer->shared);
  if (endpoint) peer->transport->close(endpoint);
  return NULL;
}

// Between devices 0 and 1, which are open.
static enum zb_status time_transfer(const struct zb_transport *transport, const struct meter *meter,
                                    size_t bytes, int64_t *one_way_ns, struct zb_error *error) {
  void *shared = NULL;
  int first, count;
  int64_t took_ns[TRANSFERS];
  enum zb_status status = transport->start(&shared, error);
  if (status == ZB_OK)
    status = transport->join(shared, 2, 0, zb_clock_ns() + patience_ns, &first, &count, error);
  if (status != ZB_OK) {
    transport->leave(shared, ZB_OK);
    return status;
  }
  struct peer peer[2];
  for (int d = 0; d < 2; d++)
    peer[d] = (struct peer){.transport = transport,
                            .meter = &meter[d],
                            .shared = shared,
                            .device = d,
                            .bytes = bytes,
                            .took_ns = took_ns};
  pthread_t other;
  if (pthread_create(&other, NULL, run_peer, &peer[1]) != 0) {
    status = zb_fail(error, ZB_FAILED, "no thread for device 1");
  } else {
    run_peer(&peer[0]);
    pthread_join(other, NULL);
    // Whose reason is its own.
    const struct peer *failed = &peer[peer[0].status == ZB_OK || strstr(peer[0].error.text, ZB_GAVE_UP)];
    status = failed->status;
    if (status != ZB_OK && error) *error = failed->error;
  }
  transport->leave(shared, ZB_OK);
  if (status == ZB_OK) *one_way_ns = median(took_ns, TRANSFERS) / 2;
  return status;
}

static enum zb_status look(const struct zb_compute *compute, const struct zb_compute_setup *setup,
                           int devices, struct zb_error *error) {
  struct zb_demand *need = calloc((size_t)devices, sizeof *need);
  if (!need) return zb_fail_memory(error);
  for (int d = 0; d < devices; d++) need[d] = (struct zb_demand){d, d, true, compute->needs(&setup[d])};
  enum zb_status status = compute->look(setup->training, need, devices, error);
  free(need);
  return status;
}

enum zb_status zb_measure_profile(const struct zb_training *training, const struct zb_compute *compute,
                                  const struct zb_transport *transport, enum zb_placement placement,
                                  int devices, int chunks, int repeats, struct zb_profile **profile,
                                  struct zb_error *error) {
  // Two microbatches are enough to time; the profile says how many there will be.
  struct zb_training timed = *training;
  struct zb_profile *p = NULL;
  struct meter *meter = NULL;
  struct zb_compute_setup *setup = NULL;
  int *first_unit = NULL;
  int64_t comm_ns = 0;
  timed.microbatches = 2;
  enum zb_status status = zb_profile_create(devices, chunks, training->microbatches, placement, &p, error);
  if (status != ZB_OK) return status;
  first_unit = calloc((size_t)p->stages + 1, sizeof *first_unit);
  meter = calloc((size_t)devices, sizeof *meter);
  setup = calloc((size_t)devices, sizeof *setup);
  status = first_unit && meter && setup ? zb_gpt_cut(training->gpt, p->stages, first_unit, error)
                                        : zb_fail_memory(error);
  if (status != ZB_OK) goto done;
  p->has_bw = p->has_memory = true;
  p->samples = training->gpt->samples;
  p->name = strdup(training->gpt->name);
  if (!p->name) {
    status = zb_fail_memory(error);
    goto done;
  }
  for (int d = 0; d < devices; d++) {
    setup[d] = (struct zb_compute_setup){
        .profile = p, .training = &timed, .first_unit = first_unit, .device = d, .seat = d};
    meter[d] = (struct meter){.setup = &setup[d],
                              .compute = compute,
                              .repeats = repeats,
                              .f_ns = p->f_ns,
                              .b_ns = p->b_ns,
                              .w_ns = p->w_ns,
                              .bw_ns = p->bw_ns};
  }
  status = look(compute, setup, devices, error);
  if (status == ZB_OK) status = run_meters(meter, devices, error);
  if (status == ZB_OK && devices > 1)
    status = time_transfer(transport, meter, zb_training_message_bytes(training), &comm_ns, error);
  if (status != ZB_OK) goto done;
  for (int s = 0; s < p->stages; s++) {
    zb_stage_memory(training->gpt, training->dtype, first_unit[s], first_unit[s + 1], &p->f_bytes[s],
                    &p->b_bytes[s], &p->w_bytes[s]);
    p->comm_forward_ns[s] = p->comm_backward_ns[s] = s + 1 < p->stages ? comm_ns : 0;
  }
  for (int d = 0; d < devices; d++) p->static_bytes[d] = meter[d].static_bytes;
  status = zb_profile_finish(p, error);
done:
  for (int d = 0; meter && d < devices; d++) close_meter(&meter[d]);
  free(setup);
  free(meter);
  free(first_unit);
  if (status == ZB_OK)
    *profile = p;
  else
    zb_profile_free(p);
  return status;
}
