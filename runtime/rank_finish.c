// rank_finish.c - waiting for a backend that runs behind the rank.
//
// Short waits, between which the transport is asked whether anybody has given up. The device has its timeout
// anew with every op that ends, so that an iteration may take longer than any single wait.
//
// A device's queue has room for about a thousand launches, and a thread that is inside one more hears neither
// that a peer is gone nor its own deadline. So no rank issues far ahead of what has ended. That cannot hang:
// a program finishes even where each op has ended before the next one of its device is issued.
#include <string.h>

#include "runtime/rank_parts.h"
#include "solver/model/deadline.h"
#include "solver/model/number.h"

static const int64_t slice_ns = INT64_C(20000000), brief_ns = INT64_C(50000);

// B and W of a unit together are fewer than thirty launches (compute_cuda_unit.c).
enum { UNITS_AHEAD = 32 };

static int64_t ops_ahead(const struct zb_rank *rank) {
  const struct zb_replay *replay = rank->replay;
  int units = 1;
  for (int s = 0; s < replay->program->profile->stages; s++) {
    int of_stage = replay->first_unit[s + 1] - replay->first_unit[s];
    if (replay->program->profile->device_of[s] == rank->device && of_stage > units) units = of_stage;
  }
  return units > UNITS_AHEAD / 2 ? 2 : UNITS_AHEAD / units;
}

enum zb_status zb_rank_fail_waiting(const struct zb_rank *rank, enum zb_status status,
                                    struct zb_error *error) {
  struct zb_text text = {0};
  zb_progress_print_wait(rank->progress, &text);
  zb_text_print(&text, ": %.200s", error->text);
  zb_fail(error, status, "%s", text.data ? text.data : error->text);
  zb_text_free(&text);
  return status;
}

// The message that an op which has not ended may be waiting for: the one that fills the slot which it reads,
// or else one sent before it whose slot is used again. The op is the one at place `at` of the list.
static bool message_of(const struct zb_rank *rank, size_t at, struct zb_instruction *message) {
  const struct zb_instruction *op = zb_rank_instruction(rank, (int32_t)(rank->first + at));
  enum zb_instruction_kind kind = op->kind == ZB_DO_F ? ZB_DO_RECV_F : ZB_DO_RECV_B;
  for (size_t k = 0; op->kind != ZB_DO_W && k < at; k++) {
    *message = *zb_rank_instruction(rank, (int32_t)(rank->first + k));
    if (message->kind == kind && message->stage == op->stage && message->microbatch == op->microbatch)
      return true;
  }
  for (size_t k = at; k-- > 0;) {
    *message = *zb_rank_instruction(rank, (int32_t)(rank->first + k));
    if (zb_instruction_acts(message->kind) == ZB_ACTS_OP) return false;
    if (message->kind != ZB_DO_WAIT_SEND_F && message->kind != ZB_DO_WAIT_SEND_B) continue;
    message->kind = message->kind == ZB_DO_WAIT_SEND_F ? ZB_DO_SEND_F : ZB_DO_SEND_B;
    return true;
  }
  return false;
}

// Where the device stands rather than the thread that issues: the op behind the last one that ended.
static bool note_device(struct zb_rank *rank, int64_t ended) {
  struct zb_progress *progress = rank->progress;
  if (ended < 0 || ended >= rank->ops_issued) return false;
  progress->finished = false;
  int64_t op = 0;
  for (size_t k = 0; k < rank->count; k++) {
    const struct zb_instruction *i = zb_rank_instruction(rank, (int32_t)(rank->first + k));
    if (zb_instruction_acts(i->kind) != ZB_ACTS_OP) continue;
    if (op++ < ended) {
      progress->last = *i;
      progress->finished = true;
      continue;
    }
    progress->at = *i;
    progress->waits = message_of(rank, k, &progress->awaited);
    progress->bytes = rank->message_bytes;
    return true;
  }
  return false;
}

// "1B1 has not ended, waiting for 1RECV_B1 from device 2, 128 bytes: .."; whether that has come only the
// device knows.
static enum zb_status fail_behind(const struct zb_rank *rank, enum zb_status status, struct zb_error *error) {
  char at[ZB_INSTRUCTION_TEXT];
  struct zb_text text = {0};
  zb_instruction_print(rank->progress->at, at);
  zb_text_print(&text, "%s has not ended", at);
  if (rank->progress->waits) zb_text_put(&text, ", ");
  if (rank->progress->waits) zb_progress_print_wait(rank->progress, &text);
  zb_text_print(&text, ": %.200s", error->text);
  zb_fail(error, status, "%s", text.data ? text.data : error->text);
  zb_text_free(&text);
  return status;
}

// Until everything has ended, or fewer than `most` ops have not.
static enum zb_status wait_for_device(struct zb_rank *rank, int64_t most, struct zb_error *error) {
  const struct zb_compute *compute = rank->replay->compute;
  const struct zb_transport *transport = rank->replay->transport;
  int64_t ended = -2, deadline_ns = 0;
  for (;;) {
    int64_t now_ns = zb_clock_ns(), ops = compute->ops_done(rank->state);
    if (most && (ops < 0 || rank->ops_issued - ops < most)) return ZB_OK;
    if (ops != ended) deadline_ns = now_ns + rank->replay->timeout_ns;
    ended = ops;
    bool done = false;
    enum zb_status status = compute->finish(
        rank->state, zb_min(now_ns + (most ? brief_ns : slice_ns), deadline_ns), &done, error);
    if (status == ZB_OK && done) return ZB_OK;
    if (status == ZB_OK) status = transport->poll(rank->endpoint, error);
    if (status == ZB_OK && zb_clock_ns() >= deadline_ns)
      status = zb_fail(error, ZB_FAILED, "nothing ended in time");
    if (status == ZB_OK) continue;
    return note_device(rank, compute->ops_done(rank->state)) ? fail_behind(rank, status, error) : status;
  }
}

enum zb_status zb_rank_finish(struct zb_rank *rank, struct zb_error *error) {
  return wait_for_device(rank, 0, error);
}

enum zb_status zb_rank_keep_near(struct zb_rank *rank, struct zb_error *error) {
  return wait_for_device(rank, ops_ahead(rank), error);
}
