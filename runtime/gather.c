// gather.c - a log goes to device 0 as its fixed part first, then one message an array.
#include "runtime/gather.h"

#include <stdlib.h>

#include "runtime/rank_parts.h"
#include "solver/model/deadline.h"

// No instruction has this kind.
enum { LABEL_KIND = ZB_INSTRUCTION_KINDS };

enum zb_status zb_gather_part(struct zb_rank *rank, int from, int part, void *data, size_t bytes,
                              struct zb_error *error) {
  const struct zb_transport *transport = rank->replay->transport;
  struct zb_ticket ticket = {.posted = false};
  struct zb_label label = {.kind = LABEL_KIND, .stage = from, .microbatch = part};
  void *event = NULL;
  enum zb_status status =
      rank->device == from
          ? transport->send(rank->endpoint, 0, label, data, bytes, NULL, &ticket, error)
          : transport->receive(rank->endpoint, from, label, data, bytes, NULL, &ticket, error);
  if (status == ZB_OK)
    status =
        transport->wait(rank->endpoint, &ticket, zb_clock_ns() + rank->replay->timeout_ns, &event, error);
  // The ticket must not be written to any more, and nobody else shall wait for this device.
  if (status != ZB_OK) transport->abandon(rank->shared);
  return status;
}

// One array of a log, allocated where it arrives; nothing after a failure.
static void *move_array(struct zb_rank *rank, int from, int part, void *array, size_t count, size_t size,
                        enum zb_status *status, struct zb_error *error) {
  if (*status != ZB_OK || count == 0) return array;
  if (rank->device != from) array = calloc(count, size);
  *status = array ? zb_gather_part(rank, from, part, array, count * size, error) : zb_fail_memory(error);
  return array;
}

static enum zb_status move_log(struct zb_rank *rank, int from, struct zb_rank_log *log,
                               struct zb_error *error) {
  const struct zb_replay *replay = rank->replay;
  size_t count = replay->program->first[from + 1] - replay->program->first[from];
  struct zb_rank_log fixed = *log;
  enum zb_status status = zb_gather_part(rank, from, 0, &fixed, sizeof fixed, error);
  bool has_loss = fixed.loss != NULL;
  if (status == ZB_OK && rank->device != from) {
    fixed.step = NULL;
    fixed.busy_ns = fixed.longest_ns = NULL;
    fixed.event = NULL;
    fixed.loss = NULL;
    *log = fixed;
  }
  size_t steps = (size_t)replay->training->steps;
  log->step = move_array(rank, from, 1, log->step, steps, sizeof *log->step, &status, error);
  log->busy_ns = move_array(rank, from, 2, log->busy_ns, count, sizeof *log->busy_ns, &status, error);
  log->longest_ns =
      move_array(rank, from, 3, log->longest_ns, count, sizeof *log->longest_ns, &status, error);
  log->event = move_array(rank, from, 4, log->event, fixed.events, sizeof *log->event, &status, error);
  log->loss = move_array(rank, from, 5, log->loss, has_loss ? steps : 0, sizeof *log->loss, &status, error);
  return status;
}

enum zb_status zb_crew_gather(struct zb_crew *crew, struct zb_error *error) {
  int devices = crew->replay->program->devices;
  crew->log = calloc((size_t)devices, sizeof(struct zb_rank_log *));
  crew->received = calloc((size_t)devices, sizeof *crew->received);
  enum zb_status status = crew->log && crew->received ? ZB_OK : zb_fail_memory(error);
  for (int k = 0; status == ZB_OK && k < crew->devices; k++)
    crew->log[crew->first_device + k] = zb_rank_log(crew->rank[k]);
  // Nobody sends what nobody will take.
  status = zb_crew_agree(crew, status, crew->replay->timeout_ns, error);
  for (int d = 1; status == ZB_OK && d < devices; d++) {
    bool here = zb_crew_rank(crew, d) != NULL;
    if (zb_crew_speaks(crew) == here) continue;
    struct zb_rank *rank = zb_crew_rank(crew, here ? d : 0);
    if (here) {
      status = move_log(rank, d, &rank->log, error);
    } else if (zb_crew_speaks(crew)) {
      status = move_log(rank, d, &crew->received[d], error);
      crew->log[d] = &crew->received[d];
    }
  }
  return zb_crew_agree(crew, status, crew->replay->timeout_ns, error);
}
